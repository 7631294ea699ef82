"""An ELF file that is in the memory of a process: its segments, symbols and frames."""

import lzma
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TypeVar, cast

from rtscope.programs.binaries.elf import (
    INTERPRETER,
    LOAD,
    Damaged,
    ElfFile,
    Section,
    Segment,
    text_at,
)
from rtscope.programs.binaries.frametable import FrameRow, FrameTable
from rtscope.programs.binaries.gotable import GoTable

_JUMP_SLOT = {"EM_X86_64": 7, "EM_AARCH64": 1026, "EM_ARM": 22, "EM_RISCV": 5}
"""Relocations that wait for the first call of a function."""

_POINTERS = (6, 7)
"""R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT: of functions, perhaps of other files."""

_NO_SIZE = 4096
"""How far a symbol without a size goes, at most: those of assembler have none."""

_FUNCTIONS = (2, 10)
"""STT_FUNC, STT_GNU_IFUNC."""
_TABLES = (2, 11)
"""SHT_SYMTAB, SHT_DYNSYM."""
_BEFORE = 16
"""So many functions that begin before a place are looked at: they can overlap."""
_MAX_MINI_BYTES = 64 << 20

_Table = TypeVar("_Table")


@dataclass(frozen=True, slots=True)
class Symbol:
    """A function: its name, and where it is in the file's own addresses."""

    name: str
    vaddr: int
    size: int
    global_: bool


_TEXTREL, _FLAGS, _FLAGS_1 = 22, 30, 0x6FFFFFFB
_TEXTREL_FLAG, _PIE = 4, 0x08000000
"""Dynamic tags, and what they say: its code is changed; it is a program."""
_SYMTAB, _EXECUTABLE = 2, 4


class Image:
    """One file. What it lacks is empty, not an error."""

    def __init__(self, data: bytes | memoryview, name: str) -> None:
        """Read its headers; Damaged if it is no ELF file."""
        self.name = name
        self.elf = ElfFile(data)
        self._tables: dict[Callable[[ElfFile], object], object] = {}
        self._loaded = [one for one in self.elf.segments if one.type == LOAD]
        self._loads = [(one.offset, one.file_bytes, one.vaddr) for one in self._loaded]

    def vaddr_of(self, offset: int) -> int | None:
        """Return the file's own address of what is at an offset in it."""
        for begin, size, vaddr in self._loads:
            if begin <= offset < begin + size:
                return offset - begin + vaddr
        # the last page of a segment shows what follows it in the file
        for begin, size, vaddr in self._loads:
            if begin & ~0xFFF <= offset < (begin + size + 0xFFF) & ~0xFFF:
                return offset - begin + vaddr
        return None

    def offset_of(self, vaddr: int) -> int | None:
        """Return where in the file something with this address of its own is."""
        for begin, size, start in self._loads:
            if start <= vaddr < start + size:
                return vaddr - start + begin
        return None

    def code_at(self, vaddr: int, size: int) -> bytes:
        """Return so many bytes of code; fewer where the file ends."""
        offset = self.offset_of(vaddr)
        return b"" if offset is None else bytes(self.elf.data[offset : offset + size])

    def _once(self, kind: Callable[[ElfFile], _Table]) -> _Table:
        """Return a table; what reading it failed with, it fails with again at once."""
        if kind not in self._tables:
            try:
                self._tables[kind] = kind(self.elf)
            except Exception as error:  # also when there was no time
                self._tables[kind] = error
        table = self._tables[kind]
        if isinstance(table, Exception):
            raise table.with_traceback(None)
        return cast(_Table, table)

    @property
    def frames(self) -> FrameTable:
        """The table of frames."""
        return self._once(FrameTable)

    @property
    def symbols(self) -> "SymbolTable":
        """Its functions."""
        return self._once(SymbolTable)

    @property
    def go(self) -> GoTable:
        """The table of Go's runtime."""
        return self._once(GoTable)

    def row_at(self, vaddr: int) -> FrameRow | None:
        """Return how to find the caller from there; None if no table tells."""
        return self.frames.row_at(vaddr) or self.go.row_at(vaddr)

    def symbol_at(self, vaddr: int) -> Symbol | None:
        """Return the function that an address of the file is in."""
        symbol = self.symbols.at(vaddr)
        if symbol is None and (function := self.go.at(vaddr)) is not None:
            return Symbol(function.name, function.begin, 0, global_=True)
        return symbol

    def functions_named(self, name: str) -> list[Symbol]:
        """Return the functions of this name, whatever their version."""
        found = [symbol for part in _parts(self.elf) for symbol in part.named(name)]
        return found or [
            Symbol(name, at, 0, global_=True) for at in self.go.named(name)
        ]

    @property
    def has_names(self) -> bool:
        """Whether it has the names of all its functions: it is not stripped."""
        return any(one.type == _SYMTAB for one in self.elf.sections)

    def every_function(self) -> Iterator[Symbol]:
        """Yield each function once, by its best name; Damaged if a table is cut."""
        yield from self.symbols.every()

    @property
    def build_id(self) -> str | None:
        """The number of its build, in hexadecimal."""
        return self.elf.build_id

    @cached_property
    def _tags(self) -> Mapping[int, int]:
        form = "QQ" if self.elf.word_bytes == 8 else "II"
        dynamic = self.elf.part(".dynamic")
        return {row[0]: row[1] for row in _rows(dynamic, self.elf.order + form)}

    def _has_code(self, segment: Segment) -> bool:
        end = segment.vaddr + segment.file_bytes
        return any(
            one.flags & _EXECUTABLE and segment.vaddr <= one.address < end
            for one in self.elf.sections
        )

    @property
    def why_hidden(self) -> str:
        """Why some of its functions cannot be found in its memory; empty if all can."""
        changed = _TEXTREL in self._tags or self._tags.get(_FLAGS, 0) & _TEXTREL_FLAG
        if changed or any(one.writable and self._has_code(one) for one in self._loaded):
            return "its code is changed where it is loaded"
        library = self._tags and not self._tags.get(_FLAGS_1, 0) & _PIE
        loaded = any(one.type == INTERPRETER for one in self.elf.segments)
        if not (library or loaded or self.has_names):
            return (
                "it is static, and stripped of the names of its functions: leave them "
                "in, or link it dynamically"
            )
        return ""

    @cached_property
    def lazy(self) -> bool:
        """Whether functions of others are looked up when they are first called."""
        tags = self._tags
        now = 24 in tags or tags.get(_FLAGS, 0) & 0x8 or tags.get(_FLAGS_1, 0) & 0x1
        return (
            bool(tags)
            and not now
            and any(
                kind == _JUMP_SLOT.get(self.elf.machine)
                for _, kind, _ in self._relocations(".rela.plt", ".rel.plt")
            )
        )

    @cached_property
    def slots(self) -> Mapping[int, str]:
        """The functions that it calls by a pointer, by the address of that; x86-64."""
        symbols = self.elf.section(".dynsym")
        found: dict[int, str] = {}
        if self.elf.machine != "EM_X86_64" or symbols is None:
            return found
        with suppress(Damaged, IndexError, struct.error):
            rows = self.elf.content(symbols)
            texts = self.elf.content(self.elf.sections[symbols.link])
            for at, kind, number in self._relocations(".rela.plt", ".rela.dyn"):
                if kind in _POINTERS:
                    place = struct.unpack_from(self.elf.order + "I", rows, 24 * number)
                    found[at] = text_at(texts, place[0])
        return found

    def _relocations(self, *names: str) -> Iterator[tuple[int, int, int]]:
        """Yield the place of each, its kind and the number of its symbol."""
        wide = self.elf.word_bytes == 8
        for name in names:
            form = ("QQ" if wide else "II") + (
                "qi"[not wide] if name.startswith(".rela") else ""
            )
            kinds = 32 if wide else 8
            for at, info, *_ in _rows(self.elf.part(name), self.elf.order + form):
                yield at, info & ((1 << kinds) - 1), info >> kinds


def _rows(data: memoryview, form: str) -> Iterable[tuple[int, ...]]:
    whole = len(data) - len(data) % struct.calcsize(form)
    return struct.iter_unpack(form, data[:whole])


# --- symbols ------------------------------------------------------------------------

_Row = tuple[int, int, int, int, int]
"""Address, size, number of the section, whether it is global, place of the name."""


class _Part:
    """One table of symbols, with its names."""

    def __init__(self, elf: ElfFile, section: Section, texts: Section) -> None:
        self.texts = elf.content(texts)
        self.elf, self._section = elf, section

    def rows(self) -> list[_Row]:
        """Return its functions."""
        elf = self.elf
        content = elf.content(self._section)
        thumb = ~1 if elf.machine == "EM_ARM" else ~0
        if elf.word_bytes == 8:
            return [
                (value & thumb, size, where, info >> 4, name)
                for name, info, _, where, value, size in _rows(
                    content, elf.order + "IBBHQQ"
                )
                if info & 15 in _FUNCTIONS and value and where
            ]
        return [
            (value & thumb, size, where, info >> 4, name)
            for name, value, size, info, _, where in _rows(
                content, elf.order + "IIIBBH"
            )
            if info & 15 in _FUNCTIONS and value and where
        ]

    def named(self, name: str) -> Iterator[Symbol]:
        """Yield its functions of a name, without reading the other names."""
        wanted = name.encode() + b"\0"
        texts = bytes(self.texts)
        places, at = set(), texts.find(wanted)
        while at >= 0:
            places.add(at)
            at = texts.find(wanted, at + 1)
        if places:
            for value, size, _, bind, text in self.rows():
                if text in places:
                    yield Symbol(name, value, size, bind == 1)


def _parts(elf: ElfFile) -> Iterator[_Part]:
    for one in elf.sections:
        if one.type in _TABLES and one.link < len(elf.sections):
            yield _Part(elf, one, elf.sections[one.link])


class SymbolTable:
    """Functions by their addresses, of all tables of symbols of a file."""

    def __init__(self, elf: ElfFile) -> None:
        """Read them; Damaged if a table is cut."""
        self._parts = list(_parts(elf))
        mini = _mini_debug_file(elf)
        if mini is not None:
            self._parts += _parts(mini)
        rows = [
            (*row, number)
            for number, part in enumerate(self._parts)
            for row in part.rows()
        ]
        rows.sort()
        self._rows = rows
        self._vaddrs = [row[0] for row in rows]

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Yield begin and size of each function."""
        yield from ((row[0], row[1]) for row in self._rows)

    def every(self) -> Iterator[Symbol]:
        """Yield the function at each address where one begins."""
        for _, rows in groupby(self._rows, key=lambda row: row[0]):
            yield max(map(self._symbol, rows), key=_rank)

    def at(self, vaddr: int) -> Symbol | None:
        """Return the function that an address is in."""
        end = bisect_right(self._vaddrs, vaddr)
        for _ in range(_BEFORE):
            if not end:
                return None
            begin = bisect_right(self._vaddrs, self._vaddrs[end - 1] - 1, 0, end)
            here = [row for row in self._rows[begin:end] if self._holds(row, vaddr)]
            if here:
                return max(map(self._symbol, here[:64]), key=_rank)
            end = begin
        return None

    def _holds(self, row: tuple[int, ...], vaddr: int) -> bool:
        value, size, where = row[:3]
        if size:
            return vaddr < value + size
        sections = self._parts[row[-1]].elf.sections
        if vaddr >= value + _NO_SIZE or where >= len(sections):
            return False
        return vaddr < sections[where].address + sections[where].size

    def _symbol(self, row: tuple[int, ...]) -> Symbol:
        value, size, _, bind, text, number = row
        name = text_at(self._parts[number].texts, text)
        return Symbol(name.partition("@")[0], value, size, bind == 1)


def _rank(symbol: Symbol) -> tuple[bool, bool, bool, int]:
    """Of several names of one function the public one without underscores."""
    public = not symbol.name.startswith("_")
    return (symbol.size > 0, symbol.global_, public, -len(symbol.name))


def _mini_debug_file(elf: ElfFile) -> ElfFile | None:
    """Return the table of symbols that some distributions leave in, packed."""
    packed = elf.part(".gnu_debugdata")
    if not packed:
        return None
    try:
        unpacking = lzma.LZMADecompressor(memlimit=_MAX_MINI_BYTES)
        return ElfFile(unpacking.decompress(packed, _MAX_MINI_BYTES))
    except (lzma.LZMAError, Damaged, MemoryError):
        return None
