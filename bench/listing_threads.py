"""
How long 20,000 threads take to list: rtscope tasks beside a script of chrt and taskset.

The script does what the widespread ones do, for each thread `chrt -p`, `ps -o nice` and
`taskset -p`; it is timed over the first 300 threads and scaled, and that is said.
Wall-clock times depend on what else the machine does; CPU times hardly do.
"""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rtscope.machine.target import agent_file

THREADS = 20_000
SAMPLED = 300
SCENE = Path(__file__).parent.parent / "tests" / "system" / "policies.py"

SCRIPT = """
for tid; do
    chrt -p "$tid"; ps -o nice= -q "$tid"; taskset -p "$tid"
done
"""


def timed(argv: Sequence[str]) -> tuple[float, float]:
    """Return seconds on the clock and of CPU time, children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    subprocess.run(
        argv, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    wall_s = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return wall_s, cpu_s


def row(title: str, wall_s: float, cpu_s: float) -> None:
    """Print one way to list them."""
    print(f"{title:44} {wall_s:9.2f} s {cpu_s:9.2f} s of CPU time")


def compare(pid: int) -> None:
    """Time all three, and print the ratios."""
    tids = [task.name for task in Path(f"/proc/{pid}/task").iterdir()]
    scale = len(tids) / SAMPLED
    script = [x * scale for x in timed(["sh", "-c", SCRIPT, "sh", *tids[:SAMPLED]])]
    agent = timed([str(agent_file(os.uname().machine)), "tasks"])
    command = timed([sys.executable, "-m", "rtscope", "tasks"])

    print(f"{len(tids):,} threads in one process, and all others of the machine")
    row(f"script, {SAMPLED} threads times {scale:.1f}", script[0], script[1])
    row("rtscope-agent tasks", *agent)
    row("rtscope tasks, Python's start included", *command)
    for title, ours in (("agent", agent), ("rtscope tasks", command)):
        print(
            f"{title}: {script[0] / ours[0]:.0f} times as fast, "
            f"{script[1] / ours[1]:.0f} times less CPU time"
        )


def main() -> None:
    """Start the threads, and end them again."""
    threads = sys.argv[1] if len(sys.argv) > 1 else str(THREADS)
    program = subprocess.Popen(
        [sys.executable, str(SCENE), "many", threads],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert program.stdout is not None
        if not program.stdout.readline():
            raise SystemExit(
                f"{threads} threads cannot be started here: see ulimit -u and "
                "/proc/sys/kernel/threads-max"
            )
        compare(program.pid)
    finally:
        program.kill()
        program.communicate()


if __name__ == "__main__":
    main()
