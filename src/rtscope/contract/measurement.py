"""
What measuring agents write: how they began, their ticks, result and trace.

All times are int64 nanoseconds of CLOCK_MONOTONIC on the target.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from rtscope.contract.threads import ClockCost, ThreadEvent, ThreadResult, Wakeup
from rtscope.contract.values import (
    Count,
    CounterDelta,
    Cpu,
    CpuTime,
    Flag,
    Schema,
    Text,
    Whole,
    without_default,
)

# --- what the agent says of the kernel's trace around the worst wake-ups --------------

MAX_BASE64 = 64 * 1024 * 1024

Known = Annotated[int, Field(ge=-1, le=2**63 - 1, strict=True)]
"""A count, or -1 where the kernel does not tell."""


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A file of tracefs or /proc that a reader of the trace needs."""

    type: Literal["trace_file"] = field(kw_only=True, default="trace_file")
    name: Text
    base64: Annotated[str, Field(max_length=MAX_BASE64)]


@dataclass(frozen=True, slots=True)
class TracePages:
    """Consecutive raw pages of the trace of one CPU, as the kernel wrote them."""

    type: Literal["trace_pages"] = field(kw_only=True, default="trace_pages")
    cpu: Cpu
    seq: Count
    """Number of the first of them: what is not there was not kept."""
    base64: Annotated[str, Field(max_length=MAX_BASE64)]


@dataclass(frozen=True, slots=True)
class Samples:
    """With kept wake-ups: consecutive periods of a thread, as `format/` packs them."""

    type: Literal["samples"] = field(kw_only=True, default="samples")
    cpu: Cpu | None
    first: Count
    """How many periods came before."""
    periods: Count
    base64: Annotated[str, Field(max_length=MAX_BASE64)]


@dataclass(frozen=True, slots=True)
class TracedCpu:
    """How much of the trace of one CPU was read, and what was lost of it."""

    cpu: Cpu
    events: Count
    pages: Count
    gaps: Count
    """Pages before which the kernel had overwritten others."""
    damaged: Count
    overrun: Known
    """Events that the kernel overwrote; -1 where it does not tell."""
    dropped: Known


@dataclass(frozen=True, slots=True)
class KeptTrace:
    """A wake-up around which the trace was kept."""

    cpu: Cpu | None
    seq: Count
    expiry_ns: Count
    wake_ns: Count
    from_ns: Count
    to_ns: Count
    pages: Count
    truncated: Flag
    """Not all of the time asked for was still there."""
    overwritten: Flag
    """The kernel had overwritten events within that time."""


@dataclass(frozen=True, slots=True)
class CpuRuns:
    """What the scheduler of one CPU counted, from /proc/schedstat."""

    cpu: Cpu
    tasks: Count
    """How often a task was put on the CPU."""
    ran_ns: Count
    waited_ns: Count
    """How long tasks waited for the CPU, all together."""


@dataclass(frozen=True, slots=True)
class Around:
    """
    What the machine's counters grew by around a wake-up, where there is no trace.

    Weaker evidence than one: between the two looks, a tenth of a second or more, other
    things happened too.
    """

    cpu: Cpu | None
    seq: Count
    expiry_ns: Count
    wake_ns: Count
    from_ns: Count
    to_ns: Count
    """The begin of the look before, and the end of the look after."""
    truncated: Flag
    """The look before was later than the expiry."""
    interrupts: tuple[CounterDelta, ...]
    softirqs: tuple[CounterDelta, ...]
    cpu_times: tuple[CpuTime, ...]
    switches: Known
    """Changes of tasks on all CPUs; -1 where the kernel does not tell."""
    schedstat: tuple[CpuRuns, ...]
    """Empty where the kernel has no /proc/schedstat."""


@dataclass(frozen=True, slots=True)
class Tracing:
    """Whether the kernel's events were recorded, which, and what was lost."""

    enabled: Flag
    cause: Text
    """A word for what refused: empty if nothing did."""
    reason: Text
    remedy: Text
    clock: Text
    page_bytes: Count
    buffer_kb: Count
    """Of each CPU's ring in the kernel."""
    longest_read_gap_ns: Count
    """Between two times that the rings were emptied."""
    candidates_lost: Count
    events: tuple[Text, ...]
    missing_events: tuple[Text, ...]
    """Events that this kernel does not have."""
    cpus: tuple[TracedCpu, ...]
    kept: tuple[KeptTrace, ...]
    """The worst first."""
    counter_deltas: tuple[Around, ...] = ()
    """The worst first; only if the kernel's events could not be recorded."""


# --- what measuring agents write: how they began, their ticks, and their result -------

LOST = "lost"
"""Why a run ended whose result never came: this host says it, no agent does."""


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
    locked_kb: Count | None
    """None, as is whatever else was not told: of another tool."""
    dma_latency_us: Count | None
    dma_latency_held: Flag | None
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
    event: ThreadEvent | None = None

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without_default(write(self), "event", None)


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
    """One thread's state in a tick; `max_ns` is since the tick before."""

    cpu: Cpu | None
    samples: Count
    missed_periods: Count
    max_ns: Count


@dataclass(frozen=True, slots=True)
class Tick:
    """How far the threads are, and the hardware: once a second, seldomer if long."""

    type: Literal["tick"] = field(kw_only=True, default="tick")
    t_ns: Count
    """Since the start of the measurement."""
    cpus: tuple[TickCpu, ...]
    freq_khz: Mapping[Cpu, Count]
    temp_mc: Mapping[Text, int]
    energy_uj: Mapping[Text, Count] = field(default_factory=dict)
    """Counters of powercap by zone, such as `package-0/intel-rapl:0`."""
    power_uw: Mapping[Text, Whole] = field(default_factory=dict)
    """Of hwmon, such as `amdgpu/power1/0`."""
    device_mc: Mapping[Text, Whole] = field(default_factory=dict)
    """Temperatures of hwmon: of the board, of a graphics card, of disks."""
    memory_used_kb: Count | None = None
    """All but MemAvailable; None where it was not read."""

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        made = write(self)
        for key in ("energy_uj", "power_uw", "device_mc"):
            made = without_default(made, key, {})
        return without_default(made, "memory_used_kb", None)


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
