"""
How long it takes to explain 64 wake-ups of two kernels of a virtual board.

Each kernel is measured once under `cpu` and `memory`, with its 16 latest wake-ups. The
CPU time includes Python's start and reading the kernels' symbols.
"""

import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

TIMES = 3
LIMIT_S = 5.0
MEASURED = (
    *("--target", "virtual:pc", "--kernel", "debian-6.12-rt,debian-6.12"),
    *("--load", "cpu,memory", "--duration", "3s", "--interval", "1ms"),
)


def cpu_s(words: Sequence[str]) -> float:
    """Return the seconds of CPU time of one call of rtscope."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    argv = [sys.executable, "-m", "rtscope", *words]
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Measure once, explain a few times, and print the least and the most."""
    with tempfile.TemporaryDirectory(prefix="rtscope-") as place:
        measured = str(Path(place) / "result")
        cpu_s(("run", *MEASURED, "-q", "--out", measured))
        times = [cpu_s(("explain", measured, "-q")) for _ in range(TIMES)]
    print(
        f"rtscope explain, 64 wake-ups of two kernels: {min(times):.1f} to "
        f"{max(times):.1f} s of CPU time (at most {LIMIT_S:g} s)"
    )


if __name__ == "__main__":
    main()
