"""
The functions of a program of Go, from the table that its runtime itself needs.

Also programs that are stripped of all else have it (`-ldflags "-s -w"`): for each
function its name, and for each of its instructions a line and how far the stack pointer
is from where the function began. Go's src/runtime/symtab.go describes it; those of Go
1.18 and later are read, on x86-64.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

from rtscope.programs.binaries.bytestream import Cursor
from rtscope.programs.binaries.elf import Damaged, ElfFile, text_at
from rtscope.programs.binaries.frametable import FrameRow, Saved

SECTION = ".gopclntab"
_MAGICS = (0xFFFFFFF0, 0xFFFFFFF1)
"""Of Go 1.18 and 1.20, which differ in nothing that is read here."""
_HEAD = "<IHBBQQQQQQQQ"
_MAX_FUNCTIONS = 1 << 19
_DEPTH, _FILE, _LINE, _UNIT = 16, 20, 24, 32
"""Of a function: its tables of the stack pointer, files and lines, its unit's files."""
_SP, _PC = 7, 16
"""Registers of x86-64, by their DWARF numbers."""


class GoFunction(NamedTuple):
    """A function: its address in the file, and where the table describes it."""

    begin: int
    name: str
    at: int


class GoTable:
    """The table of one file; what is damaged is as if it were not there."""

    def __init__(self, elf: ElfFile) -> None:
        """Read its header."""
        self._data = (
            elf.part(SECTION) if elf.machine == "EM_X86_64" else memoryview(b"")
        )
        self._count = 0
        if len(self._data) < struct.calcsize(_HEAD):
            return
        head = struct.unpack_from(_HEAD, self._data)
        if head[0] not in _MAGICS or head[3] != 8 or head[4] > _MAX_FUNCTIONS:
            return
        self._quantum, self._count = head[2], head[4]
        self._text = head[6] or _text_of(elf)
        self._names, self._units, self._files, self._values, self._table = head[7:12]

    @cached_property
    def _rows(self) -> list[tuple[int, int]]:
        """Begin and description of each function, then the end of the last one."""
        size = 8 * self._count + 4
        rows = self._part(self._table, size)
        numbers = struct.unpack_from(f"<{2 * self._count + 1}I", rows)
        begins = [self._text + one for one in numbers[::2]]
        return list(zip(begins, (*numbers[1::2], 0), strict=True))

    @cached_property
    def _begins(self) -> list[int]:
        return [begin for begin, _ in self._rows]

    def _part(self, at: int, size: int) -> memoryview:
        if at + size > len(self._data):
            raise Damaged(f"its {SECTION} ends before what should be at {at:#x}")
        return self._data[at : at + size]

    def at(self, vaddr: int) -> GoFunction | None:
        """Return the function that an address of the file is in."""
        with suppress(Damaged):
            number = bisect_right(self._begins, vaddr) - 1 if self._count else -1
            if 0 <= number < self._count:
                return self._function(*self._rows[number])
        return None

    def named(self, name: str) -> Iterator[int]:
        """Yield where the functions of a name begin."""
        if not self._count:
            return
        wanted = b"\0" + name.encode() + b"\0"
        place = bytes(self._data[self._names : self._units]).find(wanted) + 1
        with suppress(Damaged):
            for begin, at in self._rows[:-1] if place else ():
                if self._number(self._table + at + 4) == place:
                    yield begin

    def _function(self, begin: int, at: int) -> GoFunction:
        name = text_at(self._data, self._names + self._number(self._table + at + 4))
        return GoFunction(begin, name, self._table + at)

    def _number(self, at: int) -> int:
        return int(struct.unpack("<I", self._part(at, 4))[0])

    def row_at(self, vaddr: int) -> FrameRow | None:
        """Return how to find the caller from there; None if the table does not tell."""
        with suppress(Damaged):
            depth = self._value(self.at(vaddr), _DEPTH, vaddr)
            if depth is not None and depth >= 0:
                saved = {_PC: Saved("at", -8)}
                return FrameRow(_SP, depth + 8, None, saved, _PC, is_signal=False)
        return None

    def line_at(self, vaddr: int) -> tuple[str, int]:
        """Return file and line of an address; empty and 0 if they are not known."""
        with suppress(Damaged):
            function = self.at(vaddr)
            number = self._value(function, _FILE, vaddr)
            line = self._value(function, _LINE, vaddr)
            if function is not None and line is not None and (number or 0) >= 0:
                unit = self._number(function.at + _UNIT)
                place = self._number(self._units + 4 * (unit + (number or 0)))
                return text_at(self._data, self._files + place), max(0, line)
        return "", 0

    def _value(self, function: GoFunction | None, field: int, vaddr: int) -> int | None:
        """Return what a table of a function says of an address."""
        at = 0 if function is None else self._number(function.at + field)
        if function is None or not at:
            return None
        cursor = Cursor(self._data, at=self._values + at)
        value, end = -1, function.begin
        while (change := cursor.unsigned()) or end == function.begin:
            value += -(change >> 1) - 1 if change & 1 else change >> 1
            end += cursor.unsigned() * self._quantum
            if vaddr < end:
                return value
        return None


def _text_of(elf: ElfFile) -> int:
    section = elf.section(".text")
    return 0 if section is None else section.address
