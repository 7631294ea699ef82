"""
How a thread that something held back came into the queue of its CPU again. Pure.

Whoever makes it runnable puts it there, or asks the thread's CPU to do so by an
interrupt (`sched_ttwu_pending`), and says whether the running task has to give way. If
it has to, the interrupt of another CPU has yet to arrive; if not, it goes on.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from rtscope.explain.instructions.absences import Absence, Wait
from rtscope.explain.instructions.calls import Frame, Run, begun, plain
from rtscope.explain.instructions.contexts import Context
from rtscope.explain.instructions.milestones import first_of
from rtscope.explain.instructions.roles import Role
from rtscope.explain.instructions.scheduling import Queued
from rtscope.record.instructions.section import TaskSwitch

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
    called = list(_called(runs_on(woken_on), woken_ns, absence.end_ns))
    by, queueing = called, _queueing(called, arrived)
    ended = queueing[0] if queueing else None
    if not queueing:
        by = list(_pending(runs_on(cpu), woken_ns, absence.end_ns))
        queueing = _queueing(by, arrived)
        ended = next((run for run in called if plain(run.frame.name) in ASKS), None)
    if len(queueing) != 1:
        return absence
    (at,) = queueing
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


def _queueing(runs: Sequence[Run], arrived: TaskSwitch | None) -> Sequence[Run]:
    """Return the begins of the calls that put a thread of this kind into a queue."""
    roles = {Role.ENQUEUE, Role.ENQUEUE_FAIR}
    if arrived is not None and arrived.policy:
        roles = {Role.ENQUEUE_FAIR if arrived.is_ordinary else Role.ENQUEUE}
    begins: dict[Frame, Run] = {}
    for run in runs:
        if run.frame.role in roles:
            begins.setdefault(run.frame, run)
    return [*begins.values()]


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
