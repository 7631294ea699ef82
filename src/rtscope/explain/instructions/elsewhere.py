"""
A timer that expired on another CPU than its thread's, and when that was asked to wake.

With nohz_full= the kernel may give the timers of a CPU to one that is not in its list,
unless kernel.timer_migration is 0 (`get_nohz_timer_target` in `kernel/sched/core.c`).
Then the thread is as late as that other CPU, and its own has yet to be interrupted.
Pure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rtscope.explain.instructions.absences import Absence, Wait
from rtscope.explain.instructions.calls import Frame, Run, plain
from rtscope.explain.instructions.contexts import Context
from rtscope.explain.instructions.flags import IrqFlags, PreemptCounts, irqs_off_at
from rtscope.explain.instructions.milestones import first_of, wakes_of
from rtscope.explain.instructions.othercpus import OtherCpus
from rtscope.explain.instructions.roles import Role
from rtscope.explain.instructions.scheduling import switch_to
from rtscope.explain.instructions.wakers import ASKS
from rtscope.explain.model import TIMER_ELSEWHERE_REMEDY
from rtscope.record.instructions.section import CpuBlocks, TaskSwitch


@dataclass(frozen=True, slots=True)
class _Call:
    """A call on another CPU that woke a thread whose timer had expired."""

    cpu: int
    begin_ns: int
    done_ns: int
    """When it asked for an interrupt; its end if it did not."""
    asks: bool


@dataclass(frozen=True, slots=True)
class ThreadsCpu:
    """What the CPU of the thread did."""

    cpu: int
    executed: "Executed"
    runs: list[Run]
    delays: frozenset[Frame]
    """The calls that only spent time."""
    contexts: Sequence[Context]
    flags: IrqFlags
    counts: PreemptCounts
    switches: Sequence[TaskSwitch]
    """To its tasks, in order."""
    is_merged: bool = False
    """Short calls are part of their callers: there were very many."""


_AT_ONCE = 1 << 18
"""Blocks of which copies are made at once: there may be millions."""


@dataclass(frozen=True, slots=True)
class Executed:
    """The blocks that took too long, or behind which the CPU paused, in order."""

    at_ns: NDArray[np.int64]
    own_ns: NDArray[np.int64]
    until_ns: NDArray[np.int64]
    """When it executed the next one."""


def telling(blocks: CpuBlocks, most_ns: int) -> Executed:
    """Return the few blocks that a proof needs; none takes more than `most_ns`."""
    at_ns, own_ns = blocks.at_ns, blocks.executed_ns
    chosen = np.zeros(len(at_ns), np.bool_)
    for begin in range(0, len(at_ns), _AT_ONCE):
        rows, behind = slice(begin, begin + _AT_ONCE), slice(begin + 1, None)
        until_ns = at_ns[behind][:_AT_ONCE]
        paused = until_ns > at_ns[rows][: len(until_ns)] + own_ns[rows][: len(until_ns)]
        chosen[begin : begin + len(until_ns)] = paused
        chosen[rows] |= own_ns[rows] > most_ns
    if len(at_ns):
        chosen[-1] = True
    found = np.flatnonzero(chosen)
    ends_ns = np.append(at_ns[found[:-1] + 1], blocks.last_ns)[: len(found)]
    return Executed(at_ns[found], own_ns[found], ends_ns)


def expired_elsewhere(
    absence: Absence, here: ThreadsCpu, expiry_ns: int, others: OtherCpus
) -> Absence:
    """
    Return a sleep with the end that another CPU put to it; itself if that is not so.

    A timer that expired on the thread's CPU needs no other. A path that begins behind
    the expiry does not show whether it did.
    """
    since_ns = max(expiry_ns, absence.begin_ns)
    if absence.wait is not Wait.TIMER or others.section.first_ns > expiry_ns:
        return absence
    arrived = switch_to(absence.end_ns, here.switches)
    if _expired_here(absence, here, arrived) or _was_elsewhere(absence, here, others):
        return absence
    calls = [
        call
        for cpu in others.cpus
        for call in _calls(cpu, others.runs_on(cpu), arrived)
        if since_ns <= call.begin_ns < absence.end_ns
    ]
    if not calls:
        return absence
    asking = [call for call in calls if call.asks]
    waker = _likely(sorted(asking or calls, key=lambda c: c.done_ns), absence, here)
    realtime = arrived is None or not arrived.is_ordinary
    return replace(
        absence,
        runnable_ns=min(waker.done_ns, absence.end_ns),
        wait=Wait.TIMER_ELSEWHERE,
        ended_by=f"CPU {waker.cpu}",
        evidence=tuple(_evidence(waker, expiry_ns, realtime=realtime)),
        is_sure=realtime and waker.asks and len(calls) == 1,
        woken=(waker.begin_ns, waker.cpu),
    )


def _expired_here(
    absence: Absence, here: ThreadsCpu, arrived: TaskSwitch | None
) -> bool:
    return any(
        run.frame.role is Role.WAKE
        and absence.begin_ns <= run.begin_ns < absence.end_ns
        for call in wakes_of(here.runs, arrived)
        for run in call
    )


def _was_elsewhere(absence: Absence, here: ThreadsCpu, others: OtherCpus) -> bool:
    """Tell whether the thread went to sleep on another CPU: its timer is there."""
    ours = [one.task for one in here.switches[-1:]]
    return any(
        one.cpu != here.cpu and one.at_ns <= absence.end_ns
        for one in others.switches
        if one.task in ours
    )


def _likely(calls: Sequence[_Call], absence: Absence, here: ThreadsCpu) -> _Call:
    """
    Return the call that most likely woke the thread, of some in order.

    That is the last one before the interrupt that led to the switch; while interrupts
    were off here until then, it may be the first one since.
    """
    inside = (
        at
        for at in range(len(here.runs) - 1, -1, -1)
        if here.contexts[at].role is Role.INTERRUPT
        and here.runs[at].begin_ns < absence.end_ns
    )
    last, taken_ns = next(inside, None), absence.end_ns
    if last is not None:
        taken_ns = here.runs[first_of(here.runs, here.contexts, last)].begin_ns
    off = irqs_off_at(here.flags, here.runs, taken_ns - 1)
    while_off = [c for c in calls if off and off.since_ns <= c.done_ns <= taken_ns]
    before = [call for call in calls if call.done_ns <= taken_ns]
    return (*while_off[:1], *before[-1:], *calls[:1])[0]


def _calls(
    cpu: int, runs: Sequence[Run], arrived: TaskSwitch | None
) -> Iterator[_Call]:
    for of_call in wakes_of(runs, arrived):
        asks = next((r for r in of_call if plain(r.frame.name) in ASKS), None)
        done_ns = of_call[-1].end_ns if asks is None else asks.begin_ns
        yield _Call(cpu, of_call[0].begin_ns, done_ns, asks is not None)


def _evidence(call: _Call, expiry_ns: int, *, realtime: bool) -> Iterator[str]:
    yield (
        f"CPU {call.cpu} executed the callback that wakes a sleeping thread, "
        f"{call.begin_ns - expiry_ns} ns after the expiry"
    )
    if call.asks:
        yield (
            f"{call.done_ns - expiry_ns} ns after the expiry it asked for an interrupt "
            "of another CPU"
        )
    if not realtime:
        yield "the thread is not real-time: part of this may be timer slack"
    yield TIMER_ELSEWHERE_REMEDY
