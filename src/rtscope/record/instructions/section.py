"""
Recorded paths as arrays, and what their records say: blocks, tasks, CPUs.

Each record has a time of its CPU in virtual ns, a kind and a value.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class RecordKind(IntEnum):
    """The kind of a record."""

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
    """An interrupt began; the value identifies it."""
    DURATION = 8
    """The value is how many ns the interrupt just before took."""
    NAME = 9
    """8 bytes of the name of the task in the record before; always in pairs."""
    PAUSE = 10
    """The CPU executes nothing from here to its next block."""
    PRIORITY = 11
    """The scheduler's priority of the task in the record before, as 32 bits."""
    CHANGE = 12
    """That of the CPU's task from here on, and above 32 bits that until here."""
    WOKEN = 13
    """The value is the address of the task that the CPU is about to wake."""
    ASKED = 14
    """The value is the CPU that is asked for an interrupt; see `Asked`."""
    RENAMED = 15
    """The value is the address of a task; the names until here and from here follow."""


class SectionKind(IntEnum):
    """Why a section was recorded."""

    WORST = 1
    """The path to one of the K worst wake-ups, with the mark at its end."""
    WINDOW = 2
    """Everything between two virtual times, recorded by a replay."""
    LONGEST = 3
    """The longest section of a kind on a CPU, with what led to it: see `Held`."""
    INTERRUPTS = 4
    """All interrupts of a CPU while it was measured."""


@dataclass(frozen=True, slots=True, eq=False)
class TraceSection:
    """Records in the order of their times; the arrays are of equal length."""

    kind: SectionKind
    cpu: int
    """Of the wake-up; 0 for a window."""
    latency_ns: int
    sequence: int
    first_ns: int
    last_ns: int
    """Virtual times: where the section begins, and that of the mark."""
    cut: bool
    """The ring was too short: the section begins later than it should."""
    left_out: bool
    """Its records exceeded the limit; only this header was kept."""
    at_ns: NDArray[np.int64]
    """Virtual time of the CPU, before what is recorded."""
    cpus: NDArray[np.uint8]
    kinds: NDArray[np.uint8]
    values: NDArray[np.uint64]
    block_ns: int = 0
    """The longest that a block can take; 0 of CPUs that shared a clock, and paused."""
    quantum_ns: int = 0
    """By so much the time of a CPU may be ahead of that of another that executes."""


@dataclass(frozen=True, slots=True, eq=False)
class ExecTrace:
    """A whole file."""

    arch: str
    cpus: int
    instruction_ns: int
    quantum: int
    """Instructions."""
    sections: tuple[TraceSection, ...]
    """The K worst wake-ups, worst first; then the windows, in order."""


@dataclass(frozen=True, slots=True)
class Held:
    """The header of a section of the kind LONGEST."""

    kind: int
    """As in `plugin/longest.h`."""
    net_ns: int
    """Without interrupts."""
    begin_ns: int
    """Virtual time; its records begin earlier."""
    end_ns: int


def held_by(section: TraceSection) -> Held:
    """Read the header of a section of the kind LONGEST."""
    interrupted_ns = section.sequence >> 8
    return Held(
        kind=section.sequence & 0xFF,
        net_ns=section.latency_ns,
        begin_ns=section.last_ns - section.latency_ns - interrupted_ns,
        end_ns=section.last_ns,
    )


@dataclass(frozen=True, slots=True, eq=False)
class CpuBlocks:
    """The blocks that one CPU executed in a section, in order."""

    at_ns: NDArray[np.int64]
    addresses: NDArray[np.uint64]
    executed_ns: NDArray[np.int64]
    """How long each took: to the next one, or to where the CPU pauses."""
    last_ns: int
    """The end of the section."""


def blocks_of(section: TraceSection, cpu: int) -> CpuBlocks:
    """Return what a CPU executed in a section."""
    # Of millions of records each copy is many megabytes.
    mine = section.cpus == cpu
    is_block = mine & (section.kinds == RecordKind.BLOCK)
    pauses = np.flatnonzero(mine & (section.kinds == RecordKind.PAUSE))
    at_ns, addresses = section.at_ns[is_block], section.values[is_block]
    lengths = np.empty_like(at_ns)
    if len(at_ns):
        np.subtract(at_ns[1:], at_ns[:-1], out=lengths[:-1])
        lengths[-1] = max(section.last_ns, int(at_ns[-1])) - at_ns[-1]
        # A block ends at the first of the pauses behind it.
        before = np.cumsum(is_block, dtype=np.int32)[pauses] - 1
        pauses, before = pauses[before >= 0][::-1], before[before >= 0][::-1]
        lengths[before] = section.at_ns[pauses] - at_ns[before]
    return CpuBlocks(at_ns, addresses, executed_ns=lengths, last_ns=section.last_ns)


_ORDINARY = "not real-time"
FIRST_ORDINARY = 100
"""What the kernel calls prio, of the least of them: `include/linux/sched/prio.h`."""


@dataclass(frozen=True, slots=True)
class TaskSwitch:
    """From when on a CPU ran a task, or with another priority or by another name."""

    at_ns: int
    cpu: int
    task: int
    """Its address: two tasks may have the same name."""
    name: str
    """Empty if it was not recorded."""
    prio: int | None = None
    """The kernel's number, which is less for a task that goes first; None if unknown.

    The same from Linux 2.6 to 7.x.
    """
    changed: bool = False
    """The task ran before too, with another priority or by another name."""
    inherited: bool = False
    """The priority is not its own: a task that waits for its lock has lent it."""

    @property
    def policy(self) -> str:
        """
        With the priority, as in `real-time, priority 80`; empty if not recorded.

        A priority that is not the task's own has `by priority inheritance` behind it.
        """
        match self.prio:
            case None:
                return ""
            case prio if prio < 0:
                policy = "SCHED_DEADLINE"
            case prio if prio < FIRST_ORDINARY:
                policy = f"real-time, priority {99 - prio}"
            case prio:
                policy = f"{_ORDINARY}, nice {prio - 120}"
        return f"{policy}, by priority inheritance" if self.inherited else policy

    @property
    def is_ordinary(self) -> bool:
        """Tell whether the task was not real-time; False if that is unknown."""
        return self.prio is not None and self.prio >= FIRST_ORDINARY

    @property
    def is_realtime(self) -> bool:
        """Tell whether the task was real-time; False if that is unknown."""
        return self.prio is not None and self.prio < FIRST_ORDINARY


def _with_priority(task: TaskSwitch, value: int) -> TaskSwitch:
    """Return a task with a recorded priority; see kind 11 in format/plugin.md."""
    prio, lent = value & 0xFFFF, value >> 16 & 0xFFFF
    if prio >> 15:
        prio -= 1 << 16
    # Files of before fill the upper half with the sign.
    return replace(task, prio=prio, inherited=0 < lent < 0x8000)


def task_switches(section: TraceSection) -> list[TaskSwitch]:
    """Return the task changes of a section, in order; nothing if it has none."""
    wanted = np.isin(section.kinds, _OF_TASKS)
    rows = zip(
        section.at_ns[wanted].tolist(),
        section.cpus[wanted].tolist(),
        section.kinds[wanted].tolist(),
        section.values[wanted].tolist(),
        strict=True,
    )
    told: list[tuple[TaskSwitch, bytes]] = []
    last: dict[int, int] = {}
    names = _Names()
    for at, cpu, kind, value, words in _with_names(rows):
        if kind == RecordKind.TASK:
            last[cpu] = len(told)
            told.append((TaskSwitch(at, cpu, value, ""), names.at_switch(value, words)))
        elif kind == RecordKind.RENAMED:
            name = names.at_rename(value, words)
            for cpu, place in last.items():
                one = told[place][0]
                if one.task == value:
                    last[cpu] = len(told)
                    told.append((replace(one, at_ns=at, changed=True), name))
        elif cpu in last:
            one, name = told[last[cpu]]
            if kind == RecordKind.PRIORITY:
                told[last[cpu]] = _with_priority(one, value), name
                continue
            last[cpu] = len(told)
            changed = replace(one, at_ns=at, changed=True)
            told.append((_with_priority(changed, value), name))
    return [
        replace(one, name=_text(name or names.first.get(one.task, b"")))
        for one, name in told
    ]


_Row = tuple[int, int, int, int]


def _with_names(rows: Iterable[_Row]) -> Iterator[tuple[*_Row, bytes]]:
    """Yield time, CPU, kind and value of each record, and the names behind it."""
    head: _Row | None = None
    words = b""
    for row in rows:
        if row[2] == RecordKind.NAME:
            words += row[3].to_bytes(8, "little")
            continue
        if head is not None:
            yield *head, words
        head, words = row, b""
    if head is not None:
        yield *head, words


_NAME_BYTES = 16


class _Names:
    """The names of tasks, by the records so far."""

    def __init__(self) -> None:
        self.first: dict[int, bytes] = {}
        """What each task was called before all else that is known of its name."""
        self._now: dict[int, bytes] = {}

    def at_switch(self, task: int, name: bytes) -> bytes:
        """Return the name of a task that may have been recorded without one."""
        if name:
            self.first.setdefault(task, name)
            self._now[task] = name
        return self._now.get(task, b"")

    def at_rename(self, task: int, names: bytes) -> bytes:
        """Return the new name, which lies behind the old one."""
        self.first.setdefault(task, names[:_NAME_BYTES])
        self._now[task] = names[_NAME_BYTES:]
        return self._now[task]


_OF_TASKS = (
    *(RecordKind.TASK, RecordKind.NAME, RecordKind.PRIORITY),
    *(RecordKind.CHANGE, RecordKind.RENAMED),
)


def _text(name: bytes) -> str:
    return name.split(b"\0")[0].decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Woken:
    """A call that wakes a task, on whichever CPU; the task may be awake already."""

    at_ns: int
    """By the time of the CPU that calls."""
    cpu: int
    task: int
    """The address of the task that it is to wake."""


def wakes_of_tasks(section: TraceSection) -> list[Woken]:
    """Return the calls that wake a task, in order; nothing if none were recorded."""
    wanted = section.kinds == RecordKind.WOKEN
    rows = zip(
        section.at_ns[wanted].tolist(),
        section.cpus[wanted].tolist(),
        section.values[wanted].tolist(),
        strict=True,
    )
    return [Woken(*row) for row in rows]


_BY_TIMER = 1 << 8


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for an interrupt of a CPU."""

    at_ns: int
    """By the time of the CPU that asks."""
    by: int | None
    """The CPU of whose instruction it is; None: a timer of a device."""
    cpu: int


def requests_of(section: TraceSection) -> list[Asked]:
    """Return the requests for interrupts, in order; nothing if none were recorded."""
    wanted = section.kinds == RecordKind.ASKED
    rows = zip(
        section.at_ns[wanted].tolist(),
        section.cpus[wanted].tolist(),
        section.values[wanted].tolist(),
        strict=True,
    )
    return [
        Asked(at_ns, None if value & _BY_TIMER else by, value & (_BY_TIMER - 1))
        for at_ns, by, value in rows
    ]


def marked_at(
    section: TraceSection, done_ns: int, *, cpu: int, latency_ns: int
) -> TraceSection:
    """Return a section up to a time, as a path of a CPU that a mark there ends."""
    inside = section.at_ns <= done_ns
    return replace(
        section,
        kind=SectionKind.WORST,
        cpu=cpu,
        latency_ns=latency_ns,
        last_ns=done_ns,
        at_ns=np.append(section.at_ns[inside], done_ns),
        cpus=np.append(section.cpus[inside], np.uint8(cpu)),
        kinds=np.append(section.kinds[inside], np.uint8(RecordKind.MARK)),
        values=np.append(section.values[inside], np.uint64(latency_ns)),
    )


def cpus_of(numbers: NDArray[np.uint8]) -> list[int]:
    """Return each CPU that is in a column of records, ascending."""
    return [int(cpu) for cpu in np.flatnonzero(np.bincount(numbers))]


def executing_cpus(section: TraceSection) -> list[int]:
    """Return the CPUs that executed something in a section."""
    return cpus_of(section.cpus[section.kinds == RecordKind.BLOCK])
