"""
The sign-flip test of paired differences, its interval, and discoveries. Pure.

If a change does nothing, each difference is as likely positive as negative (Fisher
1935), so their mean is compared with those of all ways to flip signs: exact with any
distribution that is symmetric under the null hypothesis. The interval is the same test
inverted, by the means of all subsets (Hartigan 1969, typical values). Among many tests
the share of false discoveries is held at 5 % (Benjamini and Hochberg 1995).

Many differences have too many ways. They are added up in groups, whose sums are as
likely positive as negative too: the test stays exact, and its least p-value is that of
so many differences as there are groups.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FALSE_DISCOVERIES = 0.05
CONFIDENCE = 0.95
MOST_ALONE, GROUPS = 20, 16
"""More differences than the first are tested in as many groups as the second."""


def p_of_signs(differences: Sequence[float]) -> float:
    """
    Return the two-sided p-value of the sign-flip test for a mean of zero.

    It is at least 2 to the power of 1 - n, of groups if there are many. 1 if no
    difference is other than zero.
    """
    groups, _ = _grouped(differences)
    sums = np.abs(_sums(groups, signs=(-1.0, 1.0)))
    observed = abs(math.fsum(differences))
    # Sums of the same numbers in another order differ in their last bits.
    return float(np.mean(sums >= observed - 1e-9 * max(observed, 1e-12)))


def needed_pairs(tests: int) -> int:
    """Return with how many pairs one effect alone can be found among so many tests."""
    return 1 + math.ceil(math.log2(max(tests, 1) / FALSE_DISCOVERIES))


def interval_of_mean(differences: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean; None with fewer than six differences."""
    groups, sizes = _grouped(differences)
    sums = _sums(groups, signs=(0.0, 1.0))[1:]
    counts = _sums(sizes, signs=(0.0, 1.0))[1:]
    means = np.sort(sums / counts)
    out = int((1 - CONFIDENCE) / 2 * (len(means) + 1))
    if out < 1:
        return None
    return float(means[out - 1]), float(means[-out])


def _grouped(
    differences: Sequence[float],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sums of groups of neighbours, and how many each has."""
    count = len(differences)
    groups = count if count <= MOST_ALONE else GROUPS
    parts = np.array_split(np.array(differences, dtype=float), groups) if count else []
    sums = np.array([part.sum() for part in parts])
    return sums, np.array([float(len(part)) for part in parts])


def _sums(
    values: NDArray[np.float64], signs: tuple[float, float]
) -> NDArray[np.float64]:
    """Return the sums with each value taken by either factor; all first ones first."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + factor * value for factor in signs])
    return sums


def discoveries(p_values: Sequence[float]) -> list[bool]:
    """Return which are discoveries at 5 %, by the procedure in steps upwards."""
    count = len(p_values)
    order = sorted(range(count), key=lambda n: p_values[n])
    last = 0
    for rank, n in enumerate(order, 1):
        if p_values[n] <= FALSE_DISCOVERIES * rank / count:
            last = rank
    is_discovery = [False] * count
    for n in order[:last]:
        is_discovery[n] = True
    return is_discovery
