"""
What one run cost besides latency: image, memory, wake-ups of an idle machine, work.

The instructions of an operation are those of every CPU that was not idle, with what the
measuring threads executed, by the operations that stress-ng counted.
"""

from rtscope.host.units import NS_PER_S
from rtscope.machine.facts import memory_available_bytes
from rtscope.record.model import RunRecord
from rtscope.stats.summary import total_of

IDLE = "idle"


def kernel_bytes(record: RunRecord) -> int | None:
    """Return the size of the kernel's image; None for a run of a machine."""
    return record.virtual.kernel_bytes if record.virtual else None


def memory_available_kb(record: RunRecord) -> float | None:
    """Return MemAvailable of /proc/meminfo when measuring began."""
    size_bytes = memory_available_bytes(record.facts_before)
    return None if size_bytes is None else size_bytes / 1024


def wakeups_per_s(record: RunRecord) -> float | None:
    """
    Return the interrupts per second of all CPUs that woke no measuring thread.

    None without counters, and if one interrupt woke more than one of those threads.
    """
    machine = record.result.machine
    if machine is None:
        return None
    interrupts = sum(sum(delta.per_cpu.values()) for delta in machine.interrupts)
    own = total_of(thread.samples for thread in record.result.threads)
    if own is None or interrupts < own:
        return None
    return (interrupts - own) / _measured_s(record)


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


def _measured_s(record: RunRecord) -> float:
    return (record.result.end_ns - record.result.start_ns) / NS_PER_S
