"""
The process that measures one board of several, as its parent sees it.

One process a board: none can hold up, or take down, another one.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Any

from rtscope.host import process
from rtscope.host.errors import MeasurementError, RecordError
from rtscope.host.files.documents import json_object
from rtscope.host.files.jsontext import json_text

COMMAND = (sys.executable, "-P", "-m", "rtscope.verbs.run.oneboard")

INTERRUPTED = 130
"""The exit status of a board that was ended like a program by Ctrl-C."""

MAX_LINE_BYTES = 1 << 20
_PIECE_BYTES = 64 << 10

END_S = 10.0
"""For a process that has closed its pipes, on a busy machine."""


_SHAPES: Mapping[str, Mapping[str, type | UnionType]] = {
    "plan": {"runs": int, "left_ns": int},
    "phase": {"text": str, "left_ns": int},
    "run": {"text": str, "left_ns": int, "duration_ns": int},
    "boots": {"text": str, "part": int | float},
    "worst": {"max_ns": int},
    "done": {"text": str, "max_ns": int | None, "number": int},
    "note": {"text": str},
    "ended": {"status": int, "why": str},
}
"""What a line tells, by its key `is`."""


@dataclass(frozen=True, slots=True)
class BoardTask:
    """What one process is asked for."""

    name: str
    directory: Path
    campaign: Mapping[str, Any]
    """As tables; for one that has begun, its directory has it."""
    command: Sequence[str]
    """As typed."""
    jobs: int | None
    reuse: bool

    def line(self) -> bytes:
        """Return it as the process takes it."""
        asked = {
            "directory": str(self.directory),
            "campaign": self.campaign,
            "command": list(self.command),
            "jobs": self.jobs,
            "reuse": self.reuse,
        }
        return json_text(asked, indent=None).encode()


@dataclass(frozen=True, slots=True)
class Ended:
    """How the campaign of a board ended."""

    status: int
    why: str = ""
    """Empty: it was measured to its end."""


@dataclass(slots=True)
class BoardProcess:
    """A process that was started, and what is read of it."""

    task: BoardTask
    started: process.Started
    ended: Ended | None = None
    """What it said at its end; None: not yet."""
    _parts: dict[int, bytearray] = field(default_factory=dict)
    _cut: set[int] = field(default_factory=set)
    """Pipes whose line was too long: the rest of it is left out."""

    @classmethod
    def start(cls, task: BoardTask) -> "BoardProcess":
        """Start it; TargetError if that fails."""
        started = process.start(COMMAND, alone=True)
        assert started.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            started.stdin.write(task.line())
        return cls(task, started)

    @property
    def pipes(self) -> tuple[int, int]:
        """The descriptors of its lines and of its messages."""
        assert self.started.stdout is not None
        assert self.started.stderr is not None
        return self.started.stdout.fileno(), self.started.stderr.fileno()

    def read(self, pipe: int) -> Iterator[str] | None:
        """Return the whole lines that came through a pipe; None at its end."""
        piece = os.read(pipe, _PIECE_BYTES)
        if not piece:
            return None
        kept = self._parts.setdefault(pipe, bytearray())
        kept += piece
        *lines, rest = bytes(kept).split(b"\n")
        if lines and pipe in self._cut:
            self._cut.discard(pipe)
            del lines[0]
        if len(rest) >= MAX_LINE_BYTES:
            self._cut.add(pipe)
            rest = b""
        self._parts[pipe] = bytearray(rest)
        return (line.decode("utf-8", "replace") for line in lines)

    def told(self, line: str) -> Mapping[str, Any] | None:
        """
        Return what a line of the process tells, and note its end.

        None for another line, which something that it has loaded may have written.
        """
        try:
            said = json_object(line, name=self.task.name)
        except RecordError:
            return None
        shape = _SHAPES.get(str(said.get("is")))
        if shape is None or not all(
            isinstance(said.get(key), kinds) for key, kinds in shape.items()
        ):
            return None
        if said["is"] == "ended":
            self.ended = Ended(said["status"], said["why"])
        return said

    def interrupt(self) -> None:
        """Let it end as after Ctrl-C: settings are put back, what is there is kept."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.started.pid, signal.SIGINT)

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.started.poll() is not None

    def kill(self) -> None:
        """End it at once; the agents on its board then end by themselves."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.started.pid, signal.SIGKILL)

    def close(self) -> Ended:
        """Wait for its end, which is at hand, or make it; return how it ended."""
        for pipe in (self.started.stdin, self.started.stdout, self.started.stderr):
            if pipe is not None:
                pipe.close()
        try:
            status = self.started.wait(timeout=END_S)
        except process.TimeoutExpired:
            self.kill()
            status = self.started.wait()
        if self.ended is not None:
            return self.ended
        if status == INTERRUPTED:
            return Ended(INTERRUPTED, "interrupted")
        how = f"signal {-status}" if status < 0 else f"status {status}"
        why = f"its process ended with {how}; go on with --resume"
        return Ended(MeasurementError.exit_status, why)
