"""
A running agent on the other end of two pipes, on this machine or through ssh.

Open standard input, and over a network a heartbeat, show the agent that this program
is alive. Without them the agent ends itself and its load.
"""

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from rtscope.contract import MAX_LINE_BYTES, Line, TraceFile, TracePages, parse_line
from rtscope.host import process
from rtscope.host.errors import ContractError, SilentAgent, TargetError
from rtscope.host.files.documents import memory_of
from rtscope.machine.target import Stream, Target
from rtscope.machine.target.patience import Patience

HEARTBEAT_S = 0.2
"""A fifteenth of the time after which the agent takes the link for lost."""

KILL_TIMEOUT_S = 20.0
"""For an agent to put back what it has changed.

On a busy machine the kernel takes seconds to remove a tracing instance.
"""
LAST_WORDS_BYTES = 2000
LAST_WORDS_S = 1.0
"""For those that still lie in the pipe when a program has ended."""

READ_BYTES = 1 << 16
READS_AT_ONCE = 64
"""So that an agent that never pauses leaves time for the others, and for Ctrl-C."""

DROP_EVERY_S = 0.05
"""How often what an ending agent still writes is dropped."""

MAX_ANSWER_BYTES = 128 << 20
BYTES_PER_S = 1 << 20
"""Of all lines but those of a trace, which have a limit of their own."""

MAX_KEPT_BYTES = 480 << 20
"""Of memory, by all lines that are kept: a million cycles have 440 MiB."""

MAX_ANSWER_S = 600.0
"""For an agent that only answers, however often it sends a line."""

WHO_KILLS = (
    "the kernel sends it where memory runs out, also that of a cgroup: dmesg says so"
)

LOST = (
    "lost the connection to the machine; finished runs are saved; to continue: "
    "rtscope run --resume"
)


class PipeStream:
    """An agent at the other end of two pipes."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        heartbeat: bool,
        begins_after: bytes = b"",
        why_ended: Callable[[int], str] = lambda status: "",
        patience: Patience | None = None,
    ) -> None:
        """
        Start it. Output before a line `begins_after` is not from the agent.

        `why_ended` tells what an exit status of the program says of the agent.
        """
        self._process = process.start(argv)
        self._program = Path(argv[0]).name
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._stdin = self._process.stdin
        self._stdout = self._process.stdout
        self._stderr = self._process.stderr
        os.set_blocking(self._stdout.fileno(), False)
        self._buffer = bytearray()
        self._started = time.monotonic()
        self._taken_bytes = 0
        self._memory_bytes = 0
        self._begins_after = b"\n" + begins_after + b"\n" if begins_after else b""
        self._why_ended = why_ended
        self.patience = patience
        # A descriptor that is closed while it is written to may be another file's.
        self._writing = threading.Lock()
        self._finishing = threading.RLock()
        self._ended = False
        self._last_words = b""
        self._flooded = False
        self._killed = False
        self._heard = threading.Event()
        self._quiet = threading.Event()
        # Threads, because a heartbeat must go on while the main one computes, and a
        # load must not wait for somebody to read its messages.
        self._start_beside(self._listen, if_not=self._stderr.close)
        if heartbeat:
            self._start_beside(self._beat)

    def _start_beside(
        self, work: Callable[[], None], *, if_not: Callable[[], None] = lambda: None
    ) -> None:
        """Start a thread; without one the agent ends, and TargetError is raised."""
        try:
            process.start_thread(work)
        except TargetError:
            if_not()
            self._heard.set()
            self.kill()
            raise

    @property
    def ended(self) -> bool:
        """Whether the agent is gone and all its lines have been read."""
        return self._ended

    @property
    def memory_bytes(self) -> int:
        """What all lines so far take, at most, if they are kept."""
        return self._memory_bytes

    def fileno(self) -> int | None:
        """Return the descriptor on which lines arrive."""
        return None if self._ended else self._stdout.fileno()

    def _beat(self) -> None:
        # On the same beat for all agents: the board is interrupted five times a second,
        # whatever their number.
        while not self._quiet.wait(HEARTBEAT_S - time.monotonic() % HEARTBEAT_S):
            if not self._say(b"."):
                return

    def _listen(self) -> None:
        """Keep the end of standard error, until that ends or is too much."""
        taken_bytes = 0
        with self._stderr as stderr:
            while piece := stderr.read(READ_BYTES):
                self._last_words = (self._last_words + piece)[-LAST_WORDS_BYTES:]
                taken_bytes += len(piece)
                if self._is_too_much(taken_bytes):
                    self._flooded = True
                    break
            self._heard.set()
            if self._flooded:
                self.kill()

    def _is_too_much(self, taken_bytes: int) -> bool:
        lasted_s = time.monotonic() - self._started
        return taken_bytes > MAX_ANSWER_BYTES + BYTES_PER_S * lasted_s

    def _say(self, what: bytes) -> bool:
        try:
            with self._writing:
                self._stdin.write(what)
        except (OSError, ValueError):  # the agent is gone, or the pipe is closed
            return False
        return True

    def _let_go(self) -> None:
        self._quiet.set()
        with self._writing, suppress(OSError):
            self._stdin.close()

    def _has_begun(self) -> bool:
        """Drop what the login shell's start-up files have printed."""
        if self._begins_after:
            _, separator, rest = bytes(self._buffer).partition(self._begins_after)
            if separator:
                self._begins_after = b""
                self._buffer = bytearray(rest)
            elif self._ended:
                self._buffer.clear()
        return not self._begins_after

    def take_lines(self) -> list[Line]:
        """
        Return lines that have arrived; raise ContractError for a damaged one.

        Of an agent that writes faster than this program reads, some at a time.
        """
        lines: list[Line] = []
        for _ in range(READS_AT_ONCE):
            if self._ended:
                break
            try:
                chunk = os.read(self._stdout.fileno(), READ_BYTES)
            except BlockingIOError:
                break
            except ValueError:  # closed by the thread that kills
                break
            if chunk:
                lines += self._lines_with(chunk)
            else:
                self._finish()
                lines += self._last_lines()
        return lines

    def _lines_with(self, chunk: bytes) -> list[Line]:
        """Return the lines that this chunk completes."""
        self._buffer += chunk
        complete = b"\n" in chunk and self._has_begun()
        lines = self._whole_lines() if complete else []
        if len(self._buffer) > MAX_LINE_BYTES:
            self.kill()
            raise ContractError(
                f"the agent wrote a line of more than {MAX_LINE_BYTES:,} bytes"
            )
        return lines

    def _last_lines(self) -> list[Line]:
        if not self._has_begun():
            return []
        lines = self._whole_lines()
        if rest := self._buffer.strip():
            cut = rest[:60].decode("utf-8", "replace")
            raise ContractError(
                f"the output of the agent ends in the middle of a line: {cut!a}"
                + "".join(f"; {why}" for why in [self._how_it_ended()] if why)
            )
        return lines

    def _whole_lines(self) -> list[Line]:
        *lines, rest = bytes(self._buffer).split(b"\n")
        self._buffer = bytearray(rest)
        parsed = [self._parse(line) for line in lines if line.strip()]
        self._count(len(lines))  # their ends, for lines may be empty
        return parsed

    def _parse(self, line: bytes) -> Line:
        """Parse a line; raise ContractError if the agent has sent too much by now."""
        parsed = parse_line(line)
        self._memory_bytes += memory_of(line)
        if not isinstance(parsed, TraceFile | TracePages):
            self._count(len(line))
        return parsed

    def _count(self, taken_bytes: int) -> None:
        self._taken_bytes += taken_bytes
        if self._is_too_much(self._taken_bytes):
            lasted_s = time.monotonic() - self._started
            self.kill()
            raise ContractError(
                f"the agent sent {self._taken_bytes:,} bytes in {lasted_s:.0f} s, more "
                f"than {MAX_ANSWER_BYTES:,} and {BYTES_PER_S:,} for each second"
            )

    def ask_stop(self) -> None:
        """Ask the agent to stop; it still reports its result."""
        self._say(b"q")

    def kill(self) -> None:
        """End the agent: close its standard input, then send a signal if needed."""
        if self._ended:
            return
        self._let_go()
        # What it runs may have stopped it, and a stopped process cannot end.
        self._process.send_signal(signal.SIGCONT)
        if not self._ends():
            self._end_it()
        self._finish()

    def _finish(self) -> None:
        """Close what is open; a thread that reads and one that kills may both do so."""
        self._ended = True
        self._let_go()
        with self._finishing:
            if self._stdout.closed:
                return
            self._stdout.close()
            if not self._ends():
                self._end_it()
                self._process.wait(KILL_TIMEOUT_S)
            # What the agent has started may live on, and hold its standard error.
            self._heard.wait(LAST_WORDS_S)

    def _ends(self) -> bool:
        """Wait for the program as long as may be; return whether it has ended."""
        if self.patience is None:
            return self.ends_within(KILL_TIMEOUT_S)
        with self.patience.ending():
            return self.ends_within(min(KILL_TIMEOUT_S, self.patience.ending_s))

    def _end_it(self) -> None:
        self._killed = True
        self._process.kill()

    @property
    def status(self) -> int | None:
        """Exit status of the local process; None while it runs."""
        return self._process.poll()

    @property
    def pid(self) -> int:
        """PID of the local process: the agent, sudo, or ssh."""
        return self._process.pid

    def stderr_tail(self) -> str:
        """Return the end of what it wrote to standard error."""
        said = self._last_words.decode("utf-8", "replace").strip()
        return "\n".join(filter(None, [said, self._how_it_ended()]))

    def _how_it_ended(self) -> str:
        if self._flooded:
            return (
                f"{self._program} wrote more than {MAX_ANSWER_BYTES:,} bytes to "
                f"standard error, and {BYTES_PER_S:,} for each second, and was ended"
            )
        status = self.status
        if self._killed:
            return f"{self._program} did not end, and was killed"
        if status == -signal.SIGKILL:
            return f"{self._program} ended by signal 9; {WHO_KILLS}"
        if status is not None and status < 0:
            return f"{self._program} ended by signal {-status}"
        return self._why_ended(status) if status else ""

    def ends_within(self, timeout_s: float) -> bool:
        """Wait for the local process; return whether it has ended."""
        end = time.monotonic() + timeout_s
        while True:
            try:
                self._process.wait(max(0.0, min(DROP_EVERY_S, end - time.monotonic())))
            except process.TimeoutExpired:
                if time.monotonic() >= end:
                    return False
                self._drop_unread()
            else:
                return True

    def _drop_unread(self) -> None:
        """Drop what nobody will read: a process that fills a pipe does not end."""
        if self._quiet.is_set():
            with suppress(OSError, ValueError):  # nothing there, or closed
                for _ in range(READS_AT_ONCE):
                    if not os.read(self._stdout.fileno(), READ_BYTES):
                        break


def wait_any(streams: Sequence[Stream], *, timeout_s: float) -> None:
    """Wait until one of the streams may have lines, or the time is over."""
    descriptors = [stream.fileno() for stream in streams if not stream.ended]
    waiting = [fd for fd in descriptors if fd is not None]
    if waiting and len(waiting) == len(descriptors):
        select.select(waiting, [], [], timeout_s)


def collect(
    stream: Stream,
    *,
    timeout_s: float,
    works_s: float = 0.0,
    until: Callable[[Line], bool] = lambda line: False,
) -> list[Line]:
    """
    Return all lines of an agent that ends by itself, or those until a certain one.

    It may be silent for `timeout_s`, and for the `works_s` that it was asked to work.
    Raises TargetError if it hangs or has no end.
    """
    patience = stream.patience
    if patience is None:
        return _collected(stream, timeout_s + works_s, MAX_ANSWER_S + works_s, until)
    with patience.answering(works_s):
        most_s = patience.answers_s + works_s
        return _collected(stream, timeout_s + works_s, most_s, until)


def _collected(
    stream: Stream, timeout_s: float, most_s: float, until: Callable[[Line], bool]
) -> list[Line]:
    lines: list[Line] = []
    began = heard = time.monotonic()
    done = False
    while not (stream.ended or done):
        now = time.monotonic()
        silent_s, left_s = now - heard, began + most_s - now
        if silent_s >= timeout_s or left_s <= 0:
            stream.kill()
            what = f"no answer from the agent for {silent_s:.0f} s"
            if lines and silent_s < timeout_s:
                what = f"the answer of the agent has no end after {most_s:.0f} s"
            if stream.patience and left_s <= 0:
                what += f"; {stream.patience.says}"
            raise SilentAgent(what)
        wait_any([stream], timeout_s=max(min(timeout_s - silent_s, left_s), 0.0))
        # Only a complete line is an answer.
        if arrived := stream.take_lines():
            lines += arrived
            heard = time.monotonic()
            done = any(map(until, arrived))
        if stream.memory_bytes > MAX_KEPT_BYTES:
            stream.kill()
            raise ContractError(
                f"the answer of the agent takes more than {MAX_KEPT_BYTES:,} bytes"
            )
    return lines


# --- the lines of an agent that runs with root's rights and ends by itself ------------


def run_agent(
    machine: Target, args: Sequence[str], *, timeout_s: float, works_s: float = 0.0
) -> tuple[list[Line], Stream]:
    """
    Return the lines of an agent with root's rights, as far as they can be had.

    And the stream, which has ended. Raises TargetError if it is silent for so many
    seconds beside those for which it works.
    """
    agent = machine.start_agent(args, privileged=True)
    try:
        return collect(agent, timeout_s=timeout_s, works_s=works_s), agent
    finally:
        agent.kill()


def answer_of(
    machine: Target,
    args: Sequence[str],
    *,
    timeout_s: float,
    works_s: float = 0.0,
    failure: str = "no answer",
) -> list[Line]:
    """
    Return the lines of an agent, as `run_agent` does, which are at least one.

    Raises TargetError if it is silent for so many seconds, or to its end; the error
    then says `failure`.
    """
    lines, agent = run_agent(machine, args, timeout_s=timeout_s, works_s=works_s)
    if not lines:
        said = agent.stderr_tail() or "it ended without a word"
        raise TargetError(f"{machine.name}: {failure}: {said}")
    return lines
