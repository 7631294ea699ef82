"""What the agent says of the kernel's trace around the worst wake-ups."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from rtscope.contract.values import Count, CounterDelta, Cpu, CpuTime, Flag, Text

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
