"""
The directory of a campaign: where its records lie, and which runs are done.

    OUT/campaign.json              what was asked, and the command to repeat it
    OUT/runs/ID/record.json        a run that was measured to its end
    OUT/runs/ID/interrupted.json   one that was not; --resume measures it again
    OUT/unfinished/ID.jsonl        what the agent said of one that has no result
    OUT/runs/ID/kernel.log         all that a virtual board's kernel said
    OUT/runs/ID/audit.json         how the machine was set up when the run began
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

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rtscope.host.errors import RecordError, UsageError
from rtscope.host.files import read_bounded, write_atomically
from rtscope.host.files.documents import json_object
from rtscope.host.files.opening import read_named
from rtscope.record.caveats.catalogue import gravest_first, make
from rtscope.record.model import (
    FILE_LOST,
    MAX_RECORD_BYTES,
    RunRecord,
    record_from_json,
    record_to_json,
)
from rtscope.record.schema import wrong_schema

SCHEMA = 2
"""Of `campaign.json`."""
CAMPAIGN = "campaign.json"
RECORD = "record.json"
INTERRUPTED = "interrupted.json"
UNFINISHED = "unfinished"
MAX_CAMPAIGN_BYTES = 16 * 1024 * 1024
_CONTINUE = "; to continue: rtscope run --resume"

MAX_RUNS = 100_000


@dataclass(frozen=True, slots=True)
class ResultDir:
    """A directory that holds one campaign."""

    path: Path
    advice: str = _CONTINUE
    """Ends a message about a file that cannot be written, behind the reason."""

    def run_dir(self, run_id: str) -> Path:
        """Return the directory of a run."""
        return self.path / "runs" / run_id

    def done_ids(self) -> frozenset[str]:
        """Return the runs that need not be measured again."""
        return frozenset(p.parent.name for p in self._files(RECORD))

    def save(self, record: RunRecord, *, interrupted: bool = False) -> Path:
        """Write a run's record; raise RecordError if it cannot be written."""
        directory = self._made(self.run_dir(record.run.id))
        path = directory / (INTERRUPTED if interrupted else RECORD)
        write_atomically(path, record_to_json(record), hint=self.advice)
        if not interrupted:
            (directory / INTERRUPTED).unlink(missing_ok=True)
            (self.path / UNFINISHED / f"{record.run.id}.jsonl").unlink(missing_ok=True)
        return path

    def keep_unfinished(self, run_id: str, lines: bytes) -> Path:
        """Write what the agent said of a run without a result; RecordError if not."""
        directory = self._made(self.path / UNFINISHED)
        path = directory / f"{run_id}.jsonl"
        write_atomically(path, lines, hint=self.advice)
        return path

    def attach(self, run_id: str, name: str, content: bytes) -> Path:
        """Write a file beside a run's record; what it names is written before it."""
        path = self._made(self.run_dir(run_id)) / name
        write_atomically(path, content, hint=self.advice)
        return path

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

    def records(self) -> list[RunRecord]:
        """Return all records by run id; an interrupted run only if it has no other."""
        done = self._files(RECORD)
        have = {path.parent for path in done}
        half = [path for path in self._files(INTERRUPTED) if path.parent not in have]
        return [read_record(path) for path in sorted([*done, *half])]

    def _made(self, directory: Path) -> Path:
        """Make a directory for files of this one, which is there; return it."""
        refuse_gone(self.path)
        refuse_links(directory.parent, directory)
        make_directory(directory)
        return directory

    def _files(self, name: str) -> list[Path]:
        paths = sorted((self.path / "runs").glob(f"*/{name}"))
        if len(paths) > MAX_RUNS:
            raise RecordError(f"{self.path}: more than {MAX_RUNS} runs")
        refuse_links(self.path / "runs", *(path.parent for path in paths))
        return paths


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
    rtscope: str,
    advice: str = _CONTINUE,
) -> ResultDir:
    """
    Make the directory of a new campaign; UsageError if there is one already.

    `advice` is that of the directory.
    """
    refuse_used(path)
    make_directory(path / "runs")
    document = {
        "schema": SCHEMA,
        "rtscope": rtscope,
        "command": list(command),
        "campaign": dict(campaign),
    }
    text = json.dumps(document, indent=1).encode() + b"\n"
    write_atomically(path / CAMPAIGN, text, hint=advice)
    return ResultDir(path, advice)


@contextmanager
def hold(path: Path) -> Iterator[None]:
    """
    Keep every other rtscope from measuring into a directory.

    Raises UsageError if one does already. Does nothing where no directory is, or where
    the file system has no locks.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield
        return
    try:
        with suppress(OSError):
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError(
                    f"{path}: another rtscope measures into it; wait for its end, or "
                    "end it first"
                ) from error
        yield
    finally:
        os.close(number)


def refuse_used(path: Path) -> None:
    """Raise UsageError if a directory already holds a campaign."""
    if (path / CAMPAIGN).exists():
        raise UsageError(
            f"{path} already holds a campaign; go on with it: rtscope run --resume "
            f"{path}, or name another directory with --out"
        )


def is_occupied(path: Path) -> bool:
    """Tell whether a path is there, and is no empty directory."""
    return path.exists() and (not path.is_dir() or any(path.iterdir()))


def read_campaign(path: Path) -> dict[str, Any]:
    """
    Return campaign.json as it was written.

    Raises UsageError where there is none, RecordError for what is damaged.
    """
    if not os.path.lexists(path / CAMPAIGN):
        raise UsageError(f"{path}: no campaign there: it has no {CAMPAIGN}")
    text = read_bounded(path / CAMPAIGN, limit=MAX_CAMPAIGN_BYTES, kind="record")
    document = json_object(text, name=str(path / CAMPAIGN))
    if (schema := document.get("schema")) != SCHEMA:
        again = "measure again: rtscope run"
        raise wrong_schema(str(path / CAMPAIGN), schema, SCHEMA, again=again)
    return document


def open_records(path: Path) -> list[RunRecord]:
    """
    Return the records of a campaign's directory, of one run's, or of one file.

    Raises UsageError where nothing is, RecordError for what is damaged.
    """
    if path.exists() and not path.is_dir():
        text = read_named(path, limit=MAX_RECORD_BYTES, kind="record")
        return [record_from_json(text, name=str(path))]
    for name in (RECORD, INTERRUPTED):
        if (path / name).is_file():
            return [read_record(path / name)]
    if not path.is_dir():
        raise UsageError(f"{path}: no such file or directory")
    records = ResultDir(path).records()
    if not records:
        raise UsageError(
            f"{path}: no record in it; rtscope run writes records into runs/*/{RECORD}"
        )
    return records


def read_record(path: Path) -> RunRecord:
    """Read one record; raise RecordError if it is damaged or of another schema."""
    return record_from_json(
        read_bounded(path, limit=MAX_RECORD_BYTES, kind="record"), name=str(path)
    )


def refuse_links(*directories: Path) -> None:
    """Raise RecordError for a directory that leads elsewhere: it may come by mail."""
    for directory in directories:
        if directory.is_symlink():
            raise RecordError(f"{directory}: a link, which rtscope does not make")


def refuse_gone(directory: Path) -> None:
    """Raise RecordError for one that was there: anew, it would lack what was in it."""
    if not directory.is_dir():
        raise RecordError(
            f"{directory}: gone, with what was in it: the directory was removed or "
            "renamed while rtscope used it; begin again with another --out"
        )


def make_directory(directory: Path) -> None:
    """Make a directory and those above it; RecordError if that cannot be."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecordError(f"cannot make {directory}: {error.strerror}") from error
