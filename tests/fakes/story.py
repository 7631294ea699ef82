"""A campaign on a fake target, told as it went."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from fakes.faketarget import FakeTarget
from fakes.targets import target
from rtscope.contract import Line
from rtscope.measure.campaign.model import Campaign, RunTable
from rtscope.measure.execute import (
    Event,
    LineReceived,
    RunFinished,
    RunStarted,
    SettingsChanged,
    Settling,
    execute,
)
from rtscope.measure.machine import MachineRunner
from rtscope.measure.plan import make_plan
from rtscope.record.directory.records import ResultDir, create
from rtscope.record.model import RunRecord
from rtscope.stats.runcaveats import all_caveats

TWO_CPUS = "Name:\tagent\nCpus_allowed_list:\t0-1\n"
"""/proc/self/status of a program that may use two CPUs."""


@dataclass(slots=True)
class Story:
    """A campaign on a fake target, told as it went."""

    campaign: Campaign
    target: FakeTarget
    store: ResultDir
    hear: Callable[[Line], None] = lambda line: None

    def tell(self, event: Event) -> None:
        """Note what is not in the target's log already."""
        match event:
            case Settling():
                self.target.log.append("settle")
            case SettingsChanged():
                self.target.log.append(f"tuned {' '.join(event.tuned.changed)}")
            case RunStarted():
                self.target.log.append(f"begin {event.run.id}")
            case RunFinished():
                there = {p.name for p in self.run_dir(event.record).iterdir()}
                self.target.log.append(
                    f"saved {' '.join(sorted(there - {'audit.json'}))}"
                )
            case LineReceived():
                self.hear(event.line)

    def run_dir(self, record: RunRecord) -> Path:
        """Return where the files of a run lie."""
        return self.store.run_dir(record.run.id)

    def run(self) -> Iterator[RunRecord]:
        """Execute."""
        runner = MachineRunner(self.target, self.campaign, ("rtscope", "run"))
        plan = make_plan(self.campaign)
        return execute(plan, runner, self.store, on_event=self.tell)


StoryOf = Callable[..., Story]


def stories(folder: Path) -> StoryOf:
    """Return what makes a story of these loads, whose results lie in the folder."""

    def make(
        *loads: str,
        on: FakeTarget | None = None,
        hear: Callable[[Line], None] = lambda line: None,
        cpus: tuple[int, ...] | None = None,
        **settings: object,
    ) -> Story:
        table = RunTable(loads=loads, durations_ns=(6_000_000_000,))
        table = replace(table, intervals_ns=(100_000_000,))
        campaign = Campaign(runs=(table,), warmup_ns=0)
        if cpus:
            campaign = replace(campaign, runs=(replace(table, cpus=cpus),))
        campaign = replace(campaign, **settings)  # type: ignore[arg-type]
        store = create(folder / "out", {}, command=())
        return Story(campaign, on or target(), store, hear)

    return make


def brief(log: list[str]) -> list[str]:
    """Cut the agents' options off."""
    kept = ("begin", "saved", "stop", "kill", "root")
    return [
        " ".join(line.split()[: 2 if line.split()[0] in kept else 1]) for line in log
    ]


def ids(record: RunRecord) -> set[str]:
    """Return which caveats a record has."""
    return {caveat.id for caveat in all_caveats(record)}


def interrupt_after(lines: int) -> Callable[[Line], None]:
    """Return who hears so many lines, and then wants it to end."""
    heard = 0

    def hear(line: Line) -> None:
        nonlocal heard
        heard += 1
        if heard == lines:
            raise KeyboardInterrupt

    return hear


def detail(record: RunRecord, caveat_id: str) -> str:
    """Return what a record says of a caveat."""
    return next(c.detail for c in record.caveats if c.id == caveat_id)
