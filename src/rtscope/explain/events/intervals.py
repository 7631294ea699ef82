"""
What delayed a thread in each of its intervals, from the events around a wake-up. Pure.

Each interval in which the thread was asleep, stopped, ready or running is explained by
the activity of its CPU. Where events were lost, or are not recorded on this machine,
the cause of the interval is unknown.

A frozen thread sleeps like any other: its switch shows no state of its own. Whoever
writes to `cgroup.freeze` has the event of that, and wakes the threads of the group.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from rtscope.explain.events.eventlists import EventList
from rtscope.explain.events.histories import Histories
from rtscope.explain.events.irqdelay import IrqDelay, irq_delay_segments
from rtscope.explain.events.scheduling import lent_words, waiting_segments
from rtscope.explain.events.spans import (
    BEFORE_ALL_NS,
    UNNAMED,
    Doing,
    Frame,
    Span,
    callbacks_together,
    spans_of,
    stack_under,
)
from rtscope.explain.events.threadstates import (
    MachineTraits,
    State,
    StateInterval,
    TracedWakeup,
    Waiting,
    segment_of,
)
from rtscope.explain.model import TICK_REMEDY, Cause, Confidence, Part, Segment
from rtscope.record.events.events import Event, Flag, Window

_LENDING_NS = 100_000
"""Who lends a priority goes to sleep at once."""
_FAULTS = 4
"""The first faults that are shown."""
_SLACK_NS = 1000
"""A real-time thread has none, and 1 ns can be asked."""


@dataclass(frozen=True, slots=True)
class ExplainContext:
    """All that the cause of a segment is found from; lists are filled on demand."""

    window: Window
    wakeup: TracedWakeup
    machine: MachineTraits
    intervals: tuple[StateInterval, ...]
    woken: Event | None
    """The event that ended the sleep that the timer was armed for."""
    facts: Histories
    """Priorities and names of all threads, at each instant."""
    _spans: dict[int, tuple[Span, ...]] = field(default_factory=dict)
    _switches: dict[int, EventList] = field(default_factory=dict)

    events: EventList = field(init=False)
    """Of all CPUs."""

    def __post_init__(self) -> None:
        """Take the events, once for all that search them."""
        object.__setattr__(self, "events", EventList(self.window.events))

    def spans_between(self, cpu: int, begin_ns: int, end_ns: int) -> list[Span]:
        """Return what a CPU did in a time."""
        spans = self._spans_of(cpu)
        first = bisect_right(spans, begin_ns, key=lambda span: span.end_ns)
        last = bisect_left(spans, end_ns, key=lambda span: span.begin_ns)
        return [span.clipped(begin_ns, end_ns) for span in spans[first:last]]

    def events_of(self, cpu: int) -> EventList:
        """Return the events of a CPU."""
        return self.events.apart("cpu", lambda event: event.cpu, cpu)

    def switches_of(self, cpu: int) -> EventList:
        """Return the switches of a CPU, those that lie before the window, too."""
        if cpu not in self._switches:
            switch = "sched_switch"
            earlier = [
                one
                for one in self.window.earlier
                if one.cpu == cpu and one.name == switch
            ]
            inside = self.events_of(cpu).named(switch)
            self._switches[cpu] = EventList((*earlier, *inside))
        return self._switches[cpu]

    def frames_at(self, event: Event) -> tuple[Frame, ...]:
        """Return what the event's CPU was in when it was written."""
        spans = self._spans_of(event.cpu)
        began = bisect_left(spans, event.at_ns, key=lambda span: span.begin_ns)
        at = max(0, began - 1)
        here = [s for s in spans[at : at + 2] if s.begin_ns <= event.at_ns]
        inside = [s for s in here if s.frames]
        frames = inside[-1].frames if inside else ()
        in_interrupt = any(frame.doing is Doing.INTERRUPT for frame in frames)
        if event.flags is not None and event.flags & Flag.HARDIRQ and not in_interrupt:
            return (*frames, Frame(Doing.INTERRUPT, UNNAMED, event.at_ns))
        return frames

    def depth_at(self, cpu: int, entered_ns: int | None) -> int | None:
        """Return how often preemption was off where an interrupt came."""
        if entered_ns is None:
            return None
        entry = self.events_of(cpu).first_from(entered_ns)
        if entry is None or entry.at_ns != entered_ns:
            return None
        return entry.preempt_depth

    @property
    def has_interrupts(self) -> bool:
        """Whether entries of interrupts were recorded at all."""
        return any(name.endswith("_entry") for name in self.window.known)

    @property
    def cpu(self) -> int:
        """The CPU it was measured on, or else the last one the thread was on."""
        known = [
            self.wakeup.cpu,
            *(interval.cpu for interval in reversed(self.intervals)),
        ]
        return next((cpu for cpu in known if cpu is not None), 0)

    def _spans_of(self, cpu: int) -> tuple[Span, ...]:
        if cpu not in self._spans:
            self._spans[cpu] = spans_of(self.window, cpu, self.facts)
        return self._spans[cpu]


def segments_of(context: ExplainContext, interval: StateInterval) -> Iterator[Segment]:
    """Explain an interval of the thread by the activity of its CPU."""
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
    evidence = _freezing_evidence(context.events, unfrozen, expiry_ns=wakeup.expiry_ns)
    part = Part.A if context.woken is interval.end else Part.D
    group, sure = unfrozen.text("path"), Confidence.INFERRED
    return segment_of(
        interval, wakeup, part, Cause.FROZEN, group, *evidence, confidence=sure
    )


def _for_a_lock(context: ExplainContext, interval: StateInterval) -> Segment | None:
    """Explain a sleep of a thread that lent its priority just before; or None."""
    wakeup, facts = context.wakeup, context.facts
    lent = facts.lent_by(wakeup.pid, interval.begin_ns - _LENDING_NS, interval.begin_ns)
    if not lent:
        return None
    since_ns = wakeup.expiry_ns
    lines = (lent_words(event, facts, expiry_ns=since_ns) for event in lent)
    by = [] if interval.end is None else [f"woken by {_waker(interval.end)}"]
    holder = lent[0]  # those behind it are of whom it waits for itself
    name = holder.text("comm") or f"thread {holder.numbers.get('pid')}"
    return segment_of(
        *(interval, wakeup, Part.E, Cause.LOCK, name),
        *(*lines, *by),
        confidence=Confidence.INFERRED,
    )


def _blocked(context: ExplainContext, interval: StateInterval) -> Segment:
    wakeup = context.wakeup
    locked = _for_a_lock(context, interval)
    if locked is not None:
        return locked
    last = context.events.faults_of(wakeup.pid).last_until(interval.begin_ns)
    if last is None or last.at_ns < wakeup.expiry_ns:
        name = "the thread waited in the kernel (state D)"
        return _unknown(context, interval, Part.E, name)
    why = f"{last.name}, then the thread waited in state D"
    cause, sure = Cause.PAGE_FAULT, Confidence.INFERRED
    return segment_of(
        interval, wakeup, Part.E, cause, wakeup.comm, why, confidence=sure
    )


def _asleep(context: ExplainContext, interval: StateInterval) -> Iterator[Segment]:
    """Explain a sleep from the expiry to the event that woke the thread."""
    if interval.end is None:
        yield _unknown(context, interval, Part.A, "no event that woke the thread")
        return
    unfrozen = unfrozen_by(context.events, interval)
    if unfrozen is not None:
        yield _frozen(context, interval, unfrozen)
        return
    locked = None if interval.end is context.woken else _for_a_lock(context, interval)
    if locked is not None:
        yield locked
        return
    wakeup = context.wakeup
    if interval.end is not context.woken and (wakeup.to_the_end or wakeup.by_event):
        waker = _waker(interval.end)
        yield segment_of(interval, wakeup, Part.E, Cause.BLOCKED, waker)
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
    # PREEMPT_RT runs softirqs in threads
    elif interval.end.comm.startswith(("ktimers/", "ksoftirqd/")):
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
        yield from waited(context, interval, inside, cpu=cpu, from_ns=entered)
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
    yield from waited(context, interval, inside, cpu=cpu, from_ns=entered)


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
    yield from waited(context, interval, inside, cpu=cpu, from_ns=interval.begin_ns)


def waited(
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
        woken = events.named("sched_wakeup").apart(
            "woken", lambda e: e.numbers.get("pid"), context.wakeup.pid
        )
        first = woken.first_from(since)
        is_inside = first is not None and first.at_ns <= interval.end_ns
        queued = first.at_ns if first is not None and is_inside else since
    interrupted_ns = None if interrupt is None else interrupt.entered_ns
    if interrupt is not None and interrupted_ns is None:
        interrupted_ns = BEFORE_ALL_NS
    stack, interrupted_pid = None, -1
    if interrupted_ns is not None:
        stack = stack_under(events, interrupted_ns)
        began_ns = max(interrupted_ns, events[0].at_ns) if events else interrupted_ns
        at_begin = events.first_from(began_ns)
        if at_begin is not None and at_begin.at_ns == began_ns:
            interrupted_pid = at_begin.pid
    waiting = Waiting(
        expiry_ns=context.wakeup.expiry_ns,
        pid=context.wakeup.pid,
        facts=context.facts,
        since_ns=since,
        queued_ns=queued,
        events=events,
        waking_interrupt_ns=interrupted_ns,
        waking_callback_ns=callback_ns,
        stack=stack or (),
        interrupted_pid=interrupted_pid,
        machine=context.machine,
        switches=context.switches_of(cpu),
    )
    yield from waiting_segments(spans, waiting)


def _running(context: ExplainContext, interval: StateInterval) -> Iterator[Segment]:
    """Explain the return: interrupts and page faults may still come."""
    wakeup, cpu = context.wakeup, interval.cpu
    before = interval.end is not None and interval is context.intervals[0]
    if (before and not wakeup.by_event) or cpu is None:
        name = f"{wakeup.comm} itself still ran"
        part = Part.A if before else Part.E
        yield segment_of(interval, wakeup, part, Cause.RETURN, name)
        return
    theirs = context.events_of(cpu).faults_of(wakeup.pid)
    faults = theirs[theirs.before(interval.begin_ns) : theirs.before(interval.end_ns)]
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
    inside = [*takewhile(lambda e: e.at_ns < span.end_ns, faults[:_FAULTS])]
    if not inside:
        yield segment_of(span, wakeup, Part.E, cause, comm, confidence=sure)
        return
    evidence = (
        f"{e.name} at +{(e.at_ns - wakeup.expiry_ns) / 1000:,.3f} us, address "
        f"{_hexadecimal(e)}"
        for e in inside
    )
    if wakeup.to_the_end:  # its own work goes on behind them, and no event says where
        yield segment_of(span, wakeup, Part.E, cause, comm, *evidence)
        return
    at_ns = max(span.begin_ns, inside[0].at_ns)
    if at_ns > span.begin_ns:
        own = replace(span, end_ns=at_ns)
        yield segment_of(own, wakeup, Part.E, cause, comm)
    rest, fault = replace(span, begin_ns=at_ns), Cause.PAGE_FAULT
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


def _waker(event: Event) -> str:
    """Return who woke: the task that an interrupt met did not."""
    if event.flags is not None and event.flags & (Flag.HARDIRQ | Flag.SOFTIRQ):
        return "an interrupt"
    return f"{event.comm or '<...>'}-{event.pid}" if event.pid else "an interrupt"


def unfrozen_by(events: EventList, interval: StateInterval) -> Event | None:
    """Return the event of the group whose end of freezing ended a sleep, if one did."""
    woken = interval.end
    if woken is None:
        return None
    unfrozen = (
        events.named("cgroup_unfreeze")
        .apart("waker", lambda event: (event.pid, event.cpu), (woken.pid, woken.cpu))
        .last_until(woken.at_ns)
    )
    is_later = unfrozen is not None and unfrozen.at_ns >= interval.begin_ns
    return unfrozen if is_later else None


def _freezing_evidence(
    events: EventList, unfrozen: Event, *, expiry_ns: int
) -> Iterator[str]:
    """Write who froze the group, if that was recorded, and who ended it."""
    group = unfrozen.text("path")
    froze = (
        events.named("cgroup_freeze")
        .apart("group", lambda event: event.text("path"), group)
        .last_until(unfrozen.at_ns)
    )
    if froze is not None:
        yield f"{_task(froze)} froze {group} at {_since(froze, expiry_ns)}"
    when = _since(unfrozen, expiry_ns)
    yield f"{_task(unfrozen)} unfroze {group} at {when}, and woke the thread"


def _task(event: Event) -> str:
    return f"{event.comm or '<...>'}-{event.pid}"


def _since(event: Event, expiry_ns: int) -> str:
    return f"{(event.at_ns - expiry_ns) / 1000:+,.3f} us"
