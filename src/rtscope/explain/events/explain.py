"""
From the events around a wake-up to an explanation. Pure.

Each interval in which the thread was asleep, stopped, ready or running is explained by
the activity of its CPU. Where events were lost, or are not recorded on this machine,
the cause of the interval is unknown.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rtscope.explain.events.context import ExplainContext
from rtscope.explain.events.freezer import freezing_told, unfrozen_by
from rtscope.explain.events.irqdelay import (
    IrqDelay,
    event_gaps_apart,
    irq_delay_segments,
)
from rtscope.explain.events.limits import notes
from rtscope.explain.events.proofs import broken_invariants
from rtscope.explain.events.scheduling import (
    Waiting,
    segment_of,
    waiting_segments,
)
from rtscope.explain.events.spans import (
    Doing,
    Frame,
    Span,
    callbacks_together,
    stack_under,
)
from rtscope.explain.events.threadstates import (
    MachineTraits,
    State,
    StateInterval,
    TracedWakeup,
    priority_of,
    thread_states,
)
from rtscope.explain.model import (
    TICK_REMEDY,
    Cause,
    Confidence,
    Explanation,
    Part,
    Segment,
    joined,
)
from rtscope.record.events.events import Event, Window

_SLACK_NS = 1000
"""A real-time thread has none, and 1 ns can be asked."""


def explain_events(
    window: Window, wakeup: TracedWakeup, *, machine: MachineTraits
) -> Explanation:
    """Explain a wake-up from the events around it."""
    due_ns, latency_ns = wakeup.expiry_ns, wakeup.latency_ns
    intervals = thread_states(window, wakeup)
    ended = (
        one.end for one in intervals if one.state in (State.SLEEPING, State.STOPPED)
    )
    woken = next((event for event in ended if event is not None), None)
    priority = priority_of(window, wakeup.pid)
    context = ExplainContext(window, wakeup, machine, {}, intervals, woken, priority)
    segments = [s for interval in intervals for s in _of_interval(context, interval)]
    events, limits = context.events_of(context.cpu), tuple(notes(context))
    apart = joined(
        list(event_gaps_apart(segments, events, due_ns=due_ns, machine=machine))
    )
    return Explanation(
        cpu=context.cpu,
        sequence=wakeup.sequence,
        latency_ns=latency_ns,
        notes=limits,
        segments=apart,
        broken=broken_invariants(window, wakeup, intervals, apart, priority=priority),
    )


def _of_interval(context: ExplainContext, interval: StateInterval) -> Iterator[Segment]:
    if interval.state is State.SLEEPING:
        yield from _asleep(context, interval)
    elif interval.state is State.RUNNABLE:
        yield from _ready(context, interval)
    elif interval.state is State.RUNNING:
        yield from _running(context, interval)
    elif interval.state is State.STOPPED:
        yield _stopped(context, interval)
    elif interval.state is State.BLOCKED:
        yield _blocked(context, interval)
    else:
        yield _unknown(context, interval, Part.A, "no event of the thread in the trace")


def _unknown(
    context: ExplainContext, timed: Span | StateInterval, part: Part, name: str
) -> Segment:
    return segment_of(timed, context.wakeup, part, Cause.UNKNOWN, name)


def _stopped(context: ExplainContext, interval: StateInterval) -> Segment:
    began = "" if interval.began is None else interval.began.text("prev_state")
    traced = began.startswith("t")
    evidence = [f"the thread was switched out in state {'t' if traced else 'T'}"]
    if interval.end is not None:
        evidence.append(f"woken by {_waker(interval.end)}")
    part = Part.A if context.woken is interval.end else Part.D
    name = "SIGSTOP, or a debugger" if not began else "SIGSTOP"
    cause = Cause.STOPPED
    if traced:
        name, cause = "a debugger", Cause.TRACED
    return segment_of(interval, context.wakeup, part, cause, name, *evidence)


def _frozen(
    context: ExplainContext, interval: StateInterval, unfrozen: Event
) -> Segment:
    wakeup = context.wakeup
    told = freezing_told(context.window.events, unfrozen, expiry_ns=wakeup.expiry_ns)
    part = Part.A if context.woken is interval.end else Part.D
    group, sure = unfrozen.text("path"), Confidence.INFERRED
    return segment_of(
        interval, wakeup, part, Cause.FROZEN, group, *told, confidence=sure
    )


def _blocked(context: ExplainContext, interval: StateInterval) -> Segment:
    wakeup = context.wakeup
    faults = [
        e
        for e in context.window.events
        if _is_fault(e, wakeup) and wakeup.expiry_ns <= e.at_ns <= interval.begin_ns
    ]
    if not faults:
        name = "the thread waited in the kernel (state D)"
        return _unknown(context, interval, Part.E, name)
    why = f"{faults[-1].name}, then the thread waited in state D"
    cause, sure = Cause.PAGE_FAULT, Confidence.INFERRED
    return segment_of(
        interval, wakeup, Part.E, cause, wakeup.comm, why, confidence=sure
    )


def _is_fault(event: Event, wakeup: TracedWakeup) -> bool:
    return event.name.startswith("page_fault_") and event.pid == wakeup.pid


def _asleep(context: ExplainContext, interval: StateInterval) -> Iterator[Segment]:
    """Explain a sleep from the expiry to the event that woke the thread."""
    if interval.end is None:
        yield _unknown(context, interval, Part.A, "no event that woke the thread")
        return
    unfrozen = unfrozen_by(context.window.events, interval)
    if unfrozen is not None:
        yield _frozen(context, interval, unfrozen)
        return
    if interval.end is not context.woken and context.wakeup.to_the_end:
        waker = _waker(interval.end)
        yield segment_of(interval, context.wakeup, Part.E, Cause.BLOCKED, waker)
        return
    if interval.end is not context.woken:
        name = "the thread slept again before its own code"
        yield _unknown(context, interval, Part.E, name)
        return
    frames = context.frames_at(interval.end)
    interrupt = next((f for f in frames if f.doing is Doing.INTERRUPT), None)
    softirq = next((f for f in frames if f.doing is Doing.SOFTIRQ), None)
    if interrupt is not None:
        callback = next((f for f in frames if f.doing is Doing.CALLBACK), None)
        yield from _by_interrupt(context, interval, interrupt, callback)
    elif softirq is not None:
        yield from _by_softirq(context, interval, f"softirq {softirq.name}")
    elif _is_timer_thread(interval.end):
        yield from _by_softirq(context, interval, interval.end.comm)
    elif interval.end.flags is None and not context.has_interrupts:
        name = "the trace has no interrupts, so it does not show the waker"
        yield _unknown(context, interval, Part.A, name)
    else:
        name = f"woken by {_waker(interval.end)}, not by a timer"
        yield _unknown(context, interval, Part.A, name)


def _by_interrupt(
    context: ExplainContext,
    interval: StateInterval,
    interrupt: Frame,
    callback: Frame | None,
) -> Iterator[Segment]:
    """Explain the time before the interrupt, then that in it until it woke."""
    assert interval.end is not None
    cpu, wakeup, begin = interval.end.cpu, context.wakeup, interval.begin_ns
    entered = (
        begin if interrupt.entered_ns is None else max(begin, interrupt.entered_ns)
    )
    slack_end = min(entered, _slack_end(context, interval))
    if slack_end - begin >= _SLACK_NS:
        yield segment_of(
            replace(interval, end_ns=slack_end),
            wakeup,
            Part.A,
            Cause.TIMER_SLACK,
            "the timer may expire later than requested",
            "hrtimer_start: expires is later than softexpires, because the thread was "
            "not real-time when it went to sleep",
        )
        begin = slack_end
    inside = interrupt, callback
    if context.machine.high_resolution is False:
        yield segment_of(
            replace(interval, begin_ns=begin, end_ns=entered),
            wakeup,
            Part.A,
            Cause.TICK,
            interrupt.name,
            "the kernel was booted without high-resolution timers (highres=)",
            TICK_REMEDY,
        )
        yield from _waited(context, interval, inside, cpu=cpu, from_ns=entered)
        return
    delay = IrqDelay(
        expiry_ns=wakeup.expiry_ns,
        events=context.events_of(cpu),
        known=context.window.known,
        machine=context.machine,
        depth=context.depth_at(cpu, interrupt.entered_ns),
    )
    spans = callbacks_together(context.spans_between(cpu, begin, entered))
    yield from irq_delay_segments(spans, delay)
    yield from _waited(context, interval, inside, cpu=cpu, from_ns=entered)


def _by_softirq(
    context: ExplainContext, interval: StateInterval, name: str
) -> Iterator[Segment]:
    why = (
        "the timer expired in a softirq: the thread was not real-time when it went to "
        "sleep"
    )
    yield segment_of(interval, context.wakeup, Part.A, Cause.LATE_TIMER, name, why)


def _ready(context: ExplainContext, interval: StateInterval) -> Iterator[Segment]:
    """Explain why a ready thread did not run."""
    cpu = interval.cpu
    if cpu is None:
        yield _unknown(context, interval, Part.D, "its CPU is unknown")
        return
    frames: tuple[Frame, ...] = ()
    if interval.began is not None and interval.began.cpu == cpu:
        frames = context.frames_at(interval.began)
    interrupt = next((f for f in frames if f.doing is Doing.INTERRUPT), None)
    callback = next((f for f in reversed(frames) if f.doing is Doing.CALLBACK), None)
    inside = interrupt, callback
    yield from _waited(context, interval, inside, cpu=cpu, from_ns=interval.begin_ns)


def _waited(
    context: ExplainContext,
    interval: StateInterval,
    inside: tuple[Frame | None, Frame | None],
    *,
    cpu: int,
    from_ns: int,
) -> Iterator[Segment]:
    """Explain a wait; `inside` are the interrupt and callback that it woke in."""
    interrupt, callback = inside
    events = context.events_of(cpu)
    callback_ns = None if callback is None else callback.entered_ns
    spans = callbacks_together(
        context.spans_between(cpu, from_ns, interval.end_ns), waking_ns=callback_ns
    )
    since = interval.begin_ns
    if interval.began is not None and interval.began.name == "sched_switch":
        queued = since - 1  # it was preempted: that switch is the scheduler's choice
    else:
        queued = next(
            (
                e.at_ns
                for e in events
                if e.name == "sched_wakeup"
                and e.numbers.get("pid") == context.wakeup.pid
                and since <= e.at_ns <= interval.end_ns
            ),
            since,
        )
    interrupted_ns = None if interrupt is None else interrupt.entered_ns
    stack, interrupted_pid = None, -1
    if interrupted_ns is not None:
        stack = stack_under(events, interrupted_ns)
        found = (e.pid for e in events if e.at_ns == interrupted_ns)
        interrupted_pid = next(found, -1)
    waiting = Waiting(
        expiry_ns=context.wakeup.expiry_ns,
        priority=context.priority,
        since_ns=since,
        queued_ns=queued,
        events=events,
        waking_interrupt_ns=interrupted_ns,
        waking_callback_ns=callback_ns,
        stack=stack or (),
        interrupted_pid=interrupted_pid,
        machine=context.machine,
    )
    yield from waiting_segments(spans, waiting)


def _running(context: ExplainContext, interval: StateInterval) -> Iterator[Segment]:
    """Explain the return: interrupts and page faults may still come."""
    wakeup, cpu = context.wakeup, interval.cpu
    before = interval.end is not None and interval is context.intervals[0]
    if before or cpu is None:
        name = f"{wakeup.comm} itself still ran"
        part = Part.A if before else Part.E
        yield segment_of(interval, wakeup, part, Cause.RETURN, name)
        return
    faults = [
        e
        for e in context.events_of(cpu)
        if _is_fault(e, wakeup) and interval.begin_ns <= e.at_ns < interval.end_ns
    ]
    for span in context.spans_between(cpu, interval.begin_ns, interval.end_ns):
        if span.doing in (Doing.INTERRUPT, Doing.CALLBACK):
            yield segment_of(span, wakeup, Part.B, Cause.OTHER_INTERRUPT, span.name)
        elif span.doing is Doing.SOFTIRQ:
            yield segment_of(span, wakeup, Part.E, Cause.SOFTIRQ, span.name)
        elif span.doing is Doing.LOST:
            name = "events were lost, or the trace ends"
            yield _unknown(context, span, Part.E, name)
        else:
            yield from _own_code(wakeup, span, faults)


def _own_code(
    wakeup: TracedWakeup, span: Span, faults: Sequence[Event]
) -> Iterator[Segment]:
    comm, sure, cause = wakeup.comm, Confidence.INFERRED, Cause.RETURN
    if wakeup.to_the_end:
        sure, cause = Confidence.SEEN, Cause.OWN_CODE
    inside = [e for e in faults if e.at_ns < span.end_ns]
    if not inside:
        yield segment_of(span, wakeup, Part.E, cause, comm, confidence=sure)
        return
    at_ns = max(span.begin_ns, inside[0].at_ns)
    if at_ns > span.begin_ns:
        own = replace(span, end_ns=at_ns)
        yield segment_of(own, wakeup, Part.E, cause, comm)
    evidence = (
        f"{e.name} at +{(e.at_ns - wakeup.expiry_ns) / 1000:,.3f} us, address "
        f"{_hexadecimal(e)}"
        for e in inside[:4]
    )
    rest, fault = replace(span, begin_ns=at_ns), Cause.PAGE_FAULT
    sure = Confidence.INFERRED
    yield segment_of(rest, wakeup, Part.E, fault, comm, *evidence, confidence=sure)


def _hexadecimal(event: Event) -> str:
    value = event.fields.get("address", "")
    return f"{value:#x}" if isinstance(value, int) else value


def _slack_end(context: ExplainContext, interval: StateInterval) -> int:
    """Return when the timer had to expire: later than asked for by its slack."""
    for event in reversed(context.window.events):
        if (
            event.name == "hrtimer_start"
            and event.pid == context.wakeup.pid
            and event.at_ns <= interval.begin_ns
        ):
            soft = event.numbers.get("softexpires", 0)
            hard = event.numbers.get("expires", 0)
            if abs(soft - context.wakeup.expiry_ns) <= context.window.resolution_ns:
                return interval.begin_ns + max(0, hard - soft)
            return interval.begin_ns
    return interval.begin_ns


def _is_timer_thread(event: Event) -> bool:
    """Tell whether a thread woke it that PREEMPT_RT runs softirqs in."""
    return event.comm.startswith(("ktimers/", "ksoftirqd/"))


def _waker(event: Event) -> str:
    return f"{event.comm or '<...>'}-{event.pid}" if event.pid else "an interrupt"
