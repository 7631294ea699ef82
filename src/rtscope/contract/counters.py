"""What counters of the machine grew by between two looks at them."""

from collections.abc import Mapping
from dataclasses import dataclass

from rtscope.contract.scalars import Count, Cpu, Text


@dataclass(frozen=True, slots=True)
class CounterDelta:
    """How often something happened on each CPU between start and end."""

    id: Text
    name: Text
    per_cpu: Mapping[Cpu, Count]


@dataclass(frozen=True, slots=True)
class CpuTime:
    """Where the time of one CPU went during the run, from /proc/stat."""

    cpu: Cpu
    steal_ns: Count
    irq_ns: Count
    softirq_ns: Count
    user_ns: Count
    system_ns: Count
    idle_ns: Count
