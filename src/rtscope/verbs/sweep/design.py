"""
From a sweep to its cells, and what their runs have in common. Pure.

The design `one` changes one thing at a time, so that each effect is against the base;
`pairs` adds each pair of levels of two axes, `full` has every combination.

A part that has, under a load, one value in the base and one in the cell, such as the
policy, is what the cell changes: its runs are called as those of the base. That is read
from the campaigns, so it does not depend on which runs have a result. A load is never
compared with another one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import combinations, product
from pathlib import PurePath
from typing import Any

from rtscope.host.errors import UsageError
from rtscope.host.units import format_duration
from rtscope.machine.cpulist import format_cpulist
from rtscope.measure.campaign.file import from_dict, to_dict
from rtscope.measure.campaign.model import Campaign, RunTable
from rtscope.record.directory.journal import part_name
from rtscope.record.directory.place import SWEEP
from rtscope.record.model import Run, RunRecord
from rtscope.verbs.sweep.file import Axis, Level, Sweep

# What pairs of runs have in common besides the seed: load, kernel, policy and the like.

Key = tuple[str, ...]
"""The values of a run in the order of PARTS."""

PARTS = (
    "loads",
    "kernels",
    "policies",
    "priorities",
    "intervals",
    "durations",
    "CPUs",
    "variants",
    "events",
)
LOAD = 0


def key_of(run: Run) -> Key:
    """Return the key of a run as it was asked for."""
    return (
        run.load,
        run.kernel or "",
        run.policy,
        str(run.priority),
        str(run.interval_ns),
        str(run.duration_ns),
        _cpus(run.cpus),
        run.variant or "",
        run.event,
    )


def values_of_parts(campaign: Campaign, load: str) -> tuple[frozenset[str], ...]:
    """Return the values that the runs under a load have of each part."""
    runs = [run for run in campaign.runs if load in run.loads]
    # As runs call them; two images of one name have other labels.
    kernels = [PurePath(name).name for name in campaign.kernels] or [""]
    return tuple(
        map(
            frozenset,
            (
                [load for _ in runs],
                [name for name in kernels if runs],
                [name for run in runs for name, _ in run.policies],
                [str(number) for run in runs for _, number in run.policies],
                [str(ns) for run in runs for ns in run.intervals_ns],
                [str(ns) for run in runs for ns in run.durations_ns],
                [_cpus(run.cpus) for run in runs],
                [run.variant or "" for run in runs],
                [event for run in runs for event in run.event_texts],
            ),
        )
    )


def by_key(
    records: Sequence[RunRecord], *, base: Campaign, cell: Campaign
) -> dict[Key, dict[int, RunRecord]]:
    """Return runs of a cell by the key that the base has for them, and by seed."""
    records_by_key: dict[Key, dict[int, RunRecord]] = {}
    moved: dict[str, Mapping[int, str]] = {}
    for record in records:
        own = key_of(record.run)
        if own[LOAD] not in moved:
            moved[own[LOAD]] = moved_parts(base, cell, load=own[LOAD])
        to = moved[own[LOAD]]
        key = tuple(to.get(part, value) for part, value in enumerate(own))
        records_by_key.setdefault(key, {})[record.run.seed or 0] = record
    return records_by_key


def moved_parts(base: Campaign, cell: Campaign, *, load: str) -> Mapping[int, str]:
    """Return the base's value of each part that a load has once in both, by place."""
    both = (values_of_parts(base, load), values_of_parts(cell, load))
    return {
        part: next(iter(ours))
        for part, (ours, theirs) in enumerate(zip(*both, strict=True))
        if part != LOAD and len(ours) == len(theirs) == 1
    }


def value_in_words(part: int, value: str) -> str:
    """Return a value as a user writes it."""
    if PARTS[part] in ("intervals", "durations"):
        return format_duration(int(value))
    return value or ("all" if PARTS[part] == "CPUs" else "none named")


def label_of(key: Key, others: Sequence[Key]) -> str:
    """Return the load of a key, with what else tells it from keys of the same load."""
    alike = [other for other in others if other[LOAD] == key[LOAD]] or [key]
    varies = [len({*values}) > 1 for values in zip(*alike, strict=True)]
    load, kernel, policy, priority, interval_ns, duration_ns, cpus, variant, event = key
    parts = (
        load,
        kernel,
        policy,
        f"priority {priority}",
        format_duration(int(interval_ns)),
        f"for {format_duration(int(duration_ns))}",
        f"CPU {cpus}" if cpus else "all CPUs",
        variant,
        f"event {event}",
    )
    more = [part for part, does in zip(parts, varies, strict=True) if does]
    return " ".join([load, *filter(None, more)])


def _cpus(cpus: Sequence[int] | None) -> str:
    return format_cpulist(cpus) if cpus else ""


# --- from a sweep to its cells: the base, and each combination of levels --------------

BASE = "base"
MAX_CELLS = 10_000
LOADS = RunTable().loads
"""Of a [[run]] that names none."""
MAX_SEEDS = 20
WHY_SEEDS = "the exact test tries every way to swap base and cell, 2^seeds in all"

Chosen = tuple[tuple[Axis, Level], ...]
LevelName = tuple[str, str]
"""Of the axis, and of the level."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of levels, as a campaign."""

    number: int
    name: str
    """`base`, or axis and level of each change."""
    levels: tuple[LevelName, ...]
    """Without axes that are as in the base."""
    campaign: Campaign

    @property
    def directory(self) -> str:
        """Name of its result directory."""
        return f"{self.number:03}-{part_name(self.name)}"

    @property
    def path(self) -> str:
        """Where that lies in the directory of the sweep."""
        return f"{SWEEP.parts}/{self.directory}"


def cells_of(sweep: Sweep) -> tuple[Cell, ...]:
    """
    Return the cells of a sweep, the base first.

    Raises UsageError for a cell that is no valid campaign, that changes nothing, or
    whose runs have no counterpart in the base.
    """
    cells: list[Cell] = []
    known: dict[str, str] = {}
    for number, chosen in enumerate(_combinations(sweep)):
        if number >= MAX_CELLS:
            raise UsageError(
                f"{sweep.source}: more than {MAX_CELLS:,} cells; write fewer levels, "
                'or design = "one"'
            )
        cell = _cell(sweep, number, chosen)
        same = known.setdefault(repr(to_dict(cell.campaign)), cell.name)
        if same != cell.name:
            raise UsageError(
                f"{sweep.source}: {cell.name} is the same as {same}; leave one out"
            )
        cells.append(cell)
    _check(sweep, cells)
    return tuple(cells)


def chosen_cells(
    cells: Sequence[Cell], patterns: Sequence[str], *, source: str
) -> tuple[Cell, ...]:
    """
    Return the base and the cells all of whose changes are named by a pattern.

    A pattern names an axis, a level, or both as `axis: level`, with the wildcards of a
    shell. Raises UsageError for a pattern that names nothing.
    """
    levels = dict.fromkeys(level for cell in cells for level in cell.levels)
    for pattern in patterns:
        if not any(_names(pattern, level) for level in levels):
            axes = ", ".join(dict.fromkeys(axis for axis, _ in levels))
            raise UsageError(
                f"{source}: nothing is called {pattern!r}: name an axis ({axes}) or a "
                "level, as --dry-run lists them"
            )
    return tuple(
        cell
        for cell in cells
        if all(any(_names(one, level) for one in patterns) for level in cell.levels)
    )


def _names(pattern: str, level: LevelName) -> bool:
    axis, name = level
    return any(fnmatchcase(one, pattern) for one in (axis, name, f"{axis}: {name}"))


def _combinations(sweep: Sweep) -> Iterator[Chosen]:
    yield ()
    single = [[(axis, level) for level in axis.level] for axis in sweep.axes]
    if sweep.design == "full":
        with_none = [(None, *levels) for levels in single]
        for picked in product(*with_none):
            if chosen := tuple(one for one in picked if one is not None):
                yield chosen
        return
    for levels in single:
        for one in levels:
            yield (one,)
    if sweep.design == "pairs":
        for first, second in combinations(single, 2):
            yield from product(first, second)


def _cell(sweep: Sweep, number: int, chosen: Chosen) -> Cell:
    document: dict[str, Any] = dict(sweep.base)
    for _, level in chosen:
        document = changed(document, level)
    name = " + ".join(f"{axis.name}: {level.name}" for axis, level in chosen) or BASE
    campaign = from_dict(document, source=f"{sweep.source}: {name}")
    return Cell(
        number=number,
        name=name,
        levels=tuple((axis.name, level.name) for axis, level in chosen),
        campaign=campaign,
    )


def changed(document: Mapping[str, Any], level: Level) -> dict[str, Any]:
    """Return the tables of a campaign with the changes of a level."""
    tables = dict(document)
    for table in ("campaign", "target", "kernel"):
        changes = getattr(level, table)
        if changes:
            tables[table] = {**_mapping(tables.get(table)), **changes}
    for key in _ADDED & level.kernel.keys():
        before = _words(_mapping(document.get("kernel")).get(key))
        if _is_many(level.kernel[key]):
            tables["kernel"][key] = [*before, *_words(level.kernel[key])]
    if _is_many(level.target.get("tuned")):
        before = _items(_mapping(document.get("target")).get("tuned"))
        added = [one for one in _items(level.target["tuned"]) if one not in before]
        tables["target"]["tuned"] = [*before, *added]
    if level.run:
        tables["run"] = _changed_runs(tables.get("run") or [{}], level.run)
    return tables


def _changed_runs(runs: Any, changes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """
    Return each [[run]] with the changes; loads that they name are those that stay.

    A table without any of them is left out. If the base lacks a load, each table gets
    all that are named: `_check` then names what nothing compares with.
    """
    changed = [{**_mapping(run), **changes} for run in runs]
    wanted = _names_of(changes.get("load"))
    left = [
        [load for load in wanted if load in _names_of(_mapping(run).get("load", LOADS))]
        for run in runs
    ]
    if not wanted or {load for some in left for load in some} != set(wanted):
        return changed
    return [
        {**run, "load": some} for run, some in zip(changed, left, strict=True) if some
    ]


def _names_of(value: object) -> list[str]:
    return [str(item) for item in _items(value)]


def _mapping(value: object) -> Mapping[str, Any]:
    """Return a table; what is none is refused later, by the campaign's own reader."""
    return value if isinstance(value, Mapping) else {}


_ADDED = frozenset({"append", "config"})
"""Keys of [kernel] to which a level adds; every other key is replaced."""


def _is_many(value: object) -> bool:
    """Whether it is a text or a list; the campaign's own reader refuses the rest."""
    return isinstance(value, str | list | tuple)


def _items(value: object) -> list[Any]:
    """Return the items of a list, or of a text with commas."""
    if isinstance(value, str):
        return [item.strip() for item in value.split(",")]
    return list(value) if isinstance(value, list | tuple) else []


def _words(value: object) -> list[Any]:
    """Return the words of a text, or the items of a list."""
    if isinstance(value, str):
        return value.split()
    return list(value) if isinstance(value, list | tuple) else []


def _check(sweep: Sweep, cells: list[Cell]) -> None:
    base = cells[0].campaign
    if base.board is None and sweep.survey is None:
        raise UsageError(
            f"{sweep.source}: [base.target] address: write a virtual board, such as "
            "virtual:pc; to compare settings of a machine, write a campaign with "
            "variants, whose runs get a random order; to rank its loads, type "
            "rtscope sweep survey-machine"
        )
    if any(cell.campaign.require_identical for cell in cells):
        raise UsageError(
            f"{sweep.source}: [base.campaign] require_identical: leave it out: a sweep "
            "may take stored results, and measures one run in 50 again; to measure "
            "all of them again, write a campaign for rtscope run"
        )
    for cell in cells:
        if cell.campaign.board != base.board:
            raise UsageError(
                f"{sweep.source}: {cell.name}: is of another board than the base; "
                "measure it in a sweep of its own, with --target"
            )
        _refuse_without_counterpart(sweep, cell, base)
        if cell.campaign.run_seeds != base.run_seeds:
            raise UsageError(
                f"{sweep.source}: {cell.name}: has other seeds than the base; effects "
                "are found between runs of equal seeds: leave seeds to [base.campaign]"
            )
    if len(base.run_seeds) > MAX_SEEDS:
        raise UsageError(
            f"{sweep.source}: [base.campaign] seeds: write at most {MAX_SEEDS}: "
            f"{WHY_SEEDS}"
        )


def _refuse_without_counterpart(sweep: Sweep, cell: Cell, base: Campaign) -> None:
    """Raise UsageError if a run of the cell could be compared with none of the base."""
    if more := set(cell.campaign.loads) - set(base.loads):
        raise UsageError(
            f"{sweep.source}: {cell.name}: changes the loads to "
            f"{', '.join(sorted(more))}, and the base has no run to compare that with; "
            "list all loads in [base]: a level changes all of them, or those that it "
            "names"
        )
    fewer = True
    for load in cell.campaign.loads:
        before, after = (
            values_of_parts(base, load),
            values_of_parts(cell.campaign, load),
        )
        for part, (known, values) in enumerate(zip(before, after, strict=True)):
            fewer = fewer and values <= known
            if not values <= known and not len(values) == len(known) == 1:
                new = ", ".join(
                    value_in_words(part, value) for value in sorted(values - known)
                )
                raise UsageError(
                    f"{sweep.source}: {cell.name}: under {load}: changes the "
                    f"{PARTS[part]} to {new}, and the base has no run to compare that "
                    "with; write one value in [base], and one in each level"
                )
    same = replace(cell.campaign, runs=base.runs, kernels=base.kernels) == base
    if cell.number and same and fewer:
        raise UsageError(
            f"{sweep.source}: {cell.name}: changes nothing: all its runs are runs of "
            "the base; write one value in [base], and another one in the level"
        )
