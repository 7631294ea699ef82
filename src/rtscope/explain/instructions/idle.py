"""
When a whole board slept although a thread's timer was due. Pure.

A path counts instructions, and a board that sleeps executes none. The timer of a thread
that is real-time ends such a sleep when it is due. That of another may wait for its
slack, 50 us as a rule: by then the count back from the mark has gone that far past the
true expiry, into what the thread did before.

The same count has a thread that was still busy when its timer was due, and armed it
then: there nothing slept.
"""

from bisect import bisect_left
from collections.abc import Sequence

from rtscope.explain.instructions.calls import Frame, Run
from rtscope.explain.instructions.functions import Role, plain, role_of
from rtscope.explain.instructions.milestones import Context, find_way, first_of
from rtscope.explain.instructions.naming import is_any
from rtscope.explain.instructions.scheduling import is_ordinary
from rtscope.explain.instructions.tasks import Tasks

_ENDS_WAITING = "tick_nohz_idle_exit"
_OF_THE_SCHEDULER = frozenset({Role.SWITCH, Role.SCHEDULE})


def standstill_end(
    runs: Sequence[Run], contexts: Sequence[Context], expiry: int, *, tasks: Tasks
) -> int | None:
    """
    Return where the board began to execute again, as a count of instructions.

    None if the CPU did not sleep between the expiry as counted and the wake-up: only a
    thread that is not real-time, went to sleep behind that, with a timer that was not
    due yet, on a CPU that became idle, tells of it.
    """
    left = next(
        (
            i
            for i in reversed(tasks.departures(runs))
            if runs[i].begin >= expiry and _goes_to_sleep(runs[i])
        ),
        None,
    )
    if left is None or _was_overdue(runs, left):
        return None
    came = _ended_idle(runs, left, before=tasks.arrival(runs[left].end))
    if came is None:
        return None
    begin = runs[first_of(runs, contexts, came)].begin
    way = find_way(runs, contexts, begin, tasks=tasks)
    if way.woken is None:
        return None
    queued = is_ordinary(runs[way.woken : way.switched])
    return begin if way.late_timer or queued else None


def armed_overdue(runs: Sequence[Run], tasks: Tasks) -> bool:
    """Tell whether the thread armed its timer in these runs after that was due."""
    return any(
        role_of(run.frame.name) is Role.OVERDUE
        and is_any(run, Role.SLEEP)
        and tasks.is_measured(run)
        for run in runs
    )


def _goes_to_sleep(left: Run) -> bool:
    """
    Tell of the run in which a thread left its CPU whether it waits for its timer.

    On PREEMPT_RT it may have to wait for a lock there too, when that has expired.
    """
    for frame in left.frame.chain():
        role = role_of(frame.name)
        if role not in _OF_THE_SCHEDULER and not frame.name.startswith("schedule"):
            return role is Role.SLEEP
    return False


def _was_overdue(runs: Sequence[Run], left: int) -> bool:
    """Tell whether the timer was due before the thread left the CPU to wait for it."""
    chain = runs[left].frame.chain()
    sleeps = next(frame for frame in chain if role_of(frame.name) is Role.SLEEP)
    return any(
        role_of(run.frame.name) is Role.OVERDUE and sleeps in run.frame.chain()
        for run in runs[:left]
    )


def _ended_idle(runs: Sequence[Run], left: int, *, before: int | None) -> int | None:
    """
    Return the timer's interrupt that ended the idle time before an arrival.

    It is the first since the CPU last began to wait: after it there is a thread to run.
    """
    end = len(runs) if before is None else bisect_left(runs, before, key=_begin)
    known: set[Frame] = set()
    waits = left
    for i in range(left, end):
        frame = runs[i].frame
        if frame not in known and role_of(frame.name) is Role.IDLE:
            known.add(frame)
            waits = waits if plain(frame.name) == _ENDS_WAITING else i
    return next(
        (
            i
            for i in range(waits, end)
            if role_of(runs[i].frame.name) is Role.TIMER and is_any(runs[i], Role.IDLE)
        ),
        None,
    )


def _begin(run: Run) -> int:
    return run.begin
