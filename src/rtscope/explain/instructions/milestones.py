"""
The milestones of a wake-up: expiry, interrupt, callback, scheduler, switch. Pure.

A run belongs to the innermost of its callers that has a role: an interrupt that
preempts calls the scheduler from inside, and from there on it is the scheduler's time.

The path counts instructions, and a board that sleeps executes none: `idle_end` finds
where it woke, if it slept although the thread's timer was due.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rtscope.exectrace.file import TaskSwitch, TraceSection, task_switches
from rtscope.explain.instructions.calls import Frame, Role, Run, plain, role_of

AHEAD = 64
"""The count of instructions runs ahead by less than one in so many."""
_INNERMOST = frozenset(
    {Role.INTERRUPT, Role.SOFTIRQ, Role.SCHEDULE, Role.PREEMPT, Role.SWITCH}
)
_DELIVERS = "generic_handle_domain_irq"
_SCHEDULING = frozenset({Role.SCHEDULE, Role.PREEMPT, Role.SWITCH})
_ENDS_WAITING = "tick_nohz_idle_exit"
_OF_THE_SCHEDULER = frozenset({Role.SWITCH, Role.SCHEDULE})


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of one CPU, from when on each; empty if they were not recorded."""

    switches: Sequence[TaskSwitch]
    departures: Sequence[int] = ()
    """The runs in which the measured thread left the CPU, in order."""

    @property
    def known(self) -> bool:
        """Whether tasks were recorded at all."""
        return bool(self.switches)

    def at(self, run: Run) -> TaskSwitch | None:
        """Return the task of a run."""
        before = bisect_right(self.switches, run.begin, key=lambda one: one.at) - 1
        return self.switches[before] if before >= 0 else None

    def is_measured(self, run: Run) -> bool:
        """Tell whether the thread that is measured did it; False if unknown."""
        task = self.at(run)
        return task is not None and task.task == self.switches[-1].task

    def arrival(self, after: int) -> int | None:
        """Return when the CPU first switched to the measured thread, after a count."""
        measured = self.switches[-1].task if self.switches else None
        return next(
            (s.at for s in self.switches if s.task == measured and s.at > after), None
        )


def tasks_of(section: TraceSection, runs: Sequence[Run]) -> Tasks:
    """Return the tasks of the CPU that the section's wake-up was on, and its runs."""
    leaving = [
        i for i, run in enumerate(runs) if role_of(run.frame.name) is Role.SWITCH
    ]
    ends = [runs[i].end for i in leaving]
    recorded = [one for one in task_switches(section) if one.cpu == section.cpu]
    tasks = Tasks([replace(one, at=_switched(one.at, ends)) for one in recorded])
    departures = tuple(i for i in leaving if tasks.is_measured(runs[i]))
    return replace(tasks, departures=departures)


def _switched(recorded: int, ends: Sequence[int]) -> int:
    """A task is recorded a few instructions behind the switch to it."""
    before = bisect_right(ends, recorded) - 1
    return ends[before] if before >= 0 else recorded


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """The interrupt, softirq or scheduling that a run belongs to."""

    role: Role
    """INTERRUPT, SOFTIRQ, SCHEDULE, or OTHER for a thread's own code."""
    frame: Frame | None
    """The call that makes it so."""


THREAD = Context(Role.OTHER, None)


@dataclass(frozen=True, slots=True)
class _Marks:
    """Calls whose meaning only the whole path shows."""

    traps: set[Frame]
    """Entries of traps that turned out to be interrupts."""
    idle: set[Frame]
    """Calls of preempt_schedule that came back at once: preemption was off."""


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


def contexts_of(runs: Sequence[Run]) -> list[Context]:
    """Return the context of each run."""
    marks = _Marks(_interrupting_traps(runs), _idle_preemptions(runs))
    known: dict[Frame, Context] = {}
    return [_context(run.frame, marks, known) for run in runs]


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
    woken = _waking(runs, first, before=_last(runs, first, Role.SWITCH))
    if woken is None:
        woken = _waking_before(runs, first, expiry)
    arrival = tasks.arrival(expiry if woken is None else runs[woken].begin)
    switch = _last(runs, first, Role.SWITCH, before=arrival)
    late = woken is not None and runs[woken].frame.is_in(Role.SOFT_TIMER)
    entered = None
    if woken is not None:
        entered = first_of(runs, contexts, woken)
    scheduled = None
    if switch is not None:
        scheduled = _first_switching(runs, contexts, after=woken or first)
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


def _interrupting_traps(runs: Sequence[Run]) -> set[Frame]:
    """Return the entries of traps that turned out to be interrupts."""
    return {
        frame.caller
        for run in runs
        for frame in run.frame.chain()
        if role_of(frame.name) is Role.INTERRUPT
        and frame.caller is not None
        and role_of(frame.caller.name) is Role.TRAP
    }


def _idle_preemptions(runs: Sequence[Run]) -> set[Frame]:
    found: set[Frame] = set()
    scheduling: set[Frame] = set()
    for run in runs:
        role = role_of(run.frame.name)
        if role is Role.PREEMPT:
            found.add(run.frame)
        elif role in (Role.SCHEDULE, Role.SWITCH):
            scheduling.update(run.frame.chain())
    return found - scheduling


def _context(frame: Frame, marks: _Marks, known: dict[Frame, Context]) -> Context:
    if frame in known:
        return known[frame]
    role = role_of(frame.name)
    if frame in marks.traps:
        found = Context(Role.INTERRUPT, frame)
    elif role is Role.INTERRUPT and frame.caller and frame.caller in marks.traps:
        found = _context(frame.caller, marks, known)
    elif role in _INNERMOST and frame not in marks.idle:
        found = Context(Role.SCHEDULE if role in _SCHEDULING else role, frame)
    elif frame.caller is None:
        found = THREAD
    else:
        found = _context(frame.caller, marks, known)
    if found.role is Role.SCHEDULE and frame.caller is not None:
        found = _outermost_call(found, frame, marks, known)
    known[frame] = found
    return found


def _outermost_call(
    found: Context, frame: Frame, marks: _Marks, known: dict[Frame, Context]
) -> Context:
    """Let __schedule belong to the preempt_schedule that called it."""
    above = _context(frame.caller, marks, known) if frame.caller else THREAD
    return above if above.role is Role.SCHEDULE else found


def _last(
    runs: Sequence[Run], first: int, role: Role, *, before: int | None = None
) -> int | None:
    """Return the last run of a role, that began before an instruction count."""
    return next(
        (
            i
            for i in range(len(runs) - 1, first - 1, -1)
            if role_of(runs[i].frame.name) is role
            and (before is None or runs[i].begin < before)
        ),
        None,
    )


def _waking(runs: Sequence[Run], first: int, *, before: int | None) -> int | None:
    end = len(runs) if before is None else before
    return next(
        (i for i in range(first, end) if role_of(runs[i].frame.name) is Role.WAKE),
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
        role = role_of(runs[i].frame.name)
        if found is not None and runs[found].frame not in runs[i].frame.chain():
            break
        if role is Role.SWITCH or runs[i].end < expiry - late // AHEAD:
            break
        if role is Role.WAKE:
            found = i  # at last the first of them: what it called lies behind
    return found


def _left_to_softirq(runs: Sequence[Run], first: int, before: int) -> int | None:
    inside = [i for i in range(first, before) if runs[i].frame.is_in(Role.TIMER)]
    if not inside:
        return None
    begin = inside[0]
    frame = next(f for f in runs[begin].frame.chain() if role_of(f.name) is Role.TIMER)
    return max(i for i in inside if frame in runs[i].frame.chain())


def _first_switching(
    runs: Sequence[Run], contexts: Sequence[Context], *, after: int
) -> int | None:
    switch = next(
        (
            i
            for i in range(after, len(runs))
            if role_of(runs[i].frame.name) is Role.SWITCH
        ),
        None,
    )
    return None if switch is None else max(after, first_of(runs, contexts, switch))


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


def armed_overdue(runs: Sequence[Run], tasks: Tasks) -> bool:
    """Tell whether the thread armed its timer in these runs after that was due."""
    return any(
        role_of(run.frame.name) is Role.OVERDUE
        and run.frame.is_in(Role.SLEEP)
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
    end = (
        len(runs)
        if before is None
        else bisect_left(runs, before, key=lambda run: run.begin)
    )
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
            if role_of(runs[i].frame.name) is Role.TIMER
            and runs[i].frame.is_in(Role.IDLE)
        ),
        None,
    )


def is_ordinary(runs: Sequence[Run]) -> bool:
    """Tell from what was executed since a wake-up whether it was not real-time."""
    queued = {
        role
        for run in runs
        if (role := role_of(run.frame.name)) in (Role.ENQUEUE, Role.ENQUEUE_FAIR)
        and run.frame.is_in(Role.WAKE)
    }
    return queued == {Role.ENQUEUE_FAIR}
