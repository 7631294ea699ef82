"""
Do what the plan says: every run of a campaign, on a machine or on a virtual board.

A runner measures; here each run is announced, its files and its record are saved, and
its end is told. Records are yielded as they are done, so an interrupted campaign keeps
what it has.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from rtscope.contract import Line
from rtscope.measure.assemble import Measured, assemble
from rtscope.measure.plan import Plan
from rtscope.record.attachments import lay_beside, with_lost
from rtscope.record.model import Run, RunRecord
from rtscope.record.resultdir import ResultDir
from rtscope.tuning.campaign import Tuned


@dataclass(frozen=True, slots=True)
class Settling:
    """The machine is left alone before the first run."""

    duration_ns: int


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """Settings of the machine were changed for the campaign, or could not be."""

    tuned: Tuned


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run starts; or it was measured beside others, and is going to be saved."""

    number: int
    of: int
    run: Run


@dataclass(frozen=True, slots=True)
class LineReceived:
    """A line of the agents, during a run."""

    line: Line


@dataclass(frozen=True, slots=True)
class BoardProgress:
    """How far one virtual board is."""

    host_s: float
    """Since it was started."""
    virtual_ns: int | None = None
    """Its own time; None before QEMU has begun to run it."""
    measuring_since_ns: int | None = None
    """Virtual time when the measurement was seen to run; None before."""

    @property
    def measured_ns(self) -> int | None:
        """Virtual time since then."""
        if self.virtual_ns is None or self.measuring_since_ns is None:
            return None
        return self.virtual_ns - self.measuring_since_ns


@dataclass(frozen=True, slots=True)
class BoardsProgress:
    """How far the boards are that run now, by the runs' names."""

    boards: Mapping[str, BoardProgress]


@dataclass(frozen=True, slots=True)
class RunFinished:
    """A run is over and its record saved."""

    record: RunRecord


Event = (
    Settling
    | SettingsChanged
    | RunStarted
    | LineReceived
    | BoardsProgress
    | RunFinished
)
OnEvent = Callable[[Event], None]
PendingRuns = Iterator[tuple[Run, Callable[[], Measured]]]


class Runner(Protocol):
    """A machine, or virtual boards, on which the runs of a plan are measured."""

    def start(
        self, plan: Plan, on_event: OnEvent
    ) -> AbstractContextManager[PendingRuns]:
        """
        Make ready for a whole campaign; at the block's end all is as it was.

        The block gets each run, when it can be measured or has been, with the function
        that measures it or returns what was measured. Both raise MeasurementError,
        TargetError or BoardError with the first cause.
        """
        ...


def execute(
    plan: Plan, runner: Runner, store: ResultDir, *, on_event: OnEvent
) -> Iterator[RunRecord]:
    """
    Measure every run of the plan, save and yield its record.

    Raises MeasurementError, TargetError or BoardError with the first cause, RecordError
    if a record cannot be written; records saved before it stay. KeyboardInterrupt is
    raised again after what was measured has been saved as interrupted.
    """
    numbers = {run.id: number for number, run in enumerate(plan.runs, 1)}
    with runner.start(plan, on_event) as pending:
        for run, measure in pending:
            on_event(RunStarted(numbers[run.id], len(numbers), run))
            measured = measure()
            record = assemble(measured)
            record = with_lost(record, lay_beside(store, run.id, measured.attachments))
            store.save(record, interrupted=measured.seen.interrupted)
            on_event(RunFinished(record))
            yield record
            if measured.seen.interrupted:
                raise KeyboardInterrupt
