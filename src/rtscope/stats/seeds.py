"""
How a maximum varies over the seeds of a virtual board.

A seed is one trajectory: the same board does exactly the same with it each time. So
repetitions of a seed add nothing, and runs with different seeds are not repetitions of
equal conditions but a sample of trajectories, which the user chose. Their times may be
added up as exposure, as in any seeded Monte Carlo experiment, and the maximum
of all is the maximum over seeds; how far the seeds' own maxima lie apart says how much
one of them alone would have told.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from rtscope.record.model import RunRecord
from rtscope.stats.summary import observed_ns


@dataclass(frozen=True, slots=True)
class OverSeeds:
    """The maxima of runs that differ in nothing but the seed."""

    maxima_ns: tuple[tuple[int, int], ...]
    """(seed, its maximum), by seed."""
    observed_ns: int
    """Time watched, of all seeds added up; each seed counts once."""

    @property
    def lowest_ns(self) -> int:
        """The least of the maxima."""
        return min(maximum for _, maximum in self.maxima_ns)

    @property
    def median_ns(self) -> float:
        """The median of the maxima."""
        return float(median(maximum for _, maximum in self.maxima_ns))

    @property
    def highest_ns(self) -> int:
        """The maximum over all seeds."""
        return max(maximum for _, maximum in self.maxima_ns)

    @property
    def worst_seed(self) -> int:
        """The (first) seed with that maximum."""
        return next(s for s, maximum in self.maxima_ns if maximum == self.highest_ns)


def over_seeds(records: Sequence[RunRecord]) -> OverSeeds | None:
    """Return what runs of one load and kernel did; None with fewer than two seeds."""
    maxima: dict[int, int] = {}
    watched: dict[int, int] = {}
    for record in records:
        seed, max_ns = record.run.seed, record.max_ns
        if seed is not None and max_ns is not None:
            maxima[seed] = max(maxima.get(seed, 0), max_ns)
            watched_ns = observed_ns(record.result.threads)
            watched[seed] = max(watched.get(seed, 0), watched_ns)
    if len(maxima) < 2:
        return None
    return OverSeeds(tuple(sorted(maxima.items())), sum(watched.values()))
