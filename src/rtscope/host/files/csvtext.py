"""CSV: lines of plain cells, none of which a spreadsheet takes for a formula."""

import csv
import io
import re
from collections.abc import Iterable

_FORMULA = tuple("=+-@\t\r\uff1d\uff0b\uff0d\uff20")


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as lines; the first one has the headings."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([for_csv(str(cell)) for cell in row] for row in rows)
    return out.getvalue()


def for_csv(cell: str) -> str:
    """Keep a spreadsheet from taking a cell as a formula; numbers stay numbers."""
    if cell.lstrip(" ").startswith(_FORMULA) and not _is_number(cell):
        return "'" + cell
    return cell


def _is_number(cell: str) -> bool:
    return re.fullmatch(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", cell) is not None
