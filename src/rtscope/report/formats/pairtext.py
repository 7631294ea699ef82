"""Two sides of a matrix on a terminal: Table 5-1's shape, in 80 columns."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rtscope.report.model.rows import Row
from rtscope.report.model.sidebyside import SideBySide
from rtscope.report.words import NOTHING, ratio
from rtscope.units import format_us

WIDE = 100
"""From so many columns on the samples are in the table."""


def pair_table(pair: SideBySide, *, width: int) -> Iterator[RenderableType]:
    """Give the table, then what kind of sample it is."""
    wide = width >= WIDE
    columns = ("min", "avg", "max", "skipped", *(("samples",) if wide else ()))
    for mark, side in zip("AB", pair.sides, strict=True):
        model = f", {side.model}" if side.model else ""
        yield Text.assemble((f"{mark} = {side.label}", "bold"), model)
    table = Table(
        box=None,
        padding=(0, 2 if wide else 1, 0, 0),
        pad_edge=False,
        header_style="bold",
    )
    table.add_column("load", no_wrap=True)
    for mark in "AB":
        for name in columns:
            table.add_column(f"{mark} {name}", justify="right", no_wrap=False)
    table.add_column("max B/A", justify="right")
    for row in pair.rows:
        cells = [cell for side in row.rows for cell in _cells(side, wide=wide)]
        table.add_row(row.load, *cells, Text(ratio(row.ratio), style="bold"))
    yield table
    yield Text(pair.caution, style="dim")
    yield ""


def pair_sentences(pair: SideBySide) -> Iterator[RenderableType]:
    """Give for each load what its samples support."""
    yield Text("What the samples support", style="bold")
    for row in pair.rows:
        text = Text.assemble((f"{row.load}: ", "bold"), row.sentence)
        yield Padding(text, (0, 0, 0, 2))
    yield ""


def _cells(row: Row, *, wide: bool) -> list[Text]:
    summary = row.summary
    if summary is None:
        return [Text(NOTHING)] * (5 if wide else 4)
    cells = [
        Text(format_us(summary.min_ns)),
        Text(format_us(summary.mean_ns)),
        Text(format_us(summary.max_ns), style="bold"),
        Text(f"{summary.skipped:,}", style="red" if summary.skipped else ""),
    ]
    return [*cells, Text(f"{summary.samples:,}")] if wide else cells
