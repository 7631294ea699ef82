"""
The numbers that a report may quote about the threads of one run.

Sums are merged as integers, so the figures of four CPUs are those of one list of all
their samples, to the last bit. A percentile is quoted as the bucket that holds it, or
not at all.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from rtscope.contract import HIST_MAX_BITS, ThreadResult, bucket_width_ns
from rtscope.errors import MeasurementError

DEFAULT_PERCENTILES = (50, 99, 99.9, 99.99, 99.999, 99.9999)

CONFIDENCE = 0.95

BEYOND_LOW_NS = 1 << HIST_MAX_BITS
"""Samples from here on are in no bucket."""


@dataclass(frozen=True, slots=True)
class Percentile:
    """
    The bucket [low, high) that holds a percentile of the samples.

    Both are None if there are too few samples to say anything about the percentile.
    """

    pct: float
    low_ns: int | None
    high_ns: int | None


@dataclass(frozen=True, slots=True)
class Summary:
    """
    What the threads of one run did, taken together.

    Minimum, maximum, mean, deviation and percentiles are of the wake-ups that took
    place and were not early. Skipped activations are in none of them but the mean that
    says so: a machine that stops for a second has one bad sample, not a thousand.
    """

    samples: int
    missed_periods: int
    overruns: int
    early: int
    overflow: int
    min_ns: int
    max_ns: int
    mean_ns: float
    stdev_ns: float
    """Of the population (divided by N), as in Appendix B of StarFive's reports."""
    mean_with_missed_periods_ns: float
    """Mean with each missed period at the latency it would have had."""
    percentiles: tuple[Percentile, ...]


def summarize(
    threads: Sequence[ThreadResult],
    *,
    percentiles: Sequence[float] = DEFAULT_PERCENTILES,
) -> Summary:
    """
    Summarize the threads of one run; exact until the last division or square root.

    Raises MeasurementError if no thread has a sample that was not early: nothing
    measured is no latency of zero.
    """
    lows = [t.min_ns for t in threads if t.min_ns is not None]
    highs = [t.max_ns for t in threads if t.max_ns is not None]
    counted = sum(t.samples - t.early for t in threads)
    if counted <= 0 or not lows or not highs:
        raise MeasurementError("no samples: no thread woke up in time to be measured")
    sum_ns = sum(t.sum_ns for t in threads)
    sum_sq_ns2 = sum(t.sum_sq_ns2 for t in threads)
    missed = sum(t.missed_periods for t in threads)
    missed_sum_ns = sum(t.missed_periods_sum_ns for t in threads)
    return Summary(
        samples=sum(t.samples for t in threads),
        missed_periods=missed,
        overruns=sum(t.overruns for t in threads),
        early=sum(t.early for t in threads),
        overflow=sum(t.overflow for t in threads),
        min_ns=min(lows),
        max_ns=max(highs),
        mean_ns=sum_ns / counted,
        stdev_ns=population_stdev(counted, sum_ns, sum_sq=sum_sq_ns2),
        mean_with_missed_periods_ns=(sum_ns + missed_sum_ns) / (counted + missed),
        percentiles=_percentiles(
            threads, percentiles, min_ns=min(lows), max_ns=max(highs)
        ),
    )


def observed_ns(threads: Iterable[ThreadResult]) -> int:
    """Return how long the machine was watched: the time of the longest thread."""
    return max((t.end_ns - t.start_ns for t in threads), default=0)


def population_stdev(count: int, total: int, *, sum_sq: int) -> float:
    """
    Return the square root of (N Σx² - (Σx)²) / N², in integers up to the root.

    0 for sums that no list of numbers can have; `lint` finds those.
    """
    return math.sqrt(Fraction(max(count * sum_sq - total * total, 0), count * count))


def buckets_of(threads: Iterable[ThreadResult]) -> list[tuple[int, int]]:
    """Return the histogram of all threads: (low_ns, count), ascending."""
    counts: Counter[int] = Counter()
    for thread in threads:
        for low_ns, count in thread.histogram:
            counts[low_ns] += count
    return sorted(counts.items())


def resolvable(pct: float, samples: int) -> bool:
    """
    Whether so many samples say anything about the percentile.

    They do if some order statistic of independent samples is a 95 % upper limit for it;
    wake-ups cluster, so this is the least that it takes, and no confidence. The j-th
    largest is one if P(Bin(N, 1-q) ≤ j-1) ≤ 0.05; if any is, the largest (j = 1) is,
    and for that one the condition is q^N ≤ 0.05.
    """
    tail = float(1 - _fraction(pct))
    return samples * math.log1p(-tail) <= math.log(1 - CONFIDENCE)


def _fraction(pct: float) -> Fraction:
    # By way of its text: 99.9 as a binary number is a hair off, enough to move a rank.
    return Fraction(str(pct)) / 100


def _percentiles(
    threads: Sequence[ThreadResult],
    percentiles: Sequence[float],
    *,
    min_ns: int,
    max_ns: int,
) -> tuple[Percentile, ...]:
    buckets = [
        (low_ns, low_ns + bucket_width_ns(low_ns), count)
        for low_ns, count in buckets_of(threads)
    ]
    beyond = sum(t.overflow for t in threads)
    if beyond:
        buckets.append((BEYOND_LOW_NS, max_ns + 1, beyond))
    up_to = list(accumulate(count for _, _, count in buckets))

    def find(pct: float) -> Percentile:
        if not up_to or not resolvable(pct, up_to[-1]):
            return Percentile(pct, None, None)
        rank = max(1, math.ceil(up_to[-1] * _fraction(pct)))
        low_ns, high_ns, _ = buckets[bisect_left(up_to, rank)]
        return Percentile(pct, max(low_ns, min_ns), min(high_ns, max_ns + 1))

    return tuple(find(pct) for pct in percentiles)
