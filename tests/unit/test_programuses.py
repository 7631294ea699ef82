"""Where allocators begin in the files of a program, and why some are not found."""

import subprocess
import sys
from pathlib import Path

import pytest

from rtscope.boards.parts.initrd import File
from rtscope.boards.parts.program import Program
from rtscope.boards.recording.programuses import (
    PAGE_BYTES,
    ProgramUses,
    program_uses,
    sum_of_page,
)

SOURCE = """
typedef unsigned long size;
static char room[4096];
static size used;
void *malloc(size n) { used += n; return room + used - n; }
void free(void *p) { used = p == room; }
void *_Znwm(size n) { return malloc(n); }
int main(void) { free(malloc(8)); free(_Znwm(1)); return 0; }
"""


def built(folder: Path, *options: str) -> bytes:
    source, out = folder / "own.c", folder / "own"
    source.write_text(SOURCE)
    zig = (sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-musl")
    argv = [*zig, "-O1", "-fno-builtin", *options, "-o", str(out), str(source)]
    subprocess.run(argv, check=True)
    return out.read_bytes()


def uses_of(**files: bytes) -> ProgramUses:
    tree = {f"program/{name}": File(content) for name, content in files.items()}
    return program_uses(Program(("/own",), tree, ()))


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return built(tmp_path_factory.mktemp("static"), "-static")


def test_each_allocator_is_found_by_its_page(static: bytes) -> None:
    found = uses_of(own=static)

    assert {"malloc", "free", "operator new"} <= {one.name for one in found.uses}
    assert found.hidden == {}
    sums = {
        sum_of_page(static[at : at + PAGE_BYTES])
        for at in range(0, len(static), PAGE_BYTES)
    }
    for one in found.uses:
        assert one.path == "/program/own"
        assert one.sum in sums
        assert one.offset < PAGE_BYTES


def test_a_copy_of_a_file_and_what_is_no_program_add_nothing(static: bytes) -> None:
    one = uses_of(own=static)
    more = uses_of(own=static, copy=static, script=b"#!/bin/sh\nmalloc\n")

    assert len(more.uses) == len(one.uses)


def test_a_static_program_without_names_hides_its_own(tmp_path: Path) -> None:
    found = uses_of(own=built(tmp_path, "-static", "-s"))

    assert found.uses == ()
    assert found.why_unseen(["/program/lib/other", "/program/own"]) == (
        "/own: it is static, and stripped of the names of its functions: leave them "
        "in, or link it dynamically"
    )
    assert found.why_unseen(["/program/lib/other"]) == ""


def test_a_dynamic_program_without_names_has_those_of_its_library(
    tmp_path: Path,
) -> None:
    found = uses_of(own=built(tmp_path, "-dynamic", "-s"))

    assert found.why_unseen(["/program/own"]) == ""


def test_a_damaged_file_says_so(static: bytes) -> None:
    found = uses_of(own=static[:200])

    assert found.uses == ()
    assert found.why_unseen(["/program/own"]).startswith("/own: it ")


def test_the_sum_is_fnv_1a_of_its_words() -> None:
    assert sum_of_page(b"") == sum_of_page(bytes(PAGE_BYTES))
    assert sum_of_page(b"\x01") != sum_of_page(b"\x02")
    total = 0xCBF29CE484222325
    for word in [0x0807060504030201, *[0] * 511]:
        total = (total ^ word) * 0x100000001B3 % 2**64
    assert sum_of_page(bytes(range(1, 9))) == total
