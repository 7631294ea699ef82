"""
Whether episodes are spread as a Poisson process spreads them, and by how much not.

Σ (nᵢ - mᵢ)² / mᵢ over counts nᵢ of which mᵢ were expected, divided by its degrees of
freedom, is the dispersion φ: 1 for independent episodes of one rate, about the size of
a burst if they come in bursts, more if the rate differs from run to run.

Limits are widened by φ (quasi-Poisson: φ · limit(k/φ), McCullagh and Nelder 1989, 9.2)
wherever it is above 1, also where it is not significant: with few episodes no test
excludes a dispersion that matters. Two limits of 95 % that hold for independent
episodes still do, and are a few percent wider than they need be. A verdict mentions
only a significant dispersion.
"""

from collections.abc import Sequence
from dataclasses import dataclass

SIGNIFICANCE = 0.05

PARTS = 20
"""Equal parts of the time watched, in which episodes are counted."""

DRAWS = 2_000
"""Drawn spreads of the same episodes: p-values are known to about 0.005."""


@dataclass(frozen=True, slots=True)
class Dispersion:
    """How much more than by chance the episodes cluster; 1 if not at all."""

    factor: float
    """φ, never below 1: evenly spread episodes make no limit narrower."""
    p: float
    """Probability of such a clustering if they were independent; two tests' least."""

    @property
    def significant(self) -> bool:
        """Whether chance does not explain it."""
        return self.p <= SIGNIFICANCE


NONE = Dispersion(1.0, 1.0)


def dispersion_of(runs: Sequence[tuple[int, Sequence[int]]]) -> Dispersion:
    """
    Test episodes over runs, and over equal parts of the time of all runs.

    Each run is its length and when its episodes began, both in ns. The larger φ of the
    two counts; p is Bonferroni's over both.
    """
    total_ns = sum(length_ns for length_ns, _ in runs)
    if sum(len(starts) for _, starts in runs) < 2 or total_ns <= 0:
        return NONE
    tables = [_by_part(runs, total_ns)]
    lengths = [length_ns for length_ns, _ in runs if length_ns > 0]
    if len(lengths) > 1:
        counts = [len(starts) for length_ns, starts in runs if length_ns > 0]
        tables.append((counts, [ns / total_ns for ns in lengths]))
    tested = [_tested(counts, shares) for counts, shares in tables]
    return Dispersion(
        factor=max(1.0, *(factor for factor, _ in tested)),
        p=min(1.0, len(tested) * min(p for _, p in tested)),
    )


def _by_part(
    runs: Sequence[tuple[int, Sequence[int]]], total_ns: int
) -> tuple[list[int], list[float]]:
    """Count the episodes in each equal part of the runs, one after the other."""
    counts, before_ns = [0] * PARTS, 0
    for length_ns, starts in runs:
        for start_ns in starts:
            at_ns = before_ns + min(max(start_ns, 0), length_ns)
            counts[min(at_ns * PARTS // total_ns, PARTS - 1)] += 1
        before_ns += length_ns
    return counts, [1 / PARTS] * PARTS


def _tested(counts: Sequence[int], shares: Sequence[float]) -> tuple[float, float]:
    """Return φ, and the share of drawn spreads with as large a sum (fixed seed)."""
    import numpy as np

    expected = np.asarray(shares) * sum(counts)
    observed = float((((np.asarray(counts) - expected) ** 2) / expected).sum())
    rng = np.random.default_rng(0)
    # Not χ²: it holds for expected counts of five and more, and few episodes are usual.
    drawn = rng.multinomial(sum(counts), np.asarray(shares), size=DRAWS)
    sums = (((drawn - expected) ** 2) / expected).sum(axis=1)
    as_large = int((sums >= observed * (1 - 1e-9)).sum())
    return observed / (len(counts) - 1), (as_large + 1) / (DRAWS + 1)
