"""
Whether the numbers of another tool agree with each other.

Each rule is a theorem, as those of `stats.integrity`, but for values that were cut to a
step before they were kept. Sums are not compared: they are made from the buckets.
"""

from itertools import pairwise

from rtscope.contract import ForeignBuckets, ThreadResult
from rtscope.host.units import format_us


def check_foreign(t: ThreadResult, foreign: ForeignBuckets) -> str:
    """Return the first contradiction; empty if there is none."""
    return (
        _counts(t, foreign.step_ns)
        or _extremes(t, foreign)
        or _average(t, foreign.step_ns, foreign.mean_ns)
        or _longest(t, foreign.step_ns)
    )


def _counts(t: ThreadResult, step_ns: int) -> str:
    if any(a >= b for (a, _), (b, _) in pairwise(t.histogram)):
        return "the buckets are not in ascending order"
    if any(low_ns % step_ns or not count for low_ns, count in t.histogram):
        return "a bucket that does not exist, or an empty one"
    counted = sum(count for _, count in t.histogram) + t.overflow
    if t.samples is None:
        return f"no count of samples, but {counted} in the histogram" if counted else ""
    if counted != t.samples:
        return f"{t.samples} samples, but {counted} in the histogram"
    return ""


def _extremes(t: ThreadResult, foreign: ForeignBuckets) -> str:
    if t.min_ns is None or t.max_ns is None:
        if t.samples is None:
            return "neither a count of samples nor a minimum and maximum"
        return "samples, but no minimum or maximum" if t.samples else ""
    if t.min_ns > t.max_ns:
        return "the minimum exceeds the maximum"
    if t.overflow and t.max_ns < foreign.end_ns:
        return f"{t.overflow} samples beyond the histogram, but the maximum is in it"
    if not t.histogram:
        if t.overflow and t.min_ns < foreign.end_ns:
            return "the minimum is in the histogram, which is empty"
        return ""
    first_ns, last_ns = t.histogram[0][0], t.histogram[-1][0]
    if not first_ns <= t.min_ns < first_ns + foreign.step_ns:
        return _outside("minimum", t.min_ns, first_ns)
    # With an overflow the maximum is beyond the buckets.
    above_ns = last_ns + foreign.step_ns
    if not t.overflow and not last_ns <= t.max_ns < above_ns:
        return _outside("maximum", t.max_ns, last_ns)
    return ""


def _average(t: ThreadResult, step_ns: int, mean_ns: int | None) -> str:
    if mean_ns is None or t.min_ns is None or t.max_ns is None or t.samples == 0:
        return ""
    if not t.min_ns - step_ns < mean_ns < t.max_ns + step_ns:
        return f"the average, {format_us(mean_ns)} us, is not between the extremes"
    if t.samples is None or t.sum_ns is None:
        return ""
    if abs(t.sum_ns / t.samples - mean_ns) <= step_ns:
        return ""
    return (
        f"the average is said to be {format_us(mean_ns)} us, that of the histogram is "
        f"{format_us(t.sum_ns / t.samples)} us"
    )


def _longest(t: ThreadResult, step_ns: int) -> str:
    """Compare the latencies that have a time with the maximum."""
    latencies = [wakeup.latency_ns for wakeup in t.worst]
    if latencies != sorted(latencies, reverse=True):
        return "the longest latencies are not in order"
    if not latencies or t.max_ns is None or abs(latencies[0] - t.max_ns) < step_ns:
        return ""
    return (
        f"the longest latency with a time has {format_us(latencies[0])} us, the "
        f"maximum is {format_us(t.max_ns)} us"
    )


def _outside(what: str, value_ns: int, low_ns: int) -> str:
    return (
        f"the {what} is said to be {format_us(value_ns)} us, in the histogram it is "
        f"{format_us(low_ns)} us"
    )
