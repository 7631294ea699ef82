"""All runs of a plan on a virtual board, as many at once as there is room for."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from typing import Any

from rtscope.board.cache import cache_dir
from rtscope.board.prepare import Prepared
from rtscope.errors import BoardError, ContractError
from rtscope.exectrace.file import FILE, pack
from rtscope.measure import audit
from rtscope.measure.execute import Event, RunBegins, RunEnds
from rtscope.record.attachments import lay_beside, with_lost
from rtscope.record.model import RunRecord
from rtscope.record.resultdir import ResultDir
from rtscope.virtual.assemble import record_of
from rtscope.virtual.audit import audit_board
from rtscope.virtual.boot import ToRecord, boot
from rtscope.virtual.inputs import Asked
from rtscope.virtual.prepare import Ready, job_for
from rtscope.virtual.smoketest import KERNEL_LOG
from rtscope.virtual.symbols import kernel_places
from rtscope.virtual.timeout import Patience, Progress

LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class Boots:
    """How far the boards are that run now, by the runs' names."""

    progress: Mapping[str, "BoardProgress"]


@dataclass(frozen=True, slots=True)
class BoardProgress:
    """One of them."""

    host_s: float
    """Since it was started."""
    progress: Progress | None
    """None before QEMU has begun to run it."""


@dataclass(frozen=True, slots=True)
class _Desk:
    """What the boots of a campaign share with the one that waits for them."""

    store: ResultDir
    halt: threading.Event = field(default_factory=threading.Event)
    running: dict[str, BoardProgress] = field(default_factory=dict)


def execute_on_board(
    ready: Ready,
    store: ResultDir,
    *,
    say: Callable[[Event | Boots], None],
    failed: Callable[[str, BoardError], None] | None = None,
) -> Iterator[RunRecord]:
    """
    Boot the board once for each run; save and yield the records as they are done.

    Raises BoardError if a board does not measure, which ends the others too; unless
    `failed` takes it, with the identity of its run.
    """
    desk = _Desk(store)
    with ThreadPoolExecutor(max_workers=ready.at_once) as pool:
        waiting = {
            pool.submit(_measure, asked, prepared, desk): number
            for number, (asked, prepared) in enumerate(ready.runs, 1)
        }
        try:
            for future in _as_done(waiting, desk, say):
                number, error = waiting[future], future.exception()
                if failed is not None and isinstance(error, BoardError):
                    failed(ready.runs[number - 1][0].run.id, error)
                    continue
                record = future.result()
                store.save(record)
                say(RunBegins(number, len(waiting), record.run))
                say(RunEnds(record))
                yield record
        finally:
            desk.halt.set()
            for future in waiting:
                future.cancel()


def _as_done(
    futures: Mapping[Future[RunRecord], int],
    desk: _Desk,
    say: Callable[[Event | Boots], None],
) -> Iterator[Future[RunRecord]]:
    """Yield what is done, of several failures last; tell how far the rest is."""
    left = set(futures)
    while left:
        done, left = wait(left, timeout=LOOK_S, return_when=FIRST_COMPLETED)
        # What was measured beside a failure is kept.
        yield from sorted(done, key=lambda one: one.exception() is not None)
        say(Boots(dict(desk.running)))


def _measure(asked: Asked, prepared: Prepared, desk: _Desk) -> RunRecord:
    run = asked.run
    began = time.monotonic()

    def hear(progress: Progress | None) -> None:
        desk.running[run.id] = BoardProgress(time.monotonic() - began, progress)

    hear(None)
    warmup_ns = asked.campaign.settling_ns + asked.campaign.warmup_ns
    try:
        booted = boot(
            prepared,
            job_for(asked, prepared),
            seed=asked.seed,
            patience=Patience(run.duration_ns, warmup_ns),
            stopped=desk.halt.is_set,
            hear=hear,
            record=_to_record(asked, prepared),
        )
    except BoardError as error:
        raise BoardError(f"{run.id}: {error}") from error
    finally:
        desk.running.pop(run.id, None)
    stream, trace = _packed(booted.stream, asked)
    audited = audit_board(prepared)
    beside = {
        KERNEL_LOG: booted.files.get(KERNEL_LOG),
        FILE: stream,
        audit.FILE: audited.document,
    }
    lost = lay_beside(desk.store, run.id, beside)
    if FILE in lost:
        trace = {"why": f"{FILE} could not be written: {lost[FILE]}"}
    record = record_of(asked, prepared, booted, trace=trace, audited=audited.caveats)
    return with_lost(record, lost)


def _to_record(asked: Asked, prepared: Prepared) -> ToRecord | None:
    if not asked.campaign.record:
        return None
    places = kernel_places(prepared, cache=cache_dir(os.environ))
    return ToRecord(asked.campaign.worst, places=places)


def _packed(raw: bytes | None, asked: Asked) -> tuple[bytes | None, dict[str, Any]]:
    """Return the stream as it is to lie beside the record, and what that says of it."""
    if not asked.campaign.record:
        return None, {"why": "--no-record"}
    if raw is None:
        return None, {"why": "the plugin wrote no stream"}
    try:
        content, note = pack(raw, name=FILE)
    except ContractError as error:
        return None, {"why": str(error)}
    return content, asdict(note)
