"""
What a comparison could have found: the effect it would have seen, the runs it needs.

With a figure's logarithm varying by `spread` from run to run, the difference of the
means of two groups has the standard error spread * sqrt(1/n + 1/m). A test with the
critical value c finds a difference of (c + t) standard errors with the probability to
which t is the quantile (Cohen 1988, chapter 2).

Few runs find less than that: their labellings are few, and the spread is one of few
runs, half the time too small by several per cent. `bench/calibration.py stated` counts
how often the ratio that is stated is found.
"""

import math
from bisect import bisect_left
from functools import partial

POWER = 0.80
"""How often an effect is to be found."""

MIN_RUNS = 4
"""4 v 4 is the smallest design with a two-sided p below 5 % (2/70)."""

FALSE_DISCOVERIES = 0.05
"""The share of effects found that are false, on average."""

LEAST_PAIRS = 6
"""Fewer find nothing at 5 %, two-sided: 2 to the power of 1 - 5 is above it."""

_OF_FEW_RUNS = {4: 1.40, 5: 1.16, 6: 1.10, 7: 1.10}
"""By the runs of the smaller group, what its effect must exceed Student's t by."""

_OF_FEW = {6: 1.79, 7: 1.33}
"""
What few pairs find, in standard deviations, where Student's t promises too much.

Six must all have one sign, which 0.8 to the power of 1/6 is the share of; for seven it
was simulated, as a test does.
"""

_SIGNS_BY_STUDENT = 1.03
"""What the sign-flip test of 8 pairs and more needs by what Student's t needs."""

MAX_RUNS = 10_000
"""More runs than these nobody makes: then there is no answer."""


def detectable_ratio(
    spread: float, *, critical: float, runs: tuple[int, int]
) -> float | None:
    """
    Return the ratio of two groups that this design finds with 80 %.

    `spread` is the standard deviation of the logarithm from run to run, `critical` the
    value that the statistic has to exceed. None without a finite answer.
    """
    n, m = runs
    if n < 2 or m < 2 or not math.isfinite(critical):
        return None
    errors = (critical + _student(n + m - 2, POWER)) * math.sqrt(1 / n + 1 / m)
    exponent = _more_than_by_student(min(n, m)) * errors * spread
    return math.exp(exponent) if exponent < math.log(1e6) else None


def detectable_ratio_of_pairs(spread: float, *, pairs: int) -> float | None:
    """
    Return the ratio that the sign-flip test of so many pairs finds with 80 % at 5 %.

    `spread` is the standard deviation of the logarithm of a pair's ratio. None without
    a finite answer, as with fewer than six pairs: their least p-value is above 5 %.
    """
    if pairs < LEAST_PAIRS or not math.isfinite(spread):
        return None
    # Half the spreads of few pairs are below this share of it (Wilson, Hilferty 1931).
    spread /= (1 - 2 / (9 * (pairs - 1))) ** 1.5
    if pairs in _OF_FEW:
        exponent = _OF_FEW[pairs] * spread
    else:
        critical = _student(pairs - 1, 0.975) + _student(pairs - 1, POWER)
        exponent = _SIGNS_BY_STUDENT * critical * spread / math.sqrt(pairs)
    return math.exp(exponent) if exponent < math.log(1e6) else None


def needed_runs(spread: float, *, ratio: float, alpha: float, least: int) -> int | None:
    """
    Return how many runs of each group find this ratio with 80 %; None above 10,000.

    `alpha` is that of one figure, two-sided, after it was divided among all figures
    (Bonferroni), which is at most what the test in steps allows. `least` is the number
    of runs below which nothing can be found.
    """
    finds = partial(_finds, spread=spread, effect=math.log(ratio), alpha=alpha)
    runs = range(max(least, 2), MAX_RUNS + 1)
    return next(iter(runs[bisect_left(runs, True, key=finds) :]), None)


def least_runs(alpha: float, others: int | None = None) -> int:
    """Return the runs that can differ from so many others, or from as many."""
    runs = MIN_RUNS
    while not can_differ(runs if others is None else others, runs, alpha=alpha):
        runs += 1
    return runs


def can_differ(one: int, other: int, *, alpha: float) -> bool:
    """Whether groups of so many runs, in one block, can have a p of at most alpha."""
    smallest_p = (1 + (one == other)) / math.comb(one + other, one)
    return min(one, other) >= MIN_RUNS and smallest_p <= alpha


def needed_pairs(tests: int) -> int:
    """Return with how many pairs one effect alone can be found among so many tests."""
    return 1 + math.ceil(math.log2(max(tests, 1) / FALSE_DISCOVERIES))


def _more_than_by_student(runs: int) -> float:
    return _OF_FEW_RUNS.get(max(runs, 4), 1 + 0.6 / runs)


def _student(degrees: int, probability: float) -> float:
    """Return the quantile of Student's t."""
    # Loading it takes a tenth of a second, which every command would pay.
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability))


def _finds(runs: int, *, spread: float, effect: float, alpha: float) -> bool:
    degrees = 2 * runs - 2
    critical = _student(degrees, 1 - alpha / 2)
    needed = (critical + _student(degrees, POWER)) * spread
    needed *= _more_than_by_student(runs)
    return needed * math.sqrt(2 / runs) <= effect
