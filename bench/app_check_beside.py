"""
What rtscope app check finds beside strace, perf trace and ltrace, and at what cost.

Each tool is attached to an offender (tests/offenders/offender.c) that runs already, and
finds an offence if its summary names the call, the fault or the event. The slow-down is
that of the program of watching_cost.py: medians of wake-up latency and cycle, alone and
under each tool, in blocks of random order. A tool that is not installed is left out.
"""

import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import watching_cost

ROOT = Path(__file__).parent.parent
OFFENDER = ROOT / "tests" / "offenders" / "offender.c"
WATCH_S = 2.0
BEGIN_S = 0.5
END_S = 30.0
BLOCKS = 5
SKIP, COUNT = 1500, 2000
"""Cycles of 1 ms before and while the slow-down is measured."""

TOOLS = {
    "strace -c": ("strace", "-f", "-c", "-o", "{out}", "-p", "{pid}"),
    "perf trace -s": ("perf", "trace", "-s", "-o", "{out}", "-p", "{pid}"),
    "ltrace -c": ("ltrace", "-f", "-c", "-o", "{out}", "-p", "{pid}"),
}
CHECK = "rtscope app check"

# Offence: the finding, and how the summary of another tool would name it.
OFFENCES = {
    "malloc": ("RA07", r"\bmalloc\b"),
    "mmap": ("RA08", r"\bmmap\b"),
    "write": ("RA09", r"\bwrite\b"),
    "minor-fault": ("RA05", r"\bfaults?\b"),
    "mutex": ("RA10", r"\b(futex|pthread_mutex_lock)\b"),
    "inversion": ("RA11", r"inversion"),
    "preempted": ("RA13", r"preempt"),
    "migration": ("RA15", r"\bmigrat"),
    "signal": ("RA21", r"\b(SIGUSR1|tgkill|raise)\b"),
    "not-locked": ("RA04", r"\bunlocked\b"),
    "priority-99": ("RA02", r"\bpriority\b"),
}


def tools() -> list[str]:
    """Return those that are installed; rtscope is always there."""
    return [CHECK, *(name for name, argv in TOOLS.items() if shutil.which(argv[0]))]


def command(tool: str, pid: int, out: Path) -> list[str]:
    """Return the command that attaches a tool to a process."""
    if tool == CHECK:
        words = ("app", "check", "--json", "--fail-on", "never", "--duration")
        return [sys.executable, "-m", "rtscope", *words, f"{WATCH_S:g}s", str(pid)]
    return [word.format(pid=pid, out=out) for word in TOOLS[tool]]


def attach(tool: str, pid: int, out: Path) -> "subprocess.Popen[bytes]":
    """Start a tool; rtscope answers into the file that the others write."""
    with out.open("wb") as answer:
        return subprocess.Popen(
            command(tool, pid, out),
            stdout=answer if tool == CHECK else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def end(tool: str, running: "subprocess.Popen[bytes]") -> None:
    """End it as a user would: rtscope ends by itself."""
    if tool != CHECK:
        running.send_signal(signal.SIGINT)
    try:
        running.wait(END_S)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()


def found_in(tool: str, offence: str, said: str) -> bool:
    """Whether the answer of a tool names an offence."""
    id_, words = OFFENCES[offence]
    return bool(re.search(rf'"id": "{id_}"' if tool == CHECK else words, said))


def answer(tool: str, offence: str, program: Path, folder: Path) -> str:
    """Return what a tool says of a program that commits an offence."""
    out = folder / "answer"
    with subprocess.Popen([str(program), offence, str(program)]) as offender:
        try:
            time.sleep(BEGIN_S)
            running = attach(tool, offender.pid, out)
            time.sleep(WATCH_S)
            end(tool, running)
        finally:
            offender.kill()
    return out.read_text("utf-8", "replace")


def slowed(tool: str | None, paced: Path, folder: Path) -> tuple[float, float]:
    """Return the medians of wake-up latency and cycle in us, under a tool or alone."""
    argv = [str(paced), str(SKIP), str(COUNT), "busy"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as program:
        running = None
        if tool is not None:
            time.sleep(BEGIN_S)
            running = attach(tool, program.pid, folder / "answer")
        said = program.communicate()[0].split()
        if running is not None and tool is not None:
            end(tool, running)
    return float(said[0]) / 1000, float(said[2]) / 1000


def print_costs(names: Sequence[str], folder: Path) -> None:
    """Print what each tool costs, in blocks of random order."""
    paced = watching_cost.built()
    order = random.Random(1)
    variants: list[str | None] = [None, *names]
    figures: dict[str | None, list[tuple[float, float]]] = {v: [] for v in variants}
    for _ in range(BLOCKS):
        order.shuffle(variants)
        for variant in variants:
            figures[variant].append(slowed(variant, paced, folder))
    print("\n| under | wake-up median, µs | cycle median, µs | times the cycle |")
    print("|---|---:|---:|---:|")
    alone = sorted(one[1] for one in figures[None])[BLOCKS // 2]
    for name, runs in figures.items():
        wake, cycle = (sorted(one[at] for one in runs)[BLOCKS // 2] for at in (0, 1))
        print(
            f"| {name or 'nothing'} | {wake:.1f} | {cycle:.1f} | {cycle / alone:.1f} |"
        )


def main() -> None:
    """Print both tables."""
    names = tools()
    for name in [one for one in TOOLS if one not in names]:
        print(f"left out, not installed: {name}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        program = folder / "prog"
        build = ("gcc", "-O1", "-g", "-Wl,-z,now", "-o", str(program), str(OFFENDER))
        subprocess.run([*build, "-pthread"], check=True)
        print(f"| offence | finding | {' | '.join(names)} |")
        print(f"|---|---|{'---|' * len(names)}")
        clean = {name: answer(name, "clean", program, folder) for name in names}
        for offence, (id_, _) in OFFENCES.items():
            # what a tool says of the clean program too is not found
            cells = " | ".join(
                "yes"
                if found_in(name, offence, answer(name, offence, program, folder))
                and not found_in(name, offence, clean[name])
                else "-"
                for name in names
            )
            print(f"| {offence} | {id_} | {cells} |", flush=True)
        print_costs(names, folder)


if __name__ == "__main__":
    main()
