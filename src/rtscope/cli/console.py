"""
Standard streams and consoles: standard output for results, standard error for messages.

They cost no measurement and carry no foreign terminal sequences. Control characters
in whatever is printed become visible, `\\x1b` for ESC: names and messages come from
boards, records and bundles of others. The consoles of rich filter the text before they
add colours.
"""

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from rtscope.cli.streams import Visible
from rtscope.host.escape import visible_lines
from rtscope.host.files.jsontext import json_text

if TYPE_CHECKING:
    from rtscope.present.document import Block

Json = Annotated[
    bool,
    typer.Option("--json", help="Result as JSON."),
]


class VisibleConsole(Console):
    """A console that shows control characters in texts, and keeps its own colours."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Filter each text before it gets its style."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            visible = text if control else visible_lines(text)
            yield segment if visible is text else Segment(visible, style)


@contextlib.contextmanager
def stdout_console() -> Iterator[Console]:
    """Give the console for results: colours on a terminal only, NO_COLOR kept."""
    console = _console(sys.stdout)
    with console.capture() as captured:
        yield console
    _put(captured.get(), _drawn(sys.stdout))


def _drawn(stream: TextIO) -> TextIO:
    """Return where rich writes what it has drawn."""
    return stream.drawn if isinstance(stream, Visible) else stream


def put(text: str) -> None:
    """Print a result; `streams.Output` says if it cannot be written."""
    _put(text, sys.stdout)


def _put(text: str, stream: TextIO) -> None:
    stream.write(text)
    stream.flush()


def put_json(value: object) -> None:
    """Print a result as JSON; see `put`."""
    put(json_text(value))


def put_blocks(*blocks: "Block") -> None:
    """Print a part of a document as a result; see `put`."""
    from rtscope.present.render.terminal import print_blocks

    with stdout_console() as console:
        print_blocks(blocks, console)


def say(text: str) -> None:
    """Print a message of rtscope on standard error, in one line."""
    print(f"rtscope: {text}", file=sys.stderr)


def note(text: str) -> None:
    """Print a line on standard error, wrapped where the terminal ends."""
    stderr_console().print(text, markup=False)


def log(text: str) -> None:
    """Print a message of rtscope as `note` does."""
    note(f"rtscope: {text}")


def stderr_console() -> Console:
    """Return the console for messages."""
    return _console(sys.stderr)


def _console(stream: TextIO) -> Console:
    """Return the console of a stream, which takes no `:a:` for a picture."""
    return VisibleConsole(file=_drawn(stream), highlight=False, emoji=False)


def own_command() -> tuple[str, ...]:
    """Return the words of this command, by which a unit of systemd can start it."""
    path = Path(sys.argv[0]).absolute()
    found = str(path) if os.access(path, os.X_OK) else shutil.which("rtscope")
    return (found,) if found else (sys.executable, "-m", "rtscope")


def typed_words() -> tuple[str, ...]:
    """Return the command as typed, without --out: a repetition needs another one."""
    words = iter(sys.argv[1:])
    kept = []
    for word in words:
        if word in ("--out", "-o"):
            next(words, None)
        elif not (word.startswith("--out=") or re.match("-o[^-]", word)):
            kept.append(word)
    return ("rtscope", *kept)
