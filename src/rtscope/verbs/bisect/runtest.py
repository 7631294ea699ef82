"""
Which end a kernel is like, by runs that a machine measured. Pure.

The unit is the run, never the sample. Each test is exact: it deals the labels of two
groups of runs in every way (see `rtscope.stats.permutation`). A kernel counts as bad if
its runs are worse than those of the good end and not better than those of the bad one,
and the other way round. So a kernel that has the distribution of an end is taken for
the other one with a chance of at most ALPHA: that takes a false difference from its own
end. A kernel between the two ends, and one that differs from neither, is like none.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

from rtscope.stats.compare import MIN_RUNS
from rtscope.stats.permutation import Design, Figure, Slot, joint_test
from rtscope.stats.power import detectable_ratio, needed_runs
from rtscope.verbs.bisect.figures import FIGURES
from rtscope.verbs.bisect.trials import Verdict

ALPHA = 0.01
"""Of each test, two-sided: a search makes one step after the other."""


class Why(StrEnum):
    """The reason of a verdict."""

    LIKE_BAD = "worse than the good end, and not better than the bad end"
    LIKE_GOOD = "better than the bad end, and not worse than the good end"
    BETWEEN = "between the two ends: worse than the good end, better than the bad end"
    UNDECIDED = "no evidence that it differs from the good end, nor from the bad end"
    TOO_FEW = "too few runs for a test at 1 %"


@dataclass(frozen=True, slots=True)
class Difference:
    """A group of runs against another one."""

    statistic: float
    """Positive: the second group is worse."""
    p: float
    """Two-sided."""
    critical: float
    """What the statistic has to exceed."""
    spread: float
    """Standard deviation of the figure's logarithm from run to run, within a group."""
    ratio: float
    """Of the two geometric means, at least 1, whichever group is worse."""
    runs: tuple[int, int]

    @property
    def worse(self) -> bool:
        """Whether the second group is shown to be worse."""
        return self.p <= ALPHA and self.statistic > 0

    @property
    def better(self) -> bool:
        """Whether the second group is shown to be better."""
        return self.p <= ALPHA and self.statistic < 0

    @property
    def detectable_ratio(self) -> float | None:
        """The ratio that so many runs find with 80 %; None without a finite one."""
        return detectable_ratio(self.spread, critical=self.critical, runs=self.runs)

    @property
    def needed_runs(self) -> int | None:
        """Runs of each group that find the ratio of these with 80 %; None: too many."""
        if self.ratio == 1:
            return None
        return needed_runs(
            self.spread, ratio=self.ratio, alpha=ALPHA, least=least_runs()
        )

    @property
    def decides_steps(self) -> bool:
        """
        Whether ends that are so far apart decide four steps of five.

        Ends that are shown to differ by luck alone are further apart in these runs than
        they are: then most kernels are skipped, and of each further step the chance
        adds up that it is wrong.
        """
        needed = self.needed_runs
        return self.worse and needed is not None and needed <= min(self.runs)


@dataclass(frozen=True, slots=True)
class Judged:
    """A kernel against the two ends."""

    verdict: Verdict
    why: Why
    from_good: Difference | None = None
    """None with too few runs."""
    from_bad: Difference | None = None


def least_runs(others: int | None = None) -> int:
    """Return the least runs that a test needs against so many, or as many, others."""
    runs = MIN_RUNS
    while not can_differ(runs if others is None else others, runs):
        runs += 1
    return runs


def can_differ(one: int, other: int) -> bool:
    """Whether groups of so many runs can have a p-value of at most ALPHA."""
    if min(one, other) < MIN_RUNS:
        return False
    return _design(one, other).smallest_p <= ALPHA


def _design(one: int, other: int) -> Design:
    """Return groups of so many runs, in one block: nothing drew their order."""
    return Design(tuple(Slot("all", candidate=at >= one) for at in range(one + other)))


def difference(one: Sequence[float], other: Sequence[float], figure: str) -> Difference:
    """Test whether the runs of a group are worse or better than those of another."""
    groups = [[_level(value, figure) for value in group] for group in (one, other)]
    values = tuple(level for group in groups for level in group)
    whole = Figure(tuple(range(len(values))), values)
    [test], critical = joint_test(_design(len(one), len(other)), [whole], alpha=ALPHA)
    means = [fmean(group) for group in groups]
    return Difference(
        statistic=test.statistic,
        p=test.p,
        critical=critical,
        spread=_spread(groups),
        ratio=math.exp(abs(means[1] - means[0])),
        runs=(len(one), len(other)),
    )


def judge(
    good: Sequence[float], bad: Sequence[float], new: Sequence[float], *, figure: str
) -> Judged:
    """Return which end a kernel is like; the ends are known to differ."""
    if not (can_differ(len(good), len(new)) and can_differ(len(bad), len(new))):
        return Judged(Verdict.SKIPPED, Why.TOO_FEW)
    from_good, from_bad = (difference(end, new, figure) for end in (good, bad))
    verdict, why = _decide(worse=from_good.worse, better=from_bad.better)
    return Judged(verdict, why, from_good, from_bad)


def _decide(*, worse: bool, better: bool) -> tuple[Verdict, Why]:
    """Decide by what is shown: worse than the good end, better than the bad end."""
    if worse == better:
        return Verdict.SKIPPED, Why.BETWEEN if worse else Why.UNDECIDED
    if worse:
        return Verdict.BAD, Why.LIKE_BAD
    return Verdict.GOOD, Why.LIKE_GOOD


def _level(value: float, figure: str) -> float:
    """Return the logarithm of a figure, such that more is worse."""
    kind = FIGURES[figure]
    level = math.log(max(value, kind.floor))
    return -level if kind.more_is_better else level


def _spread(groups: Sequence[Sequence[float]]) -> float:
    squares = sum((one - fmean(group)) ** 2 for group in groups for one in group)
    return math.sqrt(squares / (sum(map(len, groups)) - len(groups)))
