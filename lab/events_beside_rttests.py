"""
Thread-to-thread latencies beside rt-tests', alternating on this machine.

Each program of rt-tests wakes a thread on the same CPU; so does `cpu=same` here. Both
take the same interval, CPU and priority, one after the other, ROUNDS times. rt-tests
prints whole microseconds, cut; averages are compared, because it prints no median.
"""

import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROUNDS = 5
COUNT = 2000
INTERVAL_US = 1000
CPU, PRIORITY = 1, 80

CUT_US = 1
"""rt-tests cuts each latency to whole microseconds."""

PAIRS: Mapping[str, str] = {
    "ptsematest": "sem",
    "svsematest": "sem",
    "pmqtest": "mq",
    "signaltest": "signal",
    "sigwaittest": "signal",
}
"""A program of rt-tests, and the nearest event; ptsematest takes a mutex, svsematest a
semaphore of System V. signaltest sends a signal around a ring of two threads that it
does not pin, and measures the round: it is shown, and not judged."""


def theirs(program: str) -> float:
    """Return the average latency of one run of a program of rt-tests, in us."""
    threads = ("-t2",) if program == "signaltest" else ("-t1",)
    pinned = () if program == "signaltest" else (f"-a{CPU}",)
    timed = () if program == "signaltest" else (f"-i{INTERVAL_US}",)
    argv = [program, *threads, *pinned, f"-p{PRIORITY}", *timed, f"-l{COUNT}", "-q"]
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run(
            [*argv, f"--json={file.name}"], check=True, capture_output=True, timeout=60
        )
        text = Path(file.name).read_text("utf-8")
    found = [float(x) for x in re.findall(r'"avg":\s*([0-9.]+)', text)]
    return statistics.mean(found)


def ours(agent: str, event: str) -> float:
    """Return the average latency of one run of ours, in us."""
    done = subprocess.run(
        [
            *(agent, "measure", "--event", f"{event}:cpu=same", "--cpus", str(CPU)),
            *("--priority", str(PRIORITY), "--interval-ns", str(INTERVAL_US * 1000)),
            *("--duration-ns", str(COUNT * INTERVAL_US * 1000)),
        ],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    (thread,) = json.loads(done.stdout.splitlines()[-1])["threads"]
    return float(int(thread["sum_ns"]) / thread["samples"] / 1000)


def main() -> int:
    """Print both beside each other; 1 if the ranges of the runs do not meet."""
    agent = sys.argv[1]
    apart = 0
    for program, event in PAIRS.items():
        a, b = [], []
        for _ in range(ROUNDS):
            a.append(theirs(program))
            b.append(ours(agent, event))
        meet = min(b) <= max(a) + CUT_US and min(a) <= max(b) + CUT_US
        judged = program != "signaltest"
        apart |= judged and not meet
        print(
            f"{program:12} {statistics.median(a):6.1f} ({min(a):.1f} to {max(a):.1f})  "
            f"{event:7} {statistics.median(b):6.1f} ({min(b):.1f} to {max(b):.1f}) us  "
            f"{'meet' if meet else 'APART' if judged else 'not the same'}"
        )
    return int(apart)


if __name__ == "__main__":
    sys.exit(main())
