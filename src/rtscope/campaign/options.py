"""Options of the command line in the place of a campaign's values."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated

import typer

from rtscope.campaign.check import BOARDS_ONLY
from rtscope.campaign.file import checked, key_schemas, validated, written
from rtscope.campaign.model import Campaign
from rtscope.campaign.values import REALTIME_POLICIES


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options that stand for a campaign's keys, as typed; None: not given."""

    target: Annotated[
        str | None, typer.Option(help="local, ssh:HOST or virtual:BOARD.")
    ] = None
    kernel: Annotated[
        str | None,
        typer.Option(help="Of a virtual board: NAME,NAME, or images: ./bzImage."),
    ] = None
    load: Annotated[
        str | None, typer.Option(help="Loads: idle,cpu,os,memory,storage,...")
    ] = None
    duration: Annotated[str | None, typer.Option(help="Of each run: 10m.")] = None
    interval: Annotated[
        str | None, typer.Option(help="Between two wake-ups: 200us.")
    ] = None
    policy: Annotated[
        str | None, typer.Option(help="fifo, rr, other, batch, idle or deadline.")
    ] = None
    priority: Annotated[str | None, typer.Option(help="1 to 99, fifo and rr.")] = None
    cpus: Annotated[
        str | None, typer.Option(help="To measure: 2-3. Leave one out if you can.")
    ] = None
    repetitions: Annotated[
        int | None,
        typer.Option(
            help="Repetitions of each run: 4 or more to compare, 2 or more boots of a "
            "virtual board for --require-identical; default 1."
        ),
    ] = None
    require_identical: Annotated[
        bool | None,
        typer.Option(
            "--require-identical",
            help="Exit status 1 unless all repetitions on a virtual board have "
            "identical results; needs --repetitions 2 or more.",
        ),
    ] = None
    deadline: Annotated[str | None, typer.Option(help="Asks for a verdict: 200us.")] = (
        None
    )
    claim: Annotated[
        str | None, typer.Option(help="What is to be shown: 1/1h, with --deadline.")
    ] = None
    min_boots: Annotated[int | None, typer.Option(help="Boots that a claim needs.")] = (
        None
    )
    settle: Annotated[
        str | None, typer.Option(help="Leave the machine alone first: 3m.")
    ] = None
    warmup: Annotated[
        str | None, typer.Option(help="Of a load before its samples count: 1s.")
    ] = None
    seed: Annotated[int | None, typer.Option(help="Of a virtual board.")] = None
    seeds: Annotated[
        str | None,
        typer.Option(help="Everything with each: 8 for 1 to 8, or a list: 1,5,9."),
    ] = None
    qemu: Annotated[
        str | None, typer.Option(help="Your own, for a virtual board: its path.")
    ] = None
    lockfile: Annotated[
        str | None,
        typer.Option(help="Lock file: the exact packages of a virtual board."),
    ] = None
    governor: Annotated[
        str | None, typer.Option(help="CPU frequency governor, put back afterwards.")
    ] = None
    hold_cpu_awake: Annotated[
        bool | None,
        typer.Option(
            "--hold-cpu-awake",
            help="Forbid idle states, if your application does so too.",
        ),
    ] = None
    rt_throttling: Annotated[
        str | None, typer.Option(help="off: lift the limit, put back afterwards.")
    ] = None
    tuned: Annotated[
        str | None,
        typer.Option(help="Hold what checks of the audit need: safe, or ID,ID."),
    ] = None
    storage_dir: Annotated[
        str | None, typer.Option(help="For the storage load: on a real disk.")
    ] = None
    command: Annotated[
        str | None, typer.Option(help="The custom load, as one quoted line.")
    ] = None
    guest_files: Annotated[
        str | None,
        typer.Option(
            help="Files below /files of a virtual board, for --command: PATH,PATH."
        ),
    ] = None
    worst: Annotated[
        int | None, typer.Option(help="Worst wake-ups to keep per CPU.")
    ] = None
    record: Annotated[
        bool | None,
        typer.Option(
            "--record/--no-record",
            help="The paths to the worst wake-ups of a virtual board; on by default.",
        ),
    ] = None
    explain: Annotated[
        bool | None, typer.Option("--explain", help="Trace a machine's worst wake-ups.")
    ] = None

    @property
    def given(self) -> Mapping[str, str | int | bool]:
        """The options that were typed, by their names."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


def option_of(key: str) -> str:
    """Return the name of the option that stands for a key such as `run.load`."""
    name = {"target.address": "target", "kernel.names": "kernel"}.get(key)
    return name or key.partition(".")[2]


def with_options(campaign: Campaign, options: Options) -> Campaign:
    """
    Return the campaign with the options in place of its own values.

    An option of [[run]] holds for every run. Raises UsageError as the file would,
    naming the option.
    """
    given = options.given
    keys = [key for key in key_schemas() if option_of(key) in given]
    if not keys:
        return campaign

    values = written(campaign)
    for key in keys:
        table, _, name = key.partition(".")
        for place in values["run"] if table == "run" else (values,):
            place[name if table == "run" else key] = given[option_of(key)]
    return checked(_without_displaced(validated(values, _at), options), _at)


def _at(key: str, _number: int) -> str:
    return f"--{option_of(key).replace('_', '-')}"


def _without_displaced(campaign: Campaign, options: Options) -> Campaign:
    """Drop what the campaign had that makes no sense with an option's value."""
    if options.load and not options.command and "custom" not in campaign.loads:
        campaign = replace(campaign, command=())
    runs = campaign.runs
    if options.policy:
        policies = set(runs[0].policy_names)
        if not options.priority and not policies & set(REALTIME_POLICIES):
            runs = tuple(replace(run, priorities=()) for run in runs)
        if "deadline" not in policies:
            campaign = replace(campaign, deadline_runtime_ns=None)
    if options.seed is not None and options.seeds is None:
        campaign = replace(campaign, seeds=())
    if options.seeds is not None and options.seed is None:
        campaign = replace(campaign, seed=None)
    if options.target and campaign.board is None:
        of_boards = {key.partition(".")[2] for key in BOARDS_ONLY}
        unset = {name: getattr(Campaign(), name) for name in of_boards}
        kept = {
            name: getattr(campaign, name) for name in options.given if name in unset
        }
        campaign = replace(campaign, **unset | kept)
    # Two [[run]] that differed in nothing but the option are now one.
    return replace(campaign, runs=tuple(dict.fromkeys(runs)))
