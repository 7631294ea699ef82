"""
What invalidates or limits runs of a sweep: caveats, other CPUs, determinism checks.

An isolated CPU, for example, is not measured unless run.cpus names it. Where a level
does name it, and the base does not, it is the only CPU measured. In both cases an
effect is also one of other CPUs. A cell that differs in nothing but run.cpus is meant
to show just that.

A board's results follow from its inputs, and nothing of the host reaches the board: no
clock, no entropy, no disk. So every field must be equal, also one that the record gets
later, except those that are named here.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rtscope.host.escape import printable
from rtscope.host.units import plural
from rtscope.machine.cpulist import format_cpulist
from rtscope.measure.campaign.model import Campaign
from rtscope.present.document import Block
from rtscope.record.caveats.catalogue import (
    Caveat,
    Counts,
    Effect,
    gravest_first,
    kind_of,
)
from rtscope.record.model import FILE_LOST, RunRecord, record_to_json
from rtscope.stats.runcaveats import all_caveats
from rtscope.verbs.sweep.design import Cell, Key
from rtscope.verbs.sweep.effects import MeasuredRun, RunsOfCells

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


# Determinism checks: runs computed twice, where their records differ, and that in
# words.


@dataclass(frozen=True, slots=True)
class Checks:
    """What came of the checks; one with different results ends the sweep."""

    planned: int = 0
    """How many have ended."""
    equal: int = 0
    failures: tuple[str, ...] = ()
    """Why a check has no two results to compare."""


NO_CHECKS = Checks()


def checks_of(whys: Mapping[str, str]) -> Checks:
    """
    Return the checks of a sweep, of all its starts.

    By the run that was computed twice: why there are no two results; empty if they are
    equal.
    """
    failures = tuple(why for why in whys.values() if why)
    return Checks(len(whys), len(whys) - len(failures), failures)


# --- the determinism checks of a sweep in words ---------------------------------------


def lines_of_checks(checks: Checks) -> Iterator[Block]:
    """Yield how many checks were equal, and why others could not be made."""
    if not checks.planned:
        return
    text = f"{checks.equal} of {plural(checks.planned, 'determinism check')} equal"
    if not checks.failures:
        yield text
        return
    first = printable(checks.failures[0])
    yield (f"{text}, {len(checks.failures)} failed: {first}", "limit")


# --- where the records of one virtual run that was computed twice differ --------------

_OF_THE_HOST = frozenset(
    {"started_at", "host_duration_s", "virtual.reused", "virtual.worker"}
)
"""Who computed it, when, and how long it took."""

_CAVEATS_OF_THE_HOST = frozenset({"result_reused", FILE_LOST})
"""That a result was stored, and that a file could not be written here."""

_WITHOUT_PATHS = _OF_THE_HOST | {"virtual.trace"}

_ABSENT = object()
_MAX_TEXT = 60
_BEFORE = 20
"""Characters before the first that differs, of a long text."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A field with its two values, as JSON."""

    place: str
    """Names of fields with dots between them, as in `load.operations.switch`."""
    first: str
    second: str


def differences(first: RunRecord, second: RunRecord) -> Iterator[Difference]:
    """
    Yield what differs though the inputs are equal, in the order of the record.

    That is about the order of time, so the first is nearest to the cause.
    """
    are_whole = _has_whole_paths(first) and _has_whole_paths(second)
    left_out = _OF_THE_HOST if are_whole else _WITHOUT_PATHS
    yield from _between("", _document(first), _document(second), left_out)


def _has_whole_paths(record: RunRecord) -> bool:
    """
    Whether the recorded paths are those that every host would have.

    A host without the memory for a second pass keeps those that were cut, and one with
    a full disk keeps none.
    """
    trace = record.require_virtual().trace
    return trace is not None and "reason" not in trace and not trace.get("truncated")


def _document(record: RunRecord) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(record_to_json(record))
    document["caveats"] = [
        one for one in document["caveats"] if one["id"] not in _CAVEATS_OF_THE_HOST
    ]
    return document


def _between(
    place: str, first: Any, second: Any, left_out: frozenset[str]
) -> Iterator[Difference]:
    if place in left_out:
        return
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        for name in {**first, **second}:
            inner = f"{place}.{name}" if place else name
            pair = first.get(name, _ABSENT), second.get(name, _ABSENT)
            yield from _between(inner, *pair, left_out)
    elif isinstance(first, list) and isinstance(second, list):
        if len(first) != len(second):
            yield Difference(place, _length(first), _length(second))
            return
        for number, pair in enumerate(zip(first, second, strict=True)):
            yield from _between(f"{place}[{number}]", *pair, left_out)
    elif first != second:
        yield Difference(place, *_parts(_text(first), _text(second)))


def _length(items: list[Any]) -> str:
    return "1 item" if len(items) == 1 else f"{len(items)} items"


def _text(value: Any) -> str:
    return "absent" if value is _ABSENT else json.dumps(value)


def _parts(first: str, second: str) -> tuple[str, str]:
    """Return of long texts what is around the first character that differs."""
    if max(len(first), len(second)) <= _MAX_TEXT:
        return first, second
    pairs = enumerate(zip(first, second, strict=False))
    differs = (number for number, (one, other) in pairs if one != other)
    start = max(0, next(differs, min(len(first), len(second))) - _BEFORE)
    return _part(first, start), _part(second, start)


def _part(text: str, start: int) -> str:
    end = start + _MAX_TEXT
    before, after = "..." * (start > 0), "..." * (end < len(text))
    return f"{before}{text[start:end]}{after}"
