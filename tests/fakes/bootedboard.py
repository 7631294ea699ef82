"""A virtual board that is not booted: its results are listed."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

from fakes.measurements import measured, on_board, record, thread
from rtscope.host.errors import BoardError, MeasurementError
from rtscope.machine.settings.remedies import TuningPlan
from rtscope.measure.assemble import Measured
from rtscope.measure.execute import OnEvent, PendingRuns
from rtscope.measure.plan import Plan
from rtscope.measure.settings import refuse_missing
from rtscope.record.caveats.catalogue import Caveat, make
from rtscope.record.model import InputDigests, Run, RunRecord


@dataclass(frozen=True)
class FakeRequest:
    """A run, without what its boot would need."""

    run: Run
    tuning: TuningPlan | None = None


AGENT = "agent-x86_64"
"""The part of a board that all kernels have in common."""


class FakeBoard:
    """A board whose results are listed, in the order of the runs."""

    def __init__(self) -> None:
        self.results: list[int] = []
        self.smaller: tuple[int, ...] = ()
        """Latencies of each run besides its result; none: the result, nine times."""
        self.available_kb: list[int] = []
        """The memory available in the first runs; the others have no such fact."""
        self.inputs: dict[str, Any] = {}
        self.agent = "a"
        """The digest of its agent."""
        self.plan: Plan | None = None
        self.fails: Callable[[Run], bool] = lambda _: False
        """Whether a run gives no result."""
        self.error: type[MeasurementError] = BoardError
        """What such a run raises."""
        self.worker_of: Callable[[Run], str] = lambda _: ""
        """Who computes a run."""
        self.paths: tuple[Mapping[str, Any], Mapping[str, bytes]] | None = None
        """What its records note on recorded paths, and the files beside them."""
        self.refuses: Mapping[str, str] = {}
        """Checks that it has no remedy for, with why."""
        self.good: Mapping[str, str] = {}
        """Checks that need none."""
        self.caveats: tuple[Caveat, ...] = ()
        """Of each run."""
        self.reused = False
        """Whether its results are stored ones."""

    def prepare(self, plan: Plan, campaign: Any, **_: Any) -> Any:
        """Prepare nothing; raise what a board without these remedies does."""
        self.plan = plan
        refuse_missing("pc", campaign.tuned, self.refuses)
        runs = [
            (
                FakeRequest(one, TuningPlan(good=self.good)),
                SimpleNamespace(
                    kernel=SimpleNamespace(digest=self._inputs(one)["kernel"]),
                    qemu=SimpleNamespace(digest=self._inputs(one)["qemu"]),
                    plugin_digest=self._inputs(one)["plugin"],
                    parts=[SimpleNamespace(name=AGENT, digest=self.agent)],
                ),
            )
            for one in plan.runs
        ]
        return SimpleNamespace(runs=runs, at_once=1)

    def runner(self, prepared: Any) -> "FakeBoard":
        """Measure by itself."""
        return self

    @contextlib.contextmanager
    def start(self, plan: Plan, on_event: OnEvent) -> Iterator[PendingRuns]:
        """Answer each run at once."""
        yield ((run, partial(self._measure, run)) for run in plan.runs)

    def _measure(self, run: Run) -> Measured:
        if self.fails(run):
            raise self.error(f"{run.id}: it panics")
        latency_ns = self.results.pop(0) if self.results else 5_000
        made = self._record(run, latency_ns)
        if self.paths is None or made.virtual is None:
            return measured(made)
        note, files = self.paths
        virtual = replace(made.virtual, trace=note)
        return measured(replace(made, virtual=virtual), files)

    def _inputs(self, run: Run) -> dict[str, Any]:
        names = ("kernel", "initrd", "qemu", "plugin", "board", "campaign")
        return {**dict.fromkeys(names, "a"), "seed": run.seed, **self.inputs}

    def _record(self, run: Run, latency_ns: int) -> RunRecord:
        inputs = InputDigests(**self._inputs(run))
        facts: dict[str, str | int | bool | None] = {
            "preempt_rt": (run.kernel or "-rt").endswith("-rt")
        }
        if self.available_kb:
            facts["memory_available_kb"] = self.available_kb.pop(0)
        made = on_board(
            record(
                [
                    thread(
                        [*self.smaller, latency_ns]
                        if self.smaller
                        else [latency_ns] * 9,
                        cpu=cpu,
                        policy=run.policy,
                        priority=run.priority,
                        interval_ns=run.interval_ns,
                    )
                    for cpu in run.cpus or (0,)
                ],
                facts=facts,
                caveats=self.caveats,
            ),
            seed=inputs.seed,
            worker=self.worker_of(run),
            kernel_digest=inputs.kernel,
            initrd_digest=inputs.initrd,
            qemu_digest=inputs.qemu,
            plugin_digest=inputs.plugin,
            input_digests=inputs,
            part_digests={AGENT: self.agent},
        )
        if self.reused and made.virtual is not None:
            told = make("result_reused", "computed at noon")
            virtual = replace(made.virtual, reused=True)
            made = replace(made, virtual=virtual, caveats=(*made.caveats, told))
        return replace(made, run=run)
