"""The workers of a cluster in the live display: what each computes, which are lost."""

from collections import Counter
from collections.abc import Mapping

from rich.console import Group
from rich.text import Text

from rtscope.cli.console import plain_table
from rtscope.host.escape import printable
from rtscope.host.units import plural
from rtscope.measure.execute import WorkerProgress

MAX_WORKERS_SHOWN = 16
LAST = "computes"


def boards_of(worker: WorkerProgress) -> int:
    """Return how many runs a worker computes at the same time now."""
    return 0 if worker.is_gone or worker.refused else worker.boards


def table_of_workers(
    workers: Mapping[str, WorkerProgress], names: Mapping[str, str]
) -> Group:
    """Return the table; `names` are those of runs, by their ids."""
    numbers = ("boards", "done", "failed")
    # The last column alone is cut where the terminal is narrow.
    table = plain_table("worker", *numbers, LAST, numbers=numbers, wraps=[LAST])
    table.header_style = "dim"
    # What is wrong is last, where it stays when the others come and go.
    last = sorted(workers, key=lambda name: (boards_of(workers[name]) == 0, name))
    for name in last[:MAX_WORKERS_SHOWN]:
        worker = workers[name]
        table.add_row(
            printable(name.partition("://")[2] or name, limit=28),
            f"{boards_of(worker)}",
            f"{worker.done:,}",
            f"{worker.failed:,}",
            _doing(worker, names),
        )
    more = [workers[name] for name in last[MAX_WORKERS_SHOWN:]]
    if not more:
        return Group(table)
    return Group(table, f"and {plural(len(more), 'more worker')}: {_states(more)}")


def _doing(worker: WorkerProgress, names: Mapping[str, str]) -> Text:
    """Return what a worker computes, or why it does not, in one line."""
    if worker.is_gone:
        text, style = "gone: others compute its runs", "yellow"
    elif worker.refused:
        text, style = f"no more runs: {printable(worker.refused)}", "yellow"
    else:
        text, style = _runs(worker, names), ""
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _runs(worker: WorkerProgress, names: Mapping[str, str]) -> str:
    if not worker.runs:
        return ""
    first, *others = worker.runs
    more = [f"{len(others)} more"] if others else []
    if worker.waiting:
        more.append(f"{worker.waiting} waiting")
    counts = f" (+ {', '.join(more)})" if more else ""
    return f"{names.get(first, '')}{counts}"


def _states(workers: list[WorkerProgress]) -> str:
    counts = Counter(map(_state, workers))
    verbs = {
        "compute": ("computes", "compute"),
        "gone": ("is gone", "are gone"),
        "no more": ("gets no more", "get no more"),
    }
    return ", ".join(
        f"{counts[state]} {one if counts[state] == 1 else many}"
        for state, (one, many) in verbs.items()
        if counts[state]
    )


def _state(worker: WorkerProgress) -> str:
    if worker.is_gone:
        return "gone"
    return "no more" if worker.refused else "compute"
