"""
How a maximum varies over the seeds of a virtual board.

A seed is one trajectory: the same board does exactly the same with it each time. So
repetitions of a seed add nothing, and runs with different seeds are not repetitions of
equal conditions but a sample of trajectories, which the user chose. The maximum of all
is the maximum over seeds; how far the seeds' own maxima lie apart says how much one of
them alone would have told.

Their times may be added up as exposure, as in any seeded Monte Carlo experiment, only
if they are independent. A seed changes little of an idle board: its worst wake-ups can
be the very same activations. Seeds that share more of them than chance gives are one
trajectory told several times, and count with the time of their longest run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from rtscope.contract import ThreadResult
from rtscope.record.model import RunRecord
from rtscope.stats.dispersion import SIGNIFICANCE
from rtscope.stats.summary import observed_ns


@dataclass(frozen=True, slots=True)
class OverSeeds:
    """The maxima of runs that differ in nothing but the seed."""

    maxima_ns: tuple[tuple[int, int], ...]
    """(seed, its maximum), by seed."""
    observed_ns: int
    """Time watched: of each independent trajectory, its longest run."""
    trajectories: int
    """Seeds that are independent; of those that are alike, one."""

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
    measured = []
    for record in records:
        seed, max_ns = record.run.seed, record.max_ns
        if seed is not None and max_ns is not None:
            maxima[seed] = max(maxima.get(seed, 0), max_ns)
            measured.append(record)
    if len(maxima) < 2:
        return None
    alone = independent(measured)
    return OverSeeds(
        maxima_ns=tuple(sorted(maxima.items())),
        observed_ns=sum(observed_ns(record.result.threads) or 0 for record in alone),
        trajectories=len(alone),
    )


def independent(records: Sequence[RunRecord]) -> tuple[RunRecord, ...]:
    """Return the longest run of each independent trajectory: their times add up."""
    return tuple(
        max(runs, key=lambda record: observed_ns(record.result.threads) or 0)
        for runs in trajectories(records)
    )


def trajectories(records: Sequence[RunRecord]) -> tuple[tuple[RunRecord, ...], ...]:
    """
    Divide records into independent trajectories, in the order of the first of each.

    Runs with one seed are alike, and those whose worst wake-ups coincide; so are runs
    that are both like a third. Each run of a machine is independent.
    """
    clusters: list[list[RunRecord]] = [[record] for record in records]
    seeded = [record for record in records if record.run.seed is not None]
    pairs = list(combinations(seeded, 2))
    for one, other in pairs:
        again = one.run.seed == other.run.seed
        if again or coincide(one, other, comparisons=len(pairs)):
            first, second = (
                next(c for c in clusters if any(r is record for r in c))
                for record in (one, other)
            )
            if first is not second:
                first.extend(second)
                clusters = [c for c in clusters if c is not second]
    return tuple(map(tuple, clusters))


def coincide(one: RunRecord, other: RunRecord, *, comparisons: int = 1) -> bool:
    """
    Whether the worst wake-ups of two runs are the same activations beyond chance.

    Of n activations of a CPU, lists of a and b that know nothing of each other share
    a b / n on average; P(Poisson ≥ shared) at 5 %, divided by the comparisons made.
    """
    from scipy.special import gammainc

    shared, expected = 0, 0.0
    for mine, theirs in _of_equal_cpus(one, other):
        a, b = ({w.seq for w in t.worst} for t in (mine, theirs))
        shared += len(a & b)
        activations = max((mine.end_ns - mine.start_ns) // mine.interval_ns, 1)
        expected += len(a) * len(b) / activations
    return bool(shared and gammainc(shared, expected) * comparisons <= SIGNIFICANCE)


def _of_equal_cpus(
    one: RunRecord, other: RunRecord
) -> Iterator[tuple[ThreadResult, ThreadResult]]:
    theirs = list(other.result.threads)
    for mine in one.result.threads:
        same = next((thread for thread in theirs if thread.cpu == mine.cpu), None)
        if same is not None:
            theirs.remove(same)
            yield mine, same
