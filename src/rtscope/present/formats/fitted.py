"""
Fit what counts of a result into one look at a terminal: 22 lines of 80 columns.

A short form is composed with less and less room, until it fits. The order in which
things go is the same everywhere: sentences beyond the first, blank lines, rows of the
table. What invalidates or limits a result never goes, even where nothing fits.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from rich.console import Console, RenderableType
from rich.text import Text

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


def print_fitted(compose: Compose, console: Console, *, lines: int = LINES) -> None:
    """Print the form that has room for most and still fits into the lines."""
    width = min(console.width, COLUMNS)
    parts: list[tuple[RenderableType, bool]] = []
    for room in _rooms(width):
        composed = [part for part in compose(room) if room.blanks or part != ""]
        parts = [(part, _is_command(part)) for part in composed]
        heights = (
            _height(part, console, _ANY_WIDTH if is_command else width)
            for part, is_command in parts
        )
        if sum(heights) <= lines:
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


def _height(part: RenderableType, console: Console, width: int) -> int:
    options = console.options.update(width=width)
    return len(console.render_lines(part, options, pad=False))


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
