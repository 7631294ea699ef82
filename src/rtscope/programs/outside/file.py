"""
The record of a program: what its threads did, as the plugin of a board wrote it.

`format/program.md` describes it. The records are in the order in which QEMU executed
them: what leads to another stands before it, though the times of two CPUs may be apart
by two quanta. The program shapes what is in it, so nothing in it is trusted.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from rtscope.host.errors import ContractError
from rtscope.host.escape import printable

VERSION = 2
MAX_BYTES = 512 << 20
"""16 million records: 100,000 switches a second of 40 virtual seconds."""
MAX_CPUS = 256
MAX_SHIFT = 10
"""An instruction takes 2^shift ns; QEMU takes no more than this."""

_MAGIC = b"RTSCPROG"
_HEADER = struct.Struct("<8sII16sIIQ16x")
_RECORD = np.dtype(
    [
        ("stamp", "<u8"),
        ("tid", "<u4"),
        ("detail", "<u4"),
        ("value", "<u8"),
        ("user", "<u8"),
    ]
)
_TIME = np.uint64(2**48 - 1)


class Kind(IntEnum):
    """What a record is about."""

    THREAD = 1
    NAME = 2
    RELEASE = 3
    WAKE = 4
    ACTIVATE = 5
    IN = 6
    OUT = 7
    FIRST = 8
    CALL = 9
    RETURN = 10
    FAULT = 11
    HELD = 12
    USED = 13
    STACK = 14
    EXIT = 15
    FORK = 16
    LOST = 17
    ARGUMENTS = 18
    ASKED = 19
    DONE = 20
    HOLD = 21


@dataclass(frozen=True, slots=True)
class Entry:
    """One record."""

    kind: int
    cpu: int
    at_ns: int
    """Virtual ns of that CPU, since the board was switched on."""
    tid: int
    detail: int
    value: int
    user: int

    @property
    def signed(self) -> int:
        """The value as a signed number."""
        return _signed(self.value)

    @property
    def place(self) -> int:
        """Of a fault, a use or the arguments of a call: the number of its stack; 0."""
        return self.detail if self.kind == Kind.ARGUMENTS else self.detail >> 16

    @property
    def function(self) -> int:
        """Of a use: the number of the function."""
        return self.detail & 0xFFFF

    @property
    def expires_ns(self) -> int:
        """Of a release: when its timer was due by CLOCK_MONOTONIC."""
        return _signed(self.user)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


@dataclass(frozen=True, slots=True)
class Stack:
    """Registers and a part of the stack of a thread, as they were at a record."""

    words: tuple[int, ...]
    """The registers, in the order in which a stack is unwound."""
    content: bytes
    """From the stack pointer on."""


@dataclass(frozen=True, slots=True, eq=False)
class ProgramRecord:
    """All records of a file, in its order."""

    arch: str
    cpus: int
    shift: int
    """An instruction takes 2^shift ns."""
    quantum_ns: int
    kinds: frozenset[Kind]
    """What this kernel allowed to be seen; another kind is unknown, not none."""
    entries: tuple[Entry, ...]
    stacks: tuple[Stack, ...]
    """By the number of their place, less one."""

    @property
    def lost(self) -> int:
        """Records that were not written."""
        return sum(one.value for one in self.entries[-1:] if one.kind == Kind.LOST)


def parse_program_record(data: bytes) -> ProgramRecord:
    """Read what the plugin wrote; raise ContractError if it is damaged or too new."""
    if len(data) > MAX_BYTES:
        raise ContractError(f"the program's record has more than {MAX_BYTES:,} bytes")
    if len(data) < _HEADER.size:
        raise ContractError("the program's record breaks off in its header")
    magic, version, cpus, arch, shift, kinds, quantum = _HEADER.unpack_from(data)
    if magic != _MAGIC or version != VERSION:
        raise ContractError(f"this is no record of a program of version {VERSION}")
    if not 0 < cpus <= MAX_CPUS or shift > MAX_SHIFT:
        raise ContractError(
            f"the program's record has the impossible {cpus} CPUs or shift {shift}"
        )
    if (len(data) - _HEADER.size) % _RECORD.itemsize:
        raise ContractError("the program's record breaks off in a record")
    rows = np.frombuffer(data, _RECORD, offset=_HEADER.size)
    kept, stacks = _without_payload(rows)
    rows = rows[kept]
    cpu = (rows["stamp"] >> np.uint64(48) & np.uint64(255)).astype(np.int64)
    if cpu.size and int(cpu.max()) >= cpus:
        raise ContractError("the program's record has a CPU that the board has not")
    return ProgramRecord(
        arch=printable(arch.rstrip(b"\0").decode("ascii", "replace")),
        cpus=cpus,
        shift=shift,
        quantum_ns=(quantum << shift) if quantum < 1 << 40 else 0,
        kinds=frozenset(kind for kind in Kind if kinds >> kind & 1),
        entries=_entries(rows, cpu),
        stacks=stacks,
    )


def _without_payload(
    rows: NDArray[np.void],
) -> tuple[NDArray[np.bool_], tuple[Stack, ...]]:
    """Return which rows are records, and the stacks that the others are."""
    kept = np.ones(len(rows), dtype=np.bool_)
    kinds = (rows["stamp"] >> np.uint64(56)).astype(np.uint8)
    stacks: list[Stack] = []
    end = 0
    for at in np.flatnonzero(kinds == Kind.STACK).tolist():
        if at < end:  # within the content of another one
            continue
        end = at + 1 + int(rows["detail"][at])
        if end > len(rows):
            raise ContractError("the program's record breaks off in a stack")
        kept[at:end] = False
        raw, told = rows[at + 1 : end].tobytes(), int(rows["user"][at])
        count, size = told & 0xFFFFFFFF, told >> 32
        if 8 * count + size > len(raw):
            raise ContractError("the program's record has a stack longer than it is")
        words = struct.unpack_from(f"<{count}Q", raw)
        stacks.append(Stack(words, raw[8 * count : 8 * count + size]))
    return kept, tuple(stacks)


def _entries(rows: NDArray[np.void], cpu: NDArray[np.int64]) -> tuple[Entry, ...]:
    columns = (
        (rows["stamp"] >> np.uint64(56)).tolist(),
        cpu.tolist(),
        (rows["stamp"] & _TIME).tolist(),
        *(rows[name].tolist() for name in ("tid", "detail", "value", "user")),
    )
    return tuple(map(Entry, *columns))


def name_of(entry: Entry) -> str:
    """Return the name in a record of kind NAME, without control characters."""
    raw = struct.pack("<QQ", entry.value, entry.user).split(b"\0")[0]
    return printable(raw.decode("utf-8", "replace"))
