"""
Why a thread that was ready did not run: what the CPU it waited for did. Pure.

What interrupts and softirqs took is theirs. Of tasks, a more urgent one may run; a less
urgent one runs only where it could not be preempted, or because the scheduler chose it.
"""

from collections.abc import Iterator, Sequence

from rtscope.explain.events.preemption import not_preempted
from rtscope.explain.events.spans import Doing, Span, callbacks_together
from rtscope.explain.events.waiting import (
    NOT_REALTIME,
    Waiting,
    priority_words,
    stretch_of,
)
from rtscope.explain.model import Cause, Confidence, Part, Stretch
from rtscope.ftrace.events import Flag

_PERIOD_END_NS = 1_000_000
"""What ends throttling expires just before the thread runs."""


def waiting_stretches(spans: Sequence[Span], waiting: Waiting) -> Iterator[Stretch]:
    """Return a cause for each span."""
    for span in _own_apart(spans, waiting):
        if span.doing is Doing.LOST:
            yield lost_stretch(span, waiting.expiry_ns, Part.D)
        elif span.doing in (Doing.INTERRUPT, Doing.CALLBACK):
            yield _in_interrupt(span, waiting)
        elif span.doing is Doing.SOFTIRQ:
            yield stretch_of(span, waiting, Part.C, Cause.SOFTIRQ, span.name)
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
            return stretch_of(span, waiting, Part.C, Cause.SOFTIRQ, softirq)
        if _is_own(span, waiting):
            return stretch_of(span, waiting, Part.B, Cause.TIMER_INTERRUPT, outer.name)
        return stretch_of(
            span,
            waiting,
            Part.B,
            Cause.TIMER_CALLBACK,
            span.name,
            evidence=(f"{span.count} expired one after another",),
        )
    cause = Cause.TIMER_INTERRUPT if ours else Cause.OTHER_INTERRUPT
    return stretch_of(span, waiting, Part.B, cause, span.name)


def _in_idle(span: Span, waiting: Waiting) -> Stretch:
    chosen = _switched_to(span, waiting)
    if chosen is not None:
        return _throttled(span, waiting, "the idle task", chosen)
    if span.name != "idle" and waiting.own_interrupt_ns is None:
        return stretch_of(span, waiting, Part.D, Cause.IDLE_EXIT, span.name)
    return stretch_of(
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
        why = (
            f"{task.numbered} ran: the thread is {priority_words(ours)}, and waits for "
            "its turn"
        )
        return stretch_of(
            span, waiting, Part.D, Cause.NOT_REALTIME, label, evidence=(why,)
        )
    if ours is None or task.priority is None:
        return _unknown_priority(span, waiting)
    if task.priority <= ours:
        why = (
            f"{task.numbered} is {priority_words(task.priority)}; the thread "
            f"{priority_words(ours)}"
        )
        return stretch_of(
            span, waiting, Part.D, Cause.OTHER_TASK, label, evidence=(why,)
        )
    chosen = _switched_to(span, waiting) or _passed_over(span, waiting)
    if chosen is not None:
        return _throttled(span, waiting, label, chosen)
    return not_preempted(span, waiting, label)


def _unknown_priority(span: Span, waiting: Waiting) -> Stretch:
    return stretch_of(
        span,
        waiting,
        Part.D,
        Cause.UNKNOWN,
        f"{span.task.label} ran, and the trace does not tell its priority",
        confidence=Confidence.GUESSED,
    )


def _throttled(span: Span, waiting: Waiting, label: str, why: str) -> Stretch:
    cause, what, confidence = _which_limit(span, waiting)
    ready = f"the thread was ready ({priority_words(waiting.priority)}), and {why}"
    return stretch_of(
        span,
        waiting,
        Part.D,
        cause,
        label,
        confidence=confidence,
        evidence=(ready, what),
    )


def _which_limit(span: Span, waiting: Waiting) -> tuple[Cause, str, Confidence]:
    """Tell throttling from the fair server: their timers, or the kernel's version."""
    until = span.end_ns + _PERIOD_END_NS
    timers = {
        event.text("function").partition("/")[0]
        for event in waiting.events
        if event.name == "hrtimer_expire_entry"
        and waiting.since_ns <= event.at_ns < until
    }
    if span.task.pid == 0:
        why = "the CPU was idle instead, as only throttling has it"
        return Cause.THROTTLED, why, Confidence.INFERRED
    if "sched_rt_period_timer" in timers:
        why = "sched_rt_period_timer, which ends throttling, expired then"
        return Cause.THROTTLED, why, Confidence.INFERRED
    release = waiting.machine.release
    if release is not None and release >= (6, 12):
        why = "this kernel has a fair server, which runs tasks that are not real-time"
        return Cause.FAIR_SERVER, why, Confidence.INFERRED
    if release is not None:
        why = "this kernel throttles real-time threads"
        return Cause.THROTTLED, why, Confidence.INFERRED
    why = "guessed: throttling before Linux 6.12, since then the fair server"
    return Cause.THROTTLED, why, Confidence.GUESSED


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
        if event.at_ns > span.end_ns:
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
