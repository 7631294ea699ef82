"""
Standard streams that cost no measurement and carry no foreign terminal sequences.

A message that cannot be written (full, closed, a broken pipe, a terminal that is gone)
is dropped. Control characters in whatever is printed become visible, `\\x1b` for ESC:
names and messages come from boards, records and bundles of others. Only `drawn`, for
rich, passes sequences on; its consoles filter the text before they add colours.
"""

import io
import os
import sys
from collections.abc import Iterable
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from rtscope.report.escape import visible_lines


class _Unfailing(io.FileIO):
    """Messages: the work goes on when nobody can read them."""

    def write(self, content: object, /) -> int:
        """Write what can be written, and drop the rest."""
        size = memoryview(content).nbytes  # type: ignore[arg-type]
        try:
            written = super().write(content)  # type: ignore[arg-type]
        except OSError:
            return size
        return size if written is None else written


class Visible(io.TextIOWrapper):
    """A text stream that shows control characters instead of sending them."""

    drawn: TextIO
    """The same stream for text that is filtered already."""

    def write(self, text: str, /) -> int:
        """Write the text with its control characters visible."""
        super().write(visible_lines(text))
        return len(text)


class VisibleConsole(Console):
    """A console that shows control characters in texts, and keeps its own colours."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Filter each text before it gets its style."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            shown = text if control else visible_lines(text)
            yield segment if shown is text else Segment(shown, style)


def open_streams() -> None:
    """Replace the standard streams of this process; a closed one goes to /dev/null."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115 -- to the end
    if sys.stdout is None or _is_of_process(sys.stdout, 1):
        encoding = sys.stdout.encoding if sys.stdout else None
        sys.stdout = _visible(io.FileIO(1, "w", closefd=False), encoding, "replace")
    if sys.stderr is None or _is_of_process(sys.stderr, 2):
        encoding = sys.stderr.encoding if sys.stderr else None
        unfailing = _Unfailing(2, "w", closefd=False)
        sys.stderr = _visible(unfailing, encoding, "backslashreplace")


def drawn(stream: TextIO) -> TextIO:
    """Return where rich writes what it has drawn."""
    return stream.drawn if isinstance(stream, Visible) else stream


def _is_of_process(stream: TextIO, number: int) -> bool:
    """Whether it is the real stream, not one that a test put in its place."""
    try:
        return stream.fileno() == number
    except (OSError, ValueError):
        return False


def _visible(raw: io.FileIO, encoding: str | None, errors: str) -> Visible:
    buffer = io.BufferedWriter(raw)
    made = Visible(buffer, encoding, errors, line_buffering=True)
    made.drawn = io.TextIOWrapper(buffer, encoding, errors, line_buffering=True)
    return made
