"""
What rtscope app check finds beside strace, perf trace and ltrace, and at what cost.

Each tool is attached to an offender (tests/offenders/offender.c) that runs already, and
finds an offence if its summary names the call, the fault or the event; one whose
summary has no such line does not look for it. The slow-down is that of the program of
watching_cost.py: medians of wake-up latency and cycle, alone and under each tool, in
blocks of random order. A tool that is not installed is left out; one that could not be
attached, or said nothing, failed: that is no answer, and it has no cost.
"""

import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

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

FAILED, BLIND = "failed", "does not look for it"

_ENDED = (0, -signal.SIGINT, 128 + signal.SIGINT)
"""Statuses of a tool that was interrupted, or whose program ended."""
_UNSEEN = 3
"""rtscope answered, and could not see all."""

_CALLS = ("strace -c", "perf trace -s")
_ALL = (*_CALLS, "ltrace -c")


@dataclass(frozen=True, slots=True)
class Offence:
    """What is to be found."""

    id_: str
    """The finding."""
    words: str = ""
    """How the summary of another tool names it."""
    by: tuple[str, ...] = ()
    """The tools whose summary has lines for it."""

    def looked_for_by(self, tool: str) -> bool:
        """Whether a tool could name it."""
        return tool == CHECK or tool in self.by


OFFENCES = {
    "malloc": Offence("RA07", r"\bmalloc\b", ("ltrace -c",)),
    "mmap": Offence("RA08", r"\bmmap\b", _ALL),
    "write": Offence("RA09", r"\bwrite\b", _ALL),
    "minor-fault": Offence("RA05"),
    "mutex": Offence("RA10", r"\b(futex|pthread_mutex_lock)\b", _ALL),
    "inversion": Offence("RA11"),
    "preempted": Offence("RA13"),
    "migration": Offence("RA15"),
    "signal": Offence("RA21", r"\b(SIGUSR1|tgkill|raise)\b", _ALL),
    "not-locked": Offence("RA04"),
    "priority-99": Offence("RA02"),
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


def gone_early(tool: str, running: "subprocess.Popen[bytes]") -> bool:
    """Whether a tool that watches until it is interrupted has ended by itself."""
    return tool != CHECK and running.poll() is not None


def ended_well(
    tool: str, running: "subprocess.Popen[bytes]", *, lives: bool = True
) -> bool:
    """
    End it as a user would (rtscope ends by itself); return whether it was attached.

    One that ended although its program `lives` was not.
    """
    early = lives and gone_early(tool, running)
    if tool != CHECK and running.poll() is None:
        running.send_signal(signal.SIGINT)
    try:
        status = running.wait(END_S)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()
        return False
    return not early and status in ((0, _UNSEEN) if tool == CHECK else _ENDED)


def cell(tool: str, offence: Offence, said: str | None, clean: str | None) -> str:
    """Return a cell; what a tool says of the clean program too is not found."""
    if not offence.looked_for_by(tool):
        return BLIND
    if said is None or clean is None:
        return FAILED
    words = rf'"id": "{offence.id_}"' if tool == CHECK else offence.words
    return "yes" if re.search(words, said) and not re.search(words, clean) else "-"


def answer(tool: str, offence: str, program: Path, folder: Path) -> str | None:
    """Return what a tool says of a program that commits an offence; None: it failed."""
    out = folder / "answer"
    with subprocess.Popen([str(program), offence, str(program)]) as offender:
        try:
            time.sleep(BEGIN_S)
            running = attach(tool, offender.pid, out)
            time.sleep(WATCH_S)
            attached = ended_well(tool, running)
        finally:
            offender.kill()
    said = out.read_text("utf-8", "replace")
    return said if attached and said.strip() else None


def slowed(tool: str | None, paced: Path, folder: Path) -> tuple[float, float] | None:
    """
    Return the medians of wake-up latency and cycle in us, under a tool or alone.

    None if the tool failed.
    """
    argv = [str(paced), str(SKIP), str(COUNT), "busy"]
    out = folder / "answer"
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as program:
        running = None
        if tool is not None:
            time.sleep(BEGIN_S)
            running = attach(tool, program.pid, out)
            time.sleep(BEGIN_S)
            if gone_early(tool, running):
                program.kill()
                return None
        said = program.communicate()[0].split()
        if running is not None and tool is not None:
            attached = ended_well(tool, running, lives=False)
            if not attached or not out.read_text("utf-8", "replace").strip():
                return None
    return float(said[0]) / 1000, float(said[2]) / 1000


def print_costs(names: Sequence[str], folder: Path) -> None:
    """Print what each tool costs, in blocks of random order."""
    paced = watching_cost.built()
    order = random.Random(1)
    variants: list[str | None] = [None, *names]
    figures: dict[str | None, list[tuple[float, float] | None]] = {
        variant: [] for variant in variants
    }
    for _ in range(BLOCKS):
        order.shuffle(variants)
        for variant in variants:
            figures[variant].append(slowed(variant, paced, folder))
    print("\n".join(cost_lines(figures)))


def cost_lines(
    figures: Mapping[str | None, Sequence[tuple[float, float] | None]],
) -> Iterator[str]:
    """Yield the table of costs; a tool that failed once has no row."""
    yield "\n| under | wake-up median, µs | cycle median, µs | times the cycle |"
    yield "|---|---:|---:|---:|"
    medians = {
        name: tuple(median(one[at] for one in runs if one) for at in (0, 1))
        for name, runs in figures.items()
        if None not in runs
    }
    alone = medians[None][1]
    for name, (wake, cycle) in medians.items():
        words = f"{wake:.1f} | {cycle:.1f} | {cycle / alone:.1f}"
        yield f"| {name or 'nothing'} | {words} |"
    for name, runs in figures.items():
        if None in runs:
            yield f"\n{name}: {FAILED} in {runs.count(None)} of {len(runs)} runs"


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
        for name, offence in OFFENCES.items():
            cells = " | ".join(
                cell(
                    tool,
                    offence,
                    answer(tool, name, program, folder)
                    if offence.looked_for_by(tool)
                    else None,
                    clean[tool],
                )
                for tool in names
            )
            print(f"| {name} | {offence.id_} | {cells} |", flush=True)
        print_costs(names, folder)


if __name__ == "__main__":
    main()
