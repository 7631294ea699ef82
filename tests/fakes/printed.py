"""Documents as the terminal shows them, as text to compare."""

from collections.abc import Iterable

from rich.console import Console

from rtscope.present.document import Block
from rtscope.present.documents.results import Result, print_brief, print_text
from rtscope.present.documents.shared import More
from rtscope.present.render.fitted import COLUMNS
from rtscope.present.render.terminal import print_blocks


def render_text(told: Result, *, width: int = COLUMNS) -> str:
    """Return the long form as plain text, as a pipe gets it."""
    console = _console(width)
    with console.capture() as capture:
        print_text(told, console)
    return _lines(capture.get())


def render_brief(told: Result, *, more: More) -> str:
    """Return the short form as plain text."""
    console = _console(COLUMNS)
    with console.capture() as capture:
        print_brief(told, console, more=more)
    return _lines(capture.get())


def printed(blocks: Iterable[Block], *, width: int = 80) -> str:
    """Return blocks as plain text."""
    console = _console(width)
    with console.capture() as capture:
        print_blocks(blocks, console)
    return capture.get()


def _console(width: int) -> Console:
    return Console(width=width, no_color=True, force_terminal=False, color_system=None)


def _lines(printed: str) -> str:
    return "\n".join(line.rstrip() for line in printed.splitlines()) + "\n"
