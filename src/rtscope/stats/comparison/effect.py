"""
The answer of a comparison for one figure, whichever design it comes from.

stepwise          figures of one design, of which the largest counts, in steps
                      (Westfall and Young 1993): with equal groups, the chance that any
                      figure at all gets a p of at most alpha is at most alpha
    false_discovered  effects of many designs: at most a share alpha of those with a p
                      of at most alpha is false on average (Benjamini, Hochberg 1995)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np

from rtscope.stats.comparison.design import (
    Dealt,
    FigureOfRuns,
    Paired,
    Values,
    detectable_ratio,
    detectable_ratio_of_one,
    detectable_ratio_of_pairs,
    least_runs,
    needed_runs,
    two_groups,
)

# --- p-values of the figures of a comparison, alone and corrected for their family ----


def share(sizes: Values, seen: Values | float) -> Values:
    """Return the share of sizes along the last axis that reach the size seen."""
    # Equal sizes, added up in another order, differ in their last bits.
    found: Values = (sizes >= seen - 1e-9 * np.maximum(seen, 1e-12)).mean(axis=-1)
    return found


def stepwise(sizes: Values) -> Values:
    """Return p-values of figures, one a row, whose first size is the one seen."""
    adjusted = np.empty(len(sizes))
    order = np.argsort(-sizes[:, 0], kind="stable")
    floor = 0.0
    for rank, at in enumerate(order):
        largest = sizes[order[rank:]].max(axis=0)
        floor = max(floor, float(share(largest, sizes[at, 0])))
        adjusted[at] = floor
    return adjusted


def false_discovered(p_values: Sequence[float]) -> list[float]:
    """Return p-values for the share of false discoveries, in steps upwards."""
    count = len(p_values)
    adjusted, least = [1.0] * count, 1.0
    order = sorted(range(count), key=lambda n: p_values[n])
    for rank, n in reversed(list(enumerate(order, 1))):
        adjusted[n] = least = min(least, p_values[n] * count / rank)
    return adjusted


# --- the answer of a comparison for one figure, whichever design it comes from --------

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Effect:
    """One figure of two sides: how far apart they are, and what would be seen."""

    figure: str
    log_ratio: float
    """Of the second side to the first: the mean over runs, or over pairs."""
    statistic: float
    """Positive: the second side is worse."""
    p: float
    """Of this figure alone: two-sided, unless only worse is looked for."""
    adjusted_p: float
    """The same, corrected for all figures of the family."""
    spread: float
    """Standard deviation of the logarithm from run to run, or from pair to pair."""
    runs: tuple[int, int]
    """Of both sides; the same pairs on either side."""
    alpha: float
    """Of the whole family."""
    tests: int
    """The size of the family."""
    critical: float | None
    """What the statistic has to exceed; None: pairs."""
    interval: tuple[float, float] | None = None
    """Of the ratio, at 95 %; None: too few runs or pairs for one, or not asked for."""

    @property
    def ratio(self) -> float:
        """The second side over the first: of geometric means."""
        return math.exp(self.log_ratio)

    @property
    def times(self) -> float:
        """The ratio, at least 1, whichever side is larger."""
        return math.exp(abs(self.log_ratio))

    @property
    def found(self) -> bool:
        """Whether the sides are shown to differ."""
        return self.adjusted_p <= self.alpha

    @property
    def is_worse(self) -> bool:
        """Whether the second side is shown to be worse."""
        return self.found and self.statistic > 0

    @property
    def is_better(self) -> bool:
        """Whether the second side is shown to be better."""
        return self.found and self.statistic < 0

    @property
    def detectable_ratio(self) -> float | None:
        """The ratio that so many find with 80 %; None without a finite one."""
        if self.critical is None:
            return detectable_ratio_of_pairs(self.spread, pairs=self.runs[0])
        if 1 in self.runs:
            return detectable_ratio_of_one(
                self.spread, critical=self.critical, others=max(self.runs)
            )
        return detectable_ratio(self.spread, critical=self.critical, runs=self.runs)

    def needed_runs(self, ratio: float) -> int | None:
        """Return the runs of each side that find a ratio with 80 %; None: too many."""
        if ratio == 1:
            return None
        return needed_runs(
            self.spread,
            ratio=ratio,
            alpha=self.alpha / self.tests,
            least=least_runs(self.alpha),
        )


def effects_of_runs(
    design: Dealt,
    figures: Sequence[FigureOfRuns],
    *,
    alpha: float,
    seed: int = 0,
    only_worse: bool = False,
) -> tuple[Effect, ...]:
    """
    Compare two groups of runs in all figures together; these are one family.

    With `only_worse` the p-values are one-sided: a second side that is better is never
    found, and there are no intervals.
    """
    statistics = design.statistics(figures, seed)
    if only_worse:
        signs = [-1.0 if one.more_is_better else 1.0 for one in figures]
        sizes = statistics * np.array(signs)[:, np.newaxis]
    else:
        sizes = np.abs(statistics)
    critical = float(np.quantile(sizes.max(axis=0), 1 - alpha, method="higher"))
    columns = statistics[:, 0], share(sizes, sizes[:, :1]), stepwise(sizes)
    effects = []
    for figure, *tested in zip(figures, *map(np.ndarray.tolist, columns), strict=True):
        statistic, p, adjusted_p = tested
        groups = design.levels(figure)
        means = [fmean(group) for group in groups]
        squares = sum(
            (one - mean) ** 2
            for group, mean in zip(groups, means, strict=True)
            for one in group
        )
        degrees = len(figure.values) - 1 - len(design.blocks(figure))
        # 0 stays 0, which negation would make -0.
        worse = 0.0 - statistic if figure.more_is_better else statistic
        effects.append(
            Effect(
                figure=figure.name,
                log_ratio=means[1] - means[0],
                statistic=worse,
                p=p,
                adjusted_p=adjusted_p,
                spread=math.sqrt(squares / max(degrees, 1)),
                runs=(len(groups[0]), len(groups[1])),
                alpha=alpha,
                tests=len(figures),
                critical=critical,
                interval=None
                if only_worse
                else _of_ratio(design.interval(figure, CONFIDENCE, seed)),
            )
        )
    return tuple(effects)


def effect_of_groups(
    one: Sequence[float],
    other: Sequence[float],
    *,
    figure: str,
    alpha: float,
    more_is_better: bool = False,
) -> Effect:
    """Compare the logarithms of one figure of two groups, whose order nothing drew."""
    values = (*one, *other)
    whole = FigureOfRuns(tuple(range(len(values))), values, figure, more_is_better)
    [effect] = effects_of_runs(two_groups(len(one), len(other)), [whole], alpha=alpha)
    return effect


def effect_of_pairs(
    differences: Sequence[float],
    *,
    figure: str,
    alpha: float,
    more_is_better: bool = False,
) -> Effect:
    """Test the differences of logarithms of independent pairs, in one figure alone."""
    design = Paired(tuple(differences))
    mean, count = fmean(differences), len(differences)
    p = float(share(design.sums, design.seen))
    return Effect(
        figure=figure,
        log_ratio=mean,
        statistic=0.0 - mean if more_is_better else mean,
        p=p,
        adjusted_p=p,
        spread=stdev(differences) if count > 1 else math.nan,
        runs=(count, count),
        alpha=alpha,
        tests=1,
        critical=None,
        interval=_of_ratio(design.interval(CONFIDENCE)),
    )


def _of_ratio(ends: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if ends is None else (math.exp(ends[0]), math.exp(ends[1]))
