"""
Unpack gzip, xz, lzma, bzip2 and zstd piece by piece, within limits of memory and size.

No file beside the input is touched. What one piece gives stays small, however much
a stream promises: zeros are packed 32,768 to 1 by zstd, and a piece has 1 KiB.
"""

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import zstandard

from rtscope.host.errors import RecordError

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
