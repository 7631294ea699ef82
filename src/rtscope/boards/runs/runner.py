"""Run a campaign on virtual boards: one boot per run, as many at once as fit."""

import contextlib
import operator
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.qemu import ProgramView, Recording
from rtscope.boards.recording.programplaces import parts_view
from rtscope.boards.recording.secondpass import is_cut, with_whole_paths
from rtscope.boards.recording.symbols import find_kernel_layout
from rtscope.boards.runs.assemble import inputs_before, inputs_of, measured_on_board
from rtscope.boards.runs.boot import Booted, boot
from rtscope.boards.runs.diagnosis import KERNEL_LOG
from rtscope.boards.runs.prepare import PreparedCampaign, RunRequest, job_for
from rtscope.boards.runs.store import Origin, StoredResults, took
from rtscope.host.errors import BoardError, ContractError, MeasurementError, TargetError
from rtscope.machine.audit.examine import context_of_config
from rtscope.machine.kernelconfig import parse_config
from rtscope.measure import settings
from rtscope.measure.assemble import Measured
from rtscope.measure.execute import BoardProgress, BoardsProgress, OnEvent, PendingRuns
from rtscope.measure.plan import Plan
from rtscope.record.instructions.file import FILE, pack
from rtscope.record.model import Run

POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class BoardRunner:
    """Boots a board once for each prepared run."""

    prepared: PreparedCampaign
    failed: Callable[[str, MeasurementError], None] | None = None
    """Gets a failed run by its id, and the others go on; None: a failure ends all."""
    results: StoredResults | None = None
    """Where what is computed is stored for the next time."""
    reuse: bool = False
    """Whether a result that is stored there is taken instead of a boot."""
    again: Mapping[str, str] = field(default_factory=dict)
    """Runs that always boot, to check another run's result, by its id."""

    @contextlib.contextmanager
    def start(self, plan: Plan, on_event: OnEvent) -> Iterator[PendingRuns]:
        """Boot as many boards as fit, and yield each run when it is over."""
        boots = _Boots()
        with ThreadPoolExecutor(max_workers=self.prepared.at_once) as pool:
            for request, board in self.prepared.runs:
                future = pool.submit(self._measure, request, board, boots)
                boots.futures[future] = request.run
            try:
                yield self._finished(boots, on_event)
            finally:
                boots.halt.set()
                for future in boots.futures:
                    future.cancel()

    def _finished(self, boots: "_Boots", on_event: OnEvent) -> PendingRuns:
        """Yield finished runs, failures last; report the progress of the others."""
        while boots.futures:
            done, _ = wait(boots.futures, timeout=POLL_S, return_when=FIRST_COMPLETED)
            # What was measured beside a failure is kept.
            for future in sorted(done, key=lambda one: one.exception() is not None):
                run, error = boots.futures.pop(future), future.exception()
                if self.failed is not None and isinstance(error, MeasurementError):
                    self.failed(run.id, error)
                else:
                    yield run, future.result
            on_event(BoardsProgress(dict(boots.progress)))

    def _measure(
        self, request: RunRequest, board: Prepared, boots: "_Boots"
    ) -> Measured:
        is_check = request.run.id in self.again
        if (
            self.results is None
            or is_check
            or not is_addressed(board)
            or request.campaign.parts  # a stored result may lack them
        ):
            return measured_of(request, board, _booted(request, board, boots))
        inputs = inputs_before(request, board)
        recording = recording_of(request, board)
        if self.reuse and (stored := self.results.find(inputs, recording)):
            return measured_of(request, board, stored.booted, stored=stored.origin)
        booted = _booted(request, board, boots)
        measured = measured_of(request, board, booted)
        # With more memory, its second pass may have whole paths the next time.
        if inputs == inputs_of(request, board, booted) and not is_cut(booted):
            origin = Origin(request.started)
            self.results.keep(
                inputs, recording, booted, origin, took=took(request, booted)
            )
        return measured


@dataclass(frozen=True, slots=True)
class _Boots:
    """Shared by the boots of a campaign and the thread that waits for them."""

    futures: dict[Future[Measured], Run] = field(default_factory=dict)
    """Boots whose results have not been taken."""
    progress: dict[str, BoardProgress] = field(default_factory=dict)
    """Progress of running boots, by the id of the run."""
    halt: threading.Event = field(default_factory=threading.Event)


def is_addressed(prepared: Prepared) -> bool:
    """Return whether digests name all that boots; one's own QEMU has libraries."""
    return any(part.name.startswith("qemu-") for part in prepared.parts)


def _booted(request: RunRequest, prepared: Prepared, boots: _Boots) -> Booted:
    name = request.run.id
    boots.progress[name] = BoardProgress(host_s=0)
    try:
        return boot_run(
            request,
            prepared,
            recording_of(request, prepared),
            stopped=boots.halt.is_set,
            on_progress=partial(operator.setitem, boots.progress, name),
        )
    except BoardError as error:
        raise type(error)(f"{name}: {error}") from error
    finally:
        boots.progress.pop(name, None)


def boot_run(
    request: RunRequest,
    prepared: Prepared,
    recording: Recording | None,
    *,
    stopped: Callable[[], bool],
    on_progress: Callable[[BoardProgress], None],
) -> Booted:
    """Boot a run, a second time if its paths were cut; BoardError if it fails."""

    view = view_of(request, prepared)

    def booted_with(recording: Recording | None) -> Booted:
        return boot(
            prepared,
            job_for(request, prepared),
            seed=request.seed,
            timeout=request.timeout,
            stopped=stopped,
            on_progress=on_progress,
            recording=recording,
            view=view,
        )

    first = booted_with(recording)
    return with_whole_paths(first, recording, booted_with, stopped=stopped)


def measured_of(
    request: RunRequest,
    prepared: Prepared,
    booted: Booted,
    *,
    stored: Origin | None = None,
    worker: str = "",
) -> Measured:
    """
    Return what a run measured, from what its boot gave or what is `stored` of it.

    Raises BoardError, MeasurementError if it measured nothing.
    """
    stream, trace = _packed(booted.stream, request)
    audited = _audit(prepared)
    attachments = {
        KERNEL_LOG: booted.files.get(KERNEL_LOG),
        FILE: stream,
        settings.FILE: audited.document,
    }
    return measured_on_board(
        request,
        prepared,
        booted,
        trace=trace,
        attachments=attachments,
        audited=audited.caveats,
        reused=stored.started if stored else "",
        worker=stored.worker if stored else worker,
    )


def recording_of(request: RunRequest, prepared: Prepared) -> Recording | None:
    """Return what a run records; None for nothing."""
    if not request.campaign.record:
        return None
    layout = find_kernel_layout(prepared, cache=cache_dir())
    return Recording(request.campaign.worst_kept, layout=layout)


def view_of(request: RunRequest, prepared: Prepared) -> ProgramView | None:
    """Return where a run's parts of wake-ups end; None if they are not asked for."""
    if not request.campaign.parts:
        return None
    return parts_view(prepared, cache=cache_dir(), log=lambda _line: None)


def _packed(
    raw: bytes | None, request: RunRequest
) -> tuple[bytes | None, dict[str, Any]]:
    """Return the recorded paths as an attachment, and the note on it for the record."""
    if not request.campaign.record:
        return None, {"reason": "--no-record"}
    if raw is None:
        return None, {"reason": "the plugin wrote no stream"}
    try:
        content, note = pack(raw, name=FILE)
    except ContractError as error:
        return None, {"reason": str(error)}
    return content, asdict(note)


def _audit(prepared: Prepared) -> settings.AuditResult:
    """
    Audit the kernel of a board by its configuration.

    Files inside would cost a boot, or instructions that disturb the measurement;
    `rtscope audit --target virtual:BOARD` does boot.
    """
    kernel = prepared.kernel
    if kernel.config is None:
        return settings.failed_audit(
            TargetError(f"{kernel.name} is an image without its configuration")
        )
    try:
        config = parse_config(kernel.config.read_bytes(), source=kernel.config.name)
    except (TargetError, OSError) as error:
        return settings.failed_audit(error)
    kinds = settings.run_checks(config_only=True)
    name = f"virtual:{prepared.board.name} with {kernel.name}"
    return settings.audit_files(context_of_config(config), kinds, target=name)
