"""The tables of rows and of two sides, and the doubts of a result in a line each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from rtscope.host.units import plural
from rtscope.present.document import (
    Block,
    Item,
    Note,
    Section,
    Span,
    Table,
    Weight,
    Words,
    table,
)
from rtscope.present.model.rows import Row
from rtscope.present.model.side_by_side import SideBySide
from rtscope.present.model.verdicts import Tone
from rtscope.present.render.fitted import Room, command_to_type
from rtscope.present.render.terminal import EFFECTS
from rtscope.present.words import cut, ratio
from rtscope.record.caveats.catalogue import Effect
from rtscope.stats.figures import Figure, compared

TONES: Mapping[Tone, Weight] = {
    "bad": "alarm",
    "open": "open",
    "good": "good",
}

WIDE = 100
"""Narrower terminals get two tables, first what counts, or one with fewer columns."""


class Form(Enum):
    """For what a document is made, where a table of Markdown says more."""

    TERMINAL = auto()
    MARKDOWN = auto()


@dataclass(frozen=True, slots=True)
class More:
    """Where more is than a terminal shows."""

    command: str
    """The command that prints this report again."""
    page: str = ""
    """The file with the page; empty without one."""


def strong_if(text: str, condition: object) -> Span:
    """Return a cell that stands out on a condition."""
    return (text, "strong") if condition else text


def cell_of(figure: Figure, row: Row, *, zero: bool = False) -> Span:
    """Return a figure of a row; `zero`: 0 where nothing was measured."""
    text = figure.text(row, zero=zero)
    if figure.is_bad(row):
        return text, "bad"
    return strong_if(text, figure.strong and figure.of(row) is not None)


def rows_table(
    rows: Sequence[Row],
    figures: Sequence[Figure],
    letters: Mapping[str, str],
    *,
    kind: str = "",
    form: Form = Form.TERMINAL,
) -> Table:
    """Return the table of these rows; `letters` stand for their variants."""
    left = ("load", kind) if any(letters) else ("load",)
    long = form is Form.MARKDOWN
    made: list[list[Span]] = []
    before = None
    for row in rows:
        names = [row.load if long or row.load != before else "", letters[row.variant]]
        before = row.load
        cells = (cell_of(one, row, zero=long) for one in figures)
        made.append([*names[: len(left)], *cells])
    return table(left, (one.heading for one in figures), made)


def sides_table(
    pair: SideBySide, figures: Sequence[Figure], *, width: int
) -> Iterator[Block]:
    """Name both sides, give their table, and the limits of such a sample."""
    for mark, side in zip("AB", pair.sides, strict=True):
        model = f", {side.model}" if side.model else ""
        said = Words(((f"{mark} = {side.label}", "strong"), model))
        yield Item(said, mark="nothing")
    names = [f"{mark} {one.heading}" for mark in "AB" for one in figures]
    names += [f"{one.heading} B/A" for one in compared()]
    yield table(
        ("load",),
        names,
        [
            [
                row.load,
                *(cell_of(one, side) for side in row.rows for one in figures),
                *((ratio(one), "strong") for one in row.ratios.values()),
            ]
            for row in pair.rows
        ],
        gap=2 if width >= WIDE else 1,
        fit="wraps",
    )
    yield (pair.caution, "muted")


def conclusions(pair: SideBySide) -> Section:
    """Return what follows from the samples of each load."""
    said = [Words(((f"{row.load}: ", "strong"), row.sentence)) for row in pair.rows]
    items = tuple(Item(one, mark="indent") for one in said)
    return Section("Conclusions from the samples", items)


def bullets(heading: str, texts: Iterable[str]) -> Iterator[Section]:
    """Yield a list with its heading, if it has items."""
    if items := tuple(Item(one) for one in texts):
        yield Section(heading, items)


def grave(notes: Iterable[Note]) -> list[Note]:
    """Return those that invalidate or limit a result."""
    return [one for one in notes if one.effect is not Effect.NOTE]


def notes_in_lines(notes: Sequence[Note], more: More, room: Room) -> Iterator[Block]:
    """Yield a line for each grave doubt, then the numbers of all, and where all are."""
    for note in grave(notes):
        label = f"{note.effect.upper()} "
        line = _in_a_line(note, room.width - len(label))
        yield Words(((label, EFFECTS[note.effect]), line))
    if not notes:
        yield "No caveats."
        return
    said = []
    for effect, verb in ((Effect.INVALID, "invalidate"), (Effect.LIMIT, "limit")):
        count = sum(one.effect is effect for one in notes)
        if count:
            verb += "s" if count == 1 else ""
            said.append(f"{plural(count, 'caveat')} {verb} this result")
    if left := len(notes) - len(grave(notes)):
        said.append(plural(left, "note"))
    yield from command_to_type(f"{'; '.join(said)}:", f"{more.command} --notes", room)


def _in_a_line(note: Note, width: int) -> str:
    """Shorten a message at the end of a clause, so that it fits into a line."""
    runs = "" if note.everywhere else f" ({plural(len(note.runs), 'run')})"
    text = note.says
    for end in ("; ", " (", ": "):
        if len(text) + len(runs) > width:
            text = text.partition(end)[0]
    left = width - len(runs)
    return (text if len(text) <= left else cut(text, left - 1)) + runs


def foot(more: More) -> Words:
    """Return where the rest is."""
    return Words(
        (
            f"Page with charts: {more.page}"
            if more.page
            else f"Everything: {more.command} -v",
        ),
        fit="whole",
    )
