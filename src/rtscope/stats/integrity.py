"""
Check that the numbers of a record agree; a contradiction makes the run invalid.

Each rule is a theorem about lists of numbers, so a breach is proof that the record was
damaged or edited, or that the agent has a defect; no rule is a matter of taste. All
arithmetic is in integers.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from rtscope.contract import OwnNumbers, ThreadResult, is_bucket_low
from rtscope.host.units import format_us
from rtscope.record.caveats.catalogue import Caveat, make
from rtscope.stats.foreign import check_foreign
from rtscope.stats.summary import BEYOND_LOW_NS

Bucket = tuple[int, int, int]
"""Its smallest value, the one above its largest, and how many samples it has."""


def check_thread(thread: ThreadResult) -> Iterator[Caveat]:
    """Yield `identity_broken` and `sums_inconsistent`, with the first wrong value."""
    if thread.foreign is not None:
        wrong = check_foreign(thread, thread.foreign)
        if wrong:
            yield make("import_contradicts", f"{name_of(thread)}: {wrong}")
        return
    buckets = [
        (low_ns, high_ns, count)
        for low_ns, high_ns, count in thread.buckets
        if is_bucket_low(low_ns) and count > 0
    ]
    own = thread.own
    broken = _identity(thread, own)
    if broken:
        yield make("identity_broken", f"{name_of(thread)}: {broken}")
    for rule in _RULES:
        wrong = rule(thread, own, buckets)
        if wrong:
            yield make("sums_inconsistent", f"{name_of(thread)}: {wrong}")
            return  # later rules rely on the earlier ones


def name_of(thread: ThreadResult) -> str:
    """Name a thread for people: `CPU 2`, or `thread 1234` if it was not pinned."""
    if thread.cpu is not None:
        return f"CPU {thread.cpu}"
    return f"thread {thread.tid}" if thread.tid else "a thread"


def _identity(t: ThreadResult, own: OwnNumbers) -> str:
    if t.end_ns < t.start_ns or t.interval_ns == 0:
        return "no periods: the end is before the start, or the interval is 0"
    due = (t.end_ns - t.start_ns) // t.interval_ns
    if abs(own.samples + own.missed_periods - due) <= 1:
        return ""
    seen = f"{t.samples} samples + {t.missed_periods} missed periods"
    return f"{seen}, but {due} periods elapsed"


def _histogram(t: ThreadResult, _own: OwnNumbers, buckets: Sequence[Bucket]) -> str:
    if any(a >= b for (a, _), (b, _) in pairwise(t.histogram)):
        return "the buckets are not in ascending order"
    if len(buckets) < len(t.histogram):
        return "a bucket that does not exist, or an empty one"
    counted = sum(count for _, _, count in buckets) + t.early + t.overflow
    if counted != t.samples:
        return f"{t.samples} samples, but {counted} in the histogram"
    return ""


def _extremes(t: ThreadResult, _own: OwnNumbers, buckets: Sequence[Bucket]) -> str:
    if t.samples == t.early:
        if (t.min_ns, t.max_ns, t.sum_ns, t.sum_sq_ns2) != (None, None, 0, 0):
            return "values without a sample"
        return ""
    if t.min_ns is None or t.max_ns is None:
        return "samples, but no minimum or maximum"
    edges = [(low_ns, above_ns) for low_ns, above_ns, _ in buckets]
    if t.overflow:
        edges.append((BEYOND_LOW_NS, 2**63))
    for what, value_ns, (low_ns, high_ns) in (
        ("minimum", t.min_ns, edges[0]),
        ("maximum", t.max_ns, edges[-1]),
    ):
        if not low_ns <= value_ns < high_ns:
            return f"the {what}, {format_us(value_ns)} us, lies outside its bucket"
    return "the minimum exceeds the maximum" if t.min_ns > t.max_ns else ""


def _sums(t: ThreadResult, own: OwnNumbers, buckets: Sequence[Bucket]) -> str:
    if t.min_ns is None or t.max_ns is None:
        return ""
    spans = [
        (max(low_ns, t.min_ns), min(above_ns - 1, t.max_ns), count)
        for low_ns, above_ns, count in buckets
    ]
    spans.append((max(BEYOND_LOW_NS, t.min_ns), t.max_ns, t.overflow))
    for what, total, power in (
        ("sum", own.sum_ns, 1),
        ("squares", own.sum_sq_ns2, 2),
    ):
        least = sum(low**power * count for low, _, count in spans)
        most = sum(high**power * count for _, high, count in spans)
        if not least <= total <= most:
            return f"the {what} must lie between {least} and {most}, but is {total}"
    return ""


def _spread(t: ThreadResult, own: OwnNumbers, _buckets: Sequence[Bucket]) -> str:
    if t.min_ns is None or t.max_ns is None:
        return ""
    n, sum_ns = own.samples - t.early, own.sum_ns
    spread = n * own.sum_sq_ns2 - sum_ns * sum_ns  # N² variance
    if spread < 0:
        return "the sum of squares is too small for the sum"
    # deviation ≤ (max - min)/2 (Popoviciu)
    if 4 * spread > (n * (t.max_ns - t.min_ns)) ** 2:
        return "the deviation is too large for minimum and maximum"
    # one sample at x forces N variance ≥ (x - mean)²
    for extreme_ns in (t.min_ns, t.max_ns):
        if (n * extreme_ns - sum_ns) ** 2 > n * spread:
            return "the deviation is too small for minimum and maximum"
    return ""


def _skips(t: ThreadResult, own: OwnNumbers, _buckets: Sequence[Bucket]) -> str:
    overruns, missed = own.overruns, own.missed_periods
    if overruns > own.samples - t.early:
        return f"{overruns} overruns, but only {own.samples - t.early} in all"
    if missed and not overruns:
        return f"{missed} missed periods, but no overrun"
    if overruns and (t.max_ns is None or t.max_ns < t.interval_ns):
        return f"{overruns} overruns, but the maximum is below the interval"
    most_ns = missed * t.max_ns if t.max_ns else 0
    if own.missed_periods_sum_ns > most_ns:
        return "the missed periods were later than the maximum"
    return ""


def _worst(t: ThreadResult, own: OwnNumbers, _buckets: Sequence[Bucket]) -> str:
    if not t.worst:
        return ""
    latencies = [w.latency_ns for w in t.worst]
    if latencies != sorted(latencies, reverse=True):
        return "the worst wake-ups are not in order"
    if latencies[0] != t.max_ns:
        return (
            f"the worst wake-up has {format_us(latencies[0])} us, "
            f"the maximum is {format_us(t.max_ns)} us"
        )
    if len(latencies) > own.samples - t.early or latencies[-1] < (t.min_ns or 0):
        return "more worst wake-ups than samples, or one below the minimum"
    return ""


_RULES: tuple[Callable[[ThreadResult, OwnNumbers, Sequence[Bucket]], str], ...] = (
    _histogram,
    _extremes,
    _sums,
    _spread,
    _skips,
    _worst,
)
