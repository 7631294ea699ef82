"""
A timer that expired on another CPU, and a thread that came into its queue again. Pure.

With nohz_full= the kernel may give the timers of a CPU to one that is not in its list,
unless kernel.timer_migration is 0 (`get_nohz_timer_target` in `kernel/sched/core.c`).
Then the thread is as late as that other CPU, and its own has yet to be interrupted.

Whoever makes it runnable puts it there, or asks the thread's CPU to do so by an
interrupt (`sched_ttwu_pending`), and says whether the running task has to give way. If
it has to, the interrupt of another CPU has yet to arrive; if not, it goes on.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rtscope.explain.instructions.absences import Absence, Wait
from rtscope.explain.instructions.calls import Frame, Run, begun, plain
from rtscope.explain.instructions.contexts import (
    Context,
    IrqFlags,
    PreemptCounts,
    irqs_off_at,
)
from rtscope.explain.instructions.milestones import first_of, wakes_of
from rtscope.explain.instructions.othercpus import OtherCpus
from rtscope.explain.instructions.roles import Role
from rtscope.explain.instructions.scheduling import Queued, switch_to
from rtscope.explain.model import TIMER_ELSEWHERE_REMEDY
from rtscope.record.instructions.section import CpuBlocks, TaskSwitch

# --- how a thread that something held back came into the queue of its CPU again -------

ASKS = frozenset(
    {
        *("native_smp_send_reschedule", "smp_send_reschedule"),
        *("arch_smp_send_reschedule", "native_send_call_func_single_ipi"),
        "arch_send_call_function_single_ipi",
    }
)
"""What interrupts another CPU, on x86-64, arm64 and riscv64, to make it schedule."""


_PENDING = "sched_ttwu_pending"
"""Puts the threads that other CPUs have woken into the queue of this one."""


def with_queue(
    absence: Absence,
    arrived: TaskSwitch | None,
    cpu: int,
    runs_on: Callable[[int], Sequence[Run]],
    *,
    says_so: bool,
) -> Absence:
    """
    Return an absence with its thread's way into the queue of a CPU, if it shows.

    It does not if the call woke several threads of its kind: `arrived` has the policy.
    `says_so`: the kernel has a function that asks a task to give way.
    """
    if absence.woken is None:
        return absence
    woken_ns, woken_on = absence.woken
    called = list(called_at(runs_on(woken_on), woken_ns, absence.end_ns))
    by, queued = called, queueing(called, arrived)
    ended = queued[0] if queued else None
    if not queued:
        by = list(pending(runs_on(cpu), woken_ns, absence.end_ns))
        queued = queueing(by, arrived)
        ended = next((run for run in called if plain(run.frame.name) in ASKS), None)
    if len(queued) != 1:
        return absence
    (at,) = queued
    preempts = any(run.frame.role is Role.RESCHEDULE for run in by)
    # A timer elsewhere ends where its CPU asks for the interrupt.
    if absence.wait is Wait.TIMER_ELSEWHERE or ended is None:
        runnable_ns = absence.runnable_ns
    else:
        runnable_ns = ended.begin_ns
    return replace(
        absence,
        runnable_ns=runnable_ns,
        queued=Queued(
            at.begin_ns, preempts or not says_so, by_interrupt=by is not called
        ),
    )


def queueing(runs: Sequence[Run], arrived: TaskSwitch | None) -> Sequence[Run]:
    """Return the begins of the calls that put a thread of this kind into a queue."""
    roles = {Role.ENQUEUE, Role.ENQUEUE_FAIR}
    if arrived is not None and arrived.policy:
        roles = {Role.ENQUEUE_FAIR if arrived.is_ordinary else Role.ENQUEUE}
    begins: dict[Frame, Run] = {}
    for run in runs:
        if run.frame.role in roles:
            begins.setdefault(run.frame, run)
    return [*begins.values()]


def called_at(runs: Sequence[Run], at_ns: int, end_ns: int) -> Iterator[Run]:
    """Yield the runs of a call that began at a time, before another."""
    first = begun(runs, at_ns)
    if first == len(runs) or runs[first].begin_ns != at_ns:
        return
    call = runs[first].frame
    for run in runs[first : begun(runs, end_ns)]:
        if run.frame.depth >= call.depth and call in run.frame.chain():
            yield run


def pending(runs: Sequence[Run], begin_ns: int, end_ns: int) -> Iterator[Run]:
    """Yield what a CPU did to queue threads that others had woken."""
    for run in runs[begun(runs, begin_ns) : begun(runs, end_ns)]:
        if any(plain(one.name) == _PENDING for one in run.frame.chain()):
            yield run


def reached_ns(
    held: Absence, cpu: int, runs: Sequence[Run], contexts: Sequence[Context]
) -> int:
    """
    Return when a thread's CPU knew of its end: another one has to interrupt it.

    That is so at once if the task that runs there need not give way.
    """
    is_remote = held.woken is not None and held.woken[1] != cpu
    comes = held.wait is Wait.TIMER_ELSEWHERE
    if held.queued is not None:
        comes = held.queued.preempts or held.queued.by_interrupt
    if not is_remote or not comes:
        return held.runnable_ns
    begin = begun(runs, held.runnable_ns)
    came = (
        runs[i].begin_ns
        for i in range(begin, len(runs))
        if contexts[i].role is Role.INTERRUPT and first_of(runs, contexts, i) >= begin
    )
    came_ns = next(came, held.end_ns)
    return came_ns if came_ns < held.end_ns else held.runnable_ns


# A timer that expired on another CPU than its thread's, and when that was asked to
# wake.


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
