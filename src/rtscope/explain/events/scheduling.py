"""
Why a thread that was ready did not run: what the CPU it waited for did. Pure.

What interrupts and softirqs took is theirs. Of tasks, a more urgent one may run; a less
urgent one runs only where it could not be preempted, or because the scheduler chose it.

Priorities are those of events: -1 deadline, 0 (FIFO 99) to 98 (FIFO 1) real-time, from
100 on not real-time. Lower is more urgent.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from rtscope.explain.events.spans import AWAKE, Doing, Span, is_entry
from rtscope.explain.events.threadstates import MachineTraits, StateInterval
from rtscope.explain.model import Cause, Confidence, Part, Segment
from rtscope.record.events.events import Event, Flag

MAX_RT_PRIO = 100
STRAIGHT_NS = 50_000
"""From an interrupt's end to the switch no CPU that runs Linux takes so long, if
nothing is in the way: 1 to 20 us are usual."""
_LISTED = 3
"""Last events of a task that are shown."""
_FUNCTIONS = 6
_PERIOD_END_NS = 1_000_000
"""The timer that ends throttling expires just before the thread runs."""
_CPU_MAX = "cpu.max of its control group"
_QUOTA_TIMERS = frozenset({"sched_cfs_period_timer", "sched_cfs_slack_timer"})
_RECENT_NS = 10_000_000
"""Interrupts that began earlier are not of this wake-up."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A time in which the thread was ready, and its CPU did something else."""

    expiry_ns: int
    priority: int | None
    """Of the thread."""
    since_ns: int
    """When it became ready."""
    queued_ns: int
    """When it was in the CPU's queue: from then on the scheduler knew of it."""
    events: Sequence[Event]
    """Of this CPU."""
    waking_interrupt_ns: int | None
    """When the interrupt began that woke it."""
    waking_callback_ns: int | None
    """When the callback began that woke it."""
    stack: Sequence[str]
    """The functions that this interrupt found, innermost first; may be empty."""
    interrupted_pid: int
    """The task it found; -1 if there was no interrupt."""
    machine: MachineTraits


def priority_words(priority: int | None) -> str:
    """Write a priority of events as people set it."""
    if priority is None:
        return "of unknown priority"
    if priority < 0:
        return "SCHED_DEADLINE"
    if priority < MAX_RT_PRIO:
        return f"real-time, priority {99 - priority}"
    return f"not real-time, nice {priority - 120}"


class Expired(Protocol):
    """Something whose times count from the expiry of a timer."""

    @property
    def expiry_ns(self) -> int:
        """When the timer was due."""


def segment_of(
    timed: Span | StateInterval,
    expired: Expired,
    part: Part,
    cause: Cause,
    name: str,
    *evidence: str,
    confidence: Confidence = Confidence.SEEN,
) -> Segment:
    """Return a segment, its times since the expiry; an unknown cause is a guess."""
    return Segment(
        part,
        timed.begin_ns - expired.expiry_ns,
        timed.end_ns - expired.expiry_ns,
        cause,
        name,
        evidence=evidence,
        confidence=Confidence.GUESSED if cause is Cause.UNKNOWN else confidence,
    )


def last_of(span: Span, events: Sequence[Event]) -> Iterator[str]:
    """List the last events of a span's task: `sys_enter, kmem_cache_alloc`."""
    pid, before_ns = span.task.pid, span.begin_ns
    names = [e.name for e in events if e.pid == pid and e.at_ns <= before_ns]
    if names:
        yield f"last events of {span.task.numbered}: {', '.join(names[-_LISTED:])}"


def waiting_segments(spans: Sequence[Span], waiting: Waiting) -> Iterator[Segment]:
    """Return a cause for each span."""
    for span in spans:
        if span.doing is Doing.LOST:
            yield lost_segment(span, waiting, Part.D)
        elif span.doing in (Doing.INTERRUPT, Doing.CALLBACK):
            yield _in_interrupt(span, waiting)
        elif span.doing is Doing.SOFTIRQ:
            yield segment_of(span, waiting, Part.C, Cause.SOFTIRQ, span.name)
        elif span.doing is Doing.IDLE:
            yield _in_idle(span, waiting)
        else:
            yield _in_task(span, waiting)


def lost_segment(span: Span, expired: Expired, part: Part) -> Segment:
    """Return a segment of unknown cause."""
    loss = span.loss
    if loss is None:
        name = "the trace has no events of this time"
    else:
        number = "" if loss.count is None else f"{loss.count} "
        name = f"{number}events are missing: {loss.reason}"
    return segment_of(span, expired, part, Cause.UNKNOWN, name)


def _in_interrupt(span: Span, waiting: Waiting) -> Segment:
    outer = span.interrupt
    if span.doing is Doing.CALLBACK:
        if outer is None:  # a timer's callback in a softirq
            softirq = f"{span.frames[0].name}: {span.name}"
            return segment_of(span, waiting, Part.C, Cause.SOFTIRQ, softirq)
        if span.is_callback(waiting.waking_callback_ns):
            return segment_of(span, waiting, Part.B, Cause.TIMER_INTERRUPT, outer.name)
        expired = f"{span.count} expired one after another"
        cause = Cause.TIMER_CALLBACK
        return segment_of(span, waiting, Part.B, cause, span.name, expired)
    entered = None if outer is None else outer.entered_ns
    ours = entered is not None and entered == waiting.waking_interrupt_ns
    cause = Cause.TIMER_INTERRUPT if ours else Cause.OTHER_INTERRUPT
    return segment_of(span, waiting, Part.B, cause, span.name)


def _in_idle(span: Span, waiting: Waiting) -> Segment:
    chosen = _switched_to(span, waiting)
    quota = _quota_of(waiting.priority)
    if quota is not None and (chosen or _idles_on(span, waiting)):
        return _over_quota(span, waiting, quota)
    if chosen is not None:
        return _throttled(span, waiting, "the idle task", chosen)
    if span.name != "idle" and waiting.waking_interrupt_ns is None:
        return segment_of(span, waiting, Part.D, Cause.IDLE_EXIT, span.name)
    return _in_scheduler(span, waiting, "from idle to the thread")


def _in_scheduler(span: Span, waiting: Waiting, name: str) -> Segment:
    return segment_of(
        span, waiting, Part.D, Cause.SCHEDULER, name, confidence=Confidence.INFERRED
    )


def _in_task(span: Span, waiting: Waiting) -> Segment:
    task, ours = span.task, waiting.priority
    title, numbered = task.label, task.numbered
    label = f"{title} ({priority_words(task.priority)})"
    if ours is not None and ours >= MAX_RT_PRIO:
        why = (
            f"{numbered} ran: the thread is {priority_words(ours)}, and shares the CPU "
            "fairly"
        )
        ended = _quota_ended(span, waiting)
        evidence = (why, f"{ended}: a CPU quota may be why") if ended else (why,)
        return segment_of(span, waiting, Part.D, Cause.NOT_REALTIME, label, *evidence)
    if ours is None or task.priority is None:
        name = f"{title} ran, its priority is not in the trace"
        return segment_of(span, waiting, Part.D, Cause.UNKNOWN, name)
    if task.priority <= ours:
        why = (
            f"{numbered} is {priority_words(task.priority)}; the thread is "
            f"{priority_words(ours)}"
        )
        return segment_of(span, waiting, Part.D, Cause.OTHER_TASK, label, why)
    chosen = _switched_to(span, waiting) or _passed_over(span, waiting)
    if chosen is not None:
        return _throttled(span, waiting, label, chosen)
    return _not_preempted(span, waiting, label)


def _idles_on(span: Span, waiting: Waiting) -> bool:
    """Tell whether a CPU that is in an idle state entered it behind the wake-up."""
    last = None
    for event in waiting.events:
        if event.at_ns >= span.end_ns:
            break
        if event.name == "cpu_idle":
            last = event
    if last is None or last.numbers.get("state") == AWAKE:
        return False
    return last.at_ns > waiting.queued_ns


def _quota_of(priority: int | None) -> str | None:
    """Return what limits the time of a thread; None of a real-time one: throttling."""
    if priority is None or 0 <= priority < MAX_RT_PRIO:
        return None
    return "its runtime (sched_setattr)" if priority < 0 else _CPU_MAX


def _over_quota(span: Span, waiting: Waiting, quota: str) -> Segment:
    """Explain an idle CPU beside a thread that is ready: it may not run."""
    evidence = [
        f"the thread was ready ({priority_words(waiting.priority)}), and the CPU idle: "
        f"only {quota} does that"
    ]
    ended = _quota_ended(span, waiting)
    return segment_of(
        *(span, waiting, Part.D, Cause.CPU_QUOTA, quota),
        *(*evidence, *([ended] if ended else [])),
        confidence=Confidence.INFERRED,
    )


def _quota_ended(span: Span, waiting: Waiting) -> str | None:
    """Return the timer that gives groups their time again, if it expired at the end."""
    until = span.end_ns + _PERIOD_END_NS
    for event in waiting.events:
        timer = event.text("function").partition("/")[0]
        if event.name != "hrtimer_expire_entry" or timer not in _QUOTA_TIMERS:
            continue
        if max(span.begin_ns, waiting.since_ns) <= event.at_ns < until:
            at = (event.at_ns - waiting.expiry_ns) / 1000
            return f"{timer}, which ends throttled time, expired at {at:+,.3f} us"
    return None


def _throttled(span: Span, waiting: Waiting, label: str, why: str) -> Segment:
    cause, limit, sure = _which_limit(span, waiting)
    ready = f"the thread was ready ({priority_words(waiting.priority)}); {why}"
    return segment_of(
        span, waiting, Part.D, cause, label, ready, limit, confidence=sure
    )


def _which_limit(span: Span, waiting: Waiting) -> tuple[Cause, str, Confidence]:
    """Distinguish throttling and fair server by timers or the kernel's version."""
    until = span.end_ns + _PERIOD_END_NS
    timers = {
        event.text("function").partition("/")[0]
        for event in waiting.events
        if event.name == "hrtimer_expire_entry"
        and waiting.since_ns <= event.at_ns < until
    }
    if span.task.pid == 0:
        why = "the CPU was idle instead: only throttling does that"
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
    why = "guessed: throttling before Linux 6.12, the fair server since then"
    return Cause.THROTTLED, why, Confidence.GUESSED


def _switched_to(span: Span, waiting: Waiting) -> str | None:
    """Return how the scheduler chose a task of lower priority before the thread."""
    for event in waiting.events:
        if event.name != "sched_switch" or event.at_ns <= waiting.queued_ns:
            continue
        if event.at_ns > span.begin_ns:
            return None
        at_begin = event.at_ns == span.begin_ns
        if at_begin and event.numbers.get("next_pid") == span.task.pid:
            late_ns = event.at_ns - waiting.since_ns
            return f"{late_ns} ns later the scheduler switched to a lower priority task"
    return None


def _passed_over(span: Span, waiting: Waiting) -> str | None:
    """Return how the scheduler let a task of lower priority continue.

    It clears need_resched when it runs: an event of the task without it, while the
    thread is ready, shows that the task was preferred.
    """
    is_due = False
    for event in waiting.events:
        if event.flags is None or event.pid != span.task.pid:
            continue
        if event.at_ns <= waiting.queued_ns:
            continue
        if event.at_ns > span.end_ns:
            return None
        if event.flags & Flag.NEED_RESCHED:
            is_due = True
        elif is_due and event.name != "sched_switch":
            at = (event.at_ns - waiting.expiry_ns) / 1000
            return (
                f"need_resched was set and cleared by +{at:,.3f} us ({event.name}): "
                "the scheduler let a lower priority task continue"
            )
    return None


def _not_preempted(span: Span, waiting: Waiting, label: str) -> Segment:
    """Explain why a task of lower priority was not preempted."""
    interrupted = tuple(_interrupted_in(span, waiting))
    last = tuple(last_of(span, waiting.events))
    off = _switched_off_by(span, waiting)
    if off is not None:
        confidence, why = off
        reasons = (why, *interrupted)
        return _preemption_off(
            span, waiting, label, *reasons, confidence=confidence, proven=True
        )
    requests = [
        e
        for e in waiting.events
        if span.begin_ns < e.at_ns < span.end_ns
        and e.pid == span.task.pid
        and e.flags is not None
        and e.flags & Flag.NEED_RESCHED
    ]
    if span.end_ns - span.begin_ns <= STRAIGHT_NS:
        return _in_scheduler(span, waiting, f"from {span.task.label} to the thread")
    if requests:
        why = (
            f"need_resched was set, and {span.task.numbered} continued "
            f"({', '.join(dict.fromkeys(e.name for e in requests[-_LISTED:]))})"
        )
        return _preemption_off(span, waiting, label, why, *interrupted, *last)
    went_on = _went_on_after(span, waiting)
    if went_on is not None:
        return _preemption_off(span, waiting, label, went_on, *interrupted)
    if waiting.machine.preemptible is False:
        why = "this kernel does not preempt its own code: a system call continues"
        if not waiting.machine.guest:
            return _preemption_off(span, waiting, label, why, *interrupted, *last)
        guess = "guessed: in a guest, a delay by the hypervisor looks the same"
        evidence, sure = (why, guess, *interrupted, *last), Confidence.GUESSED
        return _preemption_off(span, waiting, label, *evidence, confidence=sure)
    name = f"preemption off in {span.task.label}, or the hypervisor or hardware"
    why = "no event of this time shows which"
    return segment_of(span, waiting, Part.C, Cause.UNKNOWN, name, why, *last)


def _preemption_off(
    span: Span,
    waiting: Waiting,
    label: str,
    *evidence: str,
    confidence: Confidence = Confidence.INFERRED,
    proven: bool = False,
) -> Segment:
    """Blame a task that was not preempted; `proven`: it had turned preemption off."""
    is_off = proven or waiting.machine.preemptible is not False
    cause = Cause.PREEMPTION_OFF if is_off else Cause.NOT_PREEMPTED
    return segment_of(
        span, waiting, Part.C, cause, label, *evidence, confidence=confidence
    )


def _switched_off_by(span: Span, waiting: Waiting) -> tuple[Confidence, str] | None:
    """Return the evidence that preemption was off, and its confidence.

    Events of interrupts have the preemption depth of the task that they interrupted.
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
        return Confidence.SEEN, _depth_evidence(after, label, waiting)
    if before and latest is before[-1]:
        return Confidence.SEEN, _depth_evidence(before[-1], label, waiting)
    return None


def _latest_entry(span: Span, waiting: Waiting) -> Event | None:
    """Return the last interrupt that came before the span."""
    latest = None
    for event in waiting.events:
        if event.at_ns > span.begin_ns:
            break
        if is_entry(event):
            latest = event
    return latest


def _depth_evidence(event: Event, label: str, waiting: Waiting) -> str:
    at = (event.at_ns - waiting.expiry_ns) / 1000
    return (
        f"{label} had preemption off when {event.name.removesuffix('_entry')} "
        f"interrupted it at {at:+,.3f} us (depth {event.preempt_depth})"
    )


def _toggled_off(span: Span, waiting: Waiting) -> str | None:
    """Return the function that disabled preemption, by preemptirq events."""
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
    """Return the interrupt that found need_resched set, and did not preempt.

    At the end of an interrupt the kernel calls the scheduler at once, if it may: a task
    that continues after that has preemption off, whatever a hypervisor does.
    """
    latest = _latest_entry(span, waiting)
    if latest is None or latest.at_ns <= waiting.queued_ns:
        return None
    if latest.flags is None or not latest.flags & Flag.NEED_RESCHED:
        return None
    at = (latest.at_ns - waiting.expiry_ns) / 1000
    return (
        f"need_resched was set when {latest.name.removesuffix('_entry')} came at "
        f"{at:+,.3f} us, and {span.task.numbered} continued after it"
    )


def _interrupted_in(span: Span, waiting: Waiting) -> Iterator[str]:
    """Show where the timer's interrupt found the task, if a stack was recorded."""
    if waiting.stack and span.task.pid == waiting.interrupted_pid:
        chain = " < ".join(waiting.stack[:_FUNCTIONS])
        yield f"the timer interrupt found it in {chain}"
