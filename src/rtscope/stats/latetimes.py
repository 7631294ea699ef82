"""
When the latest wake-ups of runs were, and whether they come at a steady distance.

The times are those of the worst wake-ups, or of latencies beyond another tool's
histogram; where these are too few, the seconds with the largest maxima. Late wake-ups
of several CPUs at once are one event. How many of them are tested is chosen by their
latencies alone, which under chance say nothing about their times: the number above the
largest drop, and all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rtscope.contract import ThreadResult
from rtscope.host.units import NS_PER_S
from rtscope.record.model import RunRecord
from rtscope.stats.episodes import GAP_INTERVALS, GAP_NS
from rtscope.stats.steady import LEAST_EVENTS, Steady, steady_distance

MOST_EVENTS = 48
"""Of one run; a test of several runs takes twice as many together."""

MOST_LISTED = 64
"""Of another tool's latencies a record lists so many; fewer are all that had a time."""

DROP = 1.5
"""The ratio of two neighbouring latencies that sets the longer ones apart."""

LEAST_SECONDS = 4 * LEAST_EVENTS
"""Per-second maxima show late ones only if most seconds have none."""


@dataclass(frozen=True, slots=True)
class LateEvent:
    """One event of late wake-ups."""

    at_ns: int
    """Since the start of the run, or since the first event if that is unknown."""
    latency_ns: int | None
    """Its longest latency; None: beyond the tool's histogram."""


@dataclass(frozen=True, slots=True)
class LateTimes:
    """The latest events of one run, in the order of time."""

    events: tuple[LateEvent, ...]
    step_ns: int
    """The step of their times."""
    from_start: bool
    seconds: bool = False
    """Whether each is a second with a late wake-up."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Whether the latest events of runs come at a steady distance."""

    times: tuple[LateTimes, ...]
    """The events that were tested, of each run."""
    steady: Steady
    events: int
    """How many were tested."""
    step_ns: int
    """The coarsest step of the times."""
    seconds: bool
    """Whether an event is a second with a late wake-up."""


def timing_of(records: Sequence[RunRecord]) -> Timing | None:
    """Test the latest events of runs that are alike; None with too few of them."""
    runs = [late_times(record) for record in records]
    runs = [run for run in runs if run.events]
    choices = list(_choices(runs))
    interval_ns = max((_interval_ns(record) for record in records), default=0)
    timings = []
    for chosen in choices:
        step_ns = max([interval_ns * GAP_INTERVALS // 2, *(r.step_ns for r in chosen)])
        steady = steady_distance(
            [[event.at_ns for event in run.events] for run in chosen],
            step_ns=step_ns,
            tests=len(choices),
        )
        if steady is not None:
            timing = Timing(
                times=tuple(chosen),
                steady=steady,
                events=sum(len(run.events) for run in chosen),
                step_ns=max(run.step_ns for run in chosen),
                seconds=any(run.seconds for run in chosen),
            )
            timings.append(timing)
    named = [one for one in timings if one.steady.found is not None]
    return next(iter([*named, *reversed(timings)]), None)


def late_times(record: RunRecord) -> LateTimes:
    """Return the latest events of a run, as exact as its record has them."""
    threads = record.result.threads
    events = _grouped(_known(threads), _gap_ns(threads))
    foreign = [t.foreign for t in threads if t.foreign is not None]
    exact = LateTimes(
        events=tuple(
            LateEvent(max(event.at_ns - record.result.start_ns, 0), event.latency_ns)
            for event in events
        ),
        step_ns=max((one.time_step_ns for one in foreign), default=1),
        from_start=all(one.times_from_start for one in foreign),
    )
    if len(events) >= LEAST_EVENTS or len(record.ticks) < LEAST_SECONDS:
        return exact
    return LateTimes(
        events=tuple(_seconds(record)), step_ns=NS_PER_S, from_start=True, seconds=True
    )


def _known(threads: Sequence[ThreadResult]) -> list[LateEvent]:
    """Return the late wake-ups of known time that no other exceeds."""
    cut = [thread.worst[-1].latency_ns for thread in threads if _is_cut(thread)]
    floor_ns = max(cut, default=-1)
    known = [
        LateEvent(wakeup.expiry_ns, wakeup.latency_ns)
        for thread in threads
        for wakeup in thread.worst
        if wakeup.latency_ns > floor_ns
    ]
    if known:
        return known
    return [
        LateEvent(at_ns, None)
        for thread in threads
        if thread.foreign is not None
        for at_ns in thread.foreign.beyond_at_ns
    ]


def _is_cut(thread: ThreadResult) -> bool:
    """Whether a wake-up that is not listed may be as late as the last one listed."""
    if not thread.worst or thread.foreign is None:
        return 0 < len(thread.worst) < (thread.samples or 0)
    return len(thread.worst) >= MOST_LISTED


def _gap_ns(threads: Sequence[ThreadResult]) -> int:
    return max([GAP_NS, *(GAP_INTERVALS * t.interval_ns for t in threads)])


def _grouped(wakeups: Sequence[LateEvent], gap_ns: int) -> list[LateEvent]:
    """Make one event of wake-ups that follow each other within the gap."""
    groups: list[LateEvent] = []
    end_ns = 0
    for one in sorted(wakeups, key=lambda w: w.at_ns):
        if groups and one.at_ns <= end_ns + gap_ns:
            longest = max(groups[-1].latency_ns or 0, one.latency_ns or 0)
            groups[-1] = LateEvent(groups[-1].at_ns, longest or None)
        else:
            groups.append(one)
        end_ns = max(end_ns, one.at_ns + (one.latency_ns or 0))
    return groups


def _seconds(record: RunRecord) -> list[LateEvent]:
    """Return the quarter of the seconds with the largest maxima."""
    seconds = [
        LateEvent(
            max(round(tick.t_ns / NS_PER_S) - 1, 0) * NS_PER_S,
            max((cpu.max_ns for cpu in tick.cpus), default=0),
        )
        for tick in record.ticks
    ]
    return _latest(seconds, len(seconds) // 4)


def _latest(events: Sequence[LateEvent], count: int) -> list[LateEvent]:
    """Return so many events with the longest latencies, in the order of time."""
    latest = sorted(events, key=lambda e: -(e.latency_ns or 0))[:count]
    return sorted(latest, key=lambda e: e.at_ns)


def _choices(runs: Sequence[LateTimes]) -> list[list[LateTimes]]:
    """Return the events to test: those above the largest drop, and all."""
    pooled = sorted(
        (event.latency_ns or 0 for run in runs for event in run.events), reverse=True
    )
    most = MOST_EVENTS * min(len(runs), 2)
    if len(pooled) > most:  # of equal ones all or none, as they are kept by their time
        above = [ns for ns in pooled if ns > pooled[most]]
        pooled = above if above else pooled[:most]
    if len(pooled) < LEAST_EVENTS:
        return []
    drops = [
        (longer / max(shorter, 1), place)
        for place, (longer, shorter) in enumerate(pairwise(pooled), 1)
        if place >= LEAST_EVENTS
    ]
    ratio, place = max(drops, default=(0.0, 0))
    floors = [pooled[place - 1], pooled[-1]] if ratio >= DROP else [pooled[-1]]
    return [_above(runs, floor_ns, most=most) for floor_ns in floors]


def _above(runs: Sequence[LateTimes], floor_ns: int, *, most: int) -> list[LateTimes]:
    """Return the events of at least a latency; of unknown ones the first."""
    return [
        LateTimes(
            events=tuple(
                event for event in run.events if (event.latency_ns or 0) >= floor_ns
            )[:most],
            step_ns=run.step_ns,
            from_start=run.from_start,
            seconds=run.seconds,
        )
        for run in runs
    ]


def _interval_ns(record: RunRecord) -> int:
    return max((t.interval_ns for t in record.result.threads), default=0)
