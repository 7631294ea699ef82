"""
How a thread that something held back came into the queue of its CPU again. Pure.

Whoever makes it runnable puts it there, or asks the thread's CPU to do so by an
interrupt (`sched_ttwu_pending`), and says whether the running task has to give way.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from rtscope.explain.instructions.absences import Absence, Queued
from rtscope.explain.instructions.calls import Role, Run, begun, plain

_ENQUEUES = frozenset({Role.ENQUEUE, Role.ENQUEUE_FAIR})
_PENDING = "sched_ttwu_pending"
"""Puts the threads that other CPUs have woken into the queue of this one."""


def with_queue(
    absence: Absence, cpu: int, runs_on: Callable[[int], Sequence[Run]]
) -> Absence:
    """Return an absence with its thread's way into the queue of a CPU, if it shows."""
    if absence.woken is None:
        return absence
    woken_ns, woken_on = absence.woken
    there = list(_called(runs_on(woken_on), woken_ns, absence.end_ns))
    at = next((run for run in there if run.frame.role in _ENQUEUES), None)
    if at is None:
        there = list(_pending(runs_on(cpu), woken_ns, absence.end_ns))
        at = next((run for run in there if run.frame.role in _ENQUEUES), None)
    if at is None:
        return absence
    asked = any(run.frame.role is Role.RESCHEDULE for run in there)
    return replace(absence, queued=Queued(at.begin_ns, asked))


def _called(runs: Sequence[Run], at_ns: int, end_ns: int) -> Iterator[Run]:
    """Yield the runs of a call that began at a time, before another."""
    first = begun(runs, at_ns)
    if first == len(runs) or runs[first].begin_ns != at_ns:
        return
    call = runs[first].frame
    for run in runs[first : begun(runs, end_ns)]:
        if run.frame.depth >= call.depth and call in run.frame.chain():
            yield run


def _pending(runs: Sequence[Run], begin_ns: int, end_ns: int) -> Iterator[Run]:
    for run in runs[begun(runs, begin_ns) : begun(runs, end_ns)]:
        if any(plain(one.name) == _PENDING for one in run.frame.chain()):
            yield run
