"""
Standard streams and consoles: standard output for results, standard error for messages.

They cost no measurement and carry no foreign terminal sequences. Control characters
in whatever is printed become visible, `\\x1b` for ESC: names and messages come from
boards, records and bundles of others. The consoles of rich filter the text before they
add colours.

A message that cannot be written (full, closed, a broken pipe, a terminal that is gone)
is dropped. So is a result, which standard error then says; the exit status stays that
of the command. Only `Visible.drawn`, for rich, passes sequences on.
"""

import contextlib
import errno
import io
import os
import re
import select
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, TextIO

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from rtscope.host.escape import visible_lines
from rtscope.host.files.jsontext import json_text

if TYPE_CHECKING:
    from rtscope.present.document import Block

# --- the standard streams of this process; they show foreign control characters -------


class Visible(io.TextIOWrapper):
    """A text stream that shows control characters instead of sending them."""

    drawn: TextIO
    """The same stream for text that is filtered already."""

    def write(self, text: str, /) -> int:
        """Write the text with its control characters visible."""
        super().write(visible_lines(text))
        return len(text)


class Output(io.FileIO):
    """Results: the work goes on when they cannot be written, and says so once."""

    _is_lost = False

    def write(self, content: object, /) -> int:
        """Write it, or drop it from the first failure on."""
        view = memoryview(content).cast("B")  # type: ignore[arg-type]
        if self._is_lost:
            return view.nbytes
        try:
            while (written := super().write(view)) is None:  # a pipe of O_NONBLOCK
                select.select([], [self], [])
            return written
        except BrokenPipeError:  # `head` has read enough
            self._is_lost = True
        except OSError as error:
            self._is_lost = True
            closed = error.errno == errno.EBADF
            print(
                "rtscope: cannot write to standard output: "
                f"{'it is closed' if closed else error.strerror}; the exit status is "
                "that of the command",
                file=sys.stderr,
            )
        return view.nbytes


def open_streams() -> None:
    """Replace the standard streams of this process; a closed one goes to /dev/null."""
    for number, flags in enumerate((os.O_RDWR, os.O_RDONLY, os.O_RDWR)):
        try:
            os.fstat(number)
        except OSError:
            # It gets the lowest number that is free. A closed standard output is one
            # that cannot be written.
            os.open(os.devnull, flags)
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115 -- to the end
    if sys.stdout is None or _is_of_process(sys.stdout, 1):
        encoding = sys.stdout.encoding if sys.stdout else None
        sys.stdout = _visible(Output(1, "w", closefd=False), encoding, "replace")
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


# --- standard error that holds nobody up --------------------------------------------

# While rtscope measures, so is what nobody reads, and counted for the next reader.

READER_PATIENCE_S = 0.2
"""For a reader that is just slow: so long a message of a measurement may wait."""


class Unfailing(io.FileIO):
    """Messages: the work goes on when nobody can read them."""

    _at_once: io.FileIO | None = None
    """The same file, opened anew: its writes never wait."""
    _stalled = False
    _dropped_bytes = 0

    def write(self, content: object, /) -> int:
        """Write what can be written, and drop the rest."""
        view = memoryview(content).cast("B")  # type: ignore[arg-type]
        try:
            if self._at_once is not None:
                self._write_at_once(self._at_once, view)
                return view.nbytes
            written = super().write(view)
        except OSError:
            return view.nbytes
        return view.nbytes if written is None else written

    def never_wait(self) -> None:
        """Drop from now on what a pipe or a terminal does not take soon."""
        if self._at_once is not None:
            return
        kind = os.fstat(self.fileno()).st_mode
        if not stat.S_ISFIFO(kind) and not stat.S_ISCHR(kind):
            return  # a file, which takes everything
        # Another open file: whoever shares this one did not ask for O_NONBLOCK.
        path = f"/proc/self/fd/{self.fileno()}"
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        with contextlib.suppress(OSError):  # nobody reads, or it is another user's
            self._at_once = io.FileIO(os.open(path, flags), "w")

    def _write_at_once(self, file: io.FileIO, content: memoryview) -> None:
        if self._dropped_bytes:
            note = (
                f"\nrtscope: {self._dropped_bytes:,} bytes of messages were dropped: "
            )
            if not file.write(f"{note}nobody read standard error\n".encode()):
                self._dropped_bytes += content.nbytes
                return
            self._dropped_bytes, self._stalled = 0, False
        end = time.monotonic() + READER_PATIENCE_S
        while content.nbytes:
            written = file.write(content) or 0
            content = content[written:]
            left_s = 0.0 if self._stalled else end - time.monotonic()
            if not content.nbytes or (not written and left_s <= 0):
                break
            if not written:
                select.select([], [file], [], left_s)
        self._stalled = content.nbytes > 0
        self._dropped_bytes += content.nbytes


def never_wait_for_readers() -> None:
    """Let no message of this process wait: a measurement goes on beside it."""
    raw = getattr(getattr(sys.stderr, "buffer", None), "raw", None)
    if isinstance(raw, Unfailing):
        sys.stderr.flush()
        raw.never_wait()


# Standard streams and consoles: standard output for results, standard error for
# messages.

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
    console = VisibleConsole(file=_drawn(sys.stdout), highlight=False)
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
    return VisibleConsole(file=_drawn(sys.stderr), highlight=False)


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
