"""
Whether events come at a steady distance, tested against chance.

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

import numpy as np
import numpy.typing as npt

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
