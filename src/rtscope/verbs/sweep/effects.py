"""
What a change did to one figure: the ratio of paired runs, with an exact test.

The differences of the logarithms of independent pairs are tested by `stats.comparison`.
Among all effects that are judged together, the share of false discoveries is held at
5 %.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from rtscope.record.model import RunRecord
from rtscope.stats.comparison.effect import effect_of_pairs
from rtscope.stats.comparison.family import false_discovered
from rtscope.stats.comparison.power import FALSE_DISCOVERIES
from rtscope.stats.figures import named
from rtscope.stats.summary import summarize
from rtscope.verbs.sweep.keys import Key

FIGURES = named("sweep")
"""Latencies in ns; operations as stress-ng counts them, of all stressors."""


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
    """Whether it is a discovery; of these at most 5 % are false on average."""
    could_have_seen: float | None
    """Ratio that these pairs find with 80 %; None without a finite answer."""
    pairs_of_cells: int = 1
    """Cells with the change that were each compared with the same cell without it."""

    @property
    def is_worse(self) -> bool:
        """Whether the figure moved in the direction that nobody wants."""
        return (self.ratio < 1) == FIGURES[self.figure].more_is_better


def judged(effects: Iterable[Effect]) -> tuple[Effect, ...]:
    """Return effects with those that are found marked, the largest of these first."""
    tested = list(effects)
    adjusted = false_discovered([effect.p for effect in tested])
    marked = [
        replace(effect, found=p <= FALSE_DISCOVERIES)
        for effect, p in zip(tested, adjusted, strict=True)
    ]
    return tuple(
        sorted(marked, key=lambda e: (not e.found, -abs(math.log(e.ratio)), e.p))
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
    tested = effect_of_pairs(differences, figure=figure, alpha=FALSE_DISCOVERIES)
    low, high = tested.interval or (None, None)
    return Effect(
        cell=cell,
        key=key,
        figure=figure,
        base=median(before),
        changed=median(after),
        pairs=len(differences),
        ratio=tested.ratio,
        low=low,
        high=high,
        p=tested.p,
        found=False,
        could_have_seen=tested.detectable_ratio,
        pairs_of_cells=pairs_of_cells,
    )


def figures_of(record: RunRecord) -> dict[str, float]:
    """Return the figures that a run has, by name."""
    if record.max_ns is None:
        return {}
    summary = summarize(record.result.threads)
    values = {
        name: one.of_record(record) if one.record else one.of_summary(summary)
        for name, one in FIGURES.items()
    }
    return {name: float(value) for name, value in values.items() if value}
