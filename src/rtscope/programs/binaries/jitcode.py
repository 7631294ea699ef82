"""
Names of code that a program makes while it runs, from files that it writes of it.

/tmp/perf-PID.map has lines of begin, size and name; a jitdump has records, as of
tools/perf/Documentation/jitdump-specification.txt. A file that is another user's, no
plain file or a link is not read, and no more than MAX_BYTES of one.
"""

import os
import stat
import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_BYTES = 64 << 20
MAX_NAMES = 1 << 20
_MAX_NAME = 4096

_DUMP_MAGIC = 0x4A695444
_CODE_LOAD, _CODE_MOVE = 0, 1


@dataclass(frozen=True, slots=True)
class Piece:
    """A function in memory."""

    begin: int
    size: int
    name: str


class MadeCode:
    """Functions by their addresses; a later one is there instead of an earlier one."""

    def __init__(self, pieces: Sequence[Piece], *, too_large: str = "") -> None:
        self.too_large = too_large
        """The file whose names need more memory than there is: none is known."""
        self._pieces = {one.begin: one for one in pieces}
        self._begins = sorted(self._pieces)

    def at(self, address: int) -> str:
        """Return the name of the function at an address; empty if none is known."""
        number = bisect_right(self._begins, address) - 1
        if number < 0:
            return ""
        one = self._pieces[self._begins[number]]
        return one.name if address < one.begin + one.size else ""


def made_code(maps: Sequence[str], dumps: Sequence[str], *, uid: int) -> MadeCode:
    """Read these files as far as they are there, and are of this user or of root."""
    pieces: list[Piece] = []
    path = ""
    try:
        for path in dumps:
            pieces += _in_dump(_content(path, uid))
        for path in maps:
            content = _content(path, uid)
            if content:
                pieces += _in_map(content)
                break  # the others are other ways to the same file
        return MadeCode(pieces[:MAX_NAMES])
    except MemoryError:
        return MadeCode((), too_large=path)


def _content(path: str, uid: int) -> bytes:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        number = os.open(path, flags)
    except (OSError, ValueError):
        return b""
    try:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode) or about.st_uid not in (uid, 0):
            return b""
        with os.fdopen(number, "rb", closefd=False) as file:
            return file.read(MAX_BYTES)
    except OSError:
        return b""
    finally:
        os.close(number)


def _in_map(content: bytes) -> Iterator[Piece]:
    for number, line in enumerate(content.split(b"\n", MAX_NAMES)):
        words = line.split(None, 2)
        if number >= MAX_NAMES or len(words) < 3 or len(words[0]) > 18:
            continue
        try:
            begin, size = int(words[0], 16), int(words[1], 16)
        except ValueError:
            continue
        if begin > 0 and size > 0:
            yield Piece(begin, size, _text(words[2]))


def _in_dump(content: bytes) -> Iterator[Piece]:
    if len(content) < 40:
        return
    order = "<" if content[:4] == b"DTiJ" else ">"
    magic, _, at = struct.unpack_from(order + "III", content)
    if magic != _DUMP_MAGIC:
        return
    while at + 16 <= len(content):
        kind, size = struct.unpack_from(order + "II", content, at)
        if size < 16:
            return
        record = content[at + 16 : min(at + size, at + 16 + 48 + _MAX_NAME)]
        if kind == _CODE_LOAD and len(record) > 40:
            begin, length = struct.unpack_from(order + "QQ", record, 16)
            yield Piece(begin, length, _text(record[40:].split(b"\0", 1)[0]))
        at += size


def _text(raw: bytes) -> str:
    return raw[:_MAX_NAME].decode("utf-8", "replace").strip()
