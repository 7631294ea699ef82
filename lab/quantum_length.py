"""
How results and host time of a virtual board change with the length of its quantum.

Boots the same board with each length, load, number of the load's workers and seed, with
nothing else changed, and prints a table of docs/explanation/quantum-length.md.
"""

import argparse
import os
import re
import resource
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from rtscope.boards.catalogue import Board, get_board
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepare import prepare
from rtscope.boards.runs.boot import boot
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.contract import (
    AgentResult,
    parse_line,
    require,
)
from rtscope.machine.target import agent_file
from rtscope.measure.loads import get_load

QUANTA = (250, 500, 1000, 2500, 5000, 10_000)
LOADS = ("idle", "cpu", "os", "memory")
INTERVAL_NS = 1_000_000
WARMUP_S = 1
_OPERATIONS = re.compile(r"bogo-ops-per-second-real-time: ([0-9.]+)")


@dataclass(frozen=True, slots=True)
class Boot:
    """What one boot gave."""

    minimum_ns: int
    sum_ns: int
    samples: int
    maximum_ns: int
    operations: float
    """Bogo operations per virtual second."""
    host_s: float
    """User CPU time of QEMU, boot included: unlike elapsed time, no neighbour's."""
    instructions: int


def script(load: str, *, workers: int, seconds: float, seed: int) -> str:
    """Return what the board does: load, warm-up, measurement."""
    argv = " ".join(get_load(load).argv).format(workers=workers)
    stressed = (
        f"stress-ng {argv} --seed {seed} --temp-path /tmp --metrics"
        " --yaml /out/load.yaml >/dev/null 2>&1 &\nload=$!\n"
    )
    return (
        (stressed if argv else "")
        + f"sleep {WARMUP_S}\n"
        + "rtscope-agent measure --policy fifo --priority 98"
        + f" --interval-ns {INTERVAL_NS} --duration-ns {int(seconds * 1e9)}"
        + f" --phase-ns {seed * 37_013} >/out/measure.jsonl\n"
        + ("kill $load\nwait $load\n" if argv else "")
    )


def measure(
    board: Board, kernel: str, job: Job, *, seed: int, timeout: BootTimeout
) -> Boot:
    """Boot once."""
    context = BuildContext(cache=cache_dir(os.environ), agent=agent_file)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    booted = boot(
        prepare(board, kernel, context=context),
        job,
        seed=seed,
        timeout=timeout,
        stopped=lambda: False,
    )
    host_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    lines = map(parse_line, booted.files["measure.jsonl"].splitlines())
    threads = next(line for line in lines if isinstance(line, AgentResult)).threads
    operations = _OPERATIONS.search(booted.text("load.yaml"))
    return Boot(
        minimum_ns=min(t.min_ns for t in threads if t.min_ns is not None),
        sum_ns=sum(require(t.sum_ns) for t in threads),
        samples=sum(t.own.samples for t in threads),
        maximum_ns=max(t.max_ns for t in threads if t.max_ns is not None),
        operations=float(operations[1]) if operations else 0.0,
        host_s=host_s,
        instructions=booted.counts["instructions"],
    )


def boots(
    board: Board, args: argparse.Namespace, *, load: str, workers: int
) -> Iterator[Boot]:
    """Measure with one seed after the other."""
    timeout = BootTimeout(int(args.seconds * 1e9), WARMUP_S * 10**9)
    for seed in range(1, args.seeds + 1):
        job = Job(script(load, workers=workers, seconds=args.seconds, seed=seed))
        yield measure(board, args.kernel, job, seed=seed, timeout=timeout)


def as_table_row(load: str, workers: int, quantum: int, found: Sequence[Boot]) -> str:
    """Write a row in Markdown."""
    mean_ns = sum(b.sum_ns for b in found) / sum(b.samples for b in found)
    host_s = sum(b.host_s for b in found)
    operations = sum(b.operations for b in found) / len(found)
    return (
        f"| {load} | {workers} | {quantum:,} "
        f"| {min(b.minimum_ns for b in found) / 1e3:.2f} "
        f"| {mean_ns / 1e3:.2f} | {max(b.maximum_ns for b in found) / 1e3:,.1f} "
        f"| {operations:,.0f} | {host_s:.1f} "
        f"| {sum(b.instructions for b in found) / host_s / 1e6:.0f} |"
    )


def main() -> None:
    """Print the table of one board and kernel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--board", default="jh7110")
    parser.add_argument("--kernel", default="jh7110-6.12-rt")
    parser.add_argument("--load", action="append", help="repeatable")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument(
        "--quantum", type=int, action="append", help="in instructions; repeatable"
    )
    parser.add_argument(
        "--workers", type=int, action="append", help="of the load; repeatable"
    )
    args = parser.parse_args()
    print(
        "| load | workers | quantum | min | avg | max "
        "| operations/s | host CPU, s | MIPS |\n"
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    )
    named = get_board(args.board)
    for load, workers, quantum in product(
        args.load or LOADS, args.workers or (named.cpus,), args.quantum or QUANTA
    ):
        board = replace(named, quantum_instructions=quantum)
        found = list(boots(board, args, load=load, workers=workers))
        print(as_table_row(load, workers, quantum, found), flush=True)


if __name__ == "__main__":
    main()
