"""
One file to mail: a result directory as an archive of limited size.

    NAME/pack.json            what was left out, and whether it was redacted
    NAME/campaign.json ...    the files of the directory (`rtscope.record.directory`)
    NAME/report.html          the page, made when the archive was

Records always fit or nothing is written; then come explanations, audits and the page,
and recordings as far as there is room, those of the worst wake-ups first. An archive
may come by mail: only the files of this list are unpacked, within limits, into a new
private directory.
"""

import re
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from rtscope.host.errors import RecordError, UsageError
from rtscope.host.files import new_file, read_bounded
from rtscope.host.files.archive import (
    GZIP,
    Bounds,
    add_content,
    archive_to,
    read_archive,
)
from rtscope.host.files.heldfolders import temporary_folder
from rtscope.host.files.jsontext import json_text
from rtscope.host.files.opening import at_hand, is_there
from rtscope.record.directory.place import CAMPAIGN
from rtscope.record.directory.records import (
    INTERRUPTED,
    RECORD,
    UNFINISHED,
    ResultDir,
    no_records,
)
from rtscope.record.explanation import EXPLAINED
from rtscope.record.model import MAX_RECORD_BYTES, record_from_json
from rtscope.record.samples import FILE as SAMPLES

SCHEMA = 1
NOTES = "pack.json"
PAGE = "report.html"
SUFFIX = ".rtscope.tar.gz"

MAX_BYTES = 512 << 20
"""Of all files together, unpacked: it is unpacked where temporary files are."""
MAX_FILES = 20_000

_NEEDED = (RECORD, INTERRUPTED)
_OPTIONAL = (EXPLAINED, "audit.json", "kernel.log", SAMPLES)
RECORDINGS = (
    *("worst.trace.gz", "worst.trace.dat"),
    *("replay.trace.gz", "bound.trace.gz"),
)
"""Of a run, most useful first."""
_OF_RUN = (*_NEEDED, *_OPTIONAL, *RECORDINGS)
_OF_ALL = (NOTES, CAMPAIGN.file, PAGE)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,150}")
_RUN = re.compile(r"[0-9]{3,6}-[a-z0-9][a-z0-9._+-]{0,150}")
_LINES = re.compile(rf"{_RUN.pattern}\.jsonl")
_NOTES_BYTES = 8 << 20
"""Left for the notes: a line for each file that is left out."""
_MOST = f"{MAX_FILES:,} files and {MAX_BYTES:,} bytes unpacked"
_HEADER_BYTES = 128
"""What a file takes in the archive beside its content."""

_BOUNDS = Bounds("packed result", RecordError, max_bytes=MAX_BYTES, max_files=MAX_FILES)

Files = Mapping[str, bytes]
"""Content of each file, by its path in the result directory, first to pack first."""


@dataclass(frozen=True, slots=True)
class Packed:
    """What was written."""

    size_bytes: int
    files: int
    left_out: Mapping[str, str]
    """Why, by path."""


def collect(directory: Path) -> dict[str, bytes]:
    """
    Return what a result directory holds, in the order in which it is packed.

    Links are not followed. Raises UsageError if it has no record, RecordError if one is
    damaged.
    """
    runs = [p for p in sorted((directory / "runs").glob("*")) if _is_folder(p)]
    runs = [p for p in runs if _RUN.fullmatch(p.name) and _has(p, *_NEEDED)]
    if not runs:
        raise no_records(directory)
    take = partial(_take, directory)
    files = dict(take(CAMPAIGN.file))
    for run in runs:
        files |= take(*(f"runs/{run.name}/{name}" for name in _NEEDED))
    max_ns = {
        path.split("/")[1]: record_from_json(text, name=path).max_ns or 0
        for path, text in files.items()
        if path != CAMPAIGN.file
    }
    for run in runs:
        files |= take(*(f"runs/{run.name}/{name}" for name in _OPTIONAL))
    lines = ResultDir(directory).unfinished().values()
    files |= take(*(f"{UNFINISHED}/{path.name}" for path in lines))
    for name in RECORDINGS:
        worst_first = sorted(max_ns, key=lambda run: -max_ns[run])
        files |= take(*(f"runs/{run}/{name}" for run in worst_first))
    return files


def pack(
    path: Path,
    files: Files,
    *,
    name: str,
    limit_bytes: int,
    notes: Mapping[str, object],
    left_out: Mapping[str, str],
) -> Packed:
    """
    Write files into an archive of at most `limit_bytes`, below a folder of that name.

    `left_out` tells of files that are not in `files`, and why. Raises UsageError if the
    records do not fit, RecordError if the archive cannot be written.
    """
    fitting, too_large = _fitting(files, limit_bytes)
    left = {**left_out, **too_large}
    document = {"schema": SCHEMA, **notes, "left_out": left}
    text = json_text(document, indent=1).encode()
    hint = "; choose another place with --out"
    with (
        new_file(path, RecordError, hint=hint) as new,
        archive_to(new, compress=True) as archive,
    ):
        for file, content in {NOTES: text, **fitting}.items():
            add_content(archive, f"{name}/{file}", content)
    return Packed(path.stat().st_size, len(fitting) + 1, left)


def _fitting(files: Files, limit_bytes: int) -> tuple[dict[str, bytes], dict[str, str]]:
    """Divide files into those that fit and, with the reason, those that do not."""
    fitting: dict[str, bytes] = {}
    left_out: dict[str, str] = {}
    used, unpacked = 1024, _NOTES_BYTES
    for file, content in files.items():
        size = len(zlib.compress(content, 6)) + _HEADER_BYTES
        readable = unpacked + len(content) <= MAX_BYTES and len(fitting) < MAX_FILES - 1
        if readable and used + size <= limit_bytes:
            fitting[file] = content
            used += size
            unpacked += len(content)
        elif file == CAMPAIGN.file or file.endswith(_NEEDED):
            raise UsageError(
                "the records alone need more than "
                + (
                    f"{limit_bytes:,} bytes: allow more with --max-size"
                    if readable
                    else f"{_MOST}: pack the directories of some runs apart"
                )
            )
        elif not readable:
            left_out[file] = f"an archive has at most {_MOST}"
        else:
            left_out[file] = f"{size:,} bytes more do not fit into {limit_bytes:,}"
    return fitting, left_out


@contextmanager
def unpacking() -> Iterator[Callable[[Path], Path]]:
    """
    Give a function that makes a directory of a packed result, until the context ends.

    It returns every other path as it is. It raises UsageError or RecordError for an
    archive that is damaged, too large, or holds what `rtscope pack` does not write.
    """
    with ExitStack() as stack:

        def opened(path: Path) -> Path:
            if path.exists() and not (path.is_dir() or path.is_file()):
                path = stack.enter_context(at_hand(path, kind="packed result"))
            if not is_packed(path):
                return path
            into = stack.enter_context(temporary_folder("pack", error=RecordError))
            return unpack(path, into)

        yield opened


def is_packed(path: Path) -> bool:
    """Tell whether a path is a packed result, or another compressed file."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(GZIP)) == GZIP
    except OSError:
        return False


def unpack(path: Path, into: Path) -> Path:
    """Unpack an archive into an empty directory; return the result directory in it."""
    folders: set[str] = set()

    def write(name: str, content: IO[bytes], size: int) -> None:
        top, place = _place(name)
        folders.add(top)
        if len(folders) > 1:
            raise RecordError(f"{path}: {name!a} is no file of a packed result")
        target = into / top / place
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with target.open("xb") as file:
                shutil.copyfileobj(content, file)
                if file.tell() != size:
                    raise RecordError(f"{path}: {place} is cut short")
        except FileExistsError as error:
            raise RecordError(f"{path}: it holds {place} twice") from error

    read_archive(path, write, _BOUNDS)
    if not folders:
        raise UsageError(f"{path}: an empty archive, no packed result")
    return into / folders.pop()


def _place(name: str) -> tuple[str, str]:
    """Return top folder and path of a file that `pack` writes; else RecordError."""
    top, _, place = name.partition("/")
    folder, *below = place.split("/")
    if _NAME.fullmatch(top) and (
        (place in _OF_ALL)
        or (folder == UNFINISHED and len(below) == 1 and _LINES.fullmatch(below[0]))
        or (
            folder == "runs"
            and len(below) == 2
            and _RUN.fullmatch(below[0])
            and below[1] in _OF_RUN
        )
    ):
        return top, place
    raise RecordError(f"{name[:200]!a} is no file of a packed result")


def folder_name(directory: Path) -> str:
    """Return a name for the archive's folder that every reader accepts."""
    name = re.sub(r"[^A-Za-z0-9._+-]", "-", directory.resolve().name)
    return name[:100] if _NAME.fullmatch(name[:100]) else "results"


def _take(directory: Path, *names: str) -> Iterator[tuple[str, bytes]]:
    for name in names:
        path = directory / name
        needed = name.endswith(_NEEDED) and is_there(path)
        if needed or (path.is_file() and not path.is_symlink()):
            yield name, read_bounded(path, limit=MAX_RECORD_BYTES, kind="result file")


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _has(folder: Path, *names: str) -> bool:
    return any(is_there(folder / name) for name in names)
