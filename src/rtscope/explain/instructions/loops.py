"""
Loops in which a CPU waits for another one. Pure.

A CPU that waits pauses in each turn of a loop, or tries to take a lock in each. A turn
may call helpers: to tell a watchdog, or RCU, that the CPU is alive. They are part of
the wait, also where a helper has interrupts off for some instructions.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rtscope.explain.instructions.calls import (
    Frame,
    Run,
    is_attempt,
    is_clock,
    is_delay,
    plain,
)
from rtscope.explain.instructions.contexts import Context
from rtscope.explain.instructions.roles import Role
from rtscope.explain.model import Cause

POLLED_NS = 200
"""A CPU that pauses for longer, and is not idle, looks at memory in a loop."""
SHORT_NS = 200
"""A turn of a loop takes less; what takes longer is no helper of it."""
TURNS = 8
"""So many pauses of one loop, one soon after the other, are a wait too."""
ATTEMPTS = 3
"""A lock that a function tries to take so often is waited for."""
WAITS = frozenset({Cause.LOCK, Cause.OTHER_CPU})


@dataclass(frozen=True, slots=True)
class Gap:
    """Runs of one loop: from the first to before the last."""

    first: int
    last: int
    cause: Cause
    """What the loop waits for."""


def polls(runs: Sequence[Run], i: int) -> bool:
    """
    Tell whether a run looks at memory that another CPU is to change.

    It pauses in its loop, as cpu_relax() lets it, and reads no clock there: that would
    be a delay. Idle CPUs pause too, and wait for nobody.
    """
    return _paused_ns(runs[i]) > POLLED_NS and _pauses(runs, i)


def _paused_ns(run: Run) -> int:
    return run.end_ns - run.begin_ns - run.executed_ns


def _pauses(runs: Sequence[Run], i: int) -> bool:
    run = runs[i]
    if _paused_ns(run) <= 0 or Role.IDLE in run.frame.within:
        return False
    name = plain(run.frame.name)
    if is_clock(name) or is_delay(name) or run.frame.role is Role.SWITCH:
        return False
    near = (runs[at] for at in (i - 1, i + 1) if 0 <= at < len(runs))
    return not any(
        one.frame.caller is run.frame and is_clock(plain(one.frame.name))
        for one in near
    )


def gaps_in_loops(
    runs: Sequence[Run],
    contexts: Sequence[Context],
    causes: Sequence[Cause],
    *,
    first: int,
    spins: Collection[str],
) -> Iterator[Gap]:
    """
    Yield the runs that belong to a loop by their callers only; indices of `runs`.

    `causes` are those of the runs from `first` on, `spins` the functions that wait in a
    loop. A call between two turns belongs to the loop if the function that waits has
    called it, directly or not, it was short, and no interrupt.
    """
    waiting = [first + at for at, cause in enumerate(causes) if cause in WAITS]
    for before, after in pairwise(waiting):
        cause = causes[before - first]
        if after == before + 1 or causes[after - first] is not cause:
            continue
        if runs[after].begin_ns - runs[before].end_ns > SHORT_NS:
            continue
        loops = _spinning(runs[before], spins) & _spinning(runs[after], spins)
        between = range(before + 1, after)
        of_loop = all(loops & set(runs[i].frame.chain()) for i in between)
        if of_loop and all(contexts[i] == contexts[before] for i in between):
            yield Gap(before + 1, after, cause)


def _spinning(run: Run, spins: Collection[str]) -> set[Frame]:
    return {frame for frame in run.frame.chain() if plain(frame.name) in spins}


def loops_by_hand(
    runs: Sequence[Run], contexts: Sequence[Context], *, first: int
) -> Iterator[Gap]:
    """
    Yield the waits that a function does by itself, without one of the kernel's locks.

    It tries to take a lock again and again, whatever it does between; or it pauses in
    each turn, and reads no clock.
    """
    pauses = [i for i in range(first, len(runs)) if _pauses(runs, i)]
    yield from _chains(_attempts(runs, first), runs, contexts, ATTEMPTS, Cause.LOCK)
    yield from _chains(pauses, runs, contexts, TURNS, Cause.OTHER_CPU)


def _attempts(runs: Sequence[Run], first: int) -> Sequence[int]:
    """Return the last run of each call that tried to take a lock."""
    at = [i for i in range(first, len(runs)) if is_attempt(plain(runs[i].frame.name))]
    # A call may have called others in between: it is one attempt all the same.
    # So is one that tries another lock within: the outermost of them is the attempt.
    return sorted({_attempt_of(runs[i].frame): i for i in at}.values())


def _attempt_of(frame: Frame) -> Frame:
    """Return the outermost attempt that a call of one is part of."""
    return [one for one in frame.chain() if is_attempt(plain(one.name))][-1]


def _chains(
    at: Sequence[int],
    runs: Sequence[Run],
    contexts: Sequence[Context],
    least: int,
    cause: Cause,
) -> Iterator[Gap]:
    """Yield each sequence of so many of these runs that are turns of one loop."""
    loop: Frame | None = None
    turns: list[int] = []
    for i in at:
        shared = _loop_of(turns[-1], i, runs, contexts, cause) if turns else None
        if shared is not None and (loop is None or shared is loop):
            loop = shared
            turns.append(i)
            continue
        if len(turns) >= least:
            yield Gap(turns[0], turns[-1] + 1, cause)
        turns, loop = [i], None
    if len(turns) >= least:
        yield Gap(turns[0], turns[-1] + 1, cause)


def _loop_of(
    before: int,
    after: int,
    runs: Sequence[Run],
    contexts: Sequence[Context],
    cause: Cause,
) -> Frame | None:
    """Return the call that both runs are turns of a loop of; None if they are not."""
    if contexts[before] != contexts[after]:
        return None
    own: Frame | None = runs[before].frame
    if own and cause is Cause.LOCK:
        own = _attempt_of(own).caller
    mine = set(own.chain()) if own else set()
    shared = next((f for f in runs[after].frame.chain() if f in mine), None)
    between = range(before + 1, after)
    if shared is None or any(contexts[i] != contexts[before] for i in between):
        return None
    if cause is Cause.LOCK:
        helps = all(
            runs[i].frame is shared or _lets_time_go_by(runs[i], shared)
            for i in between
        )
        return shared if helps else None
    executed_ns = runs[after].begin_ns - runs[before].end_ns
    inside = all(
        shared in runs[i].frame.chain() and not is_clock(plain(runs[i].frame.name))
        for i in between
    )
    return shared if inside and executed_ns <= SHORT_NS else None


def _lets_time_go_by(run: Run, loop: Frame) -> bool:
    """Tell whether a run of a loop only delays it: it reads clocks, or relaxes."""
    for frame in run.frame.chain():
        if frame is loop:
            return run.executed_ns <= SHORT_NS
        name = plain(frame.name)
        if is_delay(name) or is_clock(name):
            return True
    return False
