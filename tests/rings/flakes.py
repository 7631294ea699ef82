"""
The system tests ten times in random order: `make flakes`, or `--runs N`.

Every second run is beside a load. A test that ever failed is printed with the seed of
its order. A run that was ended goes on; `--again` begins anew.
"""

import argparse
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from rings.steps import Step, run_steps, table

FOLDER = Path("build/flakes")
LOAD = ("stress-ng", "--cpu", "2", "--vm", "1", "--vm-bytes", "256M", "--switch", "2")
TESTS = ("-n", "2", "-m", "system and not long", "tests/system")


def steps(runs: int, folder: Path, tests: Sequence[str] = TESTS) -> list[Step]:
    """Return one step for each run; every second one is beside a load."""
    return [
        Step(
            f"seed {seed}",
            (
                *(sys.executable, "-m", "pytest", "-q", "-p", "randomly"),
                *("-p", "no:cacheprovider", f"--randomly-seed={seed}"),
                f"--junit-xml={report_of(folder, seed)}",
                *tests,
            ),
            beside=LOAD if seed % 2 == 0 else (),
        )
        for seed in range(1, runs + 1)
    ]


def report_of(folder: Path, seed: int) -> Path:
    """Return where a run writes what came of its tests."""
    return folder / f"run-{seed}.xml"


def failed_in(reports: Mapping[int, Path]) -> dict[str, list[int]]:
    """Return the seeds with which each test failed that ever did."""
    failed: dict[str, list[int]] = defaultdict(list)
    for seed, path in reports.items():
        for case in ElementTree.parse(path).iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                name = f"{case.get('classname')}::{case.get('name')}"
                failed[name].append(seed)
    return dict(failed)


def main() -> int:
    """Print what ever failed; 1 if anything did, or if a run could not be made."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--again", action="store_true", help="forget earlier runs")
    parser.add_argument("tests", nargs="*", help="arguments of pytest")
    asked = parser.parse_args()
    journal = FOLDER / "journal.jsonl"
    FOLDER.mkdir(parents=True, exist_ok=True)
    if asked.again:
        journal.unlink(missing_ok=True)
    planned = steps(asked.runs, FOLDER, asked.tests or TESTS)
    done = run_steps(planned, journal)
    print(*table(done), sep="\n")
    reports = {seed: report_of(FOLDER, seed) for seed in range(1, asked.runs + 1)}
    there = {seed: path for seed, path in reports.items() if path.exists()}
    failed = failed_in(there)
    for name, seeds in sorted(failed.items()):
        print(f"failed with seeds {', '.join(map(str, seeds))}: {name}")
    green = sum(one.status == 0 for one in done)
    print(f"{green} of {len(done)} runs green")
    return int(green < len(done))


if __name__ == "__main__":
    raise SystemExit(main())
