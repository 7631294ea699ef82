"""What each cell changed, against the base. Pure."""

from collections.abc import Mapping, Sequence

from rtscope.verbs.sweep.design import Cell
from rtscope.verbs.sweep.effects import Effect, judged
from rtscope.verbs.sweep.keys import Key
from rtscope.verbs.sweep.pairing import RunsOfCells, effects_of_pairs


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
