"""
Read a table of numbers as people write it: separators, headings, units, numbers.

A comment begins with `#`, `%` or `//`; the last one before the first row may hold the
headings. What a comma means is decided for the whole file, never for one number.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rtscope.host.units import NS_PER_MS, NS_PER_S, NS_PER_US

UNIT_NS = {
    **dict.fromkeys(("ns", "nsec", "nsecs", "nanosecond", "nanoseconds"), 1),
    **dict.fromkeys(
        *(("us", "usec", "usecs", "µs", "μs", "microsecond", "microseconds"), NS_PER_US)
    ),
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds"), NS_PER_MS),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), NS_PER_S),
}
"""A unit by its names in headings and cells."""

MAX_COLUMNS = 256
LEAST_ROWS = 2
MOST = 0.6
"""The share of rows, or of cells, that must be understood."""

ONE_CELL = "\n"

HEAD_ROWS = 200
"""A table is understood from so many rows."""

MISSING = frozenset({"", "-", "--", "na", "n/a", "nan", "null", "none", "?"})

_COMMENT = re.compile(r"\s*(?:#|%|//|\|[|+: -]*-[|+: -]*$|[+-]{3,}[|+ -]*$)")
_UNITS = "|".join(sorted(UNIT_NS, key=len, reverse=True))
_HEADING_UNIT = re.compile(
    rf"[\[(]\s*({_UNITS})\s*[\])]\s*$|[_\s/,.-]+(?:in[_\s]+)?({_UNITS})\s*$",
    re.IGNORECASE,
)
_CAMEL_UNIT = re.compile(r"[a-z](Ns|Us|Ms|Sec)$")
_CELL = re.compile(rf"\s*([+-]?[\d.,'_eE+-]+?)\s*({_UNITS})?\s*$")
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:([,'_.])\d{3})(?:\1\d{3})*(?:[.,]\d+)?$")


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, its unit, and what its first row has."""

    number: int
    """From 1 on."""
    heading: str
    """Empty: the table has none."""
    unit_ns: int | None
    """None: neither the heading nor a cell names it."""
    first: str
    numeric: bool

    @property
    def name(self) -> str:
        """What one types for it."""
        return self.heading or str(self.number)


@dataclass(frozen=True, slots=True)
class Layout:
    """How the rows of a file are to be read."""

    separator: str
    """Empty: white space; a line feed: each line is one cell."""
    comma: str
    """`decimal`, `thousands`, or empty: a comma is in no number."""
    columns: tuple[Column, ...]
    decimals: int
    """The most digits behind the point in the first rows."""

    def cells(self, line: str) -> list[str]:
        """Return the cells of a row."""
        if not self.separator:
            return line.split()
        if self.separator == ONE_CELL:
            return [line.strip().strip("\"'")]
        if '"' in line or "'" in line:
            return [cell.strip() for cell in _quoted(line, self.separator)]
        return line.split(self.separator)

    def number(self, cell: str) -> float | None:
        """Return the number of a cell in its unit; None if it is none."""
        try:
            return float(cell)
        except ValueError:
            return _number(cell, self.comma)


def is_comment(line: str) -> bool:
    """Whether a line is no row: empty, or a comment."""
    return not line.strip() or _COMMENT.match(line) is not None


def layout_of(lines: Iterable[str]) -> Layout | None:
    """Return how to read these first lines; None if they are no table of numbers."""
    rows, comment = _first_rows(lines)
    separator = _separator(rows)
    cells = [_split(row, separator) for row in rows]
    headings: list[str] = []
    if cells and not any(map(_looks_numeric, cells[0])):
        headings, cells = cells[0], cells[1:]
    if not cells or len(rows) < LEAST_ROWS:
        return None
    width = max({len(row): 0 for row in cells}, key=[len(r) for r in cells].count)
    cells = [row for row in cells if len(row) == width]
    if len(cells) < MOST * len(rows) - 1 or width > MAX_COLUMNS:
        return None
    if not headings and comment:
        words = _split(comment, separator)
        headings = words if len(words) == width else []
    if len(headings) not in (0, width):
        headings = re.split(r"\s{2,}", rows[0].strip())
    if len(headings) not in (0, width):
        return None
    comma = _comma([cell for row in cells for cell in row])
    columns = tuple(
        _column(place, headings, [row[place] for row in cells], comma)
        for place in range(width)
    )
    numeric = sum(column.numeric for column in columns)
    if not numeric or (not headings and 2 * numeric < width):
        return None  # a log, whose lines have a number among their words
    decimals = max(
        (_decimals(_plain(cell, comma)) for row in cells for cell in row), default=0
    )
    return Layout(separator, comma, columns, min(decimals, 9))


def _decimals(number: str) -> int:
    """Return how many digits are behind the point; of an exponent the most."""
    return 9 if "e" in number.lower() else len(number.partition(".")[2])


def _first_rows(lines: Iterable[str]) -> tuple[list[str], str]:
    """Return the first rows, and the last comment before them."""
    rows: list[str] = []
    comment = ""
    for line in lines:
        if is_comment(line):
            if not rows and line.strip():
                comment = _COMMENT.sub("", line, count=1).strip()
            continue
        rows.append(line)
        if len(rows) > HEAD_ROWS:
            break
    return rows, comment


def _separator(rows: Sequence[str]) -> str:
    """Return what stands between columns; empty: white space, or one column."""
    if _is_one_column(rows):
        return ONE_CELL
    for separator in ("\t", ";", "|"):
        if rows and sum(separator in row for row in rows) >= 0.8 * len(rows):
            return separator
    with_comma = [row for row in rows if "," in _QUOTED.sub("", row)]
    if rows and len(with_comma) >= 0.8 * len(rows):
        return ","
    return ""


def _is_one_column(rows: Sequence[str]) -> bool:
    """Whether most rows are one number, and a comma is in no heading and apart."""
    apart = [row for row in rows if re.search("[,;\t|]", _QUOTED.sub("", row))]
    if apart and (_looks_numeric(rows[0]) or rows[0] in apart):
        return False
    alone = [row for row in rows if _CELL.match(row.strip().strip("\"'"))]
    return len(alone) >= MOST * len(rows)


_QUOTED = re.compile(r'"[^"]*"')


def _split(line: str, separator: str) -> list[str]:
    if not separator:
        return line.split()
    if separator == ONE_CELL:
        return [line.strip().strip("\"'")]
    return [cell.strip() for cell in _quoted(line.strip(), separator)]


def _quoted(line: str, separator: str) -> list[str]:
    cells = next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    if len(cells) > 1 and not cells[-1].strip():
        return cells[:-1]  # a separator at the end of each row
    return cells


def _comma(cells: Sequence[str]) -> str:
    """
    Return what a comma in a number is: the whole file has one meaning.

    `unclear` if each number with a comma may be thousands or decimals.
    """
    numbers = [match[1] for cell in cells if (match := _CELL.match(cell))]
    with_comma = [number for number in numbers if "," in number]
    if not with_comma:
        return ""
    if any(
        number.count(",") > 1 or "." in number.split(",", 1)[1] for number in with_comma
    ):
        return "thousands"
    if all(re.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}", number) for number in with_comma):
        return "unclear"
    return "decimal"


def _plain(cell: str, comma: str) -> str:
    """Return a cell as `float` reads it, without its unit."""
    match = _CELL.match(cell)
    if match is None:
        return ""
    text = match[1].replace("'", "").replace("_", "")
    if comma == "decimal":
        return text.replace(".", "").replace(",", ".") if "," in text else text
    return text.replace(",", "") if comma == "thousands" else text


def _number(cell: str, comma: str) -> float | None:
    try:
        return float(_plain(cell, comma))
    except ValueError:
        return None


def _looks_numeric(cell: str) -> bool:
    match = _CELL.match(cell)
    return match is not None and any(c.isdigit() for c in match[1])


def _column(
    place: int, headings: Sequence[str], cells: Sequence[str], comma: str
) -> Column:
    heading = headings[place][:80] if headings else ""
    given = [cell for cell in cells if cell.lower() not in MISSING]
    numbers = [_number(cell, comma) for cell in given]
    numeric = bool(given) and sum(n is not None for n in numbers) >= MOST * len(given)
    units = {match[2] for cell in given if (match := _CELL.match(cell))}
    unit_ns = unit_of_heading(heading)
    if unit_ns is None and len(units) == 1 and (name := units.pop()):
        unit_ns = UNIT_NS[name.lower()]
    return Column(place + 1, heading, unit_ns, cells[0][:40], numeric)


def unit_of_heading(heading: str) -> int | None:
    """Return the unit that a heading names, in ns; None without one."""
    match = _HEADING_UNIT.search(heading)
    if match is not None:
        return UNIT_NS[(match[1] or match[2]).lower()]
    camel = _CAMEL_UNIT.search(heading)
    return None if camel is None else UNIT_NS[camel[1].lower()]


def rows_of(lines: Iterable[str], layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line that is a row, and its cells."""
    headings = [column.heading for column in layout.columns]
    for number, line in enumerate(lines, 1):
        if is_comment(line):
            continue
        cells = layout.cells(line)
        if number < HEAD_ROWS and [c.strip()[:80] for c in cells] == headings:
            continue
        yield number, cells
