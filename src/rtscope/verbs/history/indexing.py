"""`rtscope history index`: read what is new below result directories."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from rtscope.cli.console import Json, log, put, put_json
from rtscope.host.errors import RecordError, UsageError
from rtscope.host.escape import printable
from rtscope.host.units import plural
from rtscope.record.directory.place import CAMPAIGN, LAB, Kind
from rtscope.record.directory.records import ResultDir, find
from rtscope.verbs.history import database
from rtscope.verbs.history.entries import Entry, fingerprint
from rtscope.verbs.history.reading import (
    Damaged,
    Found,
    Item,
    Skipped,
    Tags,
    Wanted,
    read_all,
)
from rtscope.verbs.history.tags import tags_of

BATCH = 200
"""Runs that one transaction writes; they are read before it begins."""

MOST_NAMED = 3

IndexFile = Annotated[Path, typer.Option("--index", metavar="FILE")]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRequest:
    """The arguments and options of `rtscope history index`."""

    directory: Annotated[list[Path], typer.Argument(metavar="DIR")]
    """Folders with result directories at any depth, e.g. nights."""
    index: IndexFile = Path(database.NAME)
    """File of the index (default: history.db), e.g. lab.db."""
    json: Json = False


@dataclass(slots=True)
class Tally:
    """What came of the records below the places that were named."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    vanished: int = 0
    damaged: list[str] = field(default_factory=list)
    """Of each the path and the reason."""

    @property
    def found(self) -> int:
        """How many records were there, readable or not."""
        return self.new + self.changed + self.unchanged + len(self.damaged)

    @property
    def sentence(self) -> str:
        """The whole in a line."""
        return (
            f"{plural(self.new, 'new run')}, {self.changed:,} changed, "
            f"{self.unchanged:,} unchanged, {self.vanished:,} vanished, "
            f"{len(self.damaged):,} damaged"
        )


def index(request: IndexRequest) -> int:
    """
    Index the records below folders: only new and changed ones are read.

    The index has facts, figures, histograms, caveats and tags of each run, and no
    sample. Remove it at any time: it is made anew from the directories. A run whose
    record is gone keeps its figures, and is marked.
    """
    places = [_checked(path) for path in request.directory]
    tally = Tally()
    with database.opened(request.index, make=True) as opened:
        for place in places:
            before = tally.found
            index_place(opened, place, tally)
            if tally.found == before:
                log(f"{place}: no results below it; {_MAKES_ONE}")
    for line in tally.damaged[:MOST_NAMED]:
        log(f"not indexed: {line}")
    if (left := len(tally.damaged) - MOST_NAMED) > 0:
        log(f"not indexed: {left:,} more; --json names all")
    if request.json:
        put_json({"index": str(request.index), **asdict(tally)})
    else:
        put(f"{printable(str(request.index))}: {tally.sentence}\n")
    return 0


_MAKES_ONE = "a run writes its own to the folder of --out"


def _checked(path: Path) -> Path:
    if not path.is_dir():
        raise UsageError(f"{path}: no such directory; name a folder with results")
    return path.resolve()


@dataclass(slots=True)
class _Walk:
    """A walk through all that is below a place."""

    known: Mapping[str, str]
    """Fingerprints by path."""
    tags: Mapping[str, frozenset[str]]
    """Known ones, by directory."""
    unchanged: int = 0
    seen: set[str] = field(default_factory=set)
    """Records that are there."""
    is_whole: bool = True
    """Whether every folder could be looked into."""

    def found(self, place: Path) -> Iterator[Found]:
        """Yield what is new or changed."""
        whole: tuple[Path, Kind] | None = None
        skipped: list[RecordError] = []
        for directory, kind in find(place, skip=skipped.append):
            yield from self._skipped(skipped)
            if kind is LAB:  # each of its boards is a campaign of its own
                continue
            if kind is not None and kind is not CAMPAIGN:
                whole = directory, kind
                continue
            part_of = ""
            if whole is not None and directory.is_relative_to(whole[0]):
                part_of = whole[1].name
            try:
                files = ResultDir(directory).record_files()
                tags = tags_of(directory)
            except RecordError as error:
                yield from self._skipped([error])
                continue
            for file in files:
                yield from self._of_file(file, part_of)
            if self.tags.get(str(directory), frozenset()) != tags:
                yield Tags(directory, tags)
        yield from self._skipped(skipped)

    def _skipped(self, errors: list[RecordError]) -> Iterator[Skipped]:
        """Go on behind folders and files that cannot be read."""
        while errors:
            self.is_whole = False
            yield Skipped(str(errors.pop(0)))

    def _of_file(self, file: Path, part_of: str) -> Iterator[Wanted]:
        try:
            mark = fingerprint(file)
        except FileNotFoundError:  # taken away since it was found
            return
        self.seen.add(str(file))
        if self.known.get(str(file)) == mark:
            self.unchanged += 1
        else:
            yield Wanted(file, mark, part_of)


def index_place(opened: sqlite3.Connection, place: Path, tally: Tally) -> None:
    """Index all that is below a place; raise sqlite3.Error for a damaged index."""
    known = database.known_marks(opened, place)
    walk = _Walk(known, database.known_tags(opened, place))
    with closing(read_all(_batches(walk.found(place)))) as batches:
        for batch in batches:
            with database.writing(opened):
                for item in batch:
                    _put(opened, item)
            _count(batch, known, tally)
    tally.unchanged += walk.unchanged
    # What could not be looked into is not gone.
    gone = known.keys() - walk.seen if walk.is_whole else ()
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    with database.writing(opened):
        tally.vanished += database.mark_vanished(opened, gone, now=now)
        database.mark_back(opened, place, walk.seen)


def _put(opened: sqlite3.Connection, item: Item) -> None:
    match item:
        case Entry():
            database.put_entry(opened, item)
        case Damaged():
            database.put_damaged(opened, str(item.path), item.mark, item.why)
        case Tags():
            database.put_tags(opened, item.directory, item.tags)


def _count(batch: Sequence[Item], known: Mapping[str, str], tally: Tally) -> None:
    for item in batch:
        match item:
            case Damaged() | Skipped():
                tally.damaged.append(item.why)
            case Entry() if str(item.path) in known:
                tally.changed += 1
            case Entry():
                tally.new += 1


def _batches(found: Iterator[Found]) -> Iterator[Sequence[Found]]:
    while batch := list(islice(found, BATCH)):
        yield batch
