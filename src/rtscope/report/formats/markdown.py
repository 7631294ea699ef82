"""Reports and comparisons as Markdown, for a wiki or a merge request: no charts."""

from collections.abc import Iterable, Iterator, Sequence

from rtscope.published import KernelKind
from rtscope.report.escape import for_markdown as safe
from rtscope.report.model.build import Model
from rtscope.report.model.comparison import (
    ComparisonReport,
    LoadComparison,
    SideBySide,
)
from rtscope.report.model.published_comparison import PublishedComparison
from rtscope.report.model.rows import Row
from rtscope.report.tables import (
    SEEDS_EXPLAINED,
    SEEDS_HEADINGS,
    Figure,
    columns,
    compared,
    measured_cells,
    published_cells,
    seeds_cells,
    seeds_title,
)
from rtscope.report.words import NOTHING, as_sentence, capital, ratio
from rtscope.units import format_us


def render_markdown(told: Model | ComparisonReport | PublishedComparison) -> str:
    """Return it as CommonMark with tables, one sentence a line."""
    match told:
        case Model():
            lines = _report(told)
        case ComparisonReport():
            lines = _comparison(told)
        case PublishedComparison():
            lines = _published_comparison(told)
    return "\n".join(lines) + "\n"


def _report(model: Model) -> Iterator[str]:
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
        yield from _pair(model.pair)
    yield from _main_table(model)
    yield ""
    yield from _seeds(model)
    yield from _list("Findings", [safe(finding) for finding in model.findings])
    yield from _list(
        "Caveats",
        [
            f"**{c.label}** {safe(c.says)}"
            + (f" ({safe('; '.join(c.details))})" if c.details else "")
            + ("" if c.everywhere else f" in {safe(', '.join(c.runs))}")
            + f" → {safe(as_sentence(c.remedy))}"
            for c in model.caveats
        ]
        or ["none"],
    )
    yield "## Repeat this measurement"
    yield ""
    # Indented code: nothing in a line without line breaks can end it.
    yield from (f"    {command}" for command in model.commands)
    yield ""
    yield safe(f"Made by {model.made_by}.")


def _table(
    left: Sequence[str], right: Iterable[str], rows: Iterable[Sequence[str]]
) -> Iterator[str]:
    """Yield a table: names on the left, figures on the right."""
    headings = [*left, *right]
    yield f"| {' | '.join(headings)} |".replace("|  |", "| |")
    yield "|" + " --- |" * len(left) + " ---: |" * (len(headings) - len(left))
    yield from (f"| {' | '.join(cells)} |" for cells in rows)
    yield ""


def _cell(figure: Figure, row: Row, *, zero: bool = False) -> str:
    text = figure.text(row, zero=zero)
    return f"**{text}**" if figure.strong and row.summary is not None else text


def _main_table(model: Model) -> Iterator[str]:
    varied = bool(model.variant_kind)
    figures = columns("main")
    yield from _table(
        ["load", *([model.variant_kind] if varied else [])],
        [one.heading for one in figures],
        (
            [
                safe(row.load),
                *([safe(row.variant)] if varied else []),
                *(_cell(one, row, zero=True) for one in figures),
            ]
            for row in model.rows
        ),
    )
    yield f"Latencies in {model.virtual}µs."
    yield f"{NOTHING} means too few samples, or not reported by the load."


def _seeds(model: Model) -> Iterator[str]:
    if not model.seeds:
        return
    yield f"## {seeds_title(model.seeds)}"
    yield ""
    cells = ((safe(row.name), *seeds_cells(row)) for row in model.seeds)
    yield from _table(["load"], SEEDS_HEADINGS, cells)
    yield SEEDS_EXPLAINED
    yield ""


def _list(heading: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield f"## {heading}"
        yield ""
        yield from (f"* {item}" for item in items)
        yield ""


# --- two sides, and comparisons ------------------------------------------------------


def _pair(pair: SideBySide) -> Iterator[str]:
    """Yield the table, then the sentence of each load."""
    for mark, side in zip("AB", pair.sides, strict=True):
        model = f", {side.model}" if side.model else ""
        yield f"* {mark} = {safe(side.label)}{safe(model)}"
    yield ""
    figures = columns("pair")
    names = [f"{mark} {one.heading}" for mark in "AB" for one in figures]
    yield from _table(
        ["load"],
        [*names, *(f"{one.heading} B/A" for one in compared())],
        (
            [
                safe(row.load),
                *(_cell(one, side) for side in row.rows for one in figures),
                *map(ratio, row.ratios.values()),
            ]
            for row in pair.rows
        ),
    )
    yield f"Latencies in {pair.virtual}µs."
    yield safe(pair.caution)
    yield ""
    for row in pair.rows:
        yield f"* {safe(row.load)}: {safe(row.sentence)}"
    yield ""


def _comparison(comparison: ComparisonReport) -> Iterator[str]:
    yield f"# {safe(comparison.title)}"
    yield ""
    yield f"**{safe(comparison.summary)}**"
    yield ""
    if comparison.pair is not None:
        yield safe(comparison.pair.summary)
        yield ""
        yield from _pair(comparison.pair)
    for load in comparison.loads:
        yield from _load(load)
    yield f"Latencies in {comparison.virtual}µs; the unit of comparison is the run."
    yield ""
    for caveat in comparison.caveats:
        yield f"* **{caveat.label}** {safe(caveat.says)}"
    yield ""
    yield safe(f"Made by {comparison.made_by}.")


def _load(load: LoadComparison) -> Iterator[str]:
    yield f"## {safe(load.load)}"
    yield ""
    first, *figures = columns("sets")
    names = [first.heading, "median max", "runs", *(one.heading for one in figures)]
    yield from _table(
        ["set"],
        names,
        (
            [
                safe(side.label),
                _cell(first, side.row),
                format_us(side.median_max_ns),
                str(side.row.runs),
                *(_cell(one, side.row) for one in figures),
            ]
            for side in load.sides
        ),
    )
    for outcome in load.outcomes:
        yield f"* **{outcome.word}**{safe(outcome.rest)}"
        yield from (f"  {safe(remark)}" for remark in outcome.remarks)
    yield ""


# --- a published table ----------------------------------------------------------------


def _published_comparison(comparison: PublishedComparison) -> Iterator[str]:
    yield f"# {safe(comparison.title)}"
    yield ""
    yield f"Published: {safe(comparison.table.source)}."
    yield ""
    yield safe(comparison.summary)
    yield ""
    marks = {KernelKind.RT: "RT", KernelKind.MAINLINE: "mainline"}
    names = [f"{marks[k]} {one.heading}" for k in marks for one in columns("published")]
    yield from _table(
        ["load", ""],
        [*names, "ratio"],
        (
            [load, whose, *(text for _, text in cells), ratio(quotient)]
            for row in comparison.rows
            for load, whose, cells, quotient in (
                (
                    safe(row.load),
                    "published",
                    published_cells(row.published),
                    row.published.ratio,
                ),
                ("", "measured", measured_cells(row.measured), row.measured.ratio),
            )
        ),
    )
    unit = (
        f"published in µs, measured in {comparison.virtual}µs"
        if comparison.virtual
        else "in µs"
    )
    yield f"Latencies {unit}. Ratio: mainline maximum over PREEMPT_RT maximum."
    yield ""
    for heading, items in (
        ("Load by load", [f"{row.load}: {row.sentence}" for row in comparison.rows]),
        ("Conclusions from each sample", comparison.support),
        ("Differences between the two measurements", comparison.differences),
        ("Inconsistencies in the published table", comparison.notes),
        ("Published but not measured", comparison.not_measured),
        ("Measured but not published", comparison.not_published),
        ("Caveats", [f"{c.label} {c.says}" for c in comparison.caveats]),
    ):
        yield from _list(heading, [safe(capital(item)) for item in items])
    yield safe(f"Made by {comparison.made_by}.")
