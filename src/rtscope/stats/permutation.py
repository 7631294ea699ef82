"""
Permutation tests of two small groups of runs, and Holm's correction.

If the labels mean nothing, each way of dealing them to the runs is as likely as the one
that was seen; p is the share of ways that look at least as extreme (Fisher 1935).
"""

import math
from collections.abc import Sequence
from itertools import chain, combinations

import numpy as np
import numpy.typing as npt

MAX_LABELLINGS = 200_000
"""Up to here every labelling is tried; 10 v 10 runs have 184,756."""

DRAWN_LABELLINGS = 19_999

Values = npt.NDArray[np.float64]


def labellings(baseline: int, candidate: int) -> int:
    """Return in how many ways labels can be dealt to so many runs."""
    return math.comb(baseline + candidate, candidate)


def is_exact(baseline: int, candidate: int) -> bool:
    """Whether every labelling is tried, so that p is exact."""
    return labellings(baseline, candidate) <= MAX_LABELLINGS


def smallest_p(baseline: int, candidate: int) -> float:
    """Return the smallest p that so many runs can give."""
    if is_exact(baseline, candidate):
        return 1 / labellings(baseline, candidate)
    return 1 / (DRAWN_LABELLINGS + 1)


def one_sided(
    baseline: Sequence[float], candidate: Sequence[float], *, seed: int
) -> tuple[float, float]:
    """
    Return p for "the candidate's mean is larger" and for "it is smaller".

    With too many labellings to try, a seeded sample of them stands for all, the seen
    one counted with them (Phipson and Smyth 2010), so that p is never 0.
    """
    runs = np.array([*baseline, *candidate], dtype=np.float64)
    seen = float(runs[len(baseline) :].sum())
    exact = is_exact(len(baseline), len(candidate))
    sums = (
        _all_sums(runs, len(candidate))
        if exact
        else np.append(_drawn_sums(runs, len(candidate), seed=seed), seen)
    )
    # Equal sums, added up in another order, differ in their last bits.
    same = 1e-12 * float(np.abs(runs).sum())
    return float(np.mean(sums >= seen - same)), float(np.mean(sums <= seen + same))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted for their number (Holm 1979), in the same order."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    floor = 0.0
    for rank, i in enumerate(order):
        floor = max(floor, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = floor
    return adjusted


def _all_sums(runs: Values, size: int) -> Values:
    chosen = np.fromiter(
        chain.from_iterable(combinations(range(len(runs)), size)),
        dtype=np.intp,
        count=math.comb(len(runs), size) * size,
    )
    sums: Values = runs[chosen.reshape(-1, size)].sum(axis=1)
    return sums


def _drawn_sums(runs: Values, size: int, *, seed: int) -> Values:
    rng = np.random.default_rng(seed)
    dealt = rng.permuted(np.tile(runs, (DRAWN_LABELLINGS, 1)), axis=1)
    sums: Values = dealt[:, :size].sum(axis=1)
    return sums
