"""All runs of a plan on a virtual board, as many at once as fit into this machine."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rtscope import facts
from rtscope.board.cache import cache_dir
from rtscope.board.catalogue import Board, get_board
from rtscope.board.prepare import Prepared, Workshop, prepare_all
from rtscope.campaign import Campaign
from rtscope.errors import BoardError
from rtscope.execute import Event, RunBegins, RunEnds
from rtscope.filereader import FileReader
from rtscope.loads import (
    LoadCommand,
    MemoryRoom,
    StorageRoom,
    get_load,
    make_command,
)
from rtscope.plan import Plan
from rtscope.record import Run, RunRecord
from rtscope.resultdir import ResultDir
from rtscope.target.agentfile import agent_file
from rtscope.units import parse_size
from rtscope.virtual.answer import Asked, record_of
from rtscope.virtual.boot import boot
from rtscope.virtual.hostroom import HostRoom, at_once, available_bytes
from rtscope.virtual.job import DISK, METRICS, SCRATCH, job_of
from rtscope.virtual.patience import Patience, Progress

DEFAULT_SEED = 1
DISK_BYTES = 128 << 20
"""What a load may count on; the disk in memory is larger."""

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

    halt: threading.Event = field(default_factory=threading.Event)
    running: dict[str, BoardProgress] = field(default_factory=dict)


def execute_on_board(
    plan: Plan,
    campaign: Campaign,
    store: ResultDir,
    *,
    command: tuple[str, ...],
    say: Callable[[Event | Boots], None],
    talk: Callable[[str], None],
    jobs: int | None = None,
) -> Iterator[RunRecord]:
    """
    Boot the board once for each run; save and yield the records as they are done.

    At most `jobs` boards run at once; without it as many as there are CPUs, if they fit
    into the free memory. Raises UsageError for what a board cannot do, BoardError if
    one does not measure.
    """
    board = get_board(campaign.target.removeprefix("virtual:"))
    room = HostRoom(len(os.sched_getaffinity(0)), available_bytes(FileReader()))
    bound = at_once(room, board, asked=jobs, runs=len(plan.runs))
    asked = [_asked(run, campaign, board, command) for run in plan.runs]
    names = list(dict.fromkeys(run.kernel or board.kernels[0] for run in plan.runs))
    shop = Workshop(cache=cache_dir(os.environ), agent=agent_file, say=talk)
    kernels = dict(zip(names, prepare_all(board, names, workshop=shop), strict=True))
    if bound.said:
        talk(bound.said)
    desk = _Desk()
    with ThreadPoolExecutor(max_workers=bound.boards) as pool:
        waiting = {
            pool.submit(_measure, one, kernels[_kernel(one, board)], desk): number
            for number, one in enumerate(asked, 1)
        }
        try:
            for future in _as_done(waiting, desk, say):
                record = future.result()
                store.save(record)
                say(RunBegins(waiting[future], len(asked), record.run))
                say(RunEnds(record))
                yield record
        finally:
            desk.halt.set()
            for future in waiting:
                future.cancel()


def _kernel(asked: Asked, board: Board) -> str:
    return asked.run.kernel or board.kernels[0]


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


def _asked(
    run: Run, campaign: Campaign, board: Board, command: tuple[str, ...]
) -> Asked:
    return Asked(
        run=run,
        campaign=campaign,
        command=command,
        load=_load(run, campaign, board),
        seed=DEFAULT_SEED if campaign.seed is None else campaign.seed,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _load(run: Run, campaign: Campaign, board: Board) -> LoadCommand:
    load = get_load(run.load)
    cpus = run.cpus or tuple(range(board.cpus))
    return make_command(
        load,
        workers=len(cpus),
        cpus=",".join(map(str, cpus)) if len(cpus) < board.cpus else None,
        scratch_dir=SCRATCH,
        yaml_path=METRICS,
        duration_s=int((run.duration_ns + campaign.warmup_ns) / 1e9) + 1,
        memory=MemoryRoom(parse_size(board.memory)),
        storage=StorageRoom(
            directory=DISK,
            file_systems=("ext4",),
            free_bytes=DISK_BYTES,
            free_inodes=None,
            allow_in_memory=True,
        ),
        custom=campaign.command,
    )


def _measure(asked: Asked, prepared: Prepared, desk: _Desk) -> RunRecord:
    run = asked.run
    job = job_of(
        run,
        asked.campaign,
        load_argv=asked.load.argv,
        facts=facts.paths(),
        seed=asked.seed,
        memory_limit_bytes=asked.load.memory_limit_bytes,
    )
    began = time.monotonic()

    def hear(progress: Progress | None) -> None:
        desk.running[run.id] = BoardProgress(time.monotonic() - began, progress)

    hear(None)
    try:
        booted = boot(
            prepared,
            job,
            seed=asked.seed,
            patience=Patience(run.duration_ns, asked.campaign.warmup_ns),
            stopped=desk.halt.is_set,
            hear=hear,
        )
    except BoardError as error:
        raise BoardError(f"{run.id}: {error}") from error
    finally:
        desk.running.pop(run.id, None)
    return record_of(asked, prepared, booted)
