"""The table of a report that tells how maxima vary over a virtual board's seeds."""

from collections.abc import Sequence
from dataclasses import dataclass

from rtscope.report.model.rows import Cell, Row
from rtscope.report.words import plural
from rtscope.stats.seeds import OverSeeds, over_seeds

EXPLAINED = (
    "A seed is one trajectory, not a repetition: each row of the main table merges the "
    "trajectories of its seeds, and its maximum is the highest of theirs. More seeds "
    "can only raise it."
)

HEADINGS = ("lowest max", "median max", "highest max", "of seed", "seeds")


@dataclass(frozen=True, slots=True)
class SeedRow:
    """One line: the maxima of one row of the main table, by seed."""

    row: Row
    over: OverSeeds


def seed_rows(cells: Sequence[Cell], rows: Sequence[Row]) -> tuple[SeedRow, ...]:
    """Return a line for each row that merges two seeds or more."""
    return tuple(
        SeedRow(row, over)
        for cell, row in zip(cells, rows, strict=True)
        if (over := over_seeds(cell.records)) is not None
    )


def title_of(rows: Sequence[SeedRow]) -> str:
    """Say over how many seeds the maxima are."""
    seeds = {seed for row in rows for seed, _ in row.over.maxima_ns}
    return f"Maxima over {plural(len(seeds), 'seed')}"
