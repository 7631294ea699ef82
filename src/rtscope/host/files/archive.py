"""
Archives and compressed data: written, and read within limits of memory and size.

`tarfile` reads a whole extended header into memory, however large it claims to be, and
a few bytes unpack to gigabytes. Here every read has a budget: a small one for the
header of a file, and the file's own size for its content.

No file beside the input is touched. What one piece gives stays small, however much
a stream promises: zeros are packed 32,768 to 1 by zstd, and a piece has 1 KiB.
"""

import bz2
import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

import zstandard

from rtscope.host.errors import RecordError, RtscopeError, UsageError
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


# Unpack gzip, xz, lzma, bzip2 and zstd piece by piece, within limits of memory and
# size.

MAX_DICTIONARY_BYTES = 192 << 20
"""Memory for xz; the kernel's own images are packed with 128 MiB."""

PIECE_BYTES = 1 << 10

DAMAGES = (zlib.error, lzma.LZMAError, zstandard.ZstdError, OSError, EOFError)
"""What the unpackers raise for a damaged stream."""

_MAGIC_BYTES = 6


class Unzstd:
    """The interface of the unpackers of the standard library."""

    def __init__(self) -> None:
        self._unpacking = zstandard.ZstdDecompressor(
            max_window_size=MAX_DICTIONARY_BYTES
        ).decompressobj()

    @property
    def eof(self) -> bool:
        """Whether the stream has ended."""
        return bool(self._unpacking.eof)

    @property
    def unused_data(self) -> bytes:
        """The bytes behind the end of the stream."""
        return bytes(self._unpacking.unused_data)

    def decompress(self, packed: bytes, _max_bytes: int = -1) -> bytes:
        """Unpack a piece; it knows no maximum, and 1 KiB gives at most 32 MiB."""
        return bytes(self._unpacking.decompress(packed))


_XZ = partial(lzma.LZMADecompressor, memlimit=MAX_DICTIONARY_BYTES)

UNPACKERS: Mapping[bytes, tuple[str, Callable[[], Any]]] = {
    b"\x1f\x8b": ("gzip", partial(zlib.decompressobj, wbits=31)),
    b"\xfd7zXZ\0": ("xz", _XZ),
    b"\x5d\0\0": ("lzma", _XZ),
    b"\x28\xb5\x2f\xfd": ("zstd", Unzstd),
    **{bytes((byte,)) + b"\x2a\x4d\x18": ("zstd", Unzstd) for byte in range(80, 96)},
    b"BZh": ("bzip2", bz2.BZ2Decompressor),
}
"""Name and unpacker by the bytes that a stream begins with."""

_OTHERS = {
    b"\x04\x22\x4d\x18": ("lz4", "lz4 -d FILE"),
    b"\x02\x21\x4c\x18": ("lz4", "lz4 -d FILE"),
    b"PK\x03\x04": ("zip", "unzip FILE"),
    b"7z\xbc\xaf": ("7z", "7z x FILE"),
    b"\x89LZO": ("lzop", "lzop -d FILE"),
    b"\x1f\x9d": ("compress", "uncompress FILE"),
    b"LZIP": ("lzip", "lzip -d FILE"),
}
"""Not unpacked here: their names, and the command that unpacks them."""


def packed_with(head: bytes, *, name: str) -> str:
    """
    Return how a file is compressed, by its first bytes; empty if it is not.

    Raises RecordError, with the command that unpacks it, for a compression that rtscope
    does not read.
    """
    for magic, (called, command) in _OTHERS.items():
        if head.startswith(magic):
            raise RecordError(
                f"{name}: compressed with {called}, which rtscope does not read; "
                f"unpack it first: {command}"
            )
    magics = (called for m, (called, _) in UNPACKERS.items() if head.startswith(m))
    return next(magics, "")


def unpacked(pieces: Iterable[bytes], *, name: str, limit: int) -> Iterator[bytes]:
    """
    Yield the content of a compressed file, of all its streams one after another.

    Raises RecordError if it is damaged, cut short, or has over `limit` bytes.
    """
    size = 0
    for piece in _streams(pieces, name=name):
        size += len(piece)
        if size > limit:
            raise RecordError(
                f"{name}: over {limit:,} bytes unpacked, the most that rtscope reads "
                "of a compressed file; unpack it first, if it is no mistake"
            )
        if piece:
            yield piece


def _streams(pieces: Iterable[bytes], *, name: str) -> Iterator[bytes]:
    unpacking, called, ended, waiting = None, "", False, b""
    for piece in pieces:
        for at in range(0, len(piece), PIECE_BYTES):
            waiting += piece[at : at + PIECE_BYTES]
            while waiting:
                if unpacking is None:
                    waiting = waiting.lstrip(b"\0")  # between two streams
                    if len(waiting) < _MAGIC_BYTES:
                        break
                    called = packed_with(waiting, name=name)
                    if not called:  # zeros of a tape, or a signature
                        return
                    unpacking = _unpacker(waiting)()
                    ended = False
                try:
                    yield unpacking.decompress(waiting)
                except DAMAGES as error:
                    raise RecordError(
                        f"{name}: compressed with {called}, and damaged: {error}"
                    ) from error
                waiting = unpacking.unused_data if unpacking.eof else b""
                if unpacking.eof:
                    unpacking, ended = None, True
    if not ended:
        raise RecordError(f"{name}: compressed with {called}, and cut short")


def _unpacker(head: bytes) -> Callable[[], Any]:
    return next(make for m, (_, make) in UNPACKERS.items() if head.startswith(m))
