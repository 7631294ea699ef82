"""
Which of many runs are one trajectory, as `seeds.coincide` says of each pair of them.

A sweep compares thousands of runs, and two of them seldom share a worst wake-up beyond
chance. So activations are counted that lists have in common, for all pairs at once:
runs are rows of a sparse matrix, activations its columns. Of equal lists one is
counted. How many in common are enough depends on the lengths of the lists alone, which
few runs have of their own. Pure.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtscope.record.model import RunRecord
from rtscope.stats.dispersion import SIGNIFICANCE

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
