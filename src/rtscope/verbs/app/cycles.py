"""
From the runs of a thread to its cycles: period, missed releases, latencies. Pure.

A run goes from a wake-up to the next sleep. Where a timer wakes the thread at a steady
interval, a cycle begins when that timer is due, and other waits within it are a part of
it; else every run is a cycle, from its wake-up on. All numbers are of the samples
themselves, not of buckets; a percentile that their number does not support is None.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median_low

from rtscope.contract import CycleRuns
from rtscope.host.units import NS_PER_S
from rtscope.stats.summary import Summary, summarize_samples

RELATIVE, NO_SLEEP, CUT, GAP = 1, 2, 4, 8
"""Flags of a run: agent/cycles/cycles.h."""

NEAR_SHARE = 0.25
"""An interval this near to a multiple of the period is that many periods."""
STEADY_SHARE = 0.9
"""Of the intervals, near to a multiple: else the timer is none of a cycle."""
SINGLE_SHARE = 0.5
"""Of the intervals, near to one period: else the median is not the period."""
FEWEST = 4
"""Intervals without which nothing is called a period."""


@dataclass(frozen=True, slots=True)
class Run:
    """From a wake-up to the next sleep; times of CLOCK_MONOTONIC in ns."""

    tid: int
    cpu: int
    armed_ns: int
    """When its timer was set; 0 if no timer of the process woke it."""
    due_ns: int
    """What it was set to; 0 as above."""
    woken_ns: int
    in_ns: int
    out_ns: int
    ran_ns: int
    preempted: int
    flags: int


def runs_in(lines: Iterable[CycleRuns]) -> Mapping[int, list[Run]]:
    """Return the runs of each thread, by TID, in the order of their ends."""
    runs: dict[int, list[Run]] = {}
    for line in lines:
        for row in line.runs:
            runs.setdefault(row[0], []).append(Run(*row))
    return runs


@dataclass(frozen=True, slots=True)
class Cycle:
    """One cycle of a thread; times of CLOCK_MONOTONIC in ns."""

    begin_ns: int
    """When its timer was due; without one, when it was woken."""
    in_ns: int
    """When it got the CPU."""
    end_ns: int
    """When it went to sleep."""
    ran_ns: int
    """On a CPU, with the interrupts that came meanwhile."""
    waits: int
    """Waits within it for something else than its timer."""
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
    """At which times the timer of a thread is due."""

    period_ns: int
    """The median interval between two of them."""
    absolute: bool
    """Its timer is set to a time, not to an interval from then on."""
    exact_share: float
    """Of the intervals, that are whole periods to the ns."""
    missed: int
    """Whole periods in which it was not due, because it skipped them."""
    late_starts: int
    """Cycles that began to run when the next one was due already."""
    overruns: int
    """Cycles that ended when the next one was due already."""
    drift_ns_per_s: float | None
    """How much later it is due after a second; None: it has no time to drift from."""
    start_jitter_ns: Summary | None
    """By how much the time between two starts differs from the period."""


@dataclass(frozen=True, slots=True)
class ThreadCycles:
    """All cycles of a thread."""

    tid: int
    cycles: tuple[Cycle, ...]
    cut: int
    """Cycles of which events are missing: in no number but those of the period."""
    cut_longest_ns: int
    """The longest response time of these, whose begin and end are known; 0: of none."""
    period: Period | None
    """None: it has none, and each wake-up is a cycle."""
    latency: Summary
    execution: Summary
    response: Summary

    @property
    def worst(self) -> Cycle:
        """The longest; of equal ones the first."""
        return max(self.cycles, key=lambda one: one.response_ns)


def cycles_of(runs: Sequence[Run]) -> ThreadCycles | None:
    """Return the cycles of one thread's runs; None without any."""
    due = [run for run in runs if run.due_ns]
    period_ns = _steady([run.due_ns for run in due])
    timed = period_ns is not None
    groups = list(_groups(runs, timed=timed))
    cycles = tuple(_cycle(group) for group in groups if not _is_cut(group))
    cut_ns = [
        group[-1].out_ns - (group[0].due_ns or group[0].woken_ns)
        for group in groups
        if _is_cut(group) and not any(run.flags & GAP for run in group[1:])
    ]
    if not cycles:
        return None
    return ThreadCycles(
        tid=runs[0].tid,
        cycles=cycles,
        cut=len(groups) - len(cycles),
        cut_longest_ns=max(cut_ns, default=0),
        period=None if period_ns is None else _period(due, (cycles, cut_ns), period_ns),
        latency=summarize_samples([one.latency_ns for one in cycles]),
        execution=summarize_samples([one.ran_ns for one in cycles]),
        response=summarize_samples([one.response_ns for one in cycles]),
    )


def _steady(due_ns: Sequence[int]) -> int | None:
    """Return the median interval if most are near to it or to multiples of it."""
    intervals = [b - a for a, b in pairwise(due_ns)]
    if len(intervals) < FEWEST:
        return None
    period_ns = median_low(intervals)
    if period_ns <= 0:
        return None
    periods = [_periods(one, period_ns) for one in intervals]
    near = sum(number is not None for number in periods)
    single = sum(number == 1 for number in periods)
    if near < STEADY_SHARE * len(periods) or single < SINGLE_SHARE * len(periods):
        return None
    return period_ns


def _periods(interval_ns: int, period_ns: int) -> int | None:
    number = round(interval_ns / period_ns)
    off_ns = abs(interval_ns - number * period_ns)
    return number if number > 0 and off_ns <= NEAR_SHARE * period_ns else None


def _groups(runs: Sequence[Run], *, timed: bool) -> Iterator[list[Run]]:
    """Give the runs of each cycle; those before the first timer are of none."""
    if not timed:
        yield from ([run] for run in runs)
        return
    group: list[Run] = []
    for run in runs:
        if run.due_ns:
            if group:
                yield group
            group = [run]
        elif group:
            group.append(run)
    if group:
        yield group


def _is_cut(group: Sequence[Run]) -> bool:
    return any(run.flags & CUT for run in group) or any(
        run.flags & GAP for run in group[1:]
    )


def _cycle(group: Sequence[Run]) -> Cycle:
    first = group[0]
    return Cycle(
        begin_ns=first.due_ns or first.woken_ns,
        in_ns=first.in_ns,
        end_ns=group[-1].out_ns,
        ran_ns=sum(run.ran_ns for run in group),
        waits=len(group) - 1,
        preempted=sum(run.preempted for run in group),
        slept=not first.flags & NO_SLEEP,
        timed=first.due_ns > 0,
    )


def _period(
    due: Sequence[Run],
    cycles_and_cut: tuple[Sequence[Cycle], Sequence[int]],
    period_ns: int,
) -> Period:
    """Judge by the cycles, and the response times of those without all events."""
    cycles, cut_ns = cycles_and_cut
    # Where events were lost nobody knows whether a period was missed.
    pairs = [(a, b) for a, b in pairwise(due) if not b.flags & GAP]
    intervals = [b.due_ns - a.due_ns for a, b in pairs]
    numbers = [_periods(one, period_ns) for one in intervals]
    absolute = not any(run.flags & RELATIVE for run in due)
    one_apart = [
        abs(b.in_ns - a.in_ns - period_ns)
        for (a, b), number in zip(pairs, numbers, strict=True)
        if number == 1 and a.in_ns and b.in_ns
    ]
    return Period(
        period_ns=period_ns,
        absolute=absolute,
        exact_share=sum(one % period_ns == 0 for one in intervals)
        / max(1, len(intervals)),
        missed=sum(number - 1 for number in numbers if number),
        late_starts=sum(one.latency_ns >= period_ns for one in cycles),
        overruns=sum(one.response_ns > period_ns for one in cycles)
        + sum(response_ns > period_ns for response_ns in cut_ns),
        drift_ns_per_s=_drift(due, intervals, absolute=absolute),
        start_jitter_ns=summarize_samples(one_apart) if one_apart else None,
    )


def _drift(
    due: Sequence[Run], intervals: Sequence[int], *, absolute: bool
) -> float | None:
    """
    Return by how much a thread that sleeps for an interval is later each second.

    What it asked for is the interval that it wants; what it gets is longer by its own
    cycle. A grid of absolute times has no drift, whatever the thread does.
    """
    if absolute:
        return 0.0
    interval_ns = median_low([run.due_ns - run.armed_ns for run in due])
    if interval_ns <= 0 or not intervals:
        return None
    mean = sum(intervals) / len(intervals)
    return (mean - interval_ns) / mean * NS_PER_S
