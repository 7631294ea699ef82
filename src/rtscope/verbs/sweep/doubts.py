"""What invalidates or limits runs of a sweep, with the cells or loads that have it."""

from collections.abc import Iterable
from dataclasses import dataclass

from rtscope.record.caveats.catalogue import Caveat, Effect, gravest_first, kind_of
from rtscope.record.model import RunRecord
from rtscope.stats.runcaveats import all_caveats

ON_ALL_BOARDS = "virtual_board"
"""The caveat of every run on a virtual board."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A caveat that invalidates or limits runs of the sweep."""

    caveat: str
    weight: str
    """invalid: its runs are in no effect and no ranking. limit: they are."""
    message: str
    runs: int
    where: tuple[str, ...]
    """The cells, or loads, of these runs."""


def why_invalid(record: RunRecord) -> str:
    """Return the message of what invalidates a run; empty if nothing does."""
    graves = (kind_of(one) for one in all_caveats(record))
    return next((one.message for one in graves if one.effect is Effect.INVALID), "")


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
        )
        for one in gravest_first(caveats.values())
    )
