"""
The directory of a campaign: where its records lie, and which runs are done.

    OUT/campaign.json              what was asked, and the command to repeat it
    OUT/runs/ID/record.json        a run that was measured to its end
    OUT/runs/ID/interrupted.json   one that was not; --resume measures it again
    OUT/unfinished/ID.jsonl        what the agent said of one that has no result
    OUT/runs/ID/kernel.log         all that a virtual board's kernel said
    OUT/runs/ID/audit.json         how the machine was set up when the run began
    OUT/runs/ID/samples.gz         each wake-up, of a run with --keep-samples
    OUT/runs/ID/worst.trace.gz     a virtual board's recorded paths
    OUT/runs/ID/worst.trace.dat    a machine's trace, for trace-cmd and KernelShark
    OUT/runs/ID/replay.trace.gz    a replay's windows and tasks
    OUT/runs/ID/bound.trace.gz     a replay's longest critical sections and interrupts
    OUT/runs/ID/explain.json       what rtscope explain made of them
    OUT/runs/ID/explain.html       the same as a page, of some runs of a sweep
    OUT/runs/ID/report.html        the page of the record, of some runs of a sweep

Every file is written as a whole or not at all. A directory may come by mail: nothing
in it is followed out of it, and sizes are bounded before anything is read.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rtscope.host.errors import RecordError, UsageError
from rtscope.host.files import read_bounded, write_atomically
from rtscope.host.files.opening import is_there, read_named
from rtscope.record.caveats.catalogue import gravest_first, make
from rtscope.record.directory import journal, place
from rtscope.record.directory.journal import State
from rtscope.record.directory.place import CAMPAIGN, LAB, SEARCH, SWEEP, Kind
from rtscope.record.model import (
    FILE_LOST,
    MAX_RECORD_BYTES,
    RunRecord,
    record_from_json,
    record_to_json,
)

RECORD = "record.json"
INTERRUPTED = "interrupted.json"
UNFINISHED = "unfinished"

MAX_RUNS = 100_000
MAX_DEPTH = 12
"""Of folders, below the place where the search begins."""

Planned = Callable[[Any], Iterable[str]]
"""Returns the runs that a campaign asks for, by what its document says."""


@dataclass(frozen=True, slots=True)
class ResultDir:
    """A directory that holds one campaign."""

    path: Path

    def run_dir(self, run_id: str) -> Path:
        """Return the directory of a run."""
        return self.path / "runs" / run_id

    def done_ids(self) -> frozenset[str]:
        """Return the runs that need not be measured again."""
        return frozenset(p.parent.name for p in self._files(RECORD))

    def cut_ids(self) -> frozenset[str]:
        """Return the runs that were interrupted; some may have been repeated."""
        return frozenset(p.parent.name for p in self._files(INTERRUPTED))

    def unfinished(self) -> Mapping[str, Path]:
        """Return the files of what the agent said of runs without a result, by run."""
        files = sorted((self.path / UNFINISHED).glob("*.jsonl"))
        return {file.stem: file for file in files}

    def is_done(self, run_id: str) -> bool:
        """Tell whether a run is done; listing all takes a second of thousands."""
        with suppress(RecordError):  # a name that no file can have
            return is_there(self.run_dir(run_id) / RECORD)
        return False

    def save(self, record: RunRecord, *, interrupted: bool = False) -> Path:
        """Write a run's record; raise RecordError if it cannot be written."""
        refuse_links(self.path / UNFINISHED)
        name = INTERRUPTED if interrupted else RECORD
        path = self.attach(record.run.id, name, record_to_json(record))
        if not interrupted:
            path.with_name(INTERRUPTED).unlink(missing_ok=True)
            (self.path / UNFINISHED / f"{record.run.id}.jsonl").unlink(missing_ok=True)
        return path

    def keep_unfinished(self, run_id: str, lines: bytes) -> Path:
        """Write what the agent said of a run without a result; RecordError if not."""
        return self._write(self.path / UNFINISHED, f"{run_id}.jsonl", lines)

    def attach(self, run_id: str, name: str, content: bytes) -> Path:
        """Write a file beside a run's record; what it names is written before it."""
        return self._write(self.run_dir(run_id), name, content)

    def detach(self, run_id: str, name: str) -> None:
        """
        Remove a file that an earlier try of the run has left, if there is one.

        Raises RecordError if it cannot be removed.
        """
        directory = self.run_dir(run_id)
        refuse_links(directory.parent, directory)
        path = directory / name
        if not path.exists():
            return
        try:
            path.unlink()
        except OSError as error:
            raise RecordError(
                f"cannot remove {path}, which an earlier try has left: "
                f"{error.strerror}; remove it, then go on with --resume"
            ) from error

    def attach_files(
        self, run_id: str, files: Mapping[str, bytes | None]
    ) -> dict[str, str]:
        """
        Write files, by name, where a record will be; return why some are not there.

        Before the record: where one is, its run counts as done. Without content a file
        is one that the run does not have. What could not be written has left no room
        taken, so that a full disk may still hold the record.
        """
        lost: dict[str, str] = {}
        for name, content in files.items():
            try:
                # An earlier try's is never taken for this run's.
                self.detach(run_id, name)
                if content:
                    self.attach(run_id, name, content)
            except RecordError as error:
                lost[name] = str(getattr(error.__cause__, "strerror", None) or error)
        return lost

    def record_files(self) -> list[Path]:
        """Return the files of `records`, in their order."""
        return self._files(RECORD, INTERRUPTED)

    def records(self) -> list[RunRecord]:
        """Return all records by run id; an interrupted run only if it has no other."""
        return [read_record(path) for path in self.record_files()]

    def _write(self, directory: Path, name: str, content: bytes) -> Path:
        """Write a file into a directory of this one, which is there."""
        place.refuse_gone(self.path)
        refuse_links(directory.parent, directory)
        place.make_directory(directory)
        write_atomically(directory / name, content)
        return directory / name

    def _files(self, *names: str) -> list[Path]:
        paths = files_of_runs(self.path, *names)
        if len(paths) > MAX_RUNS:
            raise RecordError(f"{self.path}: more than {MAX_RUNS} runs")
        refuse_links(self.path / "runs", *(path.parent for path in paths))
        return paths


def files_of_runs(path: Path, *names: str) -> list[Path]:
    """
    Return of each run the first file that it has of these names, whoever can read it.

    Raises RecordError for a folder that cannot be read.
    """
    runs = path / "runs"
    try:
        folders = sorted(runs.iterdir()) if runs.is_dir() else []
    except OSError as error:
        raise RecordError(f"cannot read {runs}: {error.strerror}") from error
    found = (
        next(filter(is_there, (folder / name for name in names)), None)
        for folder in folders
    )
    return [file for file in found if file is not None]


def with_lost(record: RunRecord, lost: Mapping[str, str]) -> RunRecord:
    """Return the record with a caveat for each file that could not be kept."""
    if not lost:
        return record
    caveats = (make(FILE_LOST, f"{name}: {why}") for name, why in lost.items())
    return replace(record, caveats=gravest_first((*record.caveats, *caveats)))


def create(
    path: Path,
    campaign: Mapping[str, Any],
    *,
    command: tuple[str, ...],
) -> ResultDir:
    """Make the directory of a new campaign; UsageError if there is one already."""
    place.refuse_used(path, empty=False)
    place.make_directory(path / "runs")
    place.write_document(path, CAMPAIGN, dict(campaign), command=command)
    return ResultDir(path)


def refuse_links(*paths: Path) -> None:
    """Raise RecordError for what leads elsewhere: it may have come by mail."""
    for path in paths:
        if path.is_symlink():
            raise RecordError(f"{path}: a link, which rtscope does not make")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run, of a kernel of a search, or of a cell of a sweep."""

    name: str
    """From the directory that it was asked of: of the run, behind its cell or step."""
    state: State
    why: str = ""
    """Why it is not done; empty: it was not tried yet."""


def find(
    root: Path,
    *,
    depth: int = MAX_DEPTH,
    skip: Callable[[RecordError], None] | None = None,
) -> Iterator[tuple[Path, Kind | None]]:
    """
    Yield all directories of records at and below a place, with what they hold.

    In the order of their names; a sweep, a search or a campaign of several boards
    before the directories that it is made of. Records of other tools have no document.
    Raises RecordError for a folder that cannot be read; with `skip`, that gets the
    error, and the others follow.
    """
    kind = place.kind_of(root)
    if kind is not None or _has_records(root):
        yield root, kind
        if kind in (None, CAMPAIGN):
            return
    if not depth:
        return
    try:
        folders = _folders(root)
    except RecordError as error:
        if skip is None:
            raise
        return skip(error)
    for folder in folders:
        yield from find(folder, depth=depth - 1, skip=skip)


def outcomes(path: Path, planned: Planned = lambda _: ()) -> Iterator[Outcome]:
    """
    Yield what came of each run of a directory, of a sweep and search with their parts.

    Raises RecordError for what is damaged.
    """
    kind = place.kind_of(path)
    if kind is SWEEP:
        yield from _of_sweep(path, planned)
    elif kind is LAB:
        for part in _folders(path / LAB.parts):
            yield from _of_runs(part, planned, f"{part.name}/", {})
    elif kind is SEARCH:
        for part in _folders(path / SEARCH.parts):
            yield from _of_runs(part, planned, f"{part.name}/", {})
        steps = journal.read_journal(path / journal.STEPS, mend=False).steps
        skipped = (step for step in steps.values() if step.why)
        yield from (Outcome(one.name, one.state, one.why) for one in skipped)
    else:
        yield from _of_runs(path, planned, "", {})


def _of_sweep(path: Path, planned: Planned) -> Iterator[Outcome]:
    """Yield the runs of the cells that were asked for, and the cells that cannot be."""
    numbers, failed = journal.CELL_NUMBERS.read(path), journal.FAILED.read(path)
    impossible = {
        journal.part_name(f"{journal.REMEDY}: {name}"): why
        for name, why in journal.IMPOSSIBLE.read(path).items()
    }
    for part in _folders(path / SWEEP.parts):
        number, _, name = part.name.partition("-")
        if name in impossible:
            yield Outcome(part.name, State.IMPOSSIBLE, impossible[name])
        elif not numbers or number in {f"{one:03}" for one in numbers}:
            yield from _of_runs(part, planned, f"{part.name}/", failed)


def _of_runs(
    path: Path, planned: Planned, prefix: str, failures: Mapping[str, str]
) -> Iterator[Outcome]:
    """Yield the runs of one directory; why they failed is by prefix and run."""
    store = ResultDir(path)
    done, cut, lines = store.done_ids(), store.cut_ids(), store.unfinished()
    asked: Iterable[str] = ()
    if CAMPAIGN.is_in(path):
        asked = planned(place.read_document(path, CAMPAIGN).asked)
    failed = {r: f"no result; what its agent told is in {lines[r]}" for r in lines}
    for name, why in failures.items():
        if name.startswith(prefix):
            failed[name.removeprefix(prefix)] = why
    for run in sorted({*done, *cut, *asked, *failed}):
        if run in done:
            yield Outcome(prefix + run, State.DONE)
        elif run in failed:
            yield Outcome(prefix + run, State.FAILED, failed[run])
        else:
            why = "interrupted" if run in cut else ""
            yield Outcome(prefix + run, State.ASKED, why)


def open_records(path: Path) -> list[RunRecord]:
    """
    Return the records of a campaign's directory, of one run's, or of one file.

    Raises UsageError where nothing is, RecordError for what is damaged.
    """
    if is_there(path) and not path.is_dir():
        text = read_named(path, limit=MAX_RECORD_BYTES, kind="record")
        return [record_from_json(text, name=str(path))]
    for name in (RECORD, INTERRUPTED):
        if is_there(path / name):
            return [read_record(path / name)]
    if found := ResultDir(path).records():
        return found
    raise no_records(path)


def no_records(path: Path) -> UsageError:
    """Return the error for a directory without a record: where some are, or why not."""
    below = [one for one, _ in find(path, depth=3) if _has_records(one)]
    if not path.is_dir():
        why = "no such file or directory"
    elif below:
        others = f" and {len(below) - 1} others" if len(below) > 1 else ""
        why = f"no record in it, but in {below[0]}{others}: name one of them"
    elif (kind := place.kind_of(path)) is not None:
        place.read_document(path, kind)
        reasons = (f" {one.name}: {one.why};" for one in outcomes(path) if one.why)
        why = f"no run of the {kind.name} in it is done;{next(reasons, '')} go on with "
        why += kind.to_go_on(path)
    else:
        why = f"no record in it; rtscope run writes records into runs/*/{RECORD}"
    return UsageError(f"{path}: {why}")


def _has_records(path: Path) -> bool:
    return bool(files_of_runs(path, RECORD))


def _folders(path: Path) -> list[Path]:
    """Return the folders in a folder by name, without links; none if it is none."""
    if path.is_symlink() or not path.is_dir():
        return []
    try:
        return sorted(p for p in path.iterdir() if p.is_dir() and not p.is_symlink())
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror}") from error


def read_record(path: Path) -> RunRecord:
    """Read one record; raise RecordError if it is damaged or of another schema."""
    return record_from_json(
        read_bounded(path, limit=MAX_RECORD_BYTES, kind="record"), name=str(path)
    )
