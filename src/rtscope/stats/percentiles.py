"""Percentiles of samples that lie in buckets: the end of a bucket, or nothing."""

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Ranks:
    """Samples in ascending order, each by the highest latency of its bucket."""

    at_most_ns: tuple[int | None, ...]
    """Of each bucket; None: its samples may be anywhere from its begin on."""
    up_to: tuple[int, ...]
    """Samples of each bucket and of all before it; empty: an unknown number."""

    def counts(self) -> Iterator[tuple[int, int]]:
        """Yield each latency with the number of its samples; not those of None."""
        numbers = (b - a for a, b in pairwise((0, *self.up_to)))
        for at_most_ns, number in zip(self.at_most_ns, numbers, strict=True):
            if at_most_ns is not None:
                yield at_most_ns, number

    def percentile_ns(self, pct: float) -> int | None:
        """
        Return a percentile: the highest latency of the bucket that holds it.

        None if there are too few samples to say anything about it.
        """
        if not self.up_to or not resolvable(pct, self.up_to[-1]):
            return None
        rank = max(1, math.ceil(self.up_to[-1] * _fraction(pct)))
        return self.at_most_ns[bisect_left(self.up_to, rank)]


def resolvable(pct: float, samples: int) -> bool:
    """
    Whether so many samples say anything about the percentile.

    They do if some order statistic of independent samples is a 95 % upper limit for it;
    wake-ups cluster, so this is the least that it takes, and no confidence. The j-th
    largest is one if P(Bin(N, 1-q) ≤ j-1) ≤ 0.05; if any is, the largest (j = 1) is,
    and for that one the condition is q^N ≤ 0.05.
    """
    tail = float(1 - _fraction(pct))
    return samples * math.log1p(-tail) <= math.log(1 - CONFIDENCE)


def _fraction(pct: float) -> Fraction:
    # By way of its text: 99.9 as a binary number is a hair off, enough to move a rank.
    return Fraction(str(pct)) / 100
