"""
From the events around a wake-up to an explanation, its limits and proofs. Pure.

The explanation joins the segments of all intervals of the thread (`intervals.py`). Its
notes say what the events do not show, or who else was late.

The explanation follows one thread and one CPU; here the timer's own events, the states
of the thread and the switches of that CPU are asked whether the story can be true.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence

from rtscope.explain.events.eventlists import EventList, is_behind
from rtscope.explain.events.histories import (
    MAX_RT_PRIO,
    Histories,
    Priority,
    histories_of,
)
from rtscope.explain.events.intervals import ExplainContext, segments_of
from rtscope.explain.events.irqdelay import event_gaps_apart
from rtscope.explain.events.spans import IDLE_PID, Doing
from rtscope.explain.events.threadstates import (
    LONGEST_UNPROVEN_NS,
    MachineTraits,
    State,
    StateInterval,
    TracedWakeup,
    thread_states,
)
from rtscope.explain.events.tracers import explain_noise, is_of_noise
from rtscope.explain.joining import joined
from rtscope.explain.model import (
    COMPETING_TASKS,
    TIMER_ELSEWHERE_REMEDY,
    Broken,
    Cause,
    Confidence,
    Explanation,
    Invariant,
    Segment,
)
from rtscope.machine.facts import FactValue
from rtscope.machine.kernelidentity import turned_off
from rtscope.record.events.events import Event, Window
from rtscope.record.model import RunRecord

# --- the invariants of a wake-up on a machine, checked against events -----------------

_SAME_CLOCK_NS = 10_000_000
"""A callback's `now` is of the measuring clock: farther away, the trace has another."""
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
    events = EventList(window.events)
    return (
        *_expiry(window, events, wakeup, intervals),
        *_arrivals(events, wakeup, intervals),
        *broken_waits(events, wakeup, intervals, segments, facts=facts),
    )


def broken_waits(
    events: EventList,
    wakeup: TracedWakeup,
    intervals: Sequence[StateInterval],
    segments: Sequence[Segment],
    *,
    facts: Histories,
) -> tuple[Broken, ...]:
    """Return the invariants that the waits of a thread for a CPU break."""
    return (
        *_runnable(wakeup, intervals, segments),
        *_competing(events, wakeup, segments, facts),
    )


def _of_cpu(events: EventList, cpu: int | None) -> EventList:
    return events.apart("cpu", lambda event: event.cpu, cpu)


def _callback_of(events: EventList, woken: Event) -> Event | None:
    """Return the timer's callback that woke a thread; None if no timer did."""
    here = _of_cpu(events, woken.cpu)
    entries, exits = (
        here.named("hrtimer_expire_entry"),
        here.named("hrtimer_expire_exit"),
    )
    end, exits_end = entries.until(woken.at_ns), exits.before(woken.at_ns)
    if not is_behind(entries, end, exits, exits_end):
        return None
    entered = entries[end - 1]
    is_sleep = entered.text("function").startswith("hrtimer_wakeup")
    return entered if is_sleep else None


def _expiry(
    window: Window,
    events: EventList,
    wakeup: TracedWakeup,
    intervals: Sequence[StateInterval],
) -> Iterator[Broken]:
    """The timer that woke the thread was started for this expiry."""
    woken = next((one.end for one in intervals if one.state is State.SLEEPING), None)
    callback = None if woken is None else _callback_of(events, woken)
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
    events: EventList, wakeup: TracedWakeup, intervals: Sequence[StateInterval]
) -> Iterator[Broken]:
    ended = [one.end for one in intervals if one.state is State.SLEEPING and one.end]
    sleeps = sum(_callback_of(events, event) is not None for event in ended)
    if sleeps > 1 + wakeup.timed_waits:
        yield Broken(Invariant.ARRIVAL, 0, wakeup.latency_ns, {"sleeps": sleeps})


def _runnable(
    wakeup: TracedWakeup,
    intervals: Sequence[StateInterval],
    segments: Sequence[Segment],
) -> Iterator[Broken]:
    for one in segments:
        if one.cause not in COMPETING_TASKS:
            continue
        due_ns = wakeup.expiry_ns
        first = bisect_right(intervals, one.begin_ns + due_ns, key=_end_of)
        last = bisect_left(intervals, one.end_ns + due_ns, key=_begin_of)
        for interval in intervals[first:last]:
            begin = max(one.begin_ns, interval.begin_ns - wakeup.expiry_ns)
            end = min(one.end_ns, interval.end_ns - wakeup.expiry_ns)
            if interval.state is not State.RUNNABLE and end > begin:
                values = {"task": one.task or one.name}
                yield Broken(Invariant.RUNNABLE, begin, end, values)


def _begin_of(interval: StateInterval) -> int:
    return interval.begin_ns


def _end_of(interval: StateInterval) -> int:
    return interval.end_ns


def _competing(
    events: EventList,
    wakeup: TracedWakeup,
    segments: Sequence[Segment],
    facts: Histories,
) -> Iterator[Broken]:
    """The idle task delays nobody, and no task does that the thread would preempt."""
    switches = _of_cpu(events, wakeup.cpu).named("sched_switch")
    for one in segments:
        begin = one.begin_ns + wakeup.expiry_ns
        before = switches.last_until(begin)
        if before is None:
            continue
        task = before.numbers.get("next_pid", -1)
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


# --- from the events around a wake-up to an explanation, and what limits it -----------

_SLIGHT_NS = 1_000
_NEEDED = ("sched_switch", "sched_waking")


def explain_events(
    window: Window, wakeup: TracedWakeup, *, machine: MachineTraits
) -> Explanation:
    """Explain a wake-up from the events around it."""
    if "sched_switch" not in window.known and is_of_noise(window, wakeup):
        return explain_noise(window, wakeup)
    due_ns, latency_ns = wakeup.expiry_ns, wakeup.latency_ns
    intervals = thread_states(window, wakeup)
    ended = (
        one.end for one in intervals if one.state in (State.SLEEPING, State.STOPPED)
    )
    woken = next((event for event in ended if event is not None), None)
    facts = histories_of(window)
    waits = [one.end_ns for one in intervals if one.state is State.RUNNABLE]
    priority = facts.at(wakeup.pid, max(waits, default=wakeup.wake_ns))
    context = ExplainContext(window, wakeup, machine, intervals, woken, facts)
    segments = [s for interval in intervals for s in segments_of(context, interval)]
    events, limits = context.events_of(context.cpu), tuple(notes_of(context, priority))
    apart = joined(
        list(event_gaps_apart(segments, events, due_ns=due_ns, machine=machine))
    )
    return Explanation(
        cpu=context.cpu,
        sequence=wakeup.sequence,
        latency_ns=latency_ns,
        notes=limits,
        segments=apart,
        broken=broken_invariants(window, wakeup, intervals, apart, facts=facts),
    )


def notes_of(context: ExplainContext, priority: Priority) -> Iterator[str]:
    """Return the limits of an explanation from these events."""
    if priority.values and max(priority.values) >= MAX_RT_PRIO:
        yield f"the thread is {priority.words}: any other thread may delay it"
    missing = [name for name in _NEEDED if name not in context.window.known]
    if missing:
        yield f"the trace has no {' and no '.join(missing)} events"
    if not context.has_interrupts:
        yield (
            "the trace has no entries of interrupts: they are seen only from the first "
            "event inside"
        )
    if not context.wakeup.programmed:
        yield (
            "the expiry of the timer is unknown: the path begins where the thread was "
            "woken"
        )
    if context.wakeup.to_the_switch:
        yield "the path ends at the switch to the thread: its own code has no event"
    if context.window.resolution_ns > 1:
        yield (
            f"the resolution of the trace is {context.window.resolution_ns} ns: "
            "shorter segments cannot be distinguished"
        )
    yield from _started_late(context)
    yield from _timer_elsewhere(context)
    moved = {
        interval.cpu
        for interval in context.intervals
        if interval.state is State.RUNNABLE
    }
    cpus = sorted(cpu for cpu in moved if cpu is not None)
    if len(cpus) > 1:
        yield f"the thread migrated: it waited on CPUs {', '.join(map(str, cpus))}"


def _started_late(context: ExplainContext) -> Iterator[str]:
    """Say that a thread asked for its timer only when it was due already."""
    wakeup = context.wakeup
    for event in context.window.events:
        if event.name != "hrtimer_start" or event.pid != wakeup.pid:
            continue
        due_ns = event.numbers.get("softexpires", event.at_ns)
        late_ns = event.at_ns - due_ns
        if due_ns == wakeup.expiry_ns and late_ns > _SLIGHT_NS:
            yield (
                f"the thread started its timer {late_ns / 1000:,.3f} us after it was "
                "due: until then it did something else"
            )


def _timer_elsewhere(context: ExplainContext) -> Iterator[str]:
    """Say that a timer did not expire on the CPU on which its thread went to sleep."""
    woken = context.woken
    began = next((one.began for one in context.intervals if one.end is woken), None)
    if woken is None or began is None or began.cpu == woken.cpu:
        return
    if any(one.doing is Doing.CALLBACK for one in context.frames_at(woken)):
        yield (
            f"the timer expired on CPU {woken.cpu}: until the thread was woken, that "
            f"CPU delayed it; {TIMER_ELSEWHERE_REMEDY}"
        )


# --- the traits of a machine that events do not show, from its facts ------------------

_RELEASE = re.compile(r"\b([2-9])\.([0-9]{1,3})(?=[.\-+\s]|$)")
_MODEL = re.compile(r"\bPREEMPT(?:_RT)?\b(?!_)|\b(?:server|desktop)\b", re.IGNORECASE)
"""PREEMPT_DYNAMIC does not tell: it was chosen when the kernel booted."""
_PREEMPTIBLE = {
    "PREEMPT_RT": True,
    "full": True,
    "lazy": True,  # a real-time thread preempts at once
    "voluntary": False,
    "none": False,
}


def machine_of(record: RunRecord) -> MachineTraits:
    """Return the traits of a run's machine that events do not show."""
    return traits_of(record.facts_before)


def traits_told(kernel: str) -> MachineTraits:
    """Return the traits of a kernel by `uname -a` or the head of a trace."""
    release = _RELEASE.search(kernel)
    model = _MODEL.search(kernel)
    return MachineTraits(
        preemptible=None if model is None else model[0].lower().startswith("preempt"),
        release=(int(release[1]), int(release[2])) if release else None,
    )


def traits_of(facts: Mapping[str, FactValue]) -> MachineTraits:
    """Return the traits of a machine that events do not show, from its facts."""
    known = {name: fact.value for name, fact in facts.items()}
    guest, words = known.get("guest"), str(known.get("kernel_cmdline"))
    numbers = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", str(known.get("kernel_release")))
    return MachineTraits(
        guest=guest if isinstance(guest, bool) else None,
        preemptible=_PREEMPTIBLE.get(str(known.get("preemption_model"))),
        release=(int(numbers[1]), int(numbers[2])) if numbers else None,
        high_resolution=False if turned_off(words, "highres") else None,
    )
