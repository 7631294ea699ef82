"""
The way of an event, explained from the kernel's events: to the thread, then its own.

The thread that sent it, the threads and interrupts that carried it, and the thread that
waited had it one after another (`carriers.py`). What each of them did in its time, or
waited for, is explained as of a thread that a timer woke. Pure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rtscope.explain.carrying import UNKNOWN_WAY, Bearer, of_others, parts_of_the_way
from rtscope.explain.events.carriers import (
    Carrier,
    Search,
    Way,
    handed_on_ns,
    states_of,
    tells,
)
from rtscope.explain.events.explain import broken_waits, notes_of
from rtscope.explain.events.histories import histories_of
from rtscope.explain.events.intervals import ExplainContext, segments_of, waited
from rtscope.explain.events.irqdelay import (
    IrqDelay,
    event_gaps_apart,
    irq_delay_segments,
)
from rtscope.explain.events.spans import Doing, Frame, Span, is_entry
from rtscope.explain.events.threadstates import (
    STRAIGHT_NS,
    MachineTraits,
    State,
    StateInterval,
    TracedWakeup,
    lost_segment,
    segment_of,
    thread_states,
)
from rtscope.explain.joining import joined
from rtscope.explain.model import (
    Broken,
    Cause,
    Confidence,
    Explanation,
    Invariant,
    Part,
    Segment,
    Since,
)
from rtscope.record.events.events import Event, Window

_OF_CPUS = frozenset(
    f"{name}_entry"
    for name in ("reschedule", "call_function", "call_function_single", "ipi")
)
_SLIGHT_NS = 1_000
"""The clock that is read and that of the trace may differ by so much."""


def explain_event(
    window: Window, wakeup: TracedWakeup, *, machine: MachineTraits, sender: int
) -> Explanation:
    """Explain a wake-up by an event that a thread sent: its way, then the thread's."""
    wakeup = replace(wakeup, by_event=True)
    states = thread_states(window, wakeup)
    facts = histories_of(window)
    context = ExplainContext(window, wakeup, machine, states, None, facts)
    way = Search(context, sender).way()
    begin_ns, call = _handed(context, way)
    segments, broken = list[Segment](), [*_not_running(context, way)]
    segments += _before_all(context, way, begin_ns)
    for one, end_ns in zip(way.carriers, _ends(context, way, begin_ns), strict=True):
        found, unproven = _carried(context, one, end_ns)
        segments += found
        broken += unproven
    intervals = states_of(context, wakeup.pid, begin_ns, wakeup.wake_ns, wakeup.asleep)
    theirs = [*_segments(context, wakeup, intervals, call)]
    broken += broken_waits(context.events, wakeup, intervals, theirs, facts=facts)
    segments += [of_others(one) for one in theirs]
    waits = [one.end_ns for one in intervals if one.state is State.RUNNABLE]
    priority = facts.at(wakeup.pid, max(waits, default=wakeup.wake_ns))
    return Explanation(
        cpu=context.cpu,
        sequence=wakeup.sequence,
        latency_ns=wakeup.latency_ns,
        segments=joined(segments),
        notes=(
            *notes_of(replace(context, intervals=intervals), priority),
            *(() if way.is_known else (UNKNOWN_WAY,)),
        ),
        broken=tuple(broken),
        since=Since.SENT,
    )


def explain_gap(
    window: Window, wakeup: TracedWakeup, *, machine: MachineTraits
) -> Explanation:
    """Explain a gap in the time of a thread that never sleeps."""
    wakeup = replace(wakeup, by_event=True)
    states = thread_states(window, wakeup)
    facts = histories_of(window)
    context = ExplainContext(window, wakeup, machine, states, None, facts)
    theirs = [*_segments(context, wakeup, states, None)]
    priority = facts.at(wakeup.pid, wakeup.wake_ns)
    return Explanation(
        cpu=context.cpu,
        sequence=wakeup.sequence,
        latency_ns=wakeup.latency_ns,
        segments=joined([of_others(one) for one in theirs]),
        notes=tuple(notes_of(context, priority)),
        broken=broken_waits(context.events, wakeup, states, theirs, facts=facts),
        since=Since.GAP,
    )


# --- where the time of one who has the event ends, and that of the next begins --------


def _handed(context: ExplainContext, way: Way) -> tuple[int, Event | None]:
    """Return when the thread itself had the event, and the event that woke it."""
    wakeup, slept = context.wakeup, way.slept
    if slept is None:
        return wakeup.expiry_ns, None
    call = slept.end
    if call is None or call.name != "sched_waking":  # who woke it was lost
        return slept.end_ns, None
    return _put_ns(context, call, wakeup.pid, wakeup.wake_ns), call


def _put_ns(context: ExplainContext, call: Event, pid: int, until_ns: int) -> int:
    """Return when the call that woke a task had put it into a queue."""
    put_ns = handed_on_ns(context.events_of(call.cpu), call)
    waits = [
        one.end_ns
        for one in states_of(context, pid, call.at_ns, until_ns)
        if one.state is State.RUNNABLE
    ]
    return min(put_ns, until_ns, *waits[:1])


def _ends(context: ExplainContext, way: Way, begin_ns: int) -> Iterator[int]:
    """Yield when each carrier no longer had the event: then the next one had it."""
    for following in way.carriers[1:]:
        yield _begin_of(context, following)
    if way.carriers:
        yield begin_ns


def _begin_of(context: ExplainContext, one: Carrier) -> int:
    """Return when a carrier had the event."""
    if one.call is None or one.call.name != "sched_waking":
        return one.begin_ns
    return _put_ns(context, one.call, one.pid, one.end_ns)


def _before_all(context: ExplainContext, way: Way, begin_ns: int) -> Iterator[Segment]:
    """Explain nothing of the time before the first that is known to have the event."""
    sent_ns = context.wakeup.expiry_ns
    until_ns, name = begin_ns, "who woke the thread is not in the trace"
    if way.carriers:
        first = way.carriers[0]
        until_ns = _begin_of(context, first)
        what = first.place if first.cause is Cause.EVENT_INTERRUPT else first.name
        name = f"what led to {what} is not in the trace"
    if until_ns > sent_ns:
        span = StateInterval(State.UNKNOWN, sent_ns, until_ns, None, None)
        yield segment_of(span, context.wakeup, Part.A, Cause.UNKNOWN, name)


# --- what took the time of one who has the event --------------------------------------


def _carried(
    context: ExplainContext, one: Carrier, end_ns: int
) -> tuple[Sequence[Segment], Sequence[Broken]]:
    """Return what took the time of a carrier, and which invariants are broken."""
    begin_ns, expiry_ns = _begin_of(context, one), context.wakeup.expiry_ns
    bearer = Bearer(one.cause, one.name, one.cpu)
    if one.cause is Cause.EVENT_INTERRUPT:
        found = [*_in_interrupt(context, one, begin_ns, end_ns)]
        return [*_gaps_apart(context, found, one.cpu)], ()
    wakeup = TracedWakeup(
        one.pid, one.name, one.cpu, expiry_ns, end_ns, to_the_end=True, by_event=True
    )
    intervals = states_of(context, one.pid, begin_ns, end_ns)
    call = one.call if one.call and one.call.name == "sched_waking" else None
    theirs = [*_segments(context, wakeup, intervals, call)]
    broken = broken_waits(
        context.events, wakeup, intervals, theirs, facts=context.facts
    )
    theirs = [_of_its_softirq(segment, one) for segment in theirs]
    on_the_way = parts_of_the_way(bearer, theirs, one.place)
    return [*_gaps_apart(context, on_the_way, one.cpu)], broken


def _of_its_softirq(segment: Segment, one: Carrier) -> Segment:
    """Return a segment; the softirq that hands the event on is the carrier's own."""
    if segment.cause is Cause.SOFTIRQ and segment.name == one.softirq:
        return replace(segment, cause=Cause.OWN_CODE)
    return segment


def _segments(
    context: ExplainContext,
    wakeup: TracedWakeup,
    intervals: tuple[StateInterval, ...],
    call: Event | None,
) -> Iterator[Segment]:
    """Explain the states of a task from a call on that woke it; None: it was awake."""
    its = replace(context, wakeup=wakeup, intervals=intervals)
    for number, interval in enumerate(intervals):
        entry = _told_by(its, interval, call) if number == 0 else None
        if entry is None or call is None:
            found = segments_of(its, interval)
        else:
            found = _told(its, interval, entry, call)
        cpu = its.cpu if interval.cpu is None else interval.cpu
        yield from _gaps_apart(its, found, cpu)


def _gaps_apart(
    context: ExplainContext, segments: Sequence[Segment] | Iterator[Segment], cpu: int
) -> Iterator[Segment]:
    due_ns, events = context.wakeup.expiry_ns, context.events_of(cpu)
    return event_gaps_apart(segments, events, due_ns=due_ns, machine=context.machine)


def _told_by(
    context: ExplainContext, interval: StateInterval, call: Event | None
) -> Event | None:
    """Return the interrupt by which the CPU of a task heard of the call; or None."""
    cpu = interval.cpu
    if call is None or cpu is None or interval.state is not State.RUNNABLE:
        return None
    if cpu == call.cpu or not tells(context.events_of(call.cpu), call, cpu):
        return None
    sent = context.events_of(cpu).of_kind("sent by a CPU", _is_of_a_cpu)
    first = sent.first_from(interval.begin_ns)
    return first if first is not None and first.at_ns <= interval.end_ns else None


def _is_of_a_cpu(event: Event) -> bool:
    """Tell whether an event is the entry of an interrupt that a CPU sends."""
    by_name = event.name in _OF_CPUS or "IPI" in event.text("name")
    return is_entry(event) and by_name


def _told(
    context: ExplainContext, interval: StateInterval, entry: Event, call: Event
) -> Iterator[Segment]:
    """Explain a wait that an interrupt ends, which the call has sent."""
    cpu = entry.cpu
    yield from _on_its_way(context, interval.begin_ns, entry, sent_by=call.cpu)
    frames = context.frames_at(replace(entry, at_ns=entry.at_ns + 1))
    frame = Frame(Doing.INTERRUPT, _name_of(frames), entry.at_ns)
    rest = replace(interval, begin_ns=entry.at_ns, began=entry)
    for one in waited(context, rest, (frame, None), cpu=cpu, from_ns=entry.at_ns):
        ours = one.cause is Cause.TIMER_INTERRUPT
        yield replace(one, cause=Cause.EVENT_INTERRUPT) if ours else one


def _on_its_way(
    context: ExplainContext, begin_ns: int, entry: Event, *, sent_by: int
) -> Iterator[Segment]:
    """Explain the time until an interrupt that another CPU sent is entered."""
    delay = IrqDelay(
        expiry_ns=context.wakeup.expiry_ns,
        events=context.events_of(entry.cpu),
        known=context.window.known - {"kernel_stack"},  # of the waking CPU
        machine=context.machine,
        depth=entry.preempt_depth,
        due="the interrupt was sent",
    )
    spans = context.spans_between(entry.cpu, begin_ns, entry.at_ns)
    for one in irq_delay_segments(spans, delay):
        proven = one.confidence is not Confidence.GUESSED
        short = one.duration_ns <= STRAIGHT_NS
        if one.cause is Cause.HARDWARE and (proven or short):
            one = replace(one, cause=Cause.ON_ITS_WAY, name=f"CPU {sent_by}")
        yield one


def _name_of(frames: Sequence[Frame]) -> str:
    entered = [frame for frame in frames if frame.doing is Doing.INTERRUPT]
    return entered[0].name if entered else "interrupt"


def _in_interrupt(
    context: ExplainContext, one: Carrier, begin_ns: int, end_ns: int
) -> Iterator[Segment]:
    """Explain the time of an interrupt, and of the softirq that it has raised."""
    entered_ns = begin_ns if one.entered_ns is None else one.entered_ns
    if one.call is not None and entered_ns > begin_ns:
        entry = context.events_of(one.cpu).first_from(entered_ns)
        if entry is not None:
            sent_by = one.call.cpu
            for segment in _on_its_way(context, begin_ns, entry, sent_by=sent_by):
                yield replace(segment, part=Part.A)
    waited_ns = max(begin_ns, entered_ns)
    for span in context.spans_between(one.cpu, waited_ns, end_ns):
        yield _of_interrupt(context, span, one)


def _of_interrupt(context: ExplainContext, span: Span, one: Carrier) -> Segment:
    wakeup, cause, name = context.wakeup, Cause.EVENT_INTERRUPT, span.name
    outer = span.interrupt
    if span.doing is Doing.LOST:
        return lost_segment(span, wakeup, Part.A)
    if outer is not None:
        if outer.entered_ns != one.entered_ns:
            cause = Cause.OTHER_INTERRUPT
        return segment_of(span, wakeup, Part.A, cause, name)
    if span.doing is Doing.SOFTIRQ:
        return segment_of(span, wakeup, Part.A, cause, f"softirq {name}")
    if span.doing is Doing.TASK:
        label, why = span.task.label, "a softirq was raised, and the task went on"
        cause, sure = Cause.PREEMPTION_OFF, Confidence.INFERRED
        return segment_of(span, wakeup, Part.A, cause, label, why, confidence=sure)
    name = "a softirq was raised, and the CPU did not run it"
    return segment_of(span, wakeup, Part.A, Cause.UNKNOWN, name)


# --- what must hold -------------------------------------------------------------------


def _not_running(context: ExplainContext, way: Way) -> Iterator[Broken]:
    """The sender was running when it read the clock."""
    wakeup = context.wakeup
    for one in way.carriers[:1] if way.is_known else ():
        for state in states_of(context, one.pid, wakeup.expiry_ns, one.end_ns)[:1]:
            away_ns = state.end_ns - state.begin_ns
            seen = state.state not in (State.RUNNING, State.UNKNOWN) and state.end
            if seen and away_ns > max(_SLIGHT_NS, context.window.resolution_ns):
                values = {"task": one.name, "state": state.state.value}
                yield Broken(Invariant.SENT, 0, wakeup.latency_ns, values)
