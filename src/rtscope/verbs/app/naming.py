"""
The functions of a stack, by name: of the file's symbols, or of its debug information.

Where a debug package is installed its file is found by the number of the build.
"""

import ctypes
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.dwarf.ranges import BaseAddressEntry
from elftools.elf.elffile import ELFFile

from rtscope.verbs.app.image import Image
from rtscope.verbs.app.unwind import Frame, Stack

DebugFile = Callable[[str], Image | None]
"""Gives the debug file of a build by its number; None if none is installed."""


@dataclass(frozen=True, slots=True)
class NamedFrame:
    """A function on a stack; an empty name is unknown, line 0 too."""

    function: str
    file: str
    line: int
    image: str
    """The name of the file that its code is in."""
    address: int
    inlined: bool


@dataclass(frozen=True, slots=True)
class NamedStack:
    """A stack for people: innermost first; why it ends early, None if complete."""

    frames: tuple[NamedFrame, ...]
    ends_early: str | None

    @property
    def complete(self) -> bool:
        """Whether it goes to where the thread began."""
        return self.ends_early is None


class Namer:
    """Names the frames of one process; each file is read once."""

    def __init__(self, debug_file: DebugFile) -> None:
        """Debug files come from `debug_file`."""
        self._debug_file = debug_file
        self._debug: dict[int, tuple[Image, ...]] = {}
        self._info: dict[int, DebugInfo] = {}
        self._known: dict[tuple[int, int], tuple[NamedFrame, ...]] = {}

    def named(self, stack: Stack) -> NamedStack:
        """Return the stack with names."""
        frames = [one for frame in stack.frames for one in self._frames(frame)]
        return NamedStack(tuple(frames), stack.ends_early)

    def _frames(self, frame: Frame) -> Iterable[NamedFrame]:
        image, place = frame.image, frame.place
        if image is None or place is None:
            path = "" if frame.mapping is None else frame.mapping.path
            return [NamedFrame("", "", 0, path, frame.address, inlined=False)]
        key = (id(image), place)
        if key not in self._known:
            self._known[key] = tuple(self._named(image, place, frame.address))
        return self._known[key]

    def _named(self, image: Image, place: int, address: int) -> Iterator[NamedFrame]:
        name = PurePosixPath(image.name).name
        for source in self._sources(image):
            info = self._info.setdefault(id(source), DebugInfo(source.elf))
            places = info.places_at(place)
            for number, one in enumerate(places):
                inlined = number < len(places) - 1
                function = demangled(one.function)
                yield NamedFrame(function, one.file, one.line, name, address, inlined)
            if places:
                return
        for source in self._sources(image):
            symbol = source.symbol_at(place)
            if symbol is not None:
                yield NamedFrame(demangled(symbol.name), "", 0, name, address, False)
                return
        yield NamedFrame("", "", 0, name, address, inlined=False)

    def _sources(self, image: Image) -> tuple[Image, ...]:
        """Return the debug file, if there is one, before the file itself."""
        if id(image) not in self._debug:
            debug_file = self._debug_file(image.build_id) if image.build_id else None
            self._debug[id(image)] = (
                (image,) if debug_file is None else (debug_file, image)
            )
        return self._debug[id(image)]


@cache
def demangled(name: str) -> str:
    """Return the name as it is in the source of C++ or Rust; others as they are."""
    if not name.startswith("_Z"):
        return name
    demangle = _demangler()
    text = demangle(name.encode()) if demangle else None
    if text is None:
        return name
    return _as_in_rust(text) if _RUST_HASH.search(text) else text


_RUST_HASH = re.compile(r"::h[0-9a-f]{16}$")
_RUST_WORDS = {"LT": "<", "GT": ">", "C": ",", "RF": "&", "BP": "*", "SP": "@"}
_RUST_WORDS |= {"LP": "(", "RP": ")"}
_RUST_ESCAPE = re.compile(r"\$(?:u([0-9a-f]{1,6})|([A-Z]{1,2}))\$")


def _as_in_rust(text: str) -> str:
    """Undo what Rust's older names have beyond those of C++: escapes, and a hash."""
    text = re.sub(r"(^|::)_\$", r"\1$", _RUST_HASH.sub("", text))
    text = _RUST_ESCAPE.sub(
        lambda m: chr(int(m[1], 16)) if m[1] else _RUST_WORDS.get(m[2], m[0]), text
    )
    return text.replace("..", "::")


@cache
def _demangler() -> Callable[[bytes], str | None] | None:
    """Return that of the C++ library, if there is one: it knows all names."""
    try:
        library = ctypes.CDLL("libstdc++.so.6")
        function = library.__cxa_demangle
        free = ctypes.CDLL(None).free
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, *[ctypes.c_void_p] * 3]
    free.argtypes = [ctypes.c_void_p]

    def demangle(name: bytes) -> str | None:
        demangled = function(name, None, None, None)
        if not demangled:
            return None
        text = ctypes.string_at(demangled).decode("utf-8", "replace")
        free(demangled)
        return text

    return demangle


# --- functions and lines of a place, from DWARF -------------------------------------

# Only the unit that holds the place is read. Whatever is damaged or of an unknown form
# gives no answer: the table of symbols still has one.

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
