"""
The recorded paths of a virtual board: what the plugin writes, as arrays.

`format/plugin.md` describes the file. A stamp counts the instructions that all CPUs
of the board have begun; 2^shift ns of virtual time pass with each of them.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtscope.errors import ContractError

VERSION = 1

_MAGIC = b"RTSCOPE\n"
_HEADER = struct.Struct("<8sII16sIIQ")
_SECTION = struct.Struct("<IIQQQQQII")
_RECORD = np.dtype([("stamp", "<u8"), ("value", "<u8")])
_CUT = 1
_LEFT_OUT = 2


class Kind(IntEnum):
    """What a record tells."""

    BLOCK = 1
    """A block began; the value is the address of its first instruction."""
    INTERRUPTS = 2
    """The CPU's interrupts were enabled (1) or disabled (0)."""
    PREEMPT = 3
    """The value is the preemption count."""
    TASK = 4
    """The value is the address of the current task."""
    MARK = 5
    """The agent marked a wake-up; the value is its latency in ns."""
    SEQUENCE = 6
    """The value is the sequence number of the wake-up marked just before."""
    INTERRUPT = 7
    """An interrupt began; the value tells which."""
    DURATION = 8
    """The value is how many instructions the interrupt just before took."""
    NAME = 9
    """The value is 8 bytes of the name of the task told before; always twice."""


class SectionKind(IntEnum):
    """Why a section was recorded."""

    WORST = 1
    """The path to one of the K worst wake-ups, which the mark at its end tells."""
    WINDOW = 2
    """Everything between two instruction counts, asked for in a second pass."""
    LONGEST = 3
    """The longest section of a kind on a CPU, with what led to it: see `Held`."""
    INTERRUPTS = 4
    """All interrupts of a CPU while it was measured."""


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """Records in the order in which things happened; the arrays are of equal length."""

    kind: SectionKind
    cpu: int
    """Of the wake-up; 0 for a window."""
    latency_ns: int
    sequence: int
    first: int
    last: int
    """Instruction counts: where the section begins, and that of the mark."""
    cut: bool
    """The ring was too short: the section begins later than it should."""
    left_out: bool
    """There was no room for its records; only this header was kept."""
    at: NDArray[np.int64]
    """Instruction count, on all CPUs, before what is recorded."""
    cpus: NDArray[np.uint8]
    kinds: NDArray[np.uint8]
    values: NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A whole file."""

    arch: str
    cpus: int
    shift: int
    quantum: int
    sections: tuple[Section, ...]
    """The K worst wake-ups, worst first; then the windows, in order."""


def parse_trace(data: bytes) -> Trace:
    """Read what the plugin wrote; raise ContractError if it is damaged or too new."""
    header = _unpack(_HEADER, data, 0)
    magic, version, sections, arch, cpus, shift, turn = header
    if magic != _MAGIC:
        raise ContractError("this is not a trace of rtscope's plugin")
    if version != VERSION:
        raise ContractError(f"the trace has version {version}, not {VERSION}")
    found = []
    offset = _HEADER.size
    for _ in range(sections):
        section, offset = _parse_section(data, offset)
        found.append(section)
    if offset != len(data):
        raise ContractError(f"the trace has {len(data) - offset} bytes too many")
    name = arch.rstrip(b"\0").decode("ascii", "replace")
    return Trace(name, cpus, shift, turn, tuple(found))


@dataclass(frozen=True, slots=True)
class Held:
    """What the header of a section of the kind LONGEST tells."""

    kind: int
    """As in `plugin/longest.h`."""
    net_ns: int
    """Without interrupts."""
    begin: int
    """Instruction count; its records begin earlier."""
    end: int


def held_by(section: Section, shift: int) -> Held:
    """Read the header of a section of the kind LONGEST."""
    interrupted = section.sequence >> 8
    whole = (section.latency_ns >> shift) + interrupted
    return Held(
        kind=section.sequence & 0xFF,
        net_ns=section.latency_ns,
        begin=section.last - whole,
        end=section.last,
    )


@dataclass(frozen=True, slots=True)
class TaskSwitch:
    """From when on a CPU ran a task."""

    at: int
    """Instruction count."""
    cpu: int
    task: int
    """Its address: two tasks may have the same name."""
    name: str
    """Empty if it was not told."""


def task_switches(section: Section) -> list[TaskSwitch]:
    """Return what a section tells of tasks, in order; nothing if it tells none."""
    wanted = (section.kinds == Kind.TASK) | (section.kinds == Kind.NAME)
    rows = zip(
        section.at[wanted].tolist(),
        section.cpus[wanted].tolist(),
        section.kinds[wanted].tolist(),
        section.values[wanted].tolist(),
        strict=True,
    )
    found: list[tuple[int, int, int, bytes]] = []
    for at, cpu, kind, value in rows:
        if kind == Kind.TASK:
            found.append((at, cpu, value, b""))
        elif found:
            *told, name = found[-1]
            found[-1] = (*told, name + value.to_bytes(8, "little"))
    names = {task: name for _, _, task, name in found if name}
    return [
        TaskSwitch(at, cpu, task, _text(name or names.get(task, b"")))
        for at, cpu, task, name in found
    ]


def _text(name: bytes) -> str:
    return name.split(b"\0")[0].decode("utf-8", "replace")


def with_windows(trace: Trace) -> tuple[Section, ...]:
    """
    Return the worst wake-ups, each with the records of a window that holds all of it.

    A window tells the tasks and preemption counts too, and reaches back as far as it
    was asked to; where there is none, the path stays as the ring had it.
    """
    windows = [s for s in trace.sections if s.kind is SectionKind.WINDOW]
    worst = [s for s in trace.sections if s.kind is SectionKind.WORST]
    return tuple(_from_window(section, windows) for section in worst)


def _from_window(section: Section, windows: Sequence[Section]) -> Section:
    for window in windows:
        if window.first <= section.first and section.last <= window.last:
            held = (window.at >= section.first) & (window.at <= section.last)
            return replace(
                section,
                cut=False,
                left_out=False,
                at=window.at[held],
                cpus=window.cpus[held],
                kinds=window.kinds[held],
                values=window.values[held],
            )
    return section


def _parse_section(data: bytes, offset: int) -> tuple[Section, int]:
    kind, cpu, latency_ns, sequence, first, last, records, flags, _ = _unpack(
        _SECTION, data, offset
    )
    if kind not in set(SectionKind):
        raise ContractError(f"the trace has a section of the unknown kind {kind}")
    begin = offset + _SECTION.size
    end = begin + records * _RECORD.itemsize
    if end > len(data):
        raise ContractError("the trace breaks off in the middle of a section")
    rows = np.frombuffer(data, _RECORD, count=records, offset=begin)
    stamp = rows["stamp"]
    section = Section(
        kind=SectionKind(kind),
        cpu=cpu,
        latency_ns=latency_ns,
        sequence=sequence,
        first=first,
        last=last,
        cut=bool(flags & _CUT),
        left_out=bool(flags & _LEFT_OUT),
        at=(stamp & np.uint64(2**48 - 1)).astype(np.int64),
        cpus=(stamp >> np.uint64(48)).astype(np.uint8),
        kinds=(stamp >> np.uint64(56)).astype(np.uint8),
        values=rows["value"],
    )
    return section, end


def _unpack(what: struct.Struct, data: bytes, offset: int) -> tuple[Any, ...]:
    if offset + what.size > len(data):
        raise ContractError("the trace breaks off in the middle of a header")
    return what.unpack_from(data, offset)
