"""
The invariants of a wake-up on a machine, checked against events. Pure.

The explanation follows one thread and one CPU; here the timer's own events, the states
of the thread and the switches of that CPU are asked whether the story can be true.
"""

from collections.abc import Iterator, Sequence

from rtscope.explain.events.histories import MAX_RT_PRIO, Histories
from rtscope.explain.events.spans import IDLE_PID
from rtscope.explain.events.threadstates import State, StateInterval, TracedWakeup
from rtscope.explain.events.waiting import LONGEST_UNPROVEN_NS
from rtscope.explain.invariants import Broken, Invariant
from rtscope.explain.model import COMPETING_TASKS, Cause, Confidence, Segment
from rtscope.record.events.events import Event, Window

_SAME_CLOCK_NS = 10_000_000
"""A callback's `now` is of the measuring clock: farther away, the trace has another."""
_SLIGHT_NS = 1_000
"""Expiry and events may be of clocks that are read one after the other."""


def broken_invariants(
    window: Window,
    wakeup: TracedWakeup,
    intervals: Sequence[StateInterval],
    segments: Sequence[Segment],
    *,
    facts: Histories,
) -> tuple[Broken, ...]:
    """Return the invariants that this explanation breaks; none is a proof."""
    return (
        *_expiry(window, wakeup, intervals),
        *_arrivals(window, wakeup, intervals),
        *_runnable(wakeup, intervals, segments),
        *_competing(window, wakeup, segments, facts),
    )


def _callback_of(window: Window, woken: Event) -> Event | None:
    """Return the timer's callback that woke a thread; None if no timer did."""
    entered = None
    for event in window.events:
        if event.at_ns > woken.at_ns:
            break
        if event.cpu != woken.cpu:
            continue
        if event.name == "hrtimer_expire_entry":
            entered = event
        elif event.name == "hrtimer_expire_exit" and event.at_ns < woken.at_ns:
            entered = None
    is_sleep = entered is not None and entered.text("function").startswith(
        "hrtimer_wakeup"
    )
    return entered if is_sleep else None


def _expiry(
    window: Window, wakeup: TracedWakeup, intervals: Sequence[StateInterval]
) -> Iterator[Broken]:
    """The timer that woke the thread was started for this expiry."""
    woken = next((one.end for one in intervals if one.state is State.SLEEPING), None)
    callback = None if woken is None else _callback_of(window, woken)
    if callback is None or not wakeup.programmed:
        return
    if abs(callback.at_ns - callback.numbers.get("now", 0)) > _SAME_CLOCK_NS:
        return
    timer = callback.fields.get("hrtimer")
    started = [
        event
        for event in window.events
        if event.name == "hrtimer_start"
        and event.fields.get("hrtimer") == timer
        and event.at_ns <= callback.at_ns
    ]
    if not started:
        return
    due_ns = started[-1].numbers.get("softexpires", wakeup.expiry_ns)
    off_ns = due_ns - wakeup.expiry_ns
    if abs(off_ns) > max(_SLIGHT_NS, window.resolution_ns):
        yield Broken(Invariant.EXPIRY, 0, wakeup.latency_ns, {"late_ns": off_ns})


def _arrivals(
    window: Window, wakeup: TracedWakeup, intervals: Sequence[StateInterval]
) -> Iterator[Broken]:
    ended = [one.end for one in intervals if one.state is State.SLEEPING and one.end]
    sleeps = sum(_callback_of(window, event) is not None for event in ended)
    if sleeps > 1:
        yield Broken(Invariant.ARRIVAL, 0, wakeup.latency_ns, {"sleeps": sleeps})


def _runnable(
    wakeup: TracedWakeup,
    intervals: Sequence[StateInterval],
    segments: Sequence[Segment],
) -> Iterator[Broken]:
    for one in segments:
        if one.cause not in COMPETING_TASKS:
            continue
        for interval in intervals:
            begin = max(one.begin_ns, interval.begin_ns - wakeup.expiry_ns)
            end = min(one.end_ns, interval.end_ns - wakeup.expiry_ns)
            if interval.state is not State.RUNNABLE and end > begin:
                values = {"task": one.task or one.name}
                yield Broken(Invariant.RUNNABLE, begin, end, values)


def _competing(
    window: Window,
    wakeup: TracedWakeup,
    segments: Sequence[Segment],
    facts: Histories,
) -> Iterator[Broken]:
    """The idle task delays nobody, and no task does that the thread would preempt."""
    switches = [
        e for e in window.events if e.name == "sched_switch" and e.cpu == wakeup.cpu
    ]
    for one in segments:
        begin = one.begin_ns + wakeup.expiry_ns
        before = [e for e in switches if e.at_ns <= begin]
        if not before:
            continue
        task = before[-1].numbers.get("next_pid", -1)
        values = {"task": one.task or one.name}
        blamed = one.cause in COMPETING_TASKS - {Cause.THROTTLED}
        if task == IDLE_PID:
            if blamed:
                yield Broken(Invariant.IDLE, one.begin_ns, one.end_ns, values)
            continue
        if not _is_preempted(task, wakeup.pid, begin, facts):
            continue
        if one.cause is Cause.OTHER_TASK:
            yield Broken(Invariant.CHOICE, one.begin_ns, one.end_ns, values)
        elif _is_unproven(one):
            values["kept_ns"] = str(one.duration_ns)
            yield Broken(Invariant.KEPT, one.begin_ns, one.end_ns, values)


def _is_preempted(task: int, thread: int, at_ns: int, facts: Histories) -> bool:
    """Tell whether a real-time thread goes before a task, by all that is known."""
    theirs, ours = facts.at(task, at_ns).urgent, facts.at(thread, at_ns).least
    return theirs is not None and ours is not None and ours < min(theirs, MAX_RT_PRIO)


def _is_unproven(one: Segment) -> bool:
    """Tell whether the explanation lets a task run for longer than is credible."""
    return (
        one.cause is Cause.PREEMPTION_OFF
        and one.confidence is not Confidence.SEEN
        and one.duration_ns > LONGEST_UNPROVEN_NS
    )
