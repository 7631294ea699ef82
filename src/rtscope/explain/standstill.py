"""
When a whole board slept although a thread's timer was due. Pure.

A path counts instructions, and a board that sleeps executes none. The timer of a thread
that is real-time ends such a sleep when it is due. That of another may wait for its
slack, 50 us as a rule: by then the count back from the mark has gone that far past the
true expiry, into what the thread did before.
"""

from collections.abc import Sequence

from rtscope.explain.calls import Run
from rtscope.explain.names import Role
from rtscope.explain.naming import is_any
from rtscope.explain.tasks import Tasks
from rtscope.explain.way import Context, find_way, first_of


def standstill_end(
    runs: Sequence[Run], contexts: Sequence[Context], expiry: int, *, tasks: Tasks
) -> int | None:
    """
    Return where the board began to execute again, as a count of instructions.

    None if the CPU did not sleep between the expiry as counted and the wake-up: only a
    thread that went to sleep behind that, on a CPU that became idle, tells of it.
    """
    slept = [
        i
        for i in tasks.departures(runs)
        if runs[i].begin >= expiry and is_any(runs[i], Role.SLEEP)
    ]
    if not slept:
        return None
    way = find_way(runs, contexts, runs[slept[-1]].end, tasks=tasks)
    came = way.entered if way.expired is None else first_of(contexts, runs, way.expired)
    if came is None or not any(
        is_any(run, Role.IDLE) for run in runs[slept[-1] : came]
    ):
        return None
    return runs[came].begin
