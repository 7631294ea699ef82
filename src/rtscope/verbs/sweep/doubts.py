"""
What invalidates or limits runs of a sweep: caveats, other CPUs, other releases.

An isolated CPU, for example, is not measured unless run.cpus names it. Where a level
does name it, and the base does not, it is the only CPU measured. In both cases an
effect is also one of other CPUs. A cell that differs in nothing but run.cpus is meant
to show just that. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rtscope.machine.cpulist import format_cpulist
from rtscope.measure.campaign.model import Campaign
from rtscope.record.caveats.catalogue import (
    Caveat,
    Counts,
    Effect,
    gravest_first,
    kind_of,
)
from rtscope.record.model import RunRecord
from rtscope.stats.runcaveats import all_caveats
from rtscope.verbs.sweep.design import Cell
from rtscope.verbs.sweep.effects import MeasuredRun, RunsOfCells
from rtscope.verbs.sweep.keys import Key

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


# Cells that measured other CPUs than the base: what they change is not all they show.

CAVEAT = "other_cpus"

Cpus = frozenset[int]


def other_cpus_of(
    cells: Sequence[Cell], runs: Mapping[Key, RunsOfCells]
) -> dict[int, str]:
    """Return, by the number of the cell, its CPUs and those of the base, in words."""
    return {
        number: f"CPU {format_cpulist(theirs)}, the base CPU {format_cpulist(ours)}"
        for number, (ours, theirs, _) in _different(cells, runs).items()
    }


def doubts_on_cpus(
    cells: Sequence[Cell], runs: Mapping[Key, RunsOfCells]
) -> tuple[Doubt, ...]:
    """Return a limit for each two sets of CPUs, with the cells that have it."""
    cells_by_cpus: dict[tuple[Cpus, Cpus], list[tuple[str, int]]] = {}
    names = {cell.number: cell.name for cell in cells}
    for number, (ours, theirs, count) in _different(cells, runs).items():
        cells_by_cpus.setdefault((ours, theirs), []).append((names[number], count))
    return tuple(
        Doubt(
            caveat=CAVEAT,
            weight="limit",
            message=(
                f"measured CPU {format_cpulist(theirs)}, the base CPU "
                f"{format_cpulist(ours)}, so the effects are also those of other CPUs; "
                f'give the base the same run.cpus = "{format_cpulist(theirs)}"'
            ),
            runs=sum(count for _, count in of_cells),
            where=tuple(name for name, _ in of_cells),
        )
        for (ours, theirs), of_cells in cells_by_cpus.items()
    )


def _different(
    cells: Sequence[Cell], runs: Mapping[Key, RunsOfCells]
) -> dict[int, tuple[Cpus, Cpus, int]]:
    """Return the CPUs of the base, those of a cell, and its runs on these."""
    base, *others = cells
    cpus_by_cell: dict[int, tuple[Cpus, Cpus, int]] = {}
    for cell in others:
        if _without_cpus(cell.campaign) == _without_cpus(base.campaign):
            continue
        ours, theirs, count = Cpus(), Cpus(), 0
        for of_cells in runs.values():
            before, after = (of_cells.get(one.number, {}) for one in (base, cell))
            of_base, of_cell = _cpus_of(before), _cpus_of(after)
            if of_base and of_cell and of_base != of_cell:
                ours, theirs = ours | of_base, theirs | of_cell
                count += len(after)
        if count:
            cpus_by_cell[cell.number] = (ours, theirs, count)
    return cpus_by_cell


def _without_cpus(campaign: Campaign) -> Campaign:
    return replace(
        campaign, runs=tuple(replace(run, cpus=None) for run in campaign.runs)
    )


def _cpus_of(by_seed: Mapping[int, MeasuredRun]) -> Cpus:
    return Cpus(
        thread.cpu
        for run in by_seed.values()
        for thread in run.record.result.threads
        if thread.cpu is not None
    )


# --- which releases of Linux were measured: an archive has another one next month -----


def releases_of(records: Iterable[RunRecord]) -> tuple[str, ...]:
    """Return the releases that ran, in the order of their first runs."""
    return tuple(dict.fromkeys(one.release for one in records if one.release))
