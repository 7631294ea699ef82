"""
Which wake-ups a trace holds, and the events that explain one. Pure.

The whole trace is looked at as columns of numbers; only the events around the wake-up
that is chosen are decoded.
"""

from collections.abc import Iterator
from dataclasses import replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from rtscope.explain.events.threadstates import State, Wakeup, sleep_state
from rtscope.ftrace.events import Rows, Trace, Window, rows_named, window_of

BEFORE_NS = 1_000_000
"""What ran before the expiry, and the begin of a long interrupt, lie in this time."""
AFTER_NS = 200_000
_BACK_ROWS = 50_000
_LONGEST_BACK = 40
"""How many times so many rows are looked through for when a thread went to sleep."""


class Wait(IntEnum):
    """The columns of `waits`."""

    PID = 0
    CPU = 1
    """On which it ran."""
    WOKEN = 2
    RAN = 3
    """When the CPU was switched to it."""
    PRIORITY = 4
    WAKER_CPU = 5


def window_around(trace: Trace, wakeup: Wakeup) -> tuple[Window, Wakeup]:
    """Decode the events that matter to a wake-up; tell what its thread did before."""
    begin = wakeup.expiry_ns - BEFORE_NS
    window = window_of(trace, begin, wakeup.wake_ns + AFTER_NS)
    if wakeup.asleep is State.UNKNOWN:
        wakeup = replace(wakeup, asleep=state_before(trace, wakeup.pid, begin))
    return window, wakeup


def state_before(trace: Trace, pid: int, at_ns: int) -> State:
    """Return what a thread did at a time, from the last event that tells it."""
    latest: tuple[int, State] = (-1, State.UNKNOWN)
    for rows in trace.rows:
        for when, state in _changes_back(trace, rows, pid, at_ns):
            if when > latest[0]:
                latest = (when, state)
    lost = any(
        latest[0] <= one.before_ns and one.after_ns < at_ns for one in trace.losses
    )
    return State.UNKNOWN if lost else latest[1]


def waits(trace: Trace) -> NDArray[np.int64]:
    """
    Return every wait of a thread for its CPU; `Wait` names the columns.

    One row for each switch to a thread that was woken since it last ran.
    """
    woken = column_table(trace, "sched_waking", ("pid", "prio"))
    if len(woken) == 0:
        woken = column_table(trace, "sched_wakeup", ("pid", "prio"))
    ran = column_table(trace, "sched_switch", ("next_pid", "next_prio"))
    if len(woken) == 0 or len(ran) == 0:
        return np.empty((0, len(Wait)), np.int64)
    # Both by thread and then by time, so that a wait is two neighbours.
    whole = np.concatenate([_marked(woken, 0), _marked(ran, 1)])
    whole = whole[np.lexsort((whole[:, 0], whole[:, 2]))]
    first, second = whole[:-1], whole[1:]
    pairs = (first[:, 2] == second[:, 2]) & (first[:, 4] == 0) & (second[:, 4] == 1)
    found, after = first[pairs], second[pairs]
    columns = {
        Wait.PID: after[:, 2],
        Wait.CPU: after[:, 1],
        Wait.WOKEN: found[:, 0],
        Wait.RAN: after[:, 0],
        Wait.PRIORITY: after[:, 3],
        Wait.WAKER_CPU: found[:, 1],
    }
    table = np.column_stack([columns[column] for column in Wait])
    return table[table[:, Wait.PID] > 0]


def _marked(table: NDArray[np.int64], mark: int) -> NDArray[np.int64]:
    return np.column_stack([table, np.full(len(table), mark, np.int64)])


def column_table(trace: Trace, name: str, fields: tuple[str, str]) -> NDArray[np.int64]:
    """Return time, CPU and two numbers of all events of a name."""
    parts = []
    for rows in trace.rows:
        chosen = rows_named(trace, rows, name)
        if len(chosen):
            columns = [trace.numbers(rows, chosen, field) for field in fields]
            cpus = np.full(len(chosen), rows.cpu, np.int64)
            parts.append(np.column_stack([rows.at_ns[chosen], cpus, *columns]))
    return np.concatenate(parts) if parts else np.empty((0, 4), np.int64)


def _changes_back(
    trace: Trace, rows: Rows, pid: int, at_ns: int
) -> Iterator[tuple[int, State]]:
    """Look backwards through a CPU for the last event that changed the thread."""
    end = int(np.searchsorted(rows.at_ns, at_ns, "left"))
    for _ in range(_LONGEST_BACK):
        begin = max(0, end - _BACK_ROWS)
        found = _last_change(trace, rows, pid, np.arange(begin, end, dtype=np.int64))
        if found is not None:
            yield found
            return
        end = begin
        if begin == 0:
            return


def _last_change(
    trace: Trace, rows: Rows, pid: int, chosen: NDArray[np.int64]
) -> tuple[int, State] | None:
    best: tuple[int, State] | None = None
    for name, field, state in (
        ("sched_switch", "prev_pid", None),
        ("sched_switch", "next_pid", State.RUNNING),
        ("sched_waking", "pid", State.RUNNABLE),
    ):
        if name not in trace.names:
            continue
        kind = trace.names.index(name)
        of_kind = chosen[rows.kinds[chosen] == kind]
        hits = of_kind[trace.numbers(rows, of_kind, field) == pid]
        if len(hits) == 0 or (best and rows.at_ns[hits[-1]] <= best[0]):
            continue
        if state is None:
            event = trace.events(rows, hits[-1:])[0]
            best = event.at_ns, sleep_state(event.text("prev_state"))
        else:
            best = int(rows.at_ns[hits[-1]]), state
    return best
