"""Run the boots of a test: as many at once as this computer has CPUs and memory for."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from rtscope.boards.runs.prepare import capacity_for
from rtscope.boards.runs.program import ProgramRun, run_program
from rtscope.host.process import Progress, Step
from rtscope.verbs.test.plan import Boot


@dataclass(frozen=True, slots=True)
class Ran:
    """A boot, and what it gave."""

    boot: Boot
    run: ProgramRun


def run_boots(
    boots: Sequence[Boot], *, jobs: int | None, progress: Progress
) -> Iterator[Ran]:
    """
    Run boots and yield each with its result, in their order.

    At most `jobs` at once; None: one for each CPU, as far as memory allows. Raises
    BoardError for the first that did not run as asked, and ends the others.
    """
    at_once = min(
        capacity_for(one.prepared.board, jobs=jobs, runs=len(boots)).boards
        for one in boots
    )
    halt, done = threading.Event(), 0

    def told(step: Step) -> None:
        whole = f" (boot {done + 1} of {len(boots)})" if len(boots) > 1 else ""
        progress(Step(f"{step.what}{whole}", step.done, step.about, step.unit))

    with ThreadPoolExecutor(max_workers=at_once) as pool:
        futures = [
            pool.submit(
                run_program,
                one.prepared,
                one.job,
                view=one.view,
                stopped=halt.is_set,
                progress=told,
            )
            for one in boots
        ]
        try:
            for boot, future in zip(boots, futures, strict=True):
                yield Ran(boot, future.result())
                done += 1
        finally:
            halt.set()
            for future in futures:
                future.cancel()
