"""
The standard streams of this process; they show foreign control characters.

A message that cannot be written (full, closed, a broken pipe, a terminal that is gone)
is dropped. So is a result, which standard error then says; the exit status stays that
of the command. Only `Visible.drawn`, for rich, passes sequences on.
"""

import contextlib
import errno
import io
import os
import select
import stat
import sys
import time
from typing import TextIO

from rtscope.host.escape import visible_lines


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
