"""Whether a wait with a timeout keeps a period, or only guards one for others. Pure."""

from collections.abc import Sequence
from statistics import median_low

from rtscope.programs.cycles.periods import (
    ADAPTS,
    SAME_SHARE,
    SLIP_SHARE,
    STEADY_SHARE,
    periods_in,
    spread_ns,
)

MOST_SLIP_NS = 50_000
"""From the clock that a program reads to the one that the kernel does."""


def asks_for_the_rest(
    intervals: Sequence[int], requests: Sequence[int], period_ns: int
) -> bool:
    """
    Whether a thread reads its clock for each wait, and asks for the rest of a period.

    Its times are a period apart but for the time that the reading takes, and what it
    asks for differs much more, as something else ended its wait before.
    """
    slip_share = min(SLIP_SHARE, MOST_SLIP_NS / period_ns)
    near = [periods_in(one, period_ns, slip_share) for one in intervals]
    off_ns = [
        abs(one - number * period_ns)
        for one, number in zip(intervals, near, strict=True)
        if number
    ]
    if not off_ns or len(off_ns) < STEADY_SHARE * len(near):
        return False
    return spread_ns(requests) > ADAPTS * median_low(off_ns)


def is_of_others(intervals: Sequence[int], requests: Sequence[int]) -> bool:
    """
    Whether a thread that sleeps for intervals, and is woken meanwhile, keeps none.

    It asks for different ones, or for much shorter ones than pass until one is over.
    """
    asked_ns = median_low(requests)
    differ = spread_ns(requests) > SAME_SHARE * asked_ns
    return differ or (bool(intervals) and median_low(intervals) > ADAPTS * asked_ns)
