"""
An event of a trace, lost events, and what every kind of trace can be asked for. Pure.

A trace is kept as rows: time, CPU and kind of every event, and where the rest of it
lies. Only the rows that matter become events.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Flag(IntFlag):
    """`common_flags` of an event: the kernel's enum trace_flag_type."""

    IRQS_OFF = 0x01
    NEED_RESCHED = 0x04
    HARDIRQ = 0x08
    SOFTIRQ = 0x10
    NMI = 0x40


@dataclass(frozen=True, slots=True)
class Event:
    """One event; `fields` are int or str, as the kernel's format declares them."""

    at_ns: int
    cpu: int
    name: str
    pid: int
    """Of the task that was current when it was written; 0 is idle."""
    comm: str
    """Of that task if the trace has it, else empty."""
    flags: Flag | None
    """None if the trace does not have them (text without the column of flags)."""
    preempt_depth: int | None
    """How often preemption was switched off where the event was written."""
    fields: Mapping[str, int | str]

    numbers: Mapping[str, int] = field(init=False, compare=False, repr=False)
    """Those of them that are numbers."""

    def __post_init__(self) -> None:
        """Find the numbers, once for all that look at the event."""
        numbers = {k: v for k, v in self.fields.items() if isinstance(v, int)}
        object.__setattr__(self, "numbers", numbers)

    def text(self, name: str) -> str:
        """Return a field as text; empty if the event has none of that name."""
        return str(self.fields.get(name, ""))


@dataclass(frozen=True, slots=True)
class Loss:
    """Events of a CPU that were lost, or cannot be read."""

    cpu: int
    after_ns: int
    """Of the last event before; the same as before_ns at the begin of a trace."""
    before_ns: int
    count: int | None
    """None if the kernel did not report the number."""
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The events of one CPU in order; the arrays are of equal length."""

    cpu: int
    at_ns: NDArray[np.int64]
    kinds: NDArray[np.uint16]
    """Index into the names of the trace."""
    places: NDArray[np.int64]
    """Where in the file the rest of an event lies."""
    sizes: NDArray[np.int32]
    """Bytes of it."""


class Trace(Protocol):
    """What trace.dat files and text have in common."""

    @property
    def name(self) -> str:
        """The file, for messages."""

    @property
    def clock(self) -> str:
        """The trace clock: "mono", "local"…; empty if the file does not name it."""

    @property
    def resolution_ns(self) -> int:
        """How fine its times are."""

    @property
    def kernel(self) -> str:
        """What the file tells of its kernel: release, model of preemption; or empty."""

    @property
    def told(self) -> Sequence[str]:
        """How the file differs from what the kernel's tools write, in words."""

    @property
    def rows(self) -> Sequence[Rows]:
        """All events, one Rows for each CPU that has any."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the kinds of events."""

    @property
    def losses(self) -> Sequence[Loss]:
        """What is known to be lost, by time."""

    def events(self, rows: Rows, chosen: NDArray[np.int64]) -> list[Event]:
        """Decode the chosen rows of a CPU."""

    def numbers(
        self, rows: Rows, chosen: NDArray[np.int64], field: str
    ) -> NDArray[np.int64]:
        """Return a field that is a number of the chosen rows, all of one kind."""


@dataclass(frozen=True, slots=True)
class Window:
    """All events of a short time, by time; what an explanation is made from."""

    begin_ns: int
    end_ns: int
    events: tuple[Event, ...]
    losses: tuple[Loss, ...]
    known: frozenset[str]
    """Names of all events that the trace has anywhere: what was switched on."""
    first_ns: Mapping[int, int]
    """Per CPU, the time of the first event in the whole trace."""
    last_ns: Mapping[int, int]
    resolution_ns: int = 1
    earlier: tuple[Event, ...] = ()
    """Events before it, by time, that tell what was the case at its begin."""


MAX_EVENTS = 100_000
"""Of one window: each takes about 1.5 KiB while it is explained."""


def window_of(
    trace: Trace, begin_ns: int, end_ns: int, *, most: int = MAX_EVENTS
) -> Window:
    """
    Decode the events of all CPUs from `begin_ns` to `end_ns`, both included.

    Of more than `most` events, those in the middle are left out: they count as lost.
    """
    events: list[Event] = []
    losses: list[Loss] = []
    known: set[str] = set()
    until_ns, again_ns = _left_out(trace, begin_ns, end_ns, most)
    for rows in trace.rows:
        known |= {trace.names[kind] for kind in np.unique(rows.kinds).tolist()}
        edges = np.searchsorted(rows.at_ns, (begin_ns, until_ns, again_ns), "left")
        first, cut, again = edges.tolist()
        last = int(np.searchsorted(rows.at_ns, end_ns, "right"))
        chosen = (np.arange(first, cut), np.arange(again, last))
        events += trace.events(rows, np.concatenate(chosen).astype(np.int64))
        if again > cut:
            after_ns = int(rows.at_ns[cut - 1]) if cut > first else begin_ns
            before_ns = int(rows.at_ns[again]) if again < last else end_ns
            losses.append(
                Loss(rows.cpu, after_ns, before_ns, again - cut, _TOO_MANY.format(most))
            )
    events.sort(key=lambda event: event.at_ns)
    return Window(
        begin_ns=begin_ns,
        end_ns=end_ns,
        events=tuple(events),
        losses=tuple(
            one
            for one in (*losses, *trace.losses)
            if one.before_ns >= begin_ns and one.after_ns <= end_ns
        ),
        known=frozenset(known),
        first_ns={rows.cpu: int(rows.at_ns[0]) for rows in trace.rows},
        last_ns={rows.cpu: int(rows.at_ns[-1]) for rows in trace.rows},
        resolution_ns=trace.resolution_ns,
    )


_TOO_MANY = "the wake-up has more than {:,}, and these of its middle were left out"


def _left_out(trace: Trace, begin_ns: int, end_ns: int, most: int) -> tuple[int, int]:
    """Return from when to when events are left out; nothing if there are not too many.

    Events at the two instants are left out and kept, respectively.
    """
    slices = []
    for rows in trace.rows:
        first = int(np.searchsorted(rows.at_ns, begin_ns, "left"))
        last = int(np.searchsorted(rows.at_ns, end_ns, "right"))
        slices.append(rows.at_ns[first:last])
    total = sum(map(len, slices))
    if total <= most:
        return end_ns + 1, end_ns + 1
    times = np.sort(np.concatenate(slices))
    half = most // 2
    return int(times[half]), int(times[total - half - 1]) + 1


def rows_named(trace: Trace, rows: Rows, name: str) -> NDArray[np.int64]:
    """Return which rows of a CPU are events of a name."""
    if name not in trace.names:
        return np.empty(0, np.int64)
    kind = trace.names.index(name)
    return np.flatnonzero(rows.kinds == kind).astype(np.int64)
