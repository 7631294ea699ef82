"""Which functions took the instructions of a recorded cycle, by their blocks."""

from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from struct import pack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtscope.boards.parts.program import Program
from rtscope.boards.recording.programuses import NO_DEBUG_FILES, content_of
from rtscope.host.units import count
from rtscope.present.document import Table, table
from rtscope.programs.binaries.unwind import BY_MACHINE
from rtscope.programs.images import Images
from rtscope.programs.memorymap import Mapping as Piece
from rtscope.programs.naming import NamedFrame
from rtscope.programs.outside.model import OutsideCycle
from rtscope.record.instructions.section import TraceSection, blocks_of
from rtscope.record.instructions.symbols import SymbolTable

MOST_NAMED = 4_000
"""Blocks of a cycle whose functions are looked for: those with most instructions."""
MOST_SHOWN = 20
"""Functions in a table."""
KERNEL = "kernel"
UNKNOWN = "(unknown)"

Function = tuple[str, str]
"""The name of a function, and its source or the file that its code is in."""
Naming = Callable[[Sequence[int]], Mapping[int, Sequence[NamedFrame]]]
"""Gives the functions at addresses of a program, those put into others first."""


@dataclass(frozen=True, slots=True)
class FunctionUse:
    """A function, and what it executed in a cycle, without what it called."""

    name: str
    """A word in brackets: it is not known."""
    file: str
    """Its source, or the file that its code is in; KERNEL for the kernel's."""
    instructions: int

    @property
    def of_kernel(self) -> bool:
        """Whether the kernel executed it, for the thread or for an interrupt."""
        return self.file == KERNEL


def functions_of(
    section: TraceSection,
    cycle: OutsideCycle,
    *,
    cpu: int,
    shift: int,
    symbols: SymbolTable,
    named: Naming,
) -> tuple[FunctionUse, ...]:
    """
    Return what a CPU executed while a thread had it in a cycle, most first.

    `section` has the cycle's records, in which an instruction takes 2^`shift` ns.
    """
    blocks = blocks_of(section, cpu)
    inside = _inside(blocks.at_ns, cycle)
    addresses = blocks.addresses[inside]
    executed = blocks.executed_ns[inside] >> shift
    each, at = np.unique(addresses, return_inverse=True)
    totals = np.zeros(len(each), np.int64)
    np.add.at(totals, at, executed)
    in_kernel = (each >> np.uint64(63)).astype(np.bool_)
    found: Counter[tuple[str, str]] = Counter()
    names = symbols.names_of(each[in_kernel])
    for name, instructions in zip(names, totals[in_kernel].tolist(), strict=True):
        found[name or UNKNOWN, KERNEL] += instructions
    own = dict(zip(each[~in_kernel].tolist(), totals[~in_kernel].tolist(), strict=True))
    frames = named(sorted(own, key=lambda one: -own[one])[:MOST_NAMED])
    for address, instructions in own.items():
        found[function_key(frames.get(address, ()))] += instructions
    rows = [FunctionUse(*key, number) for key, number in found.items() if number]
    return tuple(sorted(rows, key=lambda one: (-one.instructions, one.name, one.file)))


def _inside(at_ns: NDArray[np.int64], cycle: OutsideCycle) -> NDArray[np.bool_]:
    """Tell when the thread had its CPU."""
    begin_ns = cycle.first_ns if cycle.in_ns is None else cycle.in_ns
    inside: NDArray[np.bool_] = (at_ns >= begin_ns) & (at_ns < cycle.done_ns)
    others = [
        *((one.began_ns, one.ended_ns) for one in cycle.preemptions),
        *((one.began_ns, one.ended_ns) for one in cycle.waits),
    ]
    for began_ns, ended_ns in others:
        inside &= (at_ns < began_ns) | (at_ns >= ended_ns)
    return inside


def function_key(frames: Sequence[NamedFrame]) -> Function:
    """Return the first of some frames, as it is shown."""
    if not frames:
        return UNKNOWN, ""
    one = frames[0]
    return one.function or UNKNOWN, PurePosixPath(one.file or one.image).name


def naming_of(program: Program, pieces: Sequence[Piece], *, arch: str) -> Naming:
    """Return what names the addresses of a process, whose memory has these pieces."""
    return partial(frames_at, program, pieces, arch=arch)


def frames_at(
    program: Program, pieces: Sequence[Piece], addresses: Sequence[int], *, arch: str
) -> Mapping[int, Sequence[NamedFrame]]:
    """Return the functions at addresses of a process, those put into others first."""
    machine = BY_MACHINE.get(arch)
    if machine is None or not (pieces and addresses):
        return {}
    samples = [
        (b64encode(_registers(machine.order, machine.pc, one)).decode(), "", True)
        for one in addresses
    ]
    reading = content_of(program)
    with Images(reading, debug_files=NO_DEBUG_FILES, find=()) as images:
        images.read(pieces)
        stacks = images.stacks(pieces, samples, arch=arch).named
    return {
        address: stack.frames
        for address, stack in zip(addresses, stacks, strict=True)
        if stack.frames
    }


def _registers(order: Sequence[int], pc: int, address: int) -> bytes:
    """Return the registers of a sample of which only the place is known."""
    return pack(f"<{len(order)}Q", *(address if one == pc else 0 for one in order))


# --- shown ----------------------------------------------------------------------------


def functions_row(uses: Sequence[FunctionUse]) -> list[dict[str, Any]]:
    """Return them for a JSON document."""
    return [
        {"function": one.name, "file": one.file, "instructions": one.instructions}
        for one in uses
    ]


def functions_table(uses: Sequence[FunctionUse]) -> Table:
    """Return those with most instructions, and a line for all others."""
    rows = [[one.name, one.file, count(one.instructions)] for one in uses[:MOST_SHOWN]]
    rest = uses[MOST_SHOWN:]
    if rest:
        others = sum(one.instructions for one in rest)
        rows.append([f"{count(len(rest))} others", "", count(others)])
    return table(("function", "file"), ("instructions",), rows)
