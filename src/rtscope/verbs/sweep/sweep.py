"""Measure a campaign and its variations on a virtual board, and rank their effects."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from rtscope.boards.catalogue import get_board
from rtscope.boards.runs.inspect import GuestInspections
from rtscope.boards.runs.prepare import capacity_for, check_kernels, prepare_campaign
from rtscope.boards.runs.sameparts import refuse_other_common_parts, refuse_other_inputs
from rtscope.boards.runs.store import open_stored
from rtscope.cli.console import Json, log, note, put_json, stderr_console
from rtscope.cli.options import DisplayOptions, ask_programs
from rtscope.cli.progress import LiveDisplay, Waiting
from rtscope.host.errors import ImpossibleRemedy, LoadError, UsageError
from rtscope.host.escape import printable
from rtscope.machine.target.address import open_target, parse_address
from rtscope.measure.campaign.messages import BOARDS, CLUSTER, OUTPUT
from rtscope.measure.execute import Event, OnEvent, Runner, RunStarted, execute
from rtscope.measure.machine import MachineRunner
from rtscope.measure.plan import Plan, remaining
from rtscope.measure.preflight import refuse_full_disk
from rtscope.measure.preflight import refuse_impossible as refuse_on_machine
from rtscope.measure.settings import checks_for
from rtscope.record.directory.place import hold, refuse_used
from rtscope.record.directory.records import ResultDir
from rtscope.record.model import Run
from rtscope.verbs.sweep.boots import CellRuns, boots_on, measure_cells, runs_of
from rtscope.verbs.sweep.cluster.address import (
    LOCAL,
    SchedulerAddress,
    scheduler_address,
)
from rtscope.verbs.sweep.directory import (
    Base,
    SweepWork,
    create_directories,
    leave_out,
    leave_out_needless,
    new_work,
    note_cells,
    note_check,
    note_failed,
    resumed_work,
    work_on_remedies,
)
from rtscope.verbs.sweep.file import shipped_sweeps
from rtscope.verbs.sweep.plan import note_plan, plan_data, plans_of, sweep_plan
from rtscope.verbs.sweep.preflight import refuse_impossible
from rtscope.verbs.sweep.remedytext import NAME
from rtscope.verbs.sweep.show import show_if_cut_short, show_sweep

# --- a survey of a machine ------------------------------------------------------------


def failed_loads(
    plan: Plan, runner: Runner, store: ResultDir, on_event: OnEvent
) -> Iterator[tuple[Run, str]]:
    """Measure all runs; yield each whose load does not run there, and why."""
    started: list[Run] = []

    def heard(event: Event) -> None:
        if isinstance(event, RunStarted):
            started.append(event.run)
        on_event(event)

    while plan.runs:
        try:
            for _ in execute(plan, runner, store, on_event=heard):
                pass
        except LoadError as error:
            yield started[-1], str(error)
        plan = remaining(plan, {run.id for run in started})


def measure_survey(
    work: SweepWork, held: ExitStack, display: DisplayOptions, *, json: bool
) -> int:
    """
    Measure what is left of a survey on its machine; show it; return the exit status.

    What the machine cannot do is raised before a directory is made, which is held
    until `held` ends.
    """
    (cell,) = work.cells
    campaign, store = cell.campaign, work.store(cell)
    plan = work.left(cell)
    address = parse_address(campaign.target)
    with open_target(address, storage_dir=work.path.resolve(), alone=log) as target:
        if plan.runs:
            refuse_on_machine(target, campaign, plan)
        create_directories(work, held)
        runner = MachineRunner(target, campaign, work.typed)
        with (
            show_if_cut_short(work, display.detail, json=json),
            LiveDisplay(stderr_console(), plan) as live,
        ):
            for run, why in failed_loads(plan, runner, store, live):
                live.log(why)
                note_failed(work, f"{cell.directory}/{run.id}", why)
    return show_sweep(work, display.detail, json=json)


# --- measure a campaign and its variations on a virtual board, and rank their effects -

OF_BASE = ("target", "kernel", "seed", "seeds")
"""Options that change the base."""
ASIDE = "differing"
"""Directory of results that should have been equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRequest:
    """The arguments and options of `rtscope sweep`."""

    file: Annotated[Path | None, typer.Argument()] = None
    """
    Sweep file, e.g. ticks.toml, or a sweep that comes with rtscope: preemption, price,
    survey, survey-machine, or remedies with a RECORD.
    """
    record: Annotated[Path | None, typer.Argument()] = None
    """Result of a virtual board whose delays remedies should reduce, e.g. out."""
    target: Annotated[str | None, typer.Option(rich_help_panel=BOARDS)] = None
    """
    Virtual board instead of that of the file, e.g. virtual:jh7110; for a survey of a
    machine, e.g. ssh:board.
    """
    kernel: Annotated[str | None, typer.Option(rich_help_panel=BOARDS)] = None
    """Kernels of the base instead of those of the file, e.g. debian-6.12-rt."""
    seed: Annotated[int | None, typer.Option(rich_help_panel=BOARDS)] = None
    """Random seed of the base instead of the seeds of the file, e.g. 7."""
    seeds: Annotated[str | None, typer.Option(rich_help_panel=BOARDS)] = None
    """
    Random seeds of the base instead of those of the file: N for 1 to N, or a list, e.g.
    8 or 1,5,9.
    """
    jobs: Annotated[int | None, typer.Option(min=1, rich_help_panel=BOARDS)] = None
    """
    Number of virtual boards to run at once (default: one per CPU, as far as memory
    allows), e.g. 2.
    """
    on: Annotated[str, typer.Option(rich_help_panel=CLUSTER)] = LOCAL
    """
    Where boards run: local, or the workers of a Dask scheduler on tcp://127.0.0.1:PORT
    or tls://HOST:PORT (default: local).
    """
    tls_ca: Annotated[Path | None, typer.Option(rich_help_panel=CLUSTER)] = None
    """Certificate of the authority of a tls:// scheduler, e.g. ca.pem."""
    tls_cert: Annotated[Path | None, typer.Option(rich_help_panel=CLUSTER)] = None
    """Own certificate for a tls:// scheduler, e.g. cert.pem."""
    tls_key: Annotated[Path | None, typer.Option(rich_help_panel=CLUSTER)] = None
    """Key of the own certificate, e.g. key.pem."""
    only: str | None = None
    """
    Axes or levels to measure now, beside the base; --resume adds others to the same
    results (default: all), e.g. boot,HZ_*.
    """
    dry_run: bool = False
    """Plan alone, without any measurement; with --json as JSON."""
    reuse: Annotated[
        bool, typer.Option("--reuse/--no-reuse", rich_help_panel=BOARDS)
    ] = True
    """
    Stored results of equal inputs in place of new measurements (default: --reuse).
    """
    out: Annotated[Path | None, typer.Option(rich_help_panel=OUTPUT)] = None
    """Directory of the results (default: rtscope-sweep-DATE-TIME), e.g. out."""
    resume: Path | None = None
    """Directory of an interrupted sweep to continue, e.g. out."""
    yes: bool = False
    """
    Consent to run what a resumed sweep or a RECORD names: a QEMU, the build of a
    kernel.
    """
    json: Json = False
    display: DisplayOptions


def sweep(request: SweepRequest) -> int:
    """Vary settings or loads of a virtual board, and rank their effects.

    All cells have the same seeds, so that each effect compares runs of equal seeds. A
    survey ranks loads by their worst wake-up. The exit status is 1 if a run could not
    be measured.
    """
    with ExitStack() as held:
        if request.resume is not None and not request.dry_run:
            held.enter_context(hold(request.resume))
        return _sweep(request, held)


def _sweep(request: SweepRequest, held: ExitStack) -> int:
    """Measure and show; `held` keeps other starts from the directory."""
    scheduler = scheduler_address(
        request.on,
        ca=request.tls_ca,
        certificate=request.tls_cert,
        key=request.tls_key,
    )
    work = _work_of(request)
    if work.sweep.diagnoses and not work.sweep.axes:
        return show_sweep(work, request.display.detail, json=request.json)
    if scheduler is not None:
        _refuse_on_cluster(request, work)
    if work.cells[0].campaign.board is None:
        _refuse_on_machine(request, work)
    work.plans.update(plans_of(work))
    _refuse_impossible(work)
    plan = sweep_plan(work, jobs=request.jobs, local=scheduler is None)
    note_plan(plan)
    if request.dry_run:
        if request.json:
            put_json(plan_data(plan))
        return 0
    if request.resume is None:
        refuse_used(work.path)
        refuse_full_disk(work.path)
    if work.cells[0].campaign.board is None:
        return measure_survey(work, held, request.display, json=request.json)
    _prepare(work, request.jobs)
    if work.has_no_remedy:
        work.plans.clear()  # nothing is compared with the original
        return show_sweep(work, request.display.detail, json=request.json)
    create_directories(work, held)
    note_cells(work)
    with show_if_cut_short(work, request.display.detail, json=request.json):
        _measure(work, scheduler, request)
    return show_sweep(work, request.display.detail, json=request.json)


def _work_of(request: SweepRequest) -> SweepWork:
    """Return the sweep that is asked for, or one to continue."""
    if request.resume is not None:
        if typed := _typed(request, "file", "record", "out", *OF_BASE):
            raise UsageError(
                f"--resume {request.resume} continues the sweep as it was started: "
                f"leave out {typed}"
            )
        return _trusted(resumed_work(request.resume, only=request.only), request)
    if request.file is None:
        raise UsageError(
            "name a sweep file, such as examples/sweeps/ticks.toml, or a sweep that "
            f"comes with rtscope: {', '.join(shipped_sweeps())}, or {NAME} RECORD"
        )
    if request.record is not None and str(request.file) != NAME:
        raise UsageError(
            f"{request.record}: only rtscope sweep {NAME} takes a RECORD: leave it out"
        )
    if str(request.file) != NAME or request.file.is_file():
        base = Base(request.target, request.kernel, request.seed, request.seeds)
        return new_work(request.file, request.out, base, only=request.only)
    if typed := _typed(request, *OF_BASE):
        raise UsageError(
            f"sweep {NAME}: board, kernels and seeds are those of the record: leave "
            f"out {typed}"
        )
    work = work_on_remedies(request.record, request.out, only=request.only)
    return _trusted(work, request)


def _trusted(work: SweepWork, request: SweepRequest) -> SweepWork:
    """Return a sweep that may have come by mail, if the user wants its programs run."""
    if not request.yes:
        ask_programs(cell.campaign for cell in work.chosen_cells)
    return work


def _typed(request: SweepRequest, *names: str) -> str:
    """Return which of these arguments and options were typed, as typed."""
    return ", ".join(
        name.upper() if name in ("file", "record") else f"--{name}"
        for name in names
        if getattr(request, name) is not None
    )


def _refuse_impossible(work: SweepWork) -> None:
    """Raise UsageError for what the board of runs that are left cannot do."""
    if work.cells[0].campaign.board is None:
        return
    left = {
        printable(cell.name): cell.campaign
        for cell in work.chosen_cells
        if work.left(cell).runs
    }
    refuse_impossible(left, source=work.sweep.source)


def _refuse_on_cluster(request: SweepRequest, work: SweepWork) -> None:
    """Raise UsageError for what is of this machine alone."""
    if request.jobs is not None:
        raise UsageError(
            f"--jobs {request.jobs}: each worker of a cluster boots as many boards as "
            "it has threads: leave --jobs out, and start dask worker with --nthreads N"
        )
    if any(cell.campaign.qemu for cell in work.cells):
        raise UsageError(
            f"--on {request.on}: target.qemu names a QEMU of this machine, and workers "
            "boot the QEMU of the board: leave target.qemu out, or type --on local"
        )


def _refuse_on_machine(request: SweepRequest, work: SweepWork) -> None:
    """Raise UsageError for what only boards have."""
    campaign = work.cells[0].campaign
    if request.jobs is not None or request.on != LOCAL:
        raise UsageError(
            "--jobs and --on are for virtual boards: on a machine, runs follow one "
            "another; leave them out"
        )
    if campaign.kernels:
        raise UsageError(
            f"{work.sweep.source}: {campaign.target} is measured with the kernel that "
            "it runs: leave --kernel and kernel.names out"
        )
    if campaign.command:  # a survey to resume may have come by mail
        raise UsageError(
            f"{work.sweep.source}: a survey of a machine runs no command of its file, "
            "which may come from elsewhere: leave the custom load out, and measure it "
            "with rtscope run"
        )
    checks_for(campaign)


def _prepare(work: SweepWork, jobs: int | None) -> None:
    """Fetch and check all parts of all cells, before the first run."""
    said: set[str] = set()

    def once(text: str) -> None:
        if text not in said:
            said.add(text)
            note(text)

    with Waiting(stderr_console()) as waiting:
        inspections = GuestInspections(waiting)
        measured = {cell.number: work.store(cell).records() for cell in work.cells}
        of_each_cell = [records[0] for records in measured.values() if records]
        cells = work.chosen_cells
        lefts = [work.left(cell) for cell in cells]
        check_kernels(
            {
                printable(cell.name): (left, cell.campaign)
                for cell, left in zip(cells, lefts, strict=True)
            },
            log=waiting.over(once),
            progress=waiting,
        )
        for cell, left in zip(cells, lefts, strict=True):
            try:
                prepared = prepare_campaign(
                    left,
                    cell.campaign,
                    command=work.typed,
                    jobs=jobs,
                    log=waiting.over(once),
                    progress=waiting,
                    inspections=inspections,
                )
            except ImpossibleRemedy as error:
                leave_out(work, cell, error, log=waiting.over(once))
                continue
            if leave_out_needless(work, cell, prepared, log=waiting.over(once)):
                continue
            refuse_other_inputs(prepared, measured[cell.number])
            refuse_other_common_parts(prepared, of_each_cell)
            work.prepared[cell.number] = prepared


def _measure(
    work: SweepWork, scheduler: SchedulerAddress | None, request: SweepRequest
) -> None:
    cells = [
        CellRuns(cell.name, work.plans[cell.number], prepared, work.store(cell))
        for cell in work.chosen_cells
        if (prepared := work.prepared[cell.number]).runs
    ]
    if not cells:
        return
    count = sum(len(cell.prepared.runs) for cell in cells)
    board = get_board(work.cells[0].campaign.board or "")
    fit = capacity_for(board, jobs=request.jobs, runs=count + 1)
    runs = runs_of(cells, at_once=fit.boards, failed=work.failed())
    display = LiveDisplay(stderr_console(), runs.plan)
    results = open_stored(log=display.log)

    def failed(cell: str, run_id: str, why: str) -> None:
        display.log(why)
        note_failed(work, f"{cell}/{run_id}", why)

    with (
        boots_on(scheduler, results, reuse=request.reuse, log=display.log) as start,
        display,
    ):
        measure_cells(
            runs,
            start,
            on_event=display,
            failed=failed,
            checked=lambda run, why: note_check(work, run, why),
            aside=work.path / ASIDE,
            stores=[work.store(cell) for cell in work.cells],
            drop=lambda inputs: None if results is None else results.drop(inputs),
        )
