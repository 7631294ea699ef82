"""
A late wake-up of timerlat from osnoise events, where no switch was recorded. Pure.

The tracer's own lines say when its interrupt and its thread were how late. Events of
noise tell what ran: each comes at its end, with its begin and its net length. What
nests over a thread is laid over it. Priorities are in none of these events.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rtscope.explain.events.irqdelay import UNMASKING
from rtscope.explain.events.spans import SOFTIRQS, below_the_interrupt
from rtscope.explain.events.threadstates import TracedWakeup
from rtscope.explain.events.waiting import STRAIGHT_NS
from rtscope.explain.model import Cause, Confidence, Explanation, Part, Segment, joined
from rtscope.record.events.events import Event, Window

_KINDS = ("thread_noise", "softirq_noise", "irq_noise", "nmi_noise")
"""What comes later nests over what comes before."""
_SHOWN = 6
_UNKNOWN_TIME = "no event of noise tells what ran"


def is_of_noise(window: Window, wakeup: TracedWakeup) -> bool:
    """Tell whether a wake-up is one that timerlat's own lines tell."""
    return any(
        event.name == "timerlat" and event.at_ns == wakeup.wake_ns
        for event in window.events
    )


@dataclass(frozen=True, slots=True)
class _Ran:
    begin_ns: int
    end_ns: int
    layer: int
    name: str


def explain_noise(window: Window, wakeup: TracedWakeup) -> Explanation:
    """Explain a wake-up of timerlat by its lines and the noise around it."""
    cpu = wakeup.cpu or 0
    events = [event for event in window.events if event.cpu == cpu]
    irq_ns = _interrupt_of(events, wakeup)
    ran = [one for one in map(_ran, events) if one is not None]
    segments = joined(
        [
            *_before(events, ran, wakeup, irq_ns),
            *_behind(events, ran, wakeup, irq_ns),
        ]
    )
    return Explanation(
        cpu=cpu,
        sequence=wakeup.sequence,
        latency_ns=wakeup.latency_ns,
        segments=segments,
        notes=tuple(_notes(window)),
    )


def _interrupt_of(events: Sequence[Event], wakeup: TracedWakeup) -> int:
    """Return when the interrupt of a wake-up came; its expiry, if no line says it."""
    lines = [
        event
        for event in events
        if event.name == "timerlat"
        and event.text("context") in ("irq", "0")
        and wakeup.expiry_ns <= event.at_ns <= wakeup.wake_ns
    ]
    if not lines:
        return wakeup.expiry_ns
    # The line is written later than what it says.
    late_ns = lines[-1].numbers.get("timer_latency", 0)
    return min(wakeup.expiry_ns + late_ns, lines[-1].at_ns)


def _ran(event: Event) -> _Ran | None:
    if event.name not in _KINDS:
        return None
    begin = event.numbers.get("start", event.at_ns)
    begin = begin if begin <= event.at_ns else event.at_ns
    if event.name == "softirq_noise":
        vector = event.numbers.get("vector", -1)
        known = 0 <= vector < len(SOFTIRQS)
        name = SOFTIRQS[vector] if known else f"softirq {vector}"
    elif event.name == "irq_noise":
        vector = event.numbers.get("vector", -1)
        name = f"{event.text('desc') or 'interrupt'} ({vector})"
    elif event.name == "nmi_noise":
        name = "NMI"
    else:
        name = event.text("comm") or f"thread {event.numbers.get('pid', -1)}"
    return _Ran(begin, event.at_ns, _KINDS.index(event.name), name)


def _before(
    events: Sequence[Event], ran: Sequence[_Ran], wakeup: TracedWakeup, irq_ns: int
) -> Iterator[Segment]:
    """Explain the time until the interrupt of the timer."""
    for begin, end, one in _laid_over(ran, wakeup.expiry_ns, irq_ns):
        if one is not None and one.layer > 1 and one.end_ns <= irq_ns:
            cause, name = Cause.EARLIER_INTERRUPT, one.name
            yield _segment(wakeup, begin, end, Part.A, cause, name)
        else:
            below = [r for r in ran if r.layer == 0 and r.begin_ns <= begin < r.end_ns]
            thread = below[0].name if below else _current_at(events, irq_ns)
            yield _delayed(events, wakeup, begin, end, thread)


def _current_at(events: Sequence[Event], at_ns: int) -> str:
    """Return the task that the first event behind an instant names as current."""
    after = (event.comm for event in events if event.at_ns >= at_ns)
    return next(after, "") or "an unknown thread"


def _delayed(
    events: Sequence[Event],
    wakeup: TracedWakeup,
    begin_ns: int,
    end_ns: int,
    thread: str,
) -> Segment:
    chain = _stack_of(events, wakeup)
    if chain:
        why = f"the interrupt came in {' < '.join(chain[:_SHOWN])}, in {thread}"
        off = chain[0].startswith(UNMASKING)
        holder = chain[1] if off and len(chain) > 1 else chain[0]
        cause, sure = Cause.INTERRUPTS_OFF, Confidence.INFERRED
        return _segment(wakeup, begin_ns, end_ns, Part.A, cause, holder, why, sure=sure)
    name = f"interrupts off in {thread}, or the hypervisor or hardware"
    return _segment(wakeup, begin_ns, end_ns, Part.A, Cause.UNKNOWN, name)


def _stack_of(events: Sequence[Event], wakeup: TracedWakeup) -> Sequence[str]:
    """Return what the timer's interrupt found, innermost first; or nothing."""
    stacks = (
        below_the_interrupt(event.text("stack").split(" < "))
        for event in events
        if event.name == "kernel_stack" and event.at_ns >= wakeup.expiry_ns
    )
    return next((stack for stack in stacks if stack), ())


def _behind(
    events: Sequence[Event], ran: Sequence[_Ran], wakeup: TracedWakeup, irq_ns: int
) -> Iterator[Segment]:
    """Explain the time from the interrupt of the timer to the thread."""
    for begin, end, one in _laid_over(ran, irq_ns, wakeup.wake_ns):
        if one is None and end - begin > STRAIGHT_NS:
            part, cause, name = Part.D, Cause.UNKNOWN, _UNKNOWN_TIME
            sure, why = Confidence.GUESSED, f"for more than {STRAIGHT_NS // 1000} us"
        elif one is None:
            part, cause, name = Part.D, Cause.SCHEDULER, "to the thread"
            sure, why = Confidence.INFERRED, _UNKNOWN_TIME
        elif one.layer > 1:
            ours = one.begin_ns <= irq_ns < one.end_ns
            part, name, sure = Part.B, one.name, Confidence.SEEN
            cause = Cause.TIMER_INTERRUPT if ours else Cause.OTHER_INTERRUPT
            why = "irq_noise, or nmi_noise"
        elif one.layer == 1:
            part, cause, name = Part.C, Cause.SOFTIRQ, one.name
            sure, why = Confidence.SEEN, "softirq_noise"
        else:
            part, cause, name = Part.C, Cause.PREEMPTION_OFF, one.name
            sure = Confidence.INFERRED
            why = f"thread_noise: {one.name} kept the CPU behind the interrupt"
        yield _segment(wakeup, begin, end, part, cause, name, why, sure=sure)


def _laid_over(
    ran: Sequence[_Ran], begin_ns: int, end_ns: int
) -> Iterator[tuple[int, int, _Ran | None]]:
    """Yield the innermost thing that ran in each piece of a time; None if none did."""
    cuts = {begin_ns, end_ns}
    for one in ran:
        cuts |= {at for at in (one.begin_ns, one.end_ns) if begin_ns < at < end_ns}
    for begin, end in pairwise(sorted(cuts)):
        inside = [one for one in ran if one.begin_ns <= begin and one.end_ns >= end]
        yield begin, end, max(inside, key=lambda one: one.layer, default=None)


def _segment(
    wakeup: TracedWakeup,
    begin_ns: int,
    end_ns: int,
    part: Part,
    cause: Cause,
    name: str,
    *evidence: str,
    sure: Confidence = Confidence.SEEN,
) -> Segment:
    begin, end = begin_ns - wakeup.expiry_ns, end_ns - wakeup.expiry_ns
    sure = Confidence.GUESSED if cause is Cause.UNKNOWN else sure
    return Segment(part, begin, end, cause, name, evidence=evidence, confidence=sure)


def _notes(window: Window) -> Iterator[str]:
    yield (
        "from timerlat's own lines and events of osnoise: they have no priorities and "
        "no switches; record sched_switch and sched_waking, too"
    )
    missing = [kind for kind in _KINDS[:3] if kind not in window.known]
    if missing:
        yield f"the trace has no {' and no '.join(missing)} events"
