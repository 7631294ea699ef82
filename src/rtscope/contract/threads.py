"""
What one thread measured: of our own agent, which tells all of it, or of another tool.

The digest by which two measurements are known to be the same, and what an agent tells
once a second in case that its result never comes. `format/README.md` describes each.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from rtscope.contract.values import (
    HIST_MAX_BITS,
    HIST_SUB_BITS,
    BucketLow,
    Count,
    Cpu,
    Flag,
    Sum,
    Text,
    Times,
    without_default,
)
from rtscope.host.units import NS_PER_US

Known = TypeVar("Known")

REAL_TIME = frozenset({"fifo", "rr", "deadline"})
"""Policies whose threads preempt those of every other policy."""
FIXED_PRIORITY = REAL_TIME - {"deadline"}
"""Of these, those in which a thread has a priority."""


@dataclass(frozen=True, slots=True)
class Wakeup:
    """One wake-up worth keeping: when it was due and when the thread ran."""

    cpu: Cpu | None
    seq: Count
    expiry_ns: Count
    wake_ns: Count

    @property
    def latency_ns(self) -> int:
        """How late the thread ran."""
        return self.wake_ns - self.expiry_ns


@dataclass(frozen=True, slots=True)
class ClockCost:
    """Back-to-back clock reads on the measuring thread, in ns."""

    reads: Count
    min_ns: Count
    p50_ns: Count
    p999_ns: Count
    max_ns: Count
    granularity_ns: Count
    """Smallest step seen between two different readings."""


@dataclass(frozen=True, slots=True)
class ForeignBuckets:
    """How another tool kept the latencies of a thread."""

    step_ns: Annotated[int, Field(gt=0, le=2**40, strict=True)]
    """
    The width of every bucket, and the step of minimum, maximum and sum: a latency is up
    to one step longer than its value says.
    """
    end_ns: Annotated[int, Field(ge=0, le=1 << HIST_MAX_BITS, strict=True)]
    """
    From here on latencies are in no bucket, only counted (`overflow`), or are all in
    the last one; 0: there are no buckets.
    """
    mean_ns: Count | None = None
    """The average that the tool itself printed; None if it printed none."""
    threshold_ns: Count | None = None
    """
    The tool looks for latencies from here on only; None: it keeps every latency.

    With it, no sample means that none was so long: a result, and no lack of one.
    """
    beyond_at_ns: tuple[Count, ...] = ()
    """When latencies were due that are in no bucket, as far as the tool lists them."""
    time_step_ns: Annotated[int, Field(gt=0, le=2**40, strict=True)] = 1
    """The step of these times, and of those of `worst`."""
    times_from_start: Flag = True
    """False: the start of the run is unknown, they count from the first of them."""


@dataclass(frozen=True, slots=True)
class ThreadEvent:
    """Which events woke a thread, from which other thread, and what became of them."""

    name: Text
    stimulus_cpu: Count
    stimulus_tid: Count
    stimulus_policy: Text
    stimulus_priority: Count
    sent: Times
    unsent: Times
    """Periods without an event, because the stimulus thread itself was late."""
    stimulus_late_ns: Count
    """The latest that the stimulus thread was for a period of its grid."""
    lost: Times
    """Events that were sent and never came."""
    full: Times
    """Periods without an event, because queue or buffer were full."""
    doubled: Times
    """Events that came again, or that nobody had sent: in no sample."""
    reordered: Times
    """Events that came after a later one: each is a sample."""
    stuck_ns: Count | None = None
    """The longest time in which no event could be sent."""
    silent_ns: Count | None = None
    """The longest time from an event that was lost to the next that came."""


@dataclass(frozen=True, slots=True)
class HwlatWindows:
    """What the kernel's tracer hwlat looked for in each interval of a thread."""

    threshold_ns: Count
    """It reports gaps above this, in steps of a microsecond."""
    width_ns: Count
    """How long of each interval it looks."""
    silent: Times
    """Intervals in which it reported nothing: no samples."""


@dataclass(frozen=True, slots=True)
class TimerlatPart:
    """A part of the latencies that the kernel's tracer timerlat measured."""

    overflow: Times
    min_ns: Count | None
    max_ns: Count | None
    sum_ns: Sum
    sum_sq_ns2: Sum
    histogram: tuple[tuple[BucketLow, Times], ...]


@dataclass(frozen=True, slots=True)
class OwnNumbers:
    """What every thread of our own agent tells; see `ThreadResult`."""

    samples: int
    missed_periods: int
    overruns: int
    sum_ns: int
    sum_sq_ns2: int
    missed_periods_sum_ns: int


@dataclass(frozen=True, slots=True)
class ThreadResult:
    """
    What one measuring thread got, did and saw.

    Only a thread of another tool (`foreign`) may lack what that tool does not tell:
    None, and 0 for thread id, interval and times.
    """

    cpu: Cpu | None
    """The CPU it was pinned to; None if it could not be pinned (SCHED_DEADLINE)."""
    tid: Count
    policy: Text
    priority: Count
    affinity: Text
    timer_slack_ns: Count | None
    interval_ns: Count
    start_ns: Count
    end_ns: Count
    """
    Releases were due at start + k * interval, 1 ≤ k ≤ (end - start) / interval.

    Of another tool both are counted from the start of the run; equal: unknown.
    """
    samples: Times | None
    """None: the tool printed extremes or an average, but no count; 0: no wake-up."""
    missed_periods: Times | None
    overruns: Times | None
    """Samples of a whole interval or more: each swallowed at least one activation."""
    early: Times
    """Samples that woke before their time (suspect the clock); in no sum or bucket."""
    overflow: Times
    """
    Samples in the maximum, and in no bucket: of 2^34 ns or more, or of `foreign.end_ns`
    or more.
    """
    interrupted_sleeps: Times | None
    """Sleeps that ended early by a signal and were resumed."""
    min_ns: Count | None
    max_ns: Count | None
    sum_ns: Sum | None
    sum_sq_ns2: Sum | None
    missed_periods_sum_ns: Sum | None
    """Sum of the latencies that the missed periods would have had."""
    histogram: tuple[tuple[BucketLow, Times], ...]
    """(low_ns, count), ascending; see `buckets`."""
    worst: tuple[Wakeup, ...]
    """The K worst wake-ups, worst first."""
    minor_faults: Count | None
    major_faults: Count | None
    voluntary_switches: Count | None
    involuntary_switches: Count | None
    migrations: Count | None
    cpu_time_ns: Count | None
    clock_before: ClockCost | None
    clock_after: ClockCost | None
    foreign: ForeignBuckets | None = None
    """How another tool kept the latencies; None: our agent did, and told all."""
    event: ThreadEvent | None = None
    """
    What woke the thread; None: its own timer. `expiry_ns` of a wake-up then is when the
    event was about to be sent, and the missed periods are events lost, or not sent
    because queue or buffer were full.
    """
    hwlat: HwlatWindows | None = None
    """Of gaps that the tracer hwlat found; None: no such gaps. Shorter are unknown."""
    timerlat: tuple[TimerlatPart, TimerlatPart] | None = None
    """
    Of latencies of the kernel's own thread, by its tracer timerlat: until the interrupt
    of its timer was handled, and from there on.
    """

    @property
    def own(self) -> OwnNumbers:
        """What our own agent always tells; AssertionError for another tool's."""
        return OwnNumbers(
            require(self.samples),
            require(self.missed_periods),
            require(self.overruns),
            require(self.sum_ns),
            require(self.sum_sq_ns2),
            require(self.missed_periods_sum_ns),
        )

    def __post_init__(self) -> None:
        """Refuse a thread of our own agent that lacks what the agent tells."""
        if self.foreign is None:
            lacking = [name for name in _AGENT_FIELDS if getattr(self, name) is None]
            if lacking:
                raise ValueError(f"{lacking[0]}: missing")
            if self.interval_ns == 0:
                raise ValueError("interval_ns: 0, and a thread that measures has one")

    @property
    def buckets(self) -> list[tuple[int, int, int]]:
        """Return (smallest value, the one above the largest, count), ascending."""
        if self.foreign is None:
            return [
                (low_ns, low_ns + bucket_width_ns(low_ns), count)
                for low_ns, count in self.histogram
            ]
        step_ns = self.foreign.step_ns
        return [(low_ns, low_ns + step_ns, n) for low_ns, n in self.histogram]

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = write(self)
        for name in ("event", "hwlat", "timerlat"):
            written = without_default(written, name, None)
        return written

    @property
    def counted(self) -> int | None:
        """The samples that were not early; None if the tool printed no count."""
        return None if self.samples is None else self.samples - self.early

    @property
    def threshold_ns(self) -> int | None:
        """The latency from which on any is found; None: every latency is kept."""
        if self.hwlat is not None:
            return self.hwlat.threshold_ns + NS_PER_US
        return None if self.foreign is None else self.foreign.threshold_ns

    @property
    def nothing_found(self) -> bool:
        """Whether a tool that has a threshold found no latency that reaches it."""
        return self.threshold_ns is not None and self.samples == 0

    @property
    def watched_ns(self) -> int:
        """The time in which a latency would have been seen."""
        length_ns = self.end_ns - self.start_ns
        if self.hwlat is None:
            return length_ns
        return length_ns * self.hwlat.width_ns // self.interval_ns

    @property
    def overflow_low_ns(self) -> int:
        """Where the latencies begin that are in no bucket."""
        return 1 << HIST_MAX_BITS if self.foreign is None else self.foreign.end_ns

    @property
    def latest_ns(self) -> int | None:
        """The longest that the maximum can have been, before another tool cut it."""
        if self.max_ns is None or self.foreign is None:
            return self.max_ns
        return self.max_ns + self.foreign.step_ns - 1


_AGENT_FIELDS = (
    *(
        "samples",
        "timer_slack_ns",
        "missed_periods",
        "overruns",
        "sum_ns",
        "sum_sq_ns2",
    ),
    *("missed_periods_sum_ns", "clock_before"),
)


def require(value: Known | None) -> Known:
    """Return what our own agent always tells; AssertionError for another tool's."""
    assert value is not None, "only another tool does not tell this"
    return value


_MOST_BUCKETS = 1 << 15
"""More than the agent has: of many records, each is looked at once."""


@lru_cache(maxsize=_MOST_BUCKETS)
def bucket_width_ns(low_ns: int) -> int:
    """Return the width in ns of the bucket from low_ns on: agent/measure/hist.h."""
    return (
        1
        if low_ns < 1 << HIST_SUB_BITS
        else 1 << (low_ns.bit_length() - 1 - HIST_SUB_BITS)
    )


def bucket_low_ns(latency_ns: int) -> int:
    """Return where the bucket of a latency starts."""
    return latency_ns - latency_ns % bucket_width_ns(latency_ns)


@lru_cache(maxsize=_MOST_BUCKETS)
def is_bucket_low(low_ns: int) -> bool:
    """Whether some bucket starts at low_ns."""
    return 0 <= low_ns < 1 << HIST_MAX_BITS and low_ns % bucket_width_ns(low_ns) == 0


# --- the digest of equal measurements -----------------------------------------------


def result_digest(threads: Sequence[ThreadResult]) -> str:
    """
    SHA-256 over what was measured: equal digests mean the same measurement.

    Covers, per CPU: histogram, sums, min, max, skipped, early, worst. The keys stay so
    for ever, whatever the fields are called: results of all versions are compared by
    their digests.
    """
    return sha256_of_json(
        [
            {
                **({} if t.foreign is None else {"step_ns": t.foreign.step_ns}),
                **({} if t.hwlat is None else {"silent": t.hwlat.silent}),
                "cpu": t.cpu,
                "histogram": [list(pair) for pair in t.histogram],
                "sum_ns": str(t.sum_ns),
                "sum_sq_ns2": str(t.sum_sq_ns2),
                "min_ns": t.min_ns,
                "max_ns": t.max_ns,
                "skipped": t.missed_periods,
                "early": t.early,
                "worst": [[w.cpu, w.seq, w.expiry_ns, w.wake_ns] for w in t.worst],
            }
            for t in threads
        ]
    )


def sha256_of_json(value: object) -> str:
    """Return the digest of a value's JSON, which is one however it was made."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


# --- growth, once a second ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CpuGrowth:
    """One thread's histogram: totals since the start, buckets since the line before."""

    cpu: Cpu | None
    missed_periods: Times
    early: Times
    overflow: Times
    max_ns: Count
    """0 without a sample that was not early."""
    histogram: tuple[tuple[BucketLow, Times], ...]
    """(low_ns, growth), ascending, without buckets that did not grow."""


@dataclass(frozen=True, slots=True)
class Growth:
    """Once a second: what the histogram of each thread has grown by."""

    type: Literal["growth"] = field(kw_only=True, default="growth")
    cpus: tuple[CpuGrowth, ...]
