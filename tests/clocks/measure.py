"""
Hand clock readings from CPU to CPU on a board, and count those that were too early.

    PYTHONPATH=src:tests python -m clocks.measure 10000000 jh7110:jh7110-6.12-rt ...

prints a table in Markdown, that of lab/virtual-clocks.md.
"""

import json
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rtscope.boards.catalogue import get_board
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepare import prepare
from rtscope.boards.runs.boot import boot
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.host.units import NS_PER_S
from rtscope.machine.target import agent_file

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

NS_PER_READING = 10_000
"""Far more than any board takes for both clocks."""


@dataclass(frozen=True, slots=True)
class Clock:
    """A clock of a board, as its CPUs have read it."""

    name: str
    handed: int
    """Readings that were compared with one of another CPU."""
    backwards: int
    """Those of them that were earlier."""
    worst: int
    """By how much, in the clock's own units."""


def hand_over(name: str, kernel: str, *, times: int) -> tuple[Clock, ...]:
    """Boot a board with a program on each CPU, until each clock was read so often."""
    board = get_board(name)
    context = BuildContext(cache=cache_dir(), agent=agent_file)
    script = (
        f"cp /job/clocks . && chmod +x clocks\n./clocks {times} >/out/clocks.json\n"
    )
    booted = boot(
        prepare(board, kernel, context=context),
        Job(script, files={"clocks": _program(board.arch)}),
        seed=1,
        timeout=BootTimeout(100 * NS_PER_S + times * NS_PER_READING),
        stopped=lambda: False,
    )
    found = json.loads(booted.text("clocks.json"))
    return tuple(Clock(clock, **counts) for clock, counts in found.items())


def _program(arch: str) -> bytes:
    """Compile the program, with the C library that the agent's compiler has."""
    cache = ROOT / "agent/build/zig-cache"
    places = (f"ZIG_{of}_CACHE_DIR={cache}" for of in ("LOCAL", "GLOBAL"))
    zig = (sys.executable, "-m", "ziglang", "cc", "-target", f"{arch}-linux-musl")
    words = ("env", *places, *zig, "-g0", "-s", "-static", "-O2", "-pthread")
    with tempfile.TemporaryDirectory() as name:
        made = Path(name) / "clocks"
        source = str(HERE / "clocks.c")
        subprocess.run([*words, "-o", str(made), source], check=True)
        return made.read_bytes()


def main() -> None:
    """Print a row for each board and kernel, which are written BOARD:KERNEL."""
    times, *boards = sys.argv[1:]
    print("| board | kernel | clock | handed over | backwards | host CPU, s |")
    print("|---|---|---|---:|---:|---:|")
    for each in boards:
        name, kernel = each.split(":")
        before_s = _children_cpu_s()
        found = hand_over(name, kernel, times=int(times))
        took_s = _children_cpu_s() - before_s
        for clock in found:
            print(
                f"| {name} | {kernel} | {clock.name} | {clock.handed:,} | "
                f"{clock.backwards:,} | {took_s:.0f} |",
                flush=True,
            )


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
