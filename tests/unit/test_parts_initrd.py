"""Archives for the kernel: exact bytes, the same every time, and safe paths."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtscope.boards.parts.initrd import BLOCK, Device, Entry, File, Folder, Link, pack
from rtscope.host.errors import BoardError


def test_one_file_gives_exactly_these_bytes() -> None:
    header = (
        b"070701" + b"00000001" + b"000081A4" + b"00000000" * 2 + b"00000001"
        b"00000000" + b"00000003" + b"00000000" * 4 + b"00000002" + b"00000000"
    )
    body = header + b"a\0" + b"xyz\0"

    archive = pack({"a": File(b"xyz")})

    assert archive[: len(body)] == body
    assert archive[len(body) :].startswith(b"070701")
    assert b"TRAILER!!!\0" in archive


def test_the_order_in_which_entries_are_named_does_not_matter() -> None:
    assert pack({"a": File(b"1"), "b": File(b"2")}) == pack(
        {"b": File(b"2"), "a": File(b"1")}
    )


def test_parents_come_before_what_is_in_them() -> None:
    archive = pack({"usr/lib/x.so": File(b"")})

    places = [archive.index(name) for name in (b"usr\0", b"usr/lib\0", b"x.so\0")]
    assert places == sorted(places)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.binary()))
def test_every_archive_is_whole_blocks(files: dict[str, bytes]) -> None:
    assert len(pack({name: File(b) for name, b in files.items()})) % BLOCK == 0


@pytest.mark.parametrize(
    "path", ["/a", "../a", "a/../b", "a//b", "a/", "", ".", "a\0b"]
)
def test_a_path_that_leaves_the_root_is_refused(path: str) -> None:
    with pytest.raises(BoardError, match="not a path"):
        pack({path: File(b"")})


@pytest.mark.skipif(shutil.which("cpio") is None, reason="cpio is not installed")
def test_another_program_reads_what_was_packed(tmp_path: Path) -> None:
    entries: dict[str, Entry] = {
        "bin/run": File(b"#!/bin/sh\n", runs=True),
        "bin/sh": Link("run"),
        "empty": Folder(),
        "note": File(b"text"),
    }
    subprocess.run(
        ["cpio", "-idm", "--quiet"], input=pack(entries), cwd=tmp_path, check=True
    )

    assert (tmp_path / "bin/run").read_bytes() == b"#!/bin/sh\n"
    assert (tmp_path / "bin/run").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "bin/sh").readlink() == Path("run")
    assert (tmp_path / "empty").is_dir()
    assert (tmp_path / "note").stat().st_mode & 0o777 == 0o644


def test_a_device_is_there_before_dev_is_mounted() -> None:
    assert b"00000005" + b"00000001" in pack({"dev/console": Device(5, 1)})
