"""
The standard streams of this process; they show foreign control characters.

A message that cannot be written (full, closed, a broken pipe, a terminal that is gone)
is dropped. Only `Visible.drawn`, for rich, passes sequences on.
"""

import io
import os
import sys
from typing import TextIO

from rtscope.cli.messages import Unfailing
from rtscope.host.escape import visible_lines


class Visible(io.TextIOWrapper):
    """A text stream that shows control characters instead of sending them."""

    drawn: TextIO
    """The same stream for text that is filtered already."""

    def write(self, text: str, /) -> int:
        """Write the text with its control characters visible."""
        super().write(visible_lines(text))
        return len(text)


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
        unfailing = Unfailing(2, "w", closefd=False)
        sys.stderr = _visible(unfailing, encoding, "backslashreplace")


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
