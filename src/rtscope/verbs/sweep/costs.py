"""
What a cell costs besides latency: its image, memory, wake-ups of an idle machine, work.

All are medians over seeds.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from rtscope.record.model import RunRecord
from rtscope.stats.costs import (
    IDLE,
    instructions_per_operation,
    kernel_bytes,
    memory_available_kb,
    wakeups_per_s,
)
from rtscope.verbs.sweep.keys import key_of


@dataclass(frozen=True, slots=True)
class Costs:
    """Medians over the seeds of a cell; None, or no entry, where nothing tells."""

    kernel_bytes: int | None = None
    """Size of the kernel's image."""
    memory_available_kb: float | None = None
    """MemAvailable of /proc/meminfo when measuring began, under the load idle."""
    wakeups_per_s: float | None = None
    """
    Interrupts per virtual second of all CPUs under the load idle, without those that
    wake the measuring threads: what keeps an idle machine from deep sleep.
    """
    instructions: Mapping[str, float] = field(default_factory=dict)
    """Per operation of a load, by its name."""


NO_COSTS = Costs()


def costs_of(records: Sequence[RunRecord]) -> Costs:
    """
    Return what the runs of one cell cost besides latency.

    Nothing of a load with runs that differ in more than the seed, such as the kernel: a
    median over them would be of no run.
    """
    by_load: dict[str, list[RunRecord]] = defaultdict(list)
    for record in records:
        by_load[record.run.load].append(record)
    keys = {load: {key_of(one.run) for one in of} for load, of in by_load.items()}
    by_load = {load: of for load, of in by_load.items() if len(keys[load]) == 1}
    idle = by_load.get(IDLE, [])
    sizes = {kernel_bytes(one) for one in records} - {None}
    per_load = {
        load: _median(map(instructions_per_operation, of))
        for load, of in by_load.items()
    }
    return Costs(
        kernel_bytes=sizes.pop() if len(sizes) == 1 else None,
        memory_available_kb=_median(map(memory_available_kb, idle)),
        wakeups_per_s=_median(map(wakeups_per_s, idle)),
        instructions={k: v for k, v in per_load.items() if v is not None},
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
