"""
Names of threads in a whole trace: each from when on. Pure.

Of a trace without events of new names they are those of the first and the last wake-up.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rtscope.explain.events.histories import RENAMES, names_in, new_name, renamed
from rtscope.record.events.events import Event, Trace, Window, rows_named

ThreadNames = dict[int, list[tuple[int, str]]]
"""Names of threads, and since when; in order."""


def names_of(trace: Trace) -> ThreadNames:
    """Return the first and the last name of threads that are woken, and new ones."""
    names: ThreadNames = {}
    for name in ("sched_waking", "sched_wakeup"):
        for rows in trace.rows:
            chosen = rows_named(trace, rows, name)
            if len(chosen) == 0:
                continue
            pids = trace.numbers(rows, chosen, "pid")
            _, first = np.unique(pids, return_index=True)
            _, last = np.unique(pids[::-1], return_index=True)
            some = chosen[np.union1d(first, len(chosen) - 1 - last)]
            for event in trace.events(rows, some):
                told = event.at_ns, event.text("comm")
                names.setdefault(event.numbers.get("pid", 0), []).append(told)
    for event in _renames(trace):
        told = event.at_ns, new_name(event)
        names.setdefault(renamed(event), []).append(told)
    return {pid: sorted(told) for pid, told in names.items()}


def _renames(trace: Trace) -> Iterator[Event]:
    for name in RENAMES:
        for rows in trace.rows:
            yield from trace.events(rows, rows_named(trace, rows, name))


def called(names: ThreadNames, name: str) -> list[int]:
    """Return the PIDs of the threads that had a name at some time."""
    return [pid for pid, told in names.items() if any(one == name for _, one in told)]


def name_at(names: ThreadNames, pid: int, at_ns: int) -> str:
    """Return the name of a thread at a time; its first one if none is before."""
    told = names.get(pid, ())
    at = bisect_right(told, at_ns, key=lambda one: one[0])
    return told[max(0, at - 1)][1] if told else ""


def switched_to(trace: Trace, cpu: int, at_ns: int) -> str:
    """Return the name of the task that a CPU switched to at a time."""
    last = _last_switch(trace, cpu, at_ns)
    return "" if last is None or last.at_ns != at_ns else last.text("next_comm")


def running(trace: Trace, event: Event) -> str:
    """Return the name that who wrote an event had then; empty if it is not known."""
    last = _last_switch(trace, event.cpu, event.at_ns)
    if last is None or last.numbers.get("next_pid") != event.pid:
        return ""
    later = [
        (one.at_ns, new_name(one))
        for one in _renames(trace)
        if renamed(one) == event.pid and last.at_ns <= one.at_ns <= event.at_ns
    ]
    return max(later)[1] if later else last.text("next_comm")


def _last_switch(trace: Trace, cpu: int, at_ns: int) -> Event | None:
    for rows in trace.rows:
        if rows.cpu != cpu:
            continue
        chosen = rows_named(trace, rows, "sched_switch")
        at = int(np.searchsorted(rows.at_ns[chosen], at_ns, "right"))
        for event in trace.events(rows, chosen[max(0, at - 1) : at]):
            return event
    return None


def with_names(window: Window) -> Window:
    """
    Return a window whose events have the name that who wrote them had then.

    A trace may have only one name for each thread: its last.
    """
    names: ThreadNames = {}
    for event in (*window.earlier, *window.events):
        for pid, name in names_in(event):
            names.setdefault(pid, []).append((event.at_ns, name))
    return replace(window, events=tuple(_named(one, names) for one in window.events))


def _named(event: Event, names: ThreadNames) -> Event:
    name = name_at(names, event.pid, event.at_ns) if event.pid > 0 else ""
    return event if name in ("", event.comm) else replace(event, comm=name)
