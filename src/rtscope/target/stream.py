"""
A running agent on the other end of two pipes, on this machine or through ssh.

As long as standard input is open, the agent knows that this program lives; over a
network a heartbeat says so. That one rule ends agent and load whatever happens here.
"""

import contextlib
import os
import select
import tempfile
import threading
from collections.abc import Sequence

from rtscope import process
from rtscope.contract import MAX_LINE_BYTES, Line, parse_line
from rtscope.errors import ContractError, TargetError
from rtscope.target import Stream

HEARTBEAT_S = 0.2
"""Five in the time after which the agent gives the link up for lost."""

KILL_PATIENCE_S = 5.0
LAST_WORDS_BYTES = 2000


class PipeStream:
    """An agent whose pipes we hold."""

    def __init__(self, argv: Sequence[str], *, heartbeat: bool) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 -- closed in _finish
        self._process = process.start(argv, stderr=self._stderr)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin = self._process.stdin
        self._stdout = self._process.stdout
        os.set_blocking(self._stdout.fileno(), False)
        self._buffer = bytearray()
        self._ended = False
        self._last_words = ""
        self._quiet = threading.Event()
        if heartbeat:
            # A thread, because a heartbeat must go on while the main one computes.
            threading.Thread(target=self._beat, daemon=True).start()

    @property
    def ended(self) -> bool:
        """Whether the agent is gone and all its lines have been read."""
        return self._ended

    def fileno(self) -> int | None:
        """Return the descriptor on which lines arrive."""
        return None if self._ended else self._stdout.fileno()

    def _beat(self) -> None:
        while not self._quiet.wait(HEARTBEAT_S):
            if not self._say(b"."):
                return

    def _say(self, what: bytes) -> bool:
        try:
            self._stdin.write(what)
        except (OSError, ValueError):  # the agent is gone, or the pipe is closed
            return False
        return True

    def take_lines(self) -> list[Line]:
        """Return the lines that have arrived; raise ContractError for a damaged one."""
        while not self._ended:
            try:
                chunk = os.read(self._stdout.fileno(), 1 << 16)
            except BlockingIOError:
                break
            if not chunk:
                self._finish()
                break
            self._buffer += chunk
            if len(self._buffer) > MAX_LINE_BYTES:
                self.kill()
                raise ContractError("the agent wrote a line without an end")
        *lines, rest = bytes(self._buffer).split(b"\n")
        self._buffer = bytearray(rest)
        if self._ended and rest.strip():
            raise ContractError(
                f"the agent's output breaks off in the middle of a line: "
                f"{rest[:60].decode('utf-8', 'replace')!a}"
            )
        return [parse_line(line) for line in lines if line.strip()]

    def ask_stop(self) -> None:
        """Tell the agent to end in good order; it will still report."""
        self._say(b"q")

    def kill(self) -> None:
        """End the agent: closing its tether does that, and a signal if it does not."""
        if self._ended:
            return
        self._quiet.set()
        with contextlib.suppress(OSError):
            self._stdin.close()
        try:
            self._process.wait(KILL_PATIENCE_S)
        except process.TimeoutExpired:
            self._process.kill()
        self._finish()

    def _finish(self) -> None:
        self._quiet.set()
        self._ended = True
        with contextlib.suppress(OSError):
            self._stdin.close()
        self._stdout.close()
        try:
            self._process.wait(KILL_PATIENCE_S)
        except process.TimeoutExpired:
            self._process.kill()
            self._process.wait(KILL_PATIENCE_S)
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - LAST_WORDS_BYTES))
        self._last_words = self._stderr.read().decode("utf-8", "replace").strip()
        self._stderr.close()

    @property
    def status(self) -> int | None:
        """Exit status of the local process; None while it runs."""
        return self._process.poll()

    @property
    def pid(self) -> int:
        """Of the local process: the agent, sudo, or ssh."""
        return self._process.pid

    def last_words(self) -> str:
        """Return the end of what it wrote to standard error."""
        return self._last_words


def wait_any(streams: Sequence[Stream], *, timeout_s: float) -> None:
    """Wait until one of the streams may have lines, or the time is over."""
    descriptors = [stream.fileno() for stream in streams if not stream.ended]
    waiting = [fd for fd in descriptors if fd is not None]
    if waiting and len(waiting) == len(descriptors):
        select.select(waiting, [], [], timeout_s)


def collect(stream: Stream, *, timeout_s: float) -> list[Line]:
    """Return all lines of an agent that ends by itself; TargetError if it hangs."""
    lines: list[Line] = []
    while not stream.ended:
        wait_any([stream], timeout_s=timeout_s)
        arrived = stream.take_lines()
        if not arrived and not stream.ended:
            stream.kill()
            raise TargetError(f"no answer from the agent for {timeout_s:.0f} s")
        lines += arrived
    return lines
