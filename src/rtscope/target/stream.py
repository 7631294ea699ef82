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
import time
from collections.abc import Sequence
from pathlib import Path

from rtscope import process
from rtscope.contract import MAX_LINE_BYTES, Line, parse_line
from rtscope.errors import ContractError, TargetError
from rtscope.target import Stream

HEARTBEAT_S = 0.2
"""Five in the time after which the agent gives the link up for lost."""

KILL_PATIENCE_S = 5.0
LAST_WORDS_BYTES = 2000

LOST = (
    "the connection to the machine is lost; what was measured is kept: rtscope run "
    "--resume goes on from there"
)


class PipeStream:
    """An agent whose pipes we hold."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        heartbeat: bool,
        begins_after: bytes = b"",
        lost_status: int | None = None,
    ) -> None:
        """
        Start it. What comes before a line `begins_after` is not the agent's.

        `lost_status` is the exit status that means: not the agent ended, but the way
        to it.
        """
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 -- closed in _finish
        try:
            self._process = process.start(argv, stderr=self._stderr)
        except TargetError:
            self._stderr.close()
            raise
        self._program = Path(argv[0]).name
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin = self._process.stdin
        self._stdout = self._process.stdout
        os.set_blocking(self._stdout.fileno(), False)
        self._buffer = bytearray()
        self._begins_after = b"\n" + begins_after + b"\n" if begins_after else b""
        self._lost_status = lost_status
        # A descriptor that is closed while it is written to may be another file's.
        self._writing = threading.Lock()
        self._ended = False
        self._stderr_tail = ""
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
        # On the same beat for all agents: the board is interrupted five times a second,
        # whatever their number.
        while not self._quiet.wait(HEARTBEAT_S - time.monotonic() % HEARTBEAT_S):
            if not self._say(b"."):
                return

    def _say(self, what: bytes) -> bool:
        try:
            with self._writing:
                self._stdin.write(what)
        except (OSError, ValueError):  # the agent is gone, or the pipe is closed
            return False
        return True

    def _let_go(self) -> None:
        self._quiet.set()
        with self._writing, contextlib.suppress(OSError):
            self._stdin.close()

    def _has_begun(self) -> bool:
        """Drop what the login shell's start-up files have printed."""
        if self._begins_after:
            _, found, rest = bytes(self._buffer).partition(self._begins_after)
            if found:
                self._begins_after = b""
                self._buffer = bytearray(rest)
            elif self._ended:
                self._buffer.clear()
        return not self._begins_after

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
        if not self._has_begun():
            return []
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
        self._let_go()
        try:
            self._process.wait(KILL_PATIENCE_S)
        except process.TimeoutExpired:
            self._process.kill()
        self._finish()

    def _finish(self) -> None:
        self._ended = True
        self._let_go()
        self._stdout.close()
        try:
            self._process.wait(KILL_PATIENCE_S)
        except process.TimeoutExpired:
            self._process.kill()
            self._process.wait(KILL_PATIENCE_S)
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - LAST_WORDS_BYTES))
        self._stderr_tail = self._stderr.read().decode("utf-8", "replace").strip()
        self._stderr.close()

    @property
    def status(self) -> int | None:
        """Exit status of the local process; None while it runs."""
        return self._process.poll()

    @property
    def pid(self) -> int:
        """Of the local process: the agent, sudo, or ssh."""
        return self._process.pid

    def stderr_tail(self) -> str:
        """Return the end of what it wrote to standard error."""
        return "\n".join(filter(None, [self._stderr_tail, self._how_it_ended()]))

    def _how_it_ended(self) -> str:
        status = self.status
        if status is not None and status < 0:
            return f"{self._program} was ended by signal {-status}"
        return LOST if status == self._lost_status else ""


def wait_any(streams: Sequence[Stream], *, timeout_s: float) -> None:
    """Wait until one of the streams may have lines, or the time is over."""
    descriptors = [stream.fileno() for stream in streams if not stream.ended]
    waiting = [fd for fd in descriptors if fd is not None]
    if waiting and len(waiting) == len(descriptors):
        select.select(waiting, [], [], timeout_s)


def collect(stream: Stream, *, timeout_s: float) -> list[Line]:
    """Return all lines of an agent that ends by itself; TargetError if it hangs."""
    lines: list[Line] = []
    heard = time.monotonic()
    while not stream.ended:
        left_s = heard + timeout_s - time.monotonic()
        if left_s <= 0:
            stream.kill()
            raise TargetError(f"no answer from the agent for {timeout_s:.0f} s")
        wait_any([stream], timeout_s=left_s)
        # What has arrived may be half a line, which is no answer yet.
        if arrived := stream.take_lines():
            lines += arrived
            heard = time.monotonic()
    return lines
