"""
What measuring agents write: how they began, their ticks, and their result.

All times are int64 nanoseconds of CLOCK_MONOTONIC on the target.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from rtscope.contract.tracing import Tracing
from rtscope.contract.values import (
    BucketLow,
    Count,
    CounterDelta,
    Cpu,
    CpuTime,
    Flag,
    Schema,
    Sum,
    Text,
    Times,
)

LOST = "lost"
"""Why a run ended whose result never came: this host says it, no agent does."""


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
class ThreadResult:
    """What one measuring thread got, did and saw."""

    cpu: Cpu | None
    """The CPU it was pinned to; None if it could not be pinned (SCHED_DEADLINE)."""
    tid: Count
    policy: Text
    priority: Count
    affinity: Text
    timer_slack_ns: Count
    interval_ns: Count
    start_ns: Count
    end_ns: Count
    """Releases were due at start + k * interval, 1 ≤ k ≤ (end - start) / interval."""
    samples: Times
    missed_periods: Times
    overruns: Times
    """Samples of a whole interval or more: each swallowed at least one activation."""
    early: Times
    """Samples that woke before their time (suspect the clock); in no sum or bucket."""
    overflow: Times
    """Samples of 2^34 ns or more: in sums and maximum, in no bucket."""
    interrupted_sleeps: Times | None
    """Sleeps that ended early by a signal and were resumed."""
    min_ns: Count | None
    max_ns: Count | None
    sum_ns: Sum
    sum_sq_ns2: Sum
    missed_periods_sum_ns: Sum
    """Sum of the latencies that the missed periods would have had."""
    histogram: tuple[tuple[BucketLow, Times], ...]
    """(low_ns, count), ascending; bucket width: `bucket_width_ns(low_ns)`."""
    worst: tuple[Wakeup, ...]
    """The K worst wake-ups, worst first."""
    minor_faults: Count | None
    major_faults: Count | None
    voluntary_switches: Count | None
    involuntary_switches: Count | None
    migrations: Count | None
    cpu_time_ns: Count | None
    clock_before: ClockCost
    clock_after: ClockCost | None


@dataclass(frozen=True, slots=True)
class KernelThread:
    """CPU time that a kernel or interrupt thread used during the run."""

    tid: Count
    name: Text
    kind: Text
    """`irq` for an interrupt thread, else `kernel`."""
    cpu: Cpu
    """The CPU it ran on last."""
    cpu_time_ns: Count


@dataclass(frozen=True, slots=True)
class Machine:
    """Deltas of the machine's own counters over the run."""

    interrupts: tuple[CounterDelta, ...]
    softirqs: tuple[CounterDelta, ...]
    cpu_times: tuple[CpuTime, ...]
    kernel_threads: tuple[KernelThread, ...]
    kernel_threads_left_out: Count
    kernel_threads_left_out_ns: Count
    throttle_counts: Mapping[Cpu, Count] | None
    """Thermal throttle events per CPU; None where the machine has no counter."""
    smi_count: Count | None
    realtime_step_ns: Count
    """Largest jump of CLOCK_REALTIME against CLOCK_MONOTONIC between two ticks."""
    suspended_ns: Count


@dataclass(frozen=True, slots=True)
class AgentResult:
    """The last line of a measurement."""

    type: Literal["result"] = field(kw_only=True, default="result")
    start_ns: Count
    end_ns: Count
    stopped: Text | None
    """
    Why it ended before its time: `signal`, `parent`, or `lost` if it never came.

    None if it did not. What a lost one would have said last is None in this record.
    """
    locked_kb: Count
    dma_latency_us: Count | None
    dma_latency_held: Flag
    housekeeping_cpu: Count | None
    kernel_log_lost: Count | None
    kernel_log: Text
    """`watched`, or why it could not be: `denied`, `missing`."""
    threads: tuple[ThreadResult, ...]
    machine: Machine | None
    ticks_lost: Count = 0
    """Ticks the agent could not write because nobody read them in time."""
    tracing: Tracing | None = None
    """None if no trace was asked for."""


@dataclass(frozen=True, slots=True)
class Hello:
    """First line: who measures, and with which options as the agent took them."""

    type: Literal["hello"] = field(kw_only=True, default="hello")
    schema: Schema
    agent: Text
    arch: Text
    options: Mapping[str, Any]
    restored: tuple[Text, ...] = ()
    """Settings that a killed run had left changed and that were put back now."""


@dataclass(frozen=True, slots=True)
class ThreadStarted:
    """What one measuring thread got, before its first sample; see `ThreadResult`."""

    cpu: Cpu | None
    tid: Count
    policy: Text
    priority: Count
    affinity: Text
    timer_slack_ns: Count
    interval_ns: Annotated[int, Field(gt=0, le=2**63 - 1, strict=True)]
    start_ns: Count
    clock_before: ClockCost


@dataclass(frozen=True, slots=True)
class Started:
    """With growth: what a result says that is known when its threads are let go."""

    type: Literal["started"] = field(kw_only=True, default="started")
    start_ns: Count
    locked_kb: Count
    dma_latency_us: Count | None
    dma_latency_held: Flag
    housekeeping_cpu: Count | None
    kernel_log: Text
    threads: tuple[ThreadStarted, ...]


@dataclass(frozen=True, slots=True)
class TickCpu:
    """One thread's state in a tick; `max_ns` is of the last second, 0 if no sample."""

    cpu: Cpu | None
    samples: Count
    missed_periods: Count
    max_ns: Count


@dataclass(frozen=True, slots=True)
class Tick:
    """Once a second: how far the threads are, and the state of the hardware."""

    type: Literal["tick"] = field(kw_only=True, default="tick")
    t_ns: Count
    """Since the start of the measurement."""
    cpus: tuple[TickCpu, ...]
    freq_khz: Mapping[Cpu, Count]
    temp_mc: Mapping[Text, int]


@dataclass(frozen=True, slots=True)
class WorstSoFar:
    """A CPU had a new maximum since the last tick."""

    type: Literal["worst"] = field(kw_only=True, default="worst")
    wakeup: Wakeup


@dataclass(frozen=True, slots=True)
class KernelMessage:
    """A line the kernel logged during the run; level as in syslog (0 worst)."""

    type: Literal["kmsg"] = field(kw_only=True, default="kmsg")
    time_us: Count
    level: Count
    text: Text


@dataclass(frozen=True, slots=True)
class AgentError:
    """The agent gave up; `cause` is a word from the contract, `remedy` what to type."""

    type: Literal["error"] = field(kw_only=True, default="error")
    message: Text
    cause: Text
    remedy: Text
