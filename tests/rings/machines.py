"""
README's two commands on fresh minimal machines: `make fresh-machines`.

Each suite of Debian, and one of Ubuntu, is made in a folder by `setup/fresh`. One whose
archive cannot be reached is left out by name.
"""

import argparse
from pathlib import Path

from rings.steps import Ended, Step, run_steps

JOURNAL = Path("build/fresh-machines.jsonl")
SUITES = ("bookworm", "trixie", "sid", "noble")
COMMANDS = ("make run", "make test")
UNAVAILABLE = 77


def row(ended: Ended) -> str:
    """Write what came of one command on one machine."""
    came = {0: "passed", UNAVAILABLE: "not made: its archive is out of reach"}
    what = came.get(ended.status, f"exit status {ended.status}")
    return f"| {ended.name} | {what} | {ended.wall_s / 60:.0f} |"


def main() -> int:
    """Print a table; 1 if a command failed on a machine that could be made."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("--again", action="store_true", help="forget earlier runs")
    parser.add_argument("--suites", default=",".join(SUITES))
    asked = parser.parse_args()
    if asked.again:
        JOURNAL.unlink(missing_ok=True)
    steps = [
        Step(f"{suite}, {command}", ("setup/fresh", suite, "root", command))
        for suite in asked.suites.split(",")
        for command in COMMANDS
    ]
    done = run_steps(steps, JOURNAL)
    print("| machine and command | result | minutes |", "|---|---|---:|", sep="\n")
    print(*map(row, done), sep="\n")
    return int(any(one.status not in (0, UNAVAILABLE) for one in done))


if __name__ == "__main__":
    raise SystemExit(main())
