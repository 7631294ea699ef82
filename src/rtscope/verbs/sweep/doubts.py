"""What invalidates or limits runs of a sweep, with the cells or loads that have it."""

from collections.abc import Iterable
from dataclasses import dataclass

from rtscope.record.caveats.catalogue import (
    Caveat,
    Counts,
    Effect,
    gravest_first,
    kind_of,
)
from rtscope.record.model import RunRecord
from rtscope.stats.runcaveats import all_caveats

ON_ALL_BOARDS = "virtual_board"
"""The caveat of every run on a virtual board."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A caveat that invalidates or limits runs of the sweep."""

    caveat: str
    weight: str
    """As in [the caveats](caveats.md): invalid, limit or note."""
    message: str
    runs: int
    where: tuple[str, ...]
    """The cells, or loads, of these runs."""
    counts: bool = True
    """Whether its runs are in effects and rankings."""


def doubts_of(runs: Iterable[tuple[str, RunRecord]]) -> tuple[Doubt, ...]:
    """
    Return the caveats of runs, each with the name of its cell or load.

    The gravest first; without the one that every virtual board has.
    """
    where: dict[str, list[str]] = {}
    caveats: dict[str, Caveat] = {}
    for name, record in runs:
        for one in {caveat.id: caveat for caveat in all_caveats(record)}.values():
            if kind_of(one).effect is Effect.NOTE or one.id == ON_ALL_BOARDS:
                continue
            caveats.setdefault(one.id, one)
            where.setdefault(one.id, []).append(name)
    return tuple(
        Doubt(
            caveat=one.id,
            weight=str(kind_of(one).effect),
            message=kind_of(one).message,
            runs=len(where[one.id]),
            where=tuple(dict.fromkeys(where[one.id])),
            counts=kind_of(one).counts is not Counts.NO,
        )
        for one in gravest_first(caveats.values())
    )
