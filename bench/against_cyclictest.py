"""
The same machine measured by rtscope-agent and cyclictest in turns, compared by run.

Ten alternations or more (A B A B ...) at the same settings: FIFO 99, every CPU, the
same interval, memory locked, idle states as found (--default-system). Per run: the
minimum, the median and the 99th percentile over all CPUs; then an exact two-sided
permutation test over runs, never over samples.
"""

import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from rtscope.contract import AgentResult, parse_line
from rtscope.machine.target import agent_file
from rtscope.stats.comparison.effect import effect_of_groups

ALTERNATIONS = 10
DURATION_S = 3
INTERVAL_US = 1000
PERCENTILES = {"median": 0.5, "p99": 0.99}


def quantile(counts: Counter[int], q: float) -> int:
    """Return the smallest value that a share q of the samples does not exceed."""
    left = math.ceil(q * counts.total())
    for value in sorted(counts):
        left -= counts[value]
        if left <= 0:
            return value
    raise ValueError("no samples")


def features(counts: Counter[int], minimum: int) -> dict[str, float]:
    """Return what is compared of one run, in us."""
    found = {"minimum": minimum / 1000}
    for name, q in PERCENTILES.items():
        found[name] = quantile(counts, q) / 1000
    return found


def run_agent(agent: Path) -> dict[str, float]:
    """Measure once with the agent."""
    done = subprocess.run(
        [
            *(str(agent), "measure", "--policy", "fifo", "--priority", "99"),
            *("--interval-ns", str(INTERVAL_US * 1000)),
            *("--duration-ns", str(DURATION_S * 1_000_000_000)),
        ],
        check=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    result = parse_line(done.stdout.splitlines()[-1])
    assert isinstance(result, AgentResult)
    counts: Counter[int] = Counter()
    for thread in result.threads:
        counts.update(dict(thread.histogram))
    return features(counts, min(t.min_ns or 0 for t in result.threads))


def run_cyclictest() -> dict[str, float]:
    """Measure once with cyclictest; its bins are 1 ns wide and end at 1 ms."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run(
            [
                *("cyclictest", "--default-system", "-N", "-q", "-m", "-S", "-p99"),
                *("-i", str(INTERVAL_US), "-D", str(DURATION_S), "-h", "1000000"),
                f"--json={file.name}",
            ],
            check=True,
            capture_output=True,
        )
        threads = json.loads(Path(file.name).read_text())["thread"].values()
    counts: Counter[int] = Counter()
    for thread in threads:
        bins = {int(value): n for value, n in thread["histogram"].items()}
        counts.update(bins)
        # beyond the last bin: counted there, which no percentile here reaches
        counts[1_000_000] += thread["cycles"] - sum(bins.values())
    return features(counts, min(thread["min"] for thread in threads))


def main() -> None:
    """Alternate, and print a line per figure."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ALTERNATIONS
    agent = agent_file("x86_64")
    ours, theirs = [], []
    for i in range(rounds):
        # ABBA: a drift of the machine hits both alike
        if i % 2 == 0:
            ours.append(run_agent(agent))
        theirs.append(run_cyclictest())
        if i % 2 == 1:
            ours.append(run_agent(agent))
    print(
        f"{rounds} runs each in turns, {DURATION_S} s, FIFO 99, every {INTERVAL_US} us"
    )
    print("median over runs [smallest to largest], us; p: exact, two-sided, over runs")
    for name in ("minimum", *PERCENTILES):
        a = [run[name] for run in ours]
        b = [run[name] for run in theirs]
        ratio = statistics.median(a) / statistics.median(b)
        ours_log, theirs_log = ([math.log(us) for us in one] for one in (a, b))
        effect = effect_of_groups(theirs_log, ours_log, figure=name, alpha=0.05)
        print(
            f"{name:8} rtscope {statistics.median(a):8.2f} "
            f"[{min(a):.2f} to {max(a):.2f}]"
            f"   cyclictest {statistics.median(b):8.2f} "
            f"[{min(b):.2f} to {max(b):.2f}]"
            f"   ratio {ratio:.2f}   p = {effect.p:.4f}"
        )


if __name__ == "__main__":
    main()
