"""
One look at a terminal, 22 lines of 80 columns: all that counts of a result fits in.

A short form is composed with less and less room, until it fits. The order in which
things go is the same everywhere: sentences beyond the first, blank lines, rows of the
table. What invalidates or limits a result never goes, even where nothing fits.

Here reports and comparisons: the answer, a table, the sentences that matter.

Of the caveats, those that invalidate or limit the result have a line each; the notes
are counted. `print_text` prints everything.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain

from rich.console import Console, RenderableType
from rich.text import Text

from rtscope.host.units import format_us, plural
from rtscope.present.formats.text import (
    EFFECTS,
    TONES,
    Document,
    caveat_list,
    in_letter_order,
    letters_of,
    plain_table,
    print_text,
    published_table,
    rows_table,
    sides_table,
)
from rtscope.present.model.build import Model
from rtscope.present.model.comparison import ComparisonReport, LoadComparison
from rtscope.present.model.published_comparison import PublishedComparison
from rtscope.present.model.rows import MergedCaveat, Row
from rtscope.present.model.verdicts import LoadVerdict, VerdictInWords
from rtscope.present.tables import columns, compared
from rtscope.present.words import NOTHING, capital, cut, duration, enumeration
from rtscope.record.caveats.catalogue import Effect

LINES = 22
"""A terminal of 24 lines then still shows the command, and the next prompt."""
COLUMNS = 80

MOST_SENTENCES = 3
MOST_ROWS = 100
FEWEST_ROWS = 3

_ANY_WIDTH = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How much of what may be left out there is room for."""

    sentences: int = MOST_SENTENCES
    """Beyond those that a result needs."""
    blanks: bool = True
    rows: int = MOST_ROWS
    """Of a table."""
    width: int = COLUMNS


Compose = Callable[[Room], Iterable[RenderableType]]
"""Returns the parts of a short form. A text with `no_wrap` is a command: not broken."""


LONGEST_LABEL = 20
"""Of a set in the table of a comparison; a longer one gets a letter."""


class Detail(StrEnum):
    """How much of a result a terminal shows."""

    QUIET = "quiet"
    """The answer, in one line."""
    BRIEF = "brief"
    """One look: 22 lines of 80 columns."""
    NOTES = "notes"
    """Every caveat with its numbers and its remedy."""
    ALL = "all"


@dataclass(frozen=True, slots=True)
class More:
    """Where more is than a terminal shows."""

    command: str
    """The command that prints this report again."""
    page: str = ""
    """The file with the page; empty without one."""


def print_result(
    document: Document, console: Console, *, detail: Detail, more: More
) -> None:
    """Print as much of a report or a comparison as is asked for."""
    match detail:
        case Detail.QUIET:
            console.print(_answer(document), soft_wrap=True)
        case Detail.BRIEF:
            print_brief(document, console, more=more)
        case Detail.NOTES:
            for part in (
                Text(document.title, style="bold"),
                "",
                *caveat_list(document.caveats),
            ):
                console.print(part)
        case Detail.ALL:
            print_text(document, console, page=more.page or None)


def print_brief(document: Document, console: Console, *, more: More) -> None:
    """Print the short form of a report or a comparison."""

    def compose(room: Room) -> Iterable[RenderableType]:
        return chain(
            _body(document, room), _caveats(document.caveats, more, room), _foot(more)
        )

    print_fitted(compose, console)


def _body(document: Document, room: Room) -> Iterator[RenderableType]:
    match document:
        case Model():
            yield from _report(document, room)
        case ComparisonReport():
            yield from _comparison(document, room)
        case PublishedComparison():
            yield from _published(document, room)


def _answer(document: Document) -> Text:
    if not isinstance(document, Model):
        return Text(document.summary)
    if document.verdict is None:
        return Text(f"{document.headline.maximum} {document.headline.where}")
    verdict = document.verdict
    tone = TONES[verdict.tone]
    return Text.assemble((verdict.word, tone), f": {verdict.meaning}.")


# --- the parts of a report ------------------------------------------------------------


def _report(model: Model, room: Room) -> Iterator[RenderableType]:
    yield Text(model.title, style="bold")
    yield Text(model.subtitle)
    yield ""
    head = model.headline
    if model.verdict is not None:
        yield from _verdict(model.verdict, model.rows, room)
    else:
        yield Text.assemble((head.maximum, "bold"), f" {head.where}")
        yield Text(head.support)
    yield ""
    yield from _table(model, room)
    yield ""
    for finding in _findings(model)[: room.sentences]:
        yield Text(finding)


def _findings(model: Model) -> Sequence[str]:
    """Return the findings, the worst first, and next to it the cause if explained."""
    in_the_table = f"{model.headline.maximum} {model.headline.where}"
    causes = [sentence for one in model.explained for sentence in one.sentences]
    kept = (*causes, in_the_table)
    others = [one for one in model.findings if one not in kept]
    return [*others[:1], *causes[:1], *others[1:], *causes[1:]]


def _verdict(
    verdict: VerdictInWords, rows: Sequence[Row], room: Room
) -> Iterator[RenderableType]:
    yield Text(verdict.question)
    yield Text.assemble((verdict.word, TONES[verdict.tone]), f": {verdict.meaning}.")
    maxima = {row.name: row.summary.max_ns for row in rows if row.summary}
    deciding = [load for load in verdict.loads if load.word == verdict.word]
    if not deciding:
        return
    worst = max(deciding, key=lambda load: maxima.get(load.name, 0))
    yield Text(worst.sentence)
    if worst.run_next and room.sentences:
        yield Text(f"→ {worst.run_next}")
    others = [load for load in verdict.loads if load is not worst]
    if others:
        yield Text(f"{'; '.join(_by_word(others))}.")


def _by_word(loads: Sequence[LoadVerdict]) -> Iterator[str]:
    for word in dict.fromkeys(load.word for load in loads):
        same = [load.name for load in loads if load.word == word]
        yield f"{word}: {enumeration(same)}"


def _table(model: Model, room: Room) -> Iterator[RenderableType]:
    if model.pair is not None and len(model.pair.rows) <= room.rows:
        *sides, table, caution, _ = sides_table(
            model.pair, columns("pair", wide=False), compared(), width=COLUMNS
        )
        yield from (*sides, table)
        if room.sentences:
            yield caution
        return
    letters = letters_of(model)
    rows = in_letter_order(model.rows, letters)
    if len(rows) > room.rows:
        rows = _worst(rows, room.rows)
    figures = columns("brief")
    yield rows_table(rows, figures, letters)
    yield from rows_left_out(len(model.rows) - len(rows))
    notes = [f"Latencies in {model.virtual}µs."]
    if any(
        r.summary and f.percentile and f.of(r) is None for r in rows for f in figures
    ):
        notes.append(f"{NOTHING}: too few samples.")
    spans = dict.fromkeys(duration(row.observed_ns) for row in rows)
    cpus = dict.fromkeys(plural(row.cpus, "CPU") for row in rows)
    notes.append(f"Each row: {' or '.join(spans)}, {' or '.join(cpus)}.")
    yield Text(" ".join(notes), style="dim")
    for name, letter in letters.items():
        if letter != name:
            yield Text(f"{letter} = {name}")


def _worst(rows: Sequence[Row], count: int) -> Sequence[Row]:
    """Return the rows with the highest maxima, in the order in which they came."""
    ranked = sorted(rows, key=lambda r: r.summary.max_ns if r.summary else 0)
    kept = ranked[-count:]
    return [row for row in rows if row in kept]


# --- comparisons ----------------------------------------------------------------------


def _comparison(comparison: ComparisonReport, room: Room) -> Iterator[RenderableType]:
    yield Text(comparison.title, style="bold")
    yield Text(comparison.summary)
    yield ""
    labels = list(dict.fromkeys(s.label for c in comparison.loads for s in c.sides))
    names = _labels(labels)
    table = plain_table(
        "load", "", right=["max", "median max", "runs", "missed"], gap=2
    )
    table.add_column("  against the first", no_wrap=True)
    rows = list(chain.from_iterable(_set_rows(c, names) for c in comparison.loads))
    for cells in rows[: room.rows]:
        table.add_row(*cells)
    yield table
    yield from rows_left_out(len(rows) - room.rows)
    yield Text(
        f"Latencies in {comparison.virtual}µs. The unit of comparison is the run.",
        style="dim",
    )
    for label, name in names.items():
        if label != name:
            yield Text(f"{name} = {label}")
    yield ""
    if comparison.pair is not None and room.sentences > 1:
        yield Text(comparison.pair.summary)
    said = dict.fromkeys(o.word + o.rest for c in comparison.loads for o in c.outcomes)
    several = len(comparison.loads) > 1
    for sentence in list(said)[: room.sentences]:
        under = [
            c.load
            for c in comparison.loads
            if sentence in {o.word + o.rest for o in c.outcomes}
        ]
        head = f"{enumeration(under)}: " if several else ""
        yield Text.assemble((head, "bold"), sentence)


def _labels(labels: Sequence[str]) -> dict[str, str]:
    if all(len(label) <= LONGEST_LABEL for label in labels):
        return {label: label for label in labels}
    return {label: chr(ord("A") + i % 26) for i, label in enumerate(labels)}


def _set_rows(
    load: LoadComparison, names: dict[str, str]
) -> Iterator[tuple[Text, ...]]:
    words = ["", *(outcome.word.lower() for outcome in load.outcomes)]
    for number, side in enumerate(load.sides):
        row = side.row
        yield tuple(
            map(
                Text,
                (
                    cut(load.load, LONGEST_LABEL) if number == 0 else "",
                    names[side.label],
                    format_us(row.summary.max_ns if row.summary else None),
                    format_us(side.median_max_ns),
                    str(row.runs),
                    _counted(row.summary.missed_periods if row.summary else None),
                    f"  {words[number] if number < len(words) else ''}",
                ),
            )
        )


def _counted(number: int | None) -> str:
    return NOTHING if number is None else f"{number:,}"


def _published(comparison: PublishedComparison, room: Room) -> Iterator[RenderableType]:
    yield Text(comparison.title, style="bold")
    yield ""
    yield Text(comparison.summary)
    yield ""
    yield published_table(comparison.rows[: room.rows])
    yield from rows_left_out(len(comparison.rows) - room.rows)
    unit = f"{comparison.virtual}µs" if comparison.virtual else "µs"
    yield Text(
        f"Published in µs, measured in {unit}; ratio: mainline over PREEMPT_RT.",
        style="dim",
    )
    yield ""
    counted = (
        plural(len(comparison.differences), "difference"),
        plural(len(comparison.notes), "known inconsistency").replace("ys", "ies"),
    )
    yield Text(
        f"The measurements have {counted[0]} and the published table {counted[1]}: "
        "-v lists them."
    )
    for sentence in comparison.differences[: max(room.sentences - 1, 0)]:
        yield Text(f"{capital(sentence.rstrip('.'))}.")


# --- caveats by weight, and where the rest is --------------------------------------


def _caveats(
    caveats: Sequence[MergedCaveat], more: More, room: Room
) -> Iterator[RenderableType]:
    grave = [one for one in caveats if one.effect is not Effect.NOTE]
    notes = len(caveats) - len(grave)
    for caveat in grave:
        label = Text.assemble((caveat.effect.upper(), EFFECTS[caveat.effect]), " ")
        yield label.append(_in_a_line(caveat, room.width - len(label)))
    said = ["No caveats."] if not caveats else []
    for effect, verb in ((Effect.INVALID, "invalidate"), (Effect.LIMIT, "limit")):
        count = sum(one.effect is effect for one in caveats)
        if count:
            verb += "s" if count == 1 else ""
            said.append(f"{plural(count, 'caveat')} {verb} this result")
    if notes:
        said.append(plural(notes, "note"))
    if not caveats:
        yield Text(said[0])
        return
    yield from command_to_type(f"{'; '.join(said)}:", f"{more.command} --notes", room)


def _in_a_line(caveat: MergedCaveat, width: int) -> str:
    """Shorten a message at the end of a clause, so that it fits into a line."""
    runs = "" if caveat.everywhere else f" ({plural(len(caveat.runs), 'run')})"
    text = caveat.says
    for end in ("; ", " (", ": "):
        if len(text) + len(runs) > width:
            text = text.partition(end)[0]
    left = width - len(runs)
    return (text if len(text) <= left else cut(text, left - 1)) + runs


def _foot(more: More) -> Iterator[RenderableType]:
    all_of_it = Text(f"Everything: {more.command} -v", no_wrap=True)
    if not more.page:
        yield all_of_it
        return
    yield Text(f"Page with charts: {more.page}", no_wrap=True)


def print_fitted(compose: Compose, console: Console, *, lines: int = LINES) -> None:
    """Print the form that has room for most and still fits into the lines."""
    width = min(console.width, COLUMNS)
    parts: list[tuple[RenderableType, bool]] = []
    for room in _rooms(width):
        composed = [part for part in compose(room) if room.blanks or part != ""]
        parts = [(part, _is_command(part)) for part in composed]
        height = 0
        for part, is_command in parts:
            options = console.options.update(width=_ANY_WIDTH if is_command else width)
            height += len(console.render_lines(part, options, pad=False))
        if height <= lines:
            break
    for part, is_command in parts:
        if is_command:
            console.print(part, soft_wrap=True)
        else:
            console.print(part, width=width)


def _rooms(width: int) -> Iterator[Room]:
    room = Room(width=width)
    for sentences in range(MOST_SENTENCES, -1, -1):
        room = replace(room, sentences=sentences)
        yield room
    room = replace(room, blanks=False)
    for rows in (MOST_ROWS, *range(20, FEWEST_ROWS - 1, -1)):
        yield replace(room, rows=rows)


def _is_command(part: RenderableType) -> bool:
    return isinstance(part, Text) and bool(part.no_wrap)


def command_to_type(said: str, command: str, room: Room) -> Iterator[Text]:
    """Say it with a command in the same line, or below it where that is too long."""
    if len(said) + 1 + len(command) <= room.width:
        yield Text(f"{said} {command}", no_wrap=True)
    else:
        yield Text(said)
        yield Text(f"  {command}", no_wrap=True)


def rows_left_out(count: int) -> Iterator[Text]:
    """Count the rows of a table that had no room."""
    if count > 0:
        yield Text(f"and {count} more: -v", style="dim")
