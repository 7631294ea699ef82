"""
What a change did: pairs of runs with equal seeds, effects on a figure. Pure.

The differences of the logarithms of independent pairs are tested by `stats.comparison`.
Among all effects that are judged together, the share of false discoveries is held at
5 %.

Each cell with the level is compared with the cell that has all its other levels, under
equal seeds; the differences of all such pairs are tested together (Fisher 1935, design
of experiments). So a full matrix tells with few seeds what one cell alone cannot. An
effect that only some combinations have is weaker in the mean; the cells show it.

A sweep compares thousands of runs, and two of them seldom share a worst wake-up beyond
chance. So activations are counted that lists have in common, for all pairs at once:
runs are rows of a sparse matrix, activations its columns. Of equal lists one is
counted. How many in common are enough depends on the lengths of the lists alone, which
few runs have of their own.

A pair whose run has the worst wake-ups of another pair's run is the same trajectory
told again: such pairs are one, and count with their mean. Whether it is the run with
the change or the one without it makes no difference.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from rtscope.record.model import RunRecord
from rtscope.stats.comparison.design import FALSE_DISCOVERIES
from rtscope.stats.comparison.effect import effect_of_pairs, false_discovered
from rtscope.stats.exposure import SIGNIFICANCE
from rtscope.stats.figures import named
from rtscope.stats.summary import summarize
from rtscope.verbs.sweep.design import Cell, Key, LevelName, by_key

FIGURES = named("sweep")
"""Latencies in ns; operations as stress-ng counts them, of all stressors."""


@dataclass(frozen=True, slots=True)
class CellEffect:
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


def judged(effects: Iterable[CellEffect]) -> tuple[CellEffect, ...]:
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
) -> CellEffect:
    """Test the differences of logarithms of independent pairs of runs."""
    tested = effect_of_pairs(differences, figure=figure, alpha=FALSE_DISCOVERIES)
    low, high = tested.interval or (None, None)
    return CellEffect(
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


# --- pairs of runs with equal seeds, and which runs are one trajectory ----------------

# Which of many runs are one trajectory, as `seeds.coincide` says of each pair of them.

Thread = tuple[int | None, int]
"""The CPU, and which of its threads in the order of the record."""

Lengths = tuple[tuple[Thread, int, int], ...]
"""Of each thread: the length of its list of worst wake-ups, and its activations."""

Places = NDArray[np.int64]

ROWS_AT_ONCE = 256
"""What they have in common with 20,000 other runs takes some 100 MB."""


@dataclass(frozen=True, slots=True)
class WorstLists:
    """Which activations of a run are listed as its worst wake-ups."""

    lengths: Lengths
    activations: frozenset[tuple[Thread, int]]


@dataclass(frozen=True, slots=True)
class _Unit:
    """A run, or runs that have equal lists and coincide."""

    lists: WorstLists
    places: tuple[int, ...]
    """Of its runs, in order."""


def worst_lists(record: RunRecord) -> WorstLists:
    """Return the worst wake-ups of a run, as they are compared."""
    seen: Counter[int | None] = Counter()
    lengths: list[tuple[Thread, int, int]] = []
    listed: set[tuple[Thread, int]] = set()
    for one in record.result.threads:
        thread = (one.cpu, seen[one.cpu])
        seen[one.cpu] += 1
        places = {wakeup.seq for wakeup in one.worst}
        activations = max((one.end_ns - one.start_ns) // one.interval_ns, 1)
        lengths.append((thread, len(places), activations))
        listed.update((thread, place) for place in places)
    return WorstLists(tuple(lengths), frozenset(listed))


def trajectories_of(runs: Sequence[WorstLists]) -> list[int]:
    """
    Return for each run the place of the first of its trajectory.

    Runs that coincide are one, and so are those that are both like a third. The
    comparisons are those of all pairs.
    """
    # Loading it takes a while, which every command would pay.
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    comparisons = math.comb(len(runs), 2)
    units = _units(runs, comparisons)
    label: Places = np.arange(len(units))
    for ones, others in _coinciding(units, comparisons):
        ties = coo_array(
            (np.ones(len(ones), np.int8), (label[ones], label[others])),
            shape=(len(units), len(units)),
        )
        _, component = connected_components(ties, directed=False)
        label = component[label].astype(np.int64)
    first: dict[int, int] = {}
    places = [0] * len(runs)
    for unit, of_unit in zip(units, label.tolist(), strict=True):
        for place in unit.places:
            places[place] = first.setdefault(of_unit, unit.places[0])
    return places


def _units(runs: Sequence[WorstLists], comparisons: int) -> list[_Unit]:
    """Return runs in order of the first of each unit."""
    places: dict[WorstLists, list[int]] = {}
    for place, lists in enumerate(runs):
        places.setdefault(lists, []).append(place)
    units = []
    for lists, equal in places.items():
        shared = len(lists.activations)
        enough = _enough(lists.lengths, lists.lengths, comparisons)
        if shared >= enough:
            units.append(_Unit(lists, tuple(equal)))
        else:
            units += [_Unit(lists, (place,)) for place in equal]
    return sorted(units, key=lambda unit: unit.places[0])


def _coinciding(
    units: Sequence[_Unit], comparisons: int
) -> Iterator[tuple[Places, Places]]:
    """Yield places of units that coincide, each with that of the other one."""
    kinds = list(dict.fromkeys(unit.lists.lengths for unit in units))
    number_of = {lengths: number for number, lengths in enumerate(kinds)}
    kind = np.array([number_of[unit.lists.lengths] for unit in units], np.int64)
    first = np.array([unit.places[0] for unit in units], np.int64)
    last = np.array([unit.places[-1] for unit in units], np.int64)
    known: dict[tuple[int, int], int] = {}

    def least(pair: tuple[int, int]) -> int:
        if pair not in known:
            one, other = (kinds[number] for number in pair)
            known[pair] = _enough(one, other, comparisons)
        return known[pair]

    for ones, others, shared in _in_common(units):
        # The earlier of two runs tells the activations: some run of `ones` is earlier
        # than one of `others`, and perhaps another one is later.
        both = shared >= _by_pair(kind[ones], kind[others], least)
        later = first[others] < last[ones]
        both |= later & (shared >= _by_pair(kind[others], kind[ones], least))
        if both.any():
            yield ones[both], others[both]


def _by_pair(
    ones: Places, others: Places, least: Callable[[tuple[int, int]], int]
) -> Places:
    """Return the value of each pair of kinds; each is asked for once."""
    here, there = (np.flatnonzero(np.bincount(some)) for some in (ones, others))
    pairs = np.searchsorted(here, ones) * len(there) + np.searchsorted(there, others)
    values = np.zeros(len(here) * len(there), np.int64)
    for pair in np.flatnonzero(np.bincount(pairs, minlength=len(values))):
        one, other = divmod(int(pair), len(there))
        values[pair] = least((int(here[one]), int(there[other])))
    by_place: Places = values[pairs]
    return by_place


def _in_common(units: Sequence[_Unit]) -> Iterator[tuple[Places, Places, Places]]:
    """Yield two units, the first first, and how many activations both list, if any."""
    # Loading it takes a while, which every command would pay.
    from scipy.sparse import csr_array

    columns: dict[tuple[Thread, int], int] = {}
    placed = [
        columns.setdefault(one, len(columns))
        for unit in units
        for one in unit.lists.activations
    ]
    ends = np.cumsum([0, *(len(unit.lists.activations) for unit in units)])
    listed = csr_array(
        (np.ones(len(placed), np.int32), np.array(placed, np.int64), ends),
        shape=(len(units), len(columns)),
    )
    for begin in range(0, len(units), ROWS_AT_ONCE):
        rows = listed[begin : begin + ROWS_AT_ONCE]
        shared = (rows @ listed[begin:].T).tocoo()
        ones, others = (np.asarray(x, np.int64) + begin for x in shared.coords)
        is_after = others > ones
        yield ones[is_after], others[is_after], shared.data[is_after]


def _enough(one: Lengths, other: Lengths, comparisons: int) -> int:
    """
    Return how many activations two runs of these lists must share to coincide.

    The first is the earlier one. More than they list, if no number is enough.
    """
    # Loading it takes a while, which every command would pay.
    from scipy.special import gammainc

    theirs = {thread: length for thread, length, _ in other}
    most, expected = 0, 0.0
    for thread, length, activations in one:
        if thread in theirs:
            most += min(length, theirs[thread])
            expected += length * theirs[thread] / activations
    chance = gammainc(np.arange(1, most + 1), expected)
    enough = np.flatnonzero(chance * comparisons <= SIGNIFICANCE)
    return 1 + int(enough[0]) if len(enough) else most + 1


# --- pairs of runs: of two cells, with equal seeds, under one load --------------------

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
) -> tuple[CellEffect, ...]:
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
) -> Iterator[CellEffect]:
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


# --- what a level did over all cells: main effects, of designs that combine levels ----


def main_effects_of(
    cells: Sequence[Cell], runs: Mapping[Key, RunsOfCells]
) -> tuple[CellEffect, ...]:
    """
    Return the effect of each level that several cells have beside others.

    `runs` are those of `runs_by_key`; effects that are found come first, and are judged
    apart from those of single cells.
    """
    measured = {number for of_cells in runs.values() for number in of_cells}
    pairs = pairs_of_cells([cell for cell in cells if cell.number in measured])
    if not pairs:
        return ()
    return judged(
        effect
        for key, of_cells in runs.items()
        for effect in effects_of_pairs(key, of_cells, pairs)
    )


def pairs_of_cells(cells: Sequence[Cell]) -> Mapping[str, CellPairs]:
    """Return the pairs of cells of each level, by axis and level, if it has several."""
    number_of = {frozenset(cell.levels): cell.number for cell in cells}
    pairs_by_level: dict[LevelName, list[tuple[int, int]]] = {}
    for levels, number in number_of.items():
        for level in levels:
            without = number_of.get(levels - {level})
            if without is not None:
                pairs_by_level.setdefault(level, []).append((without, number))
    return {
        f"{axis}: {name}": sorted(pairs)
        for (axis, name), pairs in sorted(
            pairs_by_level.items(), key=lambda one: min(one[1])
        )
        if len(pairs) > 1
    }
