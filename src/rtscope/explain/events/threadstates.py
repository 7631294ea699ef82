"""
The states of a thread from the expiry of its timer to its own code. Pure.

A thread sleeps, is stopped, waits for a CPU or runs; every change is an event.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from rtscope.explain.events.eventlists import EventList
from rtscope.explain.events.histories import Histories
from rtscope.explain.events.spans import Span
from rtscope.explain.model import Cause, Confidence, Part, Segment
from rtscope.record.events.events import Event, Window

_WAKING = frozenset({"sched_waking", "sched_wakeup", "sched_wakeup_new"})


class State(StrEnum):
    """The state of a thread."""

    SLEEPING = "sleeping"
    STOPPED = "stopped"
    BLOCKED = "blocked"
    RUNNABLE = "runnable"
    RUNNING = "running"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class MachineTraits:
    """Traits of a machine that its events do not show; None if unknown."""

    guest: bool | None = None
    """It runs under a hypervisor, which can take a CPU away at any time."""
    preemptible: bool | None = None
    """Its kernel can be preempted in its own code: PREEMPT or PREEMPT_RT."""
    release: tuple[int, int] | None = None
    """Of its kernel: (6, 12)."""
    high_resolution: bool | None = None
    """A timer has an interrupt of its own; else it waits for the tick."""


@dataclass(frozen=True, slots=True)
class TracedWakeup:
    """The wake-up to explain."""

    pid: int
    comm: str
    cpu: int | None
    """Where it was measured; None if unknown."""
    expiry_ns: int
    """When the timer was programmed to expire, on the trace's clock."""
    wake_ns: int
    """When the thread's own code ran."""
    sequence: int = -1
    """Its number in the run; -1 if it has none."""
    asleep: "State" = State.UNKNOWN
    """The state of the thread at the begin of the window, if known from before."""
    programmed: bool = True
    """False if the expiry is unknown: the path then begins when it was woken."""
    to_the_end: bool = field(default=False, repr=False)
    """The path goes on to the end of its cycle: what it runs is its own code."""
    to_the_switch: bool = False
    """The trace has no mark of its own code: the path ends at the switch to it."""
    timed_waits: int = field(default=0, repr=False)
    """Waits for another timer that the cycle has, if the path goes to its end."""
    by_event: bool = False
    """It waits for an event, or carries one: no timer wakes it."""

    latency_ns: int = field(init=False)
    """How late it was."""

    def __post_init__(self) -> None:
        """Take the latency, once for all that need it."""
        object.__setattr__(self, "latency_ns", self.wake_ns - self.expiry_ns)


@dataclass(frozen=True, slots=True)
class StateInterval:
    """The thread was in one state from `begin_ns` to `end_ns`."""

    state: State
    begin_ns: int
    end_ns: int
    cpu: int | None
    """Where it ran or waited; for a sleep, where it was woken."""
    end: Event | None
    """The event that ended it; None at the end of the path."""
    began: Event | None = None


def thread_states(window: Window, wakeup: TracedWakeup) -> tuple[StateInterval, ...]:
    """Return what the thread did from the expiry to its own code, without gaps."""
    intervals = list(_all_states(window, wakeup))
    return tuple(
        StateInterval(
            interval.state,
            max(interval.begin_ns, wakeup.expiry_ns),
            min(interval.end_ns, wakeup.wake_ns),
            interval.cpu,
            interval.end if interval.end_ns <= wakeup.wake_ns else None,
            interval.began,
        )
        for interval in intervals
        if interval.end_ns > wakeup.expiry_ns and interval.begin_ns < wakeup.wake_ns
    )


def sleep_state(switch_state: str) -> State:
    """Return what a thread does that was switched away in a state as printed: `S`."""
    letters = switch_state.partition("+")[0]
    if letters in ("", "R"):
        return State.RUNNABLE
    if letters in ("T", "t"):
        return State.STOPPED
    return State.BLOCKED if "D" in letters else State.SLEEPING


def _all_states(window: Window, wakeup: TracedWakeup) -> Iterator[StateInterval]:
    state, cpu, since = wakeup.asleep, wakeup.cpu, window.begin_ns
    began: Event | None = None
    for event in window.events:
        change = _change(event, wakeup.pid, state)
        if change is None:
            continue
        before, after, at_cpu = change
        if state is State.UNKNOWN and not (began is None and _comes_new(event, window)):
            state = before
        # The switch shows the CPU where it waited, whatever came before.
        switched = event.name == "sched_switch"
        if event.at_ns > since:
            where = event.cpu if switched or cpu is None else cpu
            yield StateInterval(state, since, event.at_ns, where, event, began)
        state, cpu, since, began = after, at_cpu, event.at_ns, event
    end = max(window.end_ns, wakeup.wake_ns)
    if end > since:
        yield StateInterval(state, since, end, cpu, None, began)


def _comes_new(event: Event, window: Window) -> bool:
    """
    Tell whether nothing shows since when a thread was ready that now runs.

    It may have been created then: its wake-up would have been recorded.
    """
    return event.name == "sched_switch" and not _WAKING.isdisjoint(window.known)


def _change(event: Event, pid: int, state: State) -> tuple[State, State, int] | None:
    """Return what the thread did before an event and after it, and on which CPU."""
    if event.name in _WAKING and event.numbers.get("pid") == pid:
        if state in (State.RUNNABLE, State.RUNNING):
            return None  # sched_wakeup after sched_waking, or a wake-up too many
        return (
            State.SLEEPING,
            State.RUNNABLE,
            event.numbers.get("target_cpu", event.cpu),
        )
    if event.name == "sched_migrate_task" and event.numbers.get("pid") == pid:
        if state is not State.RUNNABLE:
            return None
        return state, state, event.numbers.get("dest_cpu", event.cpu)
    if event.name == "sched_switch":
        if event.numbers.get("next_pid") == pid:
            return State.RUNNABLE, State.RUNNING, event.cpu
        if event.numbers.get("prev_pid") == pid:
            after = sleep_state(str(event.fields.get("prev_state", "")))
            return State.RUNNING, after, event.cpu
    return None


# A time in which a thread was ready and its CPU did something else, and its segments.

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
    events: EventList
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
    switches: EventList = field(default_factory=lambda: EventList(()))
    """Those of this CPU before the window, that tell what was the case then, and in
    it."""

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


def last_of(span: Span, events: EventList) -> Iterator[str]:
    """List the last events of a span's task: `sys_enter, kmem_cache_alloc`."""
    theirs = events.of_task(span.task.pid)
    end = theirs.until(span.begin_ns)
    names = [called(event) for event in theirs[max(0, end - _LISTED) : end]]
    if names:
        yield f"last events of {span.task.numbered}: {', '.join(names)}"
    length_ns, longest = longest_call(span, events)
    if longest is not None:
        parent = longest.text("parent")
        yield (
            f"the longest time without another call: {length_ns / 1000:,.3f} us, in "
            f"{called(longest)}{f', called by {parent}' if parent else ''}"
        )


def longest_call(span: Span, events: EventList) -> tuple[int, Event | None]:
    """Return the call of a span behind which the longest time has no other, in ns."""
    traced = events.named("function").of_kind(
        "call", lambda e: bool(e.text("function"))
    )
    theirs = traced.of_task(span.task.pid)
    calls = theirs[theirs.before(span.begin_ns) : theirs.before(span.end_ns)]
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
