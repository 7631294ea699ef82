"""
Reports and comparisons on a terminal: gravest first, plain on a pipe.

A report is readable at 60 columns. Two sides have Table 5-1's shape, in 80 columns.

Red is bad or invalid, yellow open or limited, green held. rich honours NO_COLOR. Text
is passed as `Text`: rich takes nothing in it for markup.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rtscope.host.errors import first_of
from rtscope.host.units import format_us, plural
from rtscope.present.model.build import Model
from rtscope.present.model.comparison import ComparisonReport, LoadComparison
from rtscope.present.model.published_comparison import (
    PublishedComparison,
    PublishedRow,
)
from rtscope.present.model.rows import MergedCaveat, Row
from rtscope.present.model.side_by_side import SideBySide
from rtscope.present.model.verdicts import Tone, VerdictInWords
from rtscope.present.tables import (
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
from rtscope.present.words import NOTHING, capital, duration, enumeration, ratio
from rtscope.record.caveats.catalogue import Effect

TONES: Mapping[Tone, str] = {"bad": "bold red", "open": "bold yellow", "good": "green"}
EFFECTS: Mapping[Effect, str] = {
    Effect.INVALID: "bold red",
    Effect.LIMIT: "yellow",
    Effect.NOTE: "",
}

WIDE = 100
"""Narrower terminals get two tables, first what counts, or one with fewer columns."""

LONGEST_NAME = 12
"""A longer name of a variant gets a letter in the table, and a line below."""


Document = Model | ComparisonReport | PublishedComparison
"""What has a text, a page and data."""


def print_text(
    document: Document, console: Console, *, page: str | None = None
) -> None:
    """Print a report or a comparison; `page` is where the full one is."""
    match document:
        case Model():
            parts = _report(document, console.width)
        case ComparisonReport():
            parts = _comparison(document, console.width)
        case PublishedComparison():
            parts = _published_comparison(document)
    where = [Text.assemble(("Charts, details, definitions: ", "bold"), page or "")]
    for part in chain(parts, where if page else []):
        console.print(part, highlight=False, markup=False, emoji=False)


def _report(model: Model, width: int) -> Iterator[RenderableType]:
    yield Text(model.title, style="bold")
    yield Text(model.subtitle)
    yield ""
    if model.verdict is not None:
        yield from _verdict(model.verdict)
    else:
        yield Text.assemble(
            (model.headline.maximum, "bold"), f" {model.headline.where}"
        )
        yield Text(model.headline.support)
    yield ""
    yield from _tables(model, width)
    if model.pair is not None:
        yield from _pair_sentences(model.pair)
    yield from _seeds(model)
    yield from _findings(model)
    yield from _loads(model)
    yield from caveat_list(model.caveats)
    for command in model.commands:
        yield Text.assemble(("Repeat with: ", "bold"), command)


def _verdict(verdict: VerdictInWords) -> Iterator[RenderableType]:
    yield Text(verdict.question)
    yield Text.assemble((verdict.word, TONES[verdict.tone]), f": {verdict.meaning}.")
    for load in verdict.loads:
        yield Padding(
            Text.assemble(
                (load.word, TONES[load.tone]), f" ({load.name}): {load.sentence}"
            ),
            (0, 0, 0, 2),
        )
        if load.run_next:
            yield Padding(Text(f"→ {load.run_next}"), (0, 0, 0, 4))


def _tables(model: Model, width: int) -> Iterator[RenderableType]:
    main, narrow = columns("main"), columns("main", wide=False)
    paired = columns("pair", wide=width >= WIDE), compared()
    too_few = any(
        row.summary is not None and one.percentile and one.of(row) is None
        for row in model.rows
        for one in main
    )
    letters = letters_of(model)
    if model.pair is not None:
        yield from sides_table(model.pair, *paired, width=width)
        there = columns("pair", wide=False)
        tables: list[list[Figure]] = [[one for one in main if one not in there]]
    elif width >= WIDE:
        tables = [list(main)]
    else:
        tables = [list(narrow), [one for one in main if one not in narrow]]
    for figures in tables:
        yield rows_table(in_letter_order(model.rows, letters), figures, letters)
        yield ""
    notes = [f"Latencies in {model.virtual}µs."]
    if too_few:
        notes.append(f"{NOTHING} under p99.x: too few samples.")
    if any(row.runs > 1 for row in model.rows):
        runs = sorted({row.runs for row in model.rows})
        notes.append(f"{' or '.join(map(str, runs))} runs merged in each row.")
    spans = dict.fromkeys(duration(row.observed_ns) for row in model.rows)
    cpus = dict.fromkeys(plural(row.cpus, "CPU") for row in model.rows)
    notes.append(f"Measured per row: {' or '.join(spans)}, {' or '.join(cpus)}.")
    yield Text(" ".join(notes), style="dim")
    for name, letter in letters.items():
        if letter != name and model.pair is None:
            yield Text(f"{letter} = {name}")
    yield ""


def _seeds(model: Model) -> Iterator[RenderableType]:
    if not model.seeds:
        return
    letters = letters_of(model)
    yield Text(seeds_title(model.seeds), style="bold")
    table = plain_table("load", *([""] if any(letters) else []), right=SEEDS_HEADINGS)
    for row in model.seeds:
        lowest, middle, highest, *rest = seeds_cells(row)
        table.add_row(
            row.load,
            *([letters[row.variant]] if any(letters) else []),
            lowest,
            middle,
            Text(highest, style="bold"),
            *rest,
        )
    yield table
    yield Text(SEEDS_EXPLAINED, style="dim")
    yield ""


def letters_of(model: Model) -> dict[str, str]:
    """Return what stands in a table for each variant: its name, or a letter."""
    if model.pair is not None:
        return {s.label: x for s, x in zip(model.pair.sides, "AB", strict=True)}
    names = list(dict.fromkeys(row.variant for row in model.rows))
    if all(len(name) <= LONGEST_NAME for name in names):
        return {name: name for name in names}
    return {name: chr(ord("A") + i % 26) for i, name in enumerate(names)}


def in_letter_order(rows: Sequence[Row], letters: Mapping[str, str]) -> Sequence[Row]:
    """Put the rows of each load in the order of their letters or names as they came."""
    loads = list(dict.fromkeys(row.load for row in rows))
    if any(len(letter) != 1 for letter in letters.values()):
        return rows
    return sorted(rows, key=lambda r: (loads.index(r.load), letters[r.variant]))


def rows_table(
    rows: Sequence[Row], figures: Sequence[Figure], letters: Mapping[str, str]
) -> Table:
    """Return the table of these rows; `letters` stand for their variants."""
    left = [""] if any(letters) else []
    table = plain_table("load", *left, right=[one.heading for one in figures])
    before = None
    for row in rows:
        cells = [Text(row.load if row.load != before else "")]
        if any(letters):
            cells.append(Text(letters[row.variant]))
        before = row.load
        table.add_row(*cells, *(_cell(one, row) for one in figures))
    return table


def plain_table(
    *left: str | Text, right: Iterable[str], gap: int = 2, wrap: bool = False
) -> Table:
    """Return an empty table without lines: names on the left, figures on the right."""
    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="bold")
    for heading in left:
        table.add_column(heading, no_wrap=True)
    for heading in right:
        table.add_column(heading, justify="right", no_wrap=not wrap)
    return table


def _cell(figure: Figure, row: Row) -> Text:
    known = figure.of(row) is not None
    strong = "bold" if figure.strong and known else ""
    style = "red" if figure.is_bad(row) else strong
    return Text(figure.text(row), style=style)


def _findings(model: Model) -> Iterator[RenderableType]:
    if model.findings:
        yield Text("Findings", style="bold")
        for finding in model.findings:
            yield _bullet(Text(finding))
        yield ""


def _loads(model: Model) -> Iterator[RenderableType]:
    if model.loads:
        yield Text("Load", style="bold")
        for load in model.loads:
            yield _bullet(Text(f"{load.name}: {load.sentence}"))
        yield ""


def caveat_list(caveats: Sequence[MergedCaveat]) -> Iterator[RenderableType]:
    """List the caveats, each with its remedy."""
    if not caveats:
        yield Text("No caveats.")
        yield ""
        return
    yield Text("Caveats", style="bold")
    for caveat in caveats:
        text = Text.assemble((caveat.label, EFFECTS[caveat.effect]), f" {caveat.says}")
        if caveat.details:
            some = first_of(2, caveat.details, between="; ", last="; ")
            text.append(f" ({some})")
        if not caveat.everywhere:
            text.append(f" [{first_of(4, caveat.runs)}]")
        yield _bullet(text)
        yield Padding(Text(f"→ {caveat.remedy}", style="dim"), (0, 0, 0, 4))
    yield ""


def _bullet(text: Text) -> RenderableType:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=1)
    table.add_column()
    table.add_row(Text("•"), text)
    return table


# --- two sides, and comparisons ------------------------------------------------------


def sides_table(
    pair: SideBySide, figures: Sequence[Figure], ratios: Sequence[Figure], *, width: int
) -> Iterator[RenderableType]:
    """Name both sides, give their table, and the limits of such a sample."""
    for mark, side in zip("AB", pair.sides, strict=True):
        model = f", {side.model}" if side.model else ""
        yield Text.assemble((f"{mark} = {side.label}", "bold"), model)
    names = [f"{mark} {one.heading}" for mark in "AB" for one in figures]
    names += [f"{one.heading} B/A" for one in ratios]
    gap = 2 if width >= WIDE else 1
    table = plain_table("load", right=names, gap=gap, wrap=True)
    for row in pair.rows:
        cells = [_cell(one, side) for side in row.rows for one in figures]
        cells += [Text(ratio(value), style="bold") for value in row.ratios.values()]
        table.add_row(row.load, *cells)
    yield table
    yield Text(pair.caution, style="dim")
    yield ""


def _pair_sentences(pair: SideBySide) -> Iterator[RenderableType]:
    yield Text("Conclusions from the samples", style="bold")
    for row in pair.rows:
        text = Text.assemble((f"{row.load}: ", "bold"), row.sentence)
        yield Padding(text, (0, 0, 0, 2))
    yield ""


def _comparison(comparison: ComparisonReport, width: int) -> Iterator[RenderableType]:
    yield Text(comparison.title, style="bold")
    yield Text(comparison.summary)
    yield ""
    if comparison.pair is not None:
        figures = columns("pair", wide=width >= WIDE)
        yield from sides_table(comparison.pair, figures, compared(), width=width)
        yield Text(comparison.pair.summary)
        yield ""
        yield from _pair_sentences(comparison.pair)
    for load in comparison.loads:
        if comparison.pair is None or any(side.row.runs > 1 for side in load.sides):
            yield _sets_table(load)
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
    yield from caveat_list(comparison.caveats)


def _sets_table(load: LoadComparison) -> Table:
    first, *figures = columns("sets")
    names = [first.heading, "median max", "runs", *(one.heading for one in figures)]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column(Text(load.load), overflow="fold")
    for name in names:
        table.add_column(name, justify="right", no_wrap=name != "median max")
    for side in load.sides:
        cells = [
            first.text(side.row),
            format_us(side.median_max_ns),
            str(side.row.runs),
        ]
        cells += [one.text(side.row) for one in figures]
        table.add_row(Text(side.label), *map(Text, cells))
    return table


# --- a published table ----------------------------------------------------------------


def _published_comparison(comparison: PublishedComparison) -> Iterator[RenderableType]:
    yield Text(comparison.title, style="bold")
    yield Text(f"Published: {comparison.table.source}.")
    kernels = [f"{name} ({kind.value})" for kind, name in comparison.kernels.items()]
    yield Text(f"Measured: {comparison.machine}, {enumeration(kernels)}.")
    yield ""
    yield Text(comparison.summary)
    yield ""
    yield published_table(comparison.rows)
    unit = (
        f"published in µs, measured in {comparison.virtual}µs"
        if comparison.virtual
        else "in µs"
    )
    yield Text(
        f"Latencies {unit}; {NOTHING} means not published or not measured. "
        "Ratio: mainline maximum over PREEMPT_RT maximum.",
        style="dim",
    )
    yield ""
    for row in comparison.rows:
        yield Text.assemble((f"{row.load}: ", "bold"), row.sentence)
    yield from left_out(comparison)
    yield ""
    yield from _list("Conclusions from each sample", comparison.support)
    yield from _list("Differences between the two measurements", comparison.differences)
    yield from _list("Inconsistencies in the published table", comparison.notes)
    yield from caveat_list(comparison.caveats)


def published_table(rows: Sequence[PublishedRow]) -> Table:
    """Return the published figures of each load, and the measured ones below."""
    figures = columns("published")
    names = [
        f"{mark if one is figures[0] else ''}\n{one.heading}"
        for mark in ("RT", "mainline")
        for one in figures
    ]
    table = plain_table("\nload", "", right=[*names, "\nratio"], gap=1)
    for row in rows:
        for name, whose, cells, quotient in (
            (
                row.load,
                "published",
                published_cells(row.published),
                row.published.ratio,
            ),
            ("", "measured", measured_cells(row.measured), row.measured.ratio),
        ):
            texts = [
                Text(text, style="bold" if figure.strong and text != NOTHING else "")
                for figure, text in cells
            ]
            table.add_row(name, whose, *texts, Text(ratio(quotient)))
    return table


def left_out(comparison: PublishedComparison) -> Iterator[RenderableType]:
    """Name the loads that one of the two has not."""
    for said, loads in (
        ("Published but not measured", comparison.not_measured),
        ("Measured but not published", comparison.not_published),
    ):
        if loads:
            yield Text(f"{said}: {enumeration(loads)}.")


def _list(heading: str, items: Sequence[str]) -> Iterator[RenderableType]:
    if items:
        yield Text(heading, style="bold")
        for item in items:
            said = item if item.endswith(".") else f"{item}."
            yield Padding(Text(f"• {capital(said)}"), (0, 0, 0, 0))
        yield ""
