"""
Why the timer's interrupt came late: what its CPU did after the expiry. Pure.

On a kernel without events for interrupts going off and on, a task that runs on says
little: interrupts off, a hypervisor and the hardware look the same. Only what excludes
two of them names the third.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rtscope.explain.events.scheduling import lost_stretch
from rtscope.explain.events.spans import Doing, Span, callbacks_together
from rtscope.explain.events.stacks import stack_under
from rtscope.explain.events.threadstates import Machine
from rtscope.explain.events.waiting import last_events, stretch_of
from rtscope.explain.model import Cause, Confidence, Part, Stretch
from rtscope.ftrace.events import Event, Flag

_MASKED = "_raw_spin_unlock_irq", "local_irq_enable", "arch_local_irq"


@dataclass(frozen=True, slots=True)
class Late:
    """The time from the expiry to the interrupt."""

    expiry_ns: int
    cpu: int
    events: Sequence[Event]
    """Of this CPU."""
    known: frozenset[str]
    """Names of the events that were recorded anywhere."""
    machine: Machine
    depth: int | None
    """How often preemption was switched off where the interrupt came."""


def late_stretches(spans: Sequence[Span], late: Late) -> Iterator[Stretch]:
    """Return a cause for each span before the timer's interrupt."""
    for span in callbacks_together(spans):
        if span.doing is Doing.LOST:
            yield lost_stretch(span, late.expiry_ns, Part.A)
        elif span.doing in (Doing.INTERRUPT, Doing.CALLBACK):
            yield _in_interrupt(span, late)
        elif span.doing is Doing.IDLE:
            yield _in_idle(span, late)
        else:
            yield _in_task(span, late)


def _in_interrupt(span: Span, late: Late) -> Stretch:
    outer = span.interrupt
    if outer is None:
        return _in_task(span, late)
    name = span.name if span.name == outer.name else f"{outer.name}: {span.name}"
    return stretch_of(span, late, Part.A, Cause.EARLIER_INTERRUPT, name)


def _in_idle(span: Span, late: Late) -> Stretch:
    evidence = [f"the CPU was in {span.name} when the timer was due"]
    if span.name == "idle":
        evidence.append("how deep is not known: there is no cpu_idle event")
    if late.machine.guest:
        evidence.append(
            "in a guest the host has to run the CPU again first: both look the same"
        )
    return stretch_of(
        span,
        late,
        Part.A,
        Cause.IDLE_EXIT,
        span.name,
        confidence=Confidence.INFERRED,
        evidence=tuple(evidence),
    )


def _in_task(span: Span, late: Late) -> Stretch:
    masked = _switched_off_by(span, late)
    if masked is not None:
        name, why = masked
        return stretch_of(
            span, late, Part.A, Cause.INTERRUPTS_OFF, name, evidence=(why,)
        )
    stack = stack_under(late.events, span.end_ns)
    if stack is not None:
        return _by_stack(span, late, stack)
    enabled = _enabled_at(span, late)
    if enabled is not None:
        return stretch_of(
            span,
            late,
            Part.A,
            Cause.HARDWARE,
            f"while {span.task.label} ran",
            confidence=Confidence.INFERRED,
            evidence=(enabled, *_last_of(span, late)),
        )
    return _undecided(span, late)


def _switched_off_by(span: Span, late: Late) -> tuple[str, str] | None:
    """Return who had interrupts off for at least half of the span, by events."""
    off: Event | None = None
    for event in late.events:
        if event.at_ns > span.end_ns:
            break
        if event.name == "irq_disable":
            off = event if off is None else off
        elif event.name == "irq_enable":
            if off is not None and _covers(off.at_ns, event.at_ns, span):
                return _who(off, event, late)
            off = None
    if off is not None and _covers(off.at_ns, span.end_ns, span):
        return _who(off, None, late)
    return None


def _covers(begin_ns: int, end_ns: int, span: Span) -> bool:
    common = min(end_ns, span.end_ns) - max(begin_ns, span.begin_ns)
    return 2 * common >= span.end_ns - span.begin_ns


def _who(off: Event, on: Event | None, late: Late) -> tuple[str, str]:
    name = off.text("caller") or "an unknown function"
    since = (off.at_ns - late.expiry_ns) / 1000
    told = f"irq_disable by {name} at {since:+,.3f} us"
    if on is not None:
        until = (on.at_ns - late.expiry_ns) / 1000
        told += f", irq_enable by {on.text('caller')} at {until:+,.3f} us"
    return name, told


def _by_stack(span: Span, late: Late, stack: Sequence[str]) -> Stretch:
    if not stack:
        return stretch_of(
            span,
            late,
            Part.A,
            Cause.HARDWARE,
            f"while {span.task.label} ran in user space",
            confidence=Confidence.INFERRED,
            evidence=(
                "the interrupt came from user space, where interrupts are always on",
            ),
        )
    if not stack[0].startswith(_MASKED):
        return _undecided(span, late, stack)
    # The one who unlocks had them off; who calls it tells what for.
    holders = stack[1:] or stack
    evidence = [
        f"the interrupt came when {stack[0]} switched interrupts on again, in "
        f"{span.task.numbered}"
    ]
    if late.machine.guest:
        evidence.append("in a guest the host may have made that longer than it was")
    return replace(
        stretch_of(
            span,
            late,
            Part.A,
            Cause.INTERRUPTS_OFF,
            holders[0],
            confidence=Confidence.INFERRED,
            evidence=tuple(evidence),
        ),
        callers=tuple(holders),
    )


def _enabled_at(span: Span, late: Late) -> str | None:
    """Say if an event near the end of the span shows that interrupts were on."""
    for event in reversed(late.events):
        if not span.begin_ns < event.at_ns < span.end_ns or event.flags is None:
            continue
        if event.flags & (Flag.IRQS_OFF | Flag.HARDIRQ):
            continue
        if 2 * (event.at_ns - span.begin_ns) >= span.end_ns - span.begin_ns:
            at = (event.at_ns - late.expiry_ns) / 1000
            return f"interrupts were on at {at:+,.3f} us ({event.name}), and none came"
    return None


def _undecided(span: Span, late: Late, stack: Sequence[str] = ()) -> Stretch:
    evidence = [*_last_of(span, late)]
    if stack:
        evidence.append(f"the interrupt found {' < '.join(stack[:4])}")
    inside = [e for e in late.events if span.begin_ns < e.at_ns < span.end_ns]
    if not inside:
        evidence.append("no event on this CPU in that time")
    why = "no events tell of interrupts going off and on (preemptirq)"
    if "irq_disable" in late.known:
        why = "irq_disable events show none that lasted"
    # Most code that has interrupts off holds a lock, and with it preemption off.
    critical = bool(late.depth) and "irq_disable" not in late.known
    if critical:
        evidence.append(
            f"{span.task.numbered} had preemption off when the interrupt came (depth "
            f"{late.depth})"
        )
    if (late.machine.guest or "irq_disable" in late.known) and not critical:
        told = (
            f"{why}; this is a guest: the host can take a CPU away at any time"
            if late.machine.guest
            else why
        )
        return stretch_of(
            span,
            late,
            Part.A,
            Cause.HARDWARE,
            f"while {span.task.label} ran",
            confidence=Confidence.GUESSED,
            evidence=(*evidence, f"guessed: {told}"),
        )
    return stretch_of(
        span,
        late,
        Part.A,
        Cause.UNKNOWN,
        f"interrupts off in {span.task.label}, or "
        + ("the hypervisor" if late.machine.guest else "hardware"),
        confidence=Confidence.GUESSED,
        evidence=(*evidence, why),
    )


def _last_of(span: Span, late: Late) -> Iterator[str]:
    names = last_events(late.events, span.begin_ns, span.task.pid)
    if names:
        yield f"last events of {span.task.numbered}: {names}"
