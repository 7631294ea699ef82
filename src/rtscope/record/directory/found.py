"""
What lies at a place: its records, the directories below it, what came of each run.

Nothing is followed through a link, and nothing is changed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtscope.host.errors import RecordError, UsageError
from rtscope.host.files.opening import read_named
from rtscope.record.directory import journal, place, records
from rtscope.record.directory.journal import State
from rtscope.record.directory.place import CAMPAIGN, SEARCH, SWEEP, Kind
from rtscope.record.model import MAX_RECORD_BYTES, RunRecord, record_from_json

MAX_DEPTH = 12
"""Of folders, below the place where the search begins."""

Planned = Callable[[Any], Iterable[str]]
"""Returns the runs that a campaign asks for, by what its document says."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run, of a kernel of a search, or of a cell of a sweep."""

    name: str
    """From the directory that it was asked of: of the run, behind its cell or step."""
    state: State
    why: str = ""
    """Why it is not done; empty: it was not tried yet."""


def find(root: Path, *, depth: int = MAX_DEPTH) -> Iterator[tuple[Path, Kind | None]]:
    """
    Yield all directories of records at and below a place, with what they hold.

    In the order of their names; a sweep or a search before the directories that it is
    made of. Records of other tools have no document. Raises RecordError for a folder
    that cannot be read.
    """
    kind = place.kind_of(root)
    if kind is not None or _has_records(root):
        yield root, kind
        if kind in (None, CAMPAIGN):
            return
    if depth:
        for folder in _folders(root):
            yield from find(folder, depth=depth - 1)


def outcomes(path: Path, planned: Planned = lambda _: ()) -> Iterator[Outcome]:
    """
    Yield what came of each run of a directory, of a sweep and search with their parts.

    Raises RecordError for what is damaged.
    """
    kind = place.kind_of(path)
    if kind is SWEEP:
        yield from _of_sweep(path, planned)
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
    store = records.ResultDir(path)
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
    if path.exists() and not path.is_dir():
        text = read_named(path, limit=MAX_RECORD_BYTES, kind="record")
        return [record_from_json(text, name=str(path))]
    for name in (records.RECORD, records.INTERRUPTED):
        if (path / name).is_file():
            return [records.read_record(path / name)]
    if found := records.ResultDir(path).records():
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
        reasons = (f" {one.name}: {one.why};" for one in outcomes(path) if one.why)
        why = f"no run of the {kind.name} in it is done;{next(reasons, '')} go on with "
        why += kind.to_go_on(path)
    else:
        why = (
            f"no record in it; rtscope run writes records into runs/*/{records.RECORD}"
        )
    return UsageError(f"{path}: {why}")


def _has_records(path: Path) -> bool:
    return any((path / "runs").glob(f"*/{records.RECORD}"))


def _folders(path: Path) -> list[Path]:
    """Return the folders in a folder by name, without links; none if it is none."""
    if path.is_symlink() or not path.is_dir():
        return []
    try:
        return sorted(p for p in path.iterdir() if p.is_dir() and not p.is_symlink())
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror}") from error
