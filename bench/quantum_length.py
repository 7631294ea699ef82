"""
How results and host time of a virtual board change with the length of its CPUs' quanta.

Boots the same board once for each length, with nothing else changed, and prints a table
of docs/explanation/quantum-length.md. No quantum reaches the last length: QEMU ends
each when the guest's next timer is due, as if nothing bounded it.
"""

import argparse
import os
import resource
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rtscope.board.buildcontext import BuildContext
from rtscope.board.cache import cache_dir
from rtscope.board.catalogue import Board, get_board
from rtscope.board.initrd import Job
from rtscope.board.prepare import prepare
from rtscope.contract import AgentResult, parse_line
from rtscope.loads import get_load
from rtscope.target import agent_file
from rtscope.virtual.boot import BootTimeout, boot

QUANTA_US = (1, 2, 5, 10, 20, 50, 20_000)
INTERVAL_NS = 1_000_000
WARMUP_S = 1


@dataclass(frozen=True, slots=True)
class Row:
    """What one quantum length gave."""

    quantum_us: int
    minimum_ns: int
    mean_ns: float
    maximum_ns: int
    host_s: float
    """User CPU time of QEMU, boot included: unlike elapsed time, no neighbour's."""
    instructions: int


def script(load: str, *, cpus: int, seconds: float, seed: int) -> str:
    """Return what the board does: load, warm-up, measurement."""
    argv = " ".join(get_load(load).argv).format(workers=cpus)
    return (
        f"stress-ng {argv} --no-rand-seed --temp-path /tmp >/dev/null 2>&1 &\n"
        f"sleep {WARMUP_S}\n"
        "rtscope-agent measure --policy fifo --priority 98"
        f" --interval-ns {INTERVAL_NS} --duration-ns {int(seconds * 1e9)}"
        f" --phase-ns {seed * 37_013} >/out/measure.jsonl\n"
    )


def measure(
    board: Board, kernel: str, job: Job, *, seed: int, timeout: BootTimeout
) -> Row:
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
    samples = sum(t.samples for t in threads)
    return Row(
        quantum_us=board.quantum_instructions * 2**board.shift // 1000,
        minimum_ns=min(t.min_ns for t in threads if t.min_ns is not None),
        mean_ns=sum(t.sum_ns for t in threads) / samples,
        maximum_ns=max(t.max_ns for t in threads if t.max_ns is not None),
        host_s=host_s,
        instructions=booted.counts["instructions"],
    )


def rows(
    board: Board, args: argparse.Namespace, *, quanta_us: Sequence[int]
) -> Iterator[Row]:
    """Measure with one quantum length after the other."""
    job = Job(script(args.load, cpus=board.cpus, seconds=args.seconds, seed=args.seed))
    timeout = BootTimeout(int(args.seconds * 1e9), WARMUP_S * 10**9)
    for quantum_us in quanta_us:
        quantum = quantum_us * 1000 >> board.shift
        bounded = replace(board, quantum_instructions=quantum)
        yield measure(bounded, args.kernel, job, seed=args.seed, timeout=timeout)


def as_table_row(row: Row) -> str:
    """Write a row in Markdown."""
    return (
        f"| {row.quantum_us:,} | {row.minimum_ns / 1e3:.1f} "
        f"| {row.mean_ns / 1e3:.1f} | {row.maximum_ns / 1e3:,.1f} "
        f"| {row.host_s:.1f} | {row.instructions / row.host_s / 1e6:.0f} |"
    )


def main() -> None:
    """Print the table of one board, kernel and load."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--board", default="jh7110")
    parser.add_argument("--kernel", default="jh7110-6.12-rt")
    parser.add_argument("--load", default="os")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--quantum", type=int, action="append", help="in us; repeatable"
    )
    args = parser.parse_args()
    print(
        "| quantum, us | min | avg | max | host CPU, s | MIPS |\n"
        "|---|---|---|---|---|---|"
    )
    for row in rows(get_board(args.board), args, quanta_us=args.quantum or QUANTA_US):
        print(as_table_row(row), flush=True)


if __name__ == "__main__":
    main()
