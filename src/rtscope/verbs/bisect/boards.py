"""Boot each kernel of a search on its virtual board, once for each seed."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from rtscope.boards.catalogue import get_board, with_append
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import Part
from rtscope.boards.parts.prepare import prepare_with
from rtscope.boards.runs.prepare import PreparedCampaign, capacity_for, request_for
from rtscope.boards.runs.runner import BoardRunner
from rtscope.boards.runs.store import StoredResults
from rtscope.host.errors import MeasurementError, UsageError
from rtscope.measure.campaign.file import to_dict
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.campaign.options import Options, with_options
from rtscope.measure.execute import OnEvent, execute
from rtscope.measure.plan import Plan, make_plan, remaining
from rtscope.record.directory.place import CAMPAIGN, SEARCH, refuse_gone
from rtscope.record.directory.records import ResultDir, create
from rtscope.stats.runcaveats import why_left_out
from rtscope.verbs.bisect.criterion import Values, value_of
from rtscope.verbs.bisect.trials import Built

Display = Callable[[Plan], AbstractContextManager[OnEvent]]
"""Shows the progress of boots."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What every kernel is measured with."""

    board: str
    load: str
    duration: str
    interval: str
    seeds: str
    figure: str

    def campaign(self, kernel: str) -> Campaign:
        """Return the campaign for a kernel; UsageError for a wrong value."""
        options = Options(
            target=f"virtual:{self.board}",
            kernel=kernel,
            load=self.load,
            duration=self.duration,
            interval=self.interval,
            seeds=self.seeds,
        )
        campaign = with_options(Campaign(name="bisect"), options)
        if len(campaign.loads) != 1:
            raise UsageError("--load: a search has one load, e.g. cpu")
        return campaign


@dataclass(slots=True)
class VirtualBoards:
    """Boots kernels that lie in the cache."""

    measurement: Measurement
    path: Path
    """The results of the search."""
    context: BuildContext
    part_of: Callable[[str], Part]
    """Returns the part of a kernel, by the digest of its image."""
    command: tuple[str, ...]
    display: Display
    results: StoredResults | None = None
    jobs: int | None = None

    def measure(self, built: Built, name: str) -> Values:
        """Return the figure of each seed; MeasurementError without a valid one."""
        campaign = self.measurement.campaign(built.label)
        plan = make_plan(campaign)
        store = self._store(name, campaign)
        left = remaining(plan, store.done_ids())
        if left.runs:
            self._boot(left, campaign, built, store)
        return self._values(store, campaign)

    def _store(self, name: str, campaign: Campaign) -> ResultDir:
        refuse_gone(self.path)
        path = directory_of(self.path, name)
        if CAMPAIGN.is_in(path):
            return ResultDir(path)
        return create(path, to_dict(campaign), command=self.command)

    def _boot(
        self, plan: Plan, campaign: Campaign, built: Built, store: ResultDir
    ) -> None:
        board = get_board(self.measurement.board)
        prepared = prepare_with(
            board, self.part_of(built.digest), label=built.label, context=self.context
        )
        prepared = replace(prepared, board=with_append(board, campaign.append))
        fit = capacity_for(board, jobs=self.jobs, runs=len(plan.runs))
        requests = [
            request_for(run, campaign, board, self.command) for run in plan.runs
        ]
        whole = PreparedCampaign(
            tuple((request, prepared) for request in requests), fit.boards
        )
        self.context.log(f"measuring {built.label}")
        runner = BoardRunner(whole, results=self.results, reuse=True)
        with self.display(plan) as on_event:
            for _ in execute(plan, runner, store, on_event=on_event):
                pass

    def _values(self, store: ResultDir, campaign: Campaign) -> Values:
        figure = self.measurement.figure
        for record in store.records():
            if why := why_left_out(record):
                raise MeasurementError(
                    f"{store.path}: the run with seed {record.run.seed} says nothing: "
                    f"{why}"
                )
        figures: Mapping[int, float | None] = {
            record.run.seed or 0: value_of(record, figure) for record in store.records()
        }
        values = {s: value for s, value in sorted(figures.items()) if value is not None}
        if missing := [s for s in campaign.run_seeds if s not in values]:
            raise MeasurementError(
                f"{store.path}: no {figure} with seed {missing[0]}: measure longer "
                "(--duration), or choose another figure"
            )
        return values


def directory_of(path: Path, name: str) -> Path:
    """Return where the records of a kernel are."""
    return path / SEARCH.parts / name[:40]


def worst_seed(path: Path) -> int:
    """Return the seed with the longest latency among records of a kernel."""
    records = ResultDir(path).records()
    worst = max(records, key=lambda record: record.max_ns or 0)
    return worst.run.seed or 0
