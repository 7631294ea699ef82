"""What a program executed, as the plugin writes it, from a few words each."""

import struct
from collections.abc import Sequence

from rtscope.verbs.test.codefile import VERSION

HEADER = struct.Struct("<8sII")
UNIT = struct.Struct("<QII")
BEGINS = 2**64 - 1

Block = tuple[int, int, int]
"""Its address, how often it was begun, its instructions."""


def content(*blocks: Block) -> list[bytes]:
    """Return the units of a content."""
    return [UNIT.pack(BEGINS, len(blocks), 0), *(UNIT.pack(*one) for one in blocks)]


def piece(ended_ns: int, tid: int, number: int) -> list[bytes]:
    """Return the unit of a piece."""
    return [UNIT.pack(ended_ns, tid, number)]


def code_of(*parts: Sequence[bytes], lost: int = 0) -> bytes:
    """Return a whole file."""
    return HEADER.pack(b"RTSCCODE", VERSION, lost) + b"".join(
        b"".join(p) for p in parts
    )
