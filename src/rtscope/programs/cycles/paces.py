"""A period that changes while the thread runs: which one it has when. Pure."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median_low

NEAR_NS = 1_000
"""Two intervals are one if they differ by less."""
IN_A_ROW = 8
"""Intervals that make a period, not periods without a cycle."""
PACES_SHARE = 0.9
"""Of the intervals, within such rows: else the thread has no period at all."""


@dataclass(frozen=True, slots=True)
class Pace:
    """From when on a thread has which period, in how many intervals at least."""

    from_ns: int
    period_ns: int
    count: int


def paces_of(due_ns: Sequence[int], ended_ns: Sequence[int]) -> tuple[Pace, ...]:
    """
    Return the periods of a thread that changes it; none if it has one or none.

    `ended_ns`: when the cycle of each time ended. A thread whose cycles last longer
    than its shortest period skips others because it is late.
    """
    rows = _rows(due_ns)
    long = [one for one in rows if one.count >= IN_A_ROW]
    paces: list[Pace] = []
    for one in long:
        if paces and abs(paces[-1].period_ns - one.period_ns) < NEAR_NS:
            paces[-1] = replace(paces[-1], count=paces[-1].count + one.count)
        else:
            paces.append(one)
    in_rows = sum(one.count for one in long)
    if len(paces) < 2 or in_rows < PACES_SHARE * (len(due_ns) - 1):
        return ()
    shortest_ns = min(one.period_ns for one in paces)
    for one, until in zip(long, [*long[1:], None], strict=True):
        lasted = [
            end - due
            for due, end in zip(due_ns, ended_ns, strict=True)
            if one.from_ns <= due and (until is None or due < until.from_ns)
        ]
        if median_low(lasted) > shortest_ns:
            return ()
    return tuple(paces)


def _rows(due_ns: Sequence[int]) -> list[Pace]:
    """Return the rows of equal intervals."""
    rows: list[Pace] = []
    for first, after in pairwise(due_ns):
        ns = after - first
        if rows and abs(rows[-1].period_ns - ns) < NEAR_NS:
            rows[-1] = replace(rows[-1], count=rows[-1].count + 1)
        else:
            rows.append(Pace(first, ns, 1))
    return rows


def commonest_ns(paces: Sequence[Pace]) -> int:
    """Return the period of most intervals."""
    counts: Counter[int] = Counter()
    for one in paces:
        counts[one.period_ns] += one.count
    return counts.most_common(1)[0][0]


def period_at(paces: Sequence[Pace], at_ns: int, period_ns: int) -> int:
    """Return the period of a cycle of then; `period_ns` if it never changes."""
    if not paces:
        return period_ns
    number = bisect_right([one.from_ns for one in paces], at_ns + NEAR_NS)
    return paces[max(0, number - 1)].period_ns
