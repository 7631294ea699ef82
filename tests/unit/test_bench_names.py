"""The comparison with addr2line: names of one address are equal."""

import subprocess
import sys
from pathlib import Path

import pytest

from names_beside_addr2line import are_equal, image_of, main
from rtscope.programs.binaries.image import Image

SOURCE = """
int step(int a) { return a + 1; }
extern int other(int a) __attribute__((alias("step")));
int unlike(int a) { return a + 2; }
int main(void) { return step(0) + unlike(0); }
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    place = tmp_path_factory.mktemp("names")
    (place / "a.c").write_text(SOURCE)
    zig = (sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-musl")
    subprocess.run([*zig, "-g", "-O0", place / "a.c", "-o", place / "a"], check=True)
    found = image_of(place / "a")
    assert isinstance(found, Image), found
    return found


def test_aliases_of_one_address_are_equal(image: Image) -> None:
    assert are_equal(image, ["step", "main"], ["other", "main"])
    assert are_equal(image, ["??"], ["??"])


@pytest.mark.parametrize("theirs", [["unlike"], ["??"], ["nobody"], ["step", "main"]])
def test_other_functions_are_not(image: Image, theirs: list[str]) -> None:
    assert not are_equal(image, ["step"], theirs)


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n", b"\x7fELF", None])
def test_what_is_no_elf_file_is_left_out_in_a_sentence(
    content: bytes | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setattr(sys, "argv", ["names", str(file)])

    main()

    assert "left out: " in capsys.readouterr().out
