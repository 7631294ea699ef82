"""
The cost of a wake-up that `rtscope app check` states, beside the one in cyclictest.

One cyclictest runs all the time and prints each latency. In turns it is watched and
not, for the same time; a turn is the difference of the medians of both, less moved by
what else the machine does than a mean. The interval of the median of all turns is that
of their order: nothing is assumed of how they are spread. 1 if what the checks state in
the middle lies outside of it. Arguments: --turns.
"""

import argparse
import json
import statistics
import subprocess
import sys
import threading
import time
from bisect import bisect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO

from scipy.stats import binom

CYCLICTEST = ("cyclictest", "-v", "-N", "-m", "-p", "80", "-a", "1", "-i", "1000")
WATCH_S = 3
SETTLED_NS = 300_000_000
"""From the begin of a watch, and before its end: values come some ms after they are."""
RISK = 0.05


@dataclass
class Latencies:
    """What cyclictest printed, and when that came."""

    at_ns: list[int] = field(default_factory=list)
    ns: list[int] = field(default_factory=list)

    def read(self, lines: IO[str]) -> None:
        """Take each line `thread: cycle: latency`, until there are no more."""
        for line in lines:
            words = line.split(":")
            if len(words) == 3 and words[2].strip().isdigit():
                self.at_ns.append(time.monotonic_ns())
                self.ns.append(int(words[2]))

    def median_ns(self, from_ns: int, to_ns: int) -> float:
        """Return the median of those that came in a time."""
        some = self.ns[bisect(self.at_ns, from_ns) : bisect(self.at_ns, to_ns)]
        return statistics.median(some)


@contextmanager
def measuring() -> Iterator[tuple[int, Latencies]]:
    """Run cyclictest; give its PID and what it prints meanwhile."""
    with subprocess.Popen(CYCLICTEST, stdout=subprocess.PIPE, text=True) as process:
        latencies = Latencies()
        assert process.stdout is not None
        reader = threading.Thread(target=latencies.read, args=[process.stdout])
        reader.start()
        try:
            time.sleep(1)
            yield process.pid, latencies
        finally:
            process.terminate()
            reader.join()


def checked(pid: int) -> tuple[int, int, float]:
    """Watch it; return the time in which all watching was at work, and the cost."""
    words = ("app", "check", "--json", "--duration", f"{WATCH_S}s", str(pid))
    done = subprocess.run(
        [sys.executable, "-m", "rtscope", *words], check=False, stdout=subprocess.PIPE
    )
    if done.returncode not in {0, 1, 3}:
        raise SystemExit(f"rtscope ended with status {done.returncode}")
    answer = json.loads(done.stdout)
    cycles = answer["cycles"]
    times = [one["watched_ns"] for one in answer["threads"]]
    from_ns = max(cycles["from_ns"], *(begin for begin, _ in times))
    to_ns = min(cycles["from_ns"] + cycles["window_ns"], *(end for _, end in times))
    cost = answer["disturbance"]["costs"]["wakeup"]
    return from_ns + SETTLED_NS, to_ns, cost["counted_ns"] - cost["plain_ns"]


def turn(pid: int, latencies: Latencies) -> tuple[float, float]:
    """Return by how much it woke later while it was watched, and the stated cost."""
    begun_ns = time.monotonic_ns()
    time.sleep(WATCH_S / 2)
    ended_ns = time.monotonic_ns()
    from_ns, to_ns, stated_ns = checked(pid)
    time.sleep(WATCH_S / 2 + 1)
    again_ns = time.monotonic_ns()
    watched_ns = latencies.median_ns(from_ns, to_ns)
    # on both sides of the watch: a drift of the machine is in neither
    before_ns = latencies.median_ns(begun_ns + SETTLED_NS, ended_ns)
    after_ns = latencies.median_ns(again_ns - WATCH_S * 500_000_000, again_ns)
    return watched_ns - (before_ns + after_ns) / 2, stated_ns


def interval(values: list[float]) -> tuple[float, float]:
    """Return the interval of the median of 95 %, by the order of the values."""
    ordered = sorted(values)
    beyond = max(0, int(binom.ppf(RISK / 2, len(ordered), 0.5)) - 1)
    return ordered[beyond], ordered[-1 - beyond]


def main() -> int:
    """Print a line for each turn, and the interval."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("--turns", type=int, default=20, help="default: 20")
    turns = parser.parse_args().turns
    added: list[float] = []
    stated: list[float] = []
    with measuring() as (pid, latencies):
        for _ in range(turns):
            more_ns, cost_ns = turn(pid, latencies)
            added.append(more_ns)
            stated.append(cost_ns)
            print(
                f"cyclictest {more_ns / 1000:.1f} us, stated {cost_ns / 1000:.1f} us",
                flush=True,
            )
    low, high = interval(added)
    middle, said = statistics.median(added), statistics.median(stated)
    print(
        f"{turns} turns of {WATCH_S} s: cyclictest {middle / 1000:.1f} us later, "
        f"interval of the median {low / 1000:.1f} to {high / 1000:.1f} us; stated "
        f"{said / 1000:.1f} us [{min(stated) / 1000:.1f} to {max(stated) / 1000:.1f}]"
    )
    return 0 if low <= said <= high else 1


if __name__ == "__main__":
    sys.exit(main())
