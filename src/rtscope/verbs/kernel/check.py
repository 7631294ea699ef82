"""Boot built kernels under load, and check their kernel logs."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from rtscope.boards.kernels.catalogue import Kernel
from rtscope.boards.kernels.recipe import find_recipe
from rtscope.boards.runs.diagnosis import (
    KERNEL_LOG,
    BuiltKernel,
    SmokeBoot,
    SmokeTest,
    smoke_test,
)
from rtscope.boards.runs.prepare import PreparedCampaign, prepare_campaign
from rtscope.boards.runs.runner import BoardRunner
from rtscope.cli.console import (
    Json,
    note,
    put,
    put_blocks,
    put_json,
    stderr_console,
    typed_words,
)
from rtscope.cli.progress import LiveDisplay, Waiting
from rtscope.host.errors import HostError, MeasurementError
from rtscope.host.escape import printable
from rtscope.host.files.heldfolders import temporary_folder
from rtscope.host.units import format_us
from rtscope.machine.kernelconfig import parse_config
from rtscope.measure.campaign.file import to_dict, with_places
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.campaign.options import Options, help_of, with_options
from rtscope.measure.execute import execute
from rtscope.measure.plan import make_plan
from rtscope.present.document import Column, Span, Table
from rtscope.record.directory.place import refuse_used
from rtscope.record.directory.records import ResultDir, create

MAX_MESSAGES = 10
"""Messages of a kernel that are printed; --json has all."""

DIGITS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """The arguments and options of `rtscope kernel check`."""

    names: Annotated[list[str], typer.Argument()]
    """Recipes, by name or path, e.g. ./my.toml."""
    load: Annotated[str | None, typer.Option(help=help_of("run.load"))] = None
    duration: str = "2s"
    """Virtual time under each load (default: 2s), e.g. 10s."""
    interval: str = "1ms"
    """Interval between two wake-ups (default: 1ms), e.g. 200us."""
    settle: str | None = None
    """Virtual time between boot and load (default: 10s), e.g. 30s."""
    out: Path | None = None
    """Directory to keep records and kernel logs in, e.g. results."""
    json: Json = False


def check(request: CheckRequest) -> int:
    """Boot kernels on their virtual boards under each load, and check their logs.

    Kernels not in the cache are built first. The exit status is 1 if a boot fails, if
    another kernel than the built one boots, or if the kernel log shows a problem.
    """
    boards = {name: find_recipe(name).board for name in request.names}
    options = Options(
        load=request.load,
        duration=request.duration,
        interval=request.interval,
        settle=request.settle,
    )
    for board in boards.values():
        if request.out is not None:
            refuse_used(request.out / board, empty=False)
    with ExitStack() as stack:
        folder = request.out or stack.enter_context(
            temporary_folder("check", error=HostError)
        )
        outcomes: list[SmokeTest] = []
        for board in dict.fromkeys(boards.values()):
            kernels = [name for name, its in boards.items() if its == board]
            outcomes += _check_on(board, kernels, folder / board, options)
    if request.json:
        put_json([asdict(one) | {"good": one.good} for one in outcomes])
    else:
        print_outcomes(outcomes)
    return int(not all(one.good for one in outcomes))


def _check_on(
    board: str, kernels: Sequence[str], folder: Path, options: Options
) -> list[SmokeTest]:
    """Boot all kernels of one board."""
    boots = Campaign(target=f"virtual:{board}", kernels=tuple(kernels), record=False)
    campaign = with_places(with_options(boots, options), Path.cwd())
    plan, typed = make_plan(campaign), typed_words()
    with Waiting(stderr_console()) as waiting:
        prepared = prepare_campaign(
            plan,
            campaign,
            command=typed,
            log=waiting.over(note),
            progress=waiting,
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    store = create(folder, to_dict(campaign), command=typed)
    failures: dict[str, str] = {}

    def failed(run: str, error: MeasurementError) -> None:
        failures[run] = str(error)

    runner = BoardRunner(prepared, failed=failed)
    with LiveDisplay(stderr_console(), plan) as display:
        for _ in execute(plan, runner, store, on_event=display):
            pass
    return _outcomes(prepared, store, failures)


def _outcomes(
    campaign: PreparedCampaign, store: ResultDir, failures: Mapping[str, str]
) -> list[SmokeTest]:
    kernels = {request.run.id: prepared.kernel for request, prepared in campaign.runs}
    boots: dict[str, list[SmokeBoot]] = {}
    for record in store.records():
        log = store.run_dir(record.run.id) / KERNEL_LOG
        text = log.read_text("utf-8", "replace") if log.exists() else ""
        boots.setdefault(kernels[record.run.id].digest, []).append(
            SmokeBoot(record, text)
        )
    return [
        smoke_test(
            _built(kernel),
            boots.get(kernel.digest, []),
            failures=[
                why
                for run, why in failures.items()
                if kernels[run].digest == kernel.digest
            ],
        )
        for kernel in {one.digest: one for one in kernels.values()}.values()
    ]


def _built(kernel: Kernel) -> BuiltKernel:
    assert kernel.config is not None
    assert kernel.release is not None
    config = parse_config(kernel.config.read_bytes(), source=str(kernel.config))
    return BuiltKernel(
        kernel.name,
        kernel.release,
        kernel.digest,
        config.digest,
        preempt_rt=config.is_on("PREEMPT_RT"),
    )


def _log_cell(one: SmokeTest) -> Span:
    if one.messages:
        return f"{len(one.messages)} lines", "bad"
    return ("clean", "good") if one.worst_ns else ("none", "bad")


def print_outcomes(outcomes: Sequence[SmokeTest]) -> None:
    """Print a row for each kernel, then its problems."""
    loads = list(dict.fromkeys(load for one in outcomes for load in one.worst_ns))
    # In a narrow terminal release and digest wrap: a number must stay whole.
    columns = (
        Column("kernel"),
        Column("release", fit="wraps"),
        *(Column(load, right=True) for load in loads),
        Column("log"),
        Column("kernel_digest", fit="wraps"),
    )
    rows = [
        (
            printable(one.kernel.name),
            one.kernel.release,
            *(format_us(one.worst_ns.get(load)) for load in loads),
            _log_cell(one),
            one.kernel.digest[:DIGITS],
        )
        for one in outcomes
    ]
    said = "Longest latency in virtual µs, in a short run."
    put_blocks(Table(columns, rows), (said, "muted"))
    for one in outcomes:
        for problem in one.problems:
            # The reason of a failed boot includes the end of its console.
            for line in problem.splitlines():
                put(f"{one.kernel.name}: {printable(line)}\n")
        for message in one.messages[:MAX_MESSAGES]:
            put(f"{one.kernel.name}: kernel log: {printable(message.text)}\n")
        if len(one.messages) > MAX_MESSAGES:
            put(f"{one.kernel.name}: {len(one.messages) - MAX_MESSAGES} more: --json\n")
