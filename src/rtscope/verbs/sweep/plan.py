"""The plan of a sweep, before anything is measured: its cells, and what they take."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rtscope.boards.catalogue import get_board
from rtscope.boards.kernels.recipe import recipe_names
from rtscope.boards.runs.prepare import capacity_for, is_built_for
from rtscope.boards.runs.store import (
    HostTime,
    earlier_boots,
    host_time,
    kind_of,
    state_dir,
)
from rtscope.cli.console import note
from rtscope.host.errors import BoardError
from rtscope.host.escape import printable
from rtscope.host.units import NS_PER_S, format_duration, plural
from rtscope.measure.plan import Plan, make_plan
from rtscope.record.model import Run
from rtscope.stats.comparison.design import needed_pairs
from rtscope.verbs.sweep.design import MAX_SEEDS, Cell
from rtscope.verbs.sweep.directory import SweepWork
from rtscope.verbs.sweep.effects import FIGURES, pairs_of_cells
from rtscope.verbs.sweep.file import Diagnosis, Sweep
from rtscope.verbs.sweep.remedytext import announce

CELLS_SHOWN = 40
"""Of a plan, before the first run."""


@dataclass(frozen=True, slots=True)
class KernelToBuild:
    """A kernel of a recipe, with the symbols that a cell changes."""

    name: str
    config: tuple[str, ...]
    built: bool | None
    """Whether the cache has it; None if that is not known so fast."""


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """The cells to measure now, with their runs."""

    sweep: Sweep
    cells: tuple[tuple[Cell, Plan], ...]
    left: int
    """Cells that are not to be measured now."""
    done: int
    """Runs that are measured already."""
    kernels: tuple[KernelToBuild, ...]
    """Of recipes, each once."""
    at_once: int = 1
    """Boards at the same time, on this machine."""
    diagnoses: tuple[Diagnosis, ...] = ()
    """Of a sweep of remedies: what they are tried against."""
    host: HostTime | None = None
    """How long all that is left takes; None: nothing was measured that could tell."""
    earlier: tuple[tuple[Cell, Plan], ...] = ()
    """Other cells, of earlier starts: their effects are tested with these."""
    is_resumed: bool = False
    """Whether it keeps the seeds that it has."""

    @property
    def runs(self) -> int:
        """How many runs all cells have."""
        return sum(len(plan.runs) for _, plan in self.cells)

    @property
    def total_ns(self) -> int:
        """The time of all runs: on a virtual board, virtual time."""
        return sum(plan.total_ns for _, plan in self.cells)

    @property
    def board(self) -> str | None:
        """The virtual board of all cells; None for a machine."""
        return self.cells[0][0].campaign.board

    @property
    def target(self) -> str:
        """The board or the machine."""
        return self.board or self.cells[0][0].campaign.target

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of each cell; none of a machine."""
        seeds = self.cells[0][0].campaign.run_seeds
        return tuple(seed for seed in seeds if seed is not None)

    @property
    def tests(self) -> int:
        """How many effects there can be; none in a survey."""
        if self.sweep.survey is not None or not self.seeds:
            return 0
        of_others = [len(plan.runs) for _, plan in (*self.cells, *self.earlier)[1:]]
        return len(FIGURES) * sum(of_others) // len(self.seeds)


def plans_of(work: SweepWork) -> Mapping[int, Plan]:
    """Return the plans of the cells to measure now, by their numbers."""
    return {cell.number: make_plan(cell.campaign) for cell in work.chosen_cells}


def sweep_plan(work: SweepWork, *, jobs: int | None, local: bool) -> SweepPlan:
    """
    Return the plan of a sweep whose cells have their plans.

    `local`: on this machine, not on a cluster, of which rtscope knows no speed.
    """
    cells = tuple((cell, work.plans[cell.number]) for cell in work.chosen_cells)
    left = [(cell, run) for cell, plan in cells for run in work.left(cell).runs]
    plan = SweepPlan(
        work.sweep,
        cells,
        left=len(work.possible) - len(cells),
        diagnoses=work.diagnoses,
        done=sum(len(plan.runs) for _, plan in cells) - len(left),
        kernels=_kernels_of_recipes(left),
        earlier=_earlier(work),
        is_resumed=work.is_resumed,
    )
    if plan.board is None or not local:
        return plan
    try:
        fit = capacity_for(get_board(plan.board), jobs=jobs, runs=len(left))
    except BoardError:  # raised before the first run, if it is still so then
        return plan
    kinds = [kind_of(run, cell.campaign) for cell, run in left]
    host = host_time(kinds, earlier_boots(state_dir()), at_once=fit.boards)
    return replace(plan, at_once=fit.boards, host=host)


def _earlier(work: SweepWork) -> tuple[tuple[Cell, Plan], ...]:
    """Return the cells of earlier starts that are not to be measured now."""
    numbers = work.cell_numbers() - work.chosen
    return tuple(
        (cell, make_plan(cell.campaign))
        for cell in work.cells
        if cell.number in numbers
    )


def _kernels_of_recipes(runs: Sequence[tuple[Cell, Run]]) -> tuple[KernelToBuild, ...]:
    """Return the kernels that these runs need built."""
    recipes = recipe_names()
    campaigns = {
        (run.kernel, cell.campaign.config): cell.campaign
        for cell, run in runs
        if run.kernel and (run.kernel in recipes or run.kernel.endswith(".toml"))
    }
    return tuple(
        KernelToBuild(name, config, is_built_for(campaign, name))
        for (name, config), campaign in campaigns.items()
    )


def note_plan(plan: SweepPlan) -> None:
    """Print a plan on standard error."""
    note(
        f"{printable(plan.sweep.name)}: {plural(len(plan.cells), 'cell')}, "
        f"{plural(plan.runs, 'run')}, {format_duration(plan.total_ns)}"
        f"{' of virtual time' if plan.board else ''} on {printable(plan.target)}"
    )
    if plan.left:
        others = plural(plan.left, "more cell")
        note(f"  {others} can be added later, with rtscope sweep --resume")
    announce(plan.diagnoses)
    _note_cost(plan)
    if plan.sweep.survey is not None:
        runs = plan.cells[0][1].runs
        loads, on = ({run.load for run in runs}, {run.kernel for run in runs})
        each = (
            f"each on {plural(len(on), 'kernel')}"
            if plan.board
            else "one after the other"
        )
        note(f"  {len(loads)} loads, {each}")
        return
    _note_seeds(plan)
    for cell, of_cell in plan.cells[:CELLS_SHOWN]:
        runs_of_cell = plural(len(of_cell.runs), "run")
        note(f"  {cell.number:3} {printable(cell.name)} ({runs_of_cell})")
    if (more := len(plan.cells) - CELLS_SHOWN) > 0:
        note(f"  and {plural(more, 'more cell')}, each in a directory of its name")


def plan_data(plan: SweepPlan) -> Mapping[str, Any]:
    """Return a plan as plain values, as `--dry-run --json` prints it."""
    return {
        "name": plan.sweep.name,
        "target": plan.target,
        "runs": plan.runs,
        **_times(plan, plan.total_ns),
        "runs_done": plan.done,
        "host": None
        if plan.host is None
        else {**asdict(plan.host), "boards_at_once": plan.at_once},
        "seeds": plan.seeds,
        "effects": plan.tests,
        "needed_seeds": needed_pairs(plan.tests) if plan.tests else None,
        "kernels_from_source": [asdict(one) for one in plan.kernels],
        "cells": [
            {
                "number": cell.number,
                "name": cell.name,
                "levels": dict(cell.levels),
                "directory": cell.directory,
                "runs": len(of_cell.runs),
                "loads": list(dict.fromkeys(run.load for run in of_cell.runs)),
                "kernels": _kernels(plan, of_cell),
                **_times(plan, of_cell.total_ns),
            }
            for cell, of_cell in plan.cells
        ],
        "cells_left": plan.left,
    }


def _times(plan: SweepPlan, total_ns: int) -> Mapping[str, int]:
    """Return the time of runs: virtual, or that of a machine."""
    if plan.board is None:
        return {"duration_ns": total_ns}
    return {"virtual_ns": total_ns}


def _kernels(plan: SweepPlan, of_cell: Plan) -> list[str]:
    """Return the kernels of a cell; none is named for a machine."""
    names = (run.kernel or _first_kernel(plan.board) for run in of_cell.runs)
    return [name for name in dict.fromkeys(names) if name]


def _first_kernel(board: str | None) -> str:
    return get_board(board).kernels[0] if board else ""


def _note_cost(plan: SweepPlan) -> None:
    """Print what is there already, and what the rest takes of this machine."""
    if plan.done:
        note(f"  {plural(plan.done, 'run')} measured already")
    if (host := plan.host) is not None:
        boards = f"{plural(plan.at_once, 'board')} at once"
        note(
            f"  about {format_duration(host.seconds * NS_PER_S)} on this machine with "
            f"{boards}, estimated from {plural(host.runs, 'earlier boot')} under the "
            "same loads; less if results are stored"
        )
    if not plan.kernels:
        return
    built = sum(one.built is True for one in plan.kernels)
    missing = sum(one.built is False for one in plan.kernels)
    unknown = len(plan.kernels) - built - missing
    parts = [
        f"{built} in the cache" if built else "",
        f"{missing} to build first (minutes to an hour each, less with ccache)"
        if missing
        else "",
        f"{unknown} from your own tree or repository (built first if it has changed)"
        if unknown
        else "",
    ]
    kernels = plural(len(plan.kernels), "kernel")
    note(f"  {kernels} from source: {', '.join(filter(None, parts))}")


def _typed_seeds(needed: int, *, is_resumed: bool) -> str:
    """Return what to type for so many seeds, in words."""
    if needed > MAX_SEEDS:
        return f", and a sweep takes {MAX_SEEDS} at most: write fewer cells"
    return f" ({'a new sweep with ' if is_resumed else ''}--seeds {needed})"


def _note_seeds(plan: SweepPlan) -> None:
    """Print what the seeds can find."""
    seeds = len(plan.seeds)
    if seeds < (needed := needed_pairs(plan.tests)):
        typed = _typed_seeds(needed, is_resumed=plan.is_resumed)
        note(
            f"  {plural(seeds, 'seed')} cannot find a single real effect among "
            f"{plan.tests:,}: that takes {needed} seeds{typed}"
        )
    tested = [cell for cell, _ in (*plan.cells, *plan.earlier)]
    of_levels = pairs_of_cells(tested).values()
    if counts := [len(of_level) for of_level in of_levels]:
        few, many = seeds * min(counts), seeds * max(counts)
        each = f"{few}" if few == many else f"{few} to {many}"
        note(f"  the main effect of a level has {each} pairs of runs")
