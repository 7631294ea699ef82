"""
Has the files of a checked program read by another process, which may end: serving.py.

If it ends at a file, the file is left out and another process reads the rest. What it
could not read has a reason; nothing that a file holds ends rtscope.
"""

import json
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rtscope.host.errors import TargetError
from rtscope.host.process import run

TIMEOUT_S = 150.0
"""Of any time: its own limit is of CPU time."""
ATTEMPTS = 3
MAX_ANSWER_BYTES = 64 << 20

_PROGRAM = ("-P", "-m", "rtscope.programs.binaries.serving")

Row = Mapping[str, Any]


@dataclass(slots=True)
class Request:
    """What is read: see `serving`."""

    files: dict[str, Mapping[str, str]]
    """Paths, and names to show, by keys."""
    find: Sequence[str] = ()
    """Functions whose places in the files are returned."""
    find_in_go: Sequence[str] = ()
    """The same in programs of Go alone."""
    find_beside: Sequence[str] = ()
    """The same in files with an allocator, if they do not enter what is in `find`."""
    find_own: Sequence[Sequence[str]] = ()
    """The same in files that have the first one of such a group."""
    marks: Sequence[str] = ()
    """Functions; the answer names those that a file has."""
    every: bool = False
    """Whether all functions of the files are returned."""
    vdso: str = ""
    debug: Sequence[str] = ()
    """Directories of debug files."""
    cache: str = ""
    stacks: Row | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    """Files that are not read, by their keys, and why."""

    def json(self) -> bytes:
        """Return it as the process takes it."""
        return json.dumps(
            {
                "files": self.files,
                "find": list(self.find),
                "find_in_go": list(self.find_in_go),
                "find_beside": list(self.find_beside),
                "find_own": [list(one) for one in self.find_own],
                "marks": list(self.marks),
                "every": self.every,
                "vdso": self.vdso,
                "debug": list(self.debug),
                "cache": self.cache,
                "stacks": self.stacks,
                "left_out": self.left_out,
            }
        ).encode()


@dataclass(frozen=True, slots=True)
class Answer:
    """The lines of an answer; why the process ended before its end, empty if not."""

    rows: Sequence[Row]
    ended: str

    def of(self, kind: str) -> list[Row]:
        """Return the lines of a kind."""
        return [row for row in self.rows if kind in row]


def answer_to(request: Request) -> Answer:
    """Return what the files say, as far as they could be read."""
    answer = Answer((), "")
    for _ in range(ATTEMPTS):
        answer = _answer(request)
        reading = answer.of("reading")
        if not answer.ended or not reading or not reading[-1]["reading"]:
            return answer
        key = reading[-1]["reading"]
        if key in request.left_out:
            return answer
        request.left_out[key] = f"the process that read it {answer.ended}"
    return answer


def _answer(request: Request) -> Answer:
    try:
        done = run(
            [sys.executable, *_PROGRAM],
            timeout_s=TIMEOUT_S,
            stdin=request.json(),
            most_bytes=MAX_ANSWER_BYTES,
        )
    except TargetError as error:
        return Answer((), _short(error))
    rows = list(_rows(done.stdout))
    if rows and "done" in rows[-1]:
        return Answer(rows, "")
    return Answer(rows, _end(done.status, done.stderr))


def _short(error: TargetError) -> str:
    cause = error.__cause__
    if isinstance(cause, TimeoutError):
        return f"did not end within {TIMEOUT_S:.0f} s"
    if isinstance(cause, OverflowError):
        return f"wrote more than {MAX_ANSWER_BYTES >> 20} MiB"
    return f"did not run: {error}"


def _rows(content: bytes) -> list[Row]:
    rows: list[Row] = []
    for line in content.split(b"\n"):
        try:
            row = json.loads(line)
        except ValueError:
            continue  # the last one of a process that was killed
        if isinstance(row, dict):
            rows.append(row)
    return rows


def _end(status: int, stderr: str) -> str:
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = str(-status)
        used_up = -status in (signal.SIGXCPU, signal.SIGKILL)
        return f"was ended by {name}{': it took too long' if used_up else ''}"
    said = stderr.strip().splitlines()
    if said and said[-1].startswith("MemoryError"):
        return "had too little memory"
    return f"ended with status {status}{f': {said[-1][:200]}' if said else ''}"
