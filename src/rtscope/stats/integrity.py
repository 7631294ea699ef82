"""
Check that the numbers of a record agree; a contradiction makes the run invalid.

Each rule is a theorem about lists of numbers, so a breach is proof that the record was
damaged or edited, or that the agent has a defect; no rule is a matter of taste. All
arithmetic is in integers.

Each rule is a theorem, as those of `stats.integrity`, but for values that were cut to a
step before they were kept. Sums are not compared: they are made from the buckets.

A tool that tells less can show less. What it does not tell is no zero: it limits each
verdict that would need it.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import ge, mul

from rtscope.contract import (
    HIST_SUB_BITS,
    ForeignBuckets,
    OwnNumbers,
    ThreadEvent,
    ThreadResult,
    bucket_width_ns,
    is_bucket_low,
)
from rtscope.host.units import format_duration, format_us
from rtscope.machine.cpulist import format_cpulist
from rtscope.record.caveats.catalogue import Caveat, make
from rtscope.record.model import UNKNOWN, Imported, RunRecord
from rtscope.stats.summary import BEYOND_LOW_NS, observed_ns

# --- whether the numbers of another tool agree with each other ------------------------


def check_foreign(t: ThreadResult, foreign: ForeignBuckets) -> str:
    """Return the first contradiction; empty if there is none."""
    return (
        _counts(t, foreign.step_ns)
        or _foreign_extremes(t, foreign)
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


def _foreign_extremes(t: ThreadResult, foreign: ForeignBuckets) -> str:
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


# --- check that the numbers of a record agree; a contradiction makes the run invalid --


@dataclass(frozen=True, slots=True)
class Buckets:
    """The buckets of a thread that exist and are filled, a list for each number."""

    told_ns: Sequence[int]
    """Where all begin, also those that do not exist."""
    lows_ns: Sequence[int]
    counts: Sequence[int]


def check_thread(thread: ThreadResult) -> Iterator[Caveat]:
    """Yield `identity_broken` and `sums_inconsistent`, with the first wrong value."""
    if thread.foreign is not None:
        wrong = check_foreign(thread, thread.foreign)
        if wrong:
            yield make("import_contradicts", f"{name_of(thread)}: {wrong}")
        return
    buckets, own = _buckets_of(thread), thread.own
    broken = _identity(thread, own)
    if broken:
        yield make("identity_broken", f"{name_of(thread)}: {broken}")
    for rule in _RULES:
        wrong = rule(thread, own, buckets)
        if wrong:
            yield make("sums_inconsistent", f"{name_of(thread)}: {wrong}")
            return  # later rules rely on the earlier ones


def _buckets_of(thread: ThreadResult) -> Buckets:
    """Return the buckets; of a record of many, no line of Python for each of them."""
    told_ns, counts = _columns(thread.histogram)
    lows_ns = told_ns
    if not all(map(is_bucket_low, lows_ns)) or min(counts, default=1) <= 0:
        lows_ns, counts = _columns(
            [(a, n) for a, n in thread.histogram if is_bucket_low(a) and n > 0]
        )
    return Buckets(told_ns, lows_ns, counts)


def _columns(
    pairs: Sequence[tuple[int, int]],
) -> tuple[Sequence[int], Sequence[int]]:
    first, second = zip(*pairs, strict=True) if pairs else ((), ())
    return first, second


def name_of(thread: ThreadResult) -> str:
    """Name a thread for people: `CPU 2`, or `thread 1234` if it was not pinned."""
    if thread.cpu is not None:
        return f"CPU {thread.cpu}"
    return f"thread {thread.tid}" if thread.tid else "a thread"


def _identity(t: ThreadResult, own: OwnNumbers) -> str:
    if t.end_ns < t.start_ns or t.interval_ns == 0:
        return "no periods: the end is before the start, or the interval is 0"
    due = (t.end_ns - t.start_ns) // t.interval_ns
    if t.event is not None:
        return _events(t.event, own, due)
    silent = t.hwlat.silent if t.hwlat else 0
    if abs(own.samples + own.missed_periods + silent - due) <= 1:
        return ""
    seen = f"{t.samples} samples + {t.missed_periods} missed periods"
    seen += f" + {silent} without a report" if t.hwlat else ""
    return f"{seen}, but {due} periods elapsed"


def _events(event: ThreadEvent, own: OwnNumbers, due: int) -> str:
    periods = event.sent + event.full + event.unsent
    if abs(periods - due) > 1:
        return f"{periods} periods with or without an event, but {due} elapsed"
    if own.samples + event.lost != event.sent:
        return f"{own.samples} samples + {event.lost} lost of {event.sent} events"
    if own.missed_periods != event.lost + event.full:
        return f"{own.missed_periods} missed, but {event.lost + event.full} events"
    return ""


def _histogram(t: ThreadResult, _own: OwnNumbers, buckets: Buckets) -> str:
    if any(map(ge, buckets.told_ns, buckets.told_ns[1:])):
        return "the buckets are not in ascending order"
    if len(buckets.counts) < len(t.histogram):
        return "a bucket that does not exist, or an empty one"
    counted = sum(buckets.counts) + t.early + t.overflow
    if counted != t.samples:
        return f"{t.samples} samples, but {counted} in the histogram"
    return ""


def _extremes(t: ThreadResult, _own: OwnNumbers, buckets: Buckets) -> str:
    if t.samples == t.early:
        if (t.min_ns, t.max_ns, t.sum_ns, t.sum_sq_ns2) != (None, None, 0, 0):
            return "values without a sample"
        return ""
    if t.min_ns is None or t.max_ns is None:
        return "samples, but no minimum or maximum"
    # All that is wanted of the list are its ends.
    ends = [slice(0, 1), slice(-1, None)]
    edges = [
        (low_ns, low_ns + bucket_width_ns(low_ns))
        for one in ends
        for low_ns in buckets.lows_ns[one]
    ]
    if t.overflow:
        edges.append((BEYOND_LOW_NS, 2**63))
    for what, value_ns, (low_ns, high_ns) in (
        ("minimum", t.min_ns, edges[0]),
        ("maximum", t.max_ns, edges[-1]),
    ):
        if not low_ns <= value_ns < high_ns:
            return f"the {what}, {format_us(value_ns)} us, lies outside its bucket"
    return "the minimum exceeds the maximum" if t.min_ns > t.max_ns else ""


def _sums(t: ThreadResult, own: OwnNumbers, buckets: Buckets) -> str:
    if t.min_ns is None or t.max_ns is None:
        return ""
    least, most = _bounds(buckets.lows_ns, buckets.counts)
    # Minimum and maximum cut a bucket each; by the rules above, of an ascending list.
    for low_ns, count in zip(buckets.lows_ns[:1], buckets.counts, strict=False):
        least = _moved(least, low_ns, max(low_ns, t.min_ns), count)
    for low_ns, count in zip(buckets.lows_ns[-1:], buckets.counts[-1:], strict=True):
        high_ns = low_ns + bucket_width_ns(low_ns) - 1
        most = _moved(most, high_ns, min(high_ns, t.max_ns), count)
    least = _moved(least, 0, max(BEYOND_LOW_NS, t.min_ns), t.overflow)
    most = _moved(most, 0, t.max_ns, t.overflow)
    totals = own.sum_ns, own.sum_sq_ns2
    for what, total, low, high in zip(
        ("sum", "squares"), totals, least, most, strict=True
    ):
        if not low <= total <= high:
            return f"the {what} must lie between {low} and {high}, but is {total}"
    return ""


_Totals = tuple[int, int]
"""A sum of latencies, and that of their squares."""


def _bounds(lows_ns: Sequence[int], counts: Sequence[int]) -> tuple[_Totals, _Totals]:
    """
    Return the totals with all samples at the begin, and at the end, of their buckets.

    Buckets of one power of two are equally wide: no line of Python for each of them.
    """
    sums = list(map(mul, lows_ns, counts))
    sum_ns, squares = sum(sums), sum(map(mul, sums, lows_ns))
    more_ns = more_squares = begin = 0
    while begin < len(lows_ns):
        low_ns = lows_ns[begin]
        end_ns = 1 << max(low_ns.bit_length(), HIST_SUB_BITS)
        some = slice(begin, bisect_left(lows_ns, end_ns, begin))
        # (low + step)² is low² + 2 step low + step²
        step_ns, count = bucket_width_ns(low_ns) - 1, sum(counts[some])
        more_ns += step_ns * count
        more_squares += step_ns * (2 * sum(sums[some]) + step_ns * count)
        begin = some.stop
    return (sum_ns, squares), (sum_ns + more_ns, squares + more_squares)


def _moved(totals: _Totals, from_ns: int, to_ns: int, count: int) -> _Totals:
    sum_ns, squares = totals
    return (
        sum_ns + (to_ns - from_ns) * count,
        squares + (to_ns**2 - from_ns**2) * count,
    )


def _spread(t: ThreadResult, own: OwnNumbers, _buckets: Buckets) -> str:
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


def _skips(t: ThreadResult, own: OwnNumbers, _buckets: Buckets) -> str:
    overruns, missed = own.overruns, own.missed_periods
    if overruns > own.samples - t.early:
        return f"{overruns} overruns, but only {own.samples - t.early} in all"
    if missed and not overruns and t.event is None:
        return f"{missed} missed periods, but no overrun"
    if overruns and (t.max_ns is None or t.max_ns < t.interval_ns):
        return f"{overruns} overruns, but the maximum is below the interval"
    most_ns = missed * t.max_ns if t.max_ns else 0
    if own.missed_periods_sum_ns > most_ns:
        return "the missed periods were later than the maximum"
    return ""


def _worst(t: ThreadResult, own: OwnNumbers, _buckets: Buckets) -> str:
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


_RULES: tuple[Callable[[ThreadResult, OwnNumbers, Buckets], str], ...] = (
    _histogram,
    _extremes,
    _sums,
    _spread,
    _skips,
    _worst,
)


# --- what an imported result leaves open: caveats that follow from its numbers alone --

SHORT_RUN_NS = 60 * 10**9

TELLING_BUCKETS = 8
"""Equal histograms with so many buckets or more are of one measurement."""

WHOLE_NS = 10**9
"""The unit in which tools tell the length of a run."""

TOO_MANY = 1.01
"""Wake-ups per period: starts and ends of threads differ by less."""


def check_import(record: RunRecord) -> Iterator[Caveat]:
    """Yield the caveats of an imported record; none for one of our own."""
    imported = record.imported
    if imported is None:
        return
    threads = record.result.threads
    yield make("imported", _source(imported))
    if not imported.verified:
        yield make("import_unverified", imported.format)
    yield from _kept(threads)
    yield from _periods(record)
    yield from _time(record)
    if record.load_unknown:
        yield make("import_load_unknown")
    if record.run.policy == UNKNOWN:
        yield make("import_settings_unknown")
    yield from _copied(threads)


def _source(imported: Imported) -> str:
    version = f" {imported.version}" if imported.version else ""
    return f"{imported.file}: {imported.tool}{version}: {imported.measures}"


def _kept(threads: Sequence[ThreadResult]) -> Iterator[Caveat]:
    """Yield what the buckets of the tool do not hold."""
    kept = [(t, t.foreign) for t in threads if t.foreign is not None]
    if not kept:
        return
    step_ns = max(foreign.step_ns for _, foreign in kept)
    if step_ns > 1:
        yield make("import_cut_values", f"steps of {format_us(step_ns)} us")
    if any(not foreign.end_ns for _, foreign in kept):
        yield make("import_no_histogram")
        return
    beyond = sum(t.overflow for t, _ in kept)
    if beyond:
        end_ns = min(foreign.end_ns for t, foreign in kept if t.overflow)
        yield make(
            "import_beyond_histogram",
            f"{beyond} of {format_us(end_ns)} us or more, the longest of "
            f"{format_us(max(t.max_ns or 0 for t, _ in kept))} us",
        )


def _periods(record: RunRecord) -> Iterator[Caveat]:
    threads = record.result.threads
    if all(t.missed_periods is not None for t in threads):
        return
    interval_ns, length_ns = record.run.interval_ns, record.run.duration_ns
    detail = ""
    if interval_ns and length_ns:
        due = length_ns // interval_ns
        known = [t.samples for t in threads if t.samples is not None]
        lacking = [due - samples for samples in known if samples < due / TOO_MANY]
        if lacking:
            detail = (
                f"{due} periods in {format_duration(length_ns)}, up to {max(lacking)} "
                "of a thread have no sample"
            )
    yield make("import_missed_periods", detail)


def _time(record: RunRecord) -> Iterator[Caveat]:
    threads = record.result.threads
    watched_ns = observed_ns(threads)
    if not watched_ns:
        yield make("import_time_unknown")
        return
    interval_ns, length_ns = record.run.interval_ns, record.run.duration_ns
    if not length_ns:
        yield make("import_time_counted", f"at least {format_duration(watched_ns)}")
    elif interval_ns:
        most = max(t.samples or 0 for t in threads)
        # Tools tell whole seconds: 1.9 s is 1 s to some.
        if most > TOO_MANY * ((length_ns + WHOLE_NS) // interval_ns + 1):
            yield make(
                "import_contradicts",
                f"{most} samples of one thread, but only {length_ns // interval_ns} "
                f"periods in {format_duration(length_ns)}",
            )
    if watched_ns < SHORT_RUN_NS:
        yield make("short_run", format_duration(watched_ns))


def _copied(threads: Sequence[ThreadResult]) -> Iterator[Caveat]:
    by_histogram: dict[object, list[int]] = {}
    for place, thread in enumerate(threads):
        if len(thread.histogram) >= TELLING_BUCKETS:
            by_histogram.setdefault(thread.histogram, []).append(place)
    for same in by_histogram.values():
        if len(same) > 1:
            yield make("import_copied", f"threads {format_cpulist(same)}")
