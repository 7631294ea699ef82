"""
How often a search by runs of a real board goes astray: `rtscope bisect --measured`.

    bisect_steps.py [--searches 300] [--runs 5,7]

Simulates whole searches among 64 commits with a fixed seed: both ends are measured,
then one kernel after the other, each judged as `rtscope bisect --measured` does. A
kernel that is skipped is replaced by the nearest one that was not tried, as git does.

Prints a table in Markdown, for lab/bisect.md.
"""

import argparse
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import beta

from rtscope.stats.comparison.design import can_differ
from rtscope.verbs.bisect.outcome import Verdict
from rtscope.verbs.bisect.step import ALPHA, decides_steps, difference, judge

COMMITS = 64
LEVEL_NS = 80_000.0

Runs = Callable[[np.random.Generator, int, int], Sequence[float]]
"""Draws so many runs of a boot, the how manieth of the search; their level is 1."""


def log_normal(spread: float) -> Runs:
    """Runs that differ by this share."""

    def drawn(rng: np.random.Generator, runs: int, _boot: int) -> Sequence[float]:
        return [float(x) for x in rng.lognormal(0, spread, size=runs)]

    return drawn


def mixture(rng: np.random.Generator, runs: int, _boot: int) -> Sequence[float]:
    """One run in five meets something rare that is ten times as late."""
    levels = rng.lognormal(0, 0.1, size=runs)
    levels[rng.random(runs) < 0.2] *= 10
    return [float(x) for x in levels]


def boots(rng: np.random.Generator, runs: int, _boot: int) -> Sequence[float]:
    """Each boot has a level of its own, 10 % apart; its runs differ by 10 %."""
    level = rng.lognormal(0, 0.1)
    return [float(level * x) for x in rng.lognormal(0, 0.1, size=runs)]


def drift(rng: np.random.Generator, runs: int, boot: int) -> Sequence[float]:
    """Each boot is 3 % later than the one before; its runs differ by 10 %."""
    return [float(1.03**boot * x) for x in rng.lognormal(0, 0.1, size=runs)]


KINDS: dict[str, tuple[Runs, Sequence[float]]] = {
    "5 %": (log_normal(0.05), (1.1, 1.3, 2.0)),
    "10 %": (log_normal(0.1), (1.1, 1.3, 2.0)),
    "20 %": (log_normal(0.2), (1.3, 2.0)),
    "one in five ten times as late": (mixture, (2.0, 30.0)),
    "10 %, boots by 10 %": (boots, (1.3, 2.0)),
    "the same, a boot for each run": (log_normal(math.hypot(0.1, 0.1)), (1.3, 2.0)),
    "10 %, 3 % later with each boot": (drift, (1.3, 2.0)),
}


@dataclass(slots=True)
class Search:
    """One search; `boot` counts the kernels that were measured."""

    rng: np.random.Generator
    kind: Runs
    ratio: float
    runs: int
    culprit: int
    """The first bad commit, from 1."""
    boot: int = 0
    steps: Counter[str] = field(default_factory=Counter)

    def measure(self, commit: int) -> list[float]:
        """Return the maxima of a commit's runs; commit 0 is the good end."""
        factor = self.ratio if commit >= self.culprit else 1.0
        levels = self.kind(self.rng, self.runs, self.boot)
        self.boot += 1
        return [LEVEL_NS * factor * level for level in levels]

    def outcome(self) -> str:
        """Search, and say what it came to."""
        good, bad = self.measure(0), self.measure(COMMITS)
        assert can_differ(len(good), len(bad), alpha=ALPHA)
        if not decides_steps(difference(good, bad, "max")):
            return "refused"
        low, high, skipped = 0, COMMITS, set[int]()
        while left := [c for c in range(low + 1, high) if c not in skipped]:
            commit = min(left, key=lambda c: abs(c - (low + high) / 2))
            verdict = judge(good, bad, self.measure(commit), figure="max").verdict
            truth = Verdict.BAD if commit >= self.culprit else Verdict.GOOD
            if verdict is Verdict.SKIPPED:
                self.steps["skip"] += 1
                skipped.add(commit)
                continue
            self.steps["right" if verdict is truth else "wrong"] += 1
            low, high = (low, commit) if verdict is Verdict.BAD else (commit, high)
        if not low < self.culprit <= high:
            return "wrong"
        return "found" if high - low == 1 else "several"


def share(count: int, of: int) -> str:
    """Write a share with its 95 % interval (Clopper and Pearson 1934)."""
    if of == 0:
        return "-"
    low = float(beta.ppf(0.025, count, of - count + 1)) if count else 0.0
    high = float(beta.ppf(0.975, count + 1, of - count)) if count < of else 1.0
    return f"{100 * count / of:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def table(searches: int, sizes: Sequence[int]) -> Iterator[str]:
    """Simulate each kind of runs with each ratio of the two ends."""
    yield (
        "| runs differ by | ends | runs | ends refused | steps wrong | steps skipped "
        "| searches that found it | among several | astray |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, (kind, ratios) in KINDS.items():
        for ratio in ratios:
            for runs in sizes:
                yield _row(name, kind, ratio=ratio, runs=runs, searches=searches)


def _row(name: str, kind: Runs, *, ratio: float, runs: int, searches: int) -> str:
    rng = np.random.default_rng([*name.encode(), runs, math.floor(100 * ratio)])
    steps: Counter[str] = Counter()
    ended: Counter[str] = Counter()
    for _ in range(searches):
        culprit = int(rng.integers(1, COMMITS + 1))
        one = Search(rng, kind, ratio, runs, culprit)
        ended[one.outcome()] += 1
        steps += one.steps
    made = searches - ended["refused"]
    cells = (
        name,
        f"{ratio:g} times",
        f"{runs} of each",
        share(ended["refused"], searches),
        share(steps["wrong"], steps.total()),
        share(steps["skip"], steps.total()),
        *(share(ended[word], made) for word in ("found", "several", "wrong")),
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=300)
    parser.add_argument("--runs", default="5,7")
    asked = parser.parse_args()
    for line in table(asked.searches, [int(n) for n in asked.runs.split(",")]):
        print(line, flush=True)


if __name__ == "__main__":
    main()
