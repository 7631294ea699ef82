"""
A thread that is ready and has to wait: what is known of that, and in which words. Pure.

Priorities are those of events: -1 deadline, 0 (FIFO 99) to 98 (FIFO 1) real-time, from
100 on not real-time. Lower is more urgent.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from rtscope.explain.events.spans import Span
from rtscope.explain.events.threadstates import Machine
from rtscope.explain.model import Cause, Confidence, Part, Stretch
from rtscope.ftrace.events import Event

NOT_REALTIME = 100
SHOWN = 3
"""Last events of a task that are told."""


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
    stack: Sequence[str]
    """The functions that this interrupt found, innermost first; may be empty."""
    interrupted_pid: int
    """The task it found; -1 if there was no interrupt."""
    machine: Machine


def last_events(events: Sequence[Event], before_ns: int, pid: int) -> str:
    """Name the last events of a task: `sys_enter, kmem_cache_alloc`; may be empty."""
    names = [e.name for e in events if e.pid == pid and e.at_ns <= before_ns]
    return ", ".join(names[-SHOWN:])


def priority_words(priority: int | None) -> str:
    """Write a priority of events as people set it."""
    if priority is None:
        return "of unknown priority"
    if priority < 0:
        return "SCHED_DEADLINE"
    if priority < NOT_REALTIME:
        return f"real-time, priority {99 - priority}"
    return f"not real-time, nice {priority - 120}"


class Expired(Protocol):
    """Something that is told from the expiry of a timer on."""

    @property
    def expiry_ns(self) -> int:
        """When the timer was due."""


def stretch_of(
    span: Span,
    expired: Expired,
    part: Part,
    cause: Cause,
    name: str,
    *,
    confidence: Confidence = Confidence.SEEN,
    evidence: tuple[str, ...] = (),
) -> Stretch:
    """Return the stretch of a span, its times since the expiry."""
    return Stretch(
        part,
        span.begin_ns - expired.expiry_ns,
        span.end_ns - expired.expiry_ns,
        cause,
        name,
        evidence=evidence,
        confidence=confidence,
    )


def last_of(span: Span, waiting: Waiting) -> Iterator[str]:
    """Tell the last events of a span's task."""
    names = last_events(waiting.events, span.begin_ns, span.task.pid)
    if names:
        yield f"last events of {span.task.numbered}: {names}"
