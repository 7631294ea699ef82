"""
When the latest wake-ups of runs were, and whether they come at a steady distance.

The times are those of the worst wake-ups, or of latencies beyond another tool's
histogram; where these are too few, the seconds with the largest maxima. Late wake-ups
of several CPUs at once are one event. How many of them are tested is chosen by their
latencies alone, which under chance say nothing about their times: the number above the
largest drop, and all.

For each period tried, events nearer than a quarter of it are one event: a burst counts
once. The statistic is Rayleigh's, added over the runs (each has its own phase): the
sum over runs of |Σ exp(2πi t / period)|² / n, at its largest over an octave of periods.
Chance: between the first and the last event of each run the others lie anywhere, but no
nearer than that quarter, which is exact for a Poisson process. The p-value is the share
of drawn spreads with as large a statistic, times the number of octaves tried.

A steady distance is named if p is at most 0.05 and most events keep to it, in at least
half of its cycles. Both only make it rarer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from rtscope.contract import ThreadResult, Tick
from rtscope.host.units import NS_PER_S
from rtscope.record.model import RunRecord
from rtscope.stats.episodes import GAP_INTERVALS, GAP_NS

# --- whether events come at a steady distance, tested against chance ------------------

SIGNIFICANCE = 0.05

LEAST_EVENTS = 8
"""With fewer no period could be told from chance."""

LEAST_OF_RUN = 4
"""A run with fewer events has no distance to speak of."""

LEAST_CYCLES = 5
ON_TIME = 0.15
"""An event is on time that is so near to its cycle, as a share of the period."""
SHARE_ON_TIME = 0.6
SHARE_OF_CYCLES = 0.6
"""More than half: else half of a period would be named as well."""

APART = 0.25
"""Events nearer than this share of the octave's shortest period are one."""

STEPS_OF_PERIOD = 4
"""A period shorter than so many steps of the stored times is not seen."""

OVERSAMPLING = 5
FEW_DRAWS = 499
DRAWS = 4_999

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Distance:
    """A steady distance between events."""

    period_ns: float
    error_ns: float
    """Standard error of the period."""
    on_time: int
    """Events that keep to it, bursts counted once."""
    events: int
    p: float


@dataclass(frozen=True, slots=True)
class Steady:
    """The result of a test: which periods were tried, and the one found."""

    shortest_ns: float
    longest_ns: float
    found: Distance | None


def steady_distance(
    runs: Sequence[Sequence[int]], *, step_ns: int = 1, tests: int = 1
) -> Steady | None:
    """
    Test the times of events in each run, in ns; None with too few of them.

    `step_ns` is the step of the times; `tests` multiplies each p-value, for a caller
    that tests several choices of events.
    """
    kept = [sorted(times) for times in runs if len(times) >= LEAST_OF_RUN]
    kept = [times for times in kept if times[-1] > times[0]]
    if sum(map(len, kept)) < LEAST_EVENTS:
        return None
    span = [np.asarray(times, dtype=float) - times[0] for times in kept]
    total_ns = sum(float(times[-1]) for times in span)
    count = sum(len(times) - 1 for times in span)
    cycles = (LEAST_CYCLES if len(span) == 1 else LEAST_OF_RUN) - 1
    longest_ns = max(float(times[-1]) for times in span) / cycles
    shortest_ns = max(total_ns / (2 * count), STEPS_OF_PERIOD * float(step_ns))
    if shortest_ns >= longest_ns:
        return None
    octaves = list(_octaves(shortest_ns, longest_ns))
    factor = tests * len(octaves)
    found = None
    for low_ns, high_ns in octaves:
        tested = _tested(span, low_ns, high_ns=high_ns, step_ns=step_ns, factor=factor)
        if tested is not None and tested.p <= SIGNIFICANCE and _better(tested, found):
            found = tested
    return Steady(shortest_ns=shortest_ns, longest_ns=longest_ns, found=found)


def _better(one: Distance, other: Distance | None) -> bool:
    """Whether a distance explains more events; of equals the longer one does."""
    if other is None:
        return True
    return (one.on_time, one.period_ns) > (other.on_time, other.period_ns)


def _octaves(shortest_ns: float, longest_ns: float) -> Iterator[tuple[float, float]]:
    high_ns = longest_ns
    while high_ns > shortest_ns:
        low_ns = max(high_ns / 2, shortest_ns)
        # What is left of less than a quarter of an octave is no test of its own.
        if low_ns < shortest_ns * 1.2:
            low_ns = shortest_ns
        yield low_ns, high_ns
        high_ns = low_ns


def _tested(
    runs: Sequence[Floats],
    low_ns: float,
    *,
    high_ns: float,
    step_ns: int,
    factor: int,
) -> Distance | None:
    """Return the best distance of an octave; None if most events keep to none."""
    gap_ns = low_ns * APART
    thinned = [_apart(times, gap_ns) for times in runs]
    thinned = [times for times in thinned if len(times) >= LEAST_OF_RUN]
    if sum(map(len, thinned)) < LEAST_EVENTS:
        return None
    longest_ns = max(float(times[-1]) for times in thinned)
    first, last = 1 / high_ns, 1 / low_ns
    count = max(2, int((last - first) * longest_ns * OVERSAMPLING) + 1)
    width = (last - first) / (count - 1)
    powers = _powers([times[None, :] for times in thinned], first, width, count)[0]
    best = int(powers.argmax())
    frequency = first + best * width
    distance = _kept_to(thinned, frequency)
    if distance is None:
        return None
    p = _share_as_large(
        thinned,
        float(powers[best]),
        grid=(first, width, count),
        gap_ns=gap_ns,
        step_ns=step_ns,
        factor=factor,
    )
    return Distance(*distance, p)


def _apart(times: Floats, gap_ns: float) -> Floats:
    """Keep the first event, and each that comes no sooner than the gap after one."""
    kept = [0.0]
    for at in times[1:].tolist():
        if at - kept[-1] >= gap_ns:
            kept.append(at)
    return np.asarray(kept)


def _powers(runs: Sequence[Floats], first: float, width: float, count: int) -> Floats:
    """Return the statistic of each drawn spread (row) at each frequency (column)."""
    found = np.zeros((len(runs[0]), count))
    for times in runs:
        at = np.exp(2j * np.pi * first * times)
        turn = np.exp(2j * np.pi * width * times)
        for column in range(count):
            total = at.sum(axis=1)
            found[:, column] += (total.real**2 + total.imag**2) / times.shape[1]
            at *= turn
    return found


def _share_as_large(
    runs: Sequence[Floats],
    observed: float,
    *,
    grid: tuple[float, float, int],
    gap_ns: float,
    step_ns: int,
    factor: int,
) -> float:
    """Return the share of drawn spreads with as large a statistic, times the factor."""
    rng = np.random.default_rng(0)
    as_large = 0
    draws = 0
    for more in (FEW_DRAWS, DRAWS - FEW_DRAWS):
        drawn = [
            _drawn(rng, times, more, gap_ns=gap_ns, step_ns=step_ns) for times in runs
        ]
        highest = _powers(drawn, *grid).max(axis=1)
        as_large += int((highest >= observed * (1 - 1e-9)).sum())
        draws += more
        p = min(1.0, factor * (as_large + 1) / (draws + 1))
        if p > 4 * SIGNIFICANCE:
            break
    return p


def _drawn(
    rng: np.random.Generator,
    times: Floats,
    draws: int,
    *,
    gap_ns: float,
    step_ns: int,
) -> Floats:
    """Draw spreads with the same first and last event, none nearer than the gap."""
    inner = len(times) - 2
    free_ns = max(float(times[-1]) - gap_ns * (inner + 1), 0.0)
    shrunk = np.sort(rng.random((draws, inner)) * free_ns, axis=1)
    placed = shrunk + gap_ns * np.arange(1, inner + 1)
    if step_ns > 1:
        placed = np.floor(placed / step_ns) * step_ns
    ends = np.zeros((draws, 1)), np.full((draws, 1), times[-1])
    return np.concatenate([ends[0], placed, ends[1]], axis=1)


def _kept_to(
    runs: Sequence[Floats], frequency: float
) -> tuple[float, float, int, int] | None:
    """
    Fit the period near a frequency; return it, its error, events on time, all events.

    None unless most events keep to it, in most of its cycles.
    """
    period = 1 / frequency
    fitted = None
    for _ in range(3):
        fitted = _fit(runs, period)
        if fitted is None:
            return None
        period = fitted[0]
    assert fitted is not None
    period, error, on_time, hit, cycles = fitted
    events = sum(map(len, runs))
    if on_time < SHARE_ON_TIME * events or hit < max(
        LEAST_CYCLES, SHARE_OF_CYCLES * cycles
    ):
        return None
    return period, error, on_time, events


def _fit(
    runs: Sequence[Floats], period: float
) -> tuple[float, float, int, int, int] | None:
    """Least squares of the times on their cycles; each run has its own phase."""
    products = squares = 0.0
    residues: list[Floats] = []
    on_time = hit = cycles = 0
    parts: list[tuple[Floats, Floats]] = []
    for times in runs:
        turns = times / period
        phase = float(np.angle(np.exp(2j * np.pi * turns).sum())) / (2 * np.pi)
        number = np.round(turns - phase)
        near = np.abs(turns - phase - number) <= ON_TIME
        if near.sum() < 2:
            continue
        x, y = number[near], times[near]
        on_time += int(near.sum())
        hit += len(np.unique(x))
        cycles += int(x[-1] - x[0]) + 1
        x, y = x - x.mean(), y - y.mean()
        products += float((x * y).sum())
        squares += float((x * x).sum())
        parts.append((x, y))
    if squares == 0:
        return None
    slope = products / squares
    residues = [y - slope * x for x, y in parts]
    freedom = max(on_time - len(parts) - 1, 1)
    variance = sum(float((r * r).sum()) for r in residues) / freedom
    return slope, float(np.sqrt(variance / squares)), on_time, hit, cycles


# --- when the latest wake-ups of runs were, and whether they come at a steady distance

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
    span_ns = _span_ns(record.ticks)
    seconds = tuple(_seconds(record, span_ns))
    return LateTimes(events=seconds, step_ns=span_ns, from_start=True, seconds=True)


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


def _span_ns(ticks: Sequence[Tick]) -> int:
    """Return for how long a tick stands: a second, and longer in a long run."""
    return max(1, round(ticks[-1].t_ns / NS_PER_S / len(ticks))) * NS_PER_S


def _seconds(record: RunRecord, span_ns: int) -> list[LateEvent]:
    """Return the quarter of the ticks with the largest maxima."""
    seconds = [
        LateEvent(
            max(round(tick.t_ns / NS_PER_S) * NS_PER_S - span_ns, 0),
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
