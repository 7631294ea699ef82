"""
CPU seconds and memory of `rtscope app check` by language, without those of `--light`.

A program of each language runs with a FIFO thread, and is watched for 2 s with and
without probes and cycles: the difference is events, stacks and names. Languages whose
compiler or interpreter is not installed are left out, with a line. A language takes a
minute on a machine at rest: name those to run, and with --turns how often.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

SOURCES = Path(__file__).parent / "languages"
STATUSES = (0, 1, 3)
"""Of a check with an answer: nothing, something, or not everything seen."""
FIFO = ("chrt", "-f", "40")


def _compiled(*argv: str) -> Callable[[Path], Sequence[str]]:
    def build(folder: Path) -> Sequence[str]:
        out = folder / "program"
        words = [word.format(out=out, sources=SOURCES) for word in argv]
        subprocess.run(words, check=True, cwd=folder)
        return [*FIFO, str(out)]

    return build


def _java(folder: Path) -> Sequence[str]:
    source = str(SOURCES / "Control.java")
    subprocess.run(["javac", "-d", str(folder), source], check=True)
    return [*FIFO, "java", "-cp", str(folder), "Control"]


LANGUAGES: dict[str, tuple[str, Callable[[Path], Sequence[str]]]] = {
    "C": ("gcc", _compiled("gcc", "-g", "-O2", "-o", "{out}", "{sources}/control.c")),
    "Rust": (
        "rustc",
        _compiled("rustc", "-gO", "-o", "{out}", "{sources}/control.rs"),
    ),
    "Go": ("go", _compiled("go", "build", "-o", "{out}", "{sources}/control.go")),
    "Python": (
        "python3",
        lambda _: [*FIFO, sys.executable, str(SOURCES / "control.py")],
    ),
    "Node": ("node", lambda _: [*FIFO, "node", str(SOURCES / "control.js")]),
    "Java": ("javac", _java),
}


def used(command: Sequence[str], cache: Path, *options: str) -> tuple[float, float]:
    """Return CPU seconds and MiB of a check of a command."""
    words = ("app", "check", "--duration", "2s", "--settle", "2s", "--json")
    started = subprocess.Popen(
        [sys.executable, "-m", "rtscope", *words, *options, "--", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
    )
    _, status, usage = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode not in STATUSES:
        raise SystemExit(f"{command}: the check ended with {started.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def row_of(name: str, turns: int) -> str:
    """Measure a language: medians of all turns, the first one without a cache."""
    needed, build = LANGUAGES[name]
    if shutil.which(needed) is None:
        return f"| {name} | left out: {needed} is not installed | | | |"
    whole, light = [], []
    with tempfile.TemporaryDirectory(prefix="rtscope-bench-") as made:
        folder = Path(made)
        command = build(folder)
        for turn in range(turns):
            whole.append(used(command, folder / f"cache{turn}"))
            light.append(used(command, folder / "cache0", "--light"))
    both = statistics.median(cpu for cpu, _ in whole)
    less = statistics.median(cpu for cpu, _ in light)
    most = max(mib for _, mib in (*whole, *light))
    return f"| {name} | {both:.1f} | {less:.1f} | {both - less:.1f} | {most:,.0f} |"


def main() -> None:
    """Print a table, each row when it is measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("languages", nargs="*", help="default: all", metavar="LANGUAGE")
    parser.add_argument("--turns", type=int, default=3, help="default: 3")
    asked = parser.parse_args()
    if unknown := [one for one in asked.languages if one not in LANGUAGES]:
        parser.error(f"no language {unknown[0]}: name some of {', '.join(LANGUAGES)}")
    print("| program | check, s | `--light`, s | difference, s | MiB |")
    print("|---|--:|--:|--:|--:|", flush=True)
    for name in asked.languages or LANGUAGES:
        print(row_of(name, asked.turns), flush=True)


if __name__ == "__main__":
    main()
