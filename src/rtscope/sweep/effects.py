"""
What each level did: the ratio to the base, over seeds, with an exact paired test.

Runs of equal seeds are pairs, and the differences of their logarithms are tested by
`stats.signflip`. Among all effects the share of false discoveries is held at 5 %.

Seeds whose worst wake-ups coincide in the base are one trajectory, and one pair.
"""

import math
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from statistics import fmean, median, stdev

from rtscope.record.model import RunRecord
from rtscope.stats.power import detectable_ratio_of_pairs
from rtscope.stats.seeds import trajectories
from rtscope.stats.signflip import discoveries, interval_of_mean, p_of_signs
from rtscope.stats.summary import DEFAULT_PERCENTILES, Summary, summarize

P999 = DEFAULT_PERCENTILES.index(99.9)


def _worst(_record: RunRecord, summary: Summary) -> float | None:
    return float(summary.max_ns)


def _p999(_record: RunRecord, summary: Summary) -> float | None:
    high_ns = summary.percentiles[P999].high_ns
    return None if high_ns is None else float(high_ns)


def _average(_record: RunRecord, summary: Summary) -> float | None:
    return summary.mean_ns


def _operations(record: RunRecord, _summary: Summary) -> float | None:
    rates = record.load.throughput.values()
    return sum(rates) or None


FIGURES: Mapping[str, Callable[[RunRecord, Summary], float | None]] = {
    "worst": _worst,
    "p99.9": _p999,
    "average": _average,
    "operations/s": _operations,
}
"""Latencies in ns; operations as stress-ng counts them, of all stressors."""

MORE_IS_BETTER = frozenset({"operations/s"})

Key = tuple[str, ...]
"""What pairs have in common besides the seed: load, kernel, policy, interval."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What a cell changed in one figure, under one load."""

    cell: str
    key: Key
    figure: str
    base: float
    """Median over seeds, in the unit of the figure."""
    changed: float
    pairs: int
    """Independent pairs of runs."""
    ratio: float
    """Of the changed to the base: the geometric mean over pairs."""
    low: float | None
    """Ends of its 95 % interval; None: too few pairs for one."""
    high: float | None
    p: float
    """Two-sided, exact; 1 where no pair differs."""
    found: bool
    """Whether it is among the discoveries, 5 % of which are false on average."""
    could_have_seen: float | None
    """Ratio that these pairs find with 80 %; None without a finite answer."""
    pairs_of_cells: int = 1
    """Cells with the change that were each compared with the same cell without it."""

    @property
    def is_worse(self) -> bool:
        """Whether the figure moved in the direction that nobody wants."""
        return (self.ratio < 1) == (self.figure in MORE_IS_BETTER)


def effects_of(
    base: Sequence[RunRecord], cells: Mapping[str, Sequence[RunRecord]]
) -> tuple[Effect, ...]:
    """Return the effects of all cells, the largest discoveries first."""
    return judged(
        effect
        for name, records in cells.items()
        for effect in _of_cell(name, base, records)
    )


def judged(effects: Iterable[Effect]) -> tuple[Effect, ...]:
    """Return effects with those that are found marked, the largest of these first."""
    tested = list(effects)
    found = discoveries([effect.p for effect in tested])
    marked = [
        replace(effect, found=is_found)
        for effect, is_found in zip(tested, found, strict=True)
    ]
    return tuple(
        sorted(marked, key=lambda e: (not e.found, -abs(math.log(e.ratio)), e.p))
    )


def _of_cell(
    name: str, base: Sequence[RunRecord], records: Sequence[RunRecord]
) -> Iterator[Effect]:
    ours, theirs = by_key(base), by_key(records)
    for theirs_key, key in counterparts(ours, theirs).items():
        groups = _groups(ours[key])
        for figure in FIGURES:
            before = values_of(ours[key], figure)
            after = values_of(theirs[theirs_key], figure)
            differences = [
                fmean(math.log(after[seed] / before[seed]) for seed in both)
                for group in groups
                if (both := [s for s in group if s in before and s in after])
            ]
            if differences:
                seeds = before.keys() & after.keys()
                yield effect_of(
                    *(name, key, figure),
                    before=[before[seed] for seed in seeds],
                    after=[after[seed] for seed in seeds],
                    differences=differences,
                )


def effect_of(
    cell: str,
    key: Key,
    figure: str,
    *,
    before: Sequence[float],
    after: Sequence[float],
    differences: Sequence[float],
    pairs_of_cells: int = 1,
) -> Effect:
    """Test the differences of logarithms of independent pairs of runs."""
    interval = interval_of_mean(differences)
    low, high = map(math.exp, interval) if interval else (None, None)
    spread = stdev(differences) if len(differences) > 1 else math.nan
    return Effect(
        cell=cell,
        key=key,
        figure=figure,
        base=median(before),
        changed=median(after),
        pairs=len(differences),
        ratio=math.exp(fmean(differences)),
        low=low,
        high=high,
        p=p_of_signs(differences),
        found=False,
        could_have_seen=detectable_ratio_of_pairs(spread, pairs=len(differences)),
        pairs_of_cells=pairs_of_cells,
    )


def counterparts(base: Collection[Key], changed: Collection[Key]) -> dict[Key, Key]:
    """
    Return the key in the base for each key of a cell that has one.

    A part that has one value in the base and one in the cell, such as the policy, is
    what the cell changes; a load is never compared with another one.
    """

    def single(keys: Collection[Key], part: int) -> bool:
        return len({key[part] for key in keys}) == 1

    first = next(iter(base), ())
    moved = {
        part
        for part in range(1, len(first))
        if single(base, part) and single(changed, part)
    }
    found: dict[Key, Key] = {}
    for key in changed:
        like = tuple(
            first[part] if part in moved else value for part, value in enumerate(key)
        )
        if like in base:
            found[key] = like
    return found


def by_key(records: Sequence[RunRecord]) -> dict[Key, dict[int, RunRecord]]:
    """Return runs by what they have in common, and by seed."""
    found: dict[Key, dict[int, RunRecord]] = {}
    for record in records:
        run = record.run
        key = (run.load, run.kernel or "", run.policy, str(run.interval_ns))
        found.setdefault(key, {})[run.seed or 0] = record
    return found


def values_of(records: Mapping[int, RunRecord], figure: str) -> dict[int, float]:
    """Return a figure by seed, of runs that have it."""
    value_of = FIGURES[figure]
    values = {
        seed: value_of(record, summarize(record.result.threads))
        for seed, record in records.items()
        if record.max_ns is not None
    }
    return {seed: value for seed, value in values.items() if value}


def _groups(records: Mapping[int, RunRecord]) -> list[list[int]]:
    """Return the seeds by trajectory: alike ones together."""
    return [
        [record.run.seed or 0 for record in alike]
        for alike in trajectories(list(records.values()))
    ]
