"""
Which code of its own each thread of a program executed, as a board's plugin wrote it.

`format/code.md` describes the file. The program shapes what is in it, so nothing in it
is trusted.
"""

import struct
from collections.abc import Iterator, Mapping
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
_MOST_TIMES = 2**32 - 1
"""So often a block was begun, or more."""


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


class PiecesOfThreads(Mapping[int, ThreadPieces]):
    """The pieces of each thread, by its number on the board."""

    def __init__(
        self,
        tids: NDArray[np.uint32],
        ended_ns: NDArray[np.int64],
        contents: NDArray[np.intp],
    ) -> None:
        order = np.argsort(tids, kind="stable")
        self._ended_ns, self._contents = ended_ns[order], contents[order]
        # Looked up by numbers of this type: NumPy converts all of another one.
        in_order = tids[order].astype(np.int64)
        self._tids, begins = np.unique(in_order, return_index=True)
        self._edges = np.append(begins, len(tids))

    def __getitem__(self, tid: int) -> ThreadPieces:
        """Return those of a thread; KeyError: it has none."""
        at = int(np.searchsorted(self._tids, tid))
        if at == len(self._tids) or self._tids[at] != tid:
            raise KeyError(tid)
        own = slice(self._edges[at], self._edges[at + 1])
        return ThreadPieces(self._ended_ns[own], self._contents[own])

    def __iter__(self) -> Iterator[int]:
        """Iterate over the threads, ascending."""
        return iter(self._tids.tolist())

    def __len__(self) -> int:
        """Return how many threads have pieces."""
        return len(self._tids)


@dataclass(frozen=True, slots=True, eq=False)
class ProgramCode:
    """What all threads of a program executed of it."""

    contents: tuple[Content, ...]
    totals: NDArray[np.int64]
    """The instructions of each content."""
    beyond_count: NDArray[np.bool_]
    """Whether it may have begun a block more often than is counted."""
    threads: Mapping[int, ThreadPieces]
    """By their numbers on the board."""
    ended_ns: int
    """When the last piece ended; 0: there is none."""
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
    ends = begins + 1 + units["second"][begins].astype(np.int64)
    if (ends > np.append(begins[1:], len(units))).any():
        raise ContractError("the record of executed code has a block too few")
    addresses = units["first"].astype(np.uint64)
    instructions = units["second"].astype(np.int64) * units["third"]
    sums = np.append(0, np.cumsum(instructions))
    beyond = np.append(0, np.cumsum(units["second"] == _MOST_TIMES))
    contents = tuple(
        Content(addresses[begin + 1 : end], instructions[begin + 1 : end])
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
    )
    depth = np.zeros(len(units) + 1, np.int8)
    depth[begins] += 1
    depth[ends] -= 1
    pieces = units[np.cumsum(depth[:-1], dtype=np.int8) == 0]
    numbers = pieces["third"].astype(np.intp) - 1
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < len(contents)):
        raise ContractError("the record of executed code names what it does not have")
    ended_ns = pieces["first"].astype(np.int64)
    threads = PiecesOfThreads(pieces["second"], ended_ns, numbers)
    return ProgramCode(
        contents,
        totals=sums[ends] - sums[begins + 1],
        beyond_count=beyond[ends] > beyond[begins + 1],
        threads=threads,
        ended_ns=int(ended_ns.max(initial=0)),
        lost=int(lost),
    )
