"""
Which files of old nights can go, and taking them away.

Big files are recordings, traces and kept samples. Records, explanations, pages and logs
stay, so a thinned result has all its figures, and its index entry is as it was. Each
file goes alone: an interruption leaves a result with some of them, which is valid.
"""

import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from rtscope.host.errors import MeasurementError, RecordError, UsageError
from rtscope.record.directory.place import (
    CAMPAIGN,
    LAB,
    hold,
    opened_folder,
    read_document,
)
from rtscope.record.directory.records import ResultDir, find
from rtscope.record.explanation import EXPLAINED
from rtscope.record.pack import RECORDINGS
from rtscope.record.samples import FILE as SAMPLES
from rtscope.verbs.history.entries import read_entry

BIG = (*RECORDINGS, SAMPLES)
"""Names of the files that can go."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run that was kept, and its big files."""

    series: str
    started: str
    directory: Path
    """The result that it is of."""
    name: str
    """Of its directory."""
    max_ns: int
    counts: bool
    is_explained: bool
    sizes: tuple[tuple[str, int], ...]
    """Bytes of its big files, by name."""

    @property
    def size_bytes(self) -> int:
        """All big files together."""
        return sum(size for _, size in self.sizes)

    @property
    def needs_explanation(self) -> bool:
        """Whether it has a recording that nobody has explained yet."""
        return not self.is_explained and any(n in RECORDINGS for n, _ in self.sizes)


@dataclass(slots=True)
class Found:
    """The runs below some folders."""

    runs: list[Run] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    """Of each result or record that is left the path and the reason."""


@dataclass(slots=True)
class Freed:
    """What was removed, or would be."""

    results: set[Path] = field(default_factory=set)
    files: int = 0
    size_bytes: int = 0
    left: list[str] = field(default_factory=list)
    """Of each result that is left as it is the path and the reason."""
    failed: list[str] = field(default_factory=list)
    """Of each file that could not be removed the path and the reason."""


def runs_below(places: Iterable[Path]) -> Found:
    """Return all runs of results below folders; sweeps and searches are no nights."""
    found, seen = Found(), set()
    for place in places:
        for directory in _results(place, found):
            if directory not in seen:
                seen.add(directory)
                found.runs += _runs(directory, found)
    return found


def _results(place: Path, found: Found) -> Iterator[Path]:
    whole: Path | None = None
    for directory, kind in find(
        place, skip=lambda error: found.unreadable.append(str(error))
    ):
        if kind is not CAMPAIGN:
            # Records without a document are of other tools, or no longer whole.
            whole = whole if kind in (None, LAB) else directory
            continue
        if whole is None or not directory.is_relative_to(whole):
            yield directory


def _runs(directory: Path, found: Found) -> Iterator[Run]:
    try:
        read_document(directory, CAMPAIGN)
        files = ResultDir(directory).record_files()
    except (RecordError, UsageError) as error:
        found.unreadable.append(str(error))
        return
    for file in files:
        try:
            columns = read_entry(file, mark="", part_of="").columns
            sizes = tuple(_sizes(file.parent))
        except (MeasurementError, OSError) as error:
            found.unreadable.append(str(error))
            continue
        latest = columns["max_ns"]
        yield Run(
            series=str(columns["series"]),
            started=str(columns["started"]),
            directory=directory,
            name=file.parent.name,
            max_ns=latest if isinstance(latest, int) else 0,
            counts=bool(columns["counts"]),
            is_explained=file.with_name(EXPLAINED).is_file(),
            sizes=sizes,
        )


def _sizes(directory: Path) -> Iterator[tuple[str, int]]:
    for name in BIG:
        with suppress(FileNotFoundError):
            about = (directory / name).stat(follow_symlinks=False)
            if stat.S_ISREG(about.st_mode):
                yield name, _freed_bytes(about)


def _freed_bytes(about: os.stat_result) -> int:
    """Return what removing a file frees: nothing if it has another name."""
    return about.st_size if about.st_nlink == 1 else 0


def to_thin(
    runs: Sequence[Run],
    *,
    keep_nights: int,
    keep_worst: int,
    budget_bytes: int | None = None,
) -> tuple[Run, ...]:
    """
    Return the runs whose big files can go, the oldest first.

    A night is a result. Of each series its newest nights keep all, and of older ones
    those runs that count, have big files, and have the latest wake-ups. What they keep
    beyond the budget goes too: first the oldest nights, last those worst runs.
    """
    by_series: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_series[run.series].append(run)
    going: list[Run] = []
    of_worst: list[Run] = []
    for some in by_series.values():
        started: dict[Path, str] = {}
        for run in some:
            started[run.directory] = max(run.started, started.get(run.directory, ""))
        nights = sorted(started, key=lambda one: (started[one], one), reverse=True)
        new = set(nights[:keep_nights])
        old = [run for run in some if run.directory not in new and run.sizes]
        # Of equal ones the newest stays.
        worst = sorted(old, key=lambda run: (run.counts, run.max_ns, run.started))
        kept = worst[len(worst) - keep_worst :] if keep_worst < len(worst) else worst
        of_worst += [run for run in old if run in kept and run.counts]
        going += [run for run in old if not (run in kept and run.counts)]
    if budget_bytes is not None:
        going += _beyond(budget_bytes, runs, going, of_worst)
    return tuple(sorted(going, key=lambda run: (run.started, run.directory, run.name)))


def _beyond(
    budget_bytes: int, runs: Sequence[Run], going: list[Run], of_worst: list[Run]
) -> Iterator[Run]:
    """Yield runs that keep more than the budget in all, and the newest ones least."""
    gone, worst = (set(map(id, some)) for some in (going, of_worst))
    kept = [run for run in runs if run.sizes and id(run) not in gone]
    left_bytes = sum(run.size_bytes for run in kept)
    for run in sorted(kept, key=lambda one: (id(one) in worst, one.started, one.name)):
        if left_bytes <= budget_bytes:
            return
        left_bytes -= run.size_bytes
        yield run


def remove(runs: Sequence[Run], freed: Freed) -> None:
    """Remove the big files of runs; `freed` says at any time how far it came."""
    by_result: dict[Path, list[Run]] = defaultdict(list)
    for run in runs:
        by_result[run.directory].append(run)
    for directory, some in by_result.items():
        try:
            with hold(directory):
                for run in some:
                    _remove(run, freed)
        except UsageError:
            freed.left.append(f"{directory}: another rtscope writes into it")


def _remove(run: Run, freed: Freed) -> None:
    """Remove the big files of a run, from its own folder alone."""
    path = run.directory / "runs" / run.name
    try:
        with opened_folder(run.directory, "runs", run.name) as folder:
            for name, _ in run.sizes:
                _remove_file(run, name, folder, freed)
    except OSError as error:
        freed.failed.append(f"{path}: {error.strerror}")


def _remove_file(run: Run, name: str, folder: int, freed: Freed) -> None:
    try:
        about = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(about.st_mode):
            return
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:  # another process thins too
        return
    except OSError as error:
        path = run.directory / "runs" / run.name / name
        freed.failed.append(f"{path}: {error.strerror}")
        return
    freed.results.add(run.directory)
    freed.files += 1
    freed.size_bytes += _freed_bytes(about)
