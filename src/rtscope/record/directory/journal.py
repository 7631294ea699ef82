"""
What stands beside records: lists that are replaced, and a journal of lines.

A sweep has lists, by the run or the remedy; each is replaced as a whole. A search has
one line for each kernel that was tried, written and synced before the next one is
built. A last line that was cut off by a crash is left out; its kernel is built again.
"""

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from rtscope.host.errors import RecordError
from rtscope.host.files import advice_for, read_bounded, write_atomically
from rtscope.host.files.documents import json_object
from rtscope.host.files.jsontext import json_text
from rtscope.host.files.opening import is_there, refuse_larger

STEPS = "steps.jsonl"
"""In the directory of a search."""
MAX_LIST_BYTES = 16 << 20
MAX_JOURNAL_BYTES = 64 << 20
MAX_REASON = 1024
"""Characters of each reason in a list that would be too long."""

# Of a kernel, and so of the directory of its records.
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,127}")

T = TypeVar("T")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


class State(StrEnum):
    """What came of what was asked."""

    ASKED = "asked"
    """Nothing yet."""
    DONE = "done"
    FAILED = "failed"
    """It was tried, and has no result."""
    IMPOSSIBLE = "impossible"
    """It cannot be tried."""


@dataclass(frozen=True, slots=True)
class Noted(Generic[T]):
    """A list in the directory of a sweep, which is replaced as a whole."""

    name: str
    of: str
    shape: TypeAdapter[T]
    none: T

    def read(self, path: Path) -> T:
        """Return the list of a directory; RecordError if it is damaged."""
        file = path / self.name
        if not is_there(file):
            return self.none
        text = read_bounded(file, limit=MAX_LIST_BYTES, kind=f"list of {self.of}")
        try:
            return self.shape.validate_json(text)
        except ValidationError as error:
            raise RecordError(
                f"{file}: damaged: no list of {self.of}; delete it to go on without "
                "the list"
            ) from error

    def write(self, path: Path, noted: T) -> None:
        """
        Replace the list of a directory; reasons are cut where a reader needs that.

        Raises RecordError if it cannot be written, or is too long even so.
        """
        text = self._text(noted)
        most = MAX_REASON
        while len(text) > MAX_LIST_BYTES and isinstance(noted, Mapping) and most > 1:
            short = {name: _cut(str(why), most) for name, why in noted.items()}
            text, most = self._text(short), most // 2
        file = path / self.name
        refuse_larger(file, len(text), MAX_LIST_BYTES, kind=f"list of {self.of}")
        write_atomically(file, text)

    def _text(self, noted: object) -> bytes:
        indent = 1 if isinstance(noted, Mapping) else None
        return json_text(noted, indent=indent).encode()


_WHYS: TypeAdapter[Mapping[str, str]] = TypeAdapter(dict[str, str])
CELL_NUMBERS: Noted[Sequence[int]] = Noted(
    "asked.json", "cells", TypeAdapter(list[int]), ()
)
CHECKED = Noted("checked.json", "checks", _WHYS, {})
"""Why there are no two results of a run that was computed twice; empty: they agree."""
FAILED = Noted("failed.json", "failures", _WHYS, {})
"""Why runs have no result."""
IMPOSSIBLE = Noted("impossible.json", "remedies", _WHYS, {})
"""Why remedies cannot be tried, by their names."""
REMEDY = "remedy"
"""The axis of a sweep of remedies."""


def part_name(text: str) -> str:
    """Return what the name of a directory has for a cell, behind its number."""
    return re.sub(r"[^A-Za-z0-9.+]+", "-", text).strip("-")[:60]


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of one kernel."""

    name: str
    """A commit, the number of a patch, or the digest of some settings."""
    source: str = ""
    """Identifies source and configuration."""
    kernel_digest: str = ""
    values: Mapping[int, float] = field(default_factory=dict)
    """The figure by seed, latencies in ns; empty: it was skipped."""
    why: str = ""
    """Why it was skipped."""
    built: bool = True
    """False: it does not build, or needed no build."""
    like: str = ""
    """The kernel that was measured in its place, because it is the same."""

    def named(self, name: str, source: str, *, built: bool) -> "Tried":
        """Return the same kernel under another name, built to see that or not."""
        like = self.like or self.name
        return replace(self, name=name, source=source, like=like, built=built)

    @property
    def directory(self) -> str:
        """The name of its directory of records."""
        return self.like or self.name

    @property
    def state(self) -> State:
        """Whether it has figures, and could have some."""
        if not self.why:
            return State.DONE
        return State.FAILED if self.built else State.IMPOSSIBLE


_STEP = TypeAdapter(Tried)


@dataclass(slots=True)
class Journal:
    """The kernels that were tried, in their order."""

    path: Path | None = None
    """Where the lines are; None: nowhere."""
    steps: dict[str, Tried] = field(default_factory=dict)

    def add(self, tried: Tried) -> None:
        """Note a kernel; RecordError if that cannot be written."""
        self.steps[tried.name] = tried
        self._append(asdict(tried))

    def forget(self, name: str) -> None:
        """Have a kernel tried again the next time."""
        del self.steps[name]
        self._append({"forget": name})

    def _append(self, row: Mapping[str, Any]) -> None:
        if self.path is None:
            return
        line = json_text(row, indent=None).encode()
        try:
            with self.path.open("ab") as file:
                size = file.tell() + len(line)
                if size > MAX_JOURNAL_BYTES:
                    raise RecordError(
                        f"{self.path}: full, with {MAX_JOURNAL_BYTES:,} bytes at most; "
                        "start again with another --out"
                    )
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise RecordError(
                f"cannot write {self.path}: {error.strerror}{advice_for(error)}"
            ) from error


def read_journal(path: Path, *, mend: bool = True) -> Journal:
    """
    Read the journal of a search; RecordError names a damaged line.

    A line without an end is left out, and removed unless nothing is to be written.
    """
    journal = Journal(path)
    if not is_there(path):
        return journal
    again = "start again with another --out"
    try:
        text = read_bounded(path, limit=MAX_JOURNAL_BYTES, kind="journal").decode()
    except UnicodeDecodeError as error:
        raise RecordError(f"{path}: no journal of a search; {again}") from error
    *lines, last = text.split("\n")
    if last and mend:  # so that the next one is not joined to it
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - len(last.encode()))
    for number, line in enumerate(lines, 1):
        try:
            row = json_object(line, name=str(path))
            if "forget" in row:
                journal.steps.pop(row["forget"], None)
                continue
            tried = _tried(row)
        except (RecordError, ValueError, TypeError) as error:
            raise RecordError(
                f"{path}, line {number}: no step of a search; {again}"
            ) from error
        journal.steps[tried.name] = tried
    return journal


def _tried(row: object) -> Tried:
    """Read a step; ValueError for one that is none: it may have come by mail."""
    tried = _STEP.validate_python(row)
    if not all(map(math.isfinite, tried.values.values())):
        raise ValueError("no figures")
    if not _NAME.fullmatch(tried.name) or not _NAME.fullmatch(tried.directory):
        raise ValueError("names no kernel")
    return tried
