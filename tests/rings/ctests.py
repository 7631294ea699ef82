"""
Each C test many times beside a load, on one CPU and with `nice 19`: `make flakes-c`.

It runs the programs that `make test` builds: the tests of the library and of the agent,
plain and under each sanitizer. A test that failed once is printed with its output.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rings.steps import beside

LOAD = (
    *("stress-ng", "--quiet", "--timeout", "4h"),
    *("--cpu", "2", "--vm", "1", "--vm-bytes", "64M", "--switch", "2"),
)
PATIENCE_S = 300.0


@dataclass(frozen=True, slots=True)
class Mode:
    """How the tests are run."""

    name: str
    prefix: tuple[str, ...]
    rounds: int


def modes(rounds: int) -> list[Mode]:
    """Return how each test is run, and how often."""
    return [
        Mode("beside a load", (), rounds),
        Mode("and on one CPU", ("taskset", "-c", _a_cpu()), rounds),
        Mode("and nice 19", ("nice", "-n", "19"), rounds // 2),
    ]


def _a_cpu() -> str:
    return str(min(os.sched_getaffinity(0)))


def programs(parts: Sequence[Path], machine: str) -> list[Path]:
    """Return the tests that are built for this machine, of all variants."""
    return sorted(
        path
        for part in parts
        for kind in (part / "build").glob(f"{machine}*")
        for path in kind.rglob("test_*")
        if path.suffix == "" and os.access(path, os.X_OK)
    )


def failures(path: Path, mode: Mode, at_once: int) -> list[str]:
    """Run a test as often as the mode says; return what each failed run printed."""
    unrandomised = ("setarch", "-R") if "-thread" in str(path) else ()
    argv = (*mode.prefix, *unrandomised, str(path.absolute()))

    def once(_round: int) -> str | None:
        try:
            ran = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=PATIENCE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"no end within {PATIENCE_S:.0f} s"
        return None if ran.returncode == 0 else f"{ran.returncode}: {ran.stderr[-600:]}"

    with ThreadPoolExecutor(at_once) as pool:
        return [said for said in pool.map(once, range(mode.rounds)) if said is not None]


def table(
    failed: Mapping[tuple[str, str], list[str]], ran: Sequence[Mode]
) -> list[str]:
    """Write how many runs of each test failed, by mode."""
    names = sorted({name for name, _mode in failed})
    rows = [
        f"| test | {' | '.join(f'{one.name}, {one.rounds}' for one in ran)} |",
        f"|---|{'---:|' * len(ran)}",
    ]
    for name in names:
        counts = (str(len(failed.get((name, one.name), ()))) for one in ran)
        rows.append(f"| {name} | {' | '.join(counts)} |")
    return rows


def run(
    tests: Sequence[Path],
    ran: Sequence[Mode],
    at_once: int,
    log: Callable[[str], None] = print,
) -> dict[tuple[str, str], list[str]]:
    """Run each test in each mode; return what failed runs printed, by test and mode."""
    failed = {}
    for path in tests:
        for mode in ran:
            said = failures(path, mode, at_once)
            failed[str(path), mode.name] = said
            log(f"{path}, {mode.name}: {len(said)} of {mode.rounds} failed")
            for text in dict.fromkeys(said):
                log(f"{path}, {mode.name}: {text}")
    return failed


def main() -> int:
    """Print the table; 1 if a run failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=6, help="they mostly wait")
    parser.add_argument("names", nargs="*", help="parts of the names of tests")
    asked = parser.parse_args()
    tests = [
        path
        for path in programs([Path("lib"), Path("agent")], os.uname().machine)
        if not asked.names or any(name in str(path) for name in asked.names)
    ]
    if not tests or shutil.which(LOAD[0]) is None:
        print("needs stress-ng, and the tests of `make check`", file=sys.stderr)
        return 2
    ran = modes(asked.rounds)
    with beside(LOAD):
        failed = run(tests, ran, asked.at_once)
    print(*table(failed, ran), sep="\n")
    return int(any(failed.values()))


if __name__ == "__main__":
    raise SystemExit(main())
