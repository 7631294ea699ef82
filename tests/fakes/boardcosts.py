"""Runs of a virtual board with counters, operations, memory and an image."""

from dataclasses import replace

from fakes.measurements import on_board, record, thread
from rtscope.contract.values import CounterDelta, CpuTime
from rtscope.machine.facts import FactValue
from rtscope.record.model import RunRecord

SECOND = 1_000_000_000


def run(
    load: str,
    *,
    seed: int = 1,
    interrupts: int = 2_600,
    idle_s: float = 0.0,
    operations: float = 0.0,
    memory_kb: int | None = 900_000,
    kernel_bytes: int | None = 5 << 20,
) -> RunRecord:
    """Return a run of a board of two CPUs for 1 s, with 1,000 samples on each."""
    threads = [thread([5_000] * 1_000, cpu=cpu) for cpu in (0, 1)]
    made = on_board(record(threads), seed=seed, kernel_bytes=kernel_bytes)
    counter = CounterDelta("LOC", "Local timer interrupts", {0: 2_000, 1: 0})
    others = CounterDelta("RES", "", {1: interrupts - 2_000})
    idle_ns = int(idle_s * SECOND)
    times = [replace(time(cpu), idle_ns=idle_ns if cpu else 0) for cpu in (0, 1)]
    assert made.result.machine is not None
    result = replace(
        made.result,
        start_ns=0,
        end_ns=SECOND,
        machine=replace(
            made.result.machine,
            interrupts=(counter, others),
            cpu_times=tuple(times),
        ),
    )
    fact = FactValue(memory_kb, "/proc/meminfo", "" if memory_kb else "no such file")
    return replace(
        made,
        run=replace(made.run, load=load, seed=seed),
        result=result,
        load=replace(made.load, name=load, throughput={load: operations}),
        facts_before={**made.facts_before, "memory_available_kb": fact},
    )


def time(cpu: int) -> CpuTime:
    """Return the time of a CPU that did nothing."""
    return CpuTime(cpu, 0, 0, 0, 0, 0, 0)
