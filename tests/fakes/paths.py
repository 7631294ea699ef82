"""Recorded paths of a virtual board, written down block by block."""

from collections.abc import Sequence

import numpy as np

from rtscope.record.instructions.section import RecordKind, SectionKind, TraceSection
from rtscope.record.instructions.symbols import SymbolTable

TEXT = 0xFFFF_FFFF_8000_0000
SIZE = 0x1000
USER_CODE = 0x1_0000

BY_TIMER = 256
ASLEEP = "asleep"
Step = tuple[int, str] | tuple[int, str, int]
"""
ns, function (with + for its middle), and the CPU if it is not 0; others pause.

In a step of the name ASLEEP all of them do.
"""

Task = tuple[int, str] | tuple[int, str, int] | tuple[int, str, int, int]
"""Since when a task runs, its name, the CPU if it is not 0, and its prio if known."""


def symbols(*names: str) -> SymbolTable:
    """Make functions of one page each, in this order."""
    starts = np.array([TEXT + SIZE * i for i in range(len(names))], np.uint64)
    return SymbolTable(starts, tuple(names), {})


def section(
    steps: Sequence[Step],
    table: SymbolTable,
    *,
    late: int,
    flags: Sequence[tuple[int, int]] = ((0, 1),),
    tasks: Sequence[Task] = (),
    counts: Sequence[tuple[int, int]] = (),
    changes: Sequence[tuple[int, int, int]] = (),
    wakes: Sequence[tuple[int, int, str]] = (),
    renames: Sequence[tuple[int, int, str, str]] = (),
    asked: Sequence[tuple[int, int, int]] = (),
    block_ns: int = 0,
    quantum_ns: int = 0,
) -> TraceSection:
    """
    Make the path to a wake-up that was `late` ns late.

    `flags` are changes of the interrupt flag of CPU 0: (ns, 0 or 1);
    `tasks` the names of those it switched to: (ns, name), and the CPU if not this one;
    `counts` are preemption counts that interrupts of CPU 0 found: (ns, count);
    `changes` are new priorities of tasks that go on: (ns, CPU, prio);
    `wakes` are calls that wake a task: (ns, CPU, name of the task);
    `renames` are new names of tasks: (ns, CPU, first name of the task, new one);
    `asked` are requests for interrupts: (ns, CPU that asks, CPU that is asked), to
    which BY_TIMER is added if a device's timer asks;
    `block_ns` the longest that a block can take, if the CPUs do not share a clock;
    `quantum_ns` by how much their times may differ.
    """
    rows: list[tuple[int, int, int, int]] = [
        (at, 0, RecordKind.INTERRUPTS, value) for at, value in flags
    ]
    rows += [(at, 0, RecordKind.PREEMPT, count) for at, count in counts]
    rows += [row for task in tasks for row in _told(*task)]
    rows += [(at, cpu, RecordKind.CHANGE, prio) for at, cpu, prio in changes]
    rows += [(at, cpu, RecordKind.WOKEN, TEXT + len(name)) for at, cpu, name in wakes]
    rows += [row for renamed in renames for row in _renamed(*renamed)]
    rows += [(at, by, RecordKind.ASKED, cpu) for at, by, cpu in asked]
    at, last = 0, 0
    for step in steps:
        cpu = step[2] if len(step) > 2 else 0
        if cpu != last or step[1] == ASLEEP:
            rows.append((at, last, RecordKind.PAUSE, 0))
        last = cpu
        if step[1] != ASLEEP:
            rows.append((at, cpu, RecordKind.BLOCK, _address(table, step[1])))
        at += step[0]
    rows.append((at, 0, RecordKind.MARK, late))
    rows.sort(key=lambda row: row[0])
    return TraceSection(
        kind=SectionKind.WORST,
        cpu=0,
        latency_ns=late,
        sequence=7,
        first_ns=0,
        last_ns=at,
        cut=False,
        left_out=False,
        at_ns=np.array([row[0] for row in rows], np.int64),
        cpus=np.array([row[1] for row in rows], np.uint8),
        kinds=np.array([row[2] for row in rows], np.uint8),
        values=np.array([row[3] for row in rows], np.uint64),
        block_ns=block_ns,
        quantum_ns=quantum_ns,
    )


def _address(table: SymbolTable, name: str) -> int:
    if name == "user":
        return USER_CODE
    middle = name.endswith("+")
    return int(table.starts[table.names.index(name.rstrip("+"))]) + 8 * middle


def _told(
    at: int, name: str, cpu: int = 0, prio: int | None = None
) -> list[tuple[int, int, int, int]]:
    return [
        (at, cpu, RecordKind.TASK, TEXT + len(name)),
        *_named(at, cpu, name),
        *([] if prio is None else [(at, cpu, RecordKind.PRIORITY, prio)]),
    ]


def _renamed(
    at: int, cpu: int, before: str, after: str
) -> list[tuple[int, int, int, int]]:
    return [
        (at, cpu, RecordKind.RENAMED, TEXT + len(before)),
        *_named(at, cpu, before),
        *_named(at, cpu, after),
    ]


def _named(at: int, cpu: int, name: str) -> list[tuple[int, int, int, int]]:
    text = name.encode().ljust(16, b"\0")
    words = (int.from_bytes(word, "little") for word in (text[:8], text[8:]))
    return [(at, cpu, RecordKind.NAME, word) for word in words]
