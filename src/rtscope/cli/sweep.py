"""Measure a campaign and its variations on a virtual board, and rank their effects."""

import contextlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from rtscope import __version__
from rtscope.board.catalogue import get_board
from rtscope.campaign.file import to_dict
from rtscope.campaign.options import BOARDS, CLUSTER, OUTPUT
from rtscope.cli.console import (
    Json,
    log,
    note,
    put,
    put_json,
    say,
    stderr_console,
    stdout_console,
    typed_words,
)
from rtscope.cli.detail import Shown
from rtscope.cli.progress import LiveDisplay, Waiting
from rtscope.cli.reusing import tell_reused
from rtscope.cli.survey import ranked, with_listed
from rtscope.cli.sweepremedies import NAME, announce, remedies_for
from rtscope.cli.sweeprunner import boots_on
from rtscope.cluster.address import LOCAL, SchedulerAddress, scheduler_address
from rtscope.errors import RecordError, UsageError
from rtscope.files import read_bounded, write_atomically
from rtscope.measure.plan import Plan, make_plan, remaining
from rtscope.measure.preflight import refuse_full_disk
from rtscope.record.model import RunRecord
from rtscope.record.resultdir import ResultDir, create, hold, is_occupied
from rtscope.report.escape import printable
from rtscope.report.formats.brief import Detail
from rtscope.report.formats.fitted import Compose, print_fitted
from rtscope.report.formats.remedies import (
    compose_remedies,
    remedies_answer,
    remedies_data,
)
from rtscope.report.formats.survey import (
    compose_survey,
    survey_answer,
    survey_data,
    survey_page,
)
from rtscope.report.formats.sweep import (
    compose_sweep,
    sweep_answer,
    sweep_data,
    sweep_page,
)
from rtscope.report.words import plural
from rtscope.sweep.checks import NO_CHECKS, Checks
from rtscope.sweep.design import Cell, cells_of
from rtscope.sweep.effects import FIGURES, needed_pairs
from rtscope.sweep.file import (
    Sweep,
    document_of,
    load_shipped,
    load_sweep,
    on_board,
    placed,
    shipped_sweeps,
    sweep_of,
)
from rtscope.sweep.result import SweepResult, result_of
from rtscope.units import format_duration
from rtscope.virtual.looks import Looks
from rtscope.virtual.prepare import (
    PreparedCampaign,
    capacity_for,
    prepare_campaign,
)
from rtscope.virtual.sameparts import refuse_other_common_parts, refuse_other_inputs
from rtscope.virtual.stored import open_stored
from rtscope.virtual.sweeping import CellRuns, measure_cells, runs_of

DOCUMENT, CELLS, PAGE = "sweep.json", "cells", "sweep.html"
ASIDE = "differing"
"""Directory of results that should have been equal."""
SURVEY_PAGE = "survey.html"
SCHEMA = 1
MAX_DOCUMENT_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRequest:
    """The arguments and options of `rtscope sweep`."""

    file: Annotated[Path | None, typer.Argument()] = None
    """
    Sweep file, e.g. ticks.toml, or a sweep that comes with rtscope: price, survey, or
    remedies with a RECORD.
    """
    record: Annotated[Path | None, typer.Argument()] = None
    """Result of a virtual board whose causes remedies are tried against, e.g. out."""
    target: Annotated[
        str | None, typer.Option("--target", "-t", rich_help_panel=BOARDS)
    ] = None
    """Virtual board instead of that of the file, e.g. virtual:jh7110."""
    kernel: Annotated[
        str | None, typer.Option("--kernel", "-k", rich_help_panel=BOARDS)
    ] = None
    """Kernels of the base instead of those of the file, e.g. debian-6.12-rt."""
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
    dry_run: bool = False
    """Print the cells and what they take; measure nothing."""
    reuse: Annotated[
        bool, typer.Option("--reuse/--no-reuse", rich_help_panel=BOARDS)
    ] = True
    """
    Stored results of equal inputs in place of new measurements (default: --reuse).
    """
    out: Annotated[Path | None, typer.Option("--out", "-o", rich_help_panel=OUTPUT)] = (
        None
    )
    """Directory of the results (default: rtscope-sweep-DATE-TIME), e.g. out."""
    resume: Path | None = None
    """Directory of an interrupted sweep to continue, e.g. out."""
    json: Json = False
    shown: Shown


@dataclass(slots=True)
class _Work:
    """A sweep that is ready to start."""

    sweep: Sweep
    cells: tuple[Cell, ...]
    path: Path
    typed: tuple[str, ...]
    plans: dict[int, Plan] = field(default_factory=dict)
    """By the number of the cell."""
    prepared: dict[int, PreparedCampaign] = field(default_factory=dict)
    failures: dict[int, dict[str, str]] = field(default_factory=dict)
    """Why runs have no result, by the number of the cell and the run."""
    checks: Checks = NO_CHECKS

    def store(self, cell: Cell) -> ResultDir:
        """Return the results of a cell."""
        return ResultDir(self.path / CELLS / cell.directory)


def sweep(request: SweepRequest) -> int:
    """Vary settings or loads of a virtual board, and rank what each of them does.

    Each cell is measured with the same seeds, so that effects are found between equal
    runs. A survey ranks loads by their worst wake-up. The exit status is 1 if a run
    could not be measured.
    """
    scheduler = scheduler_address(
        request.on,
        ca=request.tls_ca,
        certificate=request.tls_cert,
        key=request.tls_key,
    )
    work = _work_of(request)
    if work.sweep.diagnoses and not work.sweep.axes:
        announce(work.sweep)
        return _show_remedies(work, request, _result(work, {}))
    if scheduler is not None and any(cell.campaign.qemu for cell in work.cells):
        raise UsageError(
            f"--on {request.on}: target.qemu names a QEMU of this machine, which is "
            "no part of a bundle for workers: leave it out, or type --on local"
        )
    _announce(work)
    if request.dry_run:
        return 0
    if request.resume is None:
        if is_occupied(work.path):
            raise UsageError(f"--out {work.path}: not empty; name a new directory")
        refuse_full_disk(work.path)
    _prepare(work, request.jobs)
    if request.resume is None:
        _create(work)
    with hold(work.path):
        try:
            _measure(work, scheduler, request)
        except BaseException:
            with contextlib.suppress(RecordError):  # the first cause counts
                _show(work, request)
            say(
                "results so far; to continue: rtscope sweep --resume "
                f"{shlex.quote(str(work.path))}"
            )
            raise
        return _show(work, request)


def _work_of(request: SweepRequest) -> _Work:
    """Return the sweep that is asked for, or one to continue."""
    if request.resume is not None:
        if any((request.file, request.out, request.target, request.kernel)):
            raise UsageError(
                "--resume continues the sweep as it was started: leave out file, "
                "--out, --target and --kernel"
            )
        return _resumed(request.resume)
    if request.file is not None:
        if request.record is not None and str(request.file) != NAME:
            raise UsageError(
                f"{request.record}: one argument too many: only sweep {NAME} takes a "
                "RECORD"
            )
        return _new(request, request.file)
    raise UsageError(
        "name a sweep file, such as examples/sweeps/ticks.toml, or a sweep that "
        f"comes with rtscope: {', '.join(shipped_sweeps())}, or {NAME} RECORD"
    )


def _new(request: SweepRequest, file: Path) -> _Work:
    where = request.out or Path(datetime.now().strftime("rtscope-sweep-%Y%m%d-%H%M%S"))
    if str(file) == NAME and not file.is_file():
        if request.target is not None or request.kernel is not None:
            raise UsageError(
                f"sweep {NAME}: the record has its board and kernels: leave --target "
                "and --kernel out"
            )
        tried = remedies_for(request.record)
        return _Work(tried, cells_of(tried), where, typed_words())
    found = on_board(
        _named(file),
        target=request.target,
        kernels=request.kernel.split(",") if request.kernel else None,
    )
    if found.survey is not None:
        found = with_listed(found, command=typed_words())
    return _Work(found, cells_of(found), where, typed_words())


def _named(file: Path) -> Sweep:
    """Return the sweep of a file, or one that comes with rtscope."""
    if str(file) in shipped_sweeps() and not file.is_file():
        return load_shipped(str(file))
    return placed(load_sweep(file), file.parent)


def _resumed(path: Path) -> _Work:
    if not (path / DOCUMENT).exists():
        raise UsageError(f"{path}: no sweep there: it has no {DOCUMENT}")
    text = read_bounded(path / DOCUMENT, limit=MAX_DOCUMENT_BYTES, kind="sweep")
    try:
        document = json.loads(text)
        if document["schema"] != SCHEMA:
            raise RecordError(
                f"{path / DOCUMENT}: schema {document['schema']!a} is not one that "
                "this rtscope reads; use the version that wrote it"
            )
        found = sweep_of(document["sweep"], source=str(path / DOCUMENT))
        typed = tuple(map(str, document["command"]))
    except (ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{path / DOCUMENT}: no sweep of rtscope") from error
    return _Work(found, cells_of(found), path, typed)


def _announce(work: _Work) -> None:
    plans = [make_plan(cell.campaign) for cell in work.cells]
    runs = sum(len(plan.runs) for plan in plans)
    virtual = format_duration(sum(plan.total_ns for plan in plans))
    note(
        f"{printable(work.sweep.name)}: {plural(len(work.cells), 'cell')}, "
        f"{runs:,} runs, {virtual} of virtual time on {work.cells[0].campaign.board}"
    )
    announce(work.sweep)
    if work.sweep.survey is not None:
        work.plans[0] = plans[0]
        loads = len({run.load for run in plans[0].runs})
        kernels = len({run.kernel for run in plans[0].runs})
        note(f"  {loads} loads, each on {plural(kernels, 'kernel')}")
        return
    seeds = len(work.cells[0].campaign.run_seeds)
    tests = len(FIGURES) * (runs - len(plans[0].runs)) // seeds
    if seeds < (needed := needed_pairs(tests)):
        note(
            f"  {seeds} seeds: of up to {tests} effects, a single one is found only "
            f"with {needed} or more seeds"
        )
    for cell, plan in zip(work.cells, plans, strict=True):
        work.plans[cell.number] = plan
        note(f"  {cell.number:3} {printable(cell.name)} ({len(plan.runs)} runs)")


def _prepare(work: _Work, jobs: int | None) -> None:
    """Fetch and check all parts of all cells, before the first run."""
    said: set[str] = set()

    def once(text: str) -> None:
        if text not in said:
            said.add(text)
            note(text)

    with Waiting(stderr_console()) as waiting:
        looks = Looks(waiting)
        measured = [work.store(cell).records() for cell in work.cells]
        of_each_cell = [records[0] for records in measured if records]
        for cell, records in zip(work.cells, measured, strict=True):
            store = work.store(cell)
            left = remaining(work.plans[cell.number], store.done_ids())
            prepared = prepare_campaign(
                left,
                cell.campaign,
                command=work.typed,
                jobs=jobs,
                log=waiting.over(once),
                progress=waiting,
                looks=looks,
            )
            refuse_other_inputs(prepared, records)
            refuse_other_common_parts(prepared, of_each_cell)
            work.prepared[cell.number] = prepared


def _create(work: _Work) -> None:
    for cell in work.cells:
        create(
            work.path / CELLS / cell.directory,
            to_dict(cell.campaign),
            command=work.typed,
            rtscope=__version__,
        )
    document = {
        "schema": SCHEMA,
        "rtscope": __version__,
        "command": list(work.typed),
        "sweep": document_of(work.sweep),
    }
    text = json.dumps(document, indent=1).encode() + b"\n"
    write_atomically(work.path / DOCUMENT, text)


def _measure(
    work: _Work, scheduler: SchedulerAddress | None, request: SweepRequest
) -> None:
    cells = [
        CellRuns(cell.name, work.plans[cell.number], prepared, work.store(cell))
        for cell in work.cells
        if (prepared := work.prepared[cell.number]).runs
    ]
    if not cells:
        return
    numbers = {work.store(cell).path.name: cell.number for cell in work.cells}

    def failed(cell: str, run_id: str, why: str) -> None:
        work.failures.setdefault(numbers[cell], {})[run_id] = why
        log(why)

    results = open_stored(log=log)
    count = sum(len(cell.prepared.runs) for cell in cells)
    board = get_board(work.cells[0].campaign.board or "")
    fit = capacity_for(board, jobs=request.jobs, runs=count + 1)
    runs = runs_of(cells, at_once=fit.boards)
    with (
        LiveDisplay(stderr_console(), runs.plan) as display,
        boots_on(scheduler, results, reuse=request.reuse) as start,
    ):
        work.checks = measure_cells(
            runs,
            start,
            on_event=display,
            failed=failed,
            aside=work.path / ASIDE,
            drop=lambda inputs: None if results is None else results.drop(inputs),
        )


def _show(work: _Work, request: SweepRequest) -> int:
    if work.sweep.survey is not None:
        return _show_survey(work, request)
    records = {cell.number: work.store(cell).records() for cell in work.cells}
    tell_reused([one for of_cell in records.values() for one in of_cell])
    result = _result(work, records)
    if work.sweep.diagnoses:
        return _show_remedies(work, request, result)
    page = work.path / PAGE
    write_atomically(page, sweep_page(result).encode())
    if request.json:
        put_json(sweep_data(result))
    else:
        compose = compose_sweep(result, more=f"All cells and effects: {page}")
        _print(request, sweep_answer(result), compose, rows=len(result.effects))
    return int(result.missing > 0)


def _show_remedies(work: _Work, request: SweepRequest, result: SweepResult) -> int:
    diagnoses, more = work.sweep.diagnoses, ""
    answer = remedies_answer(result, diagnoses)
    if work.sweep.axes:
        page = work.path / PAGE
        write_atomically(page, sweep_page(result, diagnoses, answer=answer).encode())
        more = f"All effects: {page}"
    if request.json:
        put_json(remedies_data(result, diagnoses))
    else:
        compose = compose_remedies(result, diagnoses, more=more)
        _print(request, answer, compose, rows=len(result.effects) + len(diagnoses))
    return int(result.missing > 0)


def _show_survey(work: _Work, request: SweepRequest) -> int:
    (cell,) = work.cells
    store, plan = work.store(cell), work.plans[cell.number]
    records = store.records()
    tell_reused(records)
    ranking = ranked(records, store, plan, failures=work.failures.get(cell.number, {}))
    missing = len(plan.runs) - len(records)
    page = work.path / SURVEY_PAGE
    write_atomically(
        page,
        survey_page(
            ranking,
            name=work.sweep.name,
            board=cell.campaign.board or "",
            missing=missing,
        ).encode(),
    )
    if request.json:
        put_json(survey_data(ranking, work.checks))
    else:
        more = f"All loads and causes: {page}"
        compose = compose_survey(
            ranking, missing=missing, checks=work.checks, more=more
        )
        _print(request, survey_answer(ranking), compose, rows=len(ranking.loads))
    return int(missing > 0)


def _print(request: SweepRequest, answer: str, compose: Compose, *, rows: int) -> None:
    """Print the answer, or what fits with it; with -v all rows of the table."""
    if request.shown.detail is Detail.QUIET:
        put(f"{answer}\n")
        return
    with stdout_console() as console:
        if request.shown.detail is Detail.ALL:
            print_fitted(compose, console, lines=rows + 50)
        else:
            print_fitted(compose, console)


def _result(work: _Work, records: Mapping[int, Sequence[RunRecord]]) -> SweepResult:
    planned = {
        cell.number: len(work.plans[cell.number].runs) if work.plans else 0
        for cell in work.cells
    }
    return result_of(
        work.sweep.name,
        work.cells,
        records=records,
        planned=planned,
        failures={n: tuple(whys.values()) for n, whys in work.failures.items()},
        checks=work.checks,
    )
