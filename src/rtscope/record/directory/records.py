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

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rtscope.host.errors import RecordError
from rtscope.host.files import read_bounded, write_atomically
from rtscope.record.caveats.catalogue import gravest_first, make
from rtscope.record.directory import place
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
        with suppress(OSError):  # a name that no file can have
            return (self.run_dir(run_id) / RECORD).is_file()
        return False

    def save(self, record: RunRecord, *, interrupted: bool = False) -> Path:
        """Write a run's record; raise RecordError if it cannot be written."""
        place.refuse_links(self.path / UNFINISHED)
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
        place.refuse_links(directory.parent, directory)
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
        paths = (*self._files(INTERRUPTED), *self._files(RECORD))
        of_runs = {path.parent: path for path in paths}
        return [read_record(of_runs[run]) for run in sorted(of_runs)]

    def _write(self, directory: Path, name: str, content: bytes) -> Path:
        """Write a file into a directory of this one, which is there."""
        place.refuse_gone(self.path)
        place.refuse_links(directory.parent, directory)
        place.make_directory(directory)
        write_atomically(directory / name, content)
        return directory / name

    def _files(self, name: str) -> list[Path]:
        paths = sorted((self.path / "runs").glob(f"*/{name}"))
        if len(paths) > MAX_RUNS:
            raise RecordError(f"{self.path}: more than {MAX_RUNS} runs")
        place.refuse_links(self.path / "runs", *(path.parent for path in paths))
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
) -> ResultDir:
    """Make the directory of a new campaign; UsageError if there is one already."""
    place.refuse_used(path, empty=False)
    place.make_directory(path / "runs")
    place.write_document(path, place.CAMPAIGN, dict(campaign), command=command)
    return ResultDir(path)


def read_record(path: Path) -> RunRecord:
    """Read one record; raise RecordError if it is damaged or of another schema."""
    return record_from_json(
        read_bounded(path, limit=MAX_RECORD_BYTES, kind="record"), name=str(path)
    )
