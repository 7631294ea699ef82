"""
What a cell costs besides latency: its image, memory, wake-ups of an idle machine, work.

All are medians over seeds. The instructions of an operation are those of every CPU that
was not idle, with what the measuring threads executed, by the operations that stress-ng
counted.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from rtscope.machine.facts import memory_available_bytes
from rtscope.record.model import RunRecord
from rtscope.sweep.keys import key_of
from rtscope.units import NS_PER_S


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
IDLE = "idle"


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


def kernel_bytes(record: RunRecord) -> int | None:
    """Return the size of the kernel's image; None for a run of a machine."""
    return record.virtual.kernel_bytes if record.virtual else None


def memory_available_kb(record: RunRecord) -> float | None:
    """Return MemAvailable of /proc/meminfo when measuring began."""
    found = memory_available_bytes(record.facts_before)
    return None if found is None else found / 1024


def wakeups_per_s(record: RunRecord) -> float | None:
    """
    Return the interrupts per second of all CPUs that woke no measuring thread.

    None without counters, and if one interrupt woke more than one of those threads.
    """
    machine = record.result.machine
    if machine is None:
        return None
    interrupts = sum(sum(delta.per_cpu.values()) for delta in machine.interrupts)
    own = sum(thread.samples for thread in record.result.threads)
    return (interrupts - own) / _measured_s(record) if interrupts >= own else None


def operations_per_s(record: RunRecord) -> float | None:
    """Return what stress-ng counted, of all stressors; None if it counted nothing."""
    return sum(record.load.throughput.values()) or None


def instructions_per_operation(record: RunRecord) -> float | None:
    """
    Return the instructions of an operation of the load on a virtual board.

    They are those of every CPU that was not idle.
    """
    board, machine = record.virtual, record.result.machine
    rate = operations_per_s(record)
    if board is None or machine is None or not rate:
        return None
    idle_s = sum(one.idle_ns for one in machine.cpu_times) / NS_PER_S
    busy = max(0.0, board.cpus - idle_s / _measured_s(record))
    return busy * board.mips * 1e6 / rate


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _measured_s(record: RunRecord) -> float:
    return (record.result.end_ns - record.result.start_ns) / NS_PER_S
