"""
What takes hours, one step after the other: `make nightly`, or `ARGS=--list`.

A run that was ended goes on with the first step that has not ended; `--again` begins
anew. Each step is a command that can be typed alone, and what only it finds is told.
"""

import argparse
from pathlib import Path

from rings.steps import Step, run_steps, table

JOURNAL = Path("build/nightly.jsonl")

STEPS = {
    "test-long": "boards: culprits, sweeps, bisections, records equal to the byte; "
    "more locks, languages, signals and faults",
    "agent-twice": "an agent whose bytes depend on where it was built",
    "culprits": "a title of an explanation that is not what was planted",
    "strangers": "the same of causes planted by somebody else",
    "programs": "a finding of app check that a second tool does not see",
    "docs-run": "a page of the documentation that does not do as it says",
    "fuzz": "an input that is neither read nor refused",
    "mutants": "a line of the program that no test holds",
    "fresh-machines": "a package or setting that only a developer's machine has",
    "flakes": "a test that other work can fail",
    "flakes-c": "the same of the tests in C",
}
"""Targets of make, and what only each of them finds."""


def main() -> int:
    """Print what came of each; 1 if a step failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("--list", action="store_true", help="only tell the steps")
    parser.add_argument("--again", action="store_true", help="forget earlier steps")
    parser.add_argument("--only", help="steps, with commas between them")
    asked = parser.parse_args()
    names = asked.only.split(",") if asked.only else list(STEPS)
    if unknown := set(names) - STEPS.keys():
        parser.error(f"no step {', '.join(sorted(unknown))}: {', '.join(STEPS)}")
    if asked.list:
        print(*(f"make {name:16} finds {STEPS[name]}" for name in names), sep="\n")
        return 0
    if asked.again:
        JOURNAL.unlink(missing_ok=True)
    done = run_steps([Step(name, ("make", name)) for name in names], JOURNAL)
    print(*table(done), sep="\n")
    return int(any(one.status for one in done))


if __name__ == "__main__":
    raise SystemExit(main())
