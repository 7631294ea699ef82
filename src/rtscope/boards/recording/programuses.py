"""
Where the functions begin by which a program allocates memory, in the files of a board.

The content of its page tells each one, wherever a process has it: see plugin/uses.h.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rtscope.boards.parts.elfheaders import MAGIC
from rtscope.boards.parts.program import ROOT, Program
from rtscope.boards.parts.qemu import MAX_USES, ProgramUse
from rtscope.machine.reader import Content, Missing
from rtscope.programs.images import Images
from rtscope.programs.memorymap import Mapping as Piece
from rtscope.programs.probes import ALLOCATIONS, OF_LANGUAGES, OPERATORS

PAGE_BYTES = 4096
_WORDS = struct.Struct(f"<{PAGE_BYTES // 8}Q")
_FNV_BASIS, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
_MASK = (1 << 64) - 1

NO_DEBUG_FILES: tuple[Path, ...] = ()
"""Those of this computer are no input of the board."""

_NAMES = (*ALLOCATIONS, *OPERATORS, *OF_LANGUAGES)

TOO_MANY = f"more than {MAX_USES} functions allocate memory"


@dataclass(frozen=True, slots=True)
class ProgramUses:
    """The functions of a program that allocate memory."""

    uses: tuple[ProgramUse, ...]
    hidden: Mapping[str, str]
    """Why those of a file are not known, by its path on the board."""

    def why_unseen(self, paths: Iterable[str]) -> str:
        """Return why a process with these files is not seen; empty if it is."""
        for path in paths:
            if why := self.hidden.get(path):
                return f"{path.removeprefix(f'/{ROOT}')}: {why}"
        return ""


def program_uses(program: Program) -> ProgramUses:
    """Return where allocators begin in the files that the board gets."""
    files = sorted(program.files.items())
    paths = [f"/{path}" for path, content in files if content.startswith(MAGIC)]
    pieces = [Piece(0, 0, "r-xp", 0, "", 1, path) for path in paths]
    with Images(content_of(program), debug_files=NO_DEBUG_FILES, find=_NAMES) as images:
        images.read(pieces)
        hidden = {one.path: images.why_hidden(one) for one in pieces}
        found = list(_each_once(program, images, pieces))
    hidden |= {one.path: TOO_MANY for one in found[MAX_USES:]}
    return ProgramUses(
        tuple(found[:MAX_USES]), {path: why for path, why in hidden.items() if why}
    )


def content_of(program: Program) -> Callable[[Piece], Content]:
    """Return what reads the files of a program on a board."""

    def read_piece(piece: Piece) -> Content:
        content = program.image(piece.path)
        return Missing() if content is None else content

    return read_piece


def _each_once(
    program: Program, images: Images, pieces: Sequence[Piece]
) -> Iterator[ProgramUse]:
    seen: set[tuple[int, int]] = set()
    for piece in pieces:
        content = program.image(piece.path) or b""
        for symbol, at in images.functions(piece):
            page = at - at % PAGE_BYTES
            told = at % PAGE_BYTES, sum_of_page(content[page : page + PAGE_BYTES])
            if symbol in _NAMES and told not in seen:
                seen.add(told)
                name = OPERATORS.get(symbol, symbol)
                yield ProgramUse(name, piece.path, *told)


def sum_of_page(content: bytes) -> int:
    """Return the sum of a page as the plugin makes it; behind a file are zeros."""
    total = _FNV_BASIS
    for word in _WORDS.unpack(content.ljust(PAGE_BYTES, b"\0")):
        total = (total ^ word) * _FNV_PRIME & _MASK
    return total
