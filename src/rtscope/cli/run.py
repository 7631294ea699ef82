"""Measure a machine: without an argument this one, under the five loads."""

import contextlib
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from rtscope import __version__
from rtscope.board.bundle import CAMPAIGN, Bundle, import_bundle
from rtscope.board.cache import cache_dir
from rtscope.board.catalogue import get_board
from rtscope.board.kernels import kernel_names
from rtscope.campaign.file import from_dict, load_campaign, to_dict, with_places
from rtscope.campaign.model import Campaign
from rtscope.campaign.options import Options, with_options
from rtscope.cli.console import put, stderr_console, stderr_log, typed_words
from rtscope.cli.progress import LiveDisplay
from rtscope.cli.report import (
    Format,
    asked_by,
    exit_status,
    model_of,
    print_report,
    write_page,
)
from rtscope.errors import RecordError, RtscopeError, UsageError
from rtscope.measure.execute import Runner, execute
from rtscope.measure.machine import MachineRunner
from rtscope.measure.plan import Plan, make_plan, remaining
from rtscope.record.model import RunRecord
from rtscope.record.resultdir import (
    ResultDir,
    create,
    open_records,
    read_campaign,
    refuse_used,
)
from rtscope.report.escape import printable
from rtscope.stats.determinism import Compared, against, among
from rtscope.target.address import open_target, parse_address
from rtscope.tuning.campaign import checks_for
from rtscope.virtual.prepare import (
    PreparedCampaign,
    prepare_campaign,
    refuse_other_inputs,
)

PAGE = "report.html"

DIGITS = 12
"""Of a digest: enough to tell two apart by eye."""

_EXPLAINED_IN_ANY_CASE = (
    "rtscope: a virtual board records its worst wake-ups in any case: --explain "
    "changes nothing there; see them with rtscope explain"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """All that `rtscope run` can be given."""

    campaign_file: Annotated[
        Path | None, typer.Argument(help="A campaign; see examples/.")
    ] = None
    options: Options
    identical_to: Annotated[
        Path | None,
        typer.Option(help="Exit status 1 unless all is as in this stored record."),
    ] = None
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1, help="Virtual boards at once; fewer leave CPUs to your other work."
        ),
    ] = None
    bundle: Annotated[
        Path | None,
        typer.Option(help="Run what rtscope board export wrote, from that alone."),
    ] = None
    out: Annotated[Path | None, typer.Option(help="Directory for the results.")] = None
    resume: Annotated[
        Path | None, typer.Option(help="Go on with an interrupted campaign.")
    ] = None
    yes: Annotated[
        bool, typer.Option("--yes", help="Answer yes: resume a custom command.")
    ] = False
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = (
        False
    )


def run(request: RunRequest) -> int:
    """Measure a machine: without an argument this one, under the five loads."""
    if request.resume is not None:
        _refuse_more(request)
    options = _options(request)
    stored = _stored(request.identical_to)
    bundle = _import_bundle(request.bundle)
    if request.resume is not None:
        work = _open(request.resume, bundle, request)
    else:
        written = _written(request, bundle)
        campaign = with_places(with_options(written, options), Path.cwd())
        work = _begin(campaign, bundle, request)
    status = _measure(work, Format.JSON if request.json else Format.TABLE)
    if stored is None and not work.campaign.require_identical:
        return status
    records = work.store.records()
    return (
        _compare_results(records, stored=stored, on_stdout=not request.json) or status
    )


def _refuse_more(request: RunRequest) -> None:
    typed = next(iter(request.options.given), None)
    if request.campaign_file is None and request.out is None and typed is None:
        return
    which = "the other arguments" if typed is None else f"--{typed.replace('_', '-')}"
    raise UsageError(f"--resume goes on with what was asked then: leave out {which}")


def _options(request: RunRequest) -> Options:
    """Return the campaign's options; a kernel's file in this directory is a path."""
    options = request.options
    return replace(options, kernel=_kernels(options.kernel))


def _kernels(text: str | None) -> str | None:
    known = kernel_names()
    return text and ",".join(
        f"./{word}"
        if "/" not in word and word not in known and Path(word).is_file()
        else word
        for word in map(str.strip, text.split(","))
    )


@dataclass(frozen=True, slots=True)
class _Work:
    """A campaign that can start."""

    campaign: Campaign
    plan: Plan
    prepared: PreparedCampaign | None
    """For a virtual board."""
    store: ResultDir
    typed: tuple[str, ...]


def _written(request: RunRequest, bundle: Bundle | None) -> Campaign:
    """Return the campaign before options: of a file, of a bundle, or the usual one."""
    if (file := request.campaign_file) is not None:
        return with_places(load_campaign(file), file.parent)
    if bundle is None:
        return Campaign()
    campaign = _campaign_of(bundle)
    if campaign.command and not request.yes:
        _ask(campaign)
    return campaign


def _begin(campaign: Campaign, bundle: Bundle | None, request: RunRequest) -> _Work:
    typed = typed_words()
    _check_target(campaign, request.jobs)
    where = request.out or Path(datetime.now().strftime("rtscope-%Y%m%d-%H%M%S"))
    refuse_used(where)
    plan = make_plan(campaign)
    prepared = _prepare(plan, campaign, typed, bundle, jobs=request.jobs)
    store = create(where, to_dict(campaign), command=typed, rtscope=__version__)
    return _Work(campaign, plan, prepared, store, typed)


def _prepare(
    plan: Plan,
    campaign: Campaign,
    typed: tuple[str, ...],
    bundle: Bundle | None,
    *,
    jobs: int | None,
) -> PreparedCampaign | None:
    if bundle is not None:
        _check_bundle(bundle, campaign)
    if campaign.board is None:
        return None
    console = stderr_console()
    if campaign.explain:
        console.print(_EXPLAINED_IN_ANY_CASE, markup=False, soft_wrap=True)
    return prepare_campaign(
        plan,
        campaign,
        command=typed,
        jobs=jobs,
        log=lambda text: console.print(text, markup=False),
        bundle=bundle,
    )


def _stored(path: Path | None) -> list[RunRecord] | None:
    if path is None:
        return None
    stored = open_records(path)
    _check_stored(stored, where=str(path))
    return stored


def _open(path: Path, bundle: Bundle | None, request: RunRequest) -> _Work:
    document = read_campaign(path)
    campaign = from_dict(document.get("campaign"), source=str(path / "campaign.json"))
    if campaign.command and not request.yes:
        _ask(campaign)
    command = document.get("command")
    typed = tuple(map(str, command)) if isinstance(command, list) else ()
    store = ResultDir(path)
    _check_target(campaign, request.jobs)
    plan = remaining(make_plan(campaign), store.done_ids())
    prepared = _prepare(plan, campaign, typed, bundle, jobs=request.jobs)
    if prepared is not None:
        refuse_other_inputs(prepared, store.records())
    return _Work(campaign, plan, prepared, store, typed)


def _check_target(campaign: Campaign, jobs: int | None) -> None:
    """Refuse what the target cannot do, before a directory is made for it."""
    checks_for(campaign)
    if campaign.board is not None:
        get_board(campaign.board)
    elif jobs is not None:
        raise UsageError(
            "--jobs says how many virtual boards run at once; on a machine one run "
            "follows the other"
        )
    elif campaign.kernels:
        raise UsageError(
            "--kernel chooses the kernel of a virtual board; a machine is measured "
            "with the one it runs"
        )


def _import_bundle(file: Path | None) -> Bundle | None:
    """Put a bundle's parts into the cache; say so if another version wrote it."""
    if file is None:
        return None
    log = stderr_log()
    bundle = import_bundle(file, cache=cache_dir(), log=log)
    if bundle.rtscope != __version__:
        log(
            f"the bundle is of version {bundle.rtscope}, and this is {__version__}: "
            "the board's job may differ, and the result with it"
        )
    return bundle


def _campaign_of(bundle: Bundle) -> Campaign:
    """Return the campaign of a bundle; UsageError if it has none, or a damaged one."""
    try:
        document = json.loads(bundle.files[CAMPAIGN])
    except (KeyError, ValueError) as error:
        raise UsageError("the bundle has no campaign: name a campaign file") from error
    return from_dict(document, source="the bundle's campaign")


def _check_bundle(bundle: Bundle, campaign: Campaign) -> None:
    """Raise UsageError if a campaign is not for the bundle's board and parts."""
    if campaign.board != bundle.board.name:
        raise UsageError(
            f"the bundle has the board {bundle.board.name}: leave --target out"
        )
    given = {
        "--qemu": campaign.qemu,
        "--lockfile": campaign.lockfile,
        "--guest-files": campaign.guest_files,
    }
    for option, value in given.items():
        if value:
            raise UsageError(f"{option}: a bundle brings its parts; leave it out")


def _ask(campaign: Campaign) -> None:
    """A record may have come by mail: its command is run only if the user says so."""
    words = printable(shlex.join(campaign.command))
    if not sys.stdin.isatty():
        raise UsageError(
            f"this campaign runs a command of its own: {words}; if you trust it, "
            "add --yes"
        )
    print(f"This campaign runs a command of its own:\n  {words}", file=sys.stderr)
    if not typer.confirm("Run it?", err=True):
        raise UsageError("not resumed")


def _measure(work: _Work, form: Format) -> int:
    try:
        _run_all(work)
    except (RtscopeError, KeyboardInterrupt):
        with contextlib.suppress(RecordError):  # the first cause is the one to tell
            _show(work.campaign, work.store, form, so_far=True)
        raise
    return _show(work.campaign, work.store, form, so_far=False)


def _run_all(work: _Work) -> None:
    with (
        _runner(work) as runner,
        LiveDisplay(stderr_console(), work.plan) as display,
    ):
        for _ in execute(work.plan, runner, work.store, on_event=display):
            pass


@contextlib.contextmanager
def _runner(work: _Work) -> Iterator[Runner]:
    if work.prepared is not None:
        # What it takes to record and audit a board, no machine needs.
        from rtscope.virtual.runner import BoardRunner

        yield BoardRunner(work.prepared)
        return
    address = parse_address(work.campaign.target)
    with open_target(address, storage_dir=work.store.path.resolve()) as target:
        yield MachineRunner(target, work.campaign, work.typed)


def _show(campaign: Campaign, store: ResultDir, form: Format, *, so_far: bool) -> int:
    records = store.records()
    if not records:
        return 0
    model = model_of(records, asked_by(campaign), beside=[store.path])
    page = store.path / PAGE
    try:
        write_page(model, page)
    except RecordError:
        print_report(model, form)
        raise
    print_report(model, form, page=page)
    if campaign.traced:
        print(
            f"rtscope: who made them late: rtscope explain "
            f"{shlex.quote(str(store.path))}",
            file=sys.stderr,
        )
    if so_far:
        print(
            f"rtscope: this is what was measured; go on with: rtscope run --resume "
            f"{shlex.quote(str(store.path))}",
            file=sys.stderr,
        )
    return exit_status(model)


# --- whether equal inputs gave equal results ------------------------------------


def _check_stored(stored: Sequence[RunRecord], *, where: str) -> None:
    """Refuse a record that nothing can be identical with, before anything is run."""
    if any(record.virtual is None for record in stored):
        raise UsageError(
            f"--identical-to {where}: measured on a real machine, of which no two "
            "runs are alike; compare them with rtscope compare"
        )


def _compare_results(
    records: Sequence[RunRecord],
    *,
    stored: Sequence[RunRecord] | None,
    on_stdout: bool,
) -> int:
    """Print what was identical; return 0 only if all of it was."""
    found = among(records) if stored is None else against(records, stored)
    text = "\n".join(_lines(found, stored is not None)) + "\n"
    if on_stdout:
        put(text)
    else:
        sys.stderr.write(text)
    return int(not found or not all(one.identical for one in found))


def _lines(found: Sequence[Compared], is_stored: bool) -> Iterator[str]:
    good = sum(one.identical for one in found)
    verdict = "IDENTICAL" if good == len(found) else "NOT IDENTICAL"
    held = "to the stored record" if is_stored else "in all of their repetitions"
    yield ""
    yield f"{verdict}: {good} of {len(found)} runs are identical {held}."
    width = max((len(one.name) for one in found), default=0)
    for one in found:
        yield f"  {printable(one.name):<{width}}  {_outcome(one)}"
        if not one.same_result:
            yield from (
                f"    {printable(run):<{width}}  {digest[:DIGITS]}"
                for run, digest in zip(one.runs, one.results, strict=True)
            )


def _outcome(one: Compared) -> str:
    if len(one.results) < 2:
        return "nothing to compare: the stored record has no such run"
    result = (
        f"result {one.results[0][:DIGITS]}" if one.same_result else "RESULTS DIFFER"
    )
    if not one.known:
        return f"{result}, inputs unknown: a record of an older rtscope"
    if one.differing:
        return f"{result}, INPUTS DIFFER: {', '.join(one.differing)}"
    boots = f"{len(one.results)} times, " if one.same_result else ""
    return f"{result}, {boots}inputs equal"
