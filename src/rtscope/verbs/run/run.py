"""Measure the wake-up latency of a machine."""

import contextlib
import functools
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from rtscope.boards.catalogue import get_board, with_append
from rtscope.boards.kernels.catalogue import kernel_names
from rtscope.boards.parts.bundle import Bundle, import_bundle
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.runs.prepare import PreparedCampaign, prepare_campaign
from rtscope.boards.runs.sameparts import refuse_other_inputs
from rtscope.cli.console import log, note, put, say, stderr_console, typed_words
from rtscope.cli.options import (
    DisplayOptions,
    ask_command,
    ask_programs,
    refuse_reuse,
    refuse_reused,
    tell_reused,
)
from rtscope.cli.progress import LiveDisplay, Waiting
from rtscope.cli.results import (
    PAGE,
    Format,
    model_of,
    print_report,
    question_in,
    write_page,
)
from rtscope.host.errors import RecordError, RtscopeError, UsageError
from rtscope.host.files.documents import json_value
from rtscope.host.version import __version__
from rtscope.machine.target import Target
from rtscope.machine.target.address import open_target, parse_address
from rtscope.measure.campaign.file import from_dict, load_campaign, to_dict, with_places
from rtscope.measure.campaign.messages import BOARDS, OUTPUT, VERDICT, WHERE
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.campaign.options import Options, with_options
from rtscope.measure.events import LIST, describe
from rtscope.measure.execute import Runner, execute
from rtscope.measure.machine import MachineRunner
from rtscope.measure.plan import Plan, make_plan, remaining, with_order_drawn
from rtscope.measure.preflight import refuse_full_disk, refuse_impossible
from rtscope.measure.settings import checks_for
from rtscope.present.document import Detail
from rtscope.record.directory import place
from rtscope.record.directory.place import CAMPAIGN
from rtscope.record.directory.records import ResultDir, create
from rtscope.verbs.run.identical import compare_results, stored_records

# --- A bundle to run from: its parts into the cache, its campaign, what goes with it --


def imported(file: Path | None) -> Bundle | None:
    """Put a bundle's parts into the cache; warn if another version wrote it."""
    if file is None:
        return None
    bundle = import_bundle(file, cache=cache_dir(), log=log)
    if bundle.rtscope != __version__:
        log(
            f"rtscope {bundle.rtscope} wrote this bundle, and this is rtscope "
            f"{__version__}: results may differ"
        )
    return bundle


def campaign_of(bundle: Bundle) -> Campaign:
    """Return the campaign of a bundle; UsageError if it has none, or a damaged one."""
    source = "the bundle's campaign"
    if CAMPAIGN.file not in bundle.files:
        raise UsageError("the bundle has no valid campaign: name a campaign file")
    document = json_value(bundle.files[CAMPAIGN.file], name=source, error=UsageError)
    return from_dict(document, source=source)


def refuse_unfit(bundle: Bundle, campaign: Campaign) -> None:
    """Raise UsageError if a campaign is not for the bundle's board and parts."""
    if campaign.board != bundle.board.name:
        raise UsageError(
            f"the bundle is for the board {bundle.board.name}: leave --target out"
        )
    parts = {
        "--qemu": campaign.qemu,
        "--lockfile": campaign.lockfile,
        "--guest-files": campaign.guest_files,
        "kernel.config": campaign.config,
    }
    for option, value in parts.items():
        if value:
            raise UsageError(f"{option}: a bundle contains its own parts; leave it out")


# --- measure the wake-up latency of a machine -----------------------------------------

_ALWAYS_RECORDED = (
    "rtscope: --explain has no effect on a virtual board, which always records its "
    "worst wake-ups; to see them: rtscope explain"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """The arguments and options of `rtscope run`."""

    campaign_file: Annotated[Path | None, typer.Argument()] = None
    """Campaign file, e.g. examples/quick.toml (default: none)."""
    options: Options
    lab: Annotated[Path | None, typer.Option(rich_help_panel=WHERE)] = None
    """File of boards, which are measured beside each other, e.g. lab.toml."""
    tag: Annotated[str | None, typer.Option(rich_help_panel=WHERE)] = None
    """Tags that a board of the lab needs to be measured, e.g. riscv,nightly."""
    identical_to: Annotated[Path | None, typer.Option(rich_help_panel=VERDICT)] = None
    """
    Stored record of a virtual board; exit status 1 unless all results are identical to
    it, e.g. stored.
    """
    jobs: Annotated[int | None, typer.Option(min=1, rich_help_panel=BOARDS)] = None
    """
    Number of virtual boards to run at once (default: one per CPU, as far as memory
    allows), e.g. 2.
    """
    bundle: Annotated[Path | None, typer.Option(rich_help_panel=BOARDS)] = None
    """Bundle of rtscope board export to run from, without network, e.g. pc.tar."""
    reuse: Annotated[bool, typer.Option("--reuse", rich_help_panel=BOARDS)] = False
    """Stored results of equal inputs in place of new measurements of virtual boards."""
    out: Annotated[Path | None, typer.Option(rich_help_panel=OUTPUT)] = None
    """Directory of the results (default: rtscope-DATE-TIME), e.g. out."""
    resume: Path | None = None
    """Directory of an interrupted campaign to continue, e.g. out."""
    yes: bool = False
    """
    Consent to run what a resumed campaign or a bundle names: a custom command, a QEMU,
    the build of a kernel.
    """
    json: Annotated[bool, typer.Option("--json", rich_help_panel=OUTPUT)] = False
    """Result as JSON."""
    display: DisplayOptions

    @property
    def result(self) -> "_Result":
        """The form of the result; as typed."""
        form = Format.JSON if self.json else Format.TABLE
        return _Result(form, self.display.detail)


@dataclass(frozen=True, slots=True)
class _Result:
    """How the result of a run is printed."""

    form: Format
    detail: Detail


def run(request: RunRequest) -> int:
    """Measure the wake-up latency of a machine; by default this one, under five loads.

    Values of options replace those of the campaign file.
    """
    if request.options.event == LIST:
        put("\n".join(describe()) + "\n")
        return 0
    result = request.result  # refuses -q with -v before any work
    if _names_several(request):
        # Loaded for several boards only.
        from rtscope.verbs.run.boards import run_boards

        return run_boards(request)
    return carry_out(request, functools.partial(_show, result=result))


def _names_several(request: RunRequest) -> bool:
    resumed = request.resume is not None and place.LAB.is_in(request.resume)
    several = request.lab is not None or "," in (request.options.target or "")
    if request.tag is not None and request.lab is None:
        raise UsageError("--tag chooses boards of a lab: add --lab lab.toml")
    return resumed or several


Show = Callable[[Campaign, ResultDir, bool], int]
"""Print a result, of a campaign in a directory, or of what it has so far."""


def carry_out(request: RunRequest, show: Show) -> int:
    """Measure as asked, show the result, and return the exit status."""
    if request.resume is not None:
        refuse_more(request)
    options = replace(request.options, kernel=kernels_of(request.options.kernel))
    to = request.identical_to
    if to is not None and request.reuse:
        raise UsageError(
            "--identical-to measures again, to compare; --reuse does not measure: "
            "leave one out"
        )
    stored = None if to is None else stored_records(to)
    bundle = imported(request.bundle)
    with contextlib.ExitStack() as held:
        if request.resume is not None:
            held.enter_context(place.hold(request.resume))
            work = open_again(request.resume, bundle, request, held)
        else:
            written = written_in(request, bundle)
            campaign = with_places(with_options(written, options), Path.cwd())
            work = begin(campaign, bundle, request, held)
            held.enter_context(place.hold(work.store.path))
        status = _measure(work, show, reuse=request.reuse)
    if stored is None and not work.campaign.require_identical:
        return status
    records = work.store.records()
    return compare_results(records, stored=stored, on_stdout=not request.json) or status


def refuse_more(request: RunRequest) -> None:
    """Raise UsageError for what --resume takes from the directory."""
    typed = next(iter(request.options.values), None)
    others = (request.campaign_file, request.out, request.lab, typed)
    if all(one is None for one in others):
        return
    which = "the other arguments" if typed is None else f"--{typed.replace('_', '-')}"
    raise UsageError(
        f"--resume continues the campaign as it was started: leave out {which}"
    )


def kernels_of(text: str | None) -> str | None:
    """Return the kernels of --kernel; one's file in this directory is a path."""
    known = kernel_names()
    return text and ",".join(
        f"./{word}"
        if "/" not in word and word not in known and Path(word).is_file()
        else word
        for word in map(str.strip, text.split(","))
    )


@dataclass(frozen=True, slots=True)
class Work:
    """A campaign that is ready to start."""

    campaign: Campaign
    plan: Plan
    prepared: PreparedCampaign | None
    """For a virtual board."""
    store: ResultDir
    typed: tuple[str, ...]
    target: Target | None
    """For a machine; open."""


def written_in(request: RunRequest, bundle: Bundle | None) -> Campaign:
    """Return the campaign before options: from a file, a bundle, or the default."""
    if (file := request.campaign_file) is not None:
        return with_places(load_campaign(file), file.parent)
    if bundle is None:
        return Campaign()
    campaign = campaign_of(bundle)
    if not request.yes:
        ask_command(campaign)
    return campaign


def begin(
    campaign: Campaign,
    bundle: Bundle | None,
    request: RunRequest,
    held: contextlib.ExitStack,
) -> Work:
    """Check a new campaign, prepare what it measures, and make its directory."""
    typed = typed_words()
    check_target(campaign, request)
    where = place.new_place(request.out)
    place.refuse_used(where, empty=False)
    refuse_full_disk(where)
    campaign = with_order_drawn(campaign)
    plan = make_plan(campaign)
    prepared = _prepare(plan, campaign, typed, bundle, jobs=request.jobs)
    target = held.enter_context(_machine(campaign, plan, where))
    store = create(where, to_dict(campaign), command=typed)
    return Work(campaign, plan, prepared, store, typed, target)


@contextlib.contextmanager
def _machine(campaign: Campaign, plan: Plan, where: Path) -> Iterator[Target | None]:
    """Give the machine that can measure the plan, alone; None for a virtual board."""
    if campaign.board is not None:
        yield None
        return
    address = parse_address(campaign.target)
    with open_target(address, storage_dir=where.resolve(), alone=log) as one:
        if plan.runs:
            refuse_impossible(one, campaign, plan)
        yield one


def _prepare(
    plan: Plan,
    campaign: Campaign,
    typed: tuple[str, ...],
    bundle: Bundle | None,
    *,
    jobs: int | None,
) -> PreparedCampaign | None:
    if bundle is not None:
        refuse_unfit(bundle, campaign)
    if campaign.board is None:
        return None
    if campaign.explain:
        stderr_console().print(_ALWAYS_RECORDED, markup=False, soft_wrap=True)
    with Waiting(stderr_console()) as waiting:
        return prepare_campaign(
            plan,
            campaign,
            command=typed,
            jobs=jobs,
            log=waiting.over(note),
            progress=waiting,
            bundle=bundle,
        )


def open_again(
    path: Path,
    bundle: Bundle | None,
    request: RunRequest,
    held: contextlib.ExitStack,
) -> Work:
    """Prepare what is left of a campaign in its directory."""
    document = place.read_document(path, place.CAMPAIGN)
    campaign = from_dict(document.asked, source=document.source)
    if not request.yes:
        ask_command(campaign)
    typed = document.command
    store = ResultDir(path)
    check_target(campaign, request)
    if request.identical_to is not None or campaign.require_identical:
        refuse_reused(store.records(), source=str(path))
    plan = remaining(make_plan(campaign), store.done_ids())
    if plan.runs and not request.yes:
        ask_programs([campaign])
    prepared = _prepare(plan, campaign, typed, bundle, jobs=request.jobs)
    if prepared is not None:
        refuse_other_inputs(prepared, store.records())
    target = held.enter_context(_machine(campaign, plan, path))
    return Work(campaign, plan, prepared, store, typed, target)


def check_target(campaign: Campaign, request: RunRequest) -> None:
    """Refuse what the target cannot do, before making a directory."""
    checks_for(campaign)
    if request.reuse:
        refuse_reuse(campaign)
    if campaign.board is not None:
        with_append(get_board(campaign.board), campaign.append)
    elif request.jobs is not None:
        raise UsageError(
            "--jobs is for virtual boards only: on a machine, runs follow one another; "
            "leave it out"
        )
    elif campaign.kernels:
        raise UsageError(
            "--kernel is for virtual boards only: a machine is measured with its "
            "running kernel; leave it out"
        )


def _measure(work: Work, show: Show, *, reuse: bool) -> int:
    try:
        with (
            place.resumable(work.store.path, place.CAMPAIGN),
            runner_of(work, reuse=reuse) as runner,
            LiveDisplay(stderr_console(), work.plan) as display,
        ):
            for _ in execute(work.plan, runner, work.store, on_event=display):
                pass
    except (RtscopeError, KeyboardInterrupt):
        with contextlib.suppress(RecordError):  # the first cause counts
            show(work.campaign, work.store, True)
        raise
    return show(work.campaign, work.store, False)


@contextlib.contextmanager
def runner_of(work: Work, *, reuse: bool) -> Iterator[Runner]:
    """Give what measures a campaign."""
    if work.prepared is not None:
        # Loaded for a board only.
        from rtscope.boards.runs.runner import BoardRunner
        from rtscope.boards.runs.store import open_stored

        results = open_stored(log=log)
        yield BoardRunner(work.prepared, results=results, reuse=reuse)
        return
    assert work.target is not None, "a machine is opened before its directory is made"
    yield MachineRunner(work.target, work.campaign, work.typed)


def _show(
    campaign: Campaign,
    store: ResultDir,
    so_far: bool,
    *,
    result: _Result,
) -> int:
    records = store.records()
    if not records:
        return 0
    model = model_of(records, question_in(campaign), paths=[store.path])
    page, where = store.path / PAGE, shlex.quote(str(store.path))
    again = f"rtscope report {where}"
    form, detail = result.form, result.detail
    try:
        write_page(model, page)
    except RecordError:
        print_report(model, form, detail=detail, again=again)
        raise
    print_report(model, form, detail=detail, page=str(page), again=again)
    if detail is Detail.QUIET:
        return model.exit_status
    tell_reused(records)
    if campaign.traced:
        say(f"for the causes of the worst wake-ups: rtscope explain {where}")
    if so_far:
        say(f"results so far; to continue: {place.CAMPAIGN.to_go_on(store.path)}")
    return model.exit_status
