"""Measure a machine: without an argument this one, under the five loads."""

import contextlib
import re
import shlex
import sys
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from rtscope import __version__
from rtscope.board.catalogue import get_board
from rtscope.campaign import (
    Campaign,
    default_campaign,
    from_dict,
    load_campaign,
    to_dict,
    with_options,
)
from rtscope.cli import verdict
from rtscope.cli.boardview import BoardView
from rtscope.cli.live import LiveView
from rtscope.cli.output import Format, print_report, stderr_console, write_page
from rtscope.errors import RecordError, RtscopeError, UsageError
from rtscope.execute import execute
from rtscope.plan import Plan, make_plan, remaining
from rtscope.resultdir import ResultDir, create, read_campaign
from rtscope.target.local import LocalTarget
from rtscope.target.ssh import SshTarget

PAGE = "report.html"

_PRIORITY = re.compile(r"[0-9]{1,9}")

Text = Annotated[str | None, typer.Option()]


def run(
    campaign_file: Annotated[
        Path | None, typer.Argument(help="A campaign; see examples/.")
    ] = None,
    *,
    target: Annotated[
        str | None, typer.Option(help="local, ssh:HOST or virtual:BOARD.")
    ] = None,
    kernel: Annotated[
        str | None, typer.Option(help="Of a virtual board: NAME,NAME.")
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
    storage_dir: Annotated[
        str | None, typer.Option(help="For the storage load: on a real disk.")
    ] = None,
    command: Annotated[
        str | None, typer.Option(help="The custom load, as one quoted line.")
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
        "kernel": _words(kernel),
        "load": _words(load),
        "duration": duration,
        "interval": interval,
        "policy": _words(policy),
        "priority": _numbers(priority),
        "cpus": cpus,
        "repetitions": repetitions,
        "deadline": deadline,
        "claim": claim,
        "min_boots": min_boots,
        "settle": settle,
        "warmup": warmup,
        "seed": seed,
        "governor": governor,
        "hold_cpu_awake": hold_cpu_awake,
        "rt_throttling": rt_throttling,
        "storage_dir": storage_dir,
        "command": _command(command),
        "worst": worst,
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
        campaign, store, typed = _open(resume, yes=yes)
        _check_target(campaign, jobs)
    else:
        file = load_campaign(campaign_file) if campaign_file else default_campaign()
        campaign = with_options(file, **options)
        typed = _typed()
        _check_target(campaign, jobs)
        where = out or Path(datetime.now().strftime("rtscope-%Y%m%d-%H%M%S"))
        store = create(where, to_dict(campaign), command=typed, rtscope=__version__)
    form = Format.JSON if json else Format.TABLE
    return _measure(campaign, store, typed, form, jobs=jobs)


def _words(text: str | None) -> list[str] | None:
    return None if text is None else [word.strip() for word in text.split(",")]


def _numbers(text: str | None) -> list[int | str] | None:
    words = _words(text)
    return (
        words
        if words is None
        else [int(word) if _PRIORITY.fullmatch(word) else word for word in words]
    )


def _command(text: str | None) -> list[str] | None:
    try:
        return None if text is None else shlex.split(text)
    except ValueError as error:
        raise UsageError(
            f"--command: {error}; write --command 'PROGRAM ARGS'"
        ) from error


def _typed() -> tuple[str, ...]:
    """Return what the user typed, without the directory: a repetition needs another."""
    words = iter(sys.argv[1:])
    kept = []
    for word in words:
        if word == "--out":
            next(words, None)
        elif not word.startswith("--out="):
            kept.append(word)
    return ("rtscope", *kept)


def _open(path: Path, *, yes: bool) -> tuple[Campaign, ResultDir, tuple[str, ...]]:
    document = read_campaign(path)
    campaign = from_dict(document.get("campaign"), source=str(path / "campaign.json"))
    if campaign.command and not yes:
        _ask(campaign)
    command = document.get("command")
    typed = command if isinstance(command, list) else []
    return campaign, ResultDir(path), tuple(str(word) for word in typed)


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


def _check_target(campaign: Campaign, jobs: int | None) -> None:
    """Refuse what the target cannot do, before a directory is made for it."""
    if campaign.target.startswith("virtual:"):
        get_board(campaign.target.removeprefix("virtual:"))
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


def _open_target(
    campaign: Campaign, store: ResultDir
) -> AbstractContextManager[LocalTarget | SshTarget]:
    if campaign.target.startswith("ssh:"):
        return SshTarget(campaign.target.removeprefix("ssh:"))
    return LocalTarget(storage_dir=store.path.resolve())


def _measure(
    campaign: Campaign,
    store: ResultDir,
    typed: tuple[str, ...],
    form: Format,
    *,
    jobs: int | None,
) -> int:
    plan = remaining(make_plan(campaign), store.done_ids())
    try:
        _run_all(plan, campaign, store, typed, jobs=jobs)
    except (RtscopeError, KeyboardInterrupt):
        with contextlib.suppress(RecordError):  # the first cause is the one to tell
            _show(campaign, store, form, so_far=True)
        raise
    return _show(campaign, store, form, so_far=False)


def _run_all(
    plan: Plan,
    campaign: Campaign,
    store: ResultDir,
    typed: tuple[str, ...],
    *,
    jobs: int | None,
) -> None:
    if campaign.target.startswith("virtual:"):
        from rtscope.virtual.matrix import execute_on_board

        with BoardView(stderr_console(), plan) as view:
            for _ in execute_on_board(
                plan,
                campaign,
                store,
                command=typed,
                say=view,
                talk=view.talk,
                jobs=jobs,
            ):
                pass
        return
    with (
        _open_target(campaign, store) as target,
        LiveView(stderr_console(), plan) as view,
    ):
        for _ in execute(plan, campaign, target, store, command=typed, say=view):
            pass


def _show(campaign: Campaign, store: ResultDir, form: Format, *, so_far: bool) -> int:
    records = store.records()
    if not records:
        return 0
    model = verdict.model_of(records, verdict.asked_by(campaign))
    page = store.path / PAGE
    try:
        write_page(model, page)
    except RecordError:
        print_report(model, form)
        raise
    print_report(model, form, page=page)
    if so_far:
        print(
            f"rtscope: this is what was measured; go on with: rtscope run --resume "
            f"{shlex.quote(str(store.path))}",
            file=sys.stderr,
        )
    return verdict.exit_status(model)
