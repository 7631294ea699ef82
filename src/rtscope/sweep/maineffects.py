"""
What a level did over all cells: main effects, of designs that combine levels. Pure.

Each cell with the level is compared with the cell that has all its other levels, under
equal seeds; the differences of all such pairs are tested together (Fisher 1935, design
of experiments). So a full matrix tells with few seeds what one cell alone cannot. An
effect that only some combinations have is weaker in the mean; the cells show it.

Pairs that have runs whose worst wake-ups coincide are one pair.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from statistics import fmean

from rtscope.record.model import RunRecord
from rtscope.stats.seeds import coincide
from rtscope.sweep.design import Cell, LevelName
from rtscope.sweep.effects import (
    FIGURES,
    Effect,
    Key,
    by_key,
    counterparts,
    effect_of,
    judged,
    values_of,
)

CellPairs = Sequence[tuple[int, int]]
"""Numbers of cells without a level, and of the same cells with it."""

Point = tuple[int, int]
"""Number of a cell, and seed: a run, if its load and the like are known."""


def main_effects_of(
    cells: Sequence[Cell], records: Mapping[int, Sequence[RunRecord]]
) -> tuple[Effect, ...]:
    """
    Return the effect of each level that several cells have beside others.

    `records` are those of the cells by number; effects that are found come first, and
    are judged apart from those of single cells.
    """
    pairs = pairs_of_cells([cell for cell in cells if records.get(cell.number)])
    if not pairs:
        return ()
    runs = _by_key_of_base(cells, records)
    return judged(
        effect
        for key, of_cells in runs.items()
        for effect in _of_key(key, of_cells, pairs)
    )


def pairs_of_cells(cells: Sequence[Cell]) -> Mapping[str, CellPairs]:
    """Return the pairs of cells of each level, by axis and level, if it has several."""
    number_of = {frozenset(cell.levels): cell.number for cell in cells}
    found: dict[LevelName, list[tuple[int, int]]] = {}
    for levels, number in number_of.items():
        for level in levels:
            without = number_of.get(levels - {level})
            if without is not None:
                found.setdefault(level, []).append((without, number))
    return {
        f"{axis}: {name}": sorted(pairs)
        for (axis, name), pairs in sorted(found.items(), key=lambda one: min(one[1]))
        if len(pairs) > 1
    }


def _by_key_of_base(
    cells: Sequence[Cell], records: Mapping[int, Sequence[RunRecord]]
) -> Mapping[Key, Mapping[int, Mapping[int, RunRecord]]]:
    """Return runs by the key that the base has for theirs, by cell, and by seed."""
    base = by_key(records.get(cells[0].number, ()))
    found: dict[Key, dict[int, Mapping[int, RunRecord]]] = {}
    for cell in cells:
        of_cell = by_key(records.get(cell.number, ()))
        for key, like in counterparts(base, of_cell).items():
            found.setdefault(like, {})[cell.number] = of_cell[key]
    return found


def _of_key(
    key: Key,
    runs: Mapping[int, Mapping[int, RunRecord]],
    pairs: Mapping[str, CellPairs],
) -> Iterator[Effect]:
    alike = _alike(runs)
    for figure in FIGURES:
        values = {
            number: values_of(by_seed, figure) for number, by_seed in runs.items()
        }
        for level, of_level in pairs.items():
            there = [pair for pair in of_level if {*pair} <= values.keys()]
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
                *(level, key, figure),
                before=before,
                after=after,
                differences=_of_independent(both, changes, alike),
                pairs_of_cells=len(there),
            )


def _of_independent(
    pairs: Sequence[tuple[Point, Point]],
    changes: Sequence[float],
    alike: Mapping[Point, Point],
) -> list[float]:
    """Return the mean change of each set of pairs that have a trajectory in common."""
    joined = _Joined()
    for one, other in pairs:
        joined.join(alike[one], alike[other])
    found: dict[Point, list[float]] = {}
    for (one, _), change in zip(pairs, changes, strict=True):
        found.setdefault(joined.first(alike[one]), []).append(change)
    return [fmean(some) for some in found.values()]


def _alike(runs: Mapping[int, Mapping[int, RunRecord]]) -> Mapping[Point, Point]:
    """Return for each run the first one of its trajectory."""
    points = {
        (number, seed): record
        for number, by_seed in runs.items()
        for seed, record in by_seed.items()
    }
    joined = _Joined()
    comparisons = math.comb(len(points), 2)
    for one, other in combinations(points, 2):
        if coincide(points[one], points[other], comparisons=comparisons):
            joined.join(one, other)
    return {point: joined.first(point) for point in points}


class _Joined:
    """Disjoint sets of points, each called by its first member."""

    def __init__(self) -> None:
        self._parents: dict[Point, Point] = {}

    def first(self, point: Point) -> Point:
        while (parent := self._parents.get(point, point)) != point:
            point = parent
        return point

    def join(self, one: Point, other: Point) -> None:
        first, second = sorted((self.first(one), self.first(other)))
        self._parents[second] = first
