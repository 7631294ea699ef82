"""
Pairs of runs: of two cells, with equal seeds, under one load. Pure.

A pair whose run has the worst wake-ups of another pair's run is the same trajectory
told again: such pairs are one, and count with their mean. Whether it is the run with
the change or the one without it makes no difference.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from rtscope.record.model import RunRecord
from rtscope.verbs.sweep.design import Cell
from rtscope.verbs.sweep.effects import FIGURES, Effect, effect_of, figures_of, judged
from rtscope.verbs.sweep.keys import Key, by_key
from rtscope.verbs.sweep.trajectories import WorstLists, trajectories_of, worst_lists

CellPairs = Sequence[tuple[int, int]]
"""Numbers of cells without a change, and of the same cells with it."""


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A run with all that is compared of it, read once."""

    record: RunRecord
    figures: Mapping[str, float]
    worst: WorstLists


RunsOfCells = Mapping[int, Mapping[int, MeasuredRun]]
"""By the number of the cell, and by seed."""

Point = tuple[int, int]
"""Number of a cell, and seed: a run, if its key is known."""


def runs_by_key(
    cells: Sequence[Cell], records: Mapping[int, Sequence[RunRecord]]
) -> Mapping[Key, RunsOfCells]:
    """Return runs by the key that the base, which is the first cell, has for them."""
    base = cells[0].campaign
    runs: dict[Key, dict[int, Mapping[int, MeasuredRun]]] = {}
    for cell in cells:
        of_cell = by_key(records.get(cell.number, ()), base=base, cell=cell.campaign)
        for key, by_seed in of_cell.items():
            runs.setdefault(key, {})[cell.number] = {
                seed: MeasuredRun(run, figures_of(run), worst_lists(run))
                for seed, run in by_seed.items()
            }
    return runs


def effects_of(
    cells: Sequence[Cell], runs: Mapping[Key, RunsOfCells]
) -> tuple[Effect, ...]:
    """
    Return the effects of all cells, the largest discoveries first.

    The first cell is the base; `runs` are those of `runs_by_key`.
    """
    base, *others = cells
    return judged(
        effect
        for cell in others
        for key, of_cells in runs.items()
        if {base.number, cell.number} <= of_cells.keys()
        for effect in effects_of_pairs(
            key,
            {number: of_cells[number] for number in (base.number, cell.number)},
            {cell.name: [(base.number, cell.number)]},
        )
    )


def effects_of_pairs(
    key: Key, runs: RunsOfCells, pairs: Mapping[str, CellPairs]
) -> Iterator[Effect]:
    """Yield the effects of changes, each by its name with its pairs of cells."""
    alike = _alike(runs)
    for figure in FIGURES:
        values = {
            number: {
                seed: run.figures[figure]
                for seed, run in by_seed.items()
                if figure in run.figures
            }
            for number, by_seed in runs.items()
        }
        for name, of_change in pairs.items():
            there = [pair for pair in of_change if {*pair} <= values.keys()]
            both = [
                ((one, seed), (other, seed))
                for one, other in there
                for seed in sorted(values[one].keys() & values[other].keys())
            ]
            if not both:
                continue
            before = [values[number][seed] for (number, seed), _ in both]
            after = [values[number][seed] for _, (number, seed) in both]
            changes = [math.log(b / a) for a, b in zip(before, after, strict=True)]
            yield effect_of(
                *(name, key, figure),
                before=before,
                after=after,
                differences=_of_independent(both, changes, alike),
                pairs_of_cells=len({(one, other) for (one, _), (other, _) in both}),
            )


def _of_independent(
    pairs: Sequence[tuple[Point, Point]],
    changes: Sequence[float],
    alike: Mapping[Point, Point],
) -> list[float]:
    """Return the mean change of each set of pairs that have a trajectory in common."""
    from scipy.cluster.hierarchy import DisjointSet

    joined = DisjointSet(alike.values())
    for one, other in pairs:
        joined.merge(alike[one], alike[other])
    changes_by_point: dict[Point, list[float]] = {}
    for (one, _), change in zip(pairs, changes, strict=True):
        changes_by_point.setdefault(joined[alike[one]], []).append(change)
    return [fmean(some) for some in changes_by_point.values()]


def _alike(runs: RunsOfCells) -> Mapping[Point, Point]:
    """Return for each run one that stands for its trajectory."""
    lists = {
        (number, seed): run.worst
        for number, by_seed in runs.items()
        for seed, run in by_seed.items()
    }
    points = list(lists)
    firsts = trajectories_of(list(lists.values()))
    return {point: points[first] for point, first in zip(points, firsts, strict=True)}
