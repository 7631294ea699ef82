"""
What each level did: the ratio to the base, over seeds, with an exact paired test.

Runs of equal seeds are pairs. If a level does nothing, each pair's difference of
logarithms is as likely positive as negative (Fisher's sign-flip test, 1935), so its
mean is compared with those of all ways to flip signs: exact with any distribution that
is symmetric under the null hypothesis. The interval is the same test inverted, by the
means of all subsets (Hartigan 1969, typical values). Among all effects of a sweep the
share of false discoveries is held at 5 % (Benjamini and Hochberg 1995).

Seeds whose worst wake-ups coincide in the base are one trajectory, and one pair.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median, stdev

import numpy as np
from numpy.typing import NDArray

from rtscope.record.model import RunRecord
from rtscope.stats.power import detectable_ratio_of_pairs
from rtscope.stats.seeds import trajectories
from rtscope.stats.summary import DEFAULT_PERCENTILES, Summary, summarize

FALSE_DISCOVERIES = 0.05
CONFIDENCE = 0.95
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

    @property
    def is_worse(self) -> bool:
        """Whether the figure moved in the direction that nobody wants."""
        return (self.ratio < 1) == (self.figure in MORE_IS_BETTER)


def effects_of(
    base: Sequence[RunRecord], cells: Mapping[str, Sequence[RunRecord]]
) -> tuple[Effect, ...]:
    """Return the effects of all cells, the largest discoveries first."""
    tested = [
        effect
        for name, records in cells.items()
        for effect in _of_cell(name, base, records)
    ]
    found = discoveries([effect.p for effect in tested])
    judged = [
        replace(effect, found=is_found)
        for effect, is_found in zip(tested, found, strict=True)
    ]
    return tuple(
        sorted(judged, key=lambda e: (not e.found, -abs(math.log(e.ratio)), e.p))
    )


def _of_cell(
    name: str, base: Sequence[RunRecord], records: Sequence[RunRecord]
) -> Iterator[Effect]:
    ours, theirs = _by_key(base), _by_key(records)
    for theirs_key, key in counterparts(ours, theirs).items():
        groups = _groups(ours[key])
        for figure, value_of in FIGURES.items():
            before = _values(ours[key], value_of)
            after = _values(theirs[theirs_key], value_of)
            differences = [
                fmean(math.log(after[seed] / before[seed]) for seed in both)
                for group in groups
                if (both := [s for s in group if s in before and s in after])
            ]
            if differences:
                seeds = before.keys() & after.keys()
                yield _tested(
                    Effect(
                        cell=name,
                        key=key,
                        figure=figure,
                        base=median(before[s] for s in seeds),
                        changed=median(after[s] for s in seeds),
                        pairs=len(differences),
                        ratio=math.exp(fmean(differences)),
                        low=None,
                        high=None,
                        p=1.0,
                        found=False,
                        could_have_seen=None,
                    ),
                    differences,
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


def _tested(effect: Effect, differences: Sequence[float]) -> Effect:
    interval = interval_of_mean(differences)
    low, high = interval or (None, None)
    spread = stdev(differences) if len(differences) > 1 else math.nan
    return replace(
        effect,
        low=None if low is None else math.exp(low),
        high=None if high is None else math.exp(high),
        p=p_of_signs(differences),
        could_have_seen=detectable_ratio_of_pairs(spread, pairs=len(differences)),
    )


def _by_key(records: Sequence[RunRecord]) -> dict[Key, dict[int, RunRecord]]:
    by_key: dict[Key, dict[int, RunRecord]] = {}
    for record in records:
        run = record.run
        key = (run.load, run.kernel or "", run.policy, str(run.interval_ns))
        by_key.setdefault(key, {})[run.seed or 0] = record
    return by_key


def _groups(records: Mapping[int, RunRecord]) -> list[list[int]]:
    """Return the seeds by trajectory: alike ones together."""
    return [
        [record.run.seed or 0 for record in alike]
        for alike in trajectories(list(records.values()))
    ]


def _values(
    records: Mapping[int, RunRecord],
    value_of: Callable[[RunRecord, Summary], float | None],
) -> dict[int, float]:
    values = {
        seed: value_of(record, summarize(record.result.threads))
        for seed, record in records.items()
        if record.max_ns is not None
    }
    return {seed: value for seed, value in values.items() if value}


def p_of_signs(differences: Sequence[float]) -> float:
    """
    Return the two-sided p-value of the sign-flip test for a mean of zero.

    It is at least 2 to the power of 1 - n. 1 if no difference is other than zero.
    """
    sums = np.abs(_sums(np.array(differences), signs=(-1.0, 1.0)))
    observed = abs(math.fsum(differences))
    # Sums of the same numbers in another order differ in their last bits.
    return float(np.mean(sums >= observed - 1e-9 * max(observed, 1e-12)))


def needed_pairs(tests: int) -> int:
    """Return with how many pairs one effect alone can be found among so many tests."""
    return 1 + math.ceil(math.log2(max(tests, 1) / FALSE_DISCOVERIES))


def interval_of_mean(differences: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean; None with fewer than six differences."""
    values = np.array(differences)
    sums = _sums(values, signs=(0.0, 1.0))[1:]
    counts = _sums(np.ones(len(values)), signs=(0.0, 1.0))[1:]
    means = np.sort(sums / counts)
    out = int((1 - CONFIDENCE) / 2 * (len(means) + 1))
    if out < 1:
        return None
    return float(means[out - 1]), float(means[-out])


def _sums(
    values: NDArray[np.float64], signs: tuple[float, float]
) -> NDArray[np.float64]:
    """Return the sums with each value taken by either factor; all first ones first."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + factor * value for factor in signs])
    return sums


def discoveries(p_values: Sequence[float]) -> list[bool]:
    """Return which are discoveries at 5 %, by the procedure in steps upwards."""
    count = len(p_values)
    order = sorted(range(count), key=lambda n: p_values[n])
    last = 0
    for rank, n in enumerate(order, 1):
        if p_values[n] <= FALSE_DISCOVERIES * rank / count:
            last = rank
    found = [False] * count
    for n in order[:last]:
        found[n] = True
    return found
