"""
Measure the cells of a sweep as one plan: on this machine, or on a cluster.

Some runs are computed twice: equal inputs must give equal records, in all that is not
of the host (`rtscope.verbs.sweep.doubts`). A difference ends the sweep, and
neither result stays, because nobody knows which one is right.
"""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from rtscope.boards.runs.prepare import PreparedCampaign, RunRequest
from rtscope.boards.runs.store import StoredResults
from rtscope.cli.console import note
from rtscope.host.errors import MeasurementError, RecordError
from rtscope.host.files import write_atomically
from rtscope.host.units import plural
from rtscope.measure.assemble import Measured, assemble
from rtscope.measure.execute import (
    OnEvent,
    RunFailed,
    RunFinished,
    Runner,
    RunStarted,
    attached,
    put_off,
)
from rtscope.measure.plan import Plan
from rtscope.record.directory.place import make_directory
from rtscope.record.directory.records import RECORD, ResultDir, read_record
from rtscope.record.model import InputDigests, Run, RunRecord, record_to_json
from rtscope.verbs.sweep.cluster.address import SchedulerAddress
from rtscope.verbs.sweep.doubts import Difference, differences

CHECK_EVERY = 50
"""One run of so many is computed twice."""
AGAIN = "again"
MOST_NAMED = 2
"""Fields besides the first that a message names of two results that differ."""

Failed = Callable[[str, str, str], None]
"""Gets the directory of a cell, the id of a run, and why it has no result."""
Checked = Callable[[str, str], None]
"""Gets a run that was checked, and why there are no two results; empty if equal."""


@dataclass(frozen=True, slots=True)
class CellRuns:
    """The runs of a cell that are left to measure."""

    name: str
    plan: Plan
    prepared: PreparedCampaign
    store: ResultDir

    @property
    def directory(self) -> str:
        """The name of its result directory."""
        return self.store.path.name


@dataclass(frozen=True, slots=True)
class SweepRuns:
    """The runs of all cells as one campaign, each under an id of its own."""

    plan: Plan
    prepared: PreparedCampaign
    again: Mapping[str, str]
    """The run that each check computes again, by the id of the check."""
    origin: Mapping[str, tuple[CellRuns, Run]]


StartRunner = Callable[[SweepRuns, Callable[[str, MeasurementError], None]], Runner]
"""Returns what measures them; the function gets a failed run by its id."""


def runs_of(
    cells: Sequence[CellRuns], *, at_once: int, failed: Collection[str] = ()
) -> SweepRuns:
    """
    Return the runs of all cells; one in CHECK_EVERY twice, by `_checked`.

    `failed` are the runs that an earlier start could not measure.
    """
    everything = {
        f"{cell.directory}/{request.run.id}": (cell, request, board)
        for cell in cells
        for request, board in cell.prepared.runs
    }
    twice = _checked(list(everything), failed)
    again: dict[str, str] = {}
    requests = []
    for name, (cell, request, board) in everything.items():
        requests.append((_named(request, name, cell.name), board))
        if name in twice:
            check = _check_of(name)
            again[check] = name
            requests.append((_named(request, check, f"{cell.name}, {AGAIN}"), board))
    plan = replace(cells[0].plan, runs=tuple(request.run for request, _ in requests))
    origin = {name: (cell, one.run) for name, (cell, one, _) in everything.items()}
    return SweepRuns(plan, PreparedCampaign(tuple(requests), at_once), again, origin)


def _checked(names: Sequence[str], failed: Collection[str]) -> frozenset[str]:
    """
    Return the first run of each CHECK_EVERY that did not fail before.

    One that failed would probably fail twice, and show nothing; where all have failed,
    none is checked.
    """
    firsts = range(0, len(names), CHECK_EVERY)
    groups = [names[first : first + CHECK_EVERY] for first in firsts]
    good = ([one for one in group if one not in failed] for group in groups)
    return frozenset(of_group[0] for of_group in good if of_group)


def _check_of(name: str) -> str:
    """Return the id that the check of a run has."""
    return f"{name}/{AGAIN}"


def _named(request: RunRequest, name: str, cell: str) -> RunRequest:
    return replace(request, run=replace(request.run, id=name, variant=cell))


def measure_cells(
    runs: SweepRuns,
    start: StartRunner,
    *,
    on_event: OnEvent,
    failed: Failed,
    checked: Checked,
    aside: Path,
    stores: Sequence[ResultDir],
    drop: Callable[[InputDigests], None],
) -> None:
    """
    Measure all runs and save their records.

    Raises MeasurementError if the two results of a run differ: both records are then
    in the directory `aside`, and `drop` gets the inputs of every result in `stores`
    that those computed who computed the two. What else ends the sweep is raised as by
    `execute`.
    """
    results = _Results(runs, aside, stores, drop, checked)

    def fail(name: str, error: MeasurementError) -> None:
        said = str(error)
        why = said if said.startswith(name) else f"{name}: {said}"
        results.end(name, why)
        if name not in runs.again:
            cell, run = runs.origin[name]
            failed(cell.directory, run.id, why)
        on_event(RunFailed(planned[name]))

    planned = {run.id: run for run in runs.plan.runs}
    numbers = {name: number for number, name in enumerate(planned, 1)}
    with start(runs, fail).start(runs.plan, on_event) as pending:
        for run, measure in pending:
            on_event(RunStarted(numbers[run.id], len(numbers), run))
            try:
                measured = measure()
            except MeasurementError as error:
                fail(run.id, error)
                continue
            on_event(RunFinished(results.take(run.id, measured)))


@dataclass(slots=True)
class _Results:
    """Results on their way to their cells."""

    runs: SweepRuns
    aside: Path
    stores: Sequence[ResultDir]
    """Of all cells of the sweep, also of those that are complete."""
    drop: Callable[[InputDigests], None]
    checked: Checked
    ends: dict[str, dict[str, RunRecord | str]] = field(default_factory=dict)
    """Of the runs that are computed twice: their results, or why they have none."""

    def take(self, name: str, measured: Measured) -> RunRecord:
        """Save a result, or compare it with the one that it checks."""
        of = self.runs.again.get(name)
        cell, run = self.runs.origin[name if of is None else of]
        measured = replace(measured, run=run)
        if of is not None:
            record = assemble(measured)
            with put_off():
                self.end(name, record)
            return record
        with put_off():
            record = attached(measured, cell.store)
            cell.store.save(record)
            self.end(name, record)
        return record

    def end(self, name: str, result: RunRecord | str) -> None:
        """Note a result, or why there is none; compare it if it is part of a check."""
        of = self.runs.again.get(name, name)
        check = _check_of(of)
        if check not in self.runs.again:
            return
        ends = self.ends.setdefault(of, {})
        ends[name] = result
        if len(ends) < 2:
            return
        pair = self.ends.pop(of)[of], ends[check]
        records = [one for one in pair if isinstance(one, RunRecord)]
        if len(records) == len(pair):
            self._compare(of, *records)
        elif records:
            self.checked(of, next(one for one in pair if isinstance(one, str)))

    def _compare(self, name: str, *pair: RunRecord) -> None:
        first, second = pair
        unequal = list(differences(first, second))
        if not unequal:
            self.checked(name, "")
            return
        cell, run = self.runs.origin[name]
        kept = self._keep_both(cell, run, pair)
        cell.store.detach(run.id, RECORD)
        others = self._drop_all_of(pair)
        how = _how_they_differ(unequal, first, second)
        raise MeasurementError(
            f"{name}: measured twice with equal inputs, results differ: {how}; one of "
            f"them computes wrongly, or rtscope has a defect: {kept}{others}"
        )

    def _keep_both(self, cell: CellRuns, run: Run, pair: Sequence[RunRecord]) -> str:
        """Write both records aside; return what to do with them, in words."""
        place = self.aside / cell.directory
        try:
            make_directory(place)
            for which, record in zip(("first", "second"), pair, strict=True):
                path = place / f"{run.id}-{which}.json"
                write_atomically(path, record_to_json(record))
        except RecordError as error:
            return f"report it; rtscope could not keep their records: {error}"
        return f"report it with both records, which are in {place}"

    def _drop_all_of(self, pair: Sequence[RunRecord]) -> str:
        """Drop what is stored of those who computed two; name the rest, in words."""
        workers = {one.require_virtual().worker for one in pair}
        self._drop(pair[0])
        others = 0
        for record in self._records():
            if record.virtual is not None and record.virtual.worker in workers:
                self._drop(record)
                others += 1
        if not others:
            return ""
        results, were = ("result", "was") if others == 1 else ("results", "were")
        return (
            f"; {others:,} other {results} of this sweep {were} computed there, and "
            "may be wrong too: start again with rtscope sweep --no-reuse and another "
            "--out"
        )

    def _drop(self, record: RunRecord) -> None:
        if (inputs := record.require_virtual().input_digests) is not None:
            self.drop(inputs)

    def _records(self) -> Iterator[RunRecord]:
        """Yield the records of this start and of earlier ones."""
        for store in self.stores:
            for run_id in sorted(store.done_ids()):
                with suppress(RecordError):  # that results differ counts more
                    yield read_record(store.run_dir(run_id) / RECORD)


def _how_they_differ(
    unequal: Sequence[Difference], first: RunRecord, second: RunRecord
) -> str:
    """Return the first difference with both values and who has which; name others."""
    one = unequal[0]
    text = f"{one.place} is {one.first} on {_who(first)} and {one.second} on "
    text += _who(second)
    others = [other.place for other in unequal[1 : 1 + MOST_NAMED]]
    if left := len(unequal) - 1 - len(others):
        others.append(f"{left:,} other{'s' * (left > 1)}")
    if not others:
        return text
    *most, last = others
    names = f"{', '.join(most)} and {last}" if most else last
    return f"{text}; {names} {'differ' if most else 'differs'} too"


def _who(record: RunRecord) -> str:
    """Return who computed a result, and when it is a stored one."""
    virtual = record.require_virtual()
    place = f"worker {virtual.worker}" if virtual.worker else "this machine"
    stored = f", stored since {record.started_at}" if virtual.reused else ""
    return f"{place}{stored}"


# --- what boots the boards of a sweep: this machine, or the workers of a cluster ------

_RunnerFailed = Callable[[str, MeasurementError], None]


@contextlib.contextmanager
def boots_on(
    address: SchedulerAddress | None,
    results: StoredResults | None,
    *,
    reuse: bool,
    log: Callable[[str], None],
) -> Iterator[StartRunner]:
    """Give what starts the boots; leave the cluster afterwards."""
    if address is None:
        # Loaded for a board only.
        from rtscope.boards.runs.runner import BoardRunner

        def local(runs: SweepRuns, failed: _RunnerFailed) -> Runner:
            return BoardRunner(runs.prepared, failed, results, reuse, runs.again)

        yield local
        return

    # Dask takes a second to load.
    from rtscope.verbs.sweep.cluster.dask import connected
    from rtscope.verbs.sweep.cluster.runner import ClusterRunner

    with connected(address) as scheduler:
        workers = scheduler.workers()
        threads = plural(sum(workers.values()), "board")
        note(f"{plural(len(workers), 'worker')} at {address.url}, {threads} at once")
        if address.certificates is None:
            note(
                "  on plain tcp, any user of this machine can run programs as you; if "
                "you share the machine, use tls://"
            )

        def remote(runs: SweepRuns, failed: _RunnerFailed) -> Runner:
            return ClusterRunner(
                scheduler, runs.prepared, failed, log, results, reuse, runs.again
            )

        yield remote
