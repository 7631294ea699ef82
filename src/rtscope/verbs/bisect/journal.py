"""
The journal of a search: one line for each kernel that was tried.

A line is written and synced before the next kernel is built. A last line that was cut
off by a crash is left out; its kernel is built again.
"""

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from rtscope.host.errors import RecordError
from rtscope.host.files import advice_for, read_bounded
from rtscope.host.files.documents import json_object

STEPS = "steps.jsonl"
MAX_BYTES = 64 << 20

# Of a kernel, and so of the directory of its records.
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,127}")


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


_STEP = TypeAdapter(Tried)


@dataclass(slots=True)
class Journal:
    """The kernels that were tried, in their order."""

    path: Path | None = None
    """Where the lines are; None: nowhere."""
    steps: dict[str, Tried] = field(default_factory=dict)

    def find(self, name: str) -> Tried | None:
        """Return what came of a kernel; None if it was not tried."""
        return self.steps.get(name)

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
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise RecordError(
                f"cannot write {self.path}: {error.strerror}{advice_for(error)}"
            ) from error


def read_journal(path: Path) -> Journal:
    """Read the journal of a search; RecordError names a damaged line."""
    journal = Journal(path)
    if not path.exists():
        return journal
    try:
        text = read_bounded(path, limit=MAX_BYTES, kind="journal").decode("utf-8")
    except UnicodeDecodeError as error:
        raise RecordError(
            f"{path}: no journal of a search; search again with a new --out"
        ) from error
    *lines, last = text.split("\n")
    if last:
        _cut(path, last)
    for number, line in enumerate(lines, 1):
        try:
            row = json_object(line, name=str(path))
            if "forget" in row:
                journal.steps.pop(row["forget"], None)
                continue
            tried = _tried(row)
        except (RecordError, ValueError, TypeError) as error:
            raise RecordError(
                f"{path}, line {number}: no step of a search; search again with a new "
                "--out"
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


def _cut(path: Path, last: str) -> None:
    """Remove a line without an end, so that the next one is not joined to it."""
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - len(last.encode()))
