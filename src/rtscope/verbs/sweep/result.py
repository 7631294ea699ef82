"""What a sweep found, for terminal, page and JSON: cells, effects, failures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rtscope.record.model import RunRecord
from rtscope.stats.counting import left_out_words, parted
from rtscope.verbs.sweep.checks import NO_CHECKS, Checks
from rtscope.verbs.sweep.costs import NO_COSTS, Costs, costs_of
from rtscope.verbs.sweep.design import Cell
from rtscope.verbs.sweep.doubts import Doubt, doubts_of
from rtscope.verbs.sweep.effects import Effect
from rtscope.verbs.sweep.keys import Key, label_of
from rtscope.verbs.sweep.maineffects import main_effects_of
from rtscope.verbs.sweep.othercpus import doubts_on_cpus, other_cpus_of
from rtscope.verbs.sweep.pairing import effects_of, runs_by_key
from rtscope.verbs.sweep.releases import releases_of
from rtscope.verbs.sweep.worstruns import WorstRun, to_explain, worst_runs_of


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
    effects: tuple[Effect, ...]
    """Of each cell, against the base."""
    main_effects: tuple[Effect, ...] = ()
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
    def discoveries(self) -> tuple[Effect, ...]:
        """The discoveries among single cells."""
        return tuple(effect for effect in self.effects if effect.found)

    @property
    def main_discoveries(self) -> tuple[Effect, ...]:
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
    def top(self) -> Effect | None:
        """The largest effect on the worst latency that is found, or None."""
        effects = self.main_effects or self.effects
        return next((e for e in effects if e.found and e.figure == "worst"), None)

    def label(self, key: Key) -> str:
        """Return its load, with what else tells it from keys of the same load."""
        return label_of(key, self.keys)

    def effect(self, cell: str, key: Key, figure: str) -> Effect | None:
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
