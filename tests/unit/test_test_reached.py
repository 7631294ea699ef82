"""Which functions of a program's own file its judged threads never entered."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rtscope.boards.parts.initrd import File
from rtscope.boards.parts.program import Program
from rtscope.programs.binaries.image import Image
from rtscope.programs.memorymap import Mapping as Piece
from rtscope.verbs.test.codeseen import CodeSeen
from rtscope.verbs.test.codetables import code_blocks, code_row
from rtscope.verbs.test.reached import OwnFile, Unreached, path_of, unreached_in

PATH = "/program/own"
BASE = 0x5555_5555_4000
SOURCE = """
static volatile int sink;
#define APART __attribute__((noinline))
APART static void stop(void) { sink = 3; }
APART static void overcurrent(int n) { if (n > 9) stop(); sink = n; }
APART static void filter(int n) { for (int i = 0; i < n; i++) sink += i; }
APART static void setup(void) { sink = 1; }
APART void *loop(void *arg)
{
	filter(sink);
	if (sink < 0)
		overcurrent(sink);
	return arg;
}
int main(void) { setup(); return loop(0) != 0; }
"""
OWN = {"stop", "overcurrent", "filter", "setup", "loop", "main"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reached")


def built(folder: Path, *options: str) -> bytes:
    source, out = folder / "own.c", folder / "own"
    source.write_text(SOURCE)
    zig = (sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-musl")
    argv = [*zig, "-O1", *options, "-o", str(out), str(source)]
    subprocess.run(argv, check=True)
    return out.read_bytes()


def own_file(content: bytes) -> OwnFile:
    """Return the file in the memory of a process, whole and in one piece."""
    program = Program(("/own",), {"program/own": File(content)}, ())
    pieces = (Piece(BASE, BASE + len(content), "r-xp", 0, "0:1", 7, PATH),)
    return OwnFile("pc", PATH, program, "x86_64", pieces)


def executes(own: OwnFile, content: bytes, *names: str, judged: bool) -> None:
    """Let a thread execute the first blocks of functions."""
    image = Image(content, PATH)
    offsets = [
        image.offset_of(symbol.vaddr)
        for name in names
        for symbol in image.functions_named(name)[:1]
    ]
    own.add(np.array([BASE + (one or 0) for one in offsets], np.uint64), judged=judged)


@pytest.mark.slow
@pytest.mark.parametrize("options", [("-static", "-g"), ("-dynamic", "-g")])
def test_functions_that_no_thread_entered_are_named(
    folder: Path, options: tuple[str, ...]
) -> None:
    content = built(folder, *options)
    own = own_file(content)
    executes(own, content, "loop", "filter", judged=True)
    executes(own, content, "main", "setup", "loop", judged=False)

    found = unreached_in(own)

    assert (found.why, found.functions) == ("", len(OWN))
    assert set(found.never) == {"stop", "overcurrent"}
    assert set(found.others) == {"main", "setup"}


def test_what_nobody_executed_is_all_of_it(folder: Path) -> None:
    found = unreached_in(own_file(built(folder, "-static", "-g")))

    assert set(found.never) == OWN


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("-static", "-s"), "it is stripped of the names of its functions"),
        (("-static", "-g0"), "compile it with -g"),
    ],
)
def test_a_file_that_does_not_name_its_own_functions_is_unknown(
    folder: Path, options: tuple[str, ...], why: str
) -> None:
    found = unreached_in(own_file(built(folder, *options)))

    assert found.functions is None
    assert why in found.why


def test_without_its_memory_or_all_its_code_nothing_is_said(folder: Path) -> None:
    content = built(folder, "-static", "-g")
    gone, full = own_file(content), own_file(content)
    gone.pieces, full.lost = (), True

    assert "it ended before" in unreached_in(gone).why
    assert "was full" in unreached_in(full).why
    assert unreached_in(full).functions is None


def test_a_file_that_is_none_is_unknown() -> None:
    assert unreached_in(own_file(b"#!/bin/sh\n")).functions is None


def test_the_programs_own_file_is_the_first_with_code() -> None:
    pieces = [
        Piece(1, 2, "r--p", 0, "0:1", 6, "/program/data"),
        Piece(2, 3, "r-xp", 0, "0:1", 7, PATH),
        Piece(4, 5, "r-xp", 0, "0:1", 8, "/program/lib/libc.so.6"),
    ]

    assert path_of(pieces) == PATH
    assert path_of(pieces[:1]) == ""


def test_tables_and_json_keep_unknown_apart_from_none() -> None:
    unknown = Unreached("pc", "own", None, (), (), "it is stripped")
    none = Unreached("rpi3", "own", 6, (), (), "")
    seen = CodeSeen((), (unknown, none))
    (section,) = code_blocks(seen)

    assert "unknown: it is stripped" in str(section)
    assert "nothing; its 6 functions were all entered" in str(section)
    assert [one["functions"] for one in code_row(seen)["files"]] == [None, 6]
