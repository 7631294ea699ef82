"""
What a sweep found, for terminal, page and JSON: cells, effects, costs, failures.

All are medians over seeds.

Its cause is read from the explanation of the run, if there is one. An explanation that
is withdrawn, or that is of another wake-up, gives none.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from statistics import median

from rtscope.record.directory.records import RECORD
from rtscope.record.explanation import Explained
from rtscope.record.model import RunRecord
from rtscope.stats.figures import (
    IDLE,
    instructions_per_operation,
    kernel_bytes,
    memory_available_kb,
    wakeups_per_s,
)
from rtscope.stats.runcaveats import left_out_words, parted
from rtscope.verbs.sweep.design import Cell, Key, key_of, label_of
from rtscope.verbs.sweep.doubts import (
    NO_CHECKS,
    Checks,
    Doubt,
    doubts_of,
    doubts_on_cpus,
    other_cpus_of,
    releases_of,
)
from rtscope.verbs.sweep.effects import (
    CellEffect,
    RunsOfCells,
    effects_of,
    main_effects_of,
    runs_by_key,
)

# The run of each cell with its worst wake-up under each load, and what is known of
# that.

MOST_EXPLAINED = 20
"""Changes that are explained unasked: each takes a second or more."""


class Known(StrEnum):
    """How much is known of the cause of a worst wake-up."""

    CAUSE = "explained"
    NO_CAUSE = "no dominant cause"
    WITHDRAWN = "withdrawn"
    OTHER = "another wake-up is explained"
    NOT_EXPLAINED = "not explained"
    NOT_RECORDED = "no path recorded"


@dataclass(frozen=True, slots=True)
class WorstRun:
    """The run with the worst wake-up of a cell under one load, of all its seeds."""

    key: Key
    worst_ns: int
    seed: int | None
    run: str
    directory: str
    """Of the run, from that of the sweep."""
    result_digest: str
    known: Known
    cause: str = ""
    cause_ns: int = 0
    """How long the cause took, of the worst latency."""
    record: str = ""
    """File with the record, or a page of it, from the directory of the sweep."""
    explanation: str = ""
    """Page, or else file, with the explanation, from there; empty: none."""


def worst_runs_of(cell: Cell, runs: Mapping[Key, RunsOfCells]) -> tuple[WorstRun, ...]:
    """Return the worst run of a cell for each key, in the order of the keys."""
    return tuple(
        _worst_run(key, [run.record for run in of_cells[cell.number].values()], cell)
        for key, of_cells in sorted(runs.items())
        if any(run.figures for run in of_cells.get(cell.number, {}).values())
    )


def _worst_run(key: Key, records: Sequence[RunRecord], cell: Cell) -> WorstRun:
    worst = max(records, key=lambda one: (one.max_ns or 0, -(one.run.seed or 0)))
    directory = f"{cell.path}/runs/{worst.run.id}"
    return WorstRun(
        key=key,
        worst_ns=worst.max_ns or 0,
        seed=worst.run.seed,
        run=worst.run.id,
        directory=directory,
        result_digest=worst.result_digest,
        known=Known.NOT_EXPLAINED if _has_path(worst) else Known.NOT_RECORDED,
        record=f"{directory}/{RECORD}",
    )


def _has_path(record: RunRecord) -> bool:
    """Whether the run says that the paths to its worst wake-ups were recorded."""
    note = record.virtual.trace if record.virtual else None
    return note is not None and "reason" not in note


def explained_by(run: WorstRun, explained: Explained) -> WorstRun:
    """Return the run with what an explanation of its result says of its cause."""
    worst = explained.worst
    if worst is None or worst.latency_ns != run.worst_ns:
        return replace(run, known=Known.OTHER)
    if worst.is_withdrawn:
        return replace(run, known=Known.WITHDRAWN)
    cause = worst.dominant
    if cause is None:
        return replace(run, known=Known.NO_CAUSE)
    return replace(run, known=Known.CAUSE, cause=cause.title, cause_ns=worst.blamed_ns)


def most_changed(effects: Sequence[CellEffect]) -> tuple[tuple[str, Key], ...]:
    """
    Return cells, each with a load, that have the largest effects; at most 20.

    The effects are the largest first.
    """
    return tuple(dict.fromkeys((one.cell, one.key) for one in effects))[:MOST_EXPLAINED]


def to_explain(
    effects: Sequence[CellEffect],
    worst_runs: Mapping[tuple[str, Key], WorstRun],
    base: str,
) -> Iterator[WorstRun]:
    """
    Yield the worst runs of the most changed cells; those of the base come first.

    `worst_runs` are by the name of the cell and the key.
    """
    chosen = most_changed(effects)
    keys = dict.fromkeys(key for _, key in chosen)
    for place in (*((base, key) for key in keys), *chosen):
        if place in worst_runs:
            yield worst_runs[place]


# --- what a sweep found, for terminal, page and JSON: cells, effects, costs, failures -

# What a cell costs besides latency: its image, memory, wake-ups of an idle machine,
# work.


@dataclass(frozen=True, slots=True)
class Costs:
    """Medians over the seeds of a cell; None, or no entry, where nothing tells."""

    kernel_bytes: int | None = None
    """Size of the kernel's image."""
    memory_available_kb: float | None = None
    """MemAvailable of /proc/meminfo when measuring began, under the load idle."""
    wakeups_per_s: float | None = None
    """
    Interrupts per virtual second of all CPUs under the load idle, without those that
    wake the measuring threads: what keeps an idle machine from deep sleep.
    """
    instructions: Mapping[str, float] = field(default_factory=dict)
    """Per operation of a load, by its name."""


NO_COSTS = Costs()


def costs_of(records: Sequence[RunRecord]) -> Costs:
    """
    Return what the runs of one cell cost besides latency.

    Nothing of a load with runs that differ in more than the seed, such as the kernel: a
    median over them would be of no run.
    """
    by_load: dict[str, list[RunRecord]] = defaultdict(list)
    for record in records:
        by_load[record.run.load].append(record)
    keys = {load: {key_of(one.run) for one in of} for load, of in by_load.items()}
    by_load = {load: of for load, of in by_load.items() if len(keys[load]) == 1}
    idle = by_load.get(IDLE, [])
    sizes = {kernel_bytes(one) for one in records} - {None}
    per_load = {
        load: _median(map(instructions_per_operation, of))
        for load, of in by_load.items()
    }
    return Costs(
        kernel_bytes=sizes.pop() if len(sizes) == 1 else None,
        memory_available_kb=_median(map(memory_available_kb, idle)),
        wakeups_per_s=_median(map(wakeups_per_s, idle)),
        instructions={k: v for k, v in per_load.items() if v is not None},
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


# --- what a sweep found, for terminal, page and JSON: cells, effects, failures --------


@dataclass(frozen=True, slots=True)
class CellResult:
    """What was measured of a cell."""

    name: str
    directory: str
    runs: int
    planned: int
    failures: tuple[str, ...] = ()
    """Why runs of it could not be measured."""
    not_counted: str = ""
    """How many of its runs are in no effect, and why; empty: none."""
    host_s: float = 0.0
    """Time that its boots took on their hosts, added up."""
    other_cpus: str = ""
    """
    Which CPUs its runs measured, if the base has others: a limit of its effects.

    Empty too where it differs from the base in nothing but run.cpus.
    """
    costs: Costs = NO_COSTS
    """Besides latency."""
    worst_runs: tuple[WorstRun, ...] = ()
    """Of its valid runs, the worst under each load, in the order of the keys."""


@dataclass(frozen=True, slots=True)
class SweepResult:
    """All cells, and effects, of which the largest discoveries come first."""

    name: str
    board: str
    seeds: int
    cells: tuple[CellResult, ...]
    effects: tuple[CellEffect, ...]
    """Of each cell, against the base."""
    main_effects: tuple[CellEffect, ...] = ()
    """Of each level over all cells, if a design combines them."""
    checks: Checks = NO_CHECKS
    doubts: tuple[Doubt, ...] = ()
    """
    The gravest first; without the one that every virtual board has.

    After those of the runs, those of cells that measured other CPUs than the base.
    """
    left_out: int = 0
    """Cells that nobody has asked to measure yet."""
    releases: tuple[str, ...] = ()
    """Of Linux, as they ran."""

    @property
    def discoveries(self) -> tuple[CellEffect, ...]:
        """The discoveries among single cells."""
        return tuple(effect for effect in self.effects if effect.found)

    @property
    def main_discoveries(self) -> tuple[CellEffect, ...]:
        """The discoveries among main effects."""
        return tuple(effect for effect in self.main_effects if effect.found)

    @property
    def keys(self) -> tuple[Key, ...]:
        """Loads, kernels, policies and the like with effects, sorted."""
        both = (*self.effects, *self.main_effects)
        return tuple(sorted({effect.key for effect in both}))

    @property
    def missing(self) -> int:
        """Number of planned runs without a result."""
        return sum(cell.planned - cell.runs for cell in self.cells)

    @property
    def worst_runs(self) -> Mapping[tuple[str, Key], WorstRun]:
        """The worst runs by the name of their cell and the key."""
        return {
            (cell.name, run.key): run for cell in self.cells for run in cell.worst_runs
        }

    @property
    def to_explain(self) -> tuple[WorstRun, ...]:
        """The worst runs of the base and of the cells with the largest effects."""
        top = () if self.top is None else (self.top,)
        effects = (*top, *self.effects)
        return tuple(to_explain(effects, self.worst_runs, self.cells[0].name))

    @property
    def top(self) -> CellEffect | None:
        """The largest effect on the worst latency that is found, or None."""
        effects = self.main_effects or self.effects
        return next((e for e in effects if e.found and e.figure == "worst"), None)

    def label(self, key: Key) -> str:
        """Return its load, with what else tells it from keys of the same load."""
        return label_of(key, self.keys)

    def effect(self, cell: str, key: Key, figure: str) -> CellEffect | None:
        """Return one effect; None if it could not be tested."""
        for one in self.effects:
            if (one.cell, one.key, one.figure) == (cell, key, figure):
                return one
        return None


def result_of(
    name: str,
    cells: Sequence[Cell],
    *,
    records: Mapping[int, Sequence[RunRecord]],
    planned: Mapping[int, int],
    failures: Mapping[int, Sequence[str]],
    checks: Checks = NO_CHECKS,
    left_out: int = 0,
) -> SweepResult:
    """
    Put together what was measured, by the numbers of the cells.

    A run that does not count is in no effect, but among the doubts.
    """
    each = {number: parted(runs) for number, runs in records.items()}
    valid = {number: counting for number, (counting, _) in each.items()}
    uncounted = {number: left_out for number, (_, left_out) in each.items()}
    base = cells[0]
    runs = runs_by_key(cells, valid)
    on_other_cpus = other_cpus_of(cells, runs)
    of_runs = doubts_of(
        (cell.name, run) for cell in cells for run in records.get(cell.number, ())
    )
    return SweepResult(
        name=name,
        board=base.campaign.board or "",
        seeds=len(base.campaign.run_seeds),
        cells=tuple(
            CellResult(
                name=cell.name,
                directory=cell.directory,
                runs=len(records.get(cell.number, ())),
                planned=planned[cell.number],
                failures=tuple(failures.get(cell.number, ())),
                not_counted=left_out_words(
                    uncounted.get(cell.number, ()),
                    of=len(records.get(cell.number, ())),
                    whose=cell.name,
                ),
                host_s=round(
                    sum(
                        record.host_duration_s or 0.0
                        for record in records.get(cell.number, ())
                    ),
                    1,
                ),
                other_cpus=on_other_cpus.get(cell.number, ""),
                costs=costs_of(valid.get(cell.number, ())),
                worst_runs=worst_runs_of(cell, runs),
            )
            for cell in cells
        ),
        effects=effects_of(cells, runs),
        main_effects=main_effects_of(cells, runs),
        checks=checks,
        doubts=(*of_runs, *doubts_on_cpus(cells, runs)),
        left_out=left_out,
        releases=releases_of(
            run for cell in cells for run in records.get(cell.number, ())
        ),
    )
