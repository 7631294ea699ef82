"""All runs of a plan on a virtual board, as many at once as the host has CPUs."""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime

from rtscope import facts
from rtscope.board.cache import cache_dir
from rtscope.board.catalogue import Board, get_board
from rtscope.board.prepare import Prepared, Workshop, prepare_all
from rtscope.campaign import Campaign
from rtscope.errors import UsageError
from rtscope.execute import Event, RunBegins, RunEnds
from rtscope.loads import (
    LoadCommand,
    MemoryRoom,
    Need,
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
from rtscope.virtual.job import DISK, METRICS, SCRATCH, job_of

DEFAULT_SEED = 1
DISK_BYTES = 128 << 20
"""What a load may count on; the disk in memory is larger."""

SETTLE_S = 10.0
"""Virtual time for boot, warm-up and the end of the load, for the time limit."""


def execute_on_board(
    plan: Plan,
    campaign: Campaign,
    store: ResultDir,
    *,
    command: tuple[str, ...],
    say: Callable[[Event], None],
    talk: Callable[[str], None],
) -> Iterator[RunRecord]:
    """
    Boot the board once for each run; save and yield the records in the plan's order.

    Raises UsageError for what a board cannot do, BoardError if one does not measure.
    """
    board = get_board(campaign.target.removeprefix("virtual:"))
    names = list(dict.fromkeys(run.kernel or board.kernels[0] for run in plan.runs))
    shop = Workshop(cache=cache_dir(os.environ), agent=agent_file, say=talk)
    kernels = dict(zip(names, prepare_all(board, names, workshop=shop), strict=True))
    halt = threading.Event()
    # Each QEMU is one thread of work: more at once than CPUs would only wait.
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        waiting: list[tuple[Run, Future[RunRecord]]] = []
        for run in plan.runs:
            prepared = kernels[run.kernel or board.kernels[0]]
            asked = _asked(run, campaign, board, command)
            waiting.append((run, pool.submit(_measure, asked, prepared, halt.is_set)))
        try:
            for number, (run, future) in enumerate(waiting, 1):
                say(RunBegins(number, len(waiting), run))
                record = future.result()
                store.save(record)
                say(RunEnds(record))
                yield record
        finally:
            halt.set()
            for _, future in waiting:
                future.cancel()


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
    if Need.MEMORY_LIMIT in load.needs:
        raise UsageError(f"the load {load.name} is not there on virtual boards yet")
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


def _measure(
    asked: Asked, prepared: Prepared, stopped: Callable[[], bool]
) -> RunRecord:
    job = job_of(
        asked.run,
        asked.campaign,
        load_argv=asked.load.argv,
        facts=facts.paths(),
        seed=asked.seed,
    )
    virtual_s = asked.run.duration_ns / 1e9 + SETTLE_S
    booted = boot(prepared, job, seed=asked.seed, virtual_s=virtual_s, stopped=stopped)
    return record_of(asked, prepared, booted)
