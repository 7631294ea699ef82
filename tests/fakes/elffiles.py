"""ELF files of 64 bits, made of sections that a test gives: also impossible ones."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

NOBITS, SYMTAB, STRTAB, NOTE = 8, 2, 3, 7
ALLOC, COMPRESSED = 0x2, 0x800
CODE = 0x1000
"""Where the code of such a file is, in its own addresses."""


@dataclass(frozen=True, slots=True)
class Part:
    """A section."""

    name: str
    content: bytes
    type: int = 1
    flags: int = 0
    address: int = 0
    link: int = 0
    size: int | None = None
    """As the table says it; None: that of the content."""


def elf_file(parts: Sequence[Part], *, count: int | None = None) -> bytes:
    """Return a file with these sections; `count` is the number that its header says."""
    names = b"\0" + b"".join(f"{one.name}\0".encode() for one in parts) + b".names\0"
    all_ = [*parts, Part(".names", names, type=STRTAB)]
    at = 64 + 56
    rows, body, name_at = [bytes(64)], b"", 1
    for one in all_:
        size = len(one.content) if one.size is None else one.size
        rows.append(
            struct.pack(
                "<IIQQQQIIQQ",
                *(name_at, one.type, one.flags, one.address),
                *(at + len(body), size, one.link, 0, 1, 0),
            )
        )
        body += one.content
        name_at += len(one.name) + 1
    number = len(rows)
    head = b"\x7fELF\2\1\1".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH",
        *(3, 62, 1, CODE, 64, at + len(body), 0),
        *(64, 56, 1, 64, number if count is None else count, number - 1),
    )
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 1 << 20, 1 << 20, 1 << 20, 4096)
    return head + load + body + b"".join(rows)


def symbols(*rows: tuple[str, int, int]) -> tuple[Part, Part]:
    """Return a table of functions, as first and second section: name, begin, size."""
    texts, table = b"\0", bytes(24)
    for name, value, size in rows:
        table += struct.pack("<IBBHQQ", len(texts), 0x12, 0, 1, value, size)
        texts += name.encode() + b"\0"
    return Part(".symtab", table, type=SYMTAB, link=2), Part(".strtab", texts, STRTAB)


def unit(entries: bytes, *, version: int = 4) -> bytes:
    """Return a unit of .debug_info; its kinds are at the begin of .debug_abbrev."""
    content = struct.pack("<HIB", version, 0, 8) + entries
    return struct.pack("<I", len(content)) + content


def uleb(value: int) -> bytes:
    """Return a number in LEB128."""
    out = bytearray()
    while True:
        byte, value = value & 0x7F, value >> 7
        out.append(byte | (0x80 if value else 0))
        if not value:
            return bytes(out)


def kind(code: int, tag: int, *attributes: tuple[int, int], children: bool) -> bytes:
    """Return a row of .debug_abbrev: names and forms of the attributes."""
    pairs = b"".join(uleb(name) + uleb(form) for name, form in attributes)
    return uleb(code) + uleb(tag) + bytes([children]) + pairs + b"\0\0"
