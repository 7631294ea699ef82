"""Why a less urgent task was not preempted for the thread that was ready. Pure."""

from collections.abc import Iterator

from rtscope.explain.events.spans import Span, is_entry
from rtscope.explain.events.waiting import SHOWN, Waiting, last_of, stretch_of
from rtscope.explain.model import Cause, Confidence, Part, Stretch
from rtscope.ftrace.events import Event, Flag

STRAIGHT_NS = 50_000
"""From an interrupt's end to the switch no CPU that runs Linux takes so long, if
nothing is in the way: 1 to 20 us are usual."""
_RECENT_NS = 10_000_000
"""No interrupt that is told of by the wake-up it ends in began earlier."""


_FUNCTIONS = 6


def not_preempted(span: Span, waiting: Waiting, label: str) -> Stretch:
    """Explain why a less urgent task was not preempted."""
    off = _switched_off_by(span, waiting)
    if off is not None:
        confidence, why = off
        return stretch_of(
            span,
            waiting,
            Part.C,
            Cause.PREEMPTION_OFF,
            label,
            confidence=confidence,
            evidence=(why, *_found_in(span, waiting)),
        )
    asked_before = _went_on_after(span, waiting)
    asked = [
        e
        for e in waiting.events
        if span.begin_ns < e.at_ns < span.end_ns
        and e.pid == span.task.pid
        and e.flags is not None
        and e.flags & Flag.NEED_RESCHED
    ]
    short = span.end_ns - span.begin_ns <= STRAIGHT_NS
    if asked and not short:
        why = (
            f"need_resched was set, and {span.task.numbered} went on "
            f"({', '.join(dict.fromkeys(e.name for e in asked[-SHOWN:]))})"
        )
        return stretch_of(
            span,
            waiting,
            Part.C,
            Cause.PREEMPTION_OFF,
            label,
            confidence=Confidence.INFERRED,
            evidence=(why, *_found_in(span, waiting), *last_of(span, waiting)),
        )
    if short:
        return stretch_of(
            span,
            waiting,
            Part.D,
            Cause.SCHEDULER,
            f"from {span.task.label} to the thread",
            confidence=Confidence.INFERRED,
        )
    if asked_before is not None:
        return stretch_of(
            span,
            waiting,
            Part.C,
            Cause.PREEMPTION_OFF,
            label,
            confidence=Confidence.INFERRED,
            evidence=(asked_before, *_found_in(span, waiting)),
        )
    if waiting.machine.preemptible is False:
        return _in_kernel(span, waiting, label)
    return stretch_of(
        span,
        waiting,
        Part.C,
        Cause.UNKNOWN,
        f"preemption off in {span.task.label}, or the hypervisor or hardware",
        confidence=Confidence.GUESSED,
        evidence=("no event of that time tells which", *last_of(span, waiting)),
    )


def _in_kernel(span: Span, waiting: Waiting, label: str) -> Stretch:
    """Blame the kernel's own code, which this kernel does not preempt."""
    evidence = ["this kernel does not preempt its own code: a system call goes on"]
    if waiting.machine.guest:
        evidence.append("guessed: in a guest, the hypervisor would look the same")
    return stretch_of(
        span,
        waiting,
        Part.C,
        Cause.PREEMPTION_OFF,
        label,
        confidence=Confidence.GUESSED if waiting.machine.guest else Confidence.INFERRED,
        evidence=(*evidence, *_found_in(span, waiting), *last_of(span, waiting)),
    )


def _switched_off_by(span: Span, waiting: Waiting) -> tuple[Confidence, str] | None:
    """Return what shows that preemption was off, and how surely.

    Interrupts tell how often it was switched off in the task that they came to.
    """
    label = span.task.numbered
    off = _toggled_off(span, waiting)
    if off is not None:
        return Confidence.SEEN, f"preempt_disable by {off}, in {label}"
    entries = [
        event
        for event in waiting.events
        if is_entry(event) and event.pid == span.task.pid and event.preempt_depth
    ]
    last = [e for e in entries if waiting.since_ns - _RECENT_NS <= e.at_ns]
    before = [e for e in last if e.at_ns <= span.begin_ns]
    after = next((e for e in last if e.at_ns == span.end_ns), None)
    latest = _latest_entry(span, waiting)
    if after is not None:
        return Confidence.SEEN, _depth_told(after, label, waiting)
    if before and latest is before[-1]:
        return Confidence.SEEN, _depth_told(before[-1], label, waiting)
    return None


def _latest_entry(span: Span, waiting: Waiting) -> Event | None:
    """Return the last interrupt that came before the span."""
    found = None
    for event in waiting.events:
        if event.at_ns > span.begin_ns:
            break
        if is_entry(event):
            found = event
    return found


def _depth_told(event: Event, label: str, waiting: Waiting) -> str:
    at = (event.at_ns - waiting.expiry_ns) / 1000
    return (
        f"{label} had preemption off when {event.name.removesuffix('_entry')} "
        f"interrupted it at {at:+,.3f} us (depth {event.preempt_depth})"
    )


def _toggled_off(span: Span, waiting: Waiting) -> str | None:
    """Return who switched preemption off, by events of that kind."""
    off: Event | None = None
    for event in waiting.events:
        if event.at_ns >= span.end_ns:
            break
        if event.name == "preempt_disable":
            off = event
        elif event.name == "preempt_enable" and event.at_ns <= span.begin_ns:
            off = None
    return off.text("caller") or "an unknown function" if off is not None else None


def _went_on_after(span: Span, waiting: Waiting) -> str | None:
    """Say if an interrupt found need_resched set, and its end did not preempt.

    At the end of an interrupt the scheduler is called at once, if it may be: what has
    the CPU after that has preemption off, whatever a hypervisor does.
    """
    latest = _latest_entry(span, waiting)
    if latest is None or latest.at_ns <= waiting.queued_ns:
        return None
    if latest.flags is None or not latest.flags & Flag.NEED_RESCHED:
        return None
    at = (latest.at_ns - waiting.expiry_ns) / 1000
    return (
        f"need_resched was set when {latest.name.removesuffix('_entry')} came at "
        f"{at:+,.3f} us, and {span.task.numbered} went on after it"
    )


def _found_in(span: Span, waiting: Waiting) -> Iterator[str]:
    """Tell where the timer's interrupt found the task, if a stack was recorded."""
    if waiting.stack and span.task.pid == waiting.interrupted_pid:
        chain = " < ".join(waiting.stack[:_FUNCTIONS])
        yield f"the timer's interrupt found it in {chain}"
