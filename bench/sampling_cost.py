"""
What one sample costs in user-space instructions, beside cyclictest's.

callgrind counts instructions exactly; the difference of two run lengths leaves out
start and end. Both measure one SCHED_OTHER thread at the same interval, and only the
measuring thread is counted. Also counted: the bare loop (sleep, read the clock), so
that it shows what the rest buys.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
AGENT = ROOT / "agent"
BUILD = ROOT / "build" / "bench"
INTERVAL_NS = 1_000_000
LENGTHS = (1000, 5000)
FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-pthread", "-O2", "-g", "-static")
"""Those of agent/Makefile, and symbols for callgrind."""

BARE_LOOP = r"""
#include <stdint.h>
#include <stdlib.h>
#include "thread/clock.h"
int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;
	int64_t next = clock_now_ns();
	int64_t sum = 0;

	for (int i = 0; i < n; i++) {
		struct timespec expiry = ns_timespec(next += 1000000);

		clock_sleep_until(&expiry);
		sum += clock_now_ns();
	}
	return sum == 0;
}
"""


def compile_with_symbols(sources: list[Path], out: Path) -> Path:
    """Build as the agent is built, but keep symbols for callgrind."""
    subprocess.run(
        [
            *(sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-musl"),
            *FLAGS,
            f"-I{AGENT}",
            *map(str, sources),
            *("-o", str(out)),
        ],
        check=True,
    )
    return out


def instructions(argv: list[str], directory: Path) -> list[int]:
    """Return the instructions of each thread, in the order of their start."""
    for old in directory.glob("cg.*"):
        old.unlink()
    subprocess.run(
        [
            *("valgrind", "--tool=callgrind", "--separate-threads=yes"),
            f"--callgrind-out-file={directory}/cg.out",
            *argv,
        ],
        check=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    totals = []
    for path in sorted(directory.glob("cg.out*")):
        found = re.search(r"^totals: (\d+)", path.read_text(), re.MULTILINE)
        if found:
            totals.append(int(found[1]))
    return totals


def per_sample(counts: list[int]) -> float:
    """Return the instructions per sample from the counts at both run lengths."""
    return (counts[1] - counts[0]) / (LENGTHS[1] - LENGTHS[0])


def agent_cost(agent: Path, directory: Path) -> float:
    """Count the sampling loop of the agent alone."""
    counts = []
    for samples in LENGTHS:
        argv = [
            *("valgrind", "--tool=callgrind", "--toggle-collect=sample_until_end"),
            f"--callgrind-out-file={directory}/agent.{samples}",
            *(str(agent), "measure", "--policy", "other", "--cpus", "1"),
            *("--interval-ns", str(INTERVAL_NS)),
            *("--duration-ns", str(samples * INTERVAL_NS)),
        ]
        done = subprocess.run(argv, check=True, capture_output=True, text=True)
        total = re.search(r"Collected : (\d+)", done.stderr)
        assert total, done.stderr
        result = json.loads(done.stdout.splitlines()[-1])
        taken = sum(thread["samples"] for thread in result["threads"])
        print(f"  agent: {total[1]} instructions, {taken} samples")
        counts.append((int(total[1]), taken))
    (short, few), (long, many) = counts
    return float((long - short) / (many - few))


def main() -> None:
    """Print the three figures and their ratio."""
    if not shutil.which("valgrind"):
        sys.exit("valgrind is missing: apt install valgrind")
    BUILD.mkdir(parents=True, exist_ok=True)
    files = [*AGENT.glob("*.c"), *AGENT.glob("*/*.c")]
    sources = sorted(file for file in files if file.parent.name != "tests")
    agent = compile_with_symbols(sources, BUILD / "rtscope-agent")
    loop = BUILD / "bare.c"
    loop.write_text(BARE_LOOP)
    bare = compile_with_symbols([loop, AGENT / "thread/clock.c"], BUILD / "bare")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        ours = agent_cost(agent, directory)
        floor = per_sample(
            [sum(instructions([str(bare), str(n)], directory)) for n in LENGTHS]
        )
        print(f"bare loop (sleep + clock read):   {floor:7.1f} instructions per sample")
        print(f"rtscope-agent:                    {ours:7.1f}")
        if not shutil.which("cyclictest"):
            print("cyclictest is missing: apt install rt-tests")
            return
        theirs = per_sample(
            [
                instructions(
                    [
                        *("cyclictest", "--default-system", "-N", "-q", "-t1", "-a1"),
                        *("--policy=other", "-i", str(INTERVAL_NS // 1000)),
                        *("-l", str(n)),
                    ],
                    directory,
                )[-1]
                for n in LENGTHS
            ]
        )
        print(f"cyclictest:                       {theirs:7.1f}")
        print(f"rtscope-agent / cyclictest:       {ours / theirs:7.2f}")


if __name__ == "__main__":
    main()
