"""
The report on a terminal: gravest first, plain on a pipe, readable at 60 columns.

Colours mean something or are not there: red for what is bad or invalid, yellow for
what is open or capped, green for what held. NO_COLOR is honoured by rich itself. Text
is passed as `Text`, so nothing in it is taken for markup.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rtscope.caveats.catalogue import Effect
from rtscope.report.formats.pairtext import pair_sentences, pair_table
from rtscope.report.model import seedvariation
from rtscope.report.model.build import Model
from rtscope.report.model.caveats import MergedCaveat
from rtscope.report.model.rows import Row
from rtscope.report.model.verdicts import Tone, Verdict
from rtscope.report.words import NOTHING, count, duration, percentile_ns, plural
from rtscope.units import format_us

TONES: Mapping[Tone, str] = {"bad": "bold red", "open": "bold yellow", "good": "green"}
EFFECTS: Mapping[Effect, str] = {
    Effect.INVALID: "bold red",
    Effect.CAP: "yellow",
    Effect.NOTE: "",
}
EFFECT_WORDS: Mapping[Effect, str] = {
    Effect.INVALID: "INVALID",
    Effect.CAP: "CAP",
    Effect.NOTE: "note",
}

ONE_TABLE_COLUMNS = 100
"""Narrower terminals get two tables: first what counts, then the rest."""

LONGEST_NAME = 12
"""A longer name of a variant gets a letter in the table, and a line below."""


def print_text(model: Model, console: Console, *, page: str | None = None) -> None:
    """Print the report; `page` is where the full one is."""
    for part in _parts(model, console.width, page):
        console.print(part, highlight=False, markup=False, emoji=False)


def render_text(model: Model, *, width: int = 80, page: str | None = None) -> str:
    """Return the report as plain text, as a pipe gets it."""
    return plain_text(_parts(model, width, page), width=width)


def plain_text(parts: Iterable[RenderableType], *, width: int) -> str:
    """Render parts without colour, and without spaces at the ends of lines."""
    console = Console(
        width=width, no_color=True, force_terminal=False, color_system=None
    )
    with console.capture() as capture:
        for part in parts:
            console.print(part, highlight=False, markup=False, emoji=False)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def _parts(model: Model, width: int, page: str | None) -> Iterator[RenderableType]:
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
        yield from pair_sentences(model.pair)
    yield from _seeds(model)
    yield from _findings(model)
    yield from caveat_lines(model.caveats)
    for command in model.commands:
        yield Text.assemble(("To repeat it: ", "bold"), command)
    if page is not None:
        yield Text.assemble(("Charts, details, definitions: ", "bold"), page)


def _verdict(verdict: Verdict) -> Iterator[RenderableType]:
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
    if model.pair is not None:
        yield from pair_table(model.pair, width=width)
    letters = _letters(model)
    first = ("max", "samples", "skipped", "caveats", "p99.9", "p99.999")
    second = ("min", "avg", "stdev", "bogo-ops/s")
    wide = width >= ONE_TABLE_COLUMNS
    if model.pair is not None:  # what the table above does not have
        tables: tuple[tuple[str, ...], ...] = (
            ("samples", "caveats", "p99.9", "p99.999", "stdev", "bogo-ops/s"),
        )
    else:
        tables = ((*first, *second),) if wide else (first, second)
    for columns in tables:
        yield _table(_lettered(model.rows, letters), columns, letters)
        yield ""
    notes = [f"Latencies in {model.virtual}µs."]
    if any(_is_unresolved(row) for row in model.rows):
        notes.append(f"{NOTHING} under p99.x: not resolvable, too few samples.")
    if any(row.runs > 1 for row in model.rows):
        runs = sorted({row.runs for row in model.rows})
        notes.append(f"{' or '.join(map(str, runs))} runs merged in each row.")
    spans = dict.fromkeys(duration(row.observed_ns) for row in model.rows)
    cpus = dict.fromkeys(plural(row.cpus, "CPU") for row in model.rows)
    notes.append(f"Watched per row: {' or '.join(spans)}, {' or '.join(cpus)}.")
    yield Text(" ".join(notes), style="dim")
    for name, letter in letters.items():
        if letter != name and model.pair is None:
            yield Text(f"{letter} = {name}")
    yield ""


def _seeds(model: Model) -> Iterator[RenderableType]:
    if not model.seeds:
        return
    letters = _letters(model)
    yield Text(seedvariation.title_of(model.seeds), style="bold")
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("load", no_wrap=True)
    if any(letters):
        table.add_column("", no_wrap=True)
    for name in seedvariation.HEADINGS:
        table.add_column(name, justify="right")
    for line in model.seeds:
        over = line.over
        table.add_row(
            line.row.load,
            *([letters[line.row.variant]] if any(letters) else []),
            format_us(over.lowest_ns),
            format_us(over.median_ns),
            Text(format_us(over.highest_ns), style="bold"),
            str(over.worst_seed),
            str(len(over.maxima_ns)),
        )
    yield table
    yield Text(seedvariation.EXPLAINED, style="dim")
    yield ""


def _letters(model: Model) -> dict[str, str]:
    if model.pair is not None:
        return {s.label: x for s, x in zip(model.pair.sides, "AB", strict=True)}
    names = list(dict.fromkeys(row.variant for row in model.rows))
    if all(len(name) <= LONGEST_NAME for name in names):
        return {name: name for name in names}
    return {name: chr(ord("A") + i % 26) for i, name in enumerate(names)}


def _lettered(rows: Sequence[Row], letters: Mapping[str, str]) -> Sequence[Row]:
    """Put the rows of each load in the order of their letters or names as they came."""
    loads = list(dict.fromkeys(row.load for row in rows))
    if any(len(letter) != 1 for letter in letters.values()):
        return rows
    return sorted(rows, key=lambda r: (loads.index(r.load), letters[r.variant]))


def _table(
    rows: Sequence[Row], columns: Sequence[str], letters: Mapping[str, str]
) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("load", no_wrap=True)
    if any(letters):
        table.add_column("", no_wrap=True)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    before = None
    for row in rows:
        cells = [Text(row.load if row.load != before else "")]
        if any(letters):
            cells.append(Text(letters[row.variant]))
        before = row.load
        table.add_row(*cells, *(_cell(row, name) for name in columns))
    return table


def _cell(row: Row, column: str) -> Text:
    if column == "caveats":
        return Text(str(row.caveats))
    if column == "bogo-ops/s":
        rate = row.total_throughput
        return Text(NOTHING if rate is None else count(rate))
    if row.summary is None:
        return Text(NOTHING)
    if column == "skipped":
        style = "red" if row.summary.skipped else ""
        return Text(f"{row.summary.skipped:,}", style=style)
    if column == "samples":
        return Text(f"{row.summary.samples:,}")
    if column.startswith("p"):
        return Text(format_us(percentile_ns(row.summary, float(column[1:]))))
    latencies = {
        "max": row.summary.max_ns,
        "min": row.summary.min_ns,
        "avg": row.summary.mean_ns,
        "stdev": row.summary.stdev_ns,
    }
    return Text(format_us(latencies[column]), style="bold" if column == "max" else "")


def _is_unresolved(row: Row) -> bool:
    return row.summary is not None and percentile_ns(row.summary, 99.999) is None


def _findings(model: Model) -> Iterator[RenderableType]:
    if model.findings:
        yield Text("Findings", style="bold")
        for finding in model.findings:
            yield _bullet(Text(finding))
        yield ""


def caveat_lines(caveats: Sequence[MergedCaveat]) -> Iterator[RenderableType]:
    """List the caveats, each with its remedy."""
    if not caveats:
        yield Text("No caveats.")
        yield ""
        return
    yield Text("Caveats", style="bold")
    for caveat in caveats:
        text = Text.assemble(
            (EFFECT_WORDS[caveat.effect], EFFECTS[caveat.effect]), f" {caveat.says}"
        )
        if caveat.details:
            text.append(f" ({'; '.join(caveat.details[:2])}{_more(caveat)})")
        if not caveat.everywhere:
            text.append(f" [{', '.join(caveat.runs[:4])}{_more_runs(caveat)}]")
        yield _bullet(text)
        yield Padding(Text(f"→ {caveat.remedy}", style="dim"), (0, 0, 0, 4))
    yield ""


def _more(caveat: MergedCaveat) -> str:
    left = len(caveat.details) - 2
    return f"; {left} more" if left > 0 else ""


def _more_runs(caveat: MergedCaveat) -> str:
    left = len(caveat.runs) - 4
    return f" and {left} more" if left > 0 else ""


def _bullet(text: Text) -> RenderableType:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=1)
    table.add_column()
    table.add_row(Text("•"), text)
    return table
