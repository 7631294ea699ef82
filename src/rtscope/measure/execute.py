"""
Execute every run of a plan, on a machine or on virtual boards.

A runner measures; `execute` announces each run, saves its attachments and its record,
and announces its end. It saves each record as soon as it is complete, so an interrupted
campaign keeps the finished runs.
"""

import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import FrameType
from typing import Protocol

from rtscope.contract import Line, Tick, dump_line
from rtscope.host.errors import ContractError, MeasurementError, RecordError
from rtscope.host.units import format_duration, format_us
from rtscope.measure.assemble import Measured, assemble
from rtscope.measure.plan import Plan
from rtscope.measure.settings import CampaignTuning
from rtscope.record.directory.records import ResultDir, with_lost
from rtscope.record.model import Run, RunRecord
from rtscope.record.samples import FILE as SAMPLES
from rtscope.record.samples import samples_file

# --- put off Ctrl-C, TERM and HUP in steps that would lose a measurement --------------

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

PATIENCE = 2
"""So many are put off; the next one ends the step after all."""


@contextlib.contextmanager
def put_off() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end of the block for a signal that came in it."""
    came = 0

    def note(_signo: int, _frame: FrameType | None) -> None:
        nonlocal came
        came += 1
        if came > PATIENCE:
            raise KeyboardInterrupt

    former = {
        signo: signal.signal(signo, note)
        for signo in SIGNALS
        if signal.getsignal(signo) not in (signal.SIG_IGN, None)
    }
    try:
        yield
    finally:
        for signo, handler in former.items():
            signal.signal(signo, handler)
    if came:
        raise KeyboardInterrupt


# --- execute every run of a plan, on a machine or on virtual boards -------------------


@dataclass(frozen=True, slots=True)
class Settling:
    """The machine is left idle before the first run."""

    duration_ns: int


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """--tuned changed settings for the campaign, or failed to."""

    tuned: CampaignTuning


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run starts; on virtual boards: it has been measured and will be saved."""

    number: int
    of: int
    run: Run


@dataclass(frozen=True, slots=True)
class LineReceived:
    """An agent wrote a line during a run."""

    line: Line


@dataclass(frozen=True, slots=True)
class BoardProgress:
    """How far one virtual board is."""

    host_s: float
    """Host time since the start of QEMU."""
    virtual_ns: int | None = None
    """Virtual time; None until QEMU runs the guest."""
    measuring_since_ns: int | None = None
    """Virtual time at the begin of the measurement; None before it."""

    @property
    def measured_ns(self) -> int | None:
        """Virtual time since the begin of the measurement; None before it."""
        if self.virtual_ns is None or self.measuring_since_ns is None:
            return None
        return self.virtual_ns - self.measuring_since_ns


@dataclass(frozen=True, slots=True)
class BoardsProgress:
    """How far each running board is, by the id of its run."""

    boards: Mapping[str, BoardProgress]


@dataclass(frozen=True, slots=True)
class WorkerProgress:
    """What one worker of a cluster does, and has done for this campaign."""

    boards: int
    """At the same time."""
    runs: tuple[str, ...] = ()
    """Ids of those that it computes."""
    waiting: int = 0
    """Runs that wait for one of its boards."""
    done: int = 0
    failed: int = 0
    refused: str = ""
    """Why it gets no more runs; empty: it does."""
    is_gone: bool = False


@dataclass(frozen=True, slots=True)
class WorkersProgress:
    """What each worker of a cluster does, by its name; also of those that are gone."""

    workers: Mapping[str, WorkerProgress]


@dataclass(frozen=True, slots=True)
class RunFailed:
    """A run has no result, and the others go on."""

    run: Run


@dataclass(frozen=True, slots=True)
class RunFinished:
    """A run is over, and its record is saved."""

    record: RunRecord


Event = (
    Settling
    | SettingsChanged
    | RunStarted
    | LineReceived
    | BoardsProgress
    | WorkersProgress
    | RunFailed
    | RunFinished
)
OnEvent = Callable[[Event], None]
PendingRuns = Iterator[tuple[Run, Callable[[], Measured]]]


class Runner(Protocol):
    """Measures the runs of a plan: a machine, or virtual boards."""

    def start(
        self, plan: Plan, on_event: OnEvent
    ) -> AbstractContextManager[PendingRuns]:
        """
        Prepare for a whole campaign; undo that at the end of the block.

        The block gets an iterator over runs, each with a function that measures it (or
        returns the result, if it was measured in parallel). Both raise
        MeasurementError, TargetError or BoardError with the first cause.
        """
        ...


def execute(
    plan: Plan, runner: Runner, store: ResultDir, *, on_event: OnEvent
) -> Iterator[RunRecord]:
    """
    Measure every run of the plan; save and yield its record.

    Raises MeasurementError, TargetError or BoardError with the first cause, RecordError
    if a record cannot be written; records saved before that stay. On KeyboardInterrupt
    the run so far is saved as interrupted, then KeyboardInterrupt is raised again; a
    run whose agent was ended by others is saved likewise, then MeasurementError raised.
    So is one whose result never came, with what its agent had told; of an agent that
    told no histogram the lines are kept. The error names the file.
    """
    numbers = {run.id: number for number, run in enumerate(plan.runs, 1)}
    heard = _Heard(on_event)
    with runner.start(plan, heard) as pending:
        for run, measure in pending:
            on_event(RunStarted(numbers[run.id], len(numbers), run))
            heard.lines.clear()
            try:
                measured = measure()
            except MeasurementError as error:
                kept = _keep(heard.lines, store, run)
                raise type(error)(f"{error}{kept}") from error
            lost = measured.seen.lost
            with put_off():
                record = attached(measured, store)
                cut = record.result.stopped is not None
                try:
                    path = store.save(
                        record, interrupted=cut or measured.seen.interrupted
                    )
                except RecordError as error:
                    if lost is None:
                        raise
                    kept = f"{_measured(record)} are lost: {error}"
                    raise type(lost)(f"{lost}; {kept}") from error
            on_event(RunFinished(record))
            yield record
            if measured.seen.interrupted:
                raise KeyboardInterrupt
            if lost is not None:
                raise type(lost)(f"{lost}; {_measured(record)} are in {path}") from lost
            if cut:
                raise MeasurementError(
                    f"{run.id}: the agent was ended by a signal that rtscope did not "
                    "send; find its sender, then type rtscope run --resume"
                )


def attached(measured: Measured, store: ResultDir) -> RunRecord:
    """Write the files of a run; return its record, which names what is missing."""
    record = assemble(measured)
    lost: dict[str, str] = {}
    try:
        kept = samples_file(measured.seen.samples, record)
    except ContractError as error:
        kept, lost[SAMPLES] = None, str(error)
    files = {**measured.attachments, SAMPLES: kept}
    missing = store.attach_files(record.run.id, files)
    return with_lost(record, {**lost, **missing})


def _measured(record: RunRecord) -> str:
    """Return how much of a run was measured, in words."""
    watched_ns = record.result.end_ns - record.result.start_ns
    most = "" if record.max_ns is None else f" (maximum {format_us(record.max_ns)} us)"
    return f"its first {format_duration(watched_ns)}{most}"


@dataclass(slots=True)
class _Heard:
    """The lines of the run under way, in case that its result never comes."""

    on_event: OnEvent
    lines: list[Line] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        """Pass an event on."""
        if isinstance(event, LineReceived):
            self.lines.append(event.line)
        self.on_event(event)


def _keep(lines: list[Line], store: ResultDir, run: Run) -> str:
    """Keep the lines of a run; return the words for its error, empty without a tick."""
    ticks = [line for line in lines if isinstance(line, Tick)]
    if not ticks:
        return ""
    max_ns = max(cpu.max_ns for tick in ticks for cpu in tick.cpus)
    measured = f"its first {format_duration(ticks[-1].t_ns)}"
    try:
        path = store.keep_unfinished(
            run.id, b"".join(dump_line(line) + b"\n" for line in lines)
        )
    except RecordError as error:
        return f"; {measured} (maximum {format_us(max_ns)} us) are lost: {error}"
    return f"; {measured} (maximum {format_us(max_ns)} us) are in {path}"
