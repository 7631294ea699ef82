"""
From the runs of a thread to its cycles: period, missed releases, latencies. Pure.

A run goes from a wake-up to the next sleep. A cycle begins with a run that `periods`
names, at the time of its timer, and other waits within it are a part of it; without a
period every run is a cycle, from its wake-up on. All numbers are of the samples
themselves, not of buckets; a percentile that their number does not support is None.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median_low
from typing import TypedDict

from rtscope.host.units import NS_PER_S
from rtscope.programs.cycles.paces import Pace, period_at
from rtscope.programs.cycles.periods import (
    EXACT_SHARE,
    FEWEST,
    MOST_WAKEUPS,
    Basis,
    Beginnings,
    begun_of,
    missed_in,
    near_of,
    passed_in,
    periods_between,
    periods_in,
)
from rtscope.programs.cycles.threadruns import (
    BETWEEN,
    CUT,
    GAP,
    NO_SLEEP,
    RELATIVE,
    Run,
)
from rtscope.programs.cycles.timeouts import asks_for_the_rest, is_of_others
from rtscope.stats.summary import Summary, summarize_samples


@dataclass(frozen=True, slots=True)
class Cycle:
    """One cycle of a thread; times of CLOCK_MONOTONIC in ns."""

    begin_ns: int
    """When its timer was due; without one, when it was woken."""
    in_ns: int
    """When it got the CPU; from outside of a board: its first own instruction."""
    end_ns: int
    """When it went to sleep; from outside: when it called what it sleeps in."""
    ran_ns: int
    """On a CPU, with the interrupts that came meanwhile."""
    waits: int
    """Waits within it for something else than its timer."""
    timed_waits: int
    """Those of them that another timer of the process ended."""
    preempted: int
    slept: bool
    """False: the time had passed already, and it went on at once."""
    timed: bool
    """False: no timer of the process woke it."""

    @property
    def latency_ns(self) -> int:
        """From its begin until it got the CPU."""
        return self.in_ns - self.begin_ns

    @property
    def response_ns(self) -> int:
        """From its begin to its end."""
        return self.end_ns - self.begin_ns


@dataclass(frozen=True, slots=True)
class Period:
    """At which times the cycles of a thread begin."""

    period_ns: int
    """The median interval between two of them, or what the user gave."""
    basis: Basis
    """What it is known from."""
    asks_relative: bool
    """The thread asks for an interval from then on, though the times keep a period."""
    exact_share: float
    """Of the intervals, that are whole periods to the ns."""
    missed: int | None
    """Whole periods in which it was not due, because it skipped them; None: nothing is
    due, since it sleeps for an interval."""
    passed: int | None
    """Those of them that began within a cycle: the thread skipped them, or made up for
    them without a sleep, which nobody sees from outside; None as above."""
    late_starts: int | None
    """Cycles that began to run when the next one was due already; None as above."""
    overruns: int | None
    """Cycles that ended when the next one was due already; None as above."""
    unsure: int
    """Those that did so in a run that something else began, of a thread that waits for
    that as long as for its timer: whether it is of the cycle is not known."""
    drift_ns_per_s: float | None
    """How much later it is due after a second; None: it has no time to drift from, or
    its sleeps are for different intervals."""
    start_jitter_ns: Summary | None
    """By how much the time between two starts differs from the period."""
    paces: tuple[Pace, ...] = ()
    """Its periods one after another; none if it never changes."""

    @property
    def absolute(self) -> bool:
        """Whether its timer is due at times, not after an interval from then on."""
        return self.basis is Basis.TIME

    @property
    def others_ns(self) -> tuple[int, ...]:
        """The periods that it has at other times than most; each once."""
        return tuple(sorted({x.period_ns for x in self.paces} - {self.period_ns}))


@dataclass(frozen=True, slots=True)
class ThreadCycles:
    """All cycles of a thread."""

    tid: int
    cycles: tuple[Cycle, ...]
    cut: int
    """Cycles of which events are missing: in no number but those of the period."""
    cut_longest_ns: int
    """The longest response time of these, whose begin and end are known; 0: of none."""
    cut_unknown: int
    """Of the cut ones, those whose begin or end is not known."""
    before: int
    """Cycles whose time had passed when the recording began: in no time either."""
    between: int
    """Runs of no cycle: within a sleep, which then went on, or by another timer."""
    withdrawn: int
    """Cycles that the events contradict: in no number."""
    sleeps_for_intervals: bool
    """Its wake-ups end sleeps for an interval: nothing is due, so nothing is missed."""
    period: Period | None
    """None: it has none, and each wake-up is a cycle."""
    latency: Summary | None
    """None: it was never asleep when its time came."""
    execution: Summary
    response: Summary

    @property
    def too_few(self) -> bool:
        """Whether there are too few to find a period, which may be there."""
        no_period = self.period is None and not self.sleeps_for_intervals
        return no_period and len(self.cycles) + self.cut <= FEWEST

    @property
    def worst(self) -> Cycle:
        """The longest; of equal ones the first."""
        return max(self.cycles, key=lambda one: one.response_ns)


def cycles_of_all(
    runs: Mapping[int, Sequence[Run]],
    *,
    given_ns: int | None = None,
    from_ns: int = 0,
) -> Mapping[int, ThreadCycles]:
    """Return the cycles of each thread that has some, by TID."""
    threads = {
        tid: cycles_of(some, given_ns=given_ns, from_ns=from_ns)
        for tid, some in runs.items()
    }
    return {tid: some for tid, some in threads.items() if some is not None}


def cycles_of(
    runs: Sequence[Run], *, given_ns: int | None = None, from_ns: int = 0
) -> ThreadCycles | None:
    """
    Return the cycles of one thread's runs; None without any.

    `given_ns` is a period that the user gave; `from_ns` when the recording began.
    """
    serving, found = begun_of([r for r in runs if not r.flags & BETWEEN], given_ns)
    groups = list(_groups(serving, found))
    if found is not None and _serves_others(groups, found):
        found, groups = None, list(_groups(serving, None))
    idle = {one[0].wait for one in groups if one[0].due_ns} - {0}
    groups = [_until_it_waits(group, idle) for group in groups]
    whole = [group for group in groups if not _is_cut(group)]
    cycles = tuple(map(_cycle, whole))
    kept = tuple(one for one in cycles if one.begin_ns >= from_ns)
    if not kept:
        return None
    cut = [group for group in groups if _is_cut(group)]
    known = [group for group in cut if not any(run.flags & GAP for run in group[1:])]
    cut_ns = [group[-1].out_ns - group[0].begin_ns for group in known]
    return ThreadCycles(
        tid=runs[0].tid,
        cycles=kept,
        cut=len(cut),
        cut_longest_ns=max(cut_ns, default=0),
        cut_unknown=len(cut) - len(known),
        before=len(cycles) - len(kept),
        between=len(runs) - sum(map(len, groups)) - _leading(found),
        withdrawn=0,
        sleeps_for_intervals=found is not None and found.basis is Basis.INTERVAL,
        period=None
        if found is None or found.period_ns is None
        else _period(groups, known, found, found.period_ns),
        **spreads_of(kept),
    )


def _leading(found: Beginnings | None) -> int:
    """Return how many runs came before the first cycle began."""
    return 0 if found is None else min(found.at)


def without(thread: ThreadCycles, cycle: Cycle) -> ThreadCycles | None:
    """Take out a cycle that its events contradict; None if it was the only one."""
    kept = tuple(one for one in thread.cycles if one is not cycle)
    if not kept:
        return None
    return replace(
        thread,
        cycles=kept,
        withdrawn=thread.withdrawn + 1,
        period=thread.period and _period_without(thread, thread.period, cycle),
        **spreads_of(kept),
    )


def _period_without(thread: ThreadCycles, period: Period, cycle: Cycle) -> Period:
    if period.missed is None or period.late_starts is None or period.overruns is None:
        return period
    later = [one.begin_ns for one in thread.cycles if one.begin_ns > cycle.begin_ns]
    until_ns = min(later, default=cycle.begin_ns)
    near = near_of(period.basis)
    each_ns = period_at(period.paces, cycle.begin_ns, period.period_ns)
    number = periods_in(until_ns - cycle.begin_ns, each_ns, near) or 1
    passed = passed_in([cycle.response_ns], [number], [each_ns])
    return replace(
        period,
        missed=max(0, period.missed - (number - 1)),
        passed=max(0, (period.passed or 0) - passed),
        late_starts=period.late_starts - (cycle.latency_ns >= each_ns),
        overruns=period.overruns - (cycle.response_ns > each_ns),
    )


class Spreads(TypedDict):
    """The times of cycles: latency, execution and response."""

    latency: Summary | None
    execution: Summary
    response: Summary


def spreads_of(cycles: Sequence[Cycle]) -> Spreads:
    """Summarize them; one that went on without a sleep was not woken."""
    latency = [one.latency_ns for one in cycles if one.slept]
    return {
        "latency": summarize_samples(latency) if latency else None,
        "execution": summarize_samples([one.ran_ns for one in cycles]),
        "response": summarize_samples([one.response_ns for one in cycles]),
    }


def _groups(runs: Sequence[Run], found: Beginnings | None) -> Iterator[list[Run]]:
    """
    Give the runs of each cycle; those before the first one are of none.

    Events that were lost within one are lost before the next one, too.
    """
    if found is None:
        yield from ([run] for run in runs)
        return
    group: list[Run] = []
    lost = 0
    for index, run in enumerate(runs):
        lost |= run.flags & GAP
        if index in found.at:
            if group:
                yield group
            group = [replace(run, flags=run.flags | lost)]
            lost = 0
        elif group and not _is_of_another_timer(run, runs[index - 1]):
            group.append(run)
    if group:
        yield group


def _until_it_waits(group: list[Run], idle: Set[int]) -> list[Run]:
    """
    Return the runs until the thread waits for its next cycle.

    That is where it slept before this one, and a timer has begun cycles: who wakes it
    there then wants something else.
    """
    first = group[0]
    if first.wait not in idle:
        return group
    again = (at for at, run in enumerate(group) if at and run.wait == first.wait)
    return group[: next(again, len(group))]


def _is_of_another_timer(run: Run, before: Run) -> bool:
    """Whether its timer was set before the wait that it ended: it is another one."""
    return run.due_ns > 0 and run.armed_ns < before.woken_ns


def _is_cut(group: Sequence[Run]) -> bool:
    return any(run.flags & CUT for run in group) or any(
        run.flags & GAP for run in group[1:]
    )


def _cycle(group: Sequence[Run]) -> Cycle:
    first = group[0]
    waited = [run for run in group[1:] if not run.flags & NO_SLEEP]
    return Cycle(
        begin_ns=first.begin_ns,
        in_ns=first.in_ns,
        end_ns=group[-1].out_ns,
        ran_ns=sum(run.ran_ns for run in group),
        waits=len(waited),
        timed_waits=sum(run.due_ns > 0 for run in waited),
        preempted=sum(run.preempted for run in group),
        slept=not first.flags & NO_SLEEP,
        timed=first.due_ns > 0,
    )


IDLE_SHARE = 0.5
"""Of the sleep before a cycle: a thread that waits this long for something else within
its cycles is idle then, as servers are."""


def _period(
    groups: Sequence[list[Run]],
    known: Sequence[list[Run]],
    found: Beginnings,
    period_ns: int,
) -> Period:
    """Judge by the runs of each cycle, and of the cut ones with begin and end."""
    basis = found.basis
    first = [group[0] for group in groups]
    # Where events were lost nobody knows whether a period was missed.
    both = [(a, b) for a, b in pairwise(groups) if not b[0].flags & GAP]
    pairs = [(a[0], b[0]) for a, b in both]
    begins = [(a.begin_ns, b.begin_ns) for a, b in pairs]
    intervals = [after - before for before, after in begins]

    def period_of(group: Sequence[Run]) -> int:
        return period_at(found.paces, group[0].begin_ns, period_ns)

    each_ns = [period_of(a) for a, _ in both]
    numbers = periods_between(begins, each_ns, basis)
    one_apart = [
        abs(b.in_ns - a.in_ns - ns)
        for (a, b), number, ns in zip(pairs, numbers, each_ns, strict=True)
        if number == 1 and a.in_ns and b.in_ns
    ]
    idle = _is_idle_within(groups)
    judged = basis is not Basis.INTERVAL
    whole = [group for group in groups if not _is_cut(group)]
    late = sum(one[0].in_ns - one[0].begin_ns >= period_of(one) for one in whole)
    ended = [*whole, *known]
    over = [x for x in ended if x[-1].out_ns - x[0].begin_ns > period_of(x)]
    alone = [x for x in over if x[0].out_ns - x[0].begin_ns > period_of(x)]
    lasted = [a[0 if idle else -1].out_ns - a[0].begin_ns for a, _ in both]
    return Period(
        period_ns=period_ns,
        paces=found.paces,
        basis=basis,
        asks_relative=any(run.due_ns and run.flags & RELATIVE for run in first),
        exact_share=exact_share(intervals, each_ns),
        missed=missed_in(numbers) if judged else None,
        passed=passed_in(lasted, numbers, each_ns) if judged else None,
        late_starts=late if judged else None,
        overruns=len(alone if idle else over) if judged else None,
        unsure=len(over) - len(alone) if judged and idle else 0,
        drift_ns_per_s=_drift(first, intervals, basis),
        start_jitter_ns=summarize_samples(one_apart) if one_apart else None,
    )


def exact_share(intervals: Sequence[int], periods_ns: Sequence[int]) -> float:
    """Return the share of those that are whole periods to the ns."""
    both = zip(intervals, periods_ns, strict=True)
    exact = sum(one % period_ns == 0 for one, period_ns in both)
    return exact / max(1, len(intervals))


def _serves_others(groups: Sequence[Sequence[Run]], found: Beginnings) -> bool:
    """
    Whether its timer begins no cycle: what it waits for are descriptors.

    It is idle when another wake-up comes, and its timer is a timeout, due at no grid
    and for no interval, or there are many such wake-ups for each of the timer.
    """
    if found.basis is Basis.GIVEN or not _is_idle_within(groups):
        return False
    if sum(map(len, groups)) > MOST_WAKEUPS * len(groups):
        return True
    first = [group[0] for group in groups]
    intervals = [
        b.begin_ns - a.begin_ns for a, b in pairwise(first) if not b.flags & GAP
    ]
    requests = [run.due_ns - run.armed_ns for run in first]
    if found.basis is Basis.INTERVAL:
        sleeps = any(run.flags & RELATIVE for run in first)
        return not sleeps and is_of_others(intervals, requests)
    if found.basis is not Basis.TIME or found.period_ns is None:
        return False
    exact = exact_share(intervals, [found.period_ns] * len(intervals))
    return exact < EXACT_SHARE and not asks_for_the_rest(
        intervals, requests, found.period_ns
    )


def _is_idle_within(groups: Sequence[Sequence[Run]]) -> bool:
    """
    Whether other wake-ups end the wait for the next cycle.

    A lock or a reply within a cycle comes soon; a message to a server, as its timer, at
    any time. Of the waits in one cycle the longest counts: a message may come in parts.
    """
    within = [
        max(b.woken_ns - a.out_ns for a, b in pairwise(group))
        for group in groups
        if len(group) > 1
    ]
    before = [
        b[0].woken_ns - a[-1].out_ns
        for a, b in pairwise(groups)
        if not b[0].flags & (GAP | NO_SLEEP)
    ]
    if sum(len(group) - 1 for group in groups) < FEWEST or not before:
        return False
    return median_low(within) >= IDLE_SHARE * median_low(before)


def _drift(
    first: Sequence[Run], intervals: Sequence[int], basis: Basis
) -> float | None:
    """
    Return by how much a thread that sleeps for an interval is later each second.

    What it asked for is the interval that it wants; what it gets is longer by its own
    cycle. A grid of absolute times has no drift, whatever the thread does.
    """
    if basis is not Basis.INTERVAL:
        return 0.0 if basis is Basis.TIME else None
    interval_ns = median_low([run.due_ns - run.armed_ns for run in first])
    if interval_ns <= 0 or not intervals:
        return None
    mean = sum(intervals) / len(intervals)
    if mean < interval_ns:
        return None  # no sleep is shorter than it asks for: they are of several
    return (mean - interval_ns) / mean * NS_PER_S
