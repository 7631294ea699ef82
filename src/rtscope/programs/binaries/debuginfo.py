"""
Functions and lines of places in a file, from its debug information.

Only the units that hold the places are read, and of these only the functions around
them. What is damaged raises Damaged: the table of symbols still has an answer.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from rtscope.programs.binaries.bytestream import Cursor
from rtscope.programs.binaries.dwarfentries import (
    ADDRESSES,
    RNGLISTX,
    At,
    Kind,
    Shape,
    Texts,
    Unit,
    Value,
    kinds_at,
)
from rtscope.programs.binaries.elf import Damaged, ElfFile
from rtscope.programs.binaries.linetable import Lines, lines_at

_SUBPROGRAM, _INLINED = 0x2E, 0x1D
_FUNCTIONS = (_SUBPROGRAM, _INLINED)
_TYPES = (0x01, 0x02, 0x04, 0x13, 0x15, 0x17)
"""Kinds without code: what they contain is not read."""
_TYPE_UNITS = (0x02, 0x06)
_SKELETON = 0x04
_CUT = "an entry is cut short"
_HOPS = 8
"""From an entry to the one that has its name."""
_MAX_DEPTH = 4096
_MAX_RANGES = 1 << 16

_OUTSIDE, _SKIPPED = -1, -2
"""Instead of the number of a function: in none, and in one of no interest."""


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """A function, its file and line; what is not known is empty or 0."""

    function: str
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class _Function:
    """An entry with code around a place that was asked for."""

    at: int
    inlined: bool
    parent: int
    ranges: tuple[tuple[int, int], ...]

    def covers(self, vaddr: int) -> bool:
        return any(low <= vaddr < high for low, high in self.ranges)

    @property
    def size(self) -> int:
        return sum(high - low for low, high in self.ranges)


class DebugInfo:
    """The debug information of one file."""

    def __init__(self, elf: ElfFile) -> None:
        """Nothing is read yet."""
        self._elf = elf
        self._texts = Texts(elf)
        self._units: dict[int, Unit] = {}
        self._names: dict[int, str] = {}
        self.damage = ""
        """Why a unit could not be read; empty if none was damaged."""

    @cached_property
    def _info(self) -> memoryview:
        return self._elf.part(".debug_info")

    @property
    def there(self) -> bool:
        """Whether it has any."""
        elf = self._elf
        return any(elf.section(one) for one in (".debug_info", ".zdebug_info"))

    def places(self, wanted: Iterable[int]) -> dict[int, tuple[SourcePlace, ...]]:
        """
        Return the functions at each address that is known, innermost inlined one first.

        A unit that is damaged has none: see `damage`. Raises Damaged if all are.
        """
        if not self.there:
            return {}
        by_unit: dict[int, list[int]] = {}
        for vaddr, unit in self._units_of(sorted(set(wanted))):
            by_unit.setdefault(unit, []).append(vaddr)
        found: dict[int, tuple[SourcePlace, ...]] = {}
        for at, places in by_unit.items():
            try:
                found.update(_Search(self, self.unit_at(at), places).found())
            except (Damaged, IndexError, OverflowError) as error:
                self.damage = str(error) if isinstance(error, Damaged) else _CUT
        return found

    # --- which unit ---

    def _units_of(self, wanted: Sequence[int]) -> Iterator[tuple[int, int]]:
        for vaddr in wanted:
            unit = _in(self._by_index, vaddr)
            if unit is None:
                unit = _in(self._by_units, vaddr)
            if unit is not None:
                yield vaddr, unit

    @cached_property
    def _by_index(self) -> "_Index":
        """Addresses of units, from .debug_aranges."""
        try:
            return _Index(_indexed(self._elf.part(".debug_aranges"), self._elf))
        except Damaged:
            return _Index(())

    @cached_property
    def _by_units(self) -> "_Index":
        """Addresses of units, from their first entries: not all write an index."""
        return _Index(self._of_units())

    def _of_units(self) -> Iterator[tuple[int, int, int]]:
        for at in self._offsets:
            try:
                unit = self.unit_at(at)
                values = self._top(unit)
                ranges = self.ranges(unit, values)
            except (Damaged, IndexError):
                continue
            yield from ((low, high, at) for low, high in ranges)

    @cached_property
    def _offsets(self) -> Sequence[int]:
        """Where units begin."""
        offsets: list[int] = []
        at = 0
        while at + 11 <= len(self._info):
            cursor = Cursor(self._info, at=at, order=self._elf.order)
            offsets.append(at)
            try:
                at, _ = cursor.unit_end()
            except Damaged:
                break
        return offsets

    def unit_at(self, at: int) -> Unit:
        """Return the unit whose header is there."""
        if at not in self._units:
            self._units[at] = self._read_unit(at)
        return self._units[at]

    def _read_unit(self, at: int) -> Unit:
        cursor = Cursor(self._info, at=at, order=self._elf.order)
        end, wide = cursor.unit_end()
        offset_bytes = 8 if wide else 4
        version = cursor.number(2)
        if not 2 <= version <= 5:
            raise Damaged(f"a unit is of version {version}")
        kind = cursor.number(1) if version >= 5 else 1
        word_bytes = cursor.number(1) if version >= 5 else 0
        kinds = cursor.number(offset_bytes)
        word_bytes = word_bytes or cursor.number(1)
        if word_bytes not in (4, 8):
            raise Damaged(f"a unit has addresses of {word_bytes} bytes")
        if kind in _TYPE_UNITS:
            cursor.skip(8 + offset_bytes)
        elif kind in (_SKELETON, 0x05):
            cursor.skip(8)
        shape = Shape(version, word_bytes, offset_bytes)
        unit = Unit(
            at,
            cursor.at - at,
            bytes(self._info[at:end]),
            shape,
            self._kinds(kinds, shape),
            self._texts,
        )
        top = self._top(unit)
        unit.str_base = top.get(At.STR_OFFSETS_BASE, (0, 0))[1]
        unit.addr_base = top.get(At.ADDR_BASE, (0, 0))[1]
        unit.rnglists_base = top.get(At.RNGLISTS_BASE, (0, 0))[1]
        return unit

    def _kinds(self, at: int, shape: Shape) -> dict[int, Kind]:
        known = self._known_kinds
        if (at, shape) not in known:
            known[at, shape] = dict(kinds_at(self._abbreviations, at, shape))
        return known[at, shape]

    @cached_property
    def _abbreviations(self) -> memoryview:
        return self._elf.part(".debug_abbrev")

    @cached_property
    def _known_kinds(self) -> dict[tuple[int, Shape], dict[int, Kind]]:
        return {}

    def _top(self, unit: Unit) -> dict[int, Value]:
        kind, at = unit.kind_at(unit.first)
        return {} if kind is None else unit.values(kind, at)[0]

    # --- what an entry says ---

    def ranges(
        self, unit: Unit, values: dict[int, Value]
    ) -> tuple[tuple[int, int], ...]:
        """Return from where to where the code of an entry goes."""
        if At.LOW_PC in values and At.HIGH_PC in values:
            low = unit.address(values[At.LOW_PC])
            form, number = values[At.HIGH_PC]
            relative = form not in ADDRESSES
            high = low + number if relative else unit.address((form, number))
            return ((low, high),) if low < high else ()
        if At.RANGES not in values:
            return ()
        low_pc = self._top(unit).get(At.LOW_PC)
        base = 0 if low_pc is None else unit.address(low_pc)
        lists = _new_ranges if unit.shape.version >= 5 else _old_ranges
        return tuple(lists(self._elf, unit, values[At.RANGES], base))

    def name_of(self, unit: Unit, at: int) -> str:
        """Return the linkage name if there is one: it has the whole name of C++."""
        begin = unit.offset + at
        if begin not in self._names:
            self._names[begin] = self._read_name(unit, at)
        return self._names[begin]

    def _read_name(self, unit: Unit, at: int) -> str:
        name = ""
        for _ in range(_HOPS):
            kind, begin = unit.kind_at(at)
            if kind is None:
                break
            values, _ = unit.values(kind, begin)
            for linkage in (At.LINKAGE_NAME, At.MIPS_LINKAGE_NAME):
                if linkage in values:
                    return unit.text(values[linkage])
            if not name and At.NAME in values:
                name = unit.text(values[At.NAME])
            link = values.get(At.ABSTRACT_ORIGIN) or values.get(At.SPECIFICATION)
            place = None if link is None else unit.referred(link)
            if place is None:
                break
            if not unit.offset <= place < unit.offset + len(unit.data):
                number = bisect_right(self._offsets, place) - 1
                if number < 0:
                    break
                unit = self.unit_at(self._offsets[number])
            at = place - unit.offset
        return name

    def lines(self, unit: Unit, wanted: Sequence[int]) -> Lines | None:
        """Return the lines of addresses in a unit; None if it has none."""
        top = self._top(unit)
        if At.STMT_LIST not in top:
            return None
        directory = top.get(At.COMP_DIR)
        return lines_at(
            self._line_programs,
            top[At.STMT_LIST][1],
            wanted,
            texts=self._texts,
            directory="" if directory is None else unit.text(directory),
            word_bytes=unit.shape.word_bytes,
            order=self._elf.order,
        )

    @cached_property
    def _line_programs(self) -> memoryview:
        return self._elf.part(".debug_line")


class _Search:
    """The functions around some addresses of one unit."""

    def __init__(self, info: DebugInfo, unit: Unit, wanted: Sequence[int]) -> None:
        self._info, self._unit, self._wanted = info, unit, wanted
        self._functions: list[_Function] = []
        self._thorough = False

    def found(self) -> dict[int, tuple[SourcePlace, ...]]:
        """Return the functions at each address, innermost first."""
        try:
            self._walk()
            if not all(map(self._chain, self._wanted)):
                # functions inside of others have code outside of these
                self._functions, self._thorough = [], True
                self._walk()
        except IndexError as error:
            raise Damaged(_CUT) from error
        try:
            lines = self._info.lines(self._unit, self._wanted)
        except Damaged as error:
            self._info.damage = str(error)
            lines = None
        return {
            vaddr: places
            for vaddr in self._wanted
            if (places := tuple(self._places(vaddr, lines)))
        }

    def _places(self, vaddr: int, lines: Lines | None) -> Iterator[SourcePlace]:
        file, line = ("", 0) if lines is None else lines.at(vaddr)
        chain = self._chain(vaddr)
        if not chain and line:
            yield SourcePlace("", file, line)  # its name is a symbol's
        for one in reversed(chain):
            yield SourcePlace(self._info.name_of(self._unit, one.at), file, line)
            if one.inlined:
                kind, begin = self._unit.kind_at(one.at)
                assert kind is not None
                values, _ = self._unit.values(kind, begin)
                number = values.get(At.CALL_FILE, (0, 0))[1]
                file = "" if lines is None else lines.file(number)
                line = values.get(At.CALL_LINE, (0, 0))[1]

    def _chain(self, vaddr: int) -> list[_Function]:
        """Return the functions around a place, outermost first."""
        around: dict[int, list[int]] = {}
        for number, one in enumerate(self._functions):
            if one.covers(vaddr):
                around.setdefault(one.parent, []).append(number)
        chain: list[_Function] = []
        at = _OUTSIDE
        while at in around:
            at = min(around[at], key=lambda number: self._functions[number].size)
            chain.append(self._functions[at])
        return chain

    def _walk(self) -> None:
        """Read the entries of the unit, but skip those without these addresses."""
        unit = self._unit
        at, end = unit.first, len(unit.data)
        within = _OUTSIDE
        parents: list[int] = []
        while at < end:
            begin = at
            kind, at = unit.kind_at(at)
            if kind is None:
                if not parents:
                    return
                within = parents.pop()
                continue
            inside: int | None = within
            if kind.sibling or (kind.tag in _FUNCTIONS and within != _SKIPPED):
                at, inside = self._entry(kind, begin, at, within)
            else:
                at = unit.after(kind, at)
            if kind.children and inside is not None:
                parents.append(within)
                within = inside
                if len(parents) > _MAX_DEPTH:
                    raise Damaged("entries are nested too deep")

    def _entry(
        self, kind: Kind, begin: int, at: int, within: int
    ) -> tuple[int, int | None]:
        """Read an entry; return where to go on, and what its children are in."""
        unit = self._unit
        values, at = unit.values(kind, at)
        inside = within
        if kind.tag in _FUNCTIONS and within != _SKIPPED:
            inside = self._function(kind, begin, values, within)
        if At.SIBLING in values and (inside == _SKIPPED or kind.tag in _TYPES):
            sibling = unit.referred(values[At.SIBLING])
            if sibling is not None and at < sibling - unit.offset <= len(unit.data):
                return sibling - unit.offset, None
        return at, inside

    def _function(
        self, kind: Kind, begin: int, values: dict[int, Value], within: int
    ) -> int:
        ranges = self._info.ranges(self._unit, values)
        wanted = self._wanted
        for low, high in ranges:
            at = bisect_left(wanted, low)
            if at < len(wanted) and wanted[at] < high:
                break
        else:
            return within if self._thorough else _SKIPPED
        inlined = kind.tag == _INLINED
        parent = within if inlined else _OUTSIDE
        self._functions.append(_Function(begin, inlined, parent, ranges))
        return len(self._functions) - 1


# --- ranges of addresses ------------------------------------------------------------


class _Index:
    """Ranges of addresses, each of a unit."""

    def __init__(self, rows: Iterable[tuple[int, int, int]]) -> None:
        self.rows = sorted(rows)
        self.begins = [row[0] for row in self.rows]


def _in(index: _Index, vaddr: int) -> int | None:
    number = bisect_right(index.begins, vaddr)
    for low, high, unit in reversed(index.rows[max(0, number - 8) : number]):
        if low <= vaddr < high:
            return unit
    return None


def _indexed(data: memoryview, elf: ElfFile) -> Iterator[tuple[int, int, int]]:
    at = 0
    while at + 12 <= len(data):
        cursor = Cursor(data, at=at, order=elf.order)
        cursor.end, wide = cursor.unit_end()
        cursor.skip(2)
        unit = cursor.number(8 if wide else 4)
        size = cursor.number(1)
        cursor.skip(1)
        if size not in (4, 8):
            raise Damaged(f"its index has addresses of {size} bytes")
        cursor.at += -(cursor.at - at) % (2 * size)
        at = cursor.end
        while cursor.at + 2 * size <= cursor.end:
            low, length = cursor.number(size), cursor.number(size)
            if length:
                yield low, low + length, unit


def _old_ranges(
    elf: ElfFile, unit: Unit, value: Value, base: int
) -> Iterator[tuple[int, int]]:
    size = unit.shape.word_bytes
    last = (1 << 8 * size) - 1
    data = elf.part(".debug_ranges")
    cursor = Cursor(data, at=value[1], order=elf.order)
    for _ in range(_MAX_RANGES):
        low, high = cursor.number(size), cursor.number(size)
        if low == last:
            base = high
        elif not low and not high:
            return
        elif low < high:
            yield base + low, base + high
    raise Damaged("a function has too many pieces")


def _new_ranges(
    elf: ElfFile, unit: Unit, value: Value, base: int
) -> Iterator[tuple[int, int]]:
    form, at = value
    data = elf.part(".debug_rnglists")
    if form == RNGLISTX:
        size = unit.shape.offset_bytes
        begin = unit.rnglists_base
        at = begin + unit.texts.number(data, begin + at * size, size)
    cursor = Cursor(data, at=at, word_bytes=unit.shape.word_bytes, order=elf.order)
    for _ in range(_MAX_RANGES):
        kind = cursor.number(1)
        if kind == 0:
            return
        if kind == 5:
            base = cursor.address()
        elif kind == 1:
            base = unit.address((0x1B, cursor.unsigned()))
        else:
            low, high = _new_range(cursor, unit, kind, base)
            if low < high:
                yield low, high
    raise Damaged("a function has too many pieces")


def _new_range(cursor: Cursor, unit: Unit, kind: int, base: int) -> tuple[int, int]:
    if kind == 4:
        low, high = cursor.unsigned(), cursor.unsigned()
        return base + low, base + high
    if kind in (2, 3):
        low = unit.address((0x1B, cursor.unsigned()))
        number = cursor.unsigned()
        return low, unit.address((0x1B, number)) if kind == 2 else low + number
    if kind == 6:
        return cursor.address(), cursor.address()
    if kind == 7:
        low = cursor.address()
        return low, low + cursor.unsigned()
    raise Damaged(f"a list of pieces has the unknown kind {kind}")
