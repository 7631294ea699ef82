"""
What importing a long file costs: CPU time and memory, which must grow as it does.

    PYTHONPATH=src .venv/bin/python bench/long_imports.py --lines 1000000,10000000
    PYTHONPATH=src .venv/bin/python bench/long_imports.py --gigabytes 2

A file of lines is what cyclictest -v prints, one value each; one of gigabytes is a
histogram of a million rows as cyclictest prints it up to 2.6, rows of zeros too, whose
rows have as many threads as that takes. Each file is made in TMPDIR, imported by a
process of its own, and removed.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TextIO

ROWS = 1_000_000
"""As cyclictest's longest histogram has."""

FILLED = 1000
"""Rows with a sample of each thread."""

IMPORT = """
import sys
from pathlib import Path
from rtscope.record.foreign import read
from rtscope.verbs.exchange.records import Stated, record_of
from rtscope.record.foreign.source import Source
source = Source(Path(sys.argv[1]))
(run,) = read(source)
made = record_of(run, source, Stated(), run_id="001-x", repetition=1, command=())
print(sum(t.samples for t in made.result.threads))
"""


def write_values(file: TextIO, lines: int) -> int:
    """Write so many values of four threads; return their number."""
    for cycle in range(lines // 4):
        for thread in range(4):
            latency = 5 + (cycle * 7919 + thread * 13) % 60
            file.write(f"{thread:8}:{cycle:8}:{latency:8}\n")
    return lines // 4 * 4


def write_histogram(file: TextIO, size_bytes: int) -> int:
    """Write a histogram of about this size; return its number of samples."""
    threads = size_bytes // (ROWS * 7)
    filled, empty = ("\t".join([word] * threads) for word in ("000001", "000000"))
    file.write("# Histogram\n")
    for index in range(ROWS):
        file.write(f"{index:06} {filled if index < FILLED else empty}\n")
    for name, value in (("Min", 0), ("Avg", (FILLED - 1) // 2), ("Max", FILLED - 1)):
        file.write(f"# {name} Latencies: {' '.join([str(value)] * threads)}\n")
    file.write(f"# Histogram Overflows: {' '.join(['0'] * threads)}\n")
    return FILLED * threads


def measure(write: Callable[[TextIO], int]) -> None:
    """Import one file, and print what that took."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        with path.open("w") as file:
            samples = write(file)
        size = path.stat().st_size
        child = subprocess.Popen(
            [sys.executable, "-c", IMPORT, str(path)], stdout=subprocess.PIPE, text=True
        )
        said = child.stdout.read() if child.stdout else ""
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    right = child.returncode == 0 and int(said) == samples
    print(
        f"{size / 1e6:,.0f} MB, {samples:,} samples: {cpu_s(used):.1f} s of CPU time, "
        f"{used.ru_maxrss / 1024:,.0f} MiB" + ("" if right else f": WRONG: {said!r}"),
        flush=True,
    )


def cpu_s(used: resource.struct_rusage) -> float:
    """Return user and system time."""
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Measure the files that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("--lines", default="")
    parser.add_argument("--gigabytes", default="")
    asked = parser.parse_args()
    for word in filter(None, asked.lines.split(",")):
        measure(partial(write_values, lines=int(word)))
    for word in filter(None, asked.gigabytes.split(",")):
        measure(partial(write_histogram, size_bytes=int(float(word) * 1e9)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
