"""
Which wake-up of a trace is explained, the events around it, and the state before. Pure.

The whole trace is looked at as columns of numbers; only the events around the wake-up
that is chosen are decoded. Where no record names it, it is a mark of a
measuring program: timerlat's own lines, and those of cyclictest --tracemark. Else
it is the worst wake-up of a real-time thread: from the expiry that its timer was
started with, where the trace has that, to the switch to it.

The events of that lie before the window, some of them far: who runs since when, who
lent a priority to whom, and whether real-time threads may run at all.
"""

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from rtscope.explain.events.histories import MAX_RT_PRIO, PI_SETPRIO, RENAMES
from rtscope.explain.events.limits import gives_way
from rtscope.explain.events.spans import IDLE_PID
from rtscope.explain.events.threadnames import (
    ThreadNames,
    called,
    name_at,
    names_of,
    running,
    switched_to,
    with_names,
)
from rtscope.explain.events.threadstates import State, TracedWakeup, sleep_state
from rtscope.host.units import NS_PER_S, is_whole
from rtscope.record.events.events import (
    MAX_EVENTS,
    Event,
    Rows,
    Trace,
    Window,
    rows_named,
    window_of,
)

# --- what was the case when a window of events begins: states and priorities ----------

_BACK_ROWS = 50_000
_LONGEST_BACK = 40
"""How many times so many rows are looked through for when a thread went to sleep."""
_MOST_CHANGES = 1_000
"""Of the last ones of priorities and of names before a window."""
_SWITCH = "sched_switch"


def earlier_events(trace: Trace, window: Window, cpu: int | None) -> tuple[Event, ...]:
    """
    Return the events before a window that tell what was the case at its begin.

    For each CPU its last switch; of the threads of the window, the last changes of
    priority by inheritance and of names; for `cpu` the switch that a limit of real-time
    threads shows, and the last one to a task.
    """
    found: list[Event] = []
    for rows in trace.rows:
        switches = _switches_before(trace, rows, window.begin_ns)
        gave = switches[-1:]
        if rows.cpu == cpu:
            gave = _gave_way(trace, rows, switches)
        found += trace.events(rows, np.unique(np.concatenate([switches[-1:], gave])))
    fields = ("pid", "prev_pid", "next_pid")
    events = (*window.events, *found)
    pids = {e.numbers[field] for e in events for field in fields if field in e.numbers}
    for rows in trace.rows:
        for name in (PI_SETPRIO, *sorted(RENAMES)):
            found += _changes_before(trace, rows, window, name, pids)
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


def _changes_before(
    trace: Trace, rows: Rows, window: Window, name: str, pids: Set[int]
) -> Sequence[Event]:
    """Return the last events of a name, of these threads."""
    if name not in trace.names:
        return ()
    before = rows.kinds[: int(np.searchsorted(rows.at_ns, window.begin_ns, "left"))]
    chosen = np.flatnonzero(before == trace.names.index(name))[-_MOST_CHANGES:]
    theirs = np.isin(trace.numbers(rows, chosen, "pid"), np.array([*pids], np.int64))
    return trace.events(rows, chosen[theirs].astype(np.int64))


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


# --- which wake-up of a trace is explained, and the events around it ------------------

BEFORE_NS = 1_000_000
"""What ran before the expiry, and the begin of a long interrupt, lie in this time."""
AFTER_NS = 200_000
TIMERLAT_THREADS = ("1", "2", "thread", "user", "user ret")
_HIT = re.compile(r"hit latency threshold \((\d{1,10}) > \d{1,10}\)")
_SAME_CALLBACK_NS = 20_000
"""Where no event tells the end of a callback: it wakes its thread at once."""
_SAME_CLOCK_NS = 10_000_000


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


def window_around(
    trace: Trace, wakeup: TracedWakeup, *, most: int = MAX_EVENTS
) -> tuple[Window, TracedWakeup]:
    """
    Decode the events that matter to a wake-up; find its thread's state before.

    Of more than `most` events, those in the middle are left out.
    """
    begin = wakeup.expiry_ns - BEFORE_NS
    window = window_of(trace, begin, wakeup.wake_ns + AFTER_NS, most=most)
    earlier = earlier_events(trace, window, wakeup.cpu)
    window = with_names(replace(window, earlier=earlier))
    if wakeup.asleep is State.UNKNOWN:
        wakeup = replace(wakeup, asleep=state_before(trace, wakeup.pid, begin))
    return window, wakeup


def waits(trace: Trace) -> NDArray[np.int64]:
    """
    Return every wait of a thread for its CPU; `Wait` names the columns.

    One row for each switch to a thread that was woken since it last ran.
    """
    woken = column_table(trace, "sched_waking", ("pid", "prio"))
    if len(woken) == 0:
        woken = column_table(trace, "sched_wakeup", ("pid", "prio"))
    ran = column_table(trace, "sched_switch", ("next_pid", "next_prio"))
    # Both by thread and then by time, so that a wait is two neighbours.
    pids = np.concatenate([woken[:, 2], ran[:, 2]])
    order = _by_thread(pids, np.concatenate([woken[:, 0], ran[:, 0]]))
    pids, has_run = pids[order], order >= len(woken)
    pairs = (pids[:-1] == pids[1:]) & ~has_run[:-1] & has_run[1:] & (pids[1:] > 0)
    wakings = woken[order[:-1][pairs]]
    after = ran[order[1:][pairs] - len(woken)]
    columns = {
        Wait.PID: after[:, 2],
        Wait.CPU: after[:, 1],
        Wait.WOKEN: wakings[:, 0],
        Wait.RAN: after[:, 0],
        Wait.PRIORITY: after[:, 3],
        Wait.WAKER_CPU: wakings[:, 1],
    }
    return np.column_stack([columns[column] for column in Wait])


def _by_thread(pids: NDArray[np.int64], at_ns: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the order by thread and then by time; of equal ones, as they come."""
    by_time = np.argsort(at_ns, kind="stable")  # some sorted runs: they are merged
    few = len(pids) > 0 and pids.min() >= 0 and pids.max() <= np.iinfo(np.uint16).max
    # Numbers of 16 bits are sorted by their digits, in a tenth of the time.
    keys = pids.astype(np.uint16) if few else pids
    return by_time[np.argsort(keys[by_time], kind="stable")]


def column_table(trace: Trace, name: str, fields: tuple[str, str]) -> NDArray[np.int64]:
    """Return time, CPU and two numbers of all events of a name."""
    parts = [(rows, rows_named(trace, rows, name)) for rows in trace.rows]
    table = np.empty((sum(len(chosen) for _, chosen in parts), 4), np.int64)
    end = 0
    for rows, chosen in parts:
        begin, end = end, end + len(chosen)
        if begin == end:
            continue
        part = table[begin:end]
        part[:, 0], part[:, 1] = rows.at_ns[chosen], rows.cpu
        for column, field in enumerate(fields, 2):
            part[:, column] = trace.numbers(rows, chosen, field)
    return table


@dataclass(frozen=True, slots=True)
class WakeupSelector:
    """The wake-up that a user selects; None for options that are not given."""

    thread: str | None = None
    """Its name or number."""
    at_ns: int | None = None
    """A time of the trace's clock in which it waited."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The wake-up, and how it was found."""

    wakeup: TracedWakeup
    how: str


class NoWakeup(Exception):
    """The trace has no such wake-up; the text names those that it has."""


def choose(trace: Trace, selector: WakeupSelector) -> Chosen:
    """Return the wake-up to explain; raise NoWakeup if there is none."""
    if selector.at_ns is None:
        marks = [*_timerlat(trace), *_cyclictest(trace)]
        if not marks and "sched_switch" not in trace.names:
            marks = [*_timerlat(trace, ("irq", "0"))]
        marks = [mark for mark in marks if _is_named(mark.wakeup, selector.thread)]
        if marks:
            return max(marks, key=lambda mark: mark.wakeup.latency_ns)
    return _of_waits(trace, selector)


def _is_named(wakeup: TracedWakeup, thread: str | None) -> bool:
    return thread is None or thread in (wakeup.comm, str(wakeup.pid))


def _timerlat(
    trace: Trace, contexts: Sequence[str] = TIMERLAT_THREADS
) -> Iterator[Chosen]:
    """Return the worst line of each CPU that timerlat wrote in some contexts."""
    for rows in trace.rows:
        chosen = rows_named(trace, rows, "timerlat")
        if len(chosen) == 0:
            continue
        late = trace.numbers(rows, chosen, "timer_latency")
        for at in np.argsort(-late, kind="stable")[:64].tolist():
            event = trace.events(rows, chosen[at : at + 1])[0]
            if event.text("context") in contexts:
                wakeup = _marked(trace, event, int(late[at]))
                of = "wake-up" if contexts is TIMERLAT_THREADS else "interrupt"
                yield Chosen(wakeup, f"worst {of} of timerlat")
                break


def _cyclictest(trace: Trace) -> Iterator[Chosen]:
    for rows in trace.rows:
        for event in trace.events(rows, rows_named(trace, rows, "print")):
            hit = _HIT.search(event.text("buf"))
            if hit is not None:
                wakeup = _marked(trace, event, 1000 * int(hit[1]))
                yield Chosen(wakeup, "mark of cyclictest --tracemark")


def _marked(trace: Trace, event: Event, latency_ns: int) -> TracedWakeup:
    return TracedWakeup(
        pid=event.pid,
        comm=running(trace, event) or event.comm,
        cpu=event.cpu,
        expiry_ns=event.at_ns - latency_ns,
        wake_ns=event.at_ns,
    )


def _of_waits(trace: Trace, selector: WakeupSelector) -> Chosen:
    table = waits(trace)
    if len(table) == 0:
        raise NoWakeup(
            "no thread is woken and then runs in this trace; record the events "
            "sched_waking (or sched_wakeup) and sched_switch"
        )
    names = names_of(trace)
    if selector.thread is not None:
        table = table[_of_thread(selector.thread, table, names)]
        if len(table) == 0:
            raise NoWakeup(f"no thread {selector.thread} wakes up in this trace")
        realtime = table[:, Wait.PRIORITY] < MAX_RT_PRIO
        if realtime.any() and selector.at_ns is None:
            table = table[realtime]  # what it did before it became real-time is no test
    else:
        realtime = table[:, Wait.PRIORITY] < MAX_RT_PRIO
        if not realtime.any():
            raise NoWakeup(
                "no real-time thread wakes up in this trace; name one with --thread"
            )
        table = table[realtime]
    due = _expiries(trace, table)
    timed = due >= 0
    if selector.thread is None and selector.at_ns is None and timed.any():
        # Threads of the kernel that others wake are real-time, too, and not meant.
        table, due = table[timed], due[timed]
    begins = np.where(due >= 0, due, table[:, Wait.WOKEN])
    at = _picked(table, begins, selector.at_ns)
    row = table[at].tolist()
    wakeup = TracedWakeup(
        pid=row[Wait.PID],
        comm=switched_to(trace, row[Wait.CPU], row[Wait.RAN])
        or name_at(names, row[Wait.PID], row[Wait.RAN]),
        cpu=row[Wait.CPU],
        expiry_ns=int(begins[at]),
        wake_ns=row[Wait.RAN],
        programmed=bool(due[at] >= 0),
        to_the_switch=True,
    )
    what = "worst wake-up" if selector.at_ns is None else "wake-up at this time"
    of = selector.thread or "a real-time thread"
    return Chosen(wakeup, f"{what} of {of}")


def _of_thread(
    thread: str, table: NDArray[np.int64], names: ThreadNames
) -> NDArray[np.bool_]:
    """Tell which waits are of a thread, by its number or its name at that time."""
    pids = table[:, Wait.PID]
    number = int(thread) if is_whole(thread) else None
    if number is not None and number <= np.iinfo(np.int64).max:
        found: NDArray[np.bool_] = pids == number
    else:
        found = np.zeros(len(table), np.bool_)
    for pid in called(names, thread):
        rows = np.flatnonzero(pids == pid)
        ran = table[rows, Wait.RAN].tolist()
        found[rows] |= [name_at(names, pid, at_ns) == thread for at_ns in ran]
    return found


def _picked(
    table: NDArray[np.int64], begins: NDArray[np.int64], at_ns: int | None
) -> int:
    ends = table[:, Wait.RAN]
    if at_ns is None:
        return int(np.argmax(ends - begins))
    away = np.maximum(np.maximum(begins - at_ns, at_ns - ends), 0)
    nearest = int(np.argmin(away))
    if away[nearest] > NS_PER_S:
        first, last = int(begins.min()), int(ends.max())
        raise NoWakeup(
            f"no such wake-up within 1 s of {at_ns / 1e9:.6f}; the first is at "
            f"{first / 1e9:.6f}, the last at {last / 1e9:.6f}"
        )
    return nearest


def _expiries(trace: Trace, table: NDArray[np.int64]) -> NDArray[np.int64]:
    """
    Return when the timer of each wake-up was to expire, on the trace's clock; or -1.

    A callback that wakes a thread belongs to the timer that was started before with
    the same address. How late it is, `now` and `expires` tell, whatever their clock.
    """
    callbacks = _callbacks(trace)
    ends = column_table(trace, "hrtimer_expire_exit", ("hrtimer", "hrtimer"))
    due = np.full(len(table), -1, np.int64)
    for cpu in np.unique(table[:, Wait.WAKER_CPU]).tolist():
        mine = callbacks[callbacks[:, 1] == cpu]
        rows = np.flatnonzero(table[:, Wait.WAKER_CPU] == cpu)
        if len(mine) == 0:
            continue
        woken = table[rows, Wait.WOKEN]
        at = np.searchsorted(mine[:, 0], woken, "right") - 1
        entered = mine[np.maximum(at, 0), 0]
        inside = (at >= 0) & _inside(woken, entered, ends[ends[:, 1] == cpu, 0])
        expiry = mine[np.maximum(at, 0), 2]
        due[rows] = np.where(inside & (expiry <= woken), expiry, -1)
    return due


def _inside(
    woken: NDArray[np.int64], entered: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Tell which threads were woken before the callback that was entered had ended."""
    if len(ends) == 0:
        return woken - entered <= _SAME_CALLBACK_NS
    last = np.searchsorted(ends, woken, "left") - 1
    return (last < 0) | (ends[np.maximum(last, 0)] < entered)


def _callbacks(trace: Trace) -> NDArray[np.int64]:
    """Return begin, CPU and expiry of the callbacks whose start was recorded."""
    started = column_table(trace, "hrtimer_start", ("hrtimer", "softexpires"))
    entered = column_table(trace, "hrtimer_expire_entry", ("hrtimer", "now"))
    if len(started) == 0 or len(entered) == 0:
        return np.empty((0, 3), np.int64)
    mark = np.concatenate([np.zeros(len(started)), np.ones(len(entered))])
    both = np.concatenate([started, entered])
    order = np.lexsort((both[:, 0], both[:, 2]))
    both, mark = both[order], mark[order]
    pairs = (both[:-1, 2] == both[1:, 2]) & (mark[:-1] == 0) & (mark[1:] == 1)
    start, entry = both[:-1][pairs], both[1:][pairs]
    late = np.maximum(entry[:, 3] - start[:, 3], 0)
    # On the measuring clock the expiry is exact; else as late as the callback began.
    same = np.abs(entry[:, 0] - entry[:, 3]) <= _SAME_CLOCK_NS
    expiry = np.where(same, start[:, 3], entry[:, 0] - late)
    table = np.column_stack([entry[:, 0], entry[:, 1], expiry])
    return table[np.argsort(table[:, 0], kind="stable")]
