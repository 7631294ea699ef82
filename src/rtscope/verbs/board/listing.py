"""
The steps of a recorded path: blocks merged per function, and changes of state. Pure.

Times are virtual ns, each of the CPU that a step is of.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import merge

import numpy as np
from numpy.typing import NDArray

from rtscope.record.instructions.section import (
    RecordKind,
    SectionKind,
    TraceSection,
    blocks_of,
    cpus_of,
    task_switches,
)
from rtscope.record.instructions.symbols import KERNEL_HALF, USER, SymbolTable

# x86-64 and arm64 keep "no need to reschedule" in the word of the preemption count.
_COUNT_MASK = 0x7FFFFFFF
_LISTED_KINDS = (
    RecordKind.BLOCK,
    RecordKind.INTERRUPTS,
    RecordKind.PREEMPT,
    RecordKind.TASK,
    RecordKind.MARK,
    RecordKind.PAUSE,
)
"""The others say more of the record before, or of another kind of section."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one CPU did for a while, or a change of its state."""

    at_ns: int
    """Virtual time at its begin."""
    after_expiry_ns: int
    """The same relative to the expiry of the wake-up; for a window, to its begin."""
    cpu: int
    kind: RecordKind
    what: str
    executed_ns: int = 0
    """What this CPU executed in it; 0 for a change of state."""


@dataclass(frozen=True, slots=True)
class ListedPath:
    """A section, ready to be listed."""

    section: TraceSection
    expiry_ns: int
    """Virtual time at which the wake-up was due; a window's begin."""
    steps: tuple[Step, ...]
    functions: tuple[tuple[str, int], ...] = field(default=())
    """ns executed after the expiry by function, most first."""
    unnamed: int = 0
    """Blocks of the kernel for which there was no symbol."""


def path_of(
    section: TraceSection, symbols: SymbolTable, *, cpu: int | None
) -> ListedPath:
    """Return the steps of a section; of one CPU, or of all of them."""
    expiry_ns = section.first_ns
    if section.kind is SectionKind.WORST:
        expiry_ns = max(0, section.last_ns - section.latency_ns)
    cpus = cpus_of(section.cpus) if cpu is None else [cpu]
    each = (_merged(section, symbols, expiry_ns=expiry_ns, cpu=one) for one in cpus)
    steps = tuple(merge(*each, key=lambda step: step.at_ns))
    spent: Counter[str] = Counter()
    for step in steps:
        # A step is cut by every change of state; what it was cut into counts the same.
        after_ns = min(step.executed_ns, step.at_ns + step.executed_ns - expiry_ns)
        if step.kind is RecordKind.BLOCK and after_ns > 0:
            spent[step.what] += after_ns
    unnamed = sum(s.kind is RecordKind.BLOCK and s.what.startswith("0x") for s in steps)
    return ListedPath(section, expiry_ns, steps, tuple(spent.most_common()), unnamed)


def _merged(
    section: TraceSection,
    symbols: SymbolTable,
    *,
    expiry_ns: int,
    cpu: int,
) -> Iterator[Step]:
    """
    Yield the steps of a CPU in order.

    Blocks of one function become one, as far as the CPU does not pause.
    """
    names, named = _names(section, symbols)
    wanted = (section.cpus == cpu) & np.isin(section.kinds, _LISTED_KINDS)
    tasks = {(one.at_ns, one.task): one.name for one in task_switches(section)}
    at, kinds, values = (
        column[wanted] for column in (section.at_ns, section.kinds, section.values)
    )
    named, lengths = named[wanted], _lengths(section, cpu)[wanted]
    if not len(at):
        return
    same = (
        (kinds[1:] == RecordKind.BLOCK)
        & (kinds[:-1] == RecordKind.BLOCK)
        & (named[1:] == named[:-1])
    )
    begins = np.flatnonzero(np.concatenate(([True], ~same)))
    spent_ns = np.add.reduceat(lengths, begins).tolist()
    columns = (column[begins].tolist() for column in (at, kinds, values, named))
    for begin, number, value, name, total in zip(*columns, spent_ns, strict=True):
        kind = RecordKind(number)
        if kind is RecordKind.PAUSE:
            continue
        what = names[name] if kind is RecordKind.BLOCK else _words(kind, value)
        if kind is RecordKind.TASK and tasks.get((begin, value)):
            what = f"{what} {tasks[begin, value]}"
        yield Step(begin, begin - expiry_ns, cpu, kind, what, total)


def _words(kind: RecordKind, value: int) -> str:
    if kind is RecordKind.INTERRUPTS:
        return "interrupts on" if value else "interrupts off"
    if kind is RecordKind.PREEMPT:
        return f"preemption count {value & _COUNT_MASK:#x}"
    if kind is RecordKind.TASK:
        return f"task {value:#x}"
    return f"mark: {value} ns late"


def _lengths(section: TraceSection, cpu: int) -> NDArray[np.int64]:
    """Return how long each block of a CPU took, in ns; 0 for the other records."""
    lengths = np.zeros(len(section.at_ns), np.int64)
    blocks = blocks_of(section, cpu)
    lengths[blocks.rows] = blocks.executed_ns
    return lengths


def _names(
    section: TraceSection, symbols: SymbolTable
) -> tuple[list[str], NDArray[np.int64]]:
    """Return names, and which of them each record has; -1 for those that have none."""
    blocks = section.kinds == RecordKind.BLOCK
    addresses, which = np.unique(section.values[blocks], return_inverse=True)
    known = [
        name or (USER if address < KERNEL_HALF else f"{address:#x}")
        for address, name in zip(
            addresses.tolist(), symbols.names_of(addresses), strict=True
        )
    ]
    names = list(dict.fromkeys(known))
    number = {name: i for i, name in enumerate(names)}
    of_address = np.array([number[name] for name in known], np.int64)
    named = np.full(len(blocks), -1, np.int64)
    named[blocks] = of_address[which] if len(of_address) else 0
    return names, named
