"""
Priority and name of each thread over time, from the events around a wake-up. Pure.

A fact has its time: a thread that was SCHED_DEADLINE while it ran may be ordinary a
moment later. Each event of the scheduler tells the priority of one or two threads at
its own time; `sched_pi_setprio` tells a change. Where two events contradict each other
and none tells the change, both priorities are possible in between.

Priorities are those of events: -1 deadline, 0 (FIFO 99) to 98 (FIFO 1) real-time, from
100 on not real-time. Lower is more urgent.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise

from rtscope.record.events.events import Event, Window

MAX_RT_PRIO = 100
PI_SETPRIO = "sched_pi_setprio"
_CHAIN_NS = 100_000
"""Who blocks passes its priority on along the whole chain at once."""
RENAMES = frozenset({"task_rename", "sched_process_exec"})
_RAISED = 200
"""More than there are priorities, of which each that is lent is more urgent."""
_NAME_LENGTH = 15
"""The kernel's TASK_COMM_LEN, without its zero."""
_SETTERS = frozenset(
    f"sys_enter_{call}"
    for call in (
        *("sched_setattr", "sched_setscheduler", "sched_setparam"),
        "setpriority",
    )
)


def priority_words(priority: int | None) -> str:
    """Write a priority of events as people set it."""
    if priority is None:
        return "of unknown priority"
    if priority < 0:
        return "SCHED_DEADLINE"
    if priority < MAX_RT_PRIO:
        return f"real-time, priority {99 - priority}"
    return f"not real-time, nice {priority - 120}"


@dataclass(frozen=True, slots=True)
class Observed:
    """The priority of a thread before an event and after it."""

    at_ns: int
    before: int
    after: int
    event: Event


@dataclass(frozen=True, slots=True)
class Priority:
    """The priority of a thread at an instant."""

    values: tuple[int, ...] = ()
    """Empty if no event tells it; two, older first, if it changed and nobody knows
    whether before this instant or after."""
    since: Event | None = None
    """The event before the instant that tells it."""
    until: Event | None = None
    """The event after the instant that tells it."""
    raised: tuple[Event, ...] = ()
    """The events that raised it by priority inheritance, first to last."""
    inherited: bool = False
    """It is not its own: a thread that waits for its lock has lent it."""
    others: bool = False
    """At another time it had another one."""

    @property
    def urgent(self) -> int | None:
        """The most urgent that it may have had; None if unknown."""
        return min(self.values, default=None)

    @property
    def least(self) -> int | None:
        """The least urgent that it may have had; None if unknown."""
        return max(self.values, default=None)

    @property
    def words(self) -> str:
        """As people set it, and whether it was inherited, or held only then."""
        told = priority_words(self.urgent)
        if self.inherited:
            return f"{told}, by priority inheritance{self._lender()}"
        return f"{told} at that time" if self.others else told

    def _lender(self) -> str:
        if not self.raised:
            return ""
        last = self.raised[-1]
        lent = last.pid > 0 and last.pid != last.numbers.get("pid")
        return f" from {last.comm or f'thread {last.pid}'}" if lent else ""


@dataclass
class _Life:
    """What is known of one thread that had a PID, by time."""

    pid: int
    begin_ns: int = -(1 << 62)
    observed: list[Observed] = field(default_factory=list)
    changes: list[Observed] = field(default_factory=list)
    """Those of `sched_pi_setprio`."""
    names: list[tuple[int, str]] = field(default_factory=list)
    set_at: list[int] = field(default_factory=list)
    """When a system call asked for another priority."""
    told: set[int] = field(default_factory=set)
    """All priorities that it ever had."""

    @cached_property
    def turns_ns(self) -> list[int]:
        """The instants at which what is known of its priority changes, in order."""
        found = [one.at_ns for one in self.observed if one.before != one.after]
        for one, following in pairwise(self.observed):
            if one.after != following.before:
                found += (one.at_ns, following.at_ns)
        return sorted({*found, *self.set_at})

    @cached_property
    def ran_ns(self) -> list[int]:
        """When a CPU switched to it."""
        return [o.at_ns for o in self.observed if _is_to(o.event, self.pid)]

    @cached_property
    def lent(self) -> list["_Lent"]:
        """What was lent to it behind each of its changes."""
        states = accumulate(self.changes, _lent_after, initial=_Lent(None, ()))
        return list(states)


@dataclass(frozen=True)
class Histories:
    """The histories of all threads that the events name."""

    lives: Mapping[int, Sequence[_Life]]
    """Of each PID: another thread may get it when the first has ended."""

    @cached_property
    def _begins(self) -> Mapping[int, Sequence[int]]:
        """From when on a PID has no earlier one of its lives."""
        begins = {}
        for pid, lives in self.lives.items():
            last_first = accumulate((one.begin_ns for one in reversed(lives)), min)
            begins[pid] = [*last_first][::-1]
        return begins

    @cached_property
    def _lenders(self) -> Mapping[int, Sequence[Event]]:
        """By thread, the events by which it lent its priority to others, by time."""
        lent: dict[int, list[Event]] = {}
        for holder, lives in self.lives.items():
            for one in (change for life in lives for change in life.changes):
                if one.event.pid != holder and one.after < one.before:
                    lent.setdefault(one.event.pid, []).append(one.event)
        return {pid: sorted(events, key=_at) for pid, events in lent.items()}

    def at(self, pid: int, at_ns: int) -> Priority:
        """Return the priority of a thread just behind an instant."""
        life = self._life(pid, at_ns)
        if life is None:
            return Priority()
        at = bisect_right(life.observed, at_ns, key=lambda one: one.at_ns)
        before, after = life.observed[max(0, at - 1) : at], life.observed[at : at + 1]
        told = [one.after for one in before] + [one.before for one in after]
        if before and after and before[0].after != after[0].before:
            told = _by_a_call(life.set_at, before[0], after[0], at_ns) or told
        raised, inherited = _inherited(life, at_ns)
        return Priority(
            values=tuple(dict.fromkeys(told)),
            since=before[0].event if before else None,
            until=after[0].event if after else None,
            raised=raised,
            inherited=inherited,
            others=len(life.told) > 1,
        )

    def both(
        self, pid: int, other: int, begin_ns: int, end_ns: int
    ) -> Iterator[tuple[int, int, Priority, Priority]]:
        """Yield begin, end and the priorities of two threads; cut where one changes."""
        changes = {*self._changes(pid, begin_ns, end_ns)}
        changes |= {*self._changes(other, begin_ns, end_ns)}
        for begin, end in pairwise([begin_ns, *sorted(changes), end_ns]):
            yield begin, end, self.at(pid, begin), self.at(other, begin)

    def _changes(self, pid: int, begin_ns: int, end_ns: int) -> Iterator[int]:
        """Yield the instants in a time at which what is known of a thread changes."""
        for life in self.lives.get(pid, ()):
            turns = life.turns_ns
            first, last = bisect_right(turns, begin_ns), bisect_left(turns, end_ns)
            yield from turns[first:last]

    def ran(self, pid: int, from_ns: int, to_ns: int) -> bool:
        """Tell whether a CPU switched to a thread behind an instant, up to another."""
        return any(
            bisect_right(life.ran_ns, from_ns) < bisect_right(life.ran_ns, to_ns)
            for life in self.lives.get(pid, ())
        )

    def name(self, pid: int, at_ns: int) -> str:
        """Return the name of a thread at an instant; the next one if none is before."""
        life = self._life(pid, at_ns)
        if life is None or not life.names:
            return ""
        at = bisect_right(life.names, at_ns, key=lambda one: one[0])
        return life.names[max(0, at - 1)][1]

    def later_name(self, pid: int, at_ns: int) -> str:
        """Return the next name that a thread had after an instant; empty if none."""
        life = self._life(pid, at_ns)
        names = life.names if life is not None else []
        at = bisect_right(names, at_ns, key=lambda one: one[0])
        return names[at][1] if at < len(names) else ""

    def _life(self, pid: int, at_ns: int) -> _Life | None:
        at = bisect_right(self._begins.get(pid, ()), at_ns)
        return self.lives[pid][at - 1] if at else None

    def lent_by(self, pid: int, begin_ns: int, end_ns: int) -> list[Event]:
        """Return the events by which a thread lent its priority to holders of locks."""
        lent = self._lenders.get(pid, ())
        first = bisect_left(lent, begin_ns, key=_at)
        return [*lent[first : bisect_right(lent, end_ns, key=_at)]]

    def along_the_chain(self, raised: Event) -> list[Event]:
        """Return who else was raised at once by the same thread, in order."""
        return [
            event
            for event in self.lent_by(
                raised.pid, raised.at_ns - _CHAIN_NS, raised.at_ns + _CHAIN_NS
            )
            if event.numbers.get("pid") != raised.numbers.get("pid")
        ]


def histories_of(window: Window) -> Histories:
    """Return the history of each thread by the events up to the end of a window."""
    lives: dict[int, list[_Life]] = {}

    def life(pid: int) -> _Life:
        return lives.setdefault(pid, [_Life(pid)])[-1]

    for event in (*window.earlier, *window.events):
        born = _born(event)
        if born is not None:
            lives.setdefault(born, []).append(_Life(born, event.at_ns))
        for pid, before, after in _told(event):
            one = Observed(event.at_ns, before, after, event)
            life(pid).observed.append(one)
            life(pid).told |= {before, after}
            if event.name == PI_SETPRIO:
                life(pid).changes.append(one)
        for pid, comm in names_in(event):
            names = life(pid).names
            if not names or names[-1][1] != comm:
                names.append((event.at_ns, comm))
        if event.name in _SETTERS:
            pid = event.numbers.get("pid", event.numbers.get("who", 0)) or event.pid
            life(pid).set_at.append(event.at_ns)
        if str(event.fields.get("prev_state", ""))[:1] in ("X", "Z"):
            ended = event.numbers.get("prev_pid", -1)
            life(ended)
            lives[ended].append(_Life(ended, event.at_ns + 1))
    return Histories(lives)


def _told(event: Event) -> Iterator[tuple[int, int, int]]:
    """Yield PID, priority before the event and after it."""
    numbers = event.numbers
    if event.name == "sched_switch":
        for side in ("prev", "next"):
            if f"{side}_prio" in numbers:
                priority = numbers[f"{side}_prio"]
                yield numbers.get(f"{side}_pid", 0), priority, priority
    elif event.name == PI_SETPRIO:
        if {"pid", "oldprio", "newprio"} <= numbers.keys():
            yield numbers["pid"], numbers["oldprio"], numbers["newprio"]
    elif "pid" in numbers and "prio" in numbers:
        yield numbers["pid"], numbers["prio"], numbers["prio"]


def names_in(event: Event) -> Iterator[tuple[int, str]]:
    """Yield PID and name of the threads that an event names."""
    numbers, fields = event.numbers, event.fields
    if event.name == "sched_switch":
        for side in ("prev", "next"):
            if f"{side}_pid" in numbers:
                yield numbers[f"{side}_pid"], str(fields.get(f"{side}_comm", ""))
    elif event.name in RENAMES:
        yield renamed(event), new_name(event)
    elif event.name == "sched_process_fork":
        yield numbers.get("child_pid", -1), str(fields.get("child_comm", ""))
    elif "pid" in numbers and "comm" in fields:
        yield numbers["pid"], str(fields["comm"])


def renamed(event: Event) -> int:
    """Return the PID of the thread that gets a name, of itself or of another."""
    return event.numbers.get("pid", event.pid)


def new_name(event: Event) -> str:
    """Return the name that a thread gets, or that of what it executes."""
    path = str(event.fields.get("newcomm") or event.fields.get("filename", ""))
    return path.rpartition("/")[2][:_NAME_LENGTH]


def _born(event: Event) -> int | None:
    """Return the PID that another thread has from this event on."""
    if event.name == "sched_process_fork":
        return event.numbers.get("child_pid", -1)
    return event.numbers.get("pid", -1) if event.name == "sched_wakeup_new" else None


def _by_a_call(
    set_at: Sequence[int], before: Observed, after: Observed, at_ns: int
) -> list[int]:
    """Return the one priority, if one system call alone can have changed it."""
    first = bisect_left(set_at, before.at_ns)
    if bisect_right(set_at, after.at_ns) - first != 1:
        return []
    return [before.after] if at_ns < set_at[first] else [after.before]


@dataclass(frozen=True, slots=True)
class _Lent:
    """What other threads have lent to one, behind a change of its priority."""

    own: int | None
    """Its own priority; None if nobody has lent it another."""
    raised: tuple[Event, ...]
    """The last events that lent a priority that still holds."""


def _lent_after(before: _Lent, one: Observed) -> _Lent:
    own = before.own
    if own is None and one.after < one.before:
        own = one.before
    if own is None or one.after >= own:
        return _Lent(None, ())
    if one.after < one.before:
        return _Lent(own, (*before.raised, one.event)[-_RAISED:])
    # One lender of several has its lock.
    still = (e for e in before.raised if e.numbers.get("newprio", 0) >= one.after)
    return _Lent(own, tuple(still))


def _inherited(life: _Life, at_ns: int) -> tuple[tuple[Event, ...], bool]:
    """Return the events that lent a priority that still holds, and whether one does."""
    changes = life.changes
    at = bisect_right(changes, at_ns, key=lambda one: one.at_ns)
    lent = life.lent[at]
    if lent.raised:
        return lent.raised, True
    # It was raised before the first event, if what comes next takes it away.
    taken = at < len(changes) and changes[at].after > changes[at].before
    return (), taken and (not at or lent.own is not None)


def _is_to(event: Event, pid: int) -> bool:
    """Tell whether a CPU switches to a thread."""
    return event.numbers.get("next_pid") == pid


def _at(event: Event) -> int:
    return event.at_ns
