"""
Where the caller of a function is, from the table that compilers write for exceptions.

`.eh_frame`, or `.debug_frame` where there is none. Libraries without frame pointers
and without debug packages have it: exceptions go through them. Only the entries that
are asked for are read: linkers write an index of them.
"""

import struct
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

from rtscope.programs.binaries.bytestream import Cursor
from rtscope.programs.binaries.elf import Damaged, ElfFile
from rtscope.programs.binaries.expression import Expression

# --- rows ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Saved:
    """
    Where a register of the caller is.

    `kind` is `at` (in memory, at the frame's address and `value`), `is` (it is that
    sum), `in` (in the register `value`), `same`, `at_expression`, `is_expression`, or
    `undefined`: of the return address that says that there is no caller.
    """

    kind: str
    value: int = 0
    expression: Expression | None = None


@dataclass(frozen=True, slots=True)
class FrameRow:
    """How to find the caller from one place in a function."""

    cfa_register: int
    cfa_offset: int
    cfa_expression: Expression | None
    saved: Mapping[int, Saved]
    return_column: int
    is_signal: bool
    """The caller was interrupted there, and did not call."""


# --- entries ------------------------------------------------------------------------

_MAX_REMEMBERED = 64
_LINEAR_ENTRIES = 1 << 20


@dataclass(frozen=True, slots=True)
class _Common:
    """What the entries of several functions have in common."""

    code_factor: int
    data_factor: int
    return_column: int
    address_form: int
    augmented: bool
    is_signal: bool
    instructions: memoryview


@dataclass(frozen=True, slots=True)
class _Entry:
    """The entry of one function."""

    begin: int
    size: int
    common: _Common
    instructions: memoryview


@dataclass(slots=True)
class _State:
    """The rules while the instructions of an entry are executed."""

    register: int = -1
    offset: int = 0
    expression: Expression | None = None
    saved: dict[int, Saved] = field(default_factory=dict)

    def copy(self) -> "_State":
        return _State(self.register, self.offset, self.expression, dict(self.saved))


class FrameTable:
    """The table of one file, by addresses as they are in the file."""

    def __init__(self, elf: ElfFile) -> None:
        """Nothing is read but the index; what is damaged is as if it were not there."""
        self._elf = elf
        self._sections = [
            one
            for name in (".eh_frame", ".debug_frame")
            if (one := _Frames.of(elf, name)) is not None
        ]

    def row_at(self, vaddr: int) -> FrameRow | None:
        """Return how to find the caller from there; None if the table does not tell."""
        for section in self._sections:
            try:
                entry = section.entry_at(vaddr)
                if entry is not None:
                    return section.row(entry, vaddr)
            except (Damaged, KeyError, IndexError, OverflowError):
                continue
        return None


class _Frames:
    """One section of frames."""

    def __init__(self, elf: ElfFile, name: str, data: memoryview, vaddr: int) -> None:
        self._elf, self._data, self._vaddr = elf, data, vaddr
        self._eh = name == ".eh_frame"
        self._common: dict[int, _Common] = {}
        self._all: list[tuple[int, int, int]] | None = None
        self._index: memoryview | None = None
        self._index_vaddr = 0
        header = elf.section(".eh_frame_hdr") if self._eh else None
        if header is not None:
            self._read_index(elf.content(header), header.address)

    @classmethod
    def of(cls, elf: ElfFile, name: str) -> "_Frames | None":
        """Return the section of a name; None without it, or if it cannot be read."""
        try:
            section = elf.section(name)
            data = elf.part(name)
            vaddr = 0 if section is None else section.address
            return cls(elf, name, data, vaddr) if data else None
        except Damaged:
            return None

    def _cursor(self, at: int, end: int | None = None) -> Cursor:
        return Cursor(
            self._data,
            at=at,
            end=end,
            word_bytes=self._elf.word_bytes,
            order=self._elf.order,
        )

    # --- which entry ---

    def _read_index(self, index: memoryview, vaddr: int) -> None:
        """Take the linker's index: sorted pairs of 32 bits, relative to itself."""
        head = bytes(index[:4])
        # version 1, count of 4 bytes, pairs that are signed and relative to the index
        if len(index) >= 12 and head[0] == 1 and head[2] == 0x03 and head[3] == 0x3B:
            count = int.from_bytes(index[8:12], self._elf.byte_order)
            if 12 + 8 * count <= len(index):
                self._index, self._index_vaddr = index[12 : 12 + 8 * count], vaddr

    def entry_at(self, vaddr: int) -> _Entry | None:
        """Return the entry of the function that an address is in."""
        at = self._from_index(vaddr) if self._index else self._from_all(vaddr)
        if at is None:
            return None
        entry = self._entry(at)
        if entry is None or not entry.begin <= vaddr < entry.begin + entry.size:
            return None
        return entry

    def _from_index(self, vaddr: int) -> int | None:
        assert self._index is not None
        form = struct.Struct(self._elf.order + "ii")
        low, high = 0, len(self._index) // 8
        while low < high:
            middle = (low + high) // 2
            begin, _ = form.unpack_from(self._index, 8 * middle)
            if begin + self._index_vaddr <= vaddr:
                low = middle + 1
            else:
                high = middle
        if not low:
            return None
        _, entry = form.unpack_from(self._index, 8 * (low - 1))
        at = entry + self._index_vaddr - self._vaddr
        return at if 0 <= at < len(self._data) else None

    def _from_all(self, vaddr: int) -> int | None:
        if self._all is None:
            self._all = sorted(self._entries())
        number = bisect_right(self._all, (vaddr, 1 << 64, 0)) - 1
        return self._all[number][2] if number >= 0 else None

    def _entries(self) -> list[tuple[int, int, int]]:
        """Return begin, size and place of all entries: of a file without an index."""
        found: list[tuple[int, int, int]] = []
        at = 0
        try:
            while at + 4 <= len(self._data) and len(found) < _LINEAR_ENTRIES:
                entry = self._entry(at)
                if entry is not None and entry.size:
                    found.append((entry.begin, entry.size, at))
                at = self._next(at)
        except Damaged:
            pass
        return found

    def _next(self, at: int) -> int:
        cursor = self._cursor(at)
        size = cursor.number(4)
        if size == 0xFFFFFFFF:
            size = cursor.number(8)
        return cursor.at + size

    # --- one entry ---

    def _entry(self, at: int) -> _Entry | None:
        """Read the entry at an offset; None if there are common things instead."""
        cursor = self._cursor(at)
        cursor.end, wide = cursor.unit_end()
        if cursor.ended:
            return None
        here = cursor.at
        to = cursor.number(8 if wide else 4)
        none = 0 if self._eh else (1 << (64 if wide else 32)) - 1
        if to == none:
            return None
        common = self._common_at(here - to if self._eh else to)
        begin = self._pointer(cursor, common.address_form)
        size = self._pointer(cursor, common.address_form & 0x0F)
        if common.augmented:
            cursor.skip(cursor.unsigned())
        return _Entry(begin, size, common, cursor.rest())

    def _common_at(self, at: int) -> _Common:
        if at not in self._common:
            self._common[at] = self._read_common(at)
        return self._common[at]

    def _read_common(self, at: int) -> _Common:
        cursor = self._cursor(at)
        cursor.end, wide = cursor.unit_end()
        cursor.skip(8 if wide else 4)
        version = cursor.number(1)
        augmentation = cursor.text().encode()
        if version >= 4:
            cursor.skip(2)  # sizes of addresses and segments
        code_factor, data_factor = cursor.unsigned(), cursor.signed()
        column = cursor.number(1) if version == 1 else cursor.unsigned()
        form = 0
        if augmentation[:1] == b"z":
            end = cursor.unsigned() + cursor.at
            for letter in augmentation[1:]:
                if letter == ord("R"):
                    form = cursor.number(1)
                elif letter == ord("L"):
                    cursor.skip(1)
                elif letter == ord("P"):
                    self._pointer(cursor, cursor.number(1))
            cursor.at = end
        return _Common(
            code_factor,
            data_factor,
            column,
            form,
            augmentation[:1] == b"z",
            b"S" in augmentation,
            cursor.rest(),
        )

    def _pointer(self, cursor: Cursor, form: int) -> int:
        """Return an address in the form that the table names: DW_EH_PE_*."""
        here = cursor.at + self._vaddr
        kind = form & 0x0F
        if kind == 0x01:
            value = cursor.unsigned()
        elif kind == 0x09:
            value = cursor.signed()
        else:
            sizes = {0: self._elf.word_bytes, 2: 2, 3: 4, 4: 8}
            value = cursor.number(sizes[kind & 0x07], signed=bool(kind & 0x08))
        base = {0x00: 0, 0x10: here}.get(form & 0x70)
        if base is None:
            raise Damaged(f"an address has the unknown form {form:#x}")
        return value + base & (1 << 8 * self._elf.word_bytes) - 1

    # --- its instructions ---

    def row(self, entry: _Entry, vaddr: int) -> FrameRow | None:
        """Execute the instructions up to an address."""
        state = _State()
        run = _Run(self._elf, entry, state, vaddr)
        run.execute(entry.common.instructions, initial=None)
        if not entry.common.instructions and not entry.instructions:
            return None
        run.execute(entry.instructions, initial=run.state.copy())
        done = run.state
        return FrameRow(
            done.register,
            done.offset,
            done.expression,
            done.saved,
            entry.common.return_column,
            entry.common.is_signal,
        )


class _Run:
    """Executes instructions of DWARF 5, section 6.4.2, up to an address."""

    def __init__(self, elf: ElfFile, entry: _Entry, state: _State, vaddr: int) -> None:
        self.state = state
        self._elf, self._common, self._vaddr = elf, entry.common, vaddr
        self._at = entry.begin
        self._remembered: list[_State] = []

    def execute(self, instructions: memoryview, *, initial: _State | None) -> None:
        """Execute them; `initial` are the rules that an entry begins with."""
        elf = self._elf
        cursor = Cursor(instructions, word_bytes=elf.word_bytes, order=elf.order)
        while not cursor.ended:
            code = cursor.number(1)
            high, low = code & 0xC0, code & 0x3F
            if high == 0x40:
                self._at += low * self._common.code_factor
            elif high == 0x80:
                self._save(low, "at", cursor.unsigned())
            elif high == 0xC0:
                self._restore(low, initial)
            elif code in (0x01, 0x02, 0x03, 0x04, 0x1D):
                self._advance(code, cursor)
            else:
                self._other(code, cursor, initial)
            if self._at > self._vaddr:
                return

    def _advance(self, code: int, cursor: Cursor) -> None:
        if code == 0x01:
            self._at = cursor.address()
        else:
            size = {0x02: 1, 0x03: 2, 0x04: 4, 0x1D: 8}[code]
            self._at += cursor.number(size) * self._common.code_factor

    def _save(self, register: int, kind: str, value: int) -> None:
        self.state.saved[register] = Saved(kind, value * self._common.data_factor)

    def _restore(self, register: int, initial: _State | None) -> None:
        rule = None if initial is None else initial.saved.get(register)
        if rule is None:
            self.state.saved.pop(register, None)
        else:
            self.state.saved[register] = rule

    def _other(self, code: int, cursor: Cursor, initial: _State | None) -> None:
        state = self.state
        if code in (0x0C, 0x12):
            state.register, state.expression = cursor.unsigned(), None
            state.offset = self._offset(cursor, signed=code == 0x12)
        elif code == 0x0D:
            state.register, state.expression = cursor.unsigned(), None
        elif code in (0x0E, 0x13):
            state.offset = self._offset(cursor, signed=code == 0x13)
        elif code == 0x0F:
            state.expression = self._expression(cursor)
        elif code in (0x0A, 0x0B):
            self._remember(back=code == 0x0B)
        elif code == 0x2E:
            cursor.unsigned()  # of the size of arguments: not needed
        elif code not in (0x00, 0x2D):
            self._register_rule(code, cursor, initial)

    def _remember(self, *, back: bool) -> None:
        if not back:
            if len(self._remembered) >= _MAX_REMEMBERED:
                raise Damaged("a frame remembers too many rows")
            self._remembered.append(self.state.copy())
            return
        if not self._remembered:
            raise Damaged("a frame restores a row that it has not remembered")
        self.state = self._remembered.pop()

    def _register_rule(self, code: int, cursor: Cursor, initial: _State | None) -> None:
        register = cursor.unsigned()
        saved = self.state.saved
        if code in (0x05, 0x11, 0x14, 0x15):
            signed = code in (0x11, 0x15)
            value = cursor.signed() if signed else cursor.unsigned()
            self._save(register, "at" if code in (0x05, 0x11) else "is", value)
        elif code == 0x2F:
            self._save(register, "at", -cursor.unsigned())
        elif code == 0x06:
            self._restore(register, initial)
        elif code == 0x07:
            saved[register] = Saved("undefined")
        elif code == 0x08:
            saved[register] = Saved("same")
        elif code == 0x09:
            saved[register] = Saved("in", cursor.unsigned())
        elif code in (0x10, 0x16):
            kind = "at_expression" if code == 0x10 else "is_expression"
            saved[register] = Saved(kind, expression=self._expression(cursor))
        else:
            raise Damaged(f"a frame has the unknown instruction {code:#x}")

    def _offset(self, cursor: Cursor, *, signed: bool) -> int:
        if signed:
            return cursor.signed() * self._common.data_factor
        return cursor.unsigned()

    def _expression(self, cursor: Cursor) -> Expression:
        content = cursor.take(cursor.unsigned())
        return Expression(bytes(content), self._elf.word_bytes, self._elf.order)
