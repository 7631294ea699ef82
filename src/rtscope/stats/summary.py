"""
The numbers that rtscope may quote about the threads of a run, or about other samples.

Sums are merged as integers, so the figures of four CPUs are those of one list of all
their samples, to the last bit.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from operator import add, sub

from rtscope.contract import (
    HIST_MAX_BITS,
    ThreadResult,
    bucket_low_ns,
    bucket_width_ns,
)
from rtscope.host.errors import MeasurementError

# --- percentiles of samples that lie in buckets: the end of a bucket, or nothing ------

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Ranks:
    """Samples in ascending order, each by the highest latency of its bucket."""

    at_most_ns: tuple[int | None, ...]
    """Of each bucket; None: its samples may be anywhere from its begin on."""
    up_to: tuple[int, ...]
    """Samples of each bucket and of all before it; empty: an unknown number."""

    @property
    def numbers(self) -> list[int]:
        """Samples of each bucket; empty: an unknown number."""
        return list(map(sub, self.up_to, (0, *self.up_to[:-1])))

    def counts(self) -> Iterator[tuple[int, int]]:
        """Yield each latency with the number of its samples; not those of None."""
        for at_most_ns, number in zip(self.at_most_ns, self.numbers, strict=True):
            if at_most_ns is not None:
                yield at_most_ns, number

    def percentile_ns(self, pct: float) -> int | None:
        """
        Return a percentile: the highest latency of the bucket that holds it.

        None if there are too few samples to say anything about it.
        """
        if not self.up_to or not resolvable(pct, self.up_to[-1]):
            return None
        rank = max(1, math.ceil(self.up_to[-1] * _fraction(pct)))
        return self.at_most_ns[bisect_left(self.up_to, rank)]


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


@lru_cache(maxsize=64)
def _fraction(pct: float) -> Fraction:
    # By way of its text: 99.9 as a binary number is a hair off, enough to move a rank.
    return Fraction(str(pct)) / 100


# The numbers that rtscope may quote about the threads of a run, or about other samples.

BEYOND_LOW_NS = 1 << HIST_MAX_BITS
"""Samples from here on are in no bucket."""


@dataclass(frozen=True, slots=True)
class Summary:
    """
    What the threads of one run did, taken together; or numbers about other samples.

    Minimum, maximum, mean, deviation and percentiles are of the wake-ups that took
    place and were not early. Skipped activations are in none of them but the mean that
    says so: a machine that stops for a second has one bad sample, not a thousand.
    """

    samples: int | None
    """None if a tool prints no count."""
    missed_periods: int | None
    """None if a tool does not count them, and the maximum leaves it open."""
    overruns: int | None
    early: int
    overflow: int
    min_ns: int
    max_ns: int
    mean_ns: float | None
    """None if a tool tells neither a sum nor an average."""
    stdev_ns: float | None
    """
    Of the population (divided by N), as in Appendix B of StarFive's reports.

    None if latencies of another tool are in no bucket.
    """
    mean_with_missed_periods_ns: float | None
    """Mean with each missed period at the latency it would have had; None: unknown."""
    ranks: Ranks
    """Of which percentiles are read."""


def summary_of(threads: Sequence[ThreadResult]) -> Summary | None:
    """Summarize threads; None if none of them woke up."""
    try:
        return summarize(threads)
    except MeasurementError:
        return None


def summarize(threads: Sequence[ThreadResult]) -> Summary:
    """
    Summarize the threads of one run; exact until the last division or square root.

    Raises MeasurementError if no thread has a sample that was not early: nothing
    measured is no latency of zero. Extremes of a tool that prints no count are known,
    and its count is not.
    """
    lows = [t.min_ns for t in threads if t.min_ns is not None]
    highs = [t.max_ns for t in threads if t.max_ns is not None]
    counted = counted_of(threads)
    if (counted is not None and counted <= 0) or not lows or not highs:
        raise MeasurementError("no samples: no thread woke up in time to be measured")
    sum_ns = total_of(_sum_ns(t) for t in threads)
    sum_sq_ns2 = total_of(t.sum_sq_ns2 for t in threads)
    exact_sum_ns = total_of(t.sum_ns for t in threads)
    missed = total_of(t.missed_periods for t in threads)
    missed_sum_ns = total_of(t.missed_periods_sum_ns for t in threads)
    return Summary(
        samples=total_of(t.samples for t in threads),
        missed_periods=missed,
        overruns=total_of(t.overruns for t in threads),
        early=sum(t.early for t in threads),
        overflow=sum(t.overflow for t in threads),
        min_ns=min(lows),
        max_ns=max(highs),
        mean_ns=_mean_ns(threads, counted, sum_ns),
        stdev_ns=(
            None
            if counted is None or exact_sum_ns is None or sum_sq_ns2 is None
            else population_stdev(counted, exact_sum_ns, sum_sq=sum_sq_ns2)
        ),
        mean_with_missed_periods_ns=(
            None
            if counted is None
            or sum_ns is None
            or missed is None
            or missed_sum_ns is None
            or (missed and any(t.event for t in threads))
            else (sum_ns + missed_sum_ns) / (counted + missed)
        ),
        ranks=_ranks(threads, max_ns=max(highs)),
    )


def summarize_samples(samples_ns: Sequence[int]) -> Summary:
    """Return the numbers about at least one sample, in no buckets: all exact."""
    counts = sorted(Counter(samples_ns).items())
    number, total_ns = len(samples_ns), sum(samples_ns)
    return Summary(
        samples=number,
        missed_periods=None,
        overruns=None,
        early=0,
        overflow=0,
        min_ns=counts[0][0],
        max_ns=counts[-1][0],
        mean_ns=total_ns / number,
        stdev_ns=population_stdev(
            number, total_ns, sum_sq=sum(x * x for x in samples_ns)
        ),
        mean_with_missed_periods_ns=None,
        ranks=_ranks_of(counts),
    )


def counted_of(threads: Iterable[ThreadResult]) -> int | None:
    """Return the samples that were not early; None if a tool printed no count."""
    return total_of(None if t.samples is None else t.samples - t.early for t in threads)


def total_of(parts: Iterable[int | None]) -> int | None:
    """Add up; None if a part is unknown."""
    total = 0
    for part in parts:
        if part is None:
            return None
        total += part
    return total


def _sum_ns(thread: ThreadResult) -> int | None:
    """Return the sum of a thread; from the average that its tool printed if need be."""
    if thread.sum_ns is not None:
        return thread.sum_ns
    if thread.foreign is None or thread.foreign.mean_ns is None:
        return 0 if thread.samples == 0 else None
    return None if thread.samples is None else thread.foreign.mean_ns * thread.samples


def _mean_ns(
    threads: Sequence[ThreadResult], counted: int | None, sum_ns: int | None
) -> float | None:
    """Return the average; of one thread without a count, the one that was printed."""
    if counted is not None and sum_ns is not None:
        return sum_ns / counted
    alone = threads[0].foreign if len(threads) == 1 else None
    return None if alone is None else alone.mean_ns


def observed_ns(threads: Iterable[ThreadResult]) -> int | None:
    """Return the time of the longest thread; None if no length is known."""
    return max((t.watched_ns for t in threads), default=0) or None


def threshold_of(threads: Sequence[ThreadResult]) -> int | None:
    """Return the latency (ns) from which on tools found none; None if one found one."""
    if not threads or not all(t.nothing_found for t in threads):
        return None
    return max(t.threshold_ns or 0 for t in threads)


def population_stdev(count: int, total: int, *, sum_sq: int) -> float:
    """
    Return the square root of (N Σx² - (Σx)²) / N², in integers up to the root.

    0 for sums that no list of numbers can have; `lint` finds those.
    """
    return math.sqrt(Fraction(max(count * sum_sq - total * total, 0), count * count))


def _own_counts(threads: Sequence[ThreadResult]) -> dict[int, int]:
    """Return the samples of our own threads by bucket, ascending."""
    own: dict[int, int] = {}
    for thread in threads:
        if thread.foreign is not None:
            continue
        counts = dict(thread.histogram)
        # Of a record of many buckets, no line of Python for each of them.
        if not own and len(counts) == len(thread.histogram):
            own = counts
            continue
        for low_ns, count in thread.histogram:
            own[low_ns] = own.get(low_ns, 0) + count
    ascending = sorted(own)
    return own if ascending == list(own) else {one: own[one] for one in ascending}


def _all_buckets(
    threads: Sequence[ThreadResult], *, max_ns: int
) -> list[tuple[int, int, int]]:
    """Return the buckets of all threads, ascending, the one without an end last."""
    own = _own_counts(threads)
    counts = {(a, a + bucket_width_ns(a)): number for a, number in own.items()}
    for thread in threads:
        if thread.foreign is not None:
            for low_ns, high_ns, count in thread.buckets:
                counts[low_ns, high_ns] = counts.get((low_ns, high_ns), 0) + count
    beyond = [t for t in threads if t.overflow]
    if beyond:
        low_ns = min(t.overflow_low_ns for t in beyond)
        high_ns = max(max_ns, *(t.latest_ns or 0 for t in beyond)) + 1
        over = sum(t.overflow for t in beyond)
        counts[low_ns, high_ns] = counts.get((low_ns, high_ns), 0) + over
    return sorted((low, high, count) for (low, high), count in counts.items())


def _ranks(threads: Sequence[ThreadResult], *, max_ns: int) -> Ranks:
    if any(t.samples is None for t in threads):
        return Ranks((), ())
    if all(t.foreign is None and not t.overflow for t in threads):
        return _own_ranks(_own_counts(threads), max_ns=max_ns)
    # Another tool's latencies beyond its buckets may be anywhere there.
    ends_ns = [t.overflow_low_ns for t in threads if t.foreign and t.overflow]
    end_ns = min(ends_ns, default=math.inf)
    buckets = _all_buckets(threads, max_ns=max_ns)
    at_most_ns: list[int | None] = [
        high_ns - 1 if high_ns <= max_ns else max_ns for _, high_ns, _ in buckets
    ]
    if ends_ns:
        at_most_ns = [
            None if high_ns > end_ns else at_ns
            for at_ns, (_, high_ns, _) in zip(at_most_ns, buckets, strict=True)
        ]
    return Ranks(tuple(at_most_ns), tuple(accumulate([n for *_, n in buckets])))


def _own_ranks(own: Mapping[int, int], *, max_ns: int) -> Ranks:
    ends_ns = map(add, own, map(bucket_width_ns, own))
    at_most_ns = [end_ns - 1 if end_ns <= max_ns else max_ns for end_ns in ends_ns]
    return Ranks(tuple(at_most_ns), tuple(accumulate(own.values())))


def _ranks_of(counts: Sequence[tuple[int | None, int]]) -> Ranks:
    return Ranks(
        tuple(at_most_ns for at_most_ns, _ in counts),
        tuple(accumulate(count for _, count in counts)),
    )


def buckets_of(summary: Summary) -> Iterator[tuple[int, int, int]]:
    """
    Yield [low, high) in ns and count, ascending; as wide as those of `rtscope run`.

    The numbers of a summary are of the samples themselves.
    """
    counts: Counter[int] = Counter()
    for one, number in summary.ranks.counts():
        counts[bucket_low_ns(max(0, one))] += number
    for low_ns, number in sorted(counts.items()):
        yield low_ns, low_ns + bucket_width_ns(low_ns), number
