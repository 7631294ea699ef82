"""All runs of a plan on a virtual board, as many at once as the host has CPUs."""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from rtscope import facts
from rtscope.board.prepare import Prepared
from rtscope.execute import Event, RunBegins, RunEnds
from rtscope.record import Run, RunRecord
from rtscope.resultdir import ResultDir
from rtscope.virtual.answer import record_of
from rtscope.virtual.boot import boot
from rtscope.virtual.inputs import Asked
from rtscope.virtual.job import job_of
from rtscope.virtual.ready import Ready

SETTLE_S = 10.0
"""Virtual time for boot, warm-up and the end of the load, for the time limit."""


def execute_on_board(
    ready: Ready, store: ResultDir, *, say: Callable[[Event], None]
) -> Iterator[RunRecord]:
    """
    Boot the board once for each run; save and yield the records in the plan's order.

    Raises BoardError if a board does not measure.
    """
    halt = threading.Event()
    # Each QEMU is one thread of work: more at once than CPUs would only wait.
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        waiting: list[tuple[Run, Future[RunRecord]]] = []
        for asked, prepared in ready.runs:
            future = pool.submit(_measure, asked, prepared, halt.is_set)
            waiting.append((asked.run, future))
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
    virtual_s = (asked.run.duration_ns + asked.campaign.settling_ns) / 1e9 + SETTLE_S
    booted = boot(prepared, job, seed=asked.seed, virtual_s=virtual_s, stopped=stopped)
    return record_of(asked, prepared, booted)
