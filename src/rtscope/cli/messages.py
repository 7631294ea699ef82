"""
Standard error that holds nobody up: what cannot be written is dropped.

While rtscope measures, so is what nobody reads, and counted for the next reader.
"""

import contextlib
import io
import os
import select
import stat
import sys
import time

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
