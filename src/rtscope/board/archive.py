"""
Read a tar archive from somebody else, within limits of memory and size.

`tarfile` reads a whole extended header into memory, however large it claims to be, and
a few bytes unpack to gigabytes. Here every read has a budget: a small one for the
header of a file, and the file's own size for its content.
"""

import gzip
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from rtscope.errors import BoardError, UsageError

MAX_HEADER_BYTES = 1 << 20
"""For the header of one file: names are short, and a part has no sparse files."""

_BLOCK_BYTES = 512

_GZIP = b"\x1f\x8b"

TakeFile = Callable[[str, IO[bytes], int], None]
"""Takes the name, the content and the size in bytes of a regular file."""


def read_archive(path: Path, take: TakeFile, *, max_bytes: int, max_files: int) -> None:
    """
    Give each file of an archive, plain or gzip, to `take`.

    Raises UsageError if it cannot be read, BoardError for anything but regular files
    or beyond the limits, which the message names.
    """
    total = 0
    try:
        with _opened(path) as file, _archive_of(file) as archive:
            for count in range(max_files + 1):
                file.budget_bytes = MAX_HEADER_BYTES
                if (member := archive.next()) is None:
                    return
                total += max(0, member.size)
                if total > max_bytes or count == max_files:
                    raise BoardError(
                        f"{path}: too large for a bundle: more than {max_bytes:,} "
                        f"bytes or {max_files:,} files"
                    )
                if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
                    raise BoardError(f"{path}: {member.name!r} is no regular file")
                file.budget_bytes = member.size + _BLOCK_BYTES
                take(
                    member.name,
                    cast("IO[bytes]", archive.extractfile(member)),
                    member.size,
                )
    except _HeaderError as error:
        raise BoardError(
            f"{path}: the header of a file has more than {MAX_HEADER_BYTES:,} bytes"
        ) from error
    except RecursionError as error:
        raise BoardError(f"{path}: a file has too many headers") from error
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UsageError(f"{path}: not a bundle, or damaged ({error})") from error
    except (ValueError, OverflowError) as error:  # numbers of a header
        raise UsageError(f"{path}: not a bundle, or damaged ({error})") from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error


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
    with path.open("rb") as raw:
        packed = raw.read(len(_GZIP)) == _GZIP
        raw.seek(0)
        if not packed:
            yield _Budgeted(raw)
            return
        with gzip.GzipFile(fileobj=raw, mode="rb") as unpacked:
            yield _Budgeted(cast("IO[bytes]", unpacked))


def _archive_of(file: _Budgeted) -> tarfile.TarFile:
    file.budget_bytes = MAX_HEADER_BYTES  # opening reads the first header
    return tarfile.open(fileobj=cast("IO[bytes]", file), mode="r:")
