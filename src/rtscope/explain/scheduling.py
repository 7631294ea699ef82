"""
Why a thread that was ready did not run: what the CPU it waited for did. Pure.

Priorities are those of events: -1 deadline, 0 (FIFO 99) to 98 (FIFO 1) real-time, from
100 on not real-time. Lower is more urgent.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rtscope.explain.model import Cause, Confidence, Part, Stretch
from rtscope.explain.spans import Doing, Span, callbacks_together
from rtscope.explain.threadway import Machine
from rtscope.ftrace.events import Event, Flag

NOT_REALTIME = 100
STRAIGHT_NS = 50_000
"""From an interrupt's end to the switch no CPU that runs Linux takes so long, if
nothing is in the way: 1 to 20 us are usual."""
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Waiting:
    """A time in which the thread was ready, and its CPU did something else."""

    expiry_ns: int
    cpu: int
    pid: int
    priority: int | None
    """Of the thread."""
    since_ns: int
    """When it became ready."""
    queued_ns: int
    """When it was in the CPU's queue: from then on the scheduler knew of it."""
    events: Sequence[Event]
    """Of this CPU."""
    own_interrupt_ns: int | None
    """When the interrupt began that woke it."""
    own_callback_ns: int | None
    """When the callback began that woke it."""
    machine: Machine


def waiting_stretches(spans: Sequence[Span], waiting: Waiting) -> Iterator[Stretch]:
    """Return a cause for each span."""
    for span in _own_apart(spans, waiting):
        if span.doing is Doing.LOST:
            yield lost_stretch(span, waiting.expiry_ns, Part.D)
        elif span.doing in (Doing.INTERRUPT, Doing.CALLBACK):
            yield _in_interrupt(span, waiting)
        elif span.doing is Doing.SOFTIRQ:
            yield _stretch(span, waiting, Part.C, Cause.SOFTIRQ, span.name)
        elif span.doing is Doing.IDLE:
            yield _in_idle(span, waiting)
        else:
            yield _in_task(span, waiting)


def _own_apart(spans: Sequence[Span], waiting: Waiting) -> Iterator[Span]:
    """Join callbacks of other timers, and leave the thread's own as it is."""
    others: list[Span] = []
    for span in spans:
        if span.doing is Doing.CALLBACK and _is_own(span, waiting):
            yield from callbacks_together(others)
            yield span
            others = []
        else:
            others.append(span)
    yield from callbacks_together(others)


def _is_own(span: Span, waiting: Waiting) -> bool:
    entered = span.frames[-1].entered_ns
    return entered is not None and entered == waiting.own_callback_ns


def lost_stretch(span: Span, expiry_ns: int, part: Part) -> Stretch:
    """Return a stretch of which nothing is known."""
    loss = span.loss
    if loss is None:
        name = "the trace has no events of that time"
    else:
        number = "" if loss.count is None else f"{loss.count} "
        name = f"{number}events are missing: {loss.reason}"
    return Stretch(
        part,
        span.begin_ns - expiry_ns,
        span.end_ns - expiry_ns,
        Cause.UNKNOWN,
        name,
        confidence=Confidence.GUESSED,
    )


def last_events(events: Sequence[Event], before_ns: int, pid: int) -> str:
    """Name the last events of a task: `sys_enter, kmem_cache_alloc`; may be empty."""
    names = [e.name for e in events if e.pid == pid and e.at_ns <= before_ns]
    return ", ".join(names[-_SHOWN:])


def priority_words(priority: int | None) -> str:
    """Write a priority of events as people set it."""
    if priority is None:
        return "of unknown priority"
    if priority < 0:
        return "SCHED_DEADLINE"
    if priority < NOT_REALTIME:
        return f"real-time, priority {99 - priority}"
    return f"not real-time, nice {priority - 120}"


def _stretch(
    span: Span,
    waiting: Waiting,
    part: Part,
    cause: Cause,
    name: str,
    *,
    confidence: Confidence = Confidence.SEEN,
    evidence: tuple[str, ...] = (),
) -> Stretch:
    return Stretch(
        part,
        span.begin_ns - waiting.expiry_ns,
        span.end_ns - waiting.expiry_ns,
        cause,
        name,
        evidence=evidence,
        confidence=confidence,
    )


def _in_interrupt(span: Span, waiting: Waiting) -> Stretch:
    outer = span.interrupt
    ours = (
        outer is not None
        and outer.entered_ns is not None
        and outer.entered_ns == waiting.own_interrupt_ns
    )
    if span.doing is Doing.CALLBACK:
        if outer is None:  # a timer's callback in a softirq
            softirq = f"{span.frames[0].name}: {span.name}"
            return _stretch(span, waiting, Part.C, Cause.SOFTIRQ, softirq)
        if _is_own(span, waiting):
            return _stretch(span, waiting, Part.B, Cause.TIMER_INTERRUPT, outer.name)
        return _stretch(
            span,
            waiting,
            Part.B,
            Cause.TIMER_CALLBACK,
            span.name,
            evidence=(f"{span.count} expired one after another",),
        )
    cause = Cause.TIMER_INTERRUPT if ours else Cause.OTHER_INTERRUPT
    return _stretch(span, waiting, Part.B, cause, span.name)


def _in_idle(span: Span, waiting: Waiting) -> Stretch:
    chosen = _switched_to(span, waiting)
    if chosen is not None:
        return _throttled(span, waiting, "the idle task", chosen)
    if span.name != "idle" and waiting.own_interrupt_ns is None:
        return _stretch(span, waiting, Part.D, Cause.IDLE_EXIT, span.name)
    return _stretch(
        span,
        waiting,
        Part.D,
        Cause.SCHEDULER,
        "from idle to the thread",
        confidence=Confidence.INFERRED,
    )


def _in_task(span: Span, waiting: Waiting) -> Stretch:
    task, ours = span.task, waiting.priority
    label = f"{task.label} ({priority_words(task.priority)})"
    if ours is not None and ours >= NOT_REALTIME:
        why = f"the thread is {priority_words(ours)}: it has to wait for its turn"
        return _stretch(span, waiting, Part.D, Cause.OTHER_TASK, label, evidence=(why,))
    if ours is None or task.priority is None:
        return _unknown_priority(span, waiting)
    if task.priority <= ours:
        why = (
            f"it is {priority_words(task.priority)}; the thread {priority_words(ours)}"
        )
        return _stretch(span, waiting, Part.D, Cause.OTHER_TASK, label, evidence=(why,))
    chosen = _switched_to(span, waiting) or _passed_over(span, waiting)
    if chosen is not None:
        return _throttled(span, waiting, label, chosen)
    return _not_preempted(span, waiting, label)


def _unknown_priority(span: Span, waiting: Waiting) -> Stretch:
    return _stretch(
        span,
        waiting,
        Part.D,
        Cause.UNKNOWN,
        f"{span.task.label} ran, and the trace does not tell its priority",
        confidence=Confidence.GUESSED,
    )


def _throttled(span: Span, waiting: Waiting, label: str, why: str) -> Stretch:
    return _stretch(
        span,
        waiting,
        Part.D,
        Cause.THROTTLED,
        label,
        confidence=Confidence.INFERRED,
        evidence=(
            f"the thread was ready ({priority_words(waiting.priority)}), and {why}",
        ),
    )


def _switched_to(span: Span, waiting: Waiting) -> str | None:
    """Say if the scheduler chose a less urgent task while it knew of the thread."""
    for event in waiting.events:
        if event.name != "sched_switch" or event.at_ns <= waiting.queued_ns:
            continue
        if event.at_ns > span.begin_ns:
            return None
        if event.number("next_pid") == span.task.pid and event.at_ns == span.begin_ns:
            late_ns = event.at_ns - waiting.since_ns
            return f"{late_ns} ns later the scheduler switched to a less urgent task"
    return None


def _passed_over(span: Span, waiting: Waiting) -> str | None:
    """Say if the scheduler looked, and let a less urgent task go on.

    It takes need_resched away when it looks: an event of the task that has it no more,
    while the thread is ready, shows that another was preferred.
    """
    asked = False
    for event in waiting.events:
        if event.flags is None or event.pid != span.task.pid:
            continue
        if event.at_ns <= waiting.queued_ns:
            continue
        if event.at_ns >= span.end_ns:
            return None
        if event.flags & Flag.NEED_RESCHED:
            asked = True
        elif asked and event.name != "sched_switch":
            at = (event.at_ns - waiting.expiry_ns) / 1000
            return (
                f"need_resched was set, and no longer at +{at:,.3f} us ({event.name}): "
                "the scheduler let a less urgent task go on"
            )
    return None


def _not_preempted(span: Span, waiting: Waiting, label: str) -> Stretch:
    off = _switched_off_by(span, waiting)
    if off is not None:
        name, why = off
        return _stretch(
            span, waiting, Part.C, Cause.PREEMPTION_OFF, name or label, evidence=(why,)
        )
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
            f"need_resched was set, and {span.task.label} went on "
            f"({', '.join(dict.fromkeys(e.name for e in asked[-_SHOWN:]))})"
        )
        return _stretch(
            span,
            waiting,
            Part.C,
            Cause.PREEMPTION_OFF,
            label,
            confidence=Confidence.INFERRED,
            evidence=(why, *_last_of(span, waiting)),
        )
    if short:
        return _stretch(
            span,
            waiting,
            Part.D,
            Cause.SCHEDULER,
            f"from {span.task.label} to the thread",
            confidence=Confidence.INFERRED,
        )
    if waiting.machine.preemptible is False:
        return _in_kernel(span, waiting, label)
    return _stretch(
        span,
        waiting,
        Part.C,
        Cause.UNKNOWN,
        f"preemption off in {span.task.label}, or the hypervisor or hardware",
        confidence=Confidence.GUESSED,
        evidence=("no event of that time tells which", *_last_of(span, waiting)),
    )


def _in_kernel(span: Span, waiting: Waiting, label: str) -> Stretch:
    """Blame the kernel's own code, which this kernel does not preempt."""
    evidence = ["this kernel does not preempt its own code: a system call goes on"]
    if waiting.machine.guest:
        evidence.append("guessed: in a guest, the hypervisor would look the same")
    return _stretch(
        span,
        waiting,
        Part.C,
        Cause.PREEMPTION_OFF,
        label,
        confidence=Confidence.GUESSED if waiting.machine.guest else Confidence.INFERRED,
        evidence=(*evidence, *_last_of(span, waiting)),
    )


def _switched_off_by(span: Span, waiting: Waiting) -> tuple[str, str] | None:
    """Return who had preemption off when the thread was woken, and what shows it."""
    off: Event | None = None
    for event in waiting.events:
        if event.at_ns >= span.end_ns:
            break
        if event.name == "preempt_disable":
            off = event
        elif event.name == "preempt_enable" and event.at_ns <= waiting.since_ns:
            off = None
    if off is not None and off.text("caller"):
        return off.text("caller"), f"preempt_disable by {off.text('caller')}"
    entered = waiting.own_interrupt_ns
    for event in waiting.events:
        if event.at_ns != entered or not event.preempt_depth:
            continue
        return "", (
            f"{span.task.label} had preemption off when the interrupt came "
            f"(depth {event.preempt_depth} in {event.name})"
        )
    return None


def _last_of(span: Span, waiting: Waiting) -> Iterator[str]:
    names = last_events(waiting.events, span.begin_ns, span.task.pid)
    if names:
        yield f"last events of {span.task.label}: {names}"
