"""
Documents on a terminal: plain on a pipe.

Red is bad or invalid, yellow open or limited, green held. rich honours NO_COLOR. Text
is passed as `Text`: rich takes nothing in it for markup.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from rich import table as rich_table
from rich.cells import cell_len
from rich.console import Console, OverflowMethod, RenderableType
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.style import Style
from rich.text import Text

from rtscope.host.errors import first_of
from rtscope.present.document import (
    Block,
    Fit,
    Item,
    Key,
    Lines,
    Note,
    Notes,
    Phrase,
    Section,
    Span,
    Table,
    Weight,
    Words,
)
from rtscope.record.caveats.catalogue import Effect

STYLES: Mapping[Weight, str] = {
    "": "",
    "strong": "bold",
    "muted": "dim",
    "note": "cyan",
    "good": "green",
    "limit": "yellow",
    "open": "bold yellow",
    "bad": "red",
    "alarm": "bold red",
    "unseen": "magenta",
}
EFFECTS: Mapping[Effect, Weight] = {
    Effect.INVALID: "alarm",
    Effect.LIMIT: "limit",
    Effect.NOTE: "",
}

FEWEST_OF_A_NAME = 6
"""Characters by which it is still known."""

_LINES: Mapping[Fit, OverflowMethod] = {"cut": "ellipsis", "whole": "ignore"}


def print_blocks(
    blocks: Iterable[Block], console: Console, *, width: int | None = None
) -> None:
    """Print blocks, each in lines of at most `width` characters."""
    room = console.width if width is None else min(width, console.width)
    for block in blocks:
        print_parts(rendered(with_whole_numbers(block, room)), console, width=width)


def print_parts(
    parts: Iterable[RenderableType], console: Console, *, width: int | None
) -> None:
    """Print what `rendered` gave; a command is one line, however long."""
    for part in parts:
        if isinstance(part, Segments) and console.color_system is None:
            part = Segments([Segment("".join(one.text for one in part.segments))])
        # Of texts, rich prints a copy that has lost how they fit.
        fit = part.overflow if isinstance(part, Text) else None
        console.print(
            part,
            width=width,
            no_wrap=True if fit else None,
            overflow=fit,
            crop=fit != "ignore",
            highlight=False,
            markup=False,
            emoji=False,
        )


def is_whole(part: RenderableType) -> bool:
    """Whether no line breaks in it."""
    return isinstance(part, Text) and part.overflow == "ignore"


def rendered(block: Block) -> Iterator[RenderableType]:
    """Yield what rich prints of a block."""
    match block:
        case str():
            yield Text(block)
        case tuple():
            yield _span(block)
        case Words():
            text = _words(block)
            yield _indented(text, block.indent) if block.indent else text
        case Item():
            yield from _item(block)
        case Table():
            yield _indented(_table(block), block.indent)
        case Lines():
            yield Segments(_segments(block))
        case Notes():
            yield from _notes(block)
        case Section():
            yield Text(block.heading, style="bold")
            for one in block.blocks:
                yield from rendered(one)
            yield Text("")


def _indented(part: RenderableType, by: int) -> Padding:
    return Padding(part, (0, 0, 0, by), expand=False)


def _words(words: Words) -> Text:
    made = Text(no_wrap=words.fit in _LINES or None, overflow=_LINES.get(words.fit))
    return made.append_text(Text("").join(map(_span, words.spans)))


def _text(phrase: Phrase) -> Text:
    return _words(phrase) if isinstance(phrase, Words) else _span(phrase)


def _span(span: Span) -> Text:
    match span:
        case str():
            return Text(span)
        case Key():
            return Text()
    text, weight = span
    return Text(text, STYLES[weight])


def _segments(block: Lines) -> Iterator[Segment]:
    """Yield the pieces of lines as they are: of 20,000, rich needs seconds."""
    for spans in block.lines:
        for span in spans:
            text = _span(span)
            yield Segment(text.plain, Style.parse(str(text.style)))
        yield Segment.line()


def _item(item: Item) -> Iterator[RenderableType]:
    text = _text(item.words)
    if item.mark == "bullet":
        grid = rich_table.Table.grid(padding=(0, 1, 0, 0))
        grid.add_column(width=1)
        grid.add_column()
        grid.add_row(Text("•"), text)
        yield grid
    else:
        yield Padding(text, (0, 0, 0, 2)) if item.mark == "indent" else text
    indent = 2 if item.mark == "nothing" else 4
    for words in item.then:
        yield Padding(_text(words), (0, 0, 0, indent))


def _table(table: Table) -> rich_table.Table:
    made = rich_table.Table(
        box=None,
        padding=(0, table.gap, 0, 0),
        pad_edge=False,
        header_style="bold",
        show_header=any(column.heading for column in table.columns),
        expand=table.fills,
    )
    for column in table.columns:
        made.add_column(
            Text(column.heading),
            justify="right" if column.right else "left",
            no_wrap=column.fit == "cut",
            overflow="fold" if column.fit == "folds" else "ellipsis",
            width=column.width,
            # Of a column without a word rich measures 0 and needs 1.
            min_width=column.least or 1,
            ratio=column.share,
        )
    for row in table.rows:
        made.add_row(*map(_text, row))
    return made


def with_whole_numbers(block: Block, width: int) -> Block:
    """Cut the longest name of a table that is too wide, and no number beside it; where
    words wrap, they give way instead."""
    if not isinstance(block, Table) or block.fills or not block.rows:
        return block
    if any(column.fit != "cut" for column in block.columns):
        return block
    widths = _widths(block)
    names = [
        number
        for number, column in enumerate(block.columns)
        if not column.right and column.width is None
    ]
    beyond = sum(widths) + block.gap * (len(widths) - 1) + block.indent - width
    if beyond <= 0 or not names:
        return block
    longest = max(names, key=lambda number: widths[number])
    room = widths[longest] - beyond
    if room < FEWEST_OF_A_NAME:
        return block
    columns = list(block.columns)
    columns[longest] = replace(columns[longest], width=room)
    return replace(block, columns=tuple(columns))


def _widths(block: Table) -> list[int]:
    """Return how wide each column is that nothing cuts."""
    return [
        column.width or max(column.least or 1, cell_len(column.heading), *cells)
        for column, *cells in zip(
            block.columns,
            *([_text(cell).cell_len for cell in row] for row in block.rows),
            strict=True,
        )
    ]


def _notes(block: Notes) -> Iterator[RenderableType]:
    """List the doubts, each with its remedy."""
    if not block.notes:
        yield Text("No caveats.")
        yield Text("")
        return
    items = tuple(map(_note, block.notes))
    yield from rendered(Section("Caveats", items))


def _note(note: Note) -> Item:
    said = f" {note.says}"
    if note.details:
        said += f" ({first_of(2, note.details, between='; ', last='; ')})"
    if not note.everywhere:
        said += f" [{first_of(4, note.runs)}]"
    then = Words(((f"→ {note.remedy}", "muted"),))
    return Item(Words(((note.label, EFFECTS[note.effect]), said)), (then,))
