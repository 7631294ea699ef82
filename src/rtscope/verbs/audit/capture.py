"""
What an audit read, as one archive without secrets, and such an archive as a machine.

An archive may come by mail. It is unpacked within limits, into a private directory:
anything but regular files and folders refuses the whole archive.
"""

import io
import os
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError

from rtscope.host.errors import RecordError, UsageError
from rtscope.host.files import read_bounded
from rtscope.host.files.archive import Bounds, add_content, read_archive
from rtscope.host.files.jsontext import json_text
from rtscope.machine.audit.context import AuditContext, Observed
from rtscope.machine.filetree import FileReader
from rtscope.machine.reader import (
    MAX_FILE_BYTES,
    Content,
    Denied,
    Missing,
    paths_matching,
)
from rtscope.machine.redaction import NO_PROMISE, Redactions, redact_files, redact_text
from rtscope.record.model import refused

NOTES_NAME = "rtscope-capture.json"
SCHEMA = 1
MAX_FILES = 50_000
MAX_TOTAL_BYTES = 64 * 1024 * 1024
_NOTES_BYTES = 16 * 1024 * 1024
"""Left for the notes, which have the kernel log."""


@dataclass(frozen=True, slots=True)
class _Notes:
    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    schema: Literal[1]
    denied: Mapping[str, str]
    observed: Observed
    redaction: str = ""


_SHAPE = TypeAdapter(_Notes)

STAYS = (
    "names of hosts, users, files and processes, and network addresses stay, for the "
    "checks"
)


@dataclass(frozen=True, slots=True)
class Captured:
    """A captured tree, as a `reading.Reader`: what was refused stays refused."""

    root: Path
    denied: Mapping[str, str] = field(default_factory=dict)
    """Paths and patterns that could not be read there, and why."""
    observed: Observed = field(default_factory=Observed)

    def read_many(self, paths: Sequence[str]) -> Mapping[str, Content]:
        """See `reading.Reader`."""
        contents = dict(FileReader(self.root).read_many(paths))
        for path in paths:
            for name in paths_matching(path, self.denied):
                contents[name] = Denied(self.denied[name])
                if isinstance(contents.get(path), Missing) and path != name:
                    del contents[path]
        return contents


@dataclass(frozen=True, slots=True)
class Archive:
    """What was read, as one archive."""

    content: bytes
    redacted: Redactions
    files: int
    left_out: Mapping[str, str]
    """Why files are not in it, by path: its reader has limits."""


def archive(context: AuditContext) -> Archive:
    """Return what was read as a tar file, and what was taken out of it."""
    tally = Redactions()
    files = {p: c for p, c in context.machine.files.items() if isinstance(c, bytes)}
    kept = redact_files(files, tally)
    left_out = _too_many(kept)
    kept = {path: kept[path] for path in kept if path not in left_out}
    notes = {
        "schema": SCHEMA,
        "redaction": f"{NO_PROMISE}; {STAYS}",
        "denied": {
            p: c.reason
            for p, c in context.machine.files.items()
            if isinstance(c, Denied)
        }
        | left_out,
        "observed": asdict(context.observed),
    }
    # Strings of a JSON document one by one: its own quotes must stay.
    text = json_text(_redacted(notes, tally), indent=1)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
        for path, content in {**kept, f"/{NOTES_NAME}": text.encode()}.items():
            add_content(tar, path.lstrip("/"), content, mode=0o600)
    return Archive(buffer.getvalue(), tally, len(kept), left_out)


def _too_many(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return why files are left out, the largest first: `unpack` has limits."""
    left = sorted(files, key=lambda path: len(files[path]))
    total, gone = sum(map(len, files.values())), []
    while left and (
        len(left) >= MAX_FILES
        or total > MAX_TOTAL_BYTES - _NOTES_BYTES
        or len(files[left[-1]]) > MAX_FILE_BYTES
    ):
        gone.append(left.pop())
        total -= len(files[gone[-1]])
    why = (
        f"left out of the capture: it has at most {MAX_FILES:,} files, "
        f"{MAX_FILE_BYTES:,} bytes of one and {MAX_TOTAL_BYTES:,} of all"
    )
    return dict.fromkeys(gone, why)


def open_tree(root: Path) -> Captured:
    """Return a directory as a machine; UsageError if its notes are damaged."""
    notes = root / NOTES_NAME
    if not os.path.lexists(notes):
        return Captured(root)
    try:
        content = read_bounded(notes, limit=MAX_TOTAL_BYTES, kind="capture")
        read = _SHAPE.validate_json(content)
    except RecordError as error:
        raise UsageError(str(error)) from error
    except ValidationError as error:
        again = "capture it again: rtscope audit --capture"
        why = refused(
            content, error, name=str(notes), kind="capture", known=SCHEMA, again=again
        )
        raise UsageError(str(why)) from error
    return Captured(root, read.denied, read.observed)


def unpack(path: Path, into: Path) -> None:
    """Unpack an archive into an empty private directory; UsageError if it is odd."""

    def write(name: str, content: IO[bytes], size: int) -> None:
        place = PurePosixPath(name)
        if place.is_absolute() or ".." in place.parts or not place.parts:
            raise UsageError(f"{path}: {name!a} is not a path below the archive's root")
        if size > MAX_FILE_BYTES and name != NOTES_NAME:
            raise UsageError(f"{path}: {name!a} is too large for a file of a capture")
        _write_new(into.joinpath(*place.parts), content.read())

    bounds = Bounds(
        "capture",
        UsageError,
        max_bytes=MAX_TOTAL_BYTES,
        max_files=MAX_FILES,
        folders=True,
    )
    read_archive(path, write, bounds)
    if not any(into.iterdir()):
        raise UsageError(f"{path}: an empty archive")


def _write_new(place: Path, content: bytes) -> None:
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(place, flags, 0o600), "wb") as file:
        file.write(content)


def _redacted(value: Any, tally: Redactions) -> Any:
    if isinstance(value, str):
        return redact_text(value, tally)
    if isinstance(value, Mapping):
        return {
            _redacted(key, tally): _redacted(item, tally) for key, item in value.items()
        }
    return value


def taken(context: AuditContext) -> Iterator[str]:
    """List the contents of an archive, one line for each place."""
    places = Counter(
        _place(path)
        for path, content in context.machine.files.items()
        if isinstance(content, bytes)
    )
    for place, count in sorted(places.items()):
        yield f"{place}: {count} file{'s' if count > 1 else ''}"
    if context.observed.kernel_log is not None:
        yield "the kernel log"
    if context.observed.window_ns:
        yield "the counters of the observation window"


def _place(path: str) -> str:
    parts = path.split("/")[:4]
    if parts[1:2] == ["proc"] and parts[2].isdecimal():
        return "/proc/PID (names and state of processes)"
    if parts[1:3] == ["proc", "irq"]:
        return "/proc/irq"
    return "/".join(parts)
