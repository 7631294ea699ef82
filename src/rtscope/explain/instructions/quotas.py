"""
A thread whose group had used up its CPU time: when, and what shows that. Pure.

The kernel counts such a thread as runnable: its timer wakes it and it is queued, in a
queue that the scheduler passes over. `throttle_cfs_rq` takes a queue of ordinary
threads off a CPU, `unthrottle_cfs_rq` gives it back there (before Linux 6.3 on any CPU,
which is not looked for). With RT_GROUP_SCHED queues of real-time threads have a quota
too, and other functions take them off, which is not looked for either. Which queue it
was is not recorded: that it was the thread's own has to follow from what the CPU did
meanwhile.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rtscope.explain.instructions.absences import (
    Absence,
    Tasks,
    Wait,
    left_in,
)
from rtscope.explain.instructions.calls import Frame, Run, plain
from rtscope.explain.instructions.roles import Role
from rtscope.explain.instructions.scheduling import switch_to
from rtscope.record.instructions.section import TaskSwitch

THROTTLE, UNTHROTTLE = "throttle_cfs_rq", "unthrottle_cfs_rq"
PROMPT_NS = 10_000
"""A board delivers an interrupt that is on, and leaves its idle loop, at once: up to
4,700 ns were seen on `pc`, whose timer ticks coarsely."""
_CALLERS = 6
_MAY_RUN = frozenset({Wait.CPU, Wait.TIMER, Wait.TIMER_ELSEWHERE})
"""Behind these waits the thread is runnable, and its CPU may be kept from it."""


@dataclass(frozen=True, slots=True)
class _Change:
    """A queue was throttled, or unthrottled."""

    run: Run
    """The one in which the call began."""
    throttles: bool
    of_thread: bool
    """The thread that is measured had the CPU."""


def over_quota(
    absences: Sequence[Absence],
    runs: Sequence[Run],
    tasks: Tasks,
    switches: Sequence[TaskSwitch],
) -> Iterator[Absence]:
    """Yield when the thread's own group might not run; `switches` are of its CPU."""
    changes = list(_changes(runs, tasks))
    for absence in absences if changes else ():
        arrived = switch_to(absence.end_ns, switches)
        if absence.wait not in _MAY_RUN or arrived is None or not arrived.is_ordinary:
            continue
        for since_ns, throttled, unthrottled in _times(absence, changes):
            until_ns = unthrottled.run.begin_ns
            # That the thread wanted to run is as sure as the end of its sleep.
            reason, is_sure = (
                _why_runnable(since_ns, until_ns, throttled, runs),
                absence.is_sure,
            )
            if not reason and _first_after(until_ns, switches) == arrived.task:
                reason, is_sure = "the thread was the next to run", False
            if reason:
                calls = tuple(left_in(throttled.run)) if throttled else (THROTTLE,)
                evidence = tuple(_evidence(throttled, unthrottled, reason))
                times = since_ns, absence.end_ns, until_ns
                yield Absence(
                    *times, Wait.QUOTA, calls, evidence=evidence, is_sure=is_sure
                )


def _changes(runs: Sequence[Run], tasks: Tasks) -> Iterator[_Change]:
    """Yield the calls in order, each once: it goes on behind what it calls."""
    seen: set[Frame] = set()
    for run, of_thread in zip(runs, tasks.measured, strict=True):
        name = plain(run.frame.name)
        if name in (THROTTLE, UNTHROTTLE) and run.frame not in seen:
            seen.add(run.frame)
            yield _Change(run, name == THROTTLE, of_thread)


def _times(
    absence: Absence, changes: Sequence[_Change]
) -> Iterator[tuple[int, _Change | None, _Change]]:
    """Yield from when on, and between which changes, a queue was off the CPU."""
    throttled: _Change | None = None
    is_off = True  # of what was before the path nothing is known
    for change in changes:
        at_ns = change.run.begin_ns
        if change.throttles:
            throttled, is_off = change, True
            continue
        if is_off and absence.runnable_ns < at_ns <= absence.end_ns:
            since_ns = absence.runnable_ns
            yield (
                max(since_ns, throttled.run.begin_ns if throttled else since_ns),
                throttled,
                change,
            )
        throttled, is_off = None, False


def _why_runnable(
    since_ns: int, until_ns: int, throttled: _Change | None, runs: Sequence[Run]
) -> str:
    """Say what proves that it was the thread's queue; nothing if nothing does."""
    if throttled is not None and throttled.of_thread:
        return "the thread had the CPU then"
    idled = any(
        Role.IDLE in run.frame.within
        and run.end_ns - run.begin_ns - run.executed_ns > PROMPT_NS
        for run in runs
        if since_ns < run.begin_ns and run.end_ns <= until_ns
    )
    return "the CPU was idle then, although the thread wanted to run" if idled else ""


def _first_after(at_ns: int, switches: Sequence[TaskSwitch]) -> int | None:
    """Return the first ordinary task that a CPU switched to; no other is looked for."""
    later = (one for one in switches if one.at_ns > at_ns)
    return next((one.task for one in later if one.is_ordinary), None)


def _evidence(
    throttled: _Change | None, unthrottled: _Change, reason: str
) -> Iterator[str]:
    yield (
        "the thread's control group had used up its CPU time (its cpu.max or that of a "
        f"group above): {reason}"
    )
    if throttled is None:
        yield f"{THROTTLE} took it off this CPU before the path begins"
    yield f"given back by {' < '.join(list(left_in(unthrottled.run))[:_CALLERS])}"
