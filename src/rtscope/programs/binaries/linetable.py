"""The lines of a unit, from its program: of DWARF 2 to 5."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from rtscope.programs.binaries.bytestream import Cursor
from rtscope.programs.binaries.dwarfentries import Shape, Texts
from rtscope.programs.binaries.elf import Damaged, text_at

_MAX_FILES = 1 << 17
_PATH, _DIRECTORY = 1, 2
_WORD = (1 << 64) - 1


@dataclass(slots=True)
class _Program:
    """A program, and the files that it names."""

    version: int
    cursor: Cursor
    step: int
    line_base: int
    line_range: int
    lengths: Sequence[int]
    directories: list[str] = field(default_factory=list)
    files: list[tuple[str, int]] = field(default_factory=list)

    def file(self, number: int, directory: str) -> str:
        """Return the path of a file; empty if the program does not name it."""
        first = 0 if self.version >= 5 else 1
        if not 0 <= number - first < len(self.files):
            return ""
        name, within = self.files[number - first]
        at = within - first
        folder = self.directories[at] if 0 <= at < len(self.directories) else ""
        if self.version >= 5 and not at and folder:
            directory = ""  # the first one is that of the compilation
        return str(PurePosixPath(directory, folder, name))


@dataclass(frozen=True, slots=True)
class Lines:
    """File number and line of the addresses that were asked for."""

    places: Mapping[int, tuple[int, int]]
    program: _Program
    directory: str

    def at(self, vaddr: int) -> tuple[str, int]:
        """Return file and line of an address; an empty name, and 0, if unknown."""
        number, line = self.places.get(vaddr, (-1, 0))
        return (self.file(number), line) if number >= 0 else ("", 0)

    def file(self, number: int) -> str:
        """Return the path of a file by its number."""
        return self.program.file(number, self.directory)


def lines_at(
    data: memoryview,
    at: int,
    wanted: Sequence[int],
    *,
    texts: Texts,
    directory: str,
    word_bytes: int,
    order: str,
) -> Lines:
    """
    Execute the program at an offset of .debug_line, for sorted addresses.

    Raises Damaged.
    """
    cursor = Cursor(data, at=at, word_bytes=word_bytes, order=order)
    program = _read_header(cursor, texts, word_bytes)
    return Lines(_executed(program, wanted), program, directory)


def _read_header(cursor: Cursor, texts: Texts, word_bytes: int) -> _Program:
    cursor.end, wide = cursor.unit_end()
    version = cursor.number(2)
    if not 2 <= version <= 5:
        raise Damaged(f"its lines are of version {version}")
    if version >= 5:
        cursor.skip(2)
    offset_bytes = 8 if wide else 4
    size = cursor.number(offset_bytes)
    begin = cursor.at + size
    step = cursor.number(1)
    if version >= 4:
        cursor.skip(1)  # operations of an instruction: of processors that Linux lost
    cursor.skip(1)  # whether rows are statements
    line_base, line_range = cursor.number(1, signed=True), cursor.number(1)
    count = cursor.number(1)
    lengths = [0, *cursor.take(max(count - 1, 0))]
    program = _Program(version, cursor, step, line_base, line_range, lengths)
    if version >= 5:
        shape = Shape(5, word_bytes, offset_bytes)
        rows = _table(cursor, texts, shape)
        program.directories = [name for name, _ in rows]
        program.files = _table(cursor, texts, shape)
    else:
        _read_old_names(cursor, program)
    cursor.at = begin
    return program


def _read_old_names(cursor: Cursor, program: _Program) -> None:
    while name := cursor.text():
        program.directories.append(name)
    while name := cursor.text():
        program.files.append((name, cursor.unsigned()))
        cursor.unsigned()
        cursor.unsigned()


def _table(cursor: Cursor, texts: Texts, shape: Shape) -> list[tuple[str, int]]:
    """Return names and directories of a table of version 5."""
    forms = [(cursor.unsigned(), cursor.unsigned()) for _ in range(cursor.number(1))]
    count = cursor.unsigned()
    if count > _MAX_FILES or (count and not forms):
        raise Damaged(f"its lines name {count:,} files")
    rows: list[tuple[str, int]] = []
    for _ in range(count):
        name, directory = "", 0
        for content, form in forms:
            text, number = _value(cursor, form, texts, shape)
            if content == _PATH:
                name = text
            elif content == _DIRECTORY:
                directory = number
        rows.append((name, directory))
    return rows


def _value(cursor: Cursor, form: int, texts: Texts, shape: Shape) -> tuple[str, int]:
    if form == 0x08:
        return cursor.text(), 0
    if form in (0x0E, 0x1F):
        at = cursor.number(shape.offset_bytes)
        return text_at(texts.strings if form == 0x0E else texts.line_strings, at), 0
    if form == 0x0F:
        return "", cursor.unsigned()
    step = shape.step(form)
    if step == 16:
        cursor.skip(16)
        return "", 0
    if step in (1, 2, 4, 8):
        return "", cursor.number(step)
    if form == 0x09:
        cursor.skip(cursor.unsigned())
        return "", 0
    raise Damaged(f"its lines have a name of the unknown form {form:#x}")


def _executed(program: _Program, wanted: Sequence[int]) -> dict[int, tuple[int, int]]:
    if not program.line_range:
        raise Damaged("its lines have no range")
    machine = _Machine(program, wanted)
    cursor = program.cursor
    special = len(program.lengths)
    while not cursor.ended:
        code = cursor.number(1)
        if code >= special:
            machine.special(code - special)
        elif code:
            machine.standard(code)
        else:
            machine.extended()
    return machine.places


class _Machine:
    """Executes a program: DWARF 5, section 6.2."""

    def __init__(self, program: _Program, wanted: Sequence[int]) -> None:
        self._program, self._wanted = program, wanted
        self.places: dict[int, tuple[int, int]] = {}
        self._begin()

    def _begin(self) -> None:
        self._address, self._file, self._line = 0, 1, 1
        self._last: tuple[int, int, int] | None = None

    def _emit(self) -> None:
        """Give the addresses since the row before its line."""
        last, wanted = self._last, self._wanted
        if last is not None and last[0] < self._address:
            at = bisect_left(wanted, last[0])
            while at < len(wanted) and wanted[at] < self._address:
                self.places.setdefault(wanted[at], last[1:])
                at += 1
        self._last = self._address, self._file, self._line

    def special(self, number: int) -> None:
        """Go on by an address and a line, and emit a row."""
        program = self._program
        self._address += number // program.line_range * program.step
        self._line += program.line_base + number % program.line_range
        self._emit()

    def standard(self, code: int) -> None:
        """Execute a standard instruction; skip those that change no place."""
        program, cursor = self._program, self._program.cursor
        if code == 1:
            self._emit()
        elif code == 2:
            self._address = self._address + cursor.unsigned() * program.step & _WORD
        elif code == 3:
            self._line += cursor.signed()
        elif code == 4:
            self._file = cursor.unsigned()
        elif code == 8:
            most = 255 - len(program.lengths)
            self._address += most // program.line_range * program.step
        elif code == 9:
            self._address += cursor.number(2)
        else:
            for _ in range(program.lengths[code]):
                cursor.unsigned()

    def extended(self) -> None:
        """Execute an extended instruction."""
        cursor = self._program.cursor
        size = cursor.unsigned()
        end = cursor.at + size
        code = cursor.number(1)
        if code == 2:
            self._address = cursor.number(size - 1) if size in (3, 5, 9) else 0
        if not cursor.at <= end <= cursor.end:
            raise Damaged("an instruction of its lines is cut short")
        cursor.at = end
        if code == 1:
            self._emit()
            self._begin()
