"""
What a person reads of a result, before it is for a terminal, a page or Markdown.

A verb makes blocks of its result; the renderers of `render/` write them, and know no
verb. A text is a paragraph, and an empty one a blank line.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from markupsafe import Markup

from rtscope.record.caveats.catalogue import Effect

Weight = Literal[
    "", "strong", "muted", "note", "good", "limit", "open", "bad", "alarm", "unseen"
]
"""What a piece of text means for the reader; each form has a style for it."""


@dataclass(frozen=True, slots=True)
class Key:
    """The mark of a colour in a chart, of a page alone."""

    colour: int


Span = str | tuple[str, Weight] | Key
"""A piece of a sentence."""

Mark = Literal["bullet", "indent", "nothing"]
"""How an item begins on a terminal."""

Fit = Literal["cut", "wraps", "folds", "whole"]
"""What becomes of text that is wider than there is room; `whole` is a line's alone."""


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
class Words:
    """A paragraph of pieces with weights."""

    spans: tuple[Span, ...]
    indent: int = 0
    """Characters on a terminal."""
    fit: Fit = "wraps"
    """On a terminal; `whole` is a command, which no line breaks."""

    @property
    def plain(self) -> str:
        """Its text."""
        return "".join(
            one if isinstance(one, str) else "" if isinstance(one, Key) else one[0]
            for one in self.spans
        )


Phrase = Span | Words
"""A sentence: one piece, or several."""


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a list."""

    words: Phrase
    then: tuple[Phrase, ...] = ()
    """What to do about it, or to know."""
    mark: Mark = "bullet"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    heading: str
    right: bool = False
    fit: Fit = "cut"
    width: int | None = None
    """Characters on a terminal; None: as wide as its cells."""
    least: int | None = None
    """Characters at least."""
    share: int | None = None
    """Of the width that is left, if it takes a part of that."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table without lines; it has a head if a column has a heading."""

    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Phrase]]
    gap: int = 2
    indent: int = 0
    fills: bool = False
    """Whether it is as wide as the terminal."""
    label: str = ""
    """Its name on a page."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Many lines that a verb has laid out, as short as a terminal is wide."""

    lines: Sequence[Sequence[Span]]


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing, of a page alone."""

    markup: Markup
    caption: str
    beside: bool = False
    """Whether it shares a line with its neighbours."""


@dataclass(frozen=True, slots=True)
class Folded:
    """Blocks of a page alone, shown when the reader asks for them."""

    summary: str
    blocks: tuple["Block", ...]


@dataclass(frozen=True, slots=True)
class Note:
    """One kind of caveat, with the details of each run."""

    id: str
    effect: Effect
    label: str
    """The word for its effect."""
    says: str
    details: tuple[str, ...]
    remedy: str
    runs: tuple[str, ...]
    everywhere: bool
    """Whether every run of the report has it."""


@dataclass(frozen=True, slots=True)
class Notes:
    """All caveats, the gravest first; an empty list is shown as such."""

    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks with a heading."""

    heading: str
    blocks: tuple["Block", ...]


Block = Phrase | Item | Table | Lines | Notes | Section | Chart | Folded


@dataclass(frozen=True, slots=True)
class Document:
    """All that a form shows of a result."""

    title: str
    blocks: tuple[Block, ...]
    made_by: str = ""
    subtitle: tuple[str, ...] = ()
    """Lines below the title of a page."""


def table(
    left: Iterable[str],
    right: Iterable[str],
    rows: Sequence[Sequence[Phrase]],
    *,
    last: Iterable[str] = (),
    gap: int = 2,
    fit: Fit = "cut",
) -> Table:
    """Return a table of names, then numbers, and last more words."""
    columns = (
        *(Column(heading, fit=fit) for heading in left),
        *(Column(heading, right=True, fit=fit) for heading in right),
        *(Column(heading, fit=fit) for heading in last),
    )
    return Table(columns, rows, gap)
