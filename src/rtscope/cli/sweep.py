"""Measure a campaign and its variations on a virtual board, and rank their effects."""

import contextlib
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from rtscope import __version__
from rtscope.campaign.file import to_dict, with_places
from rtscope.campaign.options import BOARDS, OUTPUT
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
from rtscope.errors import BoardError, MeasurementError, RecordError, UsageError
from rtscope.files import read_bounded, write_atomically
from rtscope.measure.execute import execute
from rtscope.measure.plan import Plan, make_plan, remaining
from rtscope.measure.preflight import refuse_full_disk
from rtscope.record.model import RunRecord
from rtscope.record.resultdir import ResultDir, create, hold, is_occupied
from rtscope.report.escape import printable
from rtscope.report.formats.brief import Detail
from rtscope.report.formats.fitted import print_fitted
from rtscope.report.formats.sweep import (
    compose_sweep,
    sweep_answer,
    sweep_data,
    sweep_page,
)
from rtscope.sweep.design import Cell, cells_of
from rtscope.sweep.effects import FIGURES, needed_pairs
from rtscope.sweep.file import Sweep, load_sweep, sweep_of
from rtscope.sweep.result import SweepResult, result_of
from rtscope.units import format_duration
from rtscope.virtual.prepare import (
    PreparedCampaign,
    prepare_campaign,
    refuse_other_inputs,
)

DOCUMENT, CELLS, PAGE = "sweep.json", "cells", "sweep.html"
SCHEMA = 1
MAX_DOCUMENT_BYTES = 16 << 20

REPEATED_OF = 50
"""One run of so many is measured twice: equal inputs must give equal results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRequest:
    """The arguments and options of `rtscope sweep`."""

    file: Annotated[Path | None, typer.Argument()] = None
    """Sweep file, e.g. ticks.toml."""
    jobs: Annotated[int | None, typer.Option(min=1, rich_help_panel=BOARDS)] = None
    """
    Number of virtual boards to run at once (default: one per CPU, as far as memory
    allows), e.g. 2.
    """
    dry_run: bool = False
    """Print the cells and what they take; measure nothing."""
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
    failures: dict[int, list[str]] = field(default_factory=dict)
    started: int = 0
    """Runs so far, for those that are repeated."""
    repeated: int = 0

    def store(self, cell: Cell) -> ResultDir:
        """Return the results of a cell."""
        return ResultDir(self.path / CELLS / cell.directory)


def sweep(request: SweepRequest) -> int:
    """Vary settings of a virtual board, and rank what each of them does.

    Each cell is measured with the same seeds, so that effects are found between equal
    runs. The exit status is 1 if a run of a cell could not be measured.
    """
    if request.resume is not None:
        if request.file is not None or request.out is not None:
            raise UsageError(
                "--resume continues the sweep as it was started: leave out file and "
                "--out"
            )
        work = _resumed(request.resume)
    elif request.file is not None:
        found = _placed(load_sweep(request.file), request.file.parent)
        where = request.out or Path(
            datetime.now().strftime("rtscope-sweep-%Y%m%d-%H%M%S")
        )
        work = _Work(found, cells_of(found), where, typed_words())
    else:
        raise UsageError("name a sweep file, such as examples/sweeps/ticks.toml")
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
            _measure(work)
        except BaseException:
            with contextlib.suppress(RecordError):  # the first cause counts
                _show(work, request)
            say(
                "results so far; to continue: rtscope sweep --resume "
                f"{shlex.quote(str(work.path))}"
            )
            raise
        return _show(work, request)


def _placed(found: Sweep, base: Path) -> Sweep:
    """Return the sweep with the paths of its cells taken from its file's directory."""
    tables = dict(found.base)
    campaign = with_places(cells_of(found)[0].campaign, base)
    kept = to_dict(campaign)
    for table in ("kernel", "campaign", "target"):
        given = tables.get(table)
        if isinstance(given, Mapping):
            tables[table] = {key: kept[table].get(key, given[key]) for key in given}
    return replace(found, base=tables)


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
        f"{printable(work.sweep.name)}: {len(work.cells)} cells, {runs:,} runs, "
        f"{virtual} of virtual time on {work.cells[0].campaign.board}"
    )
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
        for cell in work.cells:
            store = work.store(cell)
            left = remaining(work.plans[cell.number], store.done_ids())
            prepared = prepare_campaign(
                left,
                cell.campaign,
                command=work.typed,
                jobs=jobs,
                log=waiting.over(once),
                progress=waiting,
            )
            if store.done_ids():
                refuse_other_inputs(prepared, store.records())
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
        "sweep": {
            "sweep": {"name": work.sweep.name, "design": work.sweep.design},
            "base": work.sweep.base,
            "axis": [asdict(axis) for axis in work.sweep.axes],
        },
    }
    text = json.dumps(document, indent=1).encode() + b"\n"
    write_atomically(work.path / DOCUMENT, text)


def _measure(work: _Work) -> None:
    for cell in work.cells:
        prepared = work.prepared[cell.number]
        if not prepared.runs:
            continue
        note(f"cell {cell.number + 1} of {len(work.cells)}: {printable(cell.name)}")
        store = work.store(cell)
        plan = replace(
            work.plans[cell.number], runs=tuple(r.run for r, _ in prepared.runs)
        )
        failures = work.failures.setdefault(cell.number, [])
        for record in _records(plan, prepared, store, failures):
            if work.started % REPEATED_OF == 0:
                _repeat(record, plan, prepared)
                work.repeated += 1
            work.started += 1


def _records(
    plan: Plan, prepared: PreparedCampaign, store: ResultDir, failures: list[str]
) -> Iterator[RunRecord]:
    # Loaded for a board only.
    from rtscope.virtual.runner import BoardRunner

    def failed(_run_id: str, error: BoardError) -> None:
        failures.append(str(error))
        log(str(error))

    runner = BoardRunner(prepared, failed)
    with LiveDisplay(stderr_console(), plan) as display:
        yield from execute(plan, runner, store, on_event=display)


def _repeat(record: RunRecord, plan: Plan, prepared: PreparedCampaign) -> None:
    """Measure a run again; MeasurementError if its result differs."""
    only = tuple(one for one in prepared.runs if one[0].run.id == record.run.id)
    with TemporaryDirectory(prefix="rtscope-") as folder:
        store = ResultDir(Path(folder))
        again = list(
            _records(
                replace(plan, runs=(record.run,)),
                PreparedCampaign(only),
                store,
                [],
            )
        )
    if [one.result_digest for one in again] != [record.result_digest]:
        digests = ", ".join(str(one.result_digest)[:12] for one in again) or "none"
        raise MeasurementError(
            f"{record.run.id}: measured twice with equal inputs, results differ: "
            f"{str(record.result_digest)[:12]}, then {digests}; a host that computes "
            "wrongly, or a defect of rtscope: report it with both records"
        )


def _show(work: _Work, request: SweepRequest) -> int:
    result = _result(work)
    page = work.path / PAGE
    write_atomically(page, sweep_page(result).encode())
    if request.json:
        put_json(sweep_data(result))
    elif request.shown.detail is Detail.QUIET:
        put(f"{sweep_answer(result)}\n")
    else:
        compose = compose_sweep(result, more=f"All cells and effects: {page}")
        with stdout_console() as console:
            if request.shown.detail is Detail.ALL:
                print_fitted(compose, console, lines=len(result.effects) + 50)
            else:
                print_fitted(compose, console)
    return int(result.missing > 0)


def _result(work: _Work) -> SweepResult:
    records: dict[int, Sequence[RunRecord]] = {
        cell.number: work.store(cell).records() for cell in work.cells
    }
    planned: Mapping[int, Any] = {
        number: len(plan.runs) for number, plan in work.plans.items()
    }
    return result_of(
        work.sweep.name,
        work.cells,
        records=records,
        planned=planned,
        failures=work.failures,
        repeated=work.repeated,
    )
