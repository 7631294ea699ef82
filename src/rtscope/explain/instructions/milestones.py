"""
The milestones of a wake-up: expiry, interrupt, callback, scheduler, switch. Pure.

The path counts instructions, and a board that sleeps executes none: `idle_end` finds
where it woke, if it slept although the thread's timer was due.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rtscope.exectrace.file import TaskSwitch
from rtscope.explain.instructions.calls import Context, Frame, Role, Run, plain

AHEAD = 64
"""The count of instructions runs ahead by less than one in so many."""
_DELIVERS = "generic_handle_domain_irq"
_ENDS_WAITING = "tick_nohz_idle_exit"
_OF_THE_SCHEDULER = frozenset({Role.SWITCH, Role.SCHEDULE})


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of one CPU's runs; the sequences are empty if none were recorded."""

    names: Sequence[str]
    """Of the task of each run; empty if that is unknown."""
    measured: Sequence[bool]
    """Whether the thread that is measured did a run; False if that is unknown."""
    arrivals: Sequence[int]
    """When the CPU switched to the measured thread, as instruction counts."""
    departures: Sequence[int]
    """The runs in which the measured thread left the CPU, in order."""

    def arrival(self, after: int) -> int | None:
        """Return when the CPU first switched to the measured thread, after a count."""
        return next((at for at in self.arrivals if at > after), None)


def tasks_of(cpu: int, switched: Sequence[TaskSwitch], runs: Sequence[Run]) -> Tasks:
    """Return the tasks of the CPU that the wake-up was on."""
    leaving = [i for i, run in enumerate(runs) if run.frame.role is Role.SWITCH]
    ends = [runs[i].end for i in leaving]
    switches = [(_switched(one.at, ends), one) for one in switched if one.cpu == cpu]
    if not switches:
        return Tasks((), (False,) * len(runs), (), ())
    at = [count for count, _ in switches]
    before = [bisect_right(at, run.begin) - 1 for run in runs]
    ours = switches[-1][1].task
    measured = [i >= 0 and switches[i][1].task == ours for i in before]
    return Tasks(
        names=[switches[i][1].name if i >= 0 else "" for i in before],
        measured=measured,
        arrivals=[count for count, one in switches if one.task == ours],
        departures=[i for i in leaving if measured[i]],
    )


def _switched(recorded: int, ends: Sequence[int]) -> int:
    """A task is recorded a few instructions behind the switch to it."""
    before = bisect_right(ends, recorded) - 1
    return ends[before] if before >= 0 else recorded


@dataclass(frozen=True, slots=True)
class Milestones:
    """Indices into the runs of the CPU; None for what was not seen."""

    first: int
    """The run in which the timer expired."""
    entered: int | None
    """Where the interrupt begins that woke the thread."""
    woken: int | None
    """The callback that woke it."""
    late_timer: bool
    """The timer expired in a softirq, so the thread was not real-time."""
    expired: int | None
    """Then: the last run of the interrupt that left the timer to the softirq."""
    scheduled: int | None
    """Where the first call of the scheduler begins that switched, after that."""
    switched: int | None
    """The first run after the switch to the thread."""


def is_one_delivery(run: Run, other: Run) -> bool:
    """Tell whether two runs in one entry, as ARM's, are not of two interrupts."""
    mine, theirs = _delivery_of(run), _delivery_of(other)
    return mine is None or theirs is None or mine is theirs


def _delivery_of(run: Run) -> Frame | None:
    """Return the call that led to the interrupt's handler, where there is such."""
    return next((f for f in run.frame.chain() if f.name == _DELIVERS), None)


def find_milestones(
    runs: Sequence[Run], contexts: Sequence[Context], expiry: int, *, tasks: Tasks
) -> Milestones:
    """Find the marks, from the expiry (an instruction count) to the end."""
    first = next((i for i, run in enumerate(runs) if run.end > expiry), len(runs))
    last = _first(runs, range(len(runs) - 1, first - 1, -1), Role.SWITCH)
    woken = _first(runs, range(first, len(runs) if last is None else last), Role.WAKE)
    if woken is None:
        woken = _waking_before(runs, first, expiry)
    arrival = tasks.arrival(expiry if woken is None else runs[woken].begin)
    before = _begun(runs, arrival)
    switch = _first(runs, range(before - 1, first - 1, -1), Role.SWITCH)
    late = woken is not None and Role.SOFT_TIMER in runs[woken].frame.within
    entered = None
    if woken is not None:
        entered = first_of(runs, contexts, woken)
    scheduled, after = None, woken or first
    if switch is not None:
        switching = _first(runs, range(after, len(runs)), Role.SWITCH)
        assert switching is not None
        scheduled = max(after, first_of(runs, contexts, switching))
    return Milestones(
        first=first,
        entered=entered,
        woken=woken,
        late_timer=late,
        expired=_left_to_softirq(runs, first, entered or 0) if late else None,
        scheduled=scheduled,
        switched=None if switch is None else switch + 1,
    )


def first_of(runs: Sequence[Run], contexts: Sequence[Context], inside: int) -> int:
    """Return the first run of the context that a run belongs to."""
    frame = contexts[inside].frame
    begin = inside
    for i in range(inside, -1, -1):
        if contexts[i].frame is frame:
            begin = i
        elif frame is None or frame not in runs[i].frame.chain():
            break
    return begin


def _first(
    runs: Sequence[Run], at: Iterable[int], role: Role, *, within: Role | None = None
) -> int | None:
    """Return the first of these runs that is of a role, if need be within another."""
    return next(
        (
            i
            for i in at
            if runs[i].frame.role is role and (within or role) in runs[i].frame.within
        ),
        None,
    )


def _waking_before(runs: Sequence[Run], first: int, expiry: int) -> int | None:
    """
    Return what woke the thread, if the count puts that before the expiry.

    The count of instructions runs ahead of the time (format/plugin.md), and so of a
    long delay the expiry that is counted back from its end lies behind the true one.
    """
    late = runs[-1].end - expiry if runs else 0
    found: int | None = None
    for i in range(first - 1, -1, -1):
        role = runs[i].frame.role
        if found is not None and runs[found].frame not in runs[i].frame.chain():
            break
        if role is Role.SWITCH or runs[i].end < expiry - late // AHEAD:
            break
        if role is Role.WAKE:
            found = i  # at last the first of them: what it called lies behind
    return found


def _left_to_softirq(runs: Sequence[Run], first: int, before: int) -> int | None:
    inside = [i for i in range(first, before) if Role.TIMER in runs[i].frame.within]
    if not inside:
        return None
    begin = inside[0]
    frame = next(f for f in runs[begin].frame.chain() if f.role is Role.TIMER)
    return max(i for i in inside if frame in runs[i].frame.chain())


def _begun(runs: Sequence[Run], before: int | None) -> int:
    """Return how many runs began before an instruction count; all for None."""
    if before is None:
        return len(runs)
    return bisect_left(runs, before, key=lambda run: run.begin)


def idle_end(
    runs: Sequence[Run], contexts: Sequence[Context], expiry: int, *, tasks: Tasks
) -> int | None:
    """
    Return where the board began to execute again, as a count of instructions.

    None if the CPU did not sleep between the expiry as counted and the wake-up: only a
    thread that is not real-time, went to sleep behind that, with a timer that was not
    due yet, on a CPU that became idle, shows it.
    """
    left = next(
        (
            i
            for i in reversed(tasks.departures)
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
    milestones = find_milestones(runs, contexts, begin, tasks=tasks)
    if milestones.woken is None:
        return None
    queued = is_ordinary(runs[milestones.woken : milestones.switched])
    return begin if milestones.late_timer or queued else None


def _goes_to_sleep(left: Run) -> bool:
    """
    Tell of the run in which a thread left its CPU whether it waits for its timer.

    On PREEMPT_RT it may have to wait for a lock there too, when that has expired.
    """
    for frame in left.frame.chain():
        role = frame.role
        if role not in _OF_THE_SCHEDULER and not frame.name.startswith("schedule"):
            return role is Role.SLEEP
    return False


def _was_overdue(runs: Sequence[Run], left: int) -> bool:
    """Tell whether the timer was due before the thread left the CPU to wait for it."""
    chain = runs[left].frame.chain()
    sleeps = next(frame for frame in chain if frame.role is Role.SLEEP)
    return any(
        run.frame.role is Role.OVERDUE and sleeps in run.frame.chain()
        for run in runs[:left]
    )


def _ended_idle(runs: Sequence[Run], left: int, *, before: int | None) -> int | None:
    """
    Return the timer's interrupt that ended the idle time before an arrival.

    It is the first since the CPU last began to wait: after it there is a thread to run.
    """
    end = _begun(runs, before)
    known: set[Frame] = set()
    waits = left
    for i in range(left, end):
        frame = runs[i].frame
        if frame not in known and frame.role is Role.IDLE:
            known.add(frame)
            waits = waits if plain(frame.name) == _ENDS_WAITING else i
    return _first(runs, range(waits, end), Role.TIMER, within=Role.IDLE)


def is_ordinary(runs: Sequence[Run]) -> bool:
    """Tell from what was executed since a wake-up whether it was not real-time."""
    queued = {
        role
        for run in runs
        if (role := run.frame.role) in (Role.ENQUEUE, Role.ENQUEUE_FAIR)
        and Role.WAKE in run.frame.within
    }
    return queued == {Role.ENQUEUE_FAIR}
