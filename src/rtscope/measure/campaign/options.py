"""Options of the command line, which replace values of a campaign."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

import typer

from rtscope.measure.campaign.file import (
    BOARDS_ONLY,
    HWLAT_USUAL_NS,
    At,
    checked,
    description,
    field_of,
    is_hwlat,
    is_timerlat,
    key_schemas,
    validated,
    written,
)
from rtscope.measure.campaign.messages import (
    BOARDS,
    MEASURE,
    SETTINGS,
    VERDICT,
    WHERE,
    help_text,
)
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.campaign.values import REALTIME_POLICIES


def help_of(key: str) -> str:
    """Return the help of a key's option: its description, default and example."""
    schema = key_schemas()[key]
    default = written(Campaign())
    value = (default["run"][0] if key.startswith("run.") else default).get(
        key.removeprefix("run.")
    )
    return help_text(description(key), schema, value)


def _option(key: str, panel: str, *names: str) -> Any:
    return typer.Option(*names, help=help_of(key), rich_help_panel=panel)


_SEVERAL = "Several, with commas between, are measured beside each other."


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options that set a campaign's keys, as typed; None: not given."""

    load: Annotated[str | None, _option("run.load", MEASURE)] = None
    event: Annotated[str | None, _option("run.event", MEASURE)] = None
    duration: Annotated[str | None, _option("run.duration", MEASURE)] = None
    interval: Annotated[str | None, _option("run.interval", MEASURE)] = None
    policy: Annotated[str | None, _option("run.policy", MEASURE)] = None
    priority: Annotated[str | None, _option("run.priority", MEASURE)] = None
    cpus: Annotated[str | None, _option("run.cpus", MEASURE)] = None
    repetitions: Annotated[int | None, _option("run.repetitions", MEASURE)] = None
    warmup: Annotated[str | None, _option("campaign.warmup", MEASURE)] = None
    settle: Annotated[str | None, _option("campaign.settle", MEASURE)] = None
    command: Annotated[str | None, _option("campaign.command", MEASURE)] = None
    storage_dir: Annotated[str | None, _option("target.storage_dir", MEASURE)] = None
    worst: Annotated[int | None, _option("campaign.worst", MEASURE)] = None
    explain: Annotated[
        bool | None, _option("campaign.explain", MEASURE, "--explain")
    ] = None
    parts: Annotated[bool | None, _option("campaign.parts", MEASURE, "--parts")] = None
    keep_samples: Annotated[
        bool | None, _option("campaign.keep_samples", MEASURE, "--keep-samples")
    ] = None
    target: Annotated[
        str | None,
        typer.Option(
            help=f"{help_of('target.address')} {_SEVERAL}", rich_help_panel=WHERE
        ),
    ] = None
    kernel: Annotated[str | None, _option("kernel.names", WHERE)] = None
    deadline: Annotated[str | None, _option("campaign.deadline", VERDICT)] = None
    claim: Annotated[str | None, _option("campaign.claim", VERDICT)] = None
    min_boots: Annotated[int | None, _option("campaign.min_boots", VERDICT)] = None
    require_identical: Annotated[
        bool | None,
        _option("campaign.require_identical", VERDICT, "--require-identical"),
    ] = None
    seed: Annotated[int | None, _option("campaign.seed", BOARDS)] = None
    seeds: Annotated[str | None, _option("campaign.seeds", BOARDS)] = None
    guest_files: Annotated[str | None, _option("campaign.guest_files", BOARDS)] = None
    record: Annotated[
        bool | None, _option("campaign.record", BOARDS, "--record/--no-record")
    ] = None
    host_limit: Annotated[str | None, _option("campaign.host_limit", BOARDS)] = None
    qemu: Annotated[str | None, _option("target.qemu", BOARDS)] = None
    append: Annotated[str | None, _option("kernel.append", BOARDS)] = None
    lockfile: Annotated[str | None, _option("target.lockfile", BOARDS)] = None
    governor: Annotated[str | None, _option("target.governor", SETTINGS)] = None
    hold_cpu_awake: Annotated[
        bool | None, _option("target.hold_cpu_awake", SETTINGS, "--hold-cpu-awake")
    ] = None
    rt_throttling: Annotated[str | None, _option("target.rt_throttling", SETTINGS)] = (
        None
    )
    tuned: Annotated[str | None, _option("target.tuned", SETTINGS)] = None

    @property
    def values(self) -> Mapping[str, str | int | bool]:
        """The options that were typed, by their names."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


def option_of(key: str) -> str:
    """Return the name of the option that stands for a key such as `run.load`."""
    name = {"target.address": "target", "kernel.names": "kernel"}.get(key)
    return name or key.partition(".")[2]


def at_option(key: str, _number: int = 0) -> str:
    """Return how the option of a key is typed."""
    return f"--{option_of(key).replace('_', '-')}"


def with_options(campaign: Campaign, options: Options, at: At = at_option) -> Campaign:
    """
    Return the campaign with the options in place of its own values.

    An option of [[run]] holds for every run. Raises UsageError as the file would,
    naming the option, or its place.
    """
    by_option = options.values
    keys = [key for key in key_schemas() if option_of(key) in by_option]
    if not keys:
        return campaign

    values = written(campaign)
    for key in keys:
        table, _, name = key.partition(".")
        for place in values["run"] if table == "run" else (values,):
            place[name if table == "run" else key] = by_option[option_of(key)]
    return checked(_without_displaced(validated(values, at), options), at)


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
    is_hole = options.event and all(map(is_hwlat, runs[0].event_texts))
    if is_hole and not options.interval:
        runs = tuple(replace(run, intervals_ns=(HWLAT_USUAL_NS,)) for run in runs)
    if options.event and all(map(is_timerlat, runs[0].event_texts)):
        usual = ("other",) if options.policy is None else runs[0].policy_names
        runs = tuple(replace(run, policy_names=usual, priorities=()) for run in runs)
    if options.seed is not None and options.seeds is None:
        campaign = replace(campaign, seeds=())
    if options.seeds is not None and options.seed is None:
        campaign = replace(campaign, seed=None)
    if options.target and campaign.board is None:
        of_boards = {key.partition(".")[2]: field_of(key) for key in BOARDS_ONLY}
        unset = {field: getattr(Campaign(), field) for field in of_boards.values()}
        kept = {
            field: getattr(campaign, field)
            for name, field in of_boards.items()
            if name in options.values
        }
        campaign = replace(campaign, **unset | kept)
    # Two [[run]] that differed in nothing but the option are now one.
    return replace(campaign, runs=tuple(dict.fromkeys(runs)))
