"""
What watching a program costs its real-time thread, counted on a virtual board.

The program of watching_cost.py runs on the board `pc`, once for each row, in one boot.
A virtual us is 500 instructions there, so what a wake-up takes longer is exact.
Arguments: `quiet` (the default), `busy`, or `loaded`, where an ordinary thread copies
zeros on the same CPU, which the wake-ups then interrupt; and another agent to measure.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rtscope.boards.catalogue import get_board
from rtscope.boards.parts import initrd
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepare import prepare
from rtscope.boards.runs.boot import boot
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.contract import CyclesEnd, WatchEnd, parse_line
from rtscope.machine.target import agent_file
from watching_cost import BUILD, CYCLES, PACED, WATCH

CYCLES_EACH = 400
SKIPPED = 1500
"""Cycles while the agent begins to watch."""
ROWS = {
    "nothing": (),
    "watch": (WATCH,),
    "cycles": (CYCLES,),
    "both": (CYCLES, WATCH),
}
"""What watches, in the order of `rtscope app check`."""
LINES = {
    WATCH: "/bench/agent watch --pid $pid --stacks 32 --duration-ns 3000000000",
    CYCLES: "/bench/agent cycles --pid $pid --duration-ns 3000000000",
}
AFTER = "sleep 0.5"
"""Until one has measured what a wake-up is without and with it."""
LOAD = "taskset 1 dd if=/dev/zero of=/dev/null bs=16k 2>/dev/null &"
TIMEOUT_NS = 60 * 10**9
PARANOID = "/proc/sys/kernel/perf_event_paranoid"
"""Debian's kernel has 3; at -1 the rights of the agent make no difference."""


def built() -> Path:
    """Compile the program, static."""
    BUILD.mkdir(parents=True, exist_ok=True)
    source, out = BUILD / "paced.c", BUILD / "paced-static"
    source.write_text(PACED)
    zig = (sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-musl")
    subprocess.run([*zig, "-D_GNU_SOURCE", "-O2", "-o", out, source], check=True)
    return out


def script_of(mode: str) -> str:
    """Return what the board's shell runs."""
    words = "busy" if mode == "busy" else ""
    loads = mode == "loaded"
    lines = [f"echo -1 >{PARANOID}"]
    for row in ROWS.values():
        lines += [
            f"/bench/paced {SKIPPED} {CYCLES_EACH} {words} >>/out/figures &",
            "pid=$!",
            *([LOAD, "load=$!"] if loads else []),
            "sleep 0.15",
            *(
                word
                for part in row
                for word in (f"{LINES[part]} >/out/{part} &", AFTER)
            ),
            *(["wait $pid", "kill $load"] if loads else []),
            "wait",
        ]
    return "\n".join([*lines, "true", ""])


def figures(agent: Path, mode: str) -> tuple[Sequence[Sequence[float]], float]:
    """Return the figures of each row, and the cost that the last states; virtual us."""
    board = get_board("pc")
    context = BuildContext(cache=cache_dir(os.environ), agent=agent_file, log=print)
    prepared = prepare(board, board.kernels[0], context=context)
    archive = BUILD / "watching.cpio"
    files = {"bench/agent": agent, "bench/paced": built()}
    packed = {k: initrd.File(v.read_bytes(), runs=True) for k, v in files.items()}
    archive.write_bytes(initrd.pack(packed))
    booted = boot(
        replace(prepared, archives=(*prepared.archives, archive)),
        Job(script_of(mode)),
        seed=1,
        timeout=BootTimeout(0, TIMEOUT_NS),
        stopped=lambda: False,
    )
    said = booted.files["figures"].decode().splitlines()
    rows = [[float(word) / 1000 for word in line.split()] for line in said]
    # of the last row, which has both
    watch, cycles = (
        parse_line(booted.files[part].splitlines()[-1]) for part in (WATCH, CYCLES)
    )
    assert isinstance(watch, WatchEnd)
    assert isinstance(cycles, CyclesEnd)
    rest, recorded_ns = watch.costs["wakeup"], cycles.wakeup_recorded_ns
    stated_ns = rest.counted_ns - rest.plain_ns
    stated_ns += recorded_ns - cycles.wakeup_plain_ns
    return rows, stated_ns / 1000


def main() -> None:
    """Print a table."""
    mode = sys.argv[1] if len(sys.argv) > 1 else "quiet"
    agent = Path(sys.argv[2]) if len(sys.argv) > 2 else agent_file("x86_64")
    print("| watched by | wake-up median, virtual µs | more | cycle median | more |")
    print("|---|---:|---:|---:|---:|")
    measured, stated = figures(agent, mode)
    rows = dict(zip(ROWS, measured, strict=True))
    bare = rows["nothing"]
    for name, row in rows.items():
        print(
            f"| {name} | {row[0]:.1f} | {row[0] - bare[0]:+.1f} "
            f"| {row[2]:.1f} | {row[2] - bare[2]:+.1f} |"
        )
    print(f"Stated of both: {stated:+.1f} virtual µs for a wake-up.")


if __name__ == "__main__":
    main()
