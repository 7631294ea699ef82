"""
The states of a thread from the expiry of its timer to its own code. Pure.

A thread sleeps, is stopped, waits for a CPU or runs; every change is an event.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

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
