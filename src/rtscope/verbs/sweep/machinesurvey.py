"""A survey of a machine: its loads one after the other, as a campaign."""

from collections.abc import Iterator
from contextlib import ExitStack

from rtscope.cli.console import log, stderr_console
from rtscope.cli.detail import DisplayOptions
from rtscope.cli.progress import LiveDisplay
from rtscope.host.errors import LoadError
from rtscope.machine.target.address import open_target, parse_address
from rtscope.measure.execute import Event, OnEvent, Runner, RunStarted, execute
from rtscope.measure.machine import MachineRunner
from rtscope.measure.plan import Plan, remaining
from rtscope.measure.preflight import refuse_impossible
from rtscope.record.directory.records import ResultDir
from rtscope.record.model import Run
from rtscope.verbs.sweep.directory import SweepWork, create_directories, note_failed
from rtscope.verbs.sweep.show import show_if_cut_short, show_sweep


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
            refuse_impossible(target, campaign, plan)
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
