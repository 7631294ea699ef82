"""
What an audit read, as one archive without secrets, and such an archive as a machine.

An archive may come by mail. It is unpacked by this module alone: regular files only,
bounded in number and size, into a private directory; anything else refuses the whole
archive.
"""

import gzip
import io
import json
import os
import tarfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from rtscope.host.errors import RecordError, UsageError
from rtscope.host.files import read_bounded
from rtscope.host.files.documents import json_object
from rtscope.host.files.opening import open_named
from rtscope.machine.audit.context import AuditContext, Observed, Trial
from rtscope.machine.filetree import FileReader
from rtscope.machine.reader import (
    MAX_FILE_BYTES,
    Content,
    Denied,
    Missing,
    paths_matching,
)
from rtscope.machine.redaction import NO_PROMISE, Redactions, redact_files, redact_text

NOTES_NAME = "rtscope-capture.json"
SCHEMA = 1
MAX_FILES = 50_000
MAX_TOTAL_BYTES = 64 * 1024 * 1024
MAX_ARCHIVE_BYTES = 2 * MAX_TOTAL_BYTES
"""Unpacked, with the tar format's own blocks."""

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


def archive(context: AuditContext) -> tuple[bytes, Redactions, int]:
    """Return what was read as a tar file, and what was taken out of it."""
    tally = Redactions()
    files = {p: c for p, c in context.machine.files.items() if isinstance(c, bytes)}
    kept = redact_files(files, tally)
    notes = {
        "schema": SCHEMA,
        "redaction": f"{NO_PROMISE}; {STAYS}",
        "denied": {
            p: c.reason
            for p, c in context.machine.files.items()
            if isinstance(c, Denied)
        },
        "observed": asdict(context.observed),
    }
    # Strings of a JSON document one by one: its own quotes must stay.
    text = json.dumps(_redacted(notes, tally), indent=1)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
        for path, content in {**kept, f"/{NOTES_NAME}": text.encode()}.items():
            member = tarfile.TarInfo(path.lstrip("/"))
            member.size = len(content)
            member.mode = 0o600
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue(), tally, len(kept)


def open_tree(root: Path) -> Captured:
    """Return a directory as a machine; UsageError if its notes are damaged."""
    notes = root / NOTES_NAME
    if not os.path.lexists(notes):
        return Captured(root)
    try:
        content = read_bounded(notes, limit=MAX_TOTAL_BYTES, kind="capture")
        document = json_object(content, name=str(notes))
        if document["schema"] != SCHEMA:
            raise UsageError(
                f"{root}: a capture of schema {document['schema']!r}; this rtscope "
                f"reads {SCHEMA}"
            )
        return Captured(root, _words(document["denied"]), _observed(document))
    except RecordError as error:
        raise UsageError(str(error)) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"{root}: its {NOTES_NAME} is damaged: {error!r}") from error


def unpack(path: Path, into: Path) -> None:
    """Unpack an archive into an empty private directory; UsageError if it is odd."""
    try:
        with open_named(path, kind="capture", error=UsageError) as file:
            _unpack(_plain(file), into)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    except (tarfile.TarError, zlib.error, EOFError, ValueError, OverflowError) as error:
        raise UsageError(
            f"{path}: not an archive of `rtscope audit --capture`: {error}"
        ) from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error


@dataclass(slots=True)
class _Bounded:
    """A file that ends with an error before it unpacks to more than it may."""

    file: IO[bytes]
    left: int = MAX_ARCHIVE_BYTES

    def read(self, size: int) -> bytes:
        content = self.file.read(min(size, self.left + 1))
        self.left -= len(content)
        if self.left < 0:
            raise UsageError(f"it unpacks to more than {MAX_ARCHIVE_BYTES} bytes")
        return content


def _plain(file: IO[bytes]) -> _Bounded:
    magic = file.read(2)
    file.seek(0)
    if magic == b"\x1f\x8b":
        return _Bounded(gzip.GzipFile(fileobj=file))  # type: ignore[arg-type]
    return _Bounded(file)


def _unpack(file: _Bounded, into: Path) -> None:
    left = MAX_TOTAL_BYTES
    count = 0
    with tarfile.open(fileobj=cast("IO[bytes]", file), mode="r|") as tar:
        for member in tar:
            count += 1
            if count > MAX_FILES:
                raise UsageError(f"more than {MAX_FILES} entries")
            if member.isdir():
                continue
            left -= member.size
            _refuse_odd(member, left)
            source = tar.extractfile(member)
            assert source is not None  # _refuse_odd let regular files through only
            _write_new(into.joinpath(*_parts(member.name)), source.read())
    if count == 0:
        raise UsageError("an empty archive")


def _refuse_odd(member: tarfile.TarInfo, left: int) -> None:
    if not member.isreg() or member.issparse():
        raise UsageError(f"{member.name!a} is not a regular file")
    biggest = MAX_TOTAL_BYTES if member.name == NOTES_NAME else MAX_FILE_BYTES
    if member.size > biggest or left < 0:
        raise UsageError(f"{member.name!a} is too big, or the whole archive is")


def _parts(name: str) -> tuple[str, ...]:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise UsageError(f"{name!a} is not a path below the archive's root")
    return path.parts


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


def _observed(document: Mapping[str, Any]) -> Observed:
    fields = dict(document["observed"])
    trial = fields.pop("trial")
    observed = Observed(**fields, trial=None if trial is None else Trial(**trial))
    for texts in (observed.before, observed.after, observed.dma_holders):
        _words(texts)
    coalescing = observed.coalescing
    if coalescing is not None and not isinstance(coalescing, dict):
        raise TypeError("the answers of network interfaces are no table")
    numbers = (
        *(value for answer in (coalescing or {}).values() for value in answer.values()),
        *(observed.window_ns, observed.clock_cost_ns, observed.clock_resolution_ns),
        *(observed.dma_latency_us, *observed.smi_before.values()),
        *observed.smi_after.values(),
    )
    if not all(n is None or isinstance(n, int) for n in numbers):
        raise ValueError("a number is none")
    if not isinstance(observed.kernel_log, str | None):
        raise TypeError("the kernel log is no text")
    return observed


def _words(document: Any) -> Mapping[str, str]:
    if not isinstance(document, dict) or not all(
        isinstance(text, str) for text in document.values()
    ):
        raise TypeError("not a table of texts")
    return document


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
