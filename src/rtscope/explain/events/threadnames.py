"""
Names of threads in a whole trace: each from when on. Pure.

Of a trace without events of new names they are those of the first and the last wake-up.
"""

from bisect import bisect_right

import numpy as np

from rtscope.explain.events.histories import RENAMES, new_name, renamed
from rtscope.record.events.events import Trace, rows_named

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
    for name in RENAMES:
        for rows in trace.rows:
            for event in trace.events(rows, rows_named(trace, rows, name)):
                told = event.at_ns, new_name(event)
                names.setdefault(renamed(event), []).append(told)
    return {pid: sorted(told) for pid, told in names.items()}


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
    for rows in trace.rows:
        if rows.cpu != cpu:
            continue
        chosen = rows_named(trace, rows, "sched_switch")
        at = int(np.searchsorted(rows.at_ns[chosen], at_ns))
        for event in trace.events(rows, chosen[at : at + 1]):
            return event.text("next_comm")
    return ""
