"""
The steps of a recorded path: blocks merged per function, and changes of state. Pure.

Times are virtual ns relative to the expiry of the wake-up (for a window: to its begin).
All CPUs of a board share one count of instructions, so while one CPU executes the
others stand still, and time passes for them too.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rtscope.exectrace.file import RecordKind, SectionKind, TraceSection, task_switches
from rtscope.exectrace.symbols import KERNEL_HALF, USER, SymbolTable

# x86-64 and arm64 keep "no need to reschedule" in the word of the preemption count.
_COUNT_MASK = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class Step:
    """What one CPU did for a while, or a change of its state."""

    at: int
    """Instruction count at its begin."""
    at_ns: int
    """Virtual time relative to the expiry."""
    cpu: int
    kind: RecordKind
    what: str
    instructions: int = 0
    """That this CPU executed in it; 0 for a change of state."""


@dataclass(frozen=True, slots=True)
class ListedPath:
    """A section, ready to be listed."""

    section: TraceSection
    expiry: int
    """Instruction count at which the wake-up was due; a window's begin."""
    steps: tuple[Step, ...]
    functions: tuple[tuple[str, int], ...] = field(default=())
    """Instructions after the expiry by function, most first."""
    unnamed: int = 0
    """Blocks of the kernel for which there was no symbol."""


def path_of(
    section: TraceSection, symbols: SymbolTable, *, shift: int, cpu: int | None
) -> ListedPath:
    """Return the steps of a section; of one CPU, or of all of them."""
    expiry = section.first
    if section.kind is SectionKind.WORST:
        expiry = max(0, section.last - (section.latency_ns >> shift))
    steps = tuple(_merged(section, symbols, expiry=expiry, shift=shift, cpu=cpu))
    spent: Counter[str] = Counter()
    for step in steps:
        if step.kind is RecordKind.BLOCK and step.at >= expiry:
            spent[step.what] += step.instructions
    unnamed = sum(s.kind is RecordKind.BLOCK and s.what.startswith("0x") for s in steps)
    return ListedPath(section, expiry, steps, tuple(spent.most_common()), unnamed)


def _merged(
    section: TraceSection,
    symbols: SymbolTable,
    *,
    expiry: int,
    shift: int,
    cpu: int | None,
) -> Iterator[Step]:
    """Yield steps in order; blocks of one function on one CPU become one."""
    names, named = _names(section, symbols)
    wanted = (section.kinds != RecordKind.SEQUENCE) & (section.kinds != RecordKind.NAME)
    tasks = {(one.at, one.task): one.name for one in task_switches(section)}
    if cpu is not None:
        wanted &= section.cpus == cpu
    at, cpus, kinds, values, named, lengths = (
        column[wanted]
        for column in (
            *(section.at, section.cpus, section.kinds, section.values),
            *(named, _lengths(section)),
        )
    )
    if not len(at):
        return
    same = (
        (kinds[1:] == RecordKind.BLOCK)
        & (kinds[:-1] == RecordKind.BLOCK)
        & (named[1:] == named[:-1])
        & (cpus[1:] == cpus[:-1])
    )
    begins = np.flatnonzero(np.concatenate(([True], ~same)))
    instructions = np.add.reduceat(lengths, begins).tolist()
    columns = (column[begins].tolist() for column in (at, cpus, kinds, values, named))
    for begin, where, number, value, name, total in zip(
        *columns, instructions, strict=True
    ):
        kind = RecordKind(number)
        what = names[name] if kind is RecordKind.BLOCK else _words(kind, value)
        if kind is RecordKind.TASK and tasks.get((begin, value)):
            what = f"{what} {tasks[begin, value]}"
        yield Step(begin, (begin - expiry) << shift, where, kind, what, total)


def _words(kind: RecordKind, value: int) -> str:
    if kind is RecordKind.INTERRUPTS:
        return "interrupts on" if value else "interrupts off"
    if kind is RecordKind.PREEMPT:
        return f"preemption count {value & _COUNT_MASK:#x}"
    if kind is RecordKind.TASK:
        return f"task {value:#x}"
    return f"mark: {value} ns late"


def _lengths(section: TraceSection) -> NDArray[np.int64]:
    """Return how many instructions each block has: up to the next, or to the end."""
    lengths = np.zeros(len(section.at), np.int64)
    blocks = np.flatnonzero(section.kinds == RecordKind.BLOCK)
    if len(blocks):
        at = section.at[blocks]
        lengths[blocks] = np.append(at[1:], max(section.last, int(at[-1]))) - at
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
