"""
The milestones of a wake-up: expiry, interrupt, callback, scheduler, switch. Pure.

Without high-resolution timers no interrupt comes when a timer is due. The kernel looks
at its timers at each tick, so a thread waits until the next one, whatever its CPU does
meanwhile.

With them, an interrupt whose timers take so long that others are due each time it looks
again gives up after its third look, and has the next interrupt come only after as much
time as it took itself (hrtimer_interrupt() in kernel/time/hrtimer.c): it sets the timer
in vain, and once more.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rtscope.explain.instructions.calls import Frame, Run, begun, plain
from rtscope.explain.instructions.contexts import (
    RUN_TIMERS,
    Context,
    IrqFlags,
    callback_of,
)
from rtscope.explain.instructions.roles import Role
from rtscope.explain.model import PUT_OFF_REMEDY, TICK_REMEDY
from rtscope.record.instructions.section import TaskSwitch

_DELIVERS = "generic_handle_domain_irq"
_OF_TIMERS = frozenset({Role.TIMER, Role.TICK})
TICK = "hrtimer_run_queues"
"""What looks at the timers at each tick."""
_SET = "tick_program_event"
_SET_NS = 2_000
"""More than from the first look at the clock to the interrupt's own begin, or end."""


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
    runs: Sequence[Run],
    contexts: Sequence[Context],
    expiry_ns: int,
    *,
    arrivals_ns: Sequence[int],
    held: tuple[int, int] | None = None,
) -> Milestones:
    """
    Find the marks, from the expiry to the end.

    `arrivals_ns` has the times at which the CPU switched to the measured thread.
    `held` has the times at which a thread that something held back at the expiry was
    runnable again, and had its CPU again.
    """
    if held is not None:
        return _behind(runs, contexts, expiry_ns, *held)
    first = next((i for i, run in enumerate(runs) if run.end_ns > expiry_ns), len(runs))
    last = _first(runs, range(len(runs) - 1, first - 1, -1), Role.SWITCH)
    woken = _first(runs, range(first, len(runs) if last is None else last), Role.WAKE)
    since_ns = expiry_ns if woken is None else runs[woken].begin_ns
    arrival = next((at_ns for at_ns in arrivals_ns if at_ns > since_ns), None)
    before = len(runs) if arrival is None else begun(runs, arrival)
    switch = _first(runs, range(before - 1, first - 1, -1), Role.SWITCH)
    late = woken is not None and _runs_timers(runs[woken]) is Role.SOFT_TIMER
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


def _behind(
    runs: Sequence[Run],
    contexts: Sequence[Context],
    expiry_ns: int,
    runnable_ns: int,
    arrival_ns: int,
) -> Milestones:
    """Return the milestones of a thread that no timer woke, in the same order."""
    first = bisect_right(runs, expiry_ns, key=lambda run: run.end_ns)
    entered = max(first, begun(runs, runnable_ns))
    switched = begun(runs, arrival_ns)
    switching = _first(runs, range(entered, switched), Role.SWITCH)
    return Milestones(
        first=first,
        entered=entered,
        woken=None,
        late_timer=False,
        expired=None,
        scheduled=None
        if switching is None
        else max(entered, first_of(runs, contexts, switching)),
        switched=switched,
    )


def _runs_timers(run: Run) -> Role | None:
    """Return what runs the timer of a callback: an interrupt may be in a softirq."""
    roles = (frame.role for frame in run.frame.chain())
    return next((r for r in roles if r in (Role.TIMER, Role.SOFT_TIMER)), None)


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


def _left_to_softirq(runs: Sequence[Run], first: int, before: int) -> int | None:
    inside = [i for i in range(first, before) if _OF_TIMERS & runs[i].frame.within]
    if not inside:
        return None
    begin = inside[0]
    frame = next(f for f in runs[begin].frame.chain() if f.role in _OF_TIMERS)
    return max(i for i in inside if frame in runs[i].frame.chain())


def wakes_of(
    runs: Sequence[Run], arrived: TaskSwitch | None
) -> Iterator[Sequence[Run]]:
    """
    Yield the runs of each callback that may have woken a thread when its timer expired.

    One that queued an ordinary thread woke no real-time one: `arrived` has its policy.
    """
    inside: dict[Frame, list[Run]] = {}
    for run in runs:
        if Role.WAKE not in run.frame.within:
            continue
        call = next(one for one in run.frame.chain() if one.role is Role.WAKE)
        inside.setdefault(call, []).append(run)
    is_realtime = arrived is not None and arrived.is_realtime
    for of_call in inside.values():
        if not (is_realtime and queued_fair(of_call)):
            yield of_call


def queued_fair(runs: Sequence[Run]) -> bool:
    """Tell from what was executed since a wake-up whether it was not real-time."""
    queued = {
        role
        for run in runs
        if (role := run.frame.role) in (Role.ENQUEUE, Role.ENQUEUE_FAIR)
        and Role.WAKE in run.frame.within
    }
    return queued == {Role.ENQUEUE_FAIR}


def ticked_at(
    runs: Sequence[Run],
    contexts: Sequence[Context],
    milestones: Milestones,
    flags: IrqFlags,
) -> int | None:
    """
    Return the run until which a timer waited for the tick; None if it did not.

    That is the tick that found it, or what kept interrupts off, or an interrupt,
    directly before that: it may have delayed the tick.
    """
    looked = milestones.expired if milestones.late_timer else milestones.woken
    if looked is None or Role.TICK not in runs[looked].frame.within:
        return None
    at = first_of(runs, contexts, looked)
    while at > milestones.first and _may_delay(runs[at - 1], contexts[at - 1], flags):
        at -= 1
    return at


def _may_delay(run: Run, context: Context, flags: IrqFlags) -> bool:
    if Role.IDLE in run.frame.within:
        return False
    off_ns = flags.off_in(run.begin_ns, run.end_ns)
    return context.role is Role.INTERRUPT or 2 * off_ns > run.end_ns - run.begin_ns


def tick_evidence() -> Iterator[str]:
    """Tell what shows the cause, and what to do about it."""
    yield f"the tick found the timer ({TICK}): high-resolution timers are off"
    yield TICK_REMEDY


@dataclass(frozen=True, slots=True)
class PutOff:
    """A time for which the kernel had put off the next timer interrupt."""

    begin: int
    """The first run behind the interrupt that took long."""
    until: int
    """The run in which the next was to come."""
    took_ns: int | None
    """As long as that took it waits; None if it began before the path."""
    callback: str
    """What it mostly executed; empty if it executed no callback."""


def put_off(runs: Sequence[Run], milestones: Milestones) -> PutOff | None:
    """Return how long the timer's interrupt was put off, if the one before shows it."""
    entered = milestones.entered
    if milestones.woken is None or entered is None:
        return None
    ended = _first(runs, range(entered - 1, -1, -1), Role.TIMER)
    if ended is None:
        return None
    frame, begin = runs[ended].frame, ended
    while begin and frame in runs[begin - 1].frame.chain():
        begin -= 1
    inside = runs[begin : ended + 1]
    took_ns = runs[ended].end_ns - runs[begin].begin_ns
    due_ns = runs[ended].end_ns + took_ns
    came_early = runs[entered].begin_ns < due_ns - _SET_NS
    if came_early or not _gave_up(inside, frame):
        return None
    spent: Counter[str] = Counter()
    for run in inside:
        spent[callback_of(run) or ""] += run.end_ns - run.begin_ns
    is_whole = begin > 0
    return PutOff(
        begin=ended + 1,
        until=min(entered, begun(runs, due_ns)) if is_whole else entered,
        took_ns=took_ns if is_whole else None,
        callback=plain(max(filter(None, spent), key=spent.__getitem__, default="")),
    )


def _gave_up(inside: Sequence[Run], interrupt: Frame) -> bool:
    """Tell whether the last two calls of an interrupt, of those two, set the timer."""
    calls = (
        next((one for one in run.frame.chain() if one.caller is interrupt), None)
        for run in inside
    )
    called = [plain(one.name) for one in dict.fromkeys(calls) if one is not None]
    steps = [name for name in called if name in (RUN_TIMERS, _SET)]
    return steps[-3:] == [RUN_TIMERS, _SET, _SET]


def put_off_evidence(found: PutOff) -> Iterator[str]:
    """Tell what shows the cause, and what to do about it."""
    took = "" if found.took_ns is None else f"took {found.took_ns} ns, and "
    yield (
        f"the timer interrupt before {took}found more due timers each time it looked: "
        "the kernel let the next wait as long"
    )
    yield PUT_OFF_REMEDY
