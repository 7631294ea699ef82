"""
Count how many worst wake-ups of traced runs are attributed, and what tracing costs.

    PYTHONPATH=src:tests python -m culprits.attributed RESULT...

A wake-up counts as attributed if at least 95 % of its latency has a cause that is no
guess, and no invariant withdraws it. The cost is the median of each traced run against
those without tracing before and after it; the test over runs is exact: which sign each
difference has.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from rtscope.explain.directory import Recorded, every_run
from rtscope.explain.events.explain import machine_of
from rtscope.explain.events.run import explained_windows
from rtscope.explain.model import Cause, Confidence, Explanation
from rtscope.explain.words import caveats_of
from rtscope.record.events.dat import open_trace
from rtscope.record.events.writer import TRACE
from rtscope.record.explanation import ATTRIBUTED
from rtscope.stats.runcaveats import trace_cost

SHOWN = 4


def explanations_of(one: Recorded) -> Iterator[Explanation]:
    trace = open_trace(one.directory / TRACE)
    for wakeup in explained_windows(one.record, trace, machine_of(one.record)):
        yield wakeup.explanation


def is_attributed(one: Explanation) -> bool:
    return one.attributed_share >= ATTRIBUTED and not one.is_withdrawn


def missing_in(one: Explanation) -> str:
    """Return what takes the most of the time that is not attributed."""
    spent: Counter[str] = Counter()
    for segment in one.segments:
        if segment.cause is Cause.UNKNOWN or segment.confidence is Confidence.GUESSED:
            guess = "" if segment.cause is Cause.UNKNOWN else "guessed: "
            spent[f"{guess}{segment.cause}: {segment.name}"] += segment.duration_ns
    for name, _ in spent.most_common(1):
        return name
    return next(iter(caveats_of(one)), "")


def print_attributed(runs: Sequence[Recorded]) -> None:
    """Print a row for each load, and what the others miss."""
    known: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    missing: dict[str, Counter[str]] = defaultdict(Counter)
    for one in runs:
        load = one.record.run.load
        for explanation in explanations_of(one):
            known[load] += 1
            whole[load] += is_attributed(explanation)
            if not is_attributed(explanation):
                missing[load][missing_in(explanation)] += 1
    for load, number in known.items():
        print(f"{load}: {whole[load]} of {number} attributed to 95 %")
        for name, times in missing[load].most_common(SHOWN):
            print(f"    {times} x {name}")
    print(f"all: {whole.total()} of {known.total()}")


def print_cost(runs: Sequence[Recorded]) -> None:
    """Print both medians of each run, and an exact test of their differences."""
    differences: list[int] = []
    for one in runs:
        cost = trace_cost(one.record)
        if cost is None:
            continue
        untraced, traced = cost.untraced.ranks, cost.traced.ranks
        before_ns, after_ns = untraced.percentile_ns(50), traced.percentile_ns(50)
        if before_ns is None or after_ns is None:
            continue
        differences.append(after_ns - before_ns)
        print(
            f"{one.record.run.load}: median {before_ns} ns, traced {after_ns} ns; "
            f"p99.9 {untraced.percentile_ns(99.9)} ns, traced "
            f"{traced.percentile_ns(99.9)} ns"
        )
    if differences:
        mean = sum(differences) / len(differences)
        print(
            f"mean difference of the medians: {mean:.0f} ns, p = {signs(differences)}"
        )


def signs(differences: Sequence[int]) -> float:
    """Return the share of all signs whose sum is as far from 0 (two-sided, exact)."""
    observed = abs(sum(differences))
    sums = [
        abs(sum(sign * one for sign, one in zip(row, differences, strict=True)))
        for row in product((1, -1), repeat=len(differences))
    ]
    return sum(one >= observed for one in sums) / len(sums)


def main(paths: Sequence[str]) -> None:
    """Print both tables of all traced runs of these results."""
    found = [one for path in paths for one in every_run(Path(path))]
    runs = [one for one in found if (one.directory / TRACE).is_file()]
    print_attributed(runs)
    print_cost(runs)


if __name__ == "__main__":
    main(sys.argv[1:])
