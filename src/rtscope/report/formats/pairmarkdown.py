"""Two sides of a matrix, and comparisons, as Markdown: tables and sentences."""

from collections.abc import Iterator

from rtscope.report.escape import for_markdown as safe
from rtscope.report.model.comparison import Comparison, LoadComparison, Side
from rtscope.report.model.rows import Row
from rtscope.report.model.sidebyside import SideBySide
from rtscope.report.words import NOTHING, percentile_ns, ratio
from rtscope.units import format_us

_COLUMNS = ("min", "avg", "max", "skipped", "samples")


def pair_lines(pair: SideBySide) -> Iterator[str]:
    """Give the table, then for each load what its samples support."""
    for mark, side in zip("AB", pair.sides, strict=True):
        model = f", {side.model}" if side.model else ""
        yield f"* {mark} = {safe(side.label)}{safe(model)}"
    yield ""
    names = [f"{mark} {name}" for mark in "AB" for name in _COLUMNS]
    yield f"| load | {' | '.join(names)} | max B/A |"
    yield "| --- |" + " ---: |" * (len(names) + 1)
    for row in pair.rows:
        cells = [cell for side in row.rows for cell in _cells(side)]
        yield f"| {safe(row.load)} | {' | '.join(cells)} | {ratio(row.ratio)} |"
    yield ""
    yield f"Latencies in {pair.virtual}µs."
    yield safe(pair.caution)
    yield ""
    for row in pair.rows:
        yield f"* {safe(row.load)}: {safe(row.sentence)}"
    yield ""


def render_comparison_markdown(comparison: Comparison) -> str:
    """Return a comparison as CommonMark with tables."""
    return "\n".join(_lines(comparison)) + "\n"


def _lines(comparison: Comparison) -> Iterator[str]:
    yield f"# {safe(comparison.title)}"
    yield ""
    yield f"**{safe(comparison.summary)}**"
    yield ""
    if comparison.pair is not None:
        yield safe(comparison.pair.summary)
        yield ""
        yield from pair_lines(comparison.pair)
    for load in comparison.loads:
        yield from _load(load)
    yield f"Latencies in {comparison.virtual}µs; the unit of comparison is the run."
    yield ""
    for caveat in comparison.caveats:
        yield f"* **{caveat.effect.upper()}** {safe(caveat.says)}"
    yield ""
    yield safe(f"Made by {comparison.made_by}.")


def _load(load: LoadComparison) -> Iterator[str]:
    yield f"## {safe(load.load)}"
    yield ""
    yield "| set | max | median max | runs | skipped | p99.9 | avg | min |"
    yield "| --- |" + " ---: |" * 7
    for side in load.sides:
        yield f"| {safe(side.label)} | {' | '.join(_side(side))} |"
    yield ""
    for outcome in load.outcomes:
        yield f"* **{outcome.word}**{safe(outcome.rest)}"
        yield from (f"  {safe(remark)}" for remark in outcome.remarks)
    yield ""


def _side(side: Side) -> list[str]:
    summary, runs = side.row.summary, str(side.row.runs)
    if summary is None:
        return [NOTHING, NOTHING, runs, *[NOTHING] * 4]
    return [
        f"**{format_us(summary.max_ns)}**",
        format_us(side.median_max_ns),
        runs,
        f"{summary.skipped:,}",
        format_us(percentile_ns(summary, 99.9)),
        format_us(summary.mean_ns),
        format_us(summary.min_ns),
    ]


def _cells(row: Row) -> list[str]:
    summary = row.summary
    if summary is None:
        return [NOTHING] * len(_COLUMNS)
    return [
        format_us(summary.min_ns),
        format_us(summary.mean_ns),
        f"**{format_us(summary.max_ns)}**",
        f"{summary.skipped:,}",
        f"{summary.samples:,}",
    ]
