"""A published table beside ours on a terminal: two lines for each load."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rtscope.published import Kind
from rtscope.report.formats.text import caveat_lines, plain_text
from rtscope.report.model.published import Beside, BesideRow
from rtscope.report.words import NOTHING, as_published, capital, enumeration, ratio
from rtscope.units import format_us


def print_beside(beside: Beside, console: Console, *, page: str | None = None) -> None:
    """Print the two tables; `page` is where the page is."""
    for part in _parts(beside, page):
        console.print(part, highlight=False, markup=False, emoji=False)


def render_beside(beside: Beside, *, width: int = 80, page: str | None = None) -> str:
    """Return them as plain text, as a pipe gets it."""
    return plain_text(_parts(beside, page), width=width)


def _parts(beside: Beside, page: str | None) -> Iterator[RenderableType]:
    yield Text(beside.title, style="bold")
    yield Text(f"Published: {beside.table.source}.")
    kernels = [f"{name} ({kind.value})" for kind, name in beside.kernels.items()]
    yield Text(f"Ours: {beside.machine}, {enumeration(kernels)}.")
    yield ""
    yield Text(beside.summary)
    yield ""
    yield _table(beside.rows)
    unit = f"published in µs, ours in {beside.virtual}µs" if beside.virtual else "in µs"
    yield Text(
        f"Latencies {unit}; {NOTHING} is not published or not measured. The ratio is "
        "of the maxima, mainline over PREEMPT_RT.",
        style="dim",
    )
    yield ""
    for row in beside.rows:
        yield Text.assemble((f"{row.load}: ", "bold"), row.sentence)
    yield from _left_out(beside)
    yield ""
    yield from _list("What each sample supports", beside.support)
    yield from _list("What keeps the two apart", beside.differences)
    yield from _list("What does not add up in the published table", beside.notes)
    yield from caveat_lines(beside.caveats)
    if page is not None:
        yield Text.assemble(("The page: ", "bold"), page)


def _table(rows: Sequence[BesideRow]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("\nload", no_wrap=True)
    table.add_column("", no_wrap=True)
    for mark in ("RT", "mainline"):
        for name in ("min", "avg", "max"):
            group = mark if name == "min" else ""
            table.add_column(f"{group}\n{name}", justify="right", no_wrap=True)
    table.add_column("\nratio", justify="right", no_wrap=True)
    for row in rows:
        cells = [_published(row, kind) for kind in Kind]
        table.add_row(
            row.load, "published", *_flat(cells), Text(ratio(row.published.ratio))
        )
        cells = [_ours(row, kind) for kind in Kind]
        table.add_row("", "ours", *_flat(cells), Text(ratio(row.ours.ratio)))
    return table


def _published(row: BesideRow, kind: Kind) -> list[Text]:
    figures = row.published.figures.get(kind)
    if figures is None:
        return [Text(NOTHING)] * 3
    return _cells(
        as_published(figures.min_ns),
        as_published(figures.avg_ns),
        as_published(figures.max_ns),
    )


def _ours(row: BesideRow, kind: Kind) -> list[Text]:
    mine = row.ours.rows.get(kind)
    if mine is None or mine.summary is None:
        return [Text(NOTHING)] * 3
    return _cells(
        format_us(mine.summary.min_ns),
        format_us(mine.summary.mean_ns),
        format_us(mine.summary.max_ns),
    )


def _cells(low: str, avg: str, high: str) -> list[Text]:
    return [Text(low), Text(avg), Text(high, style="bold")]


def _flat(cells: Iterable[Sequence[Text]]) -> list[Text]:
    return [cell for group in cells for cell in group]


def _left_out(beside: Beside) -> Iterator[RenderableType]:
    if beside.not_measured:
        yield Text(f"Published and not measured: {enumeration(beside.not_measured)}.")
    if beside.not_published:
        yield Text(f"Measured and not published: {enumeration(beside.not_published)}.")


def _list(heading: str, items: Sequence[str]) -> Iterator[RenderableType]:
    if items:
        yield Text(heading, style="bold")
        for item in items:
            said = item if item.endswith(".") else f"{item}."
            yield Padding(Text(f"• {capital(said)}"), (0, 0, 0, 0))
        yield ""
