"""
Who froze the thread, from the events of cgroups. Pure.

A frozen thread sleeps like any other: its switch shows no state of its own. Whoever
writes to `cgroup.freeze` has the event of that, and wakes the threads of the group.
"""

from collections.abc import Iterator, Sequence

from rtscope.explain.events.threadstates import StateInterval
from rtscope.record.events.events import Event


def unfrozen_by(events: Sequence[Event], interval: StateInterval) -> Event | None:
    """Return the event of the group whose end of freezing ended a sleep, if one did."""
    woken = interval.end
    if woken is None:
        return None
    found = None
    for event in events:
        if event.at_ns > woken.at_ns:
            break
        is_waker = event.pid == woken.pid and event.cpu == woken.cpu
        if event.name == "cgroup_unfreeze" and is_waker:
            found = event
    return found if found is not None and found.at_ns >= interval.begin_ns else None


def freezing_told(
    events: Sequence[Event], unfrozen: Event, *, expiry_ns: int
) -> Iterator[str]:
    """Write who froze the group, if that was recorded, and who ended it."""
    group = unfrozen.text("path")
    froze = [
        event
        for event in events
        if event.name == "cgroup_freeze"
        and event.text("path") == group
        and event.at_ns <= unfrozen.at_ns
    ]
    for event in froze[-1:]:
        yield f"{_task(event)} froze {group} at {_since(event, expiry_ns)}"
    when = _since(unfrozen, expiry_ns)
    yield f"{_task(unfrozen)} unfroze {group} at {when}, and woke the thread"


def _task(event: Event) -> str:
    return f"{event.comm or '<...>'}-{event.pid}"


def _since(event: Event, expiry_ns: int) -> str:
    return f"{(event.at_ns - expiry_ns) / 1000:+,.3f} us"
