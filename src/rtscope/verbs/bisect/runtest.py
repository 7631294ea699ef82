"""
Which end a kernel is like, by runs that a machine measured. Pure.

The unit is the run, never the sample. Each test is exact: it deals the labels of two
groups of runs in every way (see `rtscope.stats.comparison`). A kernel counts as bad if
its runs are worse than those of the good end and not better than those of the bad one,
and the other way round. So a kernel that has the distribution of an end is taken for
the other one with a chance of at most ALPHA: that takes a false difference from its own
end. A kernel between the two ends, and one that differs from neither, is like none.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from rtscope.stats.comparison.effect import Effect, effect_of_groups
from rtscope.stats.comparison.power import can_differ
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
class Judged:
    """A kernel against the two ends."""

    verdict: Verdict
    why: Why
    from_good: Effect | None = None
    """None with too few runs."""
    from_bad: Effect | None = None


def difference(one: Sequence[float], other: Sequence[float], figure: str) -> Effect:
    """Test whether the runs of a group are worse or better than those of another."""
    kind = FIGURES[figure]
    first, second = (
        [math.log(max(value, kind.floor)) for value in group] for group in (one, other)
    )
    return effect_of_groups(
        first, second, figure=figure, alpha=ALPHA, more_is_better=kind.more_is_better
    )


def decides_steps(ends: Effect) -> bool:
    """
    Whether ends that are so far apart decide four steps of five.

    Ends that are shown to differ by luck alone are further apart in these runs than
    they are: then most kernels are skipped, and of each further step the chance adds up
    that it is wrong.
    """
    needed = ends.needed_runs(ends.times)
    return ends.is_worse and needed is not None and needed <= min(ends.runs)


def judge(
    good: Sequence[float], bad: Sequence[float], new: Sequence[float], *, figure: str
) -> Judged:
    """Return which end a kernel is like; the ends are known to differ."""
    if not all(can_differ(len(end), len(new), alpha=ALPHA) for end in (good, bad)):
        return Judged(Verdict.SKIPPED, Why.TOO_FEW)
    from_good, from_bad = (difference(end, new, figure) for end in (good, bad))
    verdict, why = _decide(worse=from_good.is_worse, better=from_bad.is_better)
    return Judged(verdict, why, from_good, from_bad)


def _decide(*, worse: bool, better: bool) -> tuple[Verdict, Why]:
    """Decide by what is shown: worse than the good end, better than the bad end."""
    if worse == better:
        return Verdict.SKIPPED, Why.BETWEEN if worse else Why.UNDECIDED
    if worse:
        return Verdict.BAD, Why.LIKE_BAD
    return Verdict.GOOD, Why.LIKE_GOOD
