"""
Why another thread ran although the measured one was awake. Pure.

What the kernel executed tells: which queue it put the thread into, whether it told the
running one to give way, and what chose the next.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from rtscope.explain.instructions.calls import USER, Frame, Run
from rtscope.explain.instructions.functions import Role, role_of
from rtscope.explain.instructions.milestones import Way
from rtscope.explain.instructions.naming import is_any
from rtscope.explain.model import Cause

PERIOD = "sched_rt_period_timer"
"""The timer that gives real-time threads their time, until Linux 6.11."""
_SAYS_SO = "resched_curr"
_ENTRIES = frozenset({Role.INTERRUPT, Role.TRAP, Role.SYSCALL, Role.DISPATCH})
_TO_PROGRAMS = ("exit_to_user_mode", "do_notify_resume", "work_resched")
_CHOOSERS = frozenset({Role.FAIR_SERVER, Role.PICK_REALTIME, Role.PICK_FAIR})


@dataclass(frozen=True, slots=True)
class Decision:
    """A call of the scheduler that was to choose what runs next."""

    at: int
    """The run in which it began, or in which it asked its last chooser."""
    chooser: Role
    """What it asked last, and so what chose; OTHER if none of those known here."""


@dataclass(frozen=True, slots=True)
class Rivals:
    """What ran between the wake-up of the thread and its own code."""

    is_ordinary: bool
    """The thread was queued as one that is not real-time."""
    goes_on: bool
    """The running thread was not to give way, or another was chosen before ours."""
    decisions: Sequence[Decision]
    unthrottled: Sequence[int]
    """The runs in which real-time threads got time again."""
    queued: int | None
    """The last in which one was queued when its timer woke it; None if that was not."""

    def cause(self, i: int, *, left: Run | None = None) -> Cause:
        """
        Return why a run of another thread was before ours.

        `left` is where ours left the CPU before that, if it had been switched to.
        """
        if self.is_ordinary:
            return Cause.ORDINARY
        before = bisect_right(self.decisions, i, key=lambda one: one.at)
        chooser = self.decisions[before - 1].chooser if before else None
        if self._is_throttled(i, chooser):
            return Cause.THROTTLED
        if chooser is Role.FAIR_SERVER:
            return Cause.FAIR_SERVER
        if chooser is not Role.PICK_FAIR or (left is not None and not gives_way(left)):
            return Cause.OTHER_TASK
        # Real-time ones are asked first: it became an ordinary one while it was awake.
        was_awake = (
            self.queued is not None and self.queued < self.decisions[before - 1].at
        )
        return Cause.ORDINARY if was_awake else Cause.OTHER_TASK

    def _is_throttled(self, i: int, chooser: Role | None) -> bool:
        """
        Tell whether a run was before real-time threads got time again.

        Not if a real-time task was chosen, or one of a class that is not known here, or
        one ran on from before the wake-up until an ordinary one was chosen: then those
        threads had their time up to there.
        """
        after = bisect_left(self.unthrottled, i)
        if after == len(self.unthrottled):
            return False
        if chooser is not None:
            return chooser in {Role.PICK_FAIR, Role.FAIR_SERVER}
        return not self.decisions or self.decisions[0].at > self.unthrottled[after]


def rivals_of(
    runs: Sequence[Run],
    way: Way,
    names: Sequence[str | None],
    *,
    elsewhere: Sequence[Run] = (),
) -> Rivals:
    """
    Find what tells; `names` are those of all functions that the kernel has.

    One timer gives the real-time threads of all CPUs their time: `elsewhere` is what
    others did when it expired there.
    """
    if way.switched is None:
        return Rivals(False, False, (), (), None)
    begin = way.first if way.woken is None else way.woken
    scheduled = way.switched if way.scheduled is None else way.scheduled
    return Rivals(
        is_ordinary=is_ordinary(runs[begin : way.switched]),
        goes_on=_goes_on(runs[begin:scheduled], names),
        decisions=_decisions(runs, begin),
        unthrottled=_unthrottled(runs, begin, elsewhere),
        queued=_queued(runs, begin, way.switched),
    )


def sleeps_in_fault(left: Run) -> bool:
    """Tell of the run in which a thread left its CPU whether it waits for a page."""
    for frame in left.frame.chain():
        role = role_of(frame.name)
        if role in (Role.PREEMPT, Role.INTERRUPT):
            return False
        if role is Role.FAULT:
            return True
    return False


def gives_way(left: Run) -> bool:
    """
    Tell of the run in which a thread left its CPU whether it would have gone on.

    It has to leave where the kernel preempts it, and on its way to its program.
    """
    for frame in left.frame.chain():
        role = role_of(frame.name)
        if role is Role.PREEMPT or role in _ENTRIES:
            return True
        if role is Role.OTHER and not frame.name.startswith("schedule"):
            return any(way in frame.name for way in _TO_PROGRAMS)
    return False


def _decisions(runs: Sequence[Run], begin: int) -> Sequence[Decision]:
    """
    Find every call of the scheduler, and what it asked last.

    It asks class by class until one has a task. Of calls that it returns to behind a
    switch nothing is known, their callers neither: they chose long before.
    """
    found: list[Decision] = []
    calls: set[Frame] = set()
    for i in range(begin, len(runs)):
        frame = runs[i].frame
        role = role_of(frame.name)
        if role is Role.SCHEDULE and frame not in calls and frame.caller is not None:
            calls.add(frame)
            found.append(Decision(i, Role.OTHER))
        elif role in _CHOOSERS and found and not _asked_by_server(frame):
            found[-1] = Decision(i, role)
    return tuple(found)


def _asked_by_server(frame: Frame) -> bool:
    return role_of(frame.name) is not Role.FAIR_SERVER and any(
        role_of(caller.name) is Role.FAIR_SERVER for caller in frame.chain()
    )


def is_ordinary(runs: Sequence[Run]) -> bool:
    """Tell from what was executed since a wake-up whether it was not real-time."""
    queued = {
        role
        for run in runs
        if (role := role_of(run.frame.name)) in (Role.ENQUEUE, Role.ENQUEUE_FAIR)
        and _is_waking(run)
    }
    return queued == {Role.ENQUEUE_FAIR}


def _is_waking(run: Run) -> bool:
    return is_any(run, Role.WAKE)


def _goes_on(runs: Sequence[Run], names: Sequence[str | None]) -> bool:
    """
    Tell whether what ran on after the interrupt need not give way.

    On its way to a program the kernel calls the scheduler if it has to: so a program
    that goes on was not to give way.
    """
    if any(run.frame.name == USER for run in runs):
        return True
    said = any(
        role_of(run.frame.name) is Role.RESCHEDULE and _is_waking(run) for run in runs
    )
    return not said and _SAYS_SO in names


def _queued(runs: Sequence[Run], begin: int, end: int) -> int | None:
    return next(
        (
            i
            for i in range(end - 1, begin - 1, -1)
            if role_of(runs[i].frame.name) is Role.ENQUEUE and _is_waking(runs[i])
        ),
        None,
    )


def _unthrottled(
    runs: Sequence[Run], begin: int, elsewhere: Sequence[Run]
) -> Sequence[int]:
    here = {i for i in range(begin, len(runs)) if _unthrottles(runs[i])}
    there = [run.begin for run in elsewhere if _unthrottles(run)]
    at = {bisect_right(runs, begin, key=lambda run: run.end) for begin in there}
    return sorted(here | {i for i in at if begin <= i < len(runs)})


def _unthrottles(run: Run) -> bool:
    return role_of(run.frame.name) is Role.RESCHEDULE and is_any(run, Role.UNTHROTTLE)
