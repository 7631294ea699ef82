"""
Write a tar archive; read one from somebody else within limits of memory and size.

`tarfile` reads a whole extended header into memory, however large it claims to be, and
a few bytes unpack to gigabytes. Here every read has a budget: a small one for the
header of a file, and the file's own size for its content.
"""

import gzip
import io
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from rtscope.host.errors import RtscopeError, UsageError
from rtscope.host.files.opening import open_named

MAX_HEADER_BYTES = 1 << 20
"""For the header of one file: names are short, and a part has no sparse files."""

_BLOCK_BYTES = 512

# Cut short, or numbers of a header.
_DAMAGED = (EOFError, ValueError, OverflowError)

GZIP = b"\x1f\x8b"
"""What every file of gzip begins with."""

TakeFile = Callable[[str, IO[bytes], int], None]
"""Takes the name, the content and the size in bytes of a regular file."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What an archive may hold, and what to say of one that holds more."""

    kind: str
    """Of the archive, for messages, e.g. bundle."""
    error: type[RtscopeError]
    max_bytes: int
    """Of all files together, unpacked."""
    max_files: int
    folders: bool = False
    """Whether folders may be entries of their own; they are passed over."""


def read_archive(path: Path, take: TakeFile, bounds: Bounds) -> None:
    """
    Give each file of an archive, plain or gzip, to `take`.

    Raises UsageError if it cannot be read, the error of `bounds` for anything but
    regular files or beyond the limits, which the message names.
    """
    refused = bounds.error
    total = 0
    try:
        with _opened(path) as file, _archive_of(file) as archive:
            for count in range(bounds.max_files + 1):
                file.budget_bytes = MAX_HEADER_BYTES
                if (member := archive.next()) is None:
                    return
                total += max(0, member.size)
                if total > bounds.max_bytes or count == bounds.max_files:
                    raise refused(
                        f"{path}: too large for a {bounds.kind}: more than "
                        f"{bounds.max_bytes:,} bytes or {bounds.max_files:,} files"
                    )
                if bounds.folders and member.isdir():
                    continue
                if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
                    raise refused(f"{path}: {member.name!r} is no regular file")
                file.budget_bytes = member.size + _BLOCK_BYTES
                take(
                    member.name,
                    cast("IO[bytes]", archive.extractfile(member)),
                    member.size,
                )
    except _HeaderError as error:
        raise refused(
            f"{path}: the header of a file has more than {MAX_HEADER_BYTES:,} bytes"
        ) from error
    except RecursionError as error:
        raise refused(f"{path}: a file has too many headers") from error
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, *_DAMAGED) as error:
        why = f"not a {bounds.kind}, or damaged ({error})"
        raise UsageError(f"{path}: {why}") from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error


@contextmanager
def archive_to(path: Path, *, compress: bool) -> Iterator[tarfile.TarFile]:
    """Give an archive to add files to; the same files give the same bytes."""
    with path.open("wb") as raw:
        if not compress:
            with tarfile.open(fileobj=raw, mode="w|") as archive:
                yield archive
            return
        # Neither name nor time of the file.
        packed = gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0)
        with packed, tarfile.open(fileobj=packed, mode="w|") as archive:
            yield archive


def add_content(
    archive: tarfile.TarFile, name: str, content: bytes, *, mode: int = 0o644
) -> None:
    """Add a file, without owner and time."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), mode
    archive.addfile(info, io.BytesIO(content))


class _HeaderError(Exception):
    """A read beyond the budget."""


class _Budgeted:
    """The part of a file that `tarfile` uses; it reads no more than the budget."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.budget_bytes = 0

    def read(self, size: int) -> bytes:
        if size > self.budget_bytes:
            raise _HeaderError
        self.budget_bytes -= size
        return self._file.read(size)

    def seek(self, position: int) -> int:
        if position - self._file.tell() > self.budget_bytes:
            raise _HeaderError
        return self._file.seek(position)

    def tell(self) -> int:
        return self._file.tell()


@contextmanager
def _opened(path: Path) -> Iterator[_Budgeted]:
    with open_named(path, kind="archive", error=UsageError) as raw:
        packed = raw.read(len(GZIP)) == GZIP
        raw.seek(0)
        if not packed:
            yield _Budgeted(raw)
            return
        with gzip.GzipFile(fileobj=raw, mode="rb") as unpacked:
            yield _Budgeted(cast("IO[bytes]", unpacked))


def _archive_of(file: _Budgeted) -> tarfile.TarFile:
    file.budget_bytes = MAX_HEADER_BYTES  # opening reads the first header
    return tarfile.open(fileobj=cast("IO[bytes]", file), mode="r:")
