"""What an agent tells once a second, in case that its result never comes."""

from dataclasses import dataclass, field
from typing import Literal

from rtscope.contract.values import BucketLow, Count, Cpu, Times


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
