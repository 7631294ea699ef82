"""
A joint permutation test of two groups of runs in several figures at once.

If the labels mean nothing, each labelling that the plan could have drawn is as likely
as the one it drew; p is the share of labellings that look at least as extreme (Fisher
1935). So labels are permuted within the blocks of the plan only, and all figures (of
all loads) are relabelled together.

Each figure's statistic is Welch's t of the differences from the block's mean: it stays
valid when one group varies more than the other (Janssen 1997). Of all figures the
largest counts, in steps (Westfall and Young 1993): with equal groups, the chance that
any figure at all gets an adjusted p of at most alpha is at most alpha.
"""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

MAX_LABELLINGS = 200_000
"""Up to here every labelling is tried; one block of 10 v 10 runs has 184,756."""

DRAWN_LABELLINGS = 19_999

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
class Figure:
    """One figure of the runs of both groups, and the slot of each run."""

    slots: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class FigureTest:
    """The outcome for one figure; a positive statistic: larger in the candidate."""

    statistic: float
    p: float
    """Two-sided, of this figure alone."""
    adjusted_p: float
    """Two-sided, adjusted for all figures of the test."""


@dataclass(frozen=True)
class Design:
    """The slots of two groups, and the labellings that the plan could have drawn."""

    slots: tuple[Slot, ...]

    @cached_property
    def labellings(self) -> int:
        """In how many ways the labels can be dealt within the blocks."""
        sizes = Counter(slot.block for slot in self.slots)
        ours = Counter(slot.block for slot in self.slots if slot.candidate)
        return math.prod(math.comb(n, ours[block]) for block, n in sizes.items())

    @property
    def is_exact(self) -> bool:
        """Whether every labelling is tried, so that p is exact."""
        return self.labellings <= MAX_LABELLINGS

    @property
    def smallest_p(self) -> float:
        """The smallest two-sided p that this design can give."""
        if not self.is_exact:
            return 1 / (DRAWN_LABELLINGS + 1)
        sizes = Counter(slot.block for slot in self.slots)
        ours = Counter(slot.block for slot in self.slots if slot.candidate)
        # With equal groups, exchanging them gives the same statistic, sign reversed.
        mirrored = all(2 * ours[block] == n for block, n in sizes.items())
        return min(1.0, (1 + mirrored) / self.labellings)

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


def _dealt(rows: Labels, places: Sequence[int], count: int) -> Labels:
    """Deal `count` labels to these places in every way, to each row so far."""
    ways = list(combinations(places, count))
    dealt = np.repeat(rows, len(ways), axis=0)
    for way, chosen in enumerate(ways):
        dealt[way :: len(ways), list(chosen)] = True
    return dealt


def joint_test(
    design: Design, figures: Sequence[Figure], *, alpha: float, seed: int = 0
) -> tuple[tuple[FigureTest, ...], float]:
    """
    Test all figures together.

    Returns a test for each, and the value that the largest statistic exceeds in a share
    alpha of the labellings.
    """
    labels = design.all_labels(seed)
    statistics = np.array([_statistics(design, figure, labels) for figure in figures])
    sizes = np.abs(statistics)
    seen = sizes[:, :1]
    # Equal statistics, added up in another order, differ in their last bits.
    extreme = sizes >= seen * (1 - 1e-9)
    alone = extreme.mean(axis=1)
    adjusted = np.empty(len(figures))
    order = np.argsort(-sizes[:, 0], kind="stable")
    floor = 0.0
    for rank, at in enumerate(order):
        largest = sizes[order[rank:]].max(axis=0)
        floor = max(floor, float((largest >= seen[at] * (1 - 1e-9)).mean()))
        adjusted[at] = floor
    critical = float(np.quantile(sizes.max(axis=0), 1 - alpha, method="higher"))
    tests = tuple(
        FigureTest(float(t), float(p), float(q))
        for t, p, q in zip(statistics[:, 0], alone, adjusted, strict=True)
    )
    return tests, critical


def aligned(design: Design, figure: Figure) -> Values:
    """Return the values of a figure as differences from the mean of their block."""
    values = np.array(figure.values)
    blocks = [design.slots[at].block for at in figure.slots]
    for block in set(blocks):
        of_it = np.array([other == block for other in blocks])
        values[of_it] -= values[of_it].mean()
    return values


def _statistics(design: Design, figure: Figure, labels: Labels) -> Values:
    """Return Welch's t for each labelling."""
    values = aligned(design, figure)
    ours = labels[:, list(figure.slots)].astype(np.float64)
    count = ours.sum(axis=1)
    others = len(values) - count
    ours_sum, ours_squares = ours @ values, ours @ values**2
    sums, squares = values.sum(), (values**2).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = ours_sum / count - (sums - ours_sum) / others
        variance = _of_mean(ours_sum, ours_squares, count) + _of_mean(
            sums - ours_sum, squares - ours_squares, others
        )
        t = difference / np.sqrt(variance)
    # Rounding leaves differences and variances of about this size where there are none.
    none = 1e-12 * float(np.abs(figure.values).max())
    t = np.where(variance > none**2, t, np.sign(difference) * _LARGEST)
    t = np.where(np.abs(difference) > none, t, 0.0)
    limited: Values = np.clip(np.nan_to_num(t), -_LARGEST, _LARGEST)
    return limited


def _of_mean(sums: Values, squares: Values, count: Values) -> Values:
    """Return the variance of the mean of so many values with these sums."""
    spread: Values = np.maximum(squares - sums**2 / count, 0) / (count - 1) / count
    return spread
