"""
Why the timer's interrupt came late, and times without any event. Pure.

On a kernel without events for interrupts going off and on, a task that runs on shows
little: interrupts off, a hypervisor and the hardware look the same. A cause is named
only where the other two are excluded.

The timer's interrupt, the switch and the return are short, and have events. Where none
comes for long, something else has the CPU: a hypervisor or hardware, or a lock is
waited for. That time is cut out: the parts of every wake-up did not cause it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rtscope.explain.events.eventlists import EventList
from rtscope.explain.events.spans import Doing, Span, stack_under
from rtscope.explain.events.threadstates import (
    STRAIGHT_NS,
    MachineTraits,
    last_of,
    lost_segment,
    segment_of,
)
from rtscope.explain.model import PUT_OFF_REMEDY, Cause, Confidence, Part, Segment
from rtscope.record.events.events import Event, Flag

_STRAIGHT = frozenset(
    {
        *(Cause.TIMER_INTERRUPT, Cause.SCHEDULER, Cause.RETURN),
        *(Cause.SENDING, Cause.EVENT_INTERRUPT),
    }
)
_LOOKS, _SET_NS = 3, 2_000
"""Of one timer interrupt; how long it takes to set the next."""
_SHORT_NS = 10_000
"""No CPU looks for due timers three times in a shorter time, and finds some."""
_ONE_CLOCK_NS = 1_000_000_000
"""Two times farther apart are of two clocks."""
UNMASKING = "_raw_spin_unlock_irq", "local_irq_enable", "arch_local_irq"


@dataclass(frozen=True, slots=True)
class IrqDelay:
    """The time from the expiry to the interrupt."""

    expiry_ns: int
    events: EventList
    """Of this CPU."""
    known: frozenset[str]
    """Names of the events that were recorded anywhere."""
    machine: MachineTraits
    depth: int | None
    """How often preemption was switched off where the interrupt came."""
    due: str = "the timer was due"
    """What the time begins with."""


def irq_delay_segments(spans: Sequence[Span], delay: IrqDelay) -> Iterator[Segment]:
    """Return a cause for each span before the timer's interrupt."""
    waited = _put_off(spans, delay)
    for span in spans:
        if span.doing is Doing.LOST:
            yield lost_segment(span, delay, Part.A)
        elif waited is not None and _covers(*waited, span):
            yield _while_put_off(span, delay, waited)
        elif span.doing in (Doing.INTERRUPT, Doing.CALLBACK):
            yield _in_interrupt(span, delay)
        elif span.doing is Doing.IDLE:
            yield _in_idle(span, delay)
        else:
            yield _in_task(span, delay)


def _put_off(spans: Sequence[Span], delay: IrqDelay) -> tuple[int, int] | None:
    """
    Return from when to when the kernel let the timer's interrupt wait, if it did.

    An interrupt that looked for due timers three times, and found more, lets the next
    wait for as long as it took: hrtimer_interrupt() in kernel/time/hrtimer.c. Each look
    is another `now` of the clock of a timer.
    """
    if not spans or spans[-1].end_ns - spans[-1].begin_ns <= _SHORT_NS:
        return None
    entered_ns = spans[-1].end_ns
    entries = delay.events.of_kind("entry", _is_entry)
    expired = delay.events.named("hrtimer_expire_entry")
    of_one: list[Event] = []
    for one in reversed(expired[: expired.before(entered_ns)]):
        if of_one and entries.before(of_one[-1].at_ns) > entries.before(one.at_ns):
            break
        of_one.append(one)
    times = {n for one in of_one if isinstance(n := one.fields.get("now"), int)}
    most = max(
        (sum(0 <= n - o < _ONE_CLOCK_NS for o in times) for n in times), default=0
    )
    ends = delay.events.named("hrtimer_expire_exit").last_before(entered_ns)
    if not entries or most < _LOOKS or ends is None:
        return None
    took_ns = ends.at_ns - of_one[-1].at_ns
    due_ns = ends.at_ns + took_ns
    is_due = due_ns - _SET_NS <= entered_ns <= due_ns + took_ns // 4
    return (ends.at_ns, entered_ns) if took_ns > 0 and is_due else None


def _is_entry(event: Event) -> bool:
    return event.name in ("local_timer_entry", "irq_handler_entry")


def _while_put_off(span: Span, delay: IrqDelay, waited: tuple[int, int]) -> Segment:
    took_us = (waited[1] - waited[0]) / 1000
    seen = (
        f"the timer interrupt before took about {took_us:,.3f} us, and found more due "
        f"timers each of {_LOOKS} times it looked: the kernel let the next wait as long"
    )
    return segment_of(
        span,
        delay,
        Part.A,
        Cause.PUT_OFF,
        span.name,
        seen,
        PUT_OFF_REMEDY,
        confidence=Confidence.INFERRED,
    )


def _in_interrupt(span: Span, delay: IrqDelay) -> Segment:
    outer = span.interrupt
    if outer is None:
        return _in_task(span, delay)
    name = span.name if span.name == outer.name else f"{outer.name}: {span.name}"
    return segment_of(span, delay, Part.A, Cause.EARLIER_INTERRUPT, name)


def _in_idle(span: Span, delay: IrqDelay) -> Segment:
    evidence = [f"the CPU was in {span.name} when {delay.due}"]
    if span.name == "idle":
        evidence.append("the idle state is unknown: there is no cpu_idle event")
    if delay.machine.guest:
        evidence.append(
            "in a guest the host must run the CPU again first, which looks the same"
        )
    sure = Confidence.INFERRED
    return segment_of(
        span, delay, Part.A, Cause.IDLE_EXIT, span.name, *evidence, confidence=sure
    )


def _in_task(span: Span, delay: IrqDelay) -> Segment:
    irqs_off = _switched_off_by(span, delay)
    if irqs_off is not None:
        return segment_of(span, delay, Part.A, Cause.INTERRUPTS_OFF, *irqs_off)
    stack = stack_under(delay.events, span.end_ns)
    if stack is not None:
        return _by_stack(span, delay, stack)
    enabled = _enabled_at(span, delay)
    if enabled is not None:
        evidence = enabled, *last_of(span, delay.events)
        return _hardware(span, delay, *evidence, confidence=Confidence.INFERRED)
    return _undecided(span, delay)


def _hardware(
    span: Span,
    delay: IrqDelay,
    *evidence: str,
    confidence: Confidence,
    where: str = "",
) -> Segment:
    name = f"while {span.task.label} ran{where}"
    return segment_of(
        span, delay, Part.A, Cause.HARDWARE, name, *evidence, confidence=confidence
    )


def _switched_off_by(span: Span, delay: IrqDelay) -> tuple[str, str] | None:
    """Return the function that had interrupts off for half of the span, by events."""
    toggles = delay.events.of_kind("toggle", _is_toggle)
    # What was over before the span covers nothing of it.
    off = _off_before(span.begin_ns, toggles)
    at, end = toggles.before(span.begin_ns), toggles.until(span.end_ns)
    for event in toggles[at:end]:
        if event.name == "irq_disable":
            off = event if off is None else off
        elif off is not None and _covers(off.at_ns, event.at_ns, span):
            return _who(off, event, delay)
        else:
            off = None
    if off is not None and _covers(off.at_ns, span.end_ns, span):
        return _who(off, None, delay)
    return None


def _off_before(at_ns: int, toggles: EventList) -> Event | None:
    """Return the event since which interrupts were off just before a time."""
    on, off = toggles.named("irq_enable"), toggles.named("irq_disable")
    end = on.before(at_ns)
    first = off.first_behind_place(on.places[end - 1] if end else -1)
    if first is None or off[first].at_ns >= at_ns:
        return None
    return off[first]


def _is_toggle(event: Event) -> bool:
    return event.name in ("irq_disable", "irq_enable")


def _covers(begin_ns: int, end_ns: int, span: Span) -> bool:
    common = min(end_ns, span.end_ns) - max(begin_ns, span.begin_ns)
    return 2 * common >= span.end_ns - span.begin_ns


def _who(off: Event, on: Event | None, delay: IrqDelay) -> tuple[str, str]:
    name = off.text("caller") or "an unknown function"
    since = (off.at_ns - delay.expiry_ns) / 1000
    seen = f"irq_disable by {name} at {since:+,.3f} us"
    if on is not None:
        until = (on.at_ns - delay.expiry_ns) / 1000
        seen += f", irq_enable by {on.text('caller')} at {until:+,.3f} us"
    return name, seen


def _by_stack(span: Span, delay: IrqDelay, stack: Sequence[str]) -> Segment:
    sure = Confidence.INFERRED
    if not stack:
        why = "the interrupt came in user space, where interrupts are always on"
        return _hardware(span, delay, why, confidence=sure, where=" in user space")
    if not stack[0].startswith(UNMASKING):
        return _undecided(span, delay, stack)
    # The function that unlocks had them off; its caller shows the purpose.
    holders = stack[1:] or stack
    evidence = [
        f"the interrupt came when {stack[0]} enabled interrupts, in "
        f"{span.task.numbered}"
    ]
    if delay.machine.guest:
        evidence.append("in a guest the host may have made that time longer")
    segment = segment_of(
        span,
        delay,
        Part.A,
        Cause.INTERRUPTS_OFF,
        holders[0],
        *evidence,
        confidence=sure,
    )
    return replace(segment, callers=tuple(holders))


def _enabled_at(span: Span, delay: IrqDelay) -> str | None:
    """Return an event near the end of the span that shows that interrupts were on."""
    event = delay.events.of_kind("enabled", _is_enabled).last_before(span.end_ns)
    if event is None or event.at_ns <= span.begin_ns:
        return None
    if 2 * (event.at_ns - span.begin_ns) < span.end_ns - span.begin_ns:
        return None
    at = (event.at_ns - delay.expiry_ns) / 1000
    return f"interrupts were on at {at:+,.3f} us ({event.name}), and none came"


def _is_enabled(event: Event) -> bool:
    """Tell whether an event says that interrupts were on."""
    off = Flag.IRQS_OFF | Flag.HARDIRQ
    return event.flags is not None and not event.flags & off


def _undecided(span: Span, delay: IrqDelay, stack: Sequence[str] = ()) -> Segment:
    evidence = [*last_of(span, delay.events)]
    if stack:
        evidence.append(f"the interrupt found {' < '.join(stack[:4])}")
    elif "kernel_stack" in delay.known:
        evidence.append(
            "stacks were recorded, but none in the interrupt that came then"
        )
    if delay.events.until(span.begin_ns) >= delay.events.before(span.end_ns):
        evidence.append("no event on this CPU in this time")
    why = "the trace has no preemptirq events (irq_disable, irq_enable)"
    if "irq_disable" in delay.known:
        why = "no irq_disable event lasted that long"
    # Most code that has interrupts off holds a lock, and with it preemption off.
    critical = bool(delay.depth) and "irq_disable" not in delay.known
    if critical:
        evidence.append(
            f"{span.task.numbered} had preemption off when the interrupt came (depth "
            f"{delay.depth})"
        )
    if (delay.machine.guest or "irq_disable" in delay.known) and not critical:
        guess = f"guessed: {why}"
        if delay.machine.guest:
            guess += "; this is a guest: the host can take a CPU away at any time"
        return _hardware(span, delay, *evidence, guess, confidence=Confidence.GUESSED)
    other = "the hypervisor" if delay.machine.guest else "hardware"
    name = f"interrupts off in {span.task.label}, or {other}"
    return segment_of(span, delay, Part.A, Cause.UNKNOWN, name, *evidence, why)


def event_gaps_apart(
    segments: Iterable[Segment],
    events: EventList,
    *,
    due_ns: int,
    machine: MachineTraits,
) -> Iterator[Segment]:
    """Cut long times without an event out; `events` are those of the CPU, in order."""
    for segment in segments:
        if segment.cause not in _STRAIGHT or segment.duration_ns <= STRAIGHT_NS:
            yield segment
            continue
        begin, end = segment.begin_ns, segment.end_ns
        chosen = events[events.before(begin + due_ns) : events.until(end + due_ns)]
        inside = [(event.at_ns - due_ns, event.name) for event in chosen]
        marks = [(begin, "its begin"), *inside, (end, "its end")]
        yield from _pieces(segment, marks, machine)


def _pieces(
    segment: Segment, marks: Sequence[tuple[int, str]], machine: MachineTraits
) -> Iterator[Segment]:
    at = segment.begin_ns
    for (since, first), (until, second) in pairwise(marks):
        if until - since <= STRAIGHT_NS:
            continue
        if since > at:
            yield replace(segment, begin_ns=at, end_ns=since)
        yield _gap(segment, since, until, machine, f"from {first} to {second}")
        at = until
    if at < segment.end_ns:
        yield replace(segment, begin_ns=at)


def _gap(
    segment: Segment, begin_ns: int, end_ns: int, machine: MachineTraits, between: str
) -> Segment:
    evidence = [f"{(end_ns - begin_ns) / 1000:,.3f} us without an event, {between}"]
    if machine.guest:
        cause, name = Cause.HARDWARE, f"during {segment.cause}"
        evidence.append("guessed: this is a guest: the host can take a CPU away")
    else:
        cause, name = Cause.UNKNOWN, f"a lock or hardware, during {segment.cause}"
    return replace(
        segment,
        begin_ns=begin_ns,
        end_ns=end_ns,
        cause=cause,
        name=name,
        evidence=tuple(evidence),
        confidence=Confidence.GUESSED,
    )
