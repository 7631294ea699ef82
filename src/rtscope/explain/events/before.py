"""
What was the case when a window of events begins: states and priorities. Pure.

The events of that lie before the window, some of them far: who runs since when, who
lent a priority to whom, and whether real-time threads may run at all.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rtscope.explain.events.histories import MAX_RT_PRIO, PI_SETPRIO
from rtscope.explain.events.limits import gives_way
from rtscope.explain.events.spans import IDLE_PID
from rtscope.explain.events.threadstates import State, sleep_state
from rtscope.host.units import NS_PER_S
from rtscope.record.events.events import Event, Rows, Trace, Window, rows_named

_BACK_ROWS = 50_000
_LONGEST_BACK = 40
"""How many times so many rows are looked through for when a thread went to sleep."""
_MOST_LENT = 1_000
"""Of the last changes by priority inheritance before a window."""
_SWITCH = "sched_switch"


def earlier_events(trace: Trace, window: Window, cpu: int | None) -> tuple[Event, ...]:
    """
    Return the events before a window that tell what was the case at its begin.

    For each CPU its last switch; of the threads of the window, the last changes of
    priority by inheritance; for `cpu` the switch that a limit of real-time threads
    shows, and the last one to a task.
    """
    found: list[Event] = []
    for rows in trace.rows:
        switches = _switches_before(trace, rows, window.begin_ns)
        gave = switches[-1:]
        if rows.cpu == cpu:
            gave = _gave_way(trace, rows, switches)
        chosen = np.concatenate([_lent(trace, rows, window), switches[-1:], gave])
        found += trace.events(rows, np.unique(chosen))
    return tuple(sorted(found, key=lambda event: event.at_ns))


def _switches_before(trace: Trace, rows: Rows, at_ns: int) -> NDArray[np.int64]:
    """Return the last switches of a CPU before a time, of some rows or a second."""
    if _SWITCH not in trace.names:
        return np.empty(0, np.int64)
    kind = trace.names.index(_SWITCH)
    end = int(np.searchsorted(rows.at_ns, at_ns, "left"))
    second = int(np.searchsorted(rows.at_ns, at_ns - NS_PER_S, "left"))
    for begin in (max(0, end - _BACK_ROWS), second):
        chosen = np.arange(min(begin, end), end, dtype=np.int64)
        switches: NDArray[np.int64] = chosen[rows.kinds[chosen] == kind]
        if len(switches):
            return switches
    return np.empty(0, np.int64)


def _lent(trace: Trace, rows: Rows, window: Window) -> NDArray[np.int64]:
    """Return the changes by inheritance of threads that the window names."""
    if PI_SETPRIO not in trace.names:
        return np.empty(0, np.int64)
    before = rows.kinds[: int(np.searchsorted(rows.at_ns, window.begin_ns, "left"))]
    chosen = np.flatnonzero(before == trace.names.index(PI_SETPRIO))[-_MOST_LENT:]
    fields = ("pid", "prev_pid", "next_pid")
    pids = {e.numbers[f] for e in window.events for f in fields if f in e.numbers}
    theirs = np.isin(trace.numbers(rows, chosen, "pid"), np.array([*pids], np.int64))
    return chosen[theirs].astype(np.int64)


def _gave_way(
    trace: Trace, rows: Rows, switches: NDArray[np.int64]
) -> NDArray[np.int64]:
    """
    Return the switch by which a ready real-time thread gave way to ordinary tasks.

    None has run on this CPU since, nor the thread on another.
    """
    nothing = np.empty(0, np.int64)
    if len(switches) == 0:
        return nothing
    end_ns = int(rows.at_ns[switches[-1]])
    # Nearly always the last one decides; only an ordinary task is asked further.
    for some in (switches[-1:], switches[rows.at_ns[switches] >= end_ns - NS_PER_S]):
        before = trace.numbers(rows, some, "prev_prio")
        after = trace.numbers(rows, some, "next_prio")
        if after[-1] < MAX_RT_PRIO:
            return nothing
        of_realtime = np.flatnonzero((before < MAX_RT_PRIO) | (after < MAX_RT_PRIO))
        if len(of_realtime) == 0:
            continue
        last = some[of_realtime[-1:]]
        gave = trace.events(rows, last)[0]
        if not gives_way(gave):
            return nothing
        pid = gave.numbers.get("prev_pid", IDLE_PID)
        ran = (_ran(trace, one, pid, gave.at_ns, end_ns) for one in trace.rows)
        return nothing if any(ran) else last
    return nothing


def _ran(trace: Trace, rows: Rows, pid: int, from_ns: int, to_ns: int) -> bool:
    """Tell whether a CPU switched to a thread in a time."""
    chosen = rows_named(trace, rows, _SWITCH)
    at_ns = rows.at_ns[chosen]
    chosen = chosen[(at_ns > from_ns) & (at_ns < to_ns)]
    return bool((trace.numbers(rows, chosen, "next_pid") == pid).any())


def state_before(trace: Trace, pid: int, at_ns: int) -> State:
    """Return what a thread did at a time, from the last event of it."""
    latest: tuple[int, State] = (-1, State.UNKNOWN)
    for rows in trace.rows:
        for when, state in _changes_back(trace, rows, pid, at_ns):
            if when > latest[0]:
                latest = (when, state)
    lost = any(
        latest[0] <= one.before_ns and one.after_ns < at_ns for one in trace.losses
    )
    return State.UNKNOWN if lost else latest[1]


def _changes_back(
    trace: Trace, rows: Rows, pid: int, at_ns: int
) -> Iterator[tuple[int, State]]:
    """Look backwards through a CPU for the last event that changed the thread."""
    end = int(np.searchsorted(rows.at_ns, at_ns, "left"))
    for _ in range(_LONGEST_BACK):
        begin = max(0, end - _BACK_ROWS)
        change = _last_change(trace, rows, pid, np.arange(begin, end, dtype=np.int64))
        if change is not None:
            yield change
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
