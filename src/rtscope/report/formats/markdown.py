"""The report as Markdown, for a wiki or a merge request: text and tables, no charts."""

from collections.abc import Iterator, Sequence

from rtscope.report.escape import for_markdown as safe
from rtscope.report.formats.pairmarkdown import pair_lines
from rtscope.report.model import seedvariation
from rtscope.report.model.build import Model
from rtscope.report.model.rows import Row
from rtscope.report.words import NOTHING, capital, count, percentile_ns
from rtscope.units import format_us

_HEADINGS = (
    "max",
    "samples",
    "skipped",
    "caveats",
    "p99.9",
    "p99.999",
    "min",
    "avg",
    "stdev",
    "bogo-ops/s",
)


def render_markdown(model: Model) -> str:
    """Return the report as CommonMark with tables, one sentence a line."""
    return "\n".join(_lines(model)) + "\n"


def _lines(model: Model) -> Iterator[str]:
    yield f"# {safe(model.title)}"
    yield ""
    yield safe(model.subtitle)
    yield ""
    if model.verdict is not None:
        yield safe(model.verdict.question)
        yield f"**{model.verdict.word}**: {safe(model.verdict.meaning)}."
        yield ""
        for load in model.verdict.loads:
            advice = f" → {safe(load.run_next)}" if load.run_next else ""
            said = safe(load.sentence) + advice
            yield f"* **{load.word}** ({safe(load.name)}): {said}"
    else:
        yield f"**{safe(model.headline.maximum)}** {safe(model.headline.where)}"
        yield safe(model.headline.support)
    yield ""
    if model.pair is not None:
        yield from pair_lines(model.pair)
    yield from _table(model)
    yield ""
    yield from _seeds(model)
    yield from _list("Findings", [safe(finding) for finding in model.findings])
    yield from _list(
        "Caveats",
        [
            f"**{c.effect.upper()}** {safe(c.says)}"
            + (f" ({safe('; '.join(c.details))})" if c.details else "")
            + ("" if c.everywhere else f" in {safe(', '.join(c.runs))}")
            + f" → {safe(capital(c.remedy))}."
            for c in model.caveats
        ]
        or ["none"],
    )
    yield "## To repeat it"
    yield ""
    # Indented code: nothing in a line without line breaks can end it.
    yield from (f"    {command}" for command in model.commands)
    yield ""
    yield safe(f"Made by {model.made_by}.")


def _table(model: Model) -> Iterator[str]:
    varied = bool(model.variant_kind)
    names = ["load", *([model.variant_kind] if varied else []), *_HEADINGS]
    yield f"| {' | '.join(names)} |"
    left = 2 if varied else 1
    yield "|" + " --- |" * left + " ---: |" * len(_HEADINGS)
    for row in model.rows:
        first = [safe(row.load), *([safe(row.variant)] if varied else [])]
        yield f"| {' | '.join([*first, *_cells(row)])} |"
    yield ""
    yield f"Latencies in {model.virtual}µs, maximum first."
    yield f"{NOTHING} is not resolvable from so few samples, or not told by the load."


def _seeds(model: Model) -> Iterator[str]:
    if not model.seeds:
        return
    yield f"## {seedvariation.title_of(model.seeds)}"
    yield ""
    yield f"| load | {' | '.join(seedvariation.HEADINGS)} |"
    yield "| --- |" + " ---: |" * len(seedvariation.HEADINGS)
    for line in model.seeds:
        over = line.over
        maxima = (over.lowest_ns, over.median_ns, over.highest_ns)
        cells = [*map(format_us, maxima), str(over.worst_seed)]
        count = len(over.maxima_ns)
        yield f"| {safe(line.row.name)} | {' | '.join(cells)} | {count} |"
    yield ""
    yield seedvariation.EXPLAINED
    yield ""


def _cells(row: Row) -> list[str]:
    rate = row.total_throughput
    last = NOTHING if rate is None else count(rate)
    summary = row.summary
    if summary is None:
        return [NOTHING, "0", NOTHING, str(row.caveats), *[NOTHING] * 5, last]
    return [
        f"**{format_us(summary.max_ns)}**",
        f"{summary.samples:,}",
        f"{summary.skipped:,}",
        str(row.caveats),
        format_us(percentile_ns(summary, 99.9)),
        format_us(percentile_ns(summary, 99.999)),
        format_us(summary.min_ns),
        format_us(summary.mean_ns),
        format_us(summary.stdev_ns),
        last,
    ]


def _list(heading: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield f"## {heading}"
        yield ""
        yield from (f"* {item}" for item in items)
        yield ""
