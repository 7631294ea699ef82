"""
What a start of a program showed a search: its levers, its worst cycle, its instants.

Threads are known by their number in the order in which a start makes them, as a start
of the same program makes them in the same order and gives them other ids. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property

from rtscope.host.errors import UsageError, no_such
from rtscope.host.units import NS_PER_MS, NS_PER_S, NS_PER_US
from rtscope.programs.outside.file import Kind
from rtscope.programs.outside.model import (
    ORDINARY,
    Outside,
    OutsideCycle,
    OutsideThread,
)
from rtscope.programs.outside.wakeups import OwnThread, Party, Reader, Wakeup
from rtscope.verbs.test.file import ProgramTest
from rtscope.verbs.test.judge import budget_of, judged_threads
from rtscope.verbs.test.search.levers import Lever, Settings, Space
from rtscope.verbs.test.search.meetings import instants_near
from rtscope.verbs.test.search.trials import Instant, Proposal, Trial

FIRST_THREAD = 1

STEP_US = 2
TICK_US = 4000
"""Of a kernel with 250 ticks a second: how much later the whole program may start."""

LONGEST_PERIOD_NS = 100 * NS_PER_MS
MOST_LEVERS = 16
MOST_INSTANTS = 400
"""The nearest to the release of the worst cycle."""

_UNITS = {"_NS": 1, "_US": NS_PER_US, "_MS": NS_PER_MS, "_S": NS_PER_S}
"""Of a parameter, by the end of its name."""


@dataclass(frozen=True)
class Start:
    """One start of a program, by the numbers of its threads."""

    outside: Outside
    threads: Mapping[int, OwnThread]
    """By their number."""
    parents: Mapping[int, int]
    """Numbers of threads, and of who made them."""
    numbers: Mapping[int, int] = field(init=False)
    """By the tid."""

    def __post_init__(self) -> None:
        numbers = {one.tid: number for number, one in self.threads.items()}
        object.__setattr__(self, "numbers", numbers)

    def party(self, who: Party) -> str:
        """Return how the search calls a thread, of the program or another."""
        number = self.numbers.get(who.tid)
        return who.name if number is None else party_of(number)

    def with_descendants(self, number: int, *, but: Set[int]) -> frozenset[str]:
        """Return a thread and all that it makes, directly or not, but for some."""
        found = {number}
        for child in sorted(self.parents):
            if self.parents[child] in found and child not in but:
                found.add(child)
        return frozenset(party_of(one) for one in found)


def party_of(number: int) -> str:
    """Return how the search calls a thread of the program."""
    return f"thread {number}"


@dataclass(frozen=True)
class Record:
    """The record of a boot, read once for all of its starts."""

    reader: Reader

    @cached_property
    def _threads(self) -> Mapping[int, OwnThread]:
        return {one.tid: one for one in self.reader.threads}

    def start(self, outside: Outside, pid: int) -> Start:
        """Return the threads of the start that began with a process."""
        numbers = {pid: FIRST_THREAD}
        parents: dict[int, int] = {}
        for entry in self.reader.record.entries:
            if entry.kind == Kind.FORK and entry.tid in numbers and entry.detail:
                numbers[entry.value] = entry.detail
                parents[entry.detail] = numbers[entry.tid]
        threads = {
            number: self._threads[tid]
            for tid, number in numbers.items()
            if tid in self._threads
        }
        return Start(outside, threads, parents)


# --- what may be varied ---------------------------------------------------------------


def judged_name(
    test: ProgramTest, start: Start, *, wanted: str | None = None
) -> str | None:
    """
    Return the name of the thread whose worst cycle is searched.

    It is the one that is wanted, else the one nearest to its limit; where no thread has
    a limit, nearest to its period, as a loop has to be done by then. None: no thread
    had a whole cycle. Raises UsageError if the wanted one had none.
    """
    threads = judged_threads(test, start.outside)
    if not threads:
        return None
    if wanted is not None:
        names = sorted({one.name for one in threads})
        if wanted not in names:
            raise UsageError(no_such("thread with a whole cycle", wanted, names))
        return wanted

    def rank(one: OutsideThread) -> tuple[bool, float, int, str]:
        limit_ns = budget_of(test, one.name).response_ns
        most_ns = limit_ns or one.period_ns
        share = one.worst.response_ns / most_ns if most_ns else 0.0
        return limit_ns is None, -share, one.prio, one.name

    return min(threads, key=rank).name


def space_of(test: ProgramTest, start: Start) -> Space:
    """
    Return what a search varies.

    That is the phase at which each thread with a period begins, that of the first
    thread, and the parameters of the test.
    """
    periods = dict(_periods(test, start))
    return Space.of(
        [
            *(_parameter(name, *limits) for name, limits in test.vary.items()),
            *(_phase(start, number, periods) for number in periods),
        ]
    )


def _parameter(name: str, low: int, high: int) -> Lever:
    unit = next((ns for end, ns in _UNITS.items() if name.endswith(end)), 0)
    step = max(1, STEP_US * NS_PER_US // unit) if unit else 1
    return Lever(name, low, high, step, ns_per_unit=unit or NS_PER_US)


def _periods(test: ProgramTest, start: Start) -> Iterator[tuple[int, int]]:
    """Yield threads with a phase, each with its period; the most urgent first."""
    with_period = sorted(
        (one.prio, start.numbers[one.tid], one.period_ns)
        for one in judged_threads(test, start.outside)
        if one.period_ns and one.tid in start.numbers
    )
    for _, number, period_ns in with_period[:MOST_LEVERS]:
        if number != FIRST_THREAD:
            yield number, min(period_ns, LONGEST_PERIOD_NS)
    yield FIRST_THREAD, TICK_US * NS_PER_US


def _phase(start: Start, number: int, periods: Mapping[int, int]) -> Lever:
    """Return a lever; a thread with one of its own does not move with its creator."""
    period_us = max(STEP_US, periods[number] // NS_PER_US)
    return Lever(
        f"{_PHASE} {number}",
        0,
        period_us - 1,
        STEP_US,
        ns_per_unit=NS_PER_US,
        moves=start.with_descendants(number, but=periods.keys()),
        period=period_us,
    )


_PHASE = "phase"


def thread_of(lever: str) -> int | None:
    """Return the number of the thread whose phase a lever is; None: a parameter."""
    word, _, number = lever.partition(" ")
    return int(number) if word == _PHASE and number.isdecimal() else None


def settings_seen(space: Space, start: Start, values: Mapping[str, str]) -> Settings:
    """Return the settings nearest to a start that was made without phases."""
    return tuple(_seen(lever, start, values) for lever in space.levers)


def _seen(lever: Lever, start: Start, values: Mapping[str, str]) -> int:
    number = thread_of(lever.name)
    if number is None:
        text = values.get(lever.name, "")
        value = int(text) if text.lstrip("-").isdecimal() else lever.low
    else:
        value = _began_ns(start.threads[number], number) // lever.ns_per_unit
    found = lever.nearest(value)
    return lever.low if found is None else found


def _began_ns(thread: OwnThread, number: int) -> int:
    """Return when a thread began, as the plugin decides it; 0: not seen."""
    return next(
        (
            one.first_ns
            for one in thread.wakeups
            if one.first_ns and (number == FIRST_THREAD or one.prio < ORDINARY)
        ),
        0,
    )


def needed_warmup_ns(space: Space, births_ns: Sequence[int]) -> int:
    """
    Return how long a warm-up has to be, so that no thread that stands still is judged.

    `births_ns` has the begins of a start's threads. At half of the warm-up its memory
    is read, with the highest priority: by then all threads have to go on.
    """
    stands_ns = sum(
        one.period * one.ns_per_unit
        for one in space.levers
        if one.period and thread_of(one.name) is not None
    )
    made_ns = max(births_ns, default=0) - min(births_ns, default=0)
    return 2 * (made_ns + stands_ns + MARGIN_NS)


MARGIN_NS = 5 * NS_PER_MS
"""For what the threads do before they wait for their first period."""


# --- what a trial showed --------------------------------------------------------------


def trial_of(proposal: Proposal, start: Start, space: Space, name: str) -> Trial:
    """Return what a start showed; its worst is 0 if no cycle was whole."""
    found = [
        (one.response_ns, thread, one)
        for thread in start.outside.threads
        if thread.name == name and thread.tid in start.numbers
        for one in thread.cycles
    ]
    if not found:
        return Trial(proposal, 0)
    worst_ns, thread, cycle = max(found, key=lambda row: row[0])
    return Trial(
        proposal,
        worst_ns,
        judged=party_of(start.numbers[thread.tid]),
        involved=frozenset(_involved(start, cycle)),
        instants=_instants(start, cycle),
        waits_ns=tuple(
            (one.began_ns - cycle.begin_ns, one.ended_ns - cycle.begin_ns)
            for one in cycle.waits
            if one.is_lock
        ),
        phases_ns=tuple(_due_ns(start, lever) for lever in space.levers),
    )


def _due_ns(start: Start, lever: Lever) -> int | None:
    number = thread_of(lever.name)
    if number in (None, FIRST_THREAD) or not lever.period:
        return None
    due = [
        one.release_ns
        for one in start.threads[number].wakeups
        if one.release_ns is not None
    ]
    return due[-1] % (lever.period * lever.ns_per_unit) if due else None


def _involved(start: Start, cycle: OutsideCycle) -> Iterator[str]:
    for push in cycle.preemptions:
        yield start.party(push.by)
    for wait in cycle.waits:
        if wait.ended_by is not None:
            yield start.party(wait.ended_by)


def _instants(start: Start, cycle: OutsideCycle) -> tuple[Instant, ...]:
    seen = [
        Instant(party, kind, at_ns - cycle.begin_ns)
        for number, thread in start.threads.items()
        for wakeup in thread.wakeups
        for party, kind, at_ns in _of_wakeup(start, party_of(number), wakeup)
    ]
    reach_ns = sorted(abs(one.at_ns) for one in seen)[:MOST_INSTANTS][-1:]
    near_ns = reach_ns[0] if reach_ns else 0
    return instants_near(seen, before_ns=near_ns, after_ns=near_ns)


def _of_wakeup(
    start: Start, party: str, wakeup: Wakeup
) -> Iterator[tuple[str, str, int]]:
    yield party, "release", wakeup.release_ns or wakeup.woken_ns
    if wakeup.first_ns is None:
        return
    yield party, "running", wakeup.first_ns
    for call in wakeup.calls:
        yield party, "call", call.began_ns
    for push in wakeup.preemptions:
        if start.numbers.get(push.by.tid) is None:
            yield push.by.name, "running", push.began_ns
    if wakeup.asleep_ns is not None:
        yield party, "stopped", wakeup.asleep_ns
