"""
What two samples support about their tails: one side beyond the other's maximum.

A ratio of two maxima shows nothing by itself: of two runs of one kernel one has the
larger maximum. What can be counted is how often the worse side was later than the
better one ever was. The better side has no such episode in its time, the worse side k:
each count has its exact Poisson limit. Were both the same kernel, an episode would fall
on the worse side in proportion to the times watched, so that all k did has probability
(T_worse / (T_worse + T_better))^k, twice that because either side may be the worse.
Episodes are taken to be independent; samples are not.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rtscope.record.model import RunRecord
from rtscope.stats.determinism import distinct
from rtscope.stats.exposure import lower_limit, supported_interval_ns
from rtscope.stats.misses import GAP_INTERVALS, GAP_NS, decluster, late_samples
from rtscope.stats.summary import observed_ns


@dataclass(frozen=True, slots=True)
class Excess:
    """How often one side was later than the other's maximum."""

    threshold_ns: int
    """The maximum of the better side."""
    episodes: int
    exact: bool
    """False if there were more: the record does not have the time of each."""
    worse_ns: int
    """Time that the worse side was watched."""
    better_ns: int
    at_least_every_ns: float
    """The worse side is so late at least once in this time (one-sided, 95 %)."""
    less_than_every_ns: int
    """The better side is so late less than once in this time (one-sided, 95 %)."""
    chance: float
    """Probability of such a difference between equals with independent episodes."""


def max_of(records: Sequence[RunRecord]) -> int | None:
    """Return the maximum of all runs; None if nothing was measured."""
    maxima = (record.max_ns for record in records)
    return max((ns for ns in maxima if ns is not None), default=None)


def watched_ns(records: Sequence[RunRecord]) -> int:
    """Return how long all runs together watched, exact repetitions once."""
    return sum(observed_ns(r.result.threads) for r in distinct(records))


def excess(worse: Sequence[RunRecord], better: Sequence[RunRecord]) -> Excess | None:
    """Count episodes of `worse` later than the maximum of `better`; None if none is."""
    threshold_ns, highest_ns = max_of(better), max_of(worse)
    if threshold_ns is None or highest_ns is None or highest_ns <= threshold_ns:
        return None
    counted = [_episodes(r, threshold_ns) for r in distinct(worse)]
    episodes = sum(count for count, _ in counted)
    worse_ns, better_ns = watched_ns(worse), watched_ns(better)
    if not episodes or not worse_ns or not better_ns:
        return None
    return Excess(
        threshold_ns=threshold_ns,
        episodes=episodes,
        exact=all(exact for _, exact in counted),
        worse_ns=worse_ns,
        better_ns=better_ns,
        at_least_every_ns=worse_ns / lower_limit(episodes),
        less_than_every_ns=int(supported_interval_ns(0, better_ns)),
        chance=min(1.0, 2 * (worse_ns / (worse_ns + better_ns)) ** episodes),
    )


def _episodes(record: RunRecord, threshold_ns: int) -> tuple[int, bool]:
    """
    Count groups of wake-ups later than the threshold; whether the count is exact.

    If not, it is the least that there were: known wake-ups, or seconds with one.
    Not `misses_of`: skipped activations are no latency beyond a maximum.
    """
    threads = record.result.threads
    known = [w for t in threads for w in t.worst if w.latency_ns > threshold_ns]
    late = sum(late_samples(t, threshold_ns)[0] for t in threads)
    gap_ns = max(GAP_NS, *(GAP_INTERVALS * t.interval_ns for t in threads), 0)
    episodes = decluster(known, gap_ns)
    if late > len(known):
        seconds = sum(
            any(cpu.max_ns > threshold_ns for cpu in tick.cpus) for tick in record.ticks
        )
        return max(episodes, seconds), False
    return episodes, True
