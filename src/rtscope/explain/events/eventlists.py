"""
Events in order of time, and lists of those of one kind, made once. Pure.

An explanation asks the same of each of its segments: the last switch before it, the
calls of a task in it. To look through all events each time would take the square of
their number; a list of the right kind is searched by halves.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import overload

from rtscope.record.events.events import Event


class EventList(Sequence[Event]):
    """Events by time; those at the same time are in the order of the trace."""

    def __init__(
        self, events: Iterable[Event], places: Sequence[int] | None = None
    ) -> None:
        """Take events in order, and where they stand in the whole list."""
        self._events = tuple(events)
        self.places = range(len(self._events)) if places is None else places
        self.at_ns = [event.at_ns for event in self._events]
        self._kinds: dict[Hashable, EventList] = {}
        self._apart: dict[str, dict[Hashable, EventList]] = {}

    def of_kind(self, kind: Hashable, test: Callable[[Event], bool]) -> "EventList":
        """Return the events that pass a test, which `kind` names."""
        known = self._kinds.get(kind)
        if known is None:
            known = self._kinds[kind] = self._chosen(
                [at for at, event in enumerate(self._events) if test(event)]
            )
        return known

    def named(self, name: str) -> "EventList":
        """Return the events of a name."""
        return self.apart("name", lambda event: event.name, name)

    def of_task(self, pid: int) -> "EventList":
        """Return the events that a task wrote."""
        return self.apart("task", lambda event: event.pid, pid)

    def faults_of(self, pid: int) -> "EventList":
        """Return the page faults of a task that the kernel served."""
        return self.of_task(pid).of_kind("fault", _is_served)

    def apart(
        self, what: str, key: Callable[[Event], Hashable], value: Hashable
    ) -> "EventList":
        """Return the events with a value; `what` names how it is found."""
        lists = self._apart.get(what)
        if lists is None:
            rows: dict[Hashable, list[int]] = {}
            for at, event in enumerate(self._events):
                rows.setdefault(key(event), []).append(at)
            lists = {of: self._chosen(chosen) for of, chosen in rows.items()}
            self._apart[what] = lists
        return lists.get(value, _NONE)

    def before(self, at_ns: int) -> int:
        """Return how many events are earlier than a time."""
        return bisect_left(self.at_ns, at_ns)

    def until(self, at_ns: int) -> int:
        """Return how many events are not later than a time."""
        return bisect_right(self.at_ns, at_ns)

    def last_before(self, at_ns: int) -> Event | None:
        """Return the last event that is earlier than a time."""
        return self._last(self.before(at_ns))

    def last_until(self, at_ns: int) -> Event | None:
        """Return the last event that is not later than a time."""
        return self._last(self.until(at_ns))

    def first_from(self, at_ns: int) -> Event | None:
        """Return the first event that is not earlier than a time."""
        at = self.before(at_ns)
        return self._events[at] if at < len(self._events) else None

    def first_behind_place(self, place: int) -> int | None:
        """Return the index of the first event behind a place in the whole list."""
        at = bisect_right(self.places, place)
        return at if at < len(self._events) else None

    def _chosen(self, chosen: Sequence[int]) -> "EventList":
        return EventList(
            (self._events[at] for at in chosen), [self.places[at] for at in chosen]
        )

    def _last(self, end: int) -> Event | None:
        return self._events[end - 1] if end else None

    @overload
    def __getitem__(self, at: int) -> Event: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Event, ...]: ...
    def __getitem__(self, at: int | slice) -> Event | tuple[Event, ...]:
        return self._events[at]

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)


_NONE = EventList(())


def is_behind(one: EventList, end: int, other: EventList, other_end: int) -> bool:
    """
    Tell whether the last of the first `end` events of a list comes later in the trace.

    `other` is a list of the same events; without events of its own, it is earlier.
    """
    if not end:
        return False
    return not other_end or one.places[end - 1] > other.places[other_end - 1]


def _is_served(event: Event) -> bool:
    """
    Whether it is a page fault that the kernel serves.

    With preemption off it serves none: it only tells who reads that nothing is there,
    as where a stack is copied beyond its end.
    """
    if event.name == "page_fault_kernel" and event.preempt_depth:
        return False
    return event.name.startswith("page_fault_")
