"""
The distribution of latencies, for charts and exports: as measured, and corrected.

Measured: one wake-up, one count. Corrected: a thread that ran late also missed the
activations in between (coordinated omission); they are counted with the lateness that
each would have had.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from rtscope.contract import HIST_MAX_BITS, HIST_SUB_BITS, ThreadResult
from rtscope.stats.summary import BEYOND_LOW_NS

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Distribution:
    """How many latencies fell into each bucket: by its begin, ascending, none empty."""

    low_ns: Counts
    count: Counts
    beyond: int
    """Latencies of `beyond_low_ns` and more: in no bucket."""
    max_ns: int
    beyond_low_ns: int = BEYOND_LOW_NS
    """17 s, or where the buckets of another tool end."""

    @property
    def total(self) -> int:
        """All latencies, those beyond the buckets included."""
        return int(self.count.sum()) + self.beyond


def distribution_of(threads: Sequence[ThreadResult]) -> Distribution:
    """Return the latencies that were measured, of all threads together."""
    return _distribution(
        dict(_buckets_of(threads)),
        beyond=sum(t.overflow for t in threads),
        max_ns=max((t.max_ns or 0 for t in threads), default=0),
        beyond_low_ns=min(
            (t.overflow_low_ns for t in threads if t.overflow), default=BEYOND_LOW_NS
        ),
    )


def with_skipped(threads: Sequence[ThreadResult]) -> Distribution:
    """
    Return the latencies measured plus those of the missed periods.

    A wake-up L late with L ≥ T (the interval) adds L - T, L - 2T, … down to the last
    that is not negative, but never more than the thread skipped: at its end the grid
    of activations stops. Exact for wake-ups in the thread's `worst`; for others L is
    only known to its bucket and its upper edge is taken, an error of ≤ 0.1 %.
    (HdrHistogram's recordCorrectedValue leaves out the last one, below T.)
    """
    measured = distribution_of(threads)
    counts = dict(_buckets_of(threads))
    beyond = measured.beyond
    for thread in threads:
        implied = _implied(thread)
        beyond += int(implied[-1])
        for index in np.flatnonzero(implied[:-1]):
            low_ns = int(_edges()[index])
            counts[low_ns] = counts.get(low_ns, 0) + int(implied[index])
    return _distribution(counts, beyond=beyond, max_ns=measured.max_ns)


def ccdf(
    distribution: Distribution,
) -> tuple[Counts, npt.NDArray[np.float64]]:
    """
    Return the steps of P(latency ≥ low): where each bucket begins, and what is left.

    Latencies beyond the buckets are one more step, where those begin.
    """
    low_ns, count = distribution.low_ns, distribution.count
    if distribution.beyond:
        low_ns = np.append(low_ns, np.int64(distribution.beyond_low_ns))
        count = np.append(count, np.int64(distribution.beyond))
    left = np.cumsum(count[::-1])[::-1]
    return low_ns, left / max(distribution.total, 1)


def _buckets_of(threads: Iterable[ThreadResult]) -> list[tuple[int, int]]:
    """Return the histogram of all threads: (low_ns, count), ascending."""
    counts: Counter[int] = Counter()
    for thread in threads:
        for low_ns, count in thread.histogram:
            counts[low_ns] += count
    return sorted(counts.items())


def _distribution(
    counts: dict[int, int],
    *,
    beyond: int,
    max_ns: int,
    beyond_low_ns: int = BEYOND_LOW_NS,
) -> Distribution:
    filled = sorted((low, count) for low, count in counts.items() if count)
    return Distribution(
        low_ns=np.array([low for low, _ in filled], dtype=np.int64),
        count=np.array([count for _, count in filled], dtype=np.int64),
        beyond=beyond,
        max_ns=max_ns,
        beyond_low_ns=beyond_low_ns,
    )


@cache
def _edges() -> Counts:
    """Where each bucket of the agent's histogram begins, and the end of the last."""
    sub = 1 << HIST_SUB_BITS
    octaves = [
        np.arange(sub, 2 * sub, dtype=np.int64) << shift
        for shift in range(HIST_MAX_BITS - HIST_SUB_BITS)
    ]
    return np.concatenate([np.arange(sub), *octaves, [1 << HIST_MAX_BITS]])


def _implied(thread: ThreadResult) -> Counts:
    """Count, per bucket and beyond, the latencies of a thread's missed periods."""
    implied = np.zeros(len(_edges()), dtype=np.int64)
    if not thread.missed_periods or not thread.interval_ns or thread.event:
        return implied  # an event that never came waited for no time that is known
    for latency_ns, times, skips in _late_wakeups(thread):
        # How many of L - T, L - 2T, … are at or above each edge; the difference of
        # two neighbours is a bucket. No list of skips: a hung hour has millions.
        reach = (latency_ns - _edges()) // thread.interval_ns
        above = np.append(np.clip(reach, 0, skips), 0)
        implied += times * (above[:-1] - above[1:])
    return _cut_smallest(implied, int(implied.sum()) - thread.missed_periods)


def _late_wakeups(thread: ThreadResult) -> Iterator[tuple[int, int, int]]:
    """Yield (latency, how often, activations that it swallowed) of late wake-ups."""
    interval_ns = thread.interval_ns
    known = [w for w in thread.worst if w.latency_ns >= interval_ns]
    for wakeup in known:
        left = max(thread.end_ns - wakeup.expiry_ns, 0) // interval_ns
        yield wakeup.latency_ns, 1, min(wakeup.latency_ns // interval_ns, left)

    unknown = thread.own.overruns - len(known)
    if unknown <= 0:
        return
    # `worst` is full and holds the largest: no other wake-up is later than its last.
    ceiling_ns = known[-1].latency_ns if known else thread.max_ns or 0
    for latency_ns, times in _largest_unknown(thread, known=len(known)):
        latency_ns = min(latency_ns, ceiling_ns)
        if latency_ns < interval_ns:
            return
        yield latency_ns, min(times, unknown), latency_ns // interval_ns
        unknown -= times
        if unknown <= 0:
            return


def _largest_unknown(thread: ThreadResult, *, known: int) -> Iterator[tuple[int, int]]:
    """Yield (upper edge, count) of the buckets, downwards, without the `known` top."""
    buckets: Iterable[tuple[int, int]] = [
        (thread.max_ns or 0, thread.overflow),
        *((high_ns - 1, count) for _, high_ns, count in reversed(thread.buckets)),
    ]
    for latency_ns, count in buckets:
        covered = min(known, count)
        known -= covered
        if count > covered:
            yield latency_ns, count - covered


def _cut_smallest(implied: Counts, excess: int) -> Counts:
    """Take `excess` counts away, smallest first: the end of the grid cut them off."""
    if excess <= 0:
        return implied
    gone = np.minimum(np.cumsum(implied), excess)
    return implied - np.diff(gone, prepend=0)
