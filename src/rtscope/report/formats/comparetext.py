"""A comparison on a terminal: the outcome first, then a table for each load."""

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rtscope.report.formats.pairtext import pair_sentences, pair_table
from rtscope.report.formats.text import caveat_lines, plain_text
from rtscope.report.model.comparison import Comparison, LoadComparison, Side
from rtscope.report.words import NOTHING, percentile_ns
from rtscope.units import format_us


def print_comparison(
    comparison: Comparison, console: Console, *, page: str | None = None
) -> None:
    """Print the comparison; `page` is where the one with charts is."""
    for part in _parts(comparison, page, console.width):
        console.print(part, highlight=False, markup=False, emoji=False)


def render_comparison(
    comparison: Comparison, *, width: int = 80, page: str | None = None
) -> str:
    """Return the comparison as plain text, as a pipe gets it."""
    return plain_text(_parts(comparison, page, width), width=width)


def _parts(
    comparison: Comparison, page: str | None, width: int
) -> Iterator[RenderableType]:
    yield Text(comparison.title, style="bold")
    yield Text(comparison.summary)
    yield ""
    if comparison.pair is not None:
        yield from pair_table(comparison.pair, width=width)
        yield Text(comparison.pair.summary)
        yield ""
        yield from pair_sentences(comparison.pair)
    for load in comparison.loads:
        if comparison.pair is None or any(side.row.runs > 1 for side in load.sides):
            yield _table(load)
        else:  # its figures are in the table above
            yield Text(load.load, style="bold")
        for outcome in load.outcomes:
            style = "bold" if outcome.different else "bold yellow"
            yield Text.assemble((outcome.word, style), outcome.rest)
            for remark in outcome.remarks:
                yield Padding(Text(remark, style="dim"), (0, 0, 0, 2))
        yield ""
    yield Text(
        f"Latencies in {comparison.virtual}µs. The unit of comparison is the run.",
        style="dim",
    )
    yield ""
    yield from caveat_lines(comparison.caveats)
    if page is not None:
        yield Text.assemble(("Charts, details, definitions: ", "bold"), page)


def _table(load: LoadComparison) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column(Text(load.load), overflow="fold")
    for name in ("max", "median max", "runs", "skipped", "p99.9", "avg", "min"):
        table.add_column(name, justify="right", no_wrap=name != "median max")
    for side in load.sides:
        table.add_row(Text(side.label), *(Text(cell) for cell in _cells(side)))
    return table


def _cells(side: Side) -> list[str]:
    summary, runs = side.row.summary, str(side.row.runs)
    if summary is None:
        return [NOTHING, NOTHING, runs, *[NOTHING] * 4]
    return [
        format_us(summary.max_ns),
        format_us(side.median_max_ns),
        runs,
        f"{summary.skipped:,}",
        format_us(percentile_ns(summary, 99.9)),
        format_us(summary.mean_ns),
        format_us(summary.min_ns),
    ]
