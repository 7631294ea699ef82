"""
Why a thread that was ready did not run: what the CPU it waited for did. Pure.

What interrupts and softirqs took is theirs. Of tasks, a more urgent one may run; a less
urgent one runs only where it could not be preempted, or because the scheduler chose it.

Priorities are those at that time (`histories.py`); lower is more urgent.

A thread that waits for a lock of that kind lends its priority to the holder, and to
all that the holder itself waits for: each has an event, which the waiting thread
writes.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rtscope.explain.events.eventlists import is_behind
from rtscope.explain.events.histories import (
    MAX_RT_PRIO,
    PI_SETPRIO,
    Histories,
    Priority,
    priority_words,
)
from rtscope.explain.events.limits import (
    is_due,
    limit_in_idle,
    limit_in_task,
    quota_ended,
)
from rtscope.explain.events.spans import BEFORE_ALL_NS, Doing, Span, is_entry
from rtscope.explain.events.threadstates import (
    LONGEST_UNPROVEN_NS,
    STRAIGHT_NS,
    Waiting,
    called,
    last_of,
    longest_call,
    lost_segment,
    segment_of,
)
from rtscope.explain.instructions.calls import shortened
from rtscope.explain.model import Cause, Confidence, Part, Segment
from rtscope.host.units import NS_PER_MS
from rtscope.record.events.events import Event, Flag

# --- who lent a priority to whom: the evidence of priority inheritance ----------------


def lending_evidence(
    priority: Priority, facts: Histories, *, expiry_ns: int
) -> Iterator[str]:
    """Say who lent a priority that was inherited."""
    for raised in priority.raised[-_LISTED:]:
        yield lent_words(raised, facts, expiry_ns=expiry_ns)
    taken = priority.until
    if not priority.raised and taken is not None and taken.name == PI_SETPRIO:
        old = priority_words(taken.numbers.get("oldprio"))
        new = priority_words(taken.numbers.get("newprio"))
        yield (
            f"sched_pi_setprio took it away at {_since(taken, expiry_ns)}: from {old} "
            f"to {new}; who lent it was not recorded"
        )


def lent_words(raised: Event, facts: Histories, *, expiry_ns: int) -> str:
    """Write an event that raised a priority, and who lent it."""
    comm, pid = raised.text("comm"), raised.numbers.get("pid")
    old = priority_words(raised.numbers.get("oldprio"))
    new = priority_words(raised.numbers.get("newprio"))
    told = (
        f"sched_pi_setprio at {_since(raised, expiry_ns)}: {comm}-{pid} from {old} to "
        f"{new}"
    )
    if raised.pid in (-1, pid):
        return told
    lender = f"{raised.comm or '<...>'}-{raised.pid}"
    over = [
        f"{one.text('comm')}-{one.numbers.get('pid')}"
        for one in facts.along_the_chain(raised)
    ]
    if not over:
        return f"{told}; {lender} waits for its lock"
    return f"{told}; {lender} waits for a lock in a chain with {' and '.join(over)}"


def _since(event: Event, expiry_ns: int) -> str:
    return f"{(event.at_ns - expiry_ns) / 1000:+,.3f} us"


# --- why a thread that was ready did not run: what the CPU it waited for did ----------

_LISTED = 3
"""Last events of a task that are shown."""
_FUNCTIONS = 6
_RECENT_NS = 10_000_000
"""Interrupts that began earlier are not of this wake-up."""


def waiting_segments(spans: Sequence[Span], waiting: Waiting) -> Iterator[Segment]:
    """Return a cause for each span; those of tasks end where a priority changes."""
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
            yield from _in_task(span, waiting)


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
    entered = BEFORE_ALL_NS if entered is None else entered
    ours = outer is not None and entered == waiting.waking_interrupt_ns
    cause = Cause.TIMER_INTERRUPT if ours else Cause.OTHER_INTERRUPT
    return segment_of(span, waiting, Part.B, cause, span.name)


def _in_idle(span: Span, waiting: Waiting) -> Segment:
    limited = limit_in_idle(span, waiting)
    if limited is not None:
        return limited
    if span.name != "idle" and waiting.waking_interrupt_ns is None:
        return segment_of(span, waiting, Part.D, Cause.IDLE_EXIT, span.name)
    return _in_scheduler(span, waiting, "from idle to the thread")


def _in_scheduler(span: Span, waiting: Waiting, name: str) -> Segment:
    return segment_of(
        span, waiting, Part.D, Cause.SCHEDULER, name, confidence=Confidence.INFERRED
    )


def _in_task(whole: Span, waiting: Waiting) -> Iterator[Segment]:
    """Explain the time of a task, each piece by what both priorities were in it."""
    task, facts = whole.task, waiting.facts
    pieces = facts.both(task.pid, waiting.pid, whole.begin_ns, whole.end_ns)
    for begin_ns, end_ns, theirs, ours in pieces:
        span = replace(whole, begin_ns=begin_ns, end_ns=end_ns)
        label, own = f"{task.label} ({theirs.words})", ours.words
        if ours.values and min(ours.values) >= MAX_RT_PRIO:
            yield _shared(span, waiting, label, own)
            continue
        if not ours.values or not theirs.values:
            name = f"{task.label} ran, its priority is not in the trace"
            yield segment_of(span, waiting, Part.D, Cause.UNKNOWN, name)
            continue
        why = f"{task.numbered} is {theirs.words}; the thread is {own}"
        later = facts.name(task.pid, whole.end_ns)
        if later not in (task.comm, ""):
            why = f"{why}; at the end of its run it was called {later}"
        elif later := facts.later_name(task.pid, whole.end_ns):
            why = f"{why}; later it was called {later}"
        if max(theirs.values) <= min(ours.values):
            lent: Iterable[str] = ()
            if theirs.inherited:
                lent = lending_evidence(theirs, facts, expiry_ns=waiting.expiry_ns)
            cause = Cause.OTHER_TASK
            yield segment_of(span, waiting, Part.D, cause, label, why, *lent)
        elif min(theirs.values) > max(ours.values) or _switched_off_by(span, waiting):
            limited = limit_in_task(span, waiting, label)
            yield limited or _not_preempted(span, waiting, label)
        else:
            yield _changed(span, waiting, label, why)


def _shared(span: Span, waiting: Waiting, label: str, own: str) -> Segment:
    """Explain a task beside a thread that is not real-time."""
    why = f"{span.task.numbered} ran: the thread is {own}, and shares the CPU fairly"
    ended = quota_ended(span, waiting)
    evidence = (why, f"{ended}: a CPU quota may be why") if ended else (why,)
    return segment_of(span, waiting, Part.D, Cause.NOT_REALTIME, label, *evidence)


def _changed(span: Span, waiting: Waiting, label: str, why: str) -> Segment:
    """Blame a task that may have been more urgent: it, or the thread, changed."""
    theirs = waiting.facts.at(span.task.pid, span.begin_ns)
    ours = waiting.facts.at(waiting.pid, span.begin_ns)
    numbered = span.task.numbered
    bounds = (
        *_bounds_of_change(theirs, numbered, waiting),
        *_bounds_of_change(ours, "the thread", waiting),
    )
    kept = f"{numbered} kept the CPU, so it went before the thread"
    ordinary = ours.values[0] >= MAX_RT_PRIO
    return segment_of(
        *(span, waiting, Part.D),
        Cause.NOT_REALTIME if ordinary else Cause.OTHER_TASK,
        *(label, why, *bounds, kept),
        confidence=Confidence.INFERRED,
    )


def _bounds_of_change(priority: Priority, who: str, waiting: Waiting) -> Iterator[str]:
    """Say between which events a priority changed, if none tells when."""
    since, until = priority.since, priority.until
    if len(priority.values) == 2 and since is not None and until is not None:
        old, new = map(priority_words, priority.values)
        yield (
            f"{who} changed from {old} to {new} between {waiting.since(since.at_ns)} "
            f"and {waiting.since(until.at_ns)}: no event says when"
        )


def _not_preempted(span: Span, waiting: Waiting, label: str) -> Segment:
    """Explain why a task of lower priority was not preempted."""
    interrupted = tuple(_interrupted_in(span, waiting))
    called_ns, call = longest_call(span, waiting.events)
    if call is not None and 2 * called_ns >= span.end_ns - span.begin_ns:
        label = f"{label}, in {called(call)}"
    last = tuple(last_of(span, waiting.events))
    off = _switched_off_by(span, waiting)
    if off is not None:
        confidence, why = off
        reasons = (why, *interrupted)
        return _preemption_off(
            span, waiting, label, *reasons, confidence=confidence, proven=True
        )
    due = waiting.events.of_task(span.task.pid).of_kind("due", is_due)
    requests = due[due.until(span.begin_ns) : due.before(span.end_ns)]
    if span.end_ns - span.begin_ns <= STRAIGHT_NS:
        return _in_scheduler(span, waiting, f"from {span.task.label} to the thread")
    silent_ns = span.end_ns - _last_request(span, waiting)
    if silent_ns > LONGEST_UNPROVEN_NS and waiting.machine.preemptible is not False:
        name = f"{label} kept the CPU, and nothing shows why"
        why = (
            f"the thread was ready; that preemption was off for "
            f"{silent_ns / NS_PER_MS:,.1f} ms would show"
        )
        evidence = why, *interrupted, *last
        return segment_of(span, waiting, Part.D, Cause.UNKNOWN, name, *evidence)
    if requests:
        why = (
            f"need_resched was set, and {span.task.numbered} continued "
            f"({', '.join(dict.fromkeys(called(e) for e in requests[-_LISTED:]))})"
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
    ours = waiting.facts.at(waiting.pid, span.begin_ns).urgent
    if ours is not None and ours < 0:
        name = f"the thread's own runtime used up, {name}"
    why = "no event of this time shows which"
    evidence = why, *interrupted, *last
    return segment_of(span, waiting, Part.C, Cause.UNKNOWN, name, *evidence)


def _last_request(span: Span, waiting: Waiting) -> int:
    """Return when the scheduler was last seen to be due: it had not run until then."""
    due = waiting.events.of_task(span.task.pid).of_kind("due", is_due)
    last = due.last_until(span.end_ns)
    return waiting.queued_ns if last is None else max(waiting.queued_ns, last.at_ns)


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
    entries = waiting.events.of_task(span.task.pid).of_kind("deep", _is_deep_entry)
    recent_ns = waiting.since_ns - _RECENT_NS
    after = entries.first_from(span.end_ns)
    if after is not None and recent_ns <= after.at_ns == span.end_ns:
        return Confidence.SEEN, _depth_evidence(after, label, waiting)
    latest = _latest_entry(span, waiting)
    before = entries.last_until(span.begin_ns)
    if before is not None and latest is before and recent_ns <= before.at_ns:
        return Confidence.SEEN, _depth_evidence(before, label, waiting)
    return None


def _is_deep_entry(event: Event) -> bool:
    """Tell whether an interrupt found preemption switched off."""
    return is_entry(event) and bool(event.preempt_depth)


def _latest_entry(span: Span, waiting: Waiting) -> Event | None:
    """Return the last interrupt that came before the span."""
    return waiting.events.of_kind("entry", is_entry).last_until(span.begin_ns)


def _depth_evidence(event: Event, label: str, waiting: Waiting) -> str:
    at = (event.at_ns - waiting.expiry_ns) / 1000
    return (
        f"{label} had preemption off when {event.name.removesuffix('_entry')} "
        f"interrupted it at {at:+,.3f} us (depth {event.preempt_depth})"
    )


def _toggled_off(span: Span, waiting: Waiting) -> str | None:
    """Return the function that disabled preemption, by preemptirq events."""
    off = waiting.events.named("preempt_disable")
    on = waiting.events.named("preempt_enable")
    end, on_end = off.before(span.end_ns), on.until(span.begin_ns)
    if not is_behind(off, end, on, on_end):
        return None
    return off[end - 1].text("caller") or "an unknown function"


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
        chain = shortened(waiting.stack, shown=_FUNCTIONS)
        yield f"the timer interrupt found it in {chain}"
