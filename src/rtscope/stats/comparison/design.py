"""
Three designs of a comparison of two sides, and what each could have found.

Dealt   whole runs: each labelling that the plan could have drawn is as likely as
            the one it drew. Labels are dealt anew within the blocks of the plan only.
    Paired  differences of runs with equal seeds: each is as likely positive as
            negative. Their signs are flipped.
    Exact   virtual boards: their figures have no error, and need no test.

So p is the share of labellings, or of signs, that look at least as extreme as what was
seen (Fisher 1935): exact with any distribution that has this symmetry.

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
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from statistics import fmean, median, stdev

import numpy as np
import numpy.typing as npt

MAX_LABELLINGS = 200_000
"""Up to here every labelling is tried; one block of 10 v 10 runs has 184,756."""

DRAWN_LABELLINGS = 19_999

LABELLINGS_OF_AN_INTERVAL = 4_999
"""It deals them some thirty times over."""

MOST_LOG_RATIO = 64.0
"""An interval that reaches further is none."""

MOST_ALONE, GROUPS = 20, 16
"""
More differences than the first are added up in as many groups as the second.

The sum of a group is as likely positive as negative too: the test stays exact, and its
least p-value is that of so many differences as there are groups.
"""

_LARGEST = 1e9
"""The statistic of groups that differ without any variation within them."""

Values = npt.NDArray[np.float64]
Labels = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Slot:
    """One place in the plan, to which a label was dealt; its runs share that label."""

    block: Hashable
    candidate: bool


@dataclass(frozen=True, slots=True)
class FigureOfRuns:
    """One figure of the runs of both groups, and the slot of each run."""

    slots: tuple[int, ...]
    values: tuple[float, ...]
    """Logarithms."""
    name: str = ""
    more_is_better: bool = False


@dataclass(frozen=True)
class Dealt:
    """The slots of two groups, and the labellings that the plan could have drawn."""

    slots: tuple[Slot, ...]

    @cached_property
    def _sizes(self) -> list[tuple[int, int]]:
        """The slots of each block, and those of the candidate."""
        ours = Counter(slot.block for slot in self.slots if slot.candidate)
        sizes = Counter(slot.block for slot in self.slots)
        return [(n, ours[block]) for block, n in sizes.items()]

    @cached_property
    def labellings(self) -> int:
        """In how many ways the labels can be dealt within the blocks."""
        return math.prod(math.comb(n, ours) for n, ours in self._sizes)

    @property
    def is_exact(self) -> bool:
        """Whether every labelling is tried, so that p is exact."""
        return self.labellings <= MAX_LABELLINGS

    @property
    def smallest_p(self) -> float:
        """The smallest two-sided p that this design can give."""
        if not self.is_exact:
            return 1 / (DRAWN_LABELLINGS + 1)
        # With equal groups, exchanging them gives the same statistic, sign reversed.
        mirrored = all(2 * ours == n for n, ours in self._sizes)
        return min(1.0, (1 + mirrored) / self.labellings)

    @property
    def smallest_p_of_worse(self) -> float:
        """The smallest one-sided p that this design can give."""
        return 1 / (self.labellings if self.is_exact else DRAWN_LABELLINGS + 1)

    def all_labels(self, seed: int) -> Labels:
        """
        Return the labellings, one a row, the one that was drawn first.

        With too many to try, a seeded sample stands for all, the drawn one counted with
        them (Phipson and Smyth 2010), so that p is never 0.
        """
        seen = np.array([slot.candidate for slot in self.slots])
        members: dict[Hashable, list[int]] = {}
        for at, slot in enumerate(self.slots):
            members.setdefault(slot.block, []).append(at)
        if not self.is_exact:
            rng = np.random.default_rng(seed)
            rows = np.tile(seen, (DRAWN_LABELLINGS, 1))
            for places in members.values():
                rows[:, places] = rng.permuted(rows[:, places], axis=1)
            return np.vstack([seen, rows])
        rows = np.zeros((1, len(seen)), dtype=bool)
        for places in members.values():
            rows = _dealt(rows, places, int(seen[places].sum()))
        return np.vstack([seen, rows[(rows != seen).any(axis=1)]])

    def statistics(self, figures: Sequence[FigureOfRuns], seed: int) -> Values:
        """
        Return Welch's t of each figure, one a row, for each labelling.

        It is of the differences from the block's mean, and stays valid when one group
        varies more than the other (Janssen 1997). Positive: larger in the candidate.
        """
        labels = self.all_labels(seed)
        sides: dict[tuple[int, ...], _Sides] = {}
        for figure in figures:
            if figure.slots not in sides:
                sides[figure.slots] = _Sides.of(labels, figure.slots)
        return np.array([self._welch(one, sides[one.slots]) for one in figures])

    def levels(self, figure: FigureOfRuns) -> tuple[list[float], list[float]]:
        """Return the values of both groups, less the means of several blocks."""
        alone = len(self.blocks(figure)) == 1
        values = figure.values if alone else self._aligned(figure).tolist()
        groups: tuple[list[float], list[float]] = [], []
        for at, value in zip(figure.slots, values, strict=True):
            groups[self.slots[at].candidate].append(value)
        return groups

    def interval(
        self, figure: FigureOfRuns, confidence: float, seed: int
    ) -> tuple[float, float] | None:
        """
        Return the interval of the difference; None if no test could refuse any.

        It is the test inverted (Hodges and Lehmann 1963): a difference is in it unless
        the groups differ where it was taken off the candidate. Many labellings are
        dealt as a seeded sample.
        """
        alpha = 1 - confidence
        if min(map(len, self.levels(figure))) < 2 or self.smallest_p > alpha:
            return None
        labels = self.all_labels(seed)
        rng = np.random.default_rng(seed)
        some = rng.permutation(len(labels) - 1)[:LABELLINGS_OF_AN_INTERVAL] + 1
        sides = _Sides.of(np.vstack([labels[:1], labels[some]]), figure.slots)
        ours = np.array([self.slots[at].candidate for at in figure.slots], float)

        def is_refused(difference: float) -> bool:
            values = np.array(figure.values) - difference * ours
            sizes = np.abs(self._welch(replace(figure, values=tuple(values)), sides))
            reached = sizes >= sizes[0] - 1e-9 * max(sizes[0], 1e-12)
            return bool(reached.mean() <= alpha)

        others, mine = map(np.mean, self.levels(figure))
        middle = float(mine - others)
        low, high = (_last_kept(middle, way, is_refused) for way in (-1, 1))
        return (low, high) if max(-low, high) <= MOST_LOG_RATIO else None

    def blocks(self, figure: FigureOfRuns) -> set[Hashable]:
        """Return the blocks of the runs of a figure."""
        return {self.slots[at].block for at in figure.slots}

    def _aligned(self, figure: FigureOfRuns) -> Values:
        """Return the values of a figure as differences from the mean of their block."""
        values = np.array(figure.values)
        for block in self.blocks(figure):
            of_it = np.array([self.slots[at].block == block for at in figure.slots])
            values[of_it] -= values[of_it].mean()
        return values

    def _welch(self, figure: FigureOfRuns, sides: "_Sides") -> Values:
        values = self._aligned(figure)
        ours, count, others = sides.ours, sides.count, sides.others
        ours_sum, ours_squares = ours @ values, ours @ values**2
        sums, squares = values.sum(), (values**2).sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            difference = ours_sum / count - (sums - ours_sum) / others
            spreads = (
                _spread(ours_sum, ours_squares, count),
                _spread(sums - ours_sum, squares - ours_squares, others),
            )
            # One run alone varies as the others do.
            mine = np.where(count > 1, spreads[0], spreads[1])
            theirs = np.where(others > 1, spreads[1], spreads[0])
            variance = mine / count + theirs / others
            t = difference / np.sqrt(variance)
        # Rounding leaves differences and variances of this size where there are none.
        none = 1e-12 * float(np.abs(figure.values).max())
        t = np.where(variance > none**2, t, np.sign(difference) * _LARGEST)
        t = np.where(np.abs(difference) > none, t, 0.0)
        limited: Values = np.clip(np.nan_to_num(t), -_LARGEST, _LARGEST)
        return limited


@dataclass(frozen=True, slots=True)
class _Sides:
    """Which runs of a figure each labelling, one a row, has in the candidate."""

    ours: Values
    count: Values
    others: Values

    @classmethod
    def of(cls, labels: Labels, slots: Sequence[int]) -> "_Sides":
        ours = labels[:, list(slots)].astype(np.float64)
        count: Values = ours.sum(axis=1)
        return cls(ours, count, len(slots) - count)


_STEPS = tuple(1e-6 * 2.0**n for n in range(26))
"""From the least of an interval to its largest, `MOST_LOG_RATIO`."""


def _last_kept(middle: float, way: int, is_refused: Callable[[float], bool]) -> float:
    """Return up to where nothing is refused, to a thousandth; infinite: everywhere."""
    first = bisect_left(_STEPS, True, key=lambda one: is_refused(middle + way * one))
    if first == len(_STEPS):
        return way * math.inf
    kept, step = (0.0, *_STEPS)[first : first + 2]
    while step - kept > 1e-3 * step and step > 1e-6:
        half = (kept + step) / 2
        kept, step = (kept, half) if is_refused(middle + way * half) else (half, step)
    return middle + way * step


def two_groups(one: int, other: int) -> Dealt:
    """Return groups of so many runs, in one block: nothing drew their order."""
    return Dealt(tuple(Slot("all", candidate=at >= one) for at in range(one + other)))


def _dealt(rows: Labels, places: Sequence[int], count: int) -> Labels:
    """Deal `count` labels to these places in every way, to each row so far."""
    ways = np.array(list(combinations(range(len(places)), count)), dtype=np.intp)
    chosen = np.zeros((len(ways), len(places)), dtype=bool)
    np.put_along_axis(chosen, ways, True, axis=1)
    dealt = np.repeat(rows, len(ways), axis=0)
    dealt[:, list(places)] = np.tile(chosen, (len(rows), 1))
    return dealt


def _spread(sums: Values, squares: Values, count: Values) -> Values:
    """Return the variance of so many values with these sums."""
    spread: Values = np.maximum(squares - sums**2 / count, 0) / (count - 1)
    return spread


@dataclass(frozen=True)
class Paired:
    """Differences of the logarithms of independent pairs."""

    differences: tuple[float, ...]

    @cached_property
    def _groups(self) -> tuple[Values, Values]:
        """The sums of groups of neighbours, and how many each has."""
        count = len(self.differences)
        groups = count if count <= MOST_ALONE else GROUPS
        values = np.array(self.differences, dtype=float)
        parts = np.array_split(values, groups) if count else []
        sums = np.array([part.sum() for part in parts])
        return sums, np.array([float(len(part)) for part in parts])

    @property
    def seen(self) -> float:
        """The size of the sum with its own signs."""
        return abs(math.fsum(self.differences))

    @property
    def sums(self) -> Values:
        """The size of the sum with each way to flip signs."""
        return np.abs(_sums(self._groups[0], factors=(-1.0, 1.0)))

    def interval(self, confidence: float) -> tuple[float, float] | None:
        """
        Return the interval of the mean; None with too few differences for one.

        It is the test inverted, by the means of all subsets (Hartigan 1969).
        """
        sums, counts = (_sums(one, factors=(0.0, 1.0))[1:] for one in self._groups)
        means = np.sort(sums / counts)
        out = int((1 - confidence) / 2 * (len(means) + 1))
        return None if out < 1 else (float(means[out - 1]), float(means[-out]))


def _sums(values: Values, factors: tuple[float, float]) -> Values:
    """Return the sums with each value taken by either factor; all first ones first."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + factor * value for factor in factors])
    return sums


def typical(values: Mapping[int, float]) -> float:
    """Return the median over seeds."""
    return float(median(values.values()))


@dataclass(frozen=True, slots=True)
class Exact:
    """Two sides of a virtual board: their medians over seeds, and a margin."""

    first: float
    second: float
    margin: float

    @property
    def differs(self) -> bool:
        """Whether they lie further apart than the margin."""
        return abs(self.second - self.first) > self.margin

    def is_like_second(self, values: Mapping[int, float]) -> bool:
        """Whether a third side is nearer to the second one than to the first one."""
        figure = typical(values)
        return abs(figure - self.second) < abs(figure - self.first)

    def share_of(
        self, before: Mapping[int, float], after: Mapping[int, float]
    ) -> float:
        """Return the part of the whole difference that lies between two others."""
        return (typical(after) - typical(before)) / (self.second - self.first)


# What a comparison could have found: the effect it would have seen, the runs it needs.

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


def detectable_ratio_of_one(
    spread: float, *, critical: float, others: int
) -> float | None:
    """
    Return the ratio of one run to so many others that is found with 80 %.

    It is of independent runs with normal logarithms. None without a finite answer.
    """
    if others < 2 or not math.isfinite(critical):
        return None
    errors = (critical + _student(others - 1, POWER)) * math.sqrt(1 + 1 / others)
    exponent = errors * spread
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


def interval_of_mean(values: Sequence[float], confidence: float) -> tuple[float, float]:
    """Return the interval of the mean of two or more runs, by Student's t."""
    half = _student(len(values) - 1, (1 + confidence) / 2)
    half *= stdev(values) / math.sqrt(len(values))
    return fmean(values) - half, fmean(values) + half


def _finds(runs: int, *, spread: float, effect: float, alpha: float) -> bool:
    degrees = 2 * runs - 2
    critical = _student(degrees, 1 - alpha / 2)
    needed = (critical + _student(degrees, POWER)) * spread
    needed *= _more_than_by_student(runs)
    return needed * math.sqrt(2 / runs) <= effect
