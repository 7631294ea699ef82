"""
One look at a terminal, 22 lines of 80 columns: all that counts of a result fits in.

A short form is composed with less and less room, until it fits. The order in which
things go is the same everywhere: sentences beyond the first, blank lines, rows of the
table. What invalidates or limits a result never goes, even where nothing fits.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from rich.console import Console, RenderableType

from rtscope.present.document import Block, Words
from rtscope.present.render.terminal import (
    is_whole,
    print_parts,
    rendered,
    with_whole_numbers,
)

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


Compose = Callable[[Room], Iterable[Block]]
"""Returns the blocks of a short form. A command is not broken."""


def print_fitted(compose: Compose, console: Console, *, lines: int = LINES) -> None:
    """Print the form that has room for most and still fits into the lines."""
    width = min(console.width, COLUMNS)
    parts: list[RenderableType] = []
    for room in _rooms(width):
        blocks = (
            with_whole_numbers(one, width)
            for one in compose(room)
            if room.blanks or one != ""
        )
        parts = [part for block in blocks for part in rendered(block)]
        height = 0
        for part in parts:
            most = _ANY_WIDTH if is_whole(part) else width
            options = console.options.update(width=most)
            height += len(console.render_lines(part, options, pad=False))
        if height <= lines:
            break
    print_parts(parts, console, width=width)


def _rooms(width: int) -> Iterator[Room]:
    room = Room(width=width)
    for sentences in range(MOST_SENTENCES, -1, -1):
        room = replace(room, sentences=sentences)
        yield room
    room = replace(room, blanks=False)
    for rows in (MOST_ROWS, *range(20, FEWEST_ROWS - 1, -1)):
        yield replace(room, rows=rows)


def command_to_type(said: str, typed: str, room: Room) -> Iterator[Block]:
    """Say it with a command in the same line, or below it where that is too long."""
    if len(said) + 1 + len(typed) <= room.width:
        yield Words((f"{said} {typed}",), fit="whole")
    else:
        yield said
        yield Words((f"  {typed}",), fit="whole")


def rows_left_out(count: int) -> Iterator[Block]:
    """Count the rows of a table that had no room."""
    if count > 0:
        yield (f"and {count} more: -v", "muted")
