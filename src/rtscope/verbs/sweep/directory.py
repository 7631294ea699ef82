"""A sweep and its directory: chosen by a name or a file, or one to continue."""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rtscope.boards.runs.prepare import PreparedCampaign
from rtscope.cli.console import typed_words
from rtscope.host.errors import ImpossibleRemedy, UsageError, quote
from rtscope.host.escape import printable
from rtscope.host.files.opening import is_there
from rtscope.machine.target.address import parse_address
from rtscope.measure.campaign.file import to_dict
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.campaign.options import Options, with_options
from rtscope.measure.plan import Plan, remaining
from rtscope.record.directory import journal, place
from rtscope.record.directory.place import CAMPAIGN, SWEEP
from rtscope.record.directory.records import ResultDir, create, refuse_links
from rtscope.verbs.sweep.design import (
    MAX_SEEDS,
    WHY_SEEDS,
    Cell,
    cells_of,
    chosen_cells,
)
from rtscope.verbs.sweep.doubts import Checks, checks_of
from rtscope.verbs.sweep.file import (
    Diagnosis,
    Sweep,
    document_of,
    load_shipped,
    load_sweep,
    on_board,
    placed,
    shipped_sweeps,
    sweep_of,
    with_seeds,
)
from rtscope.verbs.sweep.remedydesign import HAS_IT, NOT_HERE, without
from rtscope.verbs.sweep.remedytext import NAME, remedies_for
from rtscope.verbs.sweep.survey import with_listed


@dataclass(slots=True)
class SweepWork:
    """A sweep that is ready to start."""

    sweep: Sweep
    cells: tuple[Cell, ...]
    path: Path
    typed: tuple[str, ...]
    chosen: frozenset[int]
    """The cells to measure now, by their numbers; the base is one of them."""
    plans: dict[int, Plan] = field(default_factory=dict)
    """By the number of the cell."""
    prepared: dict[int, PreparedCampaign] = field(default_factory=dict)
    impossible: dict[str, str] = field(default_factory=dict)
    """Remedies that the board turned out not to have, with why, by level."""
    is_resumed: bool = False

    @property
    def checks(self) -> Checks:
        """The checks of this start and of earlier ones."""
        return checks_of(self.checked())

    @property
    def chosen_cells(self) -> tuple[Cell, ...]:
        """The cells to measure now."""
        return tuple(cell for cell in self.possible if cell.number in self.chosen)

    @property
    def possible(self) -> tuple[Cell, ...]:
        """All cells but those of impossible remedies."""
        return tuple(
            cell
            for cell in self.cells
            if not any(name in self.impossible for _, name in cell.levels)
        )

    @property
    def diagnoses(self) -> tuple[Diagnosis, ...]:
        """What remedies are tried against, as far as they are possible."""
        return tuple(without(one, self.impossible) for one in self.sweep.diagnoses)

    @property
    def has_no_remedy(self) -> bool:
        """Whether it is one of remedies, and none of them can be tried."""
        causes = self.diagnoses
        return bool(causes) and not any(one.remedies for one in causes)

    def cell_numbers(self) -> frozenset[int]:
        """Return the cells that this or an earlier start was to measure."""
        earlier = journal.CELL_NUMBERS.read(self.path)
        there = frozenset(cell.number for cell in self.possible)
        return (frozenset(self.plans) | frozenset(earlier)) & there

    def checked(self) -> Mapping[str, str]:
        """Return what came of the checks that count, by run: see `checks_of`."""
        noted = journal.CHECKED.read(self.path)
        return {run: why for run, why in noted.items() if why or self._is_done(run)}

    def failed(self) -> Mapping[str, str]:
        """Return why runs that were tried have no result, by run."""
        noted = journal.FAILED.read(self.path)
        return {run: why for run, why in noted.items() if not self._is_done(run)}

    def known_failures(self) -> Mapping[int, Mapping[str, str]]:
        """Return why runs have no result, by the number of the cell and the run."""
        failures = {cell.number: dict[str, str]() for cell in self.cells}
        numbers = {cell.directory: cell.number for cell in self.cells}
        for name, why in self.failed().items():
            directory, _, run = name.partition("/")
            if directory in numbers:
                failures[numbers[directory]][run] = why
        return failures

    def _is_done(self, name: str) -> bool:
        directory, _, run = name.partition("/")
        return ResultDir(self.path / SWEEP.parts / directory).is_done(run)

    def left(self, cell: Cell) -> Plan:
        """Return the runs of a cell that have no result yet."""
        return remaining(self.plans[cell.number], self.store(cell).done_ids())

    def store(self, cell: Cell) -> ResultDir:
        """Return the results of a cell."""
        return ResultDir(self.path / cell.path)


@dataclass(frozen=True, slots=True)
class Base:
    """The options that change the base of a sweep, as typed; None: not given."""

    target: str | None = None
    kernel: str | None = None
    seed: int | None = None
    seeds: str | None = None

    @property
    def kernels(self) -> list[str] | None:
        """The kernels of --kernel."""
        return self.kernel.split(",") if self.kernel else None

    @property
    def run_seeds(self) -> tuple[int, ...] | None:
        """The seeds of --seed or --seeds; UsageError as `rtscope run` says it."""
        if self.seed is None and self.seeds is None:
            return None
        options = Options(seed=self.seed, seeds=self.seeds)
        read = with_options(Campaign(target="virtual:any"), options)
        seeds = tuple(seed for seed in read.run_seeds if seed is not None)
        if len(seeds) > MAX_SEEDS:
            raise UsageError(
                f"--seeds {quote(self.seeds)}: write at most {MAX_SEEDS}: {WHY_SEEDS}"
            )
        return seeds


def new_work(
    file: Path, out: Path | None, base: Base, *, only: str | None
) -> SweepWork:
    """Return a sweep of a file, or of one that comes with rtscope; UsageError."""
    named = _named(file)
    if base.target is not None:
        _refuse_machine_for_board(named, base.target)
    sweep = on_board(named, target=base.target, kernels=base.kernels)
    if (seeds := base.run_seeds) is not None:
        _refuse_machine_for_seeds(sweep, base)
        sweep = with_seeds(sweep, seeds)
    if sweep.survey is not None:
        sweep = with_listed(sweep, command=typed_words())
    return _work(sweep, place.new_place(out, "sweep"), typed_words(), only)


def _refuse_machine_for_board(named: Sweep, target: str) -> None:
    """Raise UsageError: a base of a board has what no machine takes, such as seeds."""
    machine = parse_address(target).board is None
    if machine and parse_address(_address(named)).board:
        raise UsageError(
            f"--target {target}: {named.source} is a sweep of a virtual board; to rank "
            "the loads of a machine, type rtscope sweep survey-machine --target "
            f"{target}"
        )


def _refuse_machine_for_seeds(sweep: Sweep, base: Base) -> None:
    """Raise UsageError: only boards have seeds."""
    address = _address(sweep)
    if parse_address(address).board is None:
        option = "--seed" if base.seeds is None else "--seeds"
        raise UsageError(
            f"{option}: {address} has no random seeds, only virtual boards have them: "
            f"leave {option} out"
        )


def _address(sweep: Sweep) -> str:
    """Return where the base is measured; what is no address is refused later."""
    written = sweep.base.get("target")
    address = written.get("address") if isinstance(written, dict) else None
    return address if isinstance(address, str) else Campaign().target


def work_on_remedies(
    record: Path | None, out: Path | None, *, only: str | None
) -> SweepWork:
    """Return a sweep of what may help against the causes in a record; UsageError."""
    return _work(
        remedies_for(record), place.new_place(out, "sweep"), typed_words(), only
    )


def _work(
    sweep: Sweep, path: Path, typed: tuple[str, ...], only: str | None
) -> SweepWork:
    """Return a sweep of which a part is chosen, or all without `only`; UsageError."""
    cells = chosen = cells_of(sweep)
    if only is not None:
        if sweep.survey is not None:
            raise UsageError(
                f"--only {only}: a survey has no levels: name its stressors in "
                "[survey] of a file of your own"
            )
        patterns = [one.strip() for one in only.split(",")]
        chosen = chosen_cells(cells, patterns, source="--only")
    return SweepWork(
        sweep, cells, path, typed, frozenset(cell.number for cell in chosen)
    )


def _named(file: Path) -> Sweep:
    """Return the sweep of a file, or one that comes with rtscope."""
    if str(file) in shipped_sweeps() and not file.is_file():
        return load_shipped(str(file))
    if not is_there(file):
        raise UsageError(
            f"cannot read sweep {file}: no such file; rtscope itself has "
            f"{', '.join(shipped_sweeps())}, and {NAME} RECORD"
        )
    return placed(load_sweep(file), file.parent)


def resumed_work(path: Path, *, only: str | None) -> SweepWork:
    """Return a sweep to continue; UsageError, or RecordError if it is damaged."""
    document = place.read_document(path, SWEEP)
    sweep = sweep_of(document.asked, source=document.source)
    work = _work(sweep, path, document.command, only)
    work.is_resumed = True
    cells = (path / cell.path for cell in work.cells)
    refuse_links(path / SWEEP.parts, *cells)
    for read in (work.checked, work.failed):
        read()  # a damaged list is refused before hours of work
    work.impossible.update(journal.IMPOSSIBLE.read(path))
    return work


def create_directories(work: SweepWork, held: contextlib.ExitStack) -> None:
    """
    Make the directory of a sweep, and one for each cell, as far as they are missing.

    The document comes first, so that --resume goes on where a full disk ended it. A new
    directory is held until `held` ends, before anything is written; UsageError if
    another start was faster. One to continue is held already.
    """
    place.make_directory(work.path)
    if not work.is_resumed:
        held.enter_context(place.hold(work.path))
        place.refuse_used(work.path)
    if not SWEEP.is_in(work.path):
        asked = document_of(work.sweep)
        place.write_document(work.path, SWEEP, asked, command=work.typed)
    with place.resumable(work.path, SWEEP):
        for cell in work.cells:
            path = work.path / cell.path
            if not CAMPAIGN.is_in(path):
                create(path, to_dict(cell.campaign), command=work.typed)


def leave_out(
    work: SweepWork, cell: Cell, error: ImpossibleRemedy, *, log: Callable[[str], None]
) -> None:
    """Leave out a remedy that the board does not have; else raise the error."""
    if not work.sweep.diagnoses or not cell.levels:
        raise error
    _leave_out(work, cell, f"{NOT_HERE}{'; '.join(error.whys.values())}", log)


def leave_out_needless(
    work: SweepWork,
    cell: Cell,
    prepared: PreparedCampaign,
    *,
    log: Callable[[str], None],
) -> bool:
    """Leave out a remedy that changes nothing on the board; tell whether it was one."""
    if not work.sweep.diagnoses or not cell.levels or not prepared.runs:
        return False
    names = set(cell.campaign.tuned) - set(work.cells[0].campaign.tuned)
    plans = [request.tuning for request, _ in prepared.runs]
    if not names or not all(plan and names <= plan.good.keys() for plan in plans):
        return False
    _leave_out(work, cell, HAS_IT, log)
    return True


def _leave_out(
    work: SweepWork, cell: Cell, why: str, log: Callable[[str], None]
) -> None:
    ((_, name),) = cell.levels
    work.impossible[name] = why
    del work.plans[cell.number]
    log(f"  {printable(name)}: {printable(why)}")


def note_cells(work: SweepWork) -> None:
    """
    Note which cells are to be measured, for a later start to tell what it lacks.

    Also the remedies that the board does not have.
    """
    with place.resumable(work.path, SWEEP):
        journal.CELL_NUMBERS.write(work.path, sorted(work.cell_numbers()))
        if work.impossible:
            journal.IMPOSSIBLE.write(work.path, work.impossible)


def note_check(work: SweepWork, run: str, why: str) -> None:
    """Note what came of the check of a run, beside those of earlier starts."""
    journal.CHECKED.write(work.path, {**work.checked(), run: why})


def note_failed(work: SweepWork, run: str, why: str) -> None:
    """Note why a run has no result, beside those of earlier starts."""
    journal.FAILED.write(work.path, {**work.failed(), run: why})
