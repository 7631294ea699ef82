"""
A time in which a thread was ready and its CPU did something else, and its segments.
Pure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from rtscope.explain.events.histories import Histories
from rtscope.explain.events.spans import Span
from rtscope.explain.events.threadstates import MachineTraits, StateInterval
from rtscope.explain.model import Cause, Confidence, Part, Segment
from rtscope.record.events.events import Event

_LISTED = 3
"""Last events of a task that are shown."""
STRAIGHT_NS = 50_000
"""From an interrupt's end to the switch no CPU that runs Linux takes so long, if
nothing is in the way: 1 to 20 us are usual."""
LONGEST_UNPROVEN_NS = 10_000_000
"""Nobody is believed to have had preemption off for longer without an event of it."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A time in which the thread was ready, and its CPU did something else."""

    expiry_ns: int
    pid: int
    """Of the thread."""
    facts: Histories
    """Priorities of the thread and of others, at each instant."""
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
    earlier: Sequence[Event] = ()
    """Events of this CPU before the window, that tell what was the case then."""

    def since(self, at_ns: int) -> str:
        """Write an instant in us since the expiry."""
        return f"{(at_ns - self.expiry_ns) / 1000:+,.3f} us"


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
    names = [called(e) for e in events if e.pid == pid and e.at_ns <= before_ns]
    if names:
        yield f"last events of {span.task.numbered}: {', '.join(names[-_LISTED:])}"
    length_ns, longest = longest_call(span, events)
    if longest is not None:
        parent = longest.text("parent")
        yield (
            f"the longest time without another call: {length_ns / 1000:,.3f} us, in "
            f"{called(longest)}{f', called by {parent}' if parent else ''}"
        )


def longest_call(span: Span, events: Sequence[Event]) -> tuple[int, Event | None]:
    """Return the call of a span behind which the longest time has no other, in ns."""
    calls = [
        event
        for event in events
        if event.name == "function"
        and event.text("function")
        and event.pid == span.task.pid
        and span.begin_ns <= event.at_ns < span.end_ns
    ]
    ends = (*(event.at_ns for event in calls[1:]), span.end_ns)
    best_ns, best = 0, None
    for event, end_ns in zip(calls, ends, strict=bool(calls)):
        if end_ns - event.at_ns > best_ns:
            best_ns, best = end_ns - event.at_ns, event
    return best_ns, best


def called(event: Event) -> str:
    """Return the name of an event, or the function of one that tells a call."""
    if event.name != "function":
        return event.name
    return event.text("function") or "a function"


def lost_segment(span: Span, expired: Expired, part: Part) -> Segment:
    """Return a segment of unknown cause."""
    loss = span.loss
    if loss is None:
        name = "the trace has no events of this time"
    else:
        number = "" if loss.count is None else f"{loss.count} "
        name = f"{number}events are missing: {loss.reason}"
    return segment_of(span, expired, part, Cause.UNKNOWN, name)
