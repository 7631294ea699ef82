"""
Which function and line a place in a file is of, inlined ones included, from DWARF.

Only the unit that holds the place is read. Whatever is damaged or of an unknown form
gives no answer: the table of symbols still has one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.dwarf.ranges import BaseAddressEntry
from elftools.elf.elffile import ELFFile

MAX_BYTES = 256 << 20
"""Of .debug_info: reading more takes minutes."""
MAX_UNITS = 20_000

_DAMAGED = (ELFError, KeyError, ValueError, IndexError, AttributeError, TypeError)
_DAMAGED_TOO = (AssertionError, UnicodeDecodeError, RecursionError, OverflowError)


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """A function, its file and line; what is not known is empty or 0."""

    function: str
    file: str = ""
    line: int = 0


class DebugInfo:
    """The debug information of one file."""

    def __init__(self, elf: ELFFile) -> None:
        """Look whether it has any; it is read when it is asked."""
        section = elf.get_section_by_name(".debug_info")
        there = section is not None and section["sh_type"] != "SHT_NOBITS"
        self._elf = elf
        self.there = there and section["sh_size"] <= MAX_BYTES
        self._dwarf: Any = None

    def places_at(self, vaddr: int) -> tuple[SourcePlace, ...]:
        """Return the place, innermost inlined function first; empty if unknown."""
        if not self.there:
            return ()
        try:
            if self._dwarf is None:
                self._dwarf = self._elf.get_dwarf_info(
                    relocate_dwarf_sections=False, follow_links=False
                )
            unit = self._unit_at(vaddr)
            return () if unit is None else tuple(self._places(unit, vaddr))
        except (*_DAMAGED, *_DAMAGED_TOO):
            return ()

    def _unit_at(self, vaddr: int) -> Any:
        ranges = self._dwarf.get_aranges()
        if ranges is not None:
            offset = ranges.cu_offset_at_addr(vaddr)
            if offset is not None:
                return self._dwarf.get_CU_at(offset)
        for number, unit in enumerate(self._dwarf.iter_CUs()):
            if number > MAX_UNITS:
                return None
            if self._covers(unit.get_top_DIE(), vaddr):
                return unit
        return None

    def _places(self, unit: Any, vaddr: int) -> Iterator[SourcePlace]:
        chain = self._chain(unit.get_top_DIE(), vaddr)
        if not chain:
            return
        program = self._dwarf.line_program_for_CU(unit)
        file, line = _line_at(program, vaddr)
        for die in reversed(chain):
            yield SourcePlace(_name_of(die), file, line)
            if die.tag == "DW_TAG_inlined_subroutine":
                call = die.attributes
                file = _file_named(program, _value(call, "DW_AT_call_file"))
                line = _value(call, "DW_AT_call_line")

    def _chain(self, die: Any, vaddr: int) -> list[Any]:
        """Return the functions around a place, outermost first."""
        for child in die.iter_children():
            if child.tag in ("DW_TAG_subprogram", "DW_TAG_inlined_subroutine"):
                if self._covers(child, vaddr):
                    return [child, *self._chain(child, vaddr)]
            elif child.tag in ("DW_TAG_lexical_block", "DW_TAG_namespace") and (
                child.tag == "DW_TAG_namespace" or self._covers(child, vaddr)
            ):
                inner = self._chain(child, vaddr)
                if inner:
                    return inner
        return []

    def _covers(self, die: Any, vaddr: int) -> bool:
        attributes = die.attributes
        if "DW_AT_high_pc" in attributes and "DW_AT_low_pc" in attributes:
            low, high = attributes["DW_AT_low_pc"].value, attributes["DW_AT_high_pc"]
            end = high.value if high.form == "DW_FORM_addr" else low + high.value
            return bool(low <= vaddr < end)
        if "DW_AT_ranges" not in attributes:
            return False
        base = _value(die.cu.get_top_DIE().attributes, "DW_AT_low_pc")
        lists = self._dwarf.range_lists()
        for entry in lists.get_range_list_at_offset(
            attributes["DW_AT_ranges"].value, cu=die.cu
        ):
            if isinstance(entry, BaseAddressEntry):
                base = entry.base_address
                continue
            start = 0 if getattr(entry, "is_absolute", False) else base
            if start + entry.begin_offset <= vaddr < start + entry.end_offset:
                return True
        return False


def _value(attributes: Any, name: str) -> int:
    return attributes[name].value if name in attributes else 0


def _name_of(die: Any) -> str:
    """Return the linkage name if there is one: it has the whole name of C++."""
    name = ""
    for _ in range(8):
        for key in ("DW_AT_linkage_name", "DW_AT_MIPS_linkage_name"):
            if key in die.attributes:
                return _text(die.attributes[key].value)
        if not name and "DW_AT_name" in die.attributes:
            name = _text(die.attributes["DW_AT_name"].value)
        for key in ("DW_AT_abstract_origin", "DW_AT_specification"):
            if key in die.attributes:
                die = die.get_DIE_from_attribute(key)
                break
        else:
            break
    return name


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _line_at(program: Any, vaddr: int) -> tuple[str, int]:
    last = None
    for entry in program.get_entries() if program is not None else ():
        state = entry.state
        if state is None:
            continue
        if last is not None and last.address <= vaddr < state.address:
            return _file_named(program, last.file), last.line
        last = None if state.end_sequence else state
    return "", 0


def _file_named(program: Any, number: int) -> str:
    if program is None:
        return ""
    header = program.header
    first = 0 if header.version >= 5 else 1
    files = header.file_entry
    if not 0 <= number - first < len(files):
        return ""
    entry = files[number - first]
    directories = header.include_directory
    at = entry.dir_index - first
    name = _text(entry.name)
    if name.startswith("/") or not 0 <= at < len(directories):
        return name
    return f"{_text(directories[at])}/{name}"
