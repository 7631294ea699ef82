"""Measure a machine: without an argument this one, under the five loads."""

import contextlib
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from rtscope import __version__
from rtscope.board.bundle import Bundle
from rtscope.campaign import (
    Campaign,
    default_campaign,
    from_dict,
    load_campaign,
    to_dict,
    with_options,
    with_places,
)
from rtscope.cli import bundled, gate, verdict, words
from rtscope.cli.console import stderr_console
from rtscope.cli.machine import check_target, open_target
from rtscope.cli.output import Format, print_report, write_page
from rtscope.cli.progress import LiveDisplay
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
from rtscope.virtual.prepare import (
    PreparedCampaign,
    prepare_campaign,
    refuse_other_inputs,
)

PAGE = "report.html"


def run(
    campaign_file: Annotated[
        Path | None, typer.Argument(help="A campaign; see examples/.")
    ] = None,
    *,
    target: Annotated[
        str | None, typer.Option(help="local, ssh:HOST or virtual:BOARD.")
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(help="Of a virtual board: NAME,NAME, or images: ./bzImage."),
    ] = None,
    load: Annotated[
        str | None, typer.Option(help="Loads: idle,cpu,os,memory,storage,...")
    ] = None,
    duration: Annotated[str | None, typer.Option(help="Of each run: 10m.")] = None,
    interval: Annotated[
        str | None, typer.Option(help="Between two wake-ups: 200us.")
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help="fifo, rr, other, batch, idle or deadline.")
    ] = None,
    priority: Annotated[str | None, typer.Option(help="1 to 99, fifo and rr.")] = None,
    cpus: Annotated[
        str | None, typer.Option(help="To measure: 2-3. Leave one out if you can.")
    ] = None,
    repetitions: Annotated[
        int | None, typer.Option(help="Four or more, if you want to compare.")
    ] = None,
    repeat: Annotated[
        int | None,
        typer.Option(help="Boots of each run, for --require-identical."),
    ] = None,
    require_identical: Annotated[
        bool | None,
        typer.Option(
            "--require-identical",
            help="Exit status 1 unless a virtual board gives the same each time.",
        ),
    ] = None,
    identical_to: Annotated[
        Path | None,
        typer.Option(help="Exit status 1 unless all is as in this stored record."),
    ] = None,
    deadline: Annotated[
        str | None, typer.Option(help="Asks for a verdict: 200us.")
    ] = None,
    claim: Annotated[
        str | None, typer.Option(help="What is to be shown: 1/1h, with --deadline.")
    ] = None,
    min_boots: Annotated[
        int | None, typer.Option(help="Boots that a claim needs.")
    ] = None,
    settle: Annotated[
        str | None, typer.Option(help="Leave the machine alone first: 3m.")
    ] = None,
    warmup: Annotated[
        str | None, typer.Option(help="Of a load before its samples count: 1s.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of a virtual board.")] = None,
    seeds: Annotated[
        str | None,
        typer.Option(help="Everything with each: 8 for 1 to 8, or a list: 1,5,9."),
    ] = None,
    qemu: Annotated[
        str | None, typer.Option(help="Your own, for a virtual board: its path.")
    ] = None,
    locked: Annotated[
        str | None, typer.Option(help="Only the packages of this lock file.")
    ] = None,
    governor: Annotated[
        str | None, typer.Option(help="CPU frequency governor, put back afterwards.")
    ] = None,
    hold_cpu_awake: Annotated[
        bool | None,
        typer.Option(
            "--hold-cpu-awake",
            help="Forbid idle states, if your application does so too.",
        ),
    ] = None,
    rt_throttling: Annotated[
        str | None, typer.Option(help="off: lift the limit, put back afterwards.")
    ] = None,
    tuned: Annotated[
        str | None,
        typer.Option(help="Hold what checks of the audit need: safe, or ID,ID."),
    ] = None,
    storage_dir: Annotated[
        str | None, typer.Option(help="For the storage load: on a real disk.")
    ] = None,
    command: Annotated[
        str | None, typer.Option(help="The custom load, as one quoted line.")
    ] = None,
    files: Annotated[
        str | None,
        typer.Option(help="That a virtual board has below /files, for --command."),
    ] = None,
    worst: Annotated[
        int | None, typer.Option(help="Worst wake-ups to keep per CPU.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1, help="Virtual boards at once; fewer leave CPUs to your other work."
        ),
    ] = None,
    record: Annotated[
        bool | None,
        typer.Option(
            "--record/--no-record",
            help="The paths to the worst wake-ups of a virtual board; on by default.",
        ),
    ] = None,
    explain: Annotated[
        bool | None, typer.Option("--explain", help="Trace a machine's worst wake-ups.")
    ] = None,
    bundle: Annotated[
        Path | None,
        typer.Option(help="Run what rtscope board export wrote, from that alone."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Directory for the results.")] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Go on with an interrupted campaign.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Answer yes: resume a custom command.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON.")
    ] = False,
) -> int:
    """Measure a machine: without an argument this one, under the five loads."""
    options: dict[str, Any] = {
        "target": target,
        "kernel": words.kernels(kernel),
        "load": words.listed(load),
        "duration": duration,
        "interval": interval,
        "policy": words.listed(policy),
        "priority": words.numbers(priority),
        "cpus": cpus,
        "repetitions": words.times(repetitions, repeat, required=require_identical),
        "require_identical": require_identical,
        "deadline": deadline,
        "claim": claim,
        "min_boots": min_boots,
        "settle": settle,
        "warmup": warmup,
        "seed": seed,
        "seeds": seeds,
        "qemu": qemu,
        "locked": locked,
        "governor": governor,
        "hold_cpu_awake": hold_cpu_awake,
        "rt_throttling": rt_throttling,
        "tuned": words.listed(tuned),
        "storage_dir": storage_dir,
        "command": words.command_words(command),
        "files": words.listed(files),
        "worst": worst,
        "record": record,
        "explain": explain,
    }
    if resume is not None:
        asked = [name for name, value in options.items() if value is not None]
        if campaign_file is not None or out is not None or asked:
            raise UsageError(
                "--resume goes on with what was asked then: leave out "
                + (
                    f"--{asked[0].replace('_', '-')}"
                    if asked
                    else "the other arguments"
                )
            )
        stored = _stored(identical_to)
        from_bundle = bundled.imported(bundle)
        work = _open(resume, from_bundle, yes=yes, jobs=jobs)
    else:
        stored = _stored(identical_to)
        from_bundle = bundled.imported(bundle)
        written = _written(campaign_file, from_bundle, yes=yes)
        campaign = with_places(with_options(written, **options), Path.cwd())
        work = _begin(campaign, out, from_bundle, jobs=jobs)
    status = _measure(work, Format.JSON if json else Format.TABLE)
    if stored is None and not work.campaign.require_identical:
        return status
    return gate.gate(work.store.records(), stored=stored, on_stdout=not json) or status


@dataclass(frozen=True, slots=True)
class _Work:
    """A campaign that can start."""

    campaign: Campaign
    plan: Plan
    prepared: PreparedCampaign | None
    """For a virtual board."""
    store: ResultDir
    typed: tuple[str, ...]


def _written(file: Path | None, bundle: Bundle | None, *, yes: bool) -> Campaign:
    """Return the campaign before options: of a file, of a bundle, or the usual one."""
    if file is not None:
        return with_places(load_campaign(file), file.parent)
    if bundle is None:
        return default_campaign()
    campaign = bundled.campaign_of(bundle)
    if campaign.command and not yes:
        _ask(campaign)
    return campaign


def _begin(
    campaign: Campaign, out: Path | None, bundle: Bundle | None, *, jobs: int | None
) -> _Work:
    typed = words.typed_words()
    check_target(campaign, jobs)
    where = out or Path(datetime.now().strftime("rtscope-%Y%m%d-%H%M%S"))
    refuse_used(where)
    plan = make_plan(campaign)
    prepared = _prepare(plan, campaign, typed, bundle, jobs=jobs)
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
        bundled.check(bundle, campaign)
    if campaign.board is None:
        return None
    console = stderr_console()
    if campaign.explain:
        console.print(words.EXPLAINED_IN_ANY_CASE, markup=False, soft_wrap=True)
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
    gate.check_stored(stored, where=str(path))
    return stored


def _open(path: Path, bundle: Bundle | None, *, yes: bool, jobs: int | None) -> _Work:
    document = read_campaign(path)
    campaign = from_dict(document.get("campaign"), source=str(path / "campaign.json"))
    if campaign.command and not yes:
        _ask(campaign)
    command = document.get("command")
    typed = tuple(map(str, command)) if isinstance(command, list) else ()
    store = ResultDir(path)
    check_target(campaign, jobs)
    plan = remaining(make_plan(campaign), store.done_ids())
    prepared = _prepare(plan, campaign, typed, bundle, jobs=jobs)
    if prepared is not None:
        refuse_other_inputs(prepared, store.records())
    return _Work(campaign, plan, prepared, store, typed)


def _ask(campaign: Campaign) -> None:
    """A record may have come by mail: its command is run only if the user says so."""
    from rtscope.report.escape import printable

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
    with open_target(work.campaign, work.store) as target:
        yield MachineRunner(target, work.campaign, work.typed)


def _show(campaign: Campaign, store: ResultDir, form: Format, *, so_far: bool) -> int:
    records = store.records()
    if not records:
        return 0
    model = verdict.model_of(records, verdict.asked_by(campaign), beside=[store.path])
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
    return verdict.exit_status(model)
