"""Libraries are found by reading headers: on programs made here, and on real ones."""

import shutil
import subprocess
from pathlib import Path

import pytest

from rtscope.boards.parts.initrd import interpreter, libraries_of, module_needs, needed
from rtscope.host.errors import BoardError

GCC = shutil.which("gcc")

pytestmark = pytest.mark.skipif(GCC is None, reason="gcc is not installed")


def _build(path: Path, *args: str, text: str = "") -> Path:
    source = path.with_suffix(".c")
    source.write_text(text or "int f;\n")
    subprocess.run(["gcc", *args, "-o", path, source], check=True)
    return path


def _library(folder: Path, name: str, *others: Path) -> Path:
    return _build(
        folder / f"lib{name}.so",
        *("-shared", "-nostdlib", "-Wl,--no-as-needed"),
        f"-Wl,-soname,lib{name}.so",
        *map(str, others),
    )


def test_what_a_library_needs_is_found_through_others(tmp_path: Path) -> None:
    a = _library(tmp_path, "a")
    b = _library(tmp_path, "b", a)
    c = _library(tmp_path, "c", b)

    assert needed(c) == ("libb.so",)
    assert libraries_of([c], libs=tmp_path) == {"liba.so": a, "libb.so": b}


def test_a_missing_library_is_named_with_its_user(tmp_path: Path) -> None:
    a = _library(tmp_path, "a")
    b = _library(tmp_path, "b", a)
    a.unlink()

    with pytest.raises(BoardError, match=r"libb\.so needs liba\.so"):
        libraries_of([b], libs=tmp_path)


def test_libraries_that_need_each_other_end_the_search(tmp_path: Path) -> None:
    a = _library(tmp_path, "a")
    b = _library(tmp_path, "b", a)
    _library(tmp_path, "a", b)

    assert set(libraries_of([b], libs=tmp_path)) == {"liba.so", "libb.so"}


def test_a_program_names_its_loader_and_a_static_one_none(tmp_path: Path) -> None:
    main = "int main(void) { return 0; }\n"

    dynamic = interpreter(_build(tmp_path / "dynamic", text=main))
    assert dynamic is not None
    assert dynamic.startswith("/")
    static = _build(tmp_path / "static", "-static", text=main)
    assert interpreter(static) is None
    assert needed(static) == ()


def test_a_module_says_what_must_be_there_before_it(tmp_path: Path) -> None:
    module = _build(
        tmp_path / "x.o",
        "-c",
        text='static const char d[] __attribute__((section(".modinfo"), used)) ='
        ' "depends=jbd2,mbcache\\0name=x";\n',
    )

    assert list(module_needs(module)) == ["jbd2", "mbcache"]


def test_a_text_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("#!/bin/sh\n")

    with pytest.raises(BoardError, match="not an ELF file"):
        needed(tmp_path / "text")
