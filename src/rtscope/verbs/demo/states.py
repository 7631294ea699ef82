"""The states of a thread: each made by a process of ours, and read from outside."""

import os
import re
import selectors
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib import resources
from pathlib import Path

from rtscope.host.errors import TargetError
from rtscope.host.process import Started, TimeoutExpired, start
from rtscope.machine.reader import Denied, Missing, Reader, read, text_of
from rtscope.verbs.demo import statemaker

PATIENCE_S = 180.0
"""Until a state is seen, or is unknown: a busy machine may be late by much."""
LOOK_EVERY_S = 0.01
GENTLE_S = 10.0
"""For a maker to wait for its own child; then it is killed."""

VERSION = "/proc/sys/kernel/osrelease"
GONE = "gone"


@dataclass(frozen=True, slots=True)
class ThreadState:
    """A state, as `states.toml` describes it."""

    name: str
    letter: str
    """In /proc/PID/stat."""
    title: str
    made: str
    """What put the thread there."""
    means: str
    does: str
    """What a real-time program does about it."""
    command: str
    """It shows the state of the reader's own program."""


class Outcome(StrEnum):
    """Whether a state was seen."""

    SEEN = "seen"
    OTHER = "other"
    """Another state was seen."""
    UNKNOWN = "unknown"
    """The thread was made, and its state could not be read."""
    NOT_SHOWN = "not shown"
    """The machine refused to make it."""


@dataclass(frozen=True, slots=True)
class Look:
    """What /proc said of a thread; None for what it did not say."""

    letter: str | None
    """GONE if there is no such thread."""
    why: str = ""
    """Why there is no letter."""
    wchan: str | None = None
    """The kernel's function that it waits in."""
    syscall: tuple[int, ...] | None = None
    """Number of the system call that it is in, and arguments."""
    settled: bool = True
    """Whether all of it is of one state: the thread did not change meanwhile."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A state, and what was seen of it."""

    state: ThreadState
    outcome: Outcome
    pid: int | None = None
    tid: int | None = None
    look: Look = field(default_factory=lambda: Look(None))
    wait_known: bool = True
    """Whether /proc said what it waits for, if the letter alone does not."""
    reason: str = ""
    """Of all but SEEN."""


@dataclass(frozen=True, slots=True)
class StatesResult:
    """What was seen of all states."""

    kernel: str
    shown: tuple[Shown, ...]

    @property
    def held(self) -> bool:
        """Whether each state that could be made was seen."""
        fits = (Outcome.SEEN, Outcome.NOT_SHOWN)
        return all(one.outcome in fits for one in self.shown)


@cache
def thread_states() -> tuple[ThreadState, ...]:
    """Return all states, in the order of `states.toml`."""
    file = resources.files("rtscope.verbs.demo").joinpath("states.toml")
    tables = tomllib.loads(file.read_text("utf-8"))
    return tuple(ThreadState(name=name, **table) for name, table in tables.items())


def show_states(reader: Reader, *, log: Callable[[str], None]) -> StatesResult:
    """
    Make each state, look at it, and end its process, one after the other.

    Raises TargetError if /proc cannot be read, or no process can be started.
    """
    kernel = text_of(read(reader, VERSION))
    if kernel is None:
        raise TargetError(
            f"cannot read {VERSION}: the states are read from /proc; mount it "
            "(mount -t proc proc /proc)"
        )
    shown = []
    for state in thread_states():
        log(f"state: {state.letter}, {state.title}")
        shown.append(_show(reader, state))
    return StatesResult(kernel.strip(), tuple(shown))


def _show(reader: Reader, state: ThreadState) -> Shown:
    end = time.monotonic() + PATIENCE_S
    with _maker(state.name) as started:
        answer = _answer(started, end)
        if answer.refused:
            return Shown(state, Outcome.NOT_SHOWN, reason=answer.refused)
        if answer.pid is None or answer.tid is None:
            return Shown(state, Outcome.UNKNOWN, reason=answer.broken)
        if state.name == "gone":
            _end(started, state.name)
        pid, tid = answer.pid, answer.tid
        return watch_for(
            state,
            (pid, tid),
            lambda: look_at(reader, pid, tid),
            is_over=lambda: time.monotonic() >= end,
        )


# --- the processes ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a maker wrote."""

    pid: int | None = None
    tid: int | None = None
    refused: str = ""
    broken: str = ""


@contextmanager
def _maker(name: str) -> Iterator[Started]:
    """Start the process that makes a state; end it and its child, in every ending."""
    program = str(Path(statemaker.__file__))
    started = start([sys.executable, "-I", "-S", program, name, str(os.getpid())])
    try:
        yield started
    finally:
        _end(started, name)
        for pipe in (started.stdin, started.stdout, started.stderr):
            if pipe is not None:
                pipe.close()


def _end(started: Started, name: str) -> None:
    """End a maker: by its input if it has a child to wait for, and else at once."""
    if started.stdin is not None:
        with suppress(OSError):
            started.stdin.close()
    try:
        if name in statemaker.HAVE_CHILDREN:
            with suppress(TimeoutExpired):
                started.wait(GENTLE_S)
    finally:
        if started.poll() is None:
            started.kill()
        started.wait()


def _answer(started: Started, end: float) -> _Answer:
    """Return the first line of a maker."""
    assert started.stdout is not None
    line = b""
    with selectors.DefaultSelector() as pipes:
        pipes.register(started.stdout, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not pipes.select(max(end - time.monotonic(), 0)):
                return _Answer(broken=f"its process was silent for {PATIENCE_S:.0f} s")
            piece = os.read(started.stdout.fileno(), 1)
            if not piece:
                return _Answer(broken=f"its process ended at once{_said(started)}")
            line += piece
    first, _, rest = line.decode("utf-8", "replace").strip().partition(" ")
    if first == "refused":
        return _Answer(refused=rest)
    return _Answer(int(first), int(rest))


def _said(started: Started) -> str:
    """Return the last words of a maker that has ended, after a colon."""
    assert started.stderr is not None
    lines = started.stderr.read().decode("utf-8", "replace").strip().splitlines()
    return f": {lines[-1]}" if lines else ""


# --- what is seen of them -----------------------------------------------------------


def watch_for(
    state: ThreadState,
    thread: tuple[int, int],
    look: Callable[[], Look],
    *,
    is_over: Callable[[], bool],
    sleep: Callable[[float], None] = time.sleep,
) -> Shown:
    """Look at a thread (PID, TID) until it is in a state, or time is over."""
    wanted = GONE if state.name == "gone" else state.letter
    while True:
        seen = look()
        waits = waits_as(state.name, seen)
        if seen.letter == wanted and seen.settled and waits is not False:
            return Shown(state, Outcome.SEEN, *thread, seen, waits is not None)
        # What cannot be read, or has ended, does not change.
        if is_over() or seen.letter in (None, GONE):
            break
        sleep(LOOK_EVERY_S)
    if seen.letter is None or not seen.settled:
        why = seen.why or "the thread changed its state all the time"
        return Shown(state, Outcome.UNKNOWN, *thread, seen, reason=why)
    reason = (
        f"the thread waits for something else ({seen.wchan or 'unknown'})"
        if seen.letter == wanted
        else "the thread is gone"
        if seen.letter == GONE
        else f"the thread was in state {seen.letter}"
    )
    return Shown(state, Outcome.OTHER, *thread, seen, reason=reason)


def look_at(reader: Reader, pid: int, tid: int) -> Look:
    """Return what /proc says of a thread, all in one state."""
    place = f"/proc/{pid}/task/{tid}"
    paths = [f"{place}/{name}" for name in ("stat", "wchan", "syscall")]
    files = reader.read_many(paths)
    again = read(reader, paths[0])
    match again:
        case Missing():
            return Look(GONE)
        case Denied(reason):
            return Look(None, why=f"{paths[0]}: {reason}")
    letter = letter_of(again)
    if letter is None:
        return Look(None, why=f"{paths[0]} is not as the kernel writes it")
    before = files[paths[0]]
    wchan, syscall = (text_of(files[path]) for path in paths[1:])
    changed = not isinstance(before, bytes) or letter_of(before) != letter
    ran = letter == "S" and syscall == "running"
    return Look(
        letter,
        wchan=_wchan_of(wchan),
        syscall=syscall_of(syscall),
        settled=not changed and not ran,
    )


def letter_of(stat: bytes) -> str | None:
    """Return the state of a /proc/PID/task/TID/stat, or None if it has none."""
    # The name, in brackets, may have brackets and blanks.
    found = re.fullmatch(rb"\d+ \(.*\) ([A-Za-z]) .*", stat.strip(), re.DOTALL)
    return found[1].decode() if found else None


def _wchan_of(text: str | None) -> str | None:
    """Return the name of a function; None where the kernel keeps it back."""
    name = (text or "").strip()
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else None


def syscall_of(text: str | None) -> tuple[int, ...] | None:
    """Return number and arguments of a /proc/PID/task/TID/syscall, or None."""
    words = (text or "").split()
    try:
        return tuple(int(word, 0) for word in words) if len(words) > 2 else None
    except ValueError:
        return None


FUTEX = frozenset({202, 98, 240, 238, 221})
NANOSLEEP = frozenset({230, 115, 265, 264, 267, 248, 407})
"""clock_nanosleep, and futex: by their numbers on the architectures of Linux."""
FUTEX_COMMAND, LOCK_PI, LOCK_PI2 = 0x7F, 6, 13

_PLACES: Mapping[str, re.Pattern[str]] = {
    "timer": re.compile("nanosleep"),
    "pi-lock": re.compile("rt_mutex|futex_lock_pi"),
}
"""Functions of the kernel that a thread waits in."""


def waits_as(name: str, look: Look) -> bool | None:
    """
    Return whether a thread waits for what the state's name says.

    None if /proc does not say; True for a state that its letter alone says.
    """
    if name not in _PLACES:
        return True
    if look.wchan is not None and _PLACES[name].search(look.wchan):
        return True
    if look.syscall is not None:
        number, arguments = look.syscall[0], look.syscall[1:]
        if name == "timer":
            return number in NANOSLEEP
        command = arguments[1] & FUTEX_COMMAND if len(arguments) > 1 else None
        return number in FUTEX and command in (LOCK_PI, LOCK_PI2)
    return None if look.wchan is None else False
