"""
How long an audit takes, cold start of Python included: watching for a second, and not.

The first takes that second and what the second one takes. Wall-clock times depend on
what else the machine does; CPU times hardly do.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Sequence

TIMES = 5

ASKED = (
    ("rtscope audit", ("audit",), 2.0),
    ("rtscope audit --observe 0", ("audit", "--observe", "0"), 0.5),
)
"""What is timed, and how long it may take on a machine that is otherwise idle."""

FAILS = (0, 1)
"""Exit status of an audit that came to its end."""


def timed(words: Sequence[str]) -> tuple[float, float]:
    """Return seconds on the clock and of CPU time of one call, children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    argv = [sys.executable, "-m", "rtscope", *words]
    done = subprocess.run(argv, stdout=subprocess.DEVNULL, check=False)
    wall_s = time.monotonic() - begin
    if done.returncode not in FAILS:
        raise SystemExit(f"{' '.join(argv)}: exit status {done.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return wall_s, cpu_s


def main() -> None:
    """Time each a few times, and print the best and the worst."""
    for title, words, limit_s in ASKED:
        walls, cpus = zip(*(timed(words) for _ in range(TIMES)), strict=True)
        print(
            f"{title:28} {min(walls):5.2f} to {max(walls):5.2f} s "
            f"(at most {limit_s:g} s), {min(cpus):4.2f} to {max(cpus):4.2f} s of CPU "
            "time"
        )


if __name__ == "__main__":
    main()
