"""
What each step of the tutorial's program gains, as `rtscope app check` measures it.

Each step of examples/checked-program runs for a time. The counts are the program's; the
latencies are of this machine, and of what else it did then.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
STEPS = ROOT / "examples" / "checked-program"
NS_PER_US = 1000


def checked(program: Path, duration: str) -> Mapping[str, Any]:
    """Return what `rtscope app check` says of a step, as JSON."""
    words = ("app", "check", "--json", "--duration", duration, "--fail-on", "never")
    log = program.with_suffix(".log")
    done = subprocess.run(
        [sys.executable, "-m", "rtscope", *words, "--", program, log],
        check=False,
        stdout=subprocess.PIPE,
    )
    document: Mapping[str, Any] = json.loads(done.stdout)
    return document


def row_of(name: str, document: Mapping[str, Any]) -> str:
    """Return a row of the table: of the thread that has a cycle of a millisecond."""
    threads = document["cycles"]["threads"]
    control = max(threads, key=lambda one: one["cycles"])
    period, latency = control["period"], control["latency_ns"]
    window_s = document["window_ns"] / 1e9
    counts = dict.fromkeys(("RA05", "RA07", "RA09"), 0)
    for one in document["findings"]:
        if one["id"] in counts and one["tid"] == control["tid"]:
            counts[one["id"]] += one["count"] or 0
    cells = (
        f"`{name}`",
        f"{period['period_ns'] / NS_PER_US:,.0f}",
        f"{latency['percentiles']['50'] / NS_PER_US:,.0f}",
        f"{latency['percentiles']['99'] / NS_PER_US:,.0f}",
        f"{latency['max'] / NS_PER_US:,.0f}",
        f"{period['missed'] + period['overruns']:,}",
        *(f"{count / window_s:,.0f}" for count in counts.values()),
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--duration", default="10s")
    asked = parser.parse_args()
    heads = (
        *("step", "period (µs)", "latency 50 %", "99 %", "max (µs)"),
        *("missed or overrun", "faults/s", "allocations/s", "blocking calls/s"),
    )
    print(f"| {' | '.join(heads)} |\n|---|{'---:|' * (len(heads) - 1)}")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["make", "-s", "-C", STEPS, f"OUT={folder}"], check=True)
        for program in sorted(Path(folder).iterdir()):
            print(row_of(program.name, checked(program, asked.duration)), flush=True)


if __name__ == "__main__":
    main()
