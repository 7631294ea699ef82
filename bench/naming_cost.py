"""
CPU seconds and memory of `rtscope app check` by language, without those of `--light`.

A program of each language runs with a FIFO thread, and is watched for 2 s with and
without probes and cycles: the difference is events, stacks and names. Languages whose
compiler or interpreter is not installed are left out, with a line.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

SOURCES = Path(__file__).parent / "languages"
TURNS = 3
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
    _, _, usage = os.wait4(started.pid, 0)
    started.returncode = 0
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Print a table: medians of all turns, the first one without a cache."""
    print("| program | check, s | `--light`, s | difference, s | MiB |")
    print("|---|--:|--:|--:|--:|")
    for name, (needed, build) in LANGUAGES.items():
        if shutil.which(needed) is None:
            print(f"| {name} | left out: {needed} is not installed | | | |")
            continue
        with tempfile.TemporaryDirectory(prefix="rtscope-bench-") as made:
            folder = Path(made)
            command = build(folder)
            whole = [used(command, folder / f"cache{n}") for n in range(TURNS)]
            light = [used(command, folder / "cache0", "--light") for _ in range(TURNS)]
        both = statistics.median(cpu for cpu, _ in whole)
        less = statistics.median(cpu for cpu, _ in light)
        most = max(mib for _, mib in (*whole, *light))
        print(f"| {name} | {both:.1f} | {less:.1f} | {both - less:.1f} | {most:,.0f} |")


if __name__ == "__main__":
    main()
