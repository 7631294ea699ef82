"""
What a time without (or with few) misses supports, and whether misses are Poisson.

Misses are counted as episodes, and episodes as a Poisson process. Which time is the
exposure depends on the claim: for a claim about the machine ("fewer than one miss per
hour on any of its CPUs") it is the wall-clock time during which all its CPUs were
watched: that of the CPU watched least; for a claim about a CPU it is the time of that
CPU. Times of several CPUs are never added up for a claim about the machine: 10 min on 4
CPUs support fewer than one miss per 3.3 min, not per 13.

Σ (nᵢ - mᵢ)² / mᵢ over counts nᵢ of which mᵢ were expected, divided by its degrees of
freedom, is the dispersion φ: 1 for independent episodes of one rate, about the size of
a burst if they come in bursts, more if the rate differs from run to run.

Limits are widened by φ (quasi-Poisson: φ · limit(k/φ), McCullagh and Nelder 1989, 9.2)
wherever it is above 1, also where it is not significant: with few episodes no test
excludes a dispersion that matters. Two limits of 95 % that hold for independent
episodes still do, and are a few percent wider than they need be. A verdict mentions
only a significant dispersion.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rtscope.contract import ThreadResult
from rtscope.host.units import NS_PER_H
from rtscope.stats.summary import CONFIDENCE, counted_of

MIN_WAKEUPS = 1_000
"""
Fewest wake-ups of each CPU for the verdict that a deadline held.

1,000 without a miss rule out at 95 % that one wake-up in 334 misses (3/N). With fewer,
a CPU that is late in 1 % of its wake-ups often shows none, however long the interval.
"""


@dataclass(frozen=True, slots=True)
class Watched:
    """How long runs of equal conditions watched the CPUs, all runs added up."""

    least_ns: int
    """Time of the CPU that was watched least: what every CPU supports by itself."""
    longest_ns: int
    """Time of the CPU that was watched longest."""
    fewest_wakeups: int | None
    """
    Wake-ups of the CPU that has the fewest, early ones left out.

    None if a tool counted none of a CPU.
    """


def watched(runs: Sequence[Sequence[ThreadResult]]) -> Watched:
    """Add up the times of each thread over runs that have the same threads."""
    per_cpu = list(zip(*runs, strict=True))
    times = [sum(t.watched_ns for t in one) for one in per_cpu]
    return Watched(
        least_ns=min(times, default=0),
        longest_ns=max(times, default=0),
        fewest_wakeups=_fewest(_looked(one) for one in per_cpu),
    )


def _fewest(counts: Iterable[int | None]) -> int | None:
    known = list(counts)
    return (
        None if None in known else min((n for n in known if n is not None), default=0)
    )


def upper_limit(
    events: int, *, confidence: float = CONFIDENCE, dispersion: float = 1.0
) -> float:
    """
    Return the one-sided upper limit of the expected count, given the observed one.

    χ²(confidence; 2k + 2) / 2 (Garwood 1936): 3.0 for no event, 4.7 for one. Where
    events cluster, φ · limit(k/φ): see `stats.dispersion`.
    """
    return dispersion * _half_chi2(confidence, events / dispersion + 1)


def lower_limit(
    events: int, *, confidence: float = CONFIDENCE, dispersion: float = 1.0
) -> float:
    """Return the one-sided lower limit of the expected count: χ²(1 - c; 2k) / 2."""
    if not events:
        return 0.0
    return dispersion * _half_chi2(1 - confidence, events / dispersion)


def _half_chi2(probability: float, half_degrees: float) -> float:
    """Return χ²(probability; 2 half_degrees) / 2: the inverse of an incomplete Γ."""
    if half_degrees == 1:  # no event: an exponential distribution
        return -math.log1p(-probability)
    # Not scipy.stats, which has it by name: it takes half a second to load.
    from scipy.special import gammaincinv

    return float(gammaincinv(half_degrees, probability))


RUN_VARIATION = 1.0
"""
How much the rate of episodes may vary from run to run: its standard deviation by its
mean. Nothing measures it where there is no episode, and boots, temperature and the
placement of memory make rates of real machines differ by such factors.
"""


def effective_runs(lengths_ns: Sequence[int]) -> float:
    """Return (Σ T)² / Σ T²: the number of equally long runs that tell as much."""
    squares = sum(ns * ns for ns in lengths_ns)
    return sum(lengths_ns) ** 2 / squares if squares else 1.0


def limits_over_runs(
    events: int,
    *,
    runs: float,
    dispersion: float = 1.0,
    confidence: float = CONFIDENCE,
) -> tuple[float, float]:
    """
    Return limits of the expected count in runs like these, not in these alone.

    The rate of a run is taken from a Γ distribution whose standard deviation is
    RUN_VARIATION of its mean, so the count has a negative binomial distribution.
    Without an event the upper limit is 19 for one run, 4.5 for four, 3.5 for ten and
    3.0 for very many.
    """
    shape, seen = runs / RUN_VARIATION**2, events / dispersion
    if not events:  # I_x(shape, 1) is x^shape
        upper = (1 - confidence) ** (1 / shape)
        return 0.0, dispersion * shape * (1 - upper) / upper
    from scipy.special import betaincinv

    upper = float(betaincinv(shape, seen + 1, 1 - confidence))
    lower = float(betaincinv(seen, shape, 1 - confidence))
    return (
        dispersion * shape * lower / (1 - lower),
        dispersion * shape * (1 - upper) / upper,
    )


def rate_limits_per_hour(
    events: int,
    exposure_ns: int,
    *,
    confidence: float = CONFIDENCE,
    dispersion: float = 1.0,
) -> tuple[float, float]:
    """
    Return the lowest and the highest rate per hour that the count is compatible with.

    Each is a one-sided limit at this confidence, of the rate during these runs. Nothing
    observed for no time: (0, ∞).
    """
    if exposure_ns <= 0:
        return 0.0, math.inf
    hours = exposure_ns / NS_PER_H
    return (
        lower_limit(events, confidence=confidence, dispersion=dispersion) / hours,
        upper_limit(events, confidence=confidence, dispersion=dispersion) / hours,
    )


def supported_interval_ns(
    events: int,
    exposure_ns: int,
    *,
    confidence: float = CONFIDENCE,
    dispersion: float = 1.0,
) -> int:
    """
    Return X for the sentence "supports fewer than one miss per X", rounded down.

    With no event in T it is T/3.0, with one T/4.7, with two T/6.3.
    """
    limit = upper_limit(events, confidence=confidence, dispersion=dispersion)
    return math.floor(exposure_ns / limit)


# --- whether episodes are spread as a Poisson process spreads them, and by how much not

SIGNIFICANCE = 0.05

PARTS = 20
"""Equal parts of the time watched, in which episodes are counted."""

DRAWS = 2_000
"""Drawn spreads of the same episodes: p-values are known to about 0.005."""


@dataclass(frozen=True, slots=True)
class Dispersion:
    """How much more than by chance the episodes cluster; 1 if not at all."""

    factor: float
    """φ, never below 1: evenly spread episodes make no limit narrower."""
    p: float
    """Probability of such a clustering if they were independent; two tests' least."""

    @property
    def significant(self) -> bool:
        """Whether chance does not explain it."""
        return self.p <= SIGNIFICANCE


NONE = Dispersion(1.0, 1.0)


def dispersion_of(runs: Sequence[tuple[int, Sequence[int]]]) -> Dispersion:
    """
    Test episodes over runs, and over equal parts of the time of all runs.

    Each run is its length and when its episodes began, both in ns. The larger φ of the
    two counts; p is Bonferroni's over both.
    """
    total_ns = sum(length_ns for length_ns, _ in runs)
    if sum(len(starts) for _, starts in runs) < 2 or total_ns <= 0:
        return NONE
    tables = [_by_part(runs, total_ns)]
    lengths = [length_ns for length_ns, _ in runs if length_ns > 0]
    if len(lengths) > 1:
        counts = [len(starts) for length_ns, starts in runs if length_ns > 0]
        tables.append((counts, [ns / total_ns for ns in lengths]))
    tested = [_tested(counts, shares) for counts, shares in tables]
    return Dispersion(
        factor=max(1.0, *(factor for factor, _ in tested)),
        p=min(1.0, len(tested) * min(p for _, p in tested)),
    )


def _by_part(
    runs: Sequence[tuple[int, Sequence[int]]], total_ns: int
) -> tuple[list[int], list[float]]:
    """Count the episodes in each equal part of the runs, one after the other."""
    counts, before_ns = [0] * PARTS, 0
    for length_ns, starts in runs:
        for start_ns in starts:
            at_ns = before_ns + min(max(start_ns, 0), length_ns)
            counts[min(at_ns * PARTS // total_ns, PARTS - 1)] += 1
        before_ns += length_ns
    return counts, [1 / PARTS] * PARTS


def _tested(counts: Sequence[int], shares: Sequence[float]) -> tuple[float, float]:
    """Return φ, and the share of drawn spreads with as large a sum (fixed seed)."""
    import numpy as np

    expected = np.asarray(shares) * sum(counts)
    observed = float((((np.asarray(counts) - expected) ** 2) / expected).sum())
    rng = np.random.default_rng(0)
    # Not χ²: it holds for expected counts of five and more, and few episodes are usual.
    drawn = rng.multinomial(sum(counts), np.asarray(shares), size=DRAWS)
    sums = (((drawn - expected) ** 2) / expected).sum(axis=1)
    as_large = int((sums >= observed * (1 - 1e-9)).sum())
    return observed / (len(counts) - 1), (as_large + 1) / (DRAWS + 1)


def _looked(threads: Sequence[ThreadResult]) -> int | None:
    """Return how often a latency would have been seen; None if a tool did not count."""
    counted = counted_of(threads)
    silent = sum(t.hwlat.silent for t in threads if t.hwlat)
    return None if counted is None else counted + silent
