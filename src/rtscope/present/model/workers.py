"""
What the processes of each load did, as a report shows it: that the load was there.

Only of records whose load was watched; others have the sentence on CPU time alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rtscope.host.units import count, plural
from rtscope.present.model.rows import Row
from rtscope.present.words import NOTHING
from rtscope.record.model import WorkerRecord

MAX_SHOWN = 64
"""Processes of a load on a page; the record has all."""

MAX_NAMED = 3
"""Notes in a sentence and in a table; the page has those of each process."""


WHOLE = "the whole time"


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """One process of a load, or the short-lived ones of a name."""

    run: str
    name: str
    pid: str
    task: str
    share: str
    """The CPU time that it had in a window, least to most, as a share of a CPU."""
    voluntary_switches: int
    involuntary_switches: int
    notes: str
    lapsed: bool


@dataclass(frozen=True, slots=True)
class LoadRow:
    """The workers of one load, all runs of it together."""

    name: str
    workers: int
    """Those watched by themselves; of several runs the most."""
    share: str
    operations: str
    """Per second."""
    ran: str
    notes: tuple[str, ...]
    """Who did not work, and when; and what could not be watched."""
    processes: tuple[ProcessRow, ...]
    left_out: int
    """Processes beyond MAX_SHOWN."""

    @property
    def sentence(self) -> str:
        """All of it in words."""
        workers = plural(self.workers, "worker")
        if self.ran == NOTHING:
            said = "no worker lived long enough to be watched by itself"
        elif self.ran == WHOLE:
            said = f"{workers} ran the whole time"
        else:
            said = f"{workers}, of which not all ran the whole time"
        if self.share != NOTHING:
            each = " each" if self.workers > 1 else ""
            said += f", {self.share} of a CPU{each}"
        if self.operations != NOTHING:
            said += f"; {self.operations} operations/s"
        return ". ".join([said, *("; ".join(self.notes),) * bool(self.notes)]) + "."


def load_rows(rows: Sequence[Row]) -> tuple[LoadRow, ...]:
    """Return what is known of the workers of each load that was watched."""
    made = (load_row(row) for row in rows)
    return tuple(one for one in made if one is not None)


def load_row(row: Row) -> LoadRow | None:
    """Return what is known of the workers of a load; None if no run watched them."""
    watched = [record for record in row.counted if record.load.workers]
    if not watched:
        return None
    everyone = [worker for record in watched for worker in record.load.workers]
    alone = [[w for w in r.load.workers if _works_alone(w)] for r in watched]
    share = _share([worker for workers in alone for worker in workers])
    lapsed = any(worker.lapses for worker in everyone)
    rate = row.bogo_ops_per_s
    processes = [
        _process_row(worker, run=record.run.id)
        for record in watched
        for worker in record.load.workers
    ]
    return LoadRow(
        name=row.name,
        workers=max(map(len, alone)),
        share=share,
        operations=NOTHING if rate is None else count(rate),
        ran="not all the time" if lapsed else WHOLE if any(alone) else NOTHING,
        notes=_notes(everyone, not_watched=len(row.counted) - len(watched)),
        processes=tuple(processes[:MAX_SHOWN]),
        left_out=max(0, len(processes) - MAX_SHOWN),
    )


def _works_alone(worker: WorkerRecord) -> bool:
    return not worker.waits and worker.pid is not None


def _share(workers: Sequence[WorkerRecord]) -> str:
    least = [w.least_share for w in workers if w.least_share is not None]
    most = [w.most_share for w in workers if w.most_share is not None]
    if not least or not most:
        return NOTHING
    low, high = f"{100 * min(least):.0f}", f"{100 * max(most):.0f}"
    return f"{low} %" if low == high else f"{low} to {high} %"


def _notes(workers: Sequence[WorkerRecord], *, not_watched: int) -> tuple[str, ...]:
    lapses = [
        f"{_who(worker)} {lapse.in_words}"
        for worker in workers
        for lapse in worker.lapses
    ]
    more = len(lapses) - MAX_NAMED
    return (
        *lapses[:MAX_NAMED],
        *((f"{more:,} more such times",) if more > 0 else ()),
        *_short_lived(workers),
        *((f"not watched in {plural(not_watched, 'run')}",) if not_watched else ()),
    )


def _who(worker: WorkerRecord) -> str:
    of = "short-lived" if worker.pid is None else f"pid {worker.pid}"
    return f"{worker.name} ({of})"


def _short_lived(workers: Sequence[WorkerRecord]) -> Iterator[str]:
    seen: dict[str, int] = {}
    for worker in workers:
        if worker.pid is None:
            seen[worker.name] = seen.get(worker.name, 0) + worker.processes
    for name, number in seen.items():
        yield (
            f"{name} is short-lived: {number:,} of them were seen, "
            "and none was watched by itself"
        )


def _process_row(worker: WorkerRecord, *, run: str) -> ProcessRow:
    if worker.pid is None:
        task = "short-lived"
    else:
        task = "parent" if worker.waits else "worker"
    return ProcessRow(
        run=run,
        name=worker.name,
        pid=f"{worker.processes} seen" if worker.pid is None else str(worker.pid),
        task=task,
        share=_share([worker]),
        voluntary_switches=worker.voluntary_switches,
        involuntary_switches=worker.involuntary_switches,
        notes="; ".join(lapse.in_words for lapse in worker.lapses)
        or ("not watched one by one" if worker.pid is None else f"there {WHOLE}"),
        lapsed=bool(worker.lapses),
    )
