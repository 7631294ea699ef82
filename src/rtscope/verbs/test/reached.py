"""Which functions of a program's own file its judged threads never entered."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from rtscope.boards.parts.program import Program
from rtscope.boards.recording.programuses import NO_DEBUG_FILES, content_of
from rtscope.host.escape import all_printable
from rtscope.programs.images import Images
from rtscope.programs.memorymap import Mapping as Piece
from rtscope.programs.naming import NamedFrame, Origin
from rtscope.verbs.test.functions import frames_at

Function = tuple[str, int, int]
"""Its name; where it is in its file, and its bytes."""

_STATIC = (
    "it is static and has no debug information, which tells its own functions from "
    "those of its libraries: compile it with -g"
)
_OF_LINKER = frozenset(
    (
        *("_start", "_start_c", "_init", "_fini", "frame_dummy"),
        *("deregister_tm_clones", "register_tm_clones", "__do_global_dtors_aux"),
        *("__libc_csu_init", "__libc_csu_fini", "_dl_relocate_static_pie"),
    )
)
"""Functions that every program has, and nobody wrote."""
_OF_COMPILER = re.compile(r"(?:\.(?:cold|part|isra|constprop|lto_priv)(?:\.[0-9]+)*)+$")
"""Behind the name of a function that the compiler divided or copied."""


@dataclass(slots=True)
class OwnFile:
    """The file of a program, and which parts of it any start executed."""

    board: str
    path: str
    """On the board; empty: not known."""
    program: Program
    arch: str
    pieces: Sequence[Piece] = ()
    """Of the memory of one of its processes."""
    judged: set[int] = field(default_factory=set)
    """Where in the file blocks begin that judged threads executed,"""
    others: set[int] = field(default_factory=set)
    """and that other threads did."""
    lost: bool = False
    """Whether not all blocks were recorded."""

    def add(self, blocks: NDArray[np.uint64], *, judged: bool) -> None:
        """Take the addresses of blocks of a process."""
        into = self.judged if judged else self.others
        for piece in _code_of(self.pieces, self.path):
            inside = (blocks >= piece.start) & (blocks < piece.end)
            offsets = blocks[inside].astype(np.int64) - (piece.start - piece.offset)
            into.update(offsets.tolist())


@dataclass(frozen=True, slots=True)
class Unreached:
    """What no judged thread entered of a program's file."""

    board: str
    file: str
    """Its name; empty: not known."""
    functions: int | None
    """How many it has of its own; None: not known."""
    never: tuple[str, ...]
    """Those that no thread of the program entered, in the order of the file."""
    others: tuple[str, ...]
    """Those that only threads entered which are not judged."""
    why: str
    """Why nobody knows; empty if all is known."""


def path_of(pieces: Sequence[Piece]) -> str:
    """Return the program's own file in the memory of a process; empty: not known."""
    return next((one.path for one in pieces if one.executable and one.is_file), "")


def unreached_in(own: OwnFile) -> Unreached:
    """Return which functions of a file no judged thread entered."""
    nothing = Unreached(
        own.board, PurePosixPath(own.path).name, None, (), (), _why_unknown(own)
    )
    if nothing.why:
        return all_printable(nothing)
    code = _code_of(own.pieces, own.path)
    reading = content_of(own.program)
    with Images(reading, debug_files=NO_DEBUG_FILES, find=(), every=True) as images:
        images.read(code)
        functions = images.every_function(code[0])
    if isinstance(functions, str):
        return all_printable(replace(nothing, why=functions))
    named = _own_functions(own, code, functions)
    if isinstance(named, str):
        return all_printable(replace(nothing, why=named))
    judged, others = (np.array(sorted(one)) for one in (own.judged, own.others))
    entered = {key for key, at in named.items() if _is_in(judged, at)}
    elsewhere = {key for key, at in named.items() if _is_in(others, at)} - entered
    left = [key for key in named if key not in entered]
    return all_printable(
        replace(
            nothing,
            functions=len(named),
            never=tuple(name for name, file in left if (name, file) not in elsewhere),
            others=tuple(name for name, file in left if (name, file) in elsewhere),
        )
    )


def _why_unknown(own: OwnFile) -> str:
    if not _code_of(own.pieces, own.path):
        return "it ended before the board could read what is in its memory"
    if own.lost:
        return "the record of executed code was full: test it for a shorter time"
    return ""


def _code_of(pieces: Sequence[Piece], path: str) -> list[Piece]:
    return [one for one in pieces if one.executable and path and one.path == path]


def _is_in(blocks: NDArray[np.int64], places: Sequence[tuple[int, int]]) -> bool:
    """Tell whether a block begins in one of these pieces of code."""
    return any(
        bool(np.searchsorted(blocks, at) < np.searchsorted(blocks, at + max(size, 1)))
        for at, size in places
    )


def _own_functions(
    own: OwnFile, code: Sequence[Piece], functions: Sequence[Function]
) -> Mapping[tuple[str, str], list[tuple[int, int]]] | str:
    """Return where the functions are that the program's author wrote; or why not."""
    addresses = {
        at: piece.start + at - piece.offset
        for piece in code
        for _, at, _ in functions
        if piece.offset <= at < piece.offset + piece.end - piece.start
    }
    chains = frames_at(own.program, own.pieces, list(addresses.values()), arch=own.arch)
    frames = {
        at: next((one for one in chains[address] if not one.inlined), None)
        for at, address in addresses.items()
        if address in chains
    }
    with_line = any(
        one and one.line and one.origin is Origin.PROGRAM for one in frames.values()
    )
    if not with_line and len({one.path for one in own.pieces if one.is_file}) == 1:
        return _STATIC
    found: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for name, at, size in functions:
        if at in frames and _is_own(name, frames[at], with_line=with_line):
            found.setdefault(_key(name, frames[at]), []).append((at, size))
    return found or "no function of its own has a name"


def _is_own(name: str, frame: NamedFrame | None, *, with_line: bool) -> bool:
    if name in _OF_LINKER or frame is None or frame.origin is not Origin.PROGRAM:
        return False
    return bool(frame.line) or not with_line


def _key(name: str, frame: NamedFrame | None) -> tuple[str, str]:
    shown = (frame and frame.function) or name
    return _OF_COMPILER.sub("", shown), frame.file if frame else ""
