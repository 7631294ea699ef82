"""An ELF file that is in the memory of a process: its segments, symbols and frames."""

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import NoteSection, SymbolTableSection

from rtscope.host.errors import TargetError
from rtscope.verbs.app.frametable import FrameTable

_JUMP_SLOT = {"EM_X86_64": 7, "EM_AARCH64": 1026, "EM_ARM": 22, "EM_RISCV": 5}
"""Relocations that wait for the first call of a function."""

_NO_SIZE = 4096
"""How far a symbol without a size goes, at most: those of assembler have none."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A function: its name, and where it is in the file's own addresses."""

    name: str
    vaddr: int
    size: int
    global_: bool


class Image:
    """One file. What it lacks is empty, not an error."""

    def __init__(self, data: bytes, name: str) -> None:
        """Read its headers; TargetError if it is no ELF file."""
        self.name = name
        try:
            self.elf = ELFFile(BytesIO(data))
            self._loads = [
                (s["p_offset"], s["p_filesz"], s["p_vaddr"])
                for s in self.elf.iter_segments("PT_LOAD")
            ]
        except (ELFError, ValueError) as error:
            raise TargetError(f"{name}: not an ELF file ({error})") from error

    def vaddr_of(self, offset: int) -> int | None:
        """Return the file's own address of what is at an offset in it."""
        for begin, size, vaddr in self._loads:
            if begin <= offset < begin + size:
                return int(offset - begin + vaddr)
        # the last page of a segment shows what follows it in the file
        for begin, size, vaddr in self._loads:
            if begin & ~0xFFF <= offset < (begin + size + 0xFFF) & ~0xFFF:
                return int(offset - begin + vaddr)
        return None

    def offset_of(self, vaddr: int) -> int | None:
        """Return where in the file something with this address of its own is."""
        for begin, size, start in self._loads:
            if start <= vaddr < start + size:
                return int(vaddr - start + begin)
        return None

    @cached_property
    def frames(self) -> FrameTable:
        """The table of frames."""
        return FrameTable(self.elf)

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        """Functions by their addresses, of both tables of symbols."""
        symbols: dict[int, Symbol] = {}
        for section in self.elf.iter_sections():
            if not isinstance(section, SymbolTableSection):
                continue
            for one in section.iter_symbols():
                if one["st_info"]["type"] not in ("STT_FUNC", "STT_GNU_IFUNC"):
                    continue
                if not one["st_value"] or one["st_shndx"] == "SHN_UNDEF":
                    continue
                symbol = _symbol(one, self.elf)
                known = symbols.get(symbol.vaddr)
                if known is None or _rank(symbol) > _rank(known):
                    symbols[symbol.vaddr] = symbol
        return tuple(symbols[vaddr] for vaddr in sorted(symbols))

    @cached_property
    def _vaddrs(self) -> list[int]:
        return [symbol.vaddr for symbol in self.symbols]

    def symbol_at(self, vaddr: int) -> Symbol | None:
        """Return the function that an address of the file is in."""
        at = bisect_right(self._vaddrs, vaddr) - 1
        if at < 0:
            return None
        symbol = self.symbols[at]
        inside = vaddr < symbol.vaddr + (symbol.size or _NO_SIZE)
        return symbol if inside else None

    def functions_named(self, name: str) -> list[Symbol]:
        """Return the functions of this name, whatever their version."""
        return [
            symbol
            for section in self.elf.iter_sections()
            if isinstance(section, SymbolTableSection)
            for one in section.get_symbol_by_name(name) or ()
            if one["st_info"]["type"] == "STT_FUNC" and one["st_value"]
            for symbol in [_symbol(one, self.elf)]
        ]

    @cached_property
    def build_id(self) -> str | None:
        """The number of its build, in hexadecimal."""
        for section in self.elf.iter_sections():
            if isinstance(section, NoteSection):
                for note in section.iter_notes():
                    if note["n_type"] == "NT_GNU_BUILD_ID":
                        return str(note["n_desc"])
        return None

    @cached_property
    def lazy(self) -> bool:
        """Whether functions of others are looked up when they are first called."""
        section = self.elf.get_section_by_name(".dynamic")
        if not isinstance(section, DynamicSection):
            return False
        tags: dict[str, Any] = {
            tag.entry.d_tag: tag.entry.d_val for tag in section.iter_tags()
        }
        now = (
            "DT_BIND_NOW" in tags
            or tags.get("DT_FLAGS", 0) & 0x8
            or tags.get("DT_FLAGS_1", 0) & 0x1
        )
        return not now and any(
            one["r_info_type"] == _JUMP_SLOT.get(self.elf["e_machine"])
            for part in (".rela.plt", ".rel.plt")
            if isinstance(
                relocations := self.elf.get_section_by_name(part), RelocationSection
            )
            for one in relocations.iter_relocations()
        )


def _symbol(one: Any, elf: ELFFile) -> Symbol:
    thumb = elf["e_machine"] == "EM_ARM"
    return Symbol(
        name=re.sub("@.*", "", one.name),
        vaddr=one["st_value"] & ~1 if thumb else one["st_value"],
        size=one["st_size"],
        global_=one["st_info"]["bind"] == "STB_GLOBAL",
    )


def _rank(symbol: Symbol) -> tuple[bool, bool, int]:
    """Of several names of one function the public one without underscores."""
    return (symbol.global_, not symbol.name.startswith("_"), -len(symbol.name))
