"""
What a level did over all cells: main effects, of designs that combine levels. Pure.

Each cell with the level is compared with the cell that has all its other levels, under
equal seeds; the differences of all such pairs are tested together (Fisher 1935, design
of experiments). So a full matrix tells with few seeds what one cell alone cannot. An
effect that only some combinations have is weaker in the mean; the cells show it.
"""

from collections.abc import Mapping, Sequence

from rtscope.verbs.sweep.design import Cell, LevelName
from rtscope.verbs.sweep.effects import Effect, judged
from rtscope.verbs.sweep.keys import Key
from rtscope.verbs.sweep.pairing import CellPairs, RunsOfCells, effects_of_pairs


def main_effects_of(
    cells: Sequence[Cell], runs: Mapping[Key, RunsOfCells]
) -> tuple[Effect, ...]:
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
