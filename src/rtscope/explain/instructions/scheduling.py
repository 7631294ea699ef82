"""
What kept a CPU from the thread: competing tasks. Pure.

Another task ran although the measured one was awake: the kernel's functions show why.
They show the queue that it put the thread into, whether it asked the running task to
give way, and the scheduling class that chose the next.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from rtscope.explain.instructions.calls import Frame, Run, begun
from rtscope.explain.instructions.milestones import Milestones, queued_fair
from rtscope.explain.instructions.roles import Role
from rtscope.explain.model import Cause
from rtscope.record.instructions.section import TaskSwitch
from rtscope.record.instructions.symbols import USER

PERIOD = "sched_rt_period_timer"
"""The timer that gives real-time threads their time, until Linux 6.11."""
SAYS_SO = "resched_curr"
ENTRIES = frozenset({Role.INTERRUPT, Role.TRAP, Role.SYSCALL, Role.DISPATCH})
"""A thread that left its CPU there would have gone on."""
_TO_PROGRAMS = ("exit_to_user_mode", "do_notify_resume", "work_resched")
_CHOOSERS = frozenset({Role.FAIR_SERVER, Role.PICK_REALTIME, Role.PICK_FAIR})


@dataclass(frozen=True, slots=True)
class Queued:
    """A thread was put among those that want to run."""

    at_ns: int
    preempts: bool
    """The running task was to give way, by what the kernel called then."""
    by_interrupt: bool
    """Another CPU had the thread's own CPU do it, by an interrupt."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A call of the scheduler to choose the next task."""

    at: int
    """The run in which it began, or in which it asked its last chooser."""
    chooser: Role
    """The class that it asked last, which chose; OTHER if unknown here."""


@dataclass(frozen=True, slots=True)
class CompetingTasks:
    """What ran between the wake-up of the thread and its own code."""

    is_ordinary: bool
    """The thread was queued as one that is not real-time."""
    goes_on: bool
    """The running thread was not to give way, or another was chosen before ours."""
    decisions: Sequence[Decision]
    unthrottled: Sequence[int]
    """The runs in which real-time threads got time again."""
    queued: int | None
    """The run in which the thread was queued when it was woken; None if none shows."""
    is_realtime: bool = False
    """Its policy was recorded when it arrived, and is a real-time one."""

    def cause(self, i: int, *, left: Run | None = None) -> Cause:
        """
        Return why a run of another thread was before ours.

        `left` is where ours left the CPU before that, if it had been switched to.
        """
        if self.is_ordinary:
            return Cause.NOT_REALTIME
        decision = self.decision_before(i)
        chooser = decision.chooser if decision else None
        if self._is_throttled(i, chooser):
            return Cause.THROTTLED
        if chooser is Role.FAIR_SERVER:
            return Cause.FAIR_SERVER
        if chooser is not Role.PICK_FAIR or (left is not None and not gives_way(left)):
            return Cause.OTHER_TASK
        # Real-time ones are asked first: it became an ordinary one while it was awake.
        assert decision is not None
        was_awake = self._queued_before(decision)
        became_ordinary = was_awake and not self.is_realtime
        return Cause.NOT_REALTIME if became_ordinary else Cause.OTHER_TASK

    def was_chosen(self, i: int) -> bool:
        """
        Tell whether the scheduler chose the task of a run while the thread was awake.

        It may choose the one that runs, and then switches to none.
        """
        decision = self.decision_before(i)
        if decision is None or decision.chooser is Role.OTHER:
            return False
        if self.queued is None:
            return self.is_ordinary
        return self._queued_before(decision)

    def _queued_before(self, decision: Decision) -> bool:
        return self.queued is not None and self.queued < decision.at

    def decision_before(self, i: int) -> Decision | None:
        """Return the last choice of the scheduler before a run."""
        before = bisect_right(self.decisions, i, key=lambda one: one.at)
        return self.decisions[before - 1] if before else None

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


def switch_to(arrived_ns: int, switches: Sequence[TaskSwitch]) -> TaskSwitch | None:
    """
    Return the record of a switch that ended at a time; None if there is none.

    `switches` are of that CPU, in order.
    """
    later = (one for one in switches if one.at_ns >= arrived_ns and not one.changed)
    return next(later, None)


def competing_tasks(
    runs: Sequence[Run],
    milestones: Milestones,
    names: Sequence[str | None],
    *,
    switches: Sequence[TaskSwitch],
    elsewhere: Sequence[Run],
    has_quota: bool,
    is_held: bool,
    queued: Queued | None,
) -> CompetingTasks:
    """
    Find the milestones; `names` are those of all functions that the kernel has.

    One timer gives the real-time threads of all CPUs their time: `elsewhere` is what
    others did when it expired there. A quota shows that the thread is ordinary; so may
    its policy, where one of the `switches` of its CPU has it and something held the
    thread back. If no timer of this CPU woke it, `queued` has how it came into the
    queue.
    """
    if milestones.switched is None:
        return CompetingTasks(False, False, (), (), None)
    arrived: TaskSwitch | None = None
    if milestones.switched:
        arrived = switch_to(runs[milestones.switched - 1].end_ns, switches)
    is_ordinary = has_quota or bool(is_held and arrived and arrived.is_ordinary)
    known = (milestones.woken, milestones.entered, milestones.first)
    begin = next(at for at in known if at is not None)
    scheduled = (
        milestones.switched if milestones.scheduled is None else milestones.scheduled
    )
    return CompetingTasks(
        is_ordinary=is_ordinary or queued_fair(runs[begin : milestones.switched]),
        goes_on=not queued.preempts
        if queued is not None and SAYS_SO in names
        else _goes_on(
            runs[begin:scheduled], names if milestones.woken is not None else ()
        ),
        decisions=_decisions(runs, begin),
        unthrottled=_unthrottled(runs, begin, elsewhere),
        queued=_queued(runs, begin, milestones.switched)
        if queued is None
        else max(0, begun(runs, queued.at_ns) - 1),
        is_realtime=bool(arrived and arrived.is_realtime),
    )


def sleeps_in_fault(left: Run) -> bool:
    """Tell of the run in which a thread left its CPU whether it waits for a page."""
    for frame in left.frame.chain():
        role = frame.role
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
        role = frame.role
        if role is Role.PREEMPT or role in ENTRIES:
            return True
        if role is Role.OTHER and not frame.name.startswith("schedule"):
            return leads_to_program(frame.name)
    return False


def leads_to_program(name: str) -> bool:
    """Tell of a function whether a thread is on its way to its program in it."""
    return any(part in name for part in _TO_PROGRAMS)


def _decisions(runs: Sequence[Run], begin: int) -> Sequence[Decision]:
    """
    Find every call of the scheduler, and the class that it asked last.

    It asks class by class until one has a task. Of calls that it returns to behind a
    switch nothing is known, their callers neither: they chose long before.
    """
    decisions: list[Decision] = []
    calls: set[Frame] = set()
    for i in range(begin, len(runs)):
        frame = runs[i].frame
        role = frame.role
        if role is Role.SCHEDULE and frame not in calls and frame.caller is not None:
            calls.add(frame)
            decisions.append(Decision(i, Role.OTHER))
        elif role in _CHOOSERS and decisions and not _is_from_server(frame):
            decisions[-1] = Decision(i, role)
    return tuple(decisions)


def _is_from_server(frame: Frame) -> bool:
    return frame.role is not Role.FAIR_SERVER and any(
        caller.role is Role.FAIR_SERVER for caller in frame.chain()
    )


def _goes_on(runs: Sequence[Run], names: Sequence[str | None]) -> bool:
    """
    Tell whether the task that continued after the interrupt need not give way.

    On its way to a program the kernel calls the scheduler if it has to: so a program
    that continues was not asked to give way.
    """
    if any(run.frame.name == USER for run in runs):
        return True
    was_asked = any(
        run.frame.role is Role.RESCHEDULE and Role.WAKE in run.frame.within
        for run in runs
    )
    return not was_asked and SAYS_SO in names


def _queued(runs: Sequence[Run], begin: int, end: int) -> int | None:
    at = [i for i in range(begin, end) if runs[i].frame.role is Role.ENQUEUE]
    return next((i for i in reversed(at) if Role.WAKE in runs[i].frame.within), None)


def _unthrottled(
    runs: Sequence[Run], begin: int, elsewhere: Sequence[Run]
) -> Sequence[int]:
    here = {i for i in range(begin, len(runs)) if _unthrottles(runs[i])}
    there = [run.begin_ns for run in elsewhere if _unthrottles(run)]
    at = {bisect_right(runs, begin, key=lambda run: run.end_ns) for begin in there}
    return sorted(here | {i for i in at if begin <= i < len(runs)})


def _unthrottles(run: Run) -> bool:
    return run.frame.role is Role.RESCHEDULE and Role.UNTHROTTLE in run.frame.within
