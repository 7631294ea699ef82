"""
Entries of DWARF 2 to 5: their kinds, forms and values, read within limits.

The text of a form says how to skip it: whole bytes, or what kind of size it has.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

from rtscope.programs.binaries.bytestream import Cursor
from rtscope.programs.binaries.elf import Damaged, ElfFile, text_at


class At(IntEnum):
    """Attributes that are read."""

    SIBLING = 0x01
    NAME = 0x03
    STMT_LIST = 0x10
    LOW_PC = 0x11
    HIGH_PC = 0x12
    COMP_DIR = 0x1B
    ABSTRACT_ORIGIN = 0x31
    SPECIFICATION = 0x47
    RANGES = 0x55
    CALL_FILE = 0x58
    CALL_LINE = 0x59
    LINKAGE_NAME = 0x6E
    STR_OFFSETS_BASE = 0x72
    ADDR_BASE = 0x73
    RNGLISTS_BASE = 0x74
    MIPS_LINKAGE_NAME = 0x2007


# How to skip what has no fixed size.
LEB, TEXT, BLOCK1, BLOCK2, BLOCK4, BLOCK, INDIRECT = range(-1, -8, -1)

_FIXED: Mapping[int, int] = {
    **{0x05: 2, 0x06: 4, 0x07: 8, 0x0B: 1, 0x0C: 1, 0x11: 1, 0x12: 2, 0x13: 4},
    **{0x14: 8, 0x19: 0, 0x1C: 4, 0x1E: 16, 0x20: 8, 0x21: 0, 0x24: 8},
    **{0x25: 1, 0x26: 2, 0x27: 3, 0x28: 4, 0x29: 1, 0x2A: 2, 0x2B: 3, 0x2C: 4},
}
_VARIABLE: Mapping[int, int] = {
    **{0x03: BLOCK2, 0x04: BLOCK4, 0x08: TEXT, 0x09: BLOCK, 0x0A: BLOCK1, 0x0D: LEB},
    **{0x0F: LEB, 0x15: LEB, 0x16: INDIRECT, 0x18: BLOCK, 0x1A: LEB, 0x1B: LEB},
    **{0x22: LEB, 0x23: LEB, 0x1F01: LEB, 0x1F02: LEB},
}
_OFFSETS = (0x0E, 0x17, 0x1D, 0x1F, 0x1F20, 0x1F21)
_ADDR, _REF_ADDR = 0x01, 0x10

_STRX = (0x1A, 0x25, 0x26, 0x27, 0x28, 0x1F02)
_ADDRX = (0x1B, 0x29, 0x2A, 0x2B, 0x2C, 0x1F01)
ADDRESSES = (_ADDR, *_ADDRX)
_REFS = (0x11, 0x12, 0x13, 0x14, 0x15)
RNGLISTX, IMPLICIT_CONST = 0x23, 0x21
_MAX_ATTRIBUTES = 256

Value = tuple[int, int]
"""The form of an attribute, and its number: for a text or block where it begins."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What entries of one kind have: a row of .debug_abbrev."""

    tag: int
    children: bool
    attributes: tuple[tuple[int, int, int], ...]
    """Name, form, and the value of a form that has it here."""
    steps: tuple[int, ...]
    """How to skip an entry: whole bytes, or one of the sizes above."""
    sibling: bool


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes that a unit decides."""

    version: int
    word_bytes: int
    offset_bytes: int

    def step(self, form: int) -> int:
        """Return how to skip a form; Damaged for an unknown one."""
        if form in _FIXED:
            return _FIXED[form]
        if form in _VARIABLE:
            return _VARIABLE[form]
        if form in _OFFSETS:
            return self.offset_bytes
        if form == _ADDR:
            return self.word_bytes
        if form == _REF_ADDR:
            return self.word_bytes if self.version <= 2 else self.offset_bytes
        raise Damaged(f"an attribute has the unknown form {form:#x}")


def kinds_at(data: memoryview, at: int, shape: Shape) -> Mapping[int, Kind]:
    """Return the kinds of a unit by their codes."""
    cursor = Cursor(data, at=at)
    kinds: dict[int, Kind] = {}
    while not cursor.ended and (code := cursor.unsigned()):
        tag, children = cursor.unsigned(), cursor.number(1)
        attributes: list[tuple[int, int, int]] = []
        while True:
            name, form = cursor.unsigned(), cursor.unsigned()
            constant = cursor.signed() if form == IMPLICIT_CONST else 0
            if not name and not form:
                break
            attributes.append((name, form, constant))
            if len(attributes) > _MAX_ATTRIBUTES:
                raise Damaged("an entry has too many attributes")
        kinds[code] = Kind(
            tag,
            bool(children),
            tuple(attributes),
            _steps([shape.step(form) for _, form, _ in attributes]),
            any(name == At.SIBLING for name, _, _ in attributes),
        )
    return kinds


def _steps(all_: list[int]) -> tuple[int, ...]:
    """Put neighbours of a fixed size together."""
    steps: list[int] = []
    for one in all_:
        if one >= 0 and steps and steps[-1] >= 0:
            steps[-1] += one
        else:
            steps.append(one)
    return tuple(steps)


def leb(data: bytes, at: int) -> tuple[int, int]:
    """Return a number in LEB128, and where it ends; IndexError at the end."""
    value = bits = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << bits
        if byte < 0x80:
            return value, at
        bits += 7
        if bits > 70:
            raise Damaged("a number does not end")


def skipped(data: bytes, at: int, step: int, shape: Shape) -> int:
    """Return where something ends that has no fixed size."""
    if step == LEB:
        while data[at] >= 0x80:
            at += 1
        return at + 1
    if step == TEXT:
        end = data.find(b"\0", at)
        if end < 0:
            raise Damaged("a text does not end")
        return end + 1
    if step == BLOCK:
        size, at = leb(data, at)
        return at + size
    if step == INDIRECT:
        form, at = leb(data, at)
        step = shape.step(form)
        if step == INDIRECT:
            raise Damaged("a form names itself")
        return at + step if step >= 0 else skipped(data, at, step, shape)
    width = {BLOCK1: 1, BLOCK2: 2, BLOCK4: 4}[step]
    return at + width + int.from_bytes(data[at : at + width], "little")


class Texts:
    """The sections that entries name others in: texts, addresses, ranges."""

    def __init__(self, elf: ElfFile) -> None:
        self._elf = elf
        self.order = elf.byte_order

    @cached_property
    def strings(self) -> memoryview:
        """`.debug_str`."""
        return self._elf.part(".debug_str")

    @cached_property
    def line_strings(self) -> memoryview:
        """`.debug_line_str`."""
        return self._elf.part(".debug_line_str")

    @cached_property
    def offsets(self) -> memoryview:
        """`.debug_str_offsets`."""
        return self._elf.part(".debug_str_offsets")

    @cached_property
    def addresses(self) -> memoryview:
        """`.debug_addr`."""
        return self._elf.part(".debug_addr")

    def number(self, data: memoryview, at: int, size: int) -> int:
        """Return a number of a section; Damaged beyond it."""
        if not 0 <= at <= len(data) - size:
            raise Damaged("an entry names what is not in its section")
        return int.from_bytes(data[at : at + size], self.order)


@dataclass(slots=True)
class Unit:
    """A unit of .debug_info."""

    offset: int
    """Of its header, in the section."""
    first: int
    """Of its first entry, from `offset` on."""
    data: bytes
    """From its header to its end."""
    shape: Shape
    kinds: Mapping[int, Kind]
    texts: Texts
    str_base: int = 0
    addr_base: int = 0
    rnglists_base: int = 0

    def kind_at(self, at: int) -> tuple[Kind | None, int]:
        """Return the kind of the entry there, None of an end, and where it goes on."""
        code = self.data[at]
        if code < 0x80:
            at += 1
        else:
            code, at = leb(self.data, at)
        if not code:
            return None, at
        kind = self.kinds.get(code)
        if kind is None:
            raise Damaged(f"an entry is of kind {code}, which is not declared")
        return kind, at

    def after(self, kind: Kind, at: int) -> int:
        """Return where an entry ends, without reading it."""
        for step in kind.steps:
            at = at + step if step >= 0 else skipped(self.data, at, step, self.shape)
        return at

    def values(self, kind: Kind, at: int) -> tuple[dict[int, Value], int]:
        """Return the attributes of an entry, and where it ends."""
        data, shape, order = self.data, self.shape, self.texts.order
        values: dict[int, Value] = {}
        for name, form, constant in kind.attributes:
            step = shape.step(form)
            while step == INDIRECT:
                form, at = leb(data, at)
                step = shape.step(form)
            if step >= 0:
                end = at + step
                number = int.from_bytes(data[at:end], order) if step else 1
                number = constant if form == IMPLICIT_CONST else number
                values[name] = form, number
                at = end
            elif step == LEB:
                number, at = leb(data, at)
                values[name] = form, number
            else:
                values[name] = form, at
                at = skipped(data, at, step, shape)
        if at > len(data):
            raise Damaged("an entry is cut short")
        return values, at

    def text(self, value: Value) -> str:
        """Return the text of an attribute; empty for another form."""
        form, number = value
        if form == 0x08:
            return text_at(memoryview(self.data), number)
        if form == 0x0E:
            return text_at(self.texts.strings, number)
        if form == 0x1F:
            return text_at(self.texts.line_strings, number)
        if form in _STRX:
            size = self.shape.offset_bytes
            at = self.str_base + number * size
            where = self.texts.number(self.texts.offsets, at, size)
            return text_at(self.texts.strings, where)
        return ""

    def address(self, value: Value) -> int:
        """Return the address of an attribute."""
        form, number = value
        if form not in _ADDRX:
            return number
        size = self.shape.word_bytes
        at = self.addr_base + number * size
        return self.texts.number(self.texts.addresses, at, size)

    def referred(self, value: Value) -> int | None:
        """Return where in the section the entry is that an attribute names."""
        form, number = value
        if form in _REFS:
            return self.offset + number
        return number if form == _REF_ADDR else None
