"""What each cell changed, against the base. Pure."""

from collections.abc import Mapping, Sequence

from rtscope.record.model import RunRecord
from rtscope.sweep.design import Cell
from rtscope.sweep.effects import Effect, judged
from rtscope.sweep.pairing import effects_of_pairs, runs_by_key


def effects_of(
    cells: Sequence[Cell], records: Mapping[int, Sequence[RunRecord]]
) -> tuple[Effect, ...]:
    """
    Return the effects of all cells, the largest discoveries first.

    The first cell is the base; `records` are by the number of the cell.
    """
    base, *others = cells
    return judged(
        effect
        for cell in others
        for key, runs in runs_by_key((base, cell), records).items()
        for effect in effects_of_pairs(
            key, runs, {cell.name: [(base.number, cell.number)]}
        )
    )
