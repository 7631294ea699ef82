"""The tables of a page, as a browser lays them out: how wide each row is."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass(slots=True)
class PageTable:
    """A table: the columns of each row of its head, and of each row below."""

    head: list[int] = field(default_factory=list)
    body: list[int] = field(default_factory=list)

    @property
    def columns(self) -> int:
        """As many as the last row of its head has: its headings."""
        return self.head[-1]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tables: list[PageTable] = []
        self._in_head = False
        self._spanning: dict[int, int] = {}
        """Columns of cells that reach into later rows, by the number of these rows."""
        self._row = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        if tag == "table":
            self.tables.append(PageTable())
            self._spanning = {}
        elif tag == "thead":
            self._in_head = True
        elif tag == "tr":
            self._row = sum(self._spanning.values())
            self._spanning = {
                left - 1: width for left, width in self._spanning.items() if left > 1
            }
        elif tag in ("td", "th"):
            width = int(names.get("colspan") or 1)
            self._row += width
            if (rows := int(names.get("rowspan") or 1)) > 1:
                self._spanning[rows - 1] = self._spanning.get(rows - 1, 0) + width

    def handle_endtag(self, tag: str) -> None:
        if tag == "thead":
            self._in_head = False
        elif tag == "tr":
            table = self.tables[-1]
            (table.head if self._in_head else table.body).append(self._row)


def tables_of(page: str) -> list[PageTable]:
    """Return the tables of a page, in their order."""
    reader = _Reader()
    reader.feed(page)
    return reader.tables


def uneven_rows(page: str) -> Iterator[str]:
    """Name each row that has not as many cells as its table has headings."""
    for number, table in enumerate(tables_of(page), 1):
        for place, width in enumerate([*table.head, *table.body], 1):
            if width != table.columns:
                yield (
                    f"table {number}, row {place}: {width} cells below "
                    f"{table.columns} headings"
                )
