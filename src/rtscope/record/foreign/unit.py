"""
The unit of a text that does not name it: who names it, and what speaks against it.

cyclictest prints microseconds, or with -N nanoseconds, in the same form. A command in
the file decides. Otherwise microseconds are assumed, and each number that is hardly
possible in the unit is a doubt.
"""

from collections.abc import Iterator, Sequence

from rtscope.host.units import NS_PER_US, format_duration
from rtscope.record.caveats.catalogue import Caveat, make
from rtscope.record.foreign.model import ForeignRun, ForeignThread, Unit
from rtscope.record.foreign.rttests import Options

SURE_US = 1000
"""A smallest latency of so many microseconds is rather one of nanoseconds."""

LIKELY_US = 200
"""So is this one, if the average is near it: no machine wakes all threads so late."""

NEAR = 3
"""An average of less than so many minima is near the minimum."""

LEAST_NS = 100
"""No thread wakes up within so many nanoseconds: an interrupt alone takes longer."""

MANY_BUCKETS = 200
FEW_IN_EACH = 20
"""Microseconds gather thousands of samples in few buckets, nanoseconds do not."""


def unit_of_text(commands: Sequence[str], named_ns: int | None) -> Unit:
    """Return the unit, by whoever imports the file, or by commands in it."""
    by_command = {
        1 if Options(command).has("N", "--nsecs") else NS_PER_US for command in commands
    }
    said = by_command.pop() if len(by_command) == 1 else None
    if named_ns is not None:
        other = said is not None and said != named_ns
        return Unit(
            step_ns=named_ns,
            told=f"{named_ns} ns (named)",
            contradicted="the command in the file says another one" if other else "",
        )
    if said is not None:
        return Unit(step_ns=said, told=f"{said} ns (by the command in the file)")
    return Unit(step_ns=NS_PER_US, told="us (assumed)", assumed=True)


def unit_doubts(
    run: ForeignRun, *, interval_ns: int, length_ns: int
) -> Iterator[Caveat]:
    """
    Yield the doubt about the unit of a run; `interval_ns` and `length_ns` if known.

    They are what whoever imports the file names, else what the file has.
    """
    if run.unit.contradicted:
        yield make("import_unit_contradicted", run.unit.contradicted)
    elif run.unit.assumed:
        reasons = [_too_long(t, interval_ns, length_ns) for t in run.threads]
        if reason := next(filter(None, reasons), ""):
            yield make("import_unit_assumed", reason)
    elif run.unit.told and run.unit.step_ns < NS_PER_US:
        lows = [t.min_ns for t in run.threads if t.min_ns is not None and t.max_ns]
        if lows and min(lows) < LEAST_NS:
            yield make(
                "import_unit_contradicted",
                f"the smallest is {min(lows)} ns, which no wake-up can be",
            )


def _too_long(thread: ForeignThread, interval_ns: int, length_ns: int) -> str:
    """Return what is hardly possible in microseconds; empty if nothing is."""
    low_us, mean_us = (
        None if ns is None else ns // NS_PER_US for ns in (thread.min_ns, _mean(thread))
    )
    interval_us = (interval_ns or thread.interval_ns) // NS_PER_US
    if low_us is not None and low_us >= SURE_US:
        return f"the smallest is {low_us}"
    if mean_us is None:
        return ""
    if interval_us and mean_us > interval_us:
        return f"the average, {mean_us}, is above the interval of {interval_us} us"
    spent_us = (thread.samples or 0) * mean_us
    if length_ns and spent_us * NS_PER_US > length_ns:
        return (
            f"{thread.samples} latencies of {mean_us} on average take longer than the "
            f"run, {format_duration(length_ns)}"
        )
    if low_us is not None and low_us >= LIKELY_US and mean_us < NEAR * low_us:
        return f"the smallest is {low_us}, and the average, {mean_us}, is near it"
    buckets = len(thread.buckets)
    counted = sum(thread.buckets.values())
    many = buckets >= MANY_BUCKETS and counted < FEW_IN_EACH * buckets
    if many and low_us is not None and low_us >= LEAST_NS:
        return f"{counted} samples are spread over {buckets} rows of the histogram"
    return ""


def _mean(thread: ForeignThread) -> int | None:
    if thread.mean_ns is not None:
        return thread.mean_ns
    counted = sum(thread.buckets.values())
    if not counted:
        return None
    return sum(low * n for low, n in thread.buckets.items()) // counted
