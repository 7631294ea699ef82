"""
How fast a virtual board executes, and what rtscope's plugin costs of that.

Each way of executing does the same work: the load makes a fixed number of operations
while the agent measures, and the board switches itself off. The ways take turns, so
that a busy host slows all of them; what counts is QEMU's user CPU time, boot included,
by the instructions of that boot. Ratios are of medians, for the same work:

  recording  as `rtscope run` boots it
  counting   the same with --no-record
  bounded    a plugin that only bounds the quantum (lab/plugin/bounded.c)
  bare       QEMU with -icount alone: no call of any plugin in what it translates

rtscope counts the instructions of blocks that were begun, the other two take QEMU's
count, which is a little smaller; on x86-64 it also has each round of a `rep`.

With --idle-cpus: a board whose other CPUs are idle, beside the same with one CPU.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rtscope.boards.catalogue import get_board
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepare import prepare
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.qemu import Recording
from rtscope.boards.recording.symbols import find_kernel_layout
from rtscope.boards.runs.boot import boot
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.machine.target import agent_file
from rtscope.measure.loads import get_load

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "bench"

BOARDS = ("jh7110", "pc", "rpi3")
WAYS = ("recording", "counting", "bounded", "bare")
WORST = 16
MEASURED_S = 0.2
IDLE_S = 5.0

OPERATIONS = {"cpu": 250, "os": 4000, "memory": 1600}
"""Of all workers together, for one second of --seconds: of the jh7110, about that."""

PATIENCE_S = 3600.0


@dataclass(frozen=True, slots=True)
class Spent:
    """What one boot took."""

    host_s: float
    """User CPU time of QEMU."""
    instructions: int

    @property
    def mips(self) -> float:
        """Million instructions per second of host CPU time."""
        return self.instructions / self.host_s / 1e6


def compile_bounded() -> Path:
    """Build the plugin that only bounds the quantum, as rtscope's is built."""
    out = BUILD / "bounded.so"
    out.parent.mkdir(parents=True, exist_ok=True)
    cache = str(ROOT / "plugin" / "build" / "zig-cache")
    subprocess.run(
        [
            *(sys.executable, "-m", "ziglang", "cc"),
            *("-target", "x86_64-linux-gnu.2.31", "-std=gnu11", "-O2", "-s"),
            *("-shared", "-fPIC", "-fvisibility=hidden"),
            *(str(ROOT / "lab" / "plugin" / "bounded.c"), "-o", str(out)),
        ],
        env={
            **os.environ,
            "ZIG_LOCAL_CACHE_DIR": cache,
            "ZIG_GLOBAL_CACHE_DIR": cache,
        },
        check=True,
    )
    return out


def job_of(load: str, *, workers: int, seconds: float) -> Job:
    """Return the work: the same operations on every board, however it executes."""
    measured_s = IDLE_S * seconds if load == "idle" else MEASURED_S
    measure = (
        "rtscope-agent measure --policy fifo --priority 98 --interval-ns 1000000"
        f" --duration-ns {int(measured_s * 1e9)} >/out/measure.jsonl"
    )
    if load == "idle":
        return Job(f"{measure}\n")
    argv = " ".join(get_load(load).argv).format(workers=workers)
    operations = int(OPERATIONS[load] * seconds)
    return Job(
        f"{measure} &\nagent=$!\n"
        f"stress-ng {argv} {get_load(load).argv[0]}-ops {operations} --seed 1"
        " --temp-path /tmp >/out/load.log 2>&1\nstatus=$?\nwait $agent\nexit $status\n"
    )


def boot_once(
    prepared: Prepared, job: Job, recording: Recording | None = None
) -> Spent:
    """Boot, and return what that took; SystemExit if the work was not done."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    booted = boot(
        prepared,
        job,
        seed=1,
        # bounded.so tells no progress: nothing but the end of the work ends it.
        timeout=BootTimeout(10**9, still_s=PATIENCE_S),
        stopped=lambda: False,
        recording=recording,
    )
    host_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    if booted.files["status"] != b"0\n":
        raise SystemExit(booted.text("script.log") + booted.text("load.log"))
    return Spent(host_s, booted.counts["instructions"])


def ways_of(prepared: Prepared, job: Job) -> Mapping[str, Callable[[], Spent]]:
    """Return how each way boots the board."""
    bounded = replace(prepared, plugin=compile_bounded())
    unbounded = replace(prepared.board, quantum_instructions=None)
    bare = replace(bounded, board=unbounded)
    layout = find_kernel_layout(prepared, cache=cache_dir(os.environ))
    return {
        "recording": lambda: boot_once(prepared, job, Recording(WORST, layout=layout)),
        "counting": lambda: boot_once(prepared, job),
        "bounded": lambda: boot_once(bounded, job),
        "bare": lambda: boot_once(bare, job),
    }


def take_turns(
    ways: Mapping[str, Callable[[], Spent]], *, times: int
) -> dict[str, list[Spent]]:
    """Boot each way as often, one after the other."""
    spent: dict[str, list[Spent]] = {name: [] for name in ways}
    for _ in range(times):
        for name, run in ways.items():
            spent[name].append(run())
    return spent


def median_s(spent: Sequence[Spent]) -> float:
    """Return the median of host time."""
    return statistics.median(one.host_s for one in spent)


def median_mips(spent: Sequence[Spent]) -> float:
    """Return the median of million instructions per second of host time."""
    return statistics.median(one.mips for one in spent)


def spread(values: Sequence[float]) -> str:
    """Write the median of some values, the lowest and the highest."""
    return f"{statistics.median(values):.0f} ({min(values):.0f}-{max(values):.0f})"


def as_table_row(board: str, load: str, spent: Mapping[str, Sequence[Spent]]) -> str:
    """Write a row in Markdown: MIPS, and what recording is of each other way."""
    cells = [spread([one.mips for one in found]) for found in spent.values()]
    recorded = spent.get("recording")
    for name, found in spent.items():
        if recorded is None or name == "recording":
            continue
        rate = median_mips(recorded) / median_mips(found)
        cells.append(f"{rate:.2f}, {median_s(recorded) / median_s(found):.2f}")
    return f"| {board} | {load} | {' | '.join(cells)} |"


def header(ways: Sequence[str]) -> str:
    """Write the head of the table."""
    cells = [*ways, *(f"recording to {w}" for w in ways if w != "recording")]
    if "recording" not in ways:
        cells = list(ways)
    return f"| board | load | {' | '.join(cells)} |\n{'|---' * (len(cells) + 2)}|"


def prepare_board(name: str, *, cpus: int | None = None) -> Prepared:
    """Return a board with the first of its kernels; None: as many CPUs as it has."""
    board = get_board(name)
    board = replace(board, cpus=cpus or board.cpus)
    context = BuildContext(cache=cache_dir(os.environ), agent=agent_file, log=print)
    return prepare(board, board.kernels[0], context=context)


def show_idle_cpus(name: str, load: str, *, seconds: float, times: int) -> None:
    """Print what idle CPUs cost a board on which one CPU works."""
    job = job_of(load, workers=1, seconds=seconds)
    few, many = prepare_board(name, cpus=1), prepare_board(name)
    ways = {"one": lambda: boot_once(few, job), "all": lambda: boot_once(many, job)}
    spent = take_turns(ways, times=times)
    one, whole = (spread([1000 * s.host_s for s in spent[w]]) for w in ways)
    ratio = median_s(spent["all"]) / median_s(spent["one"])
    cpus = many.board.cpus
    print(f"| {name} | {load} | {one} | {cpus}: {whole} | {ratio:.2f} |", flush=True)


def show(board: str, loads: Sequence[str], args: argparse.Namespace) -> None:
    """Print a board's rows."""
    prepared = prepare_board(board)
    for load in loads:
        job = job_of(load, workers=prepared.board.cpus, seconds=args.seconds)
        ways = {
            name: run
            for name, run in ways_of(prepared, job).items()
            if name in (args.way or WAYS)
        }
        spent = take_turns(ways, times=args.times)
        print(as_table_row(board, load, spent), flush=True)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--board", action="append", help="repeatable")
    parser.add_argument("--load", action="append", help="repeatable")
    parser.add_argument("--way", action="append", choices=WAYS, help="repeatable")
    parser.add_argument("--seconds", type=float, default=1.0, help="of the load")
    parser.add_argument("--times", type=int, default=3, help="that each way boots")
    parser.add_argument("--idle-cpus", action="store_true")
    args = parser.parse_args()
    loads = args.load or ("idle", *OPERATIONS)
    boards = args.board or BOARDS
    if args.idle_cpus:
        print("| board | load | one CPU, ms | all CPUs, ms | ratio |")
        print("|---|---|---|---|---|")
        for board in boards:
            for load in loads:
                show_idle_cpus(board, load, seconds=args.seconds, times=args.times)
        return
    print(header([w for w in WAYS if w in (args.way or WAYS)]))
    for board in boards:
        show(board, loads, args)


if __name__ == "__main__":
    main()
