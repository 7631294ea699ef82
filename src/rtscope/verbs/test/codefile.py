"""
Which code of its own each thread of a program executed, as a board's plugin wrote it.

`format/code.md` describes the file. The program shapes what is in it, so nothing in it
is trusted.
"""

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtscope.host.errors import ContractError

VERSION = 1
MAX_BYTES = 128 << 20

_MAGIC = b"RTSCCODE"
_HEADER = struct.Struct("<8sII")
_UNIT = np.dtype([("first", "<u8"), ("second", "<u4"), ("third", "<u4")])
_BEGINS = np.uint64(2**64 - 1)


@dataclass(frozen=True, slots=True)
class Content:
    """What a piece executed, block by block."""

    addresses: NDArray[np.uint64]
    """Where each block begins."""
    instructions: NDArray[np.int64]
    """Executed in it, all its times together."""


@dataclass(frozen=True, slots=True)
class ThreadPieces:
    """The pieces of a thread, in their order: they end where it calls the kernel, or
    has no CPU any more."""

    ended_ns: NDArray[np.int64]
    contents: NDArray[np.intp]
    """Their numbers."""


@dataclass(frozen=True, slots=True)
class ProgramCode:
    """What all threads of a program executed of it."""

    contents: tuple[Content, ...]
    threads: dict[int, ThreadPieces]
    """By their numbers on the board."""
    lost: int
    """Pieces that were not written: the file was full."""


def parse_program_code(data: bytes) -> ProgramCode:
    """Read a file of the plugin; ContractError if it is damaged."""
    if len(data) < _HEADER.size or len(data) > MAX_BYTES:
        raise ContractError(f"{len(data):,} bytes are no record of executed code")
    magic, version, lost = _HEADER.unpack_from(data)
    if magic != _MAGIC or version != VERSION:
        raise ContractError(f"no record of executed code of version {VERSION}")
    if (len(data) - _HEADER.size) % _UNIT.itemsize:
        raise ContractError("the record of executed code is cut")
    units = np.frombuffer(data, _UNIT, offset=_HEADER.size)
    begins = np.flatnonzero(units["first"] == _BEGINS)
    is_piece = np.ones(len(units), np.bool_)
    contents = []
    for begin in begins.tolist():
        end = begin + 1 + int(units["second"][begin])
        rows = units[begin + 1 : end]
        if end > len(units) or (rows["first"] == _BEGINS).any():
            raise ContractError("the record of executed code has a block too few")
        is_piece[begin:end] = False
        times = rows["second"].astype(np.int64)
        contents.append(Content(rows["first"].astype(np.uint64), times * rows["third"]))
    pieces = units[is_piece]
    numbers = pieces["third"].astype(np.intp) - 1
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < len(contents)):
        raise ContractError("the record of executed code names what it does not have")
    tids = pieces["second"]
    threads = {}
    for tid in np.unique(tids).tolist():
        own = tids == tid
        ended_ns = pieces["first"][own].astype(np.int64)
        threads[tid] = ThreadPieces(ended_ns, numbers[own])
    return ProgramCode(tuple(contents), threads, int(lost))
