"""
P-values of the figures of a comparison, alone and corrected for their family.

    stepwise          figures of one design, of which the largest counts, in steps
                      (Westfall and Young 1993): with equal groups, the chance that any
                      figure at all gets a p of at most alpha is at most alpha
    false_discovered  effects of many designs: at most a share alpha of those with a p
                      of at most alpha is false on average (Benjamini, Hochberg 1995)
"""

from collections.abc import Sequence

import numpy as np

from rtscope.stats.comparison.design import Values


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
