"""
The marks on the way of a wake-up: interrupt, callback, scheduler, switch. Pure.

What a run belongs to is told by the innermost of its callers that means something: an
interrupt that preempts calls the scheduler from inside, and from there on it is the
scheduler's time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rtscope.explain.instructions.calls import Frame, Run
from rtscope.explain.instructions.functions import Role, role_of
from rtscope.explain.instructions.tasks import Tasks

AHEAD = 64
"""The count of instructions runs ahead by less than one in so many."""

_INNERMOST = frozenset(
    {Role.INTERRUPT, Role.SOFTIRQ, Role.SCHEDULE, Role.PREEMPT, Role.SWITCH}
)
_DELIVERS = "generic_handle_domain_irq"
_SCHEDULING = frozenset({Role.SCHEDULE, Role.PREEMPT, Role.SWITCH})


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """What a run belongs to."""

    role: Role
    """INTERRUPT, SOFTIRQ, SCHEDULE, or OTHER for a thread's own code."""
    frame: Frame | None
    """The call that makes it so."""


THREAD = Context(Role.OTHER, None)


@dataclass(frozen=True, slots=True)
class _Marks:
    """What only the whole path tells of a call."""

    traps: set[Frame]
    """Entries of traps that turned out to be interrupts."""
    idle: set[Frame]
    """Calls of preempt_schedule that came back at once: preemption was off."""


@dataclass(frozen=True, slots=True)
class Way:
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
    """Return what each run belongs to."""
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


def find_way(
    runs: Sequence[Run], contexts: Sequence[Context], expiry: int, *, tasks: Tasks
) -> Way:
    """Find the marks, from the expiry (an instruction count) to the end."""
    first = next((i for i, run in enumerate(runs) if run.end > expiry), len(runs))
    woken = _waking(runs, first, before=_last(runs, first, Role.SWITCH))
    if woken is None:
        woken = _waking_before(runs, first, expiry)
    arrival = tasks.arrival(expiry if woken is None else runs[woken].begin)
    switch = _last(runs, first, Role.SWITCH, before=arrival)
    late = woken is not None and _is_inside(runs[woken].frame, Role.SOFT_TIMER)
    entered = None
    if woken is not None:
        entered = first_of(runs, contexts, woken)
    scheduled = None
    if switch is not None:
        scheduled = _first_switching(runs, contexts, after=woken or first)
    return Way(
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
    inside = [i for i in range(first, before) if _is_inside(runs[i].frame, Role.TIMER)]
    if not inside:
        return None
    begin = inside[0]
    frame = next(f for f in runs[begin].frame.chain() if role_of(f.name) is Role.TIMER)
    return max(i for i in inside if frame in runs[i].frame.chain())


def _is_inside(frame: Frame, role: Role) -> bool:
    return any(role_of(caller.name) is role for caller in frame.chain())


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
