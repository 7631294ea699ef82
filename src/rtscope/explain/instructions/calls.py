"""
From executed blocks to calls: what a CPU did, with the callers of each function. Pure.

A path has no calls in it, only addresses of blocks. A block at the begin of a function
is a call; one in its middle is a return to it, if it is among the callers. A jump to
the begin of another function (a tail call) looks like a call whose caller never comes
back; the next return pops both.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtscope.exectrace.format import Kind, Section
from rtscope.exectrace.symbols import SymbolTable
from rtscope.explain.instructions.functions import Role, is_between, role_of

USER = "(user space)"
FIRMWARE = "(firmware)"
NAMELESS = "(no symbol)"

_KERNEL_HALF = np.uint64(1 << 63)
# Where QEMU's virt machine for RISC-V has OpenSBI; the kernel begins at 2 MiB.
_RISCV_FIRMWARE = (np.uint64(0x8000_0000), np.uint64(0x8020_0000))
MAX_DEPTH = 256
# Where the kernel lets a new thread begin: no call, though at the begin of a function.
_FIRST_OF_A_THREAD = "ret_from_"


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A call that has not returned yet."""

    name: str
    caller: "Frame | None"
    depth: int

    def chain(self) -> Iterator["Frame"]:
        """Yield this frame and its callers, innermost first."""
        frame: Frame | None = self
        while frame is not None:
            yield frame
            frame = frame.caller


@dataclass(frozen=True, slots=True)
class Run:
    """What a CPU executed in one function, without a call or return between."""

    frame: Frame
    begin: int
    """Instruction count of the board."""
    end: int
    """Where the next run of this CPU begins: other CPUs may have run in between."""
    own: int
    """Instructions of this CPU."""


def runs_of(
    section: Section, symbols: SymbolTable, *, arch: str, cpu: int
) -> list[Run]:
    """Return what one CPU did in a section, in order."""
    at, names, starts, own = _blocks(section, symbols, arch=arch, cpu=cpu)
    runs: list[Run] = []
    frame = _callers_of_first(names, starts)
    begin, spent = 0, 0
    last_name, last_frame = None, None
    for i, name in enumerate(names):
        if name == last_name and not starts[i]:
            spent += own[i]
            continue
        if last_frame is not None:
            runs.append(Run(last_frame, begin, at[i], spent))
        frame = _entered(frame, name, is_start=starts[i])
        begin, spent, last_name, last_frame = at[i], own[i], name, frame
    if last_frame is not None:
        runs.append(Run(last_frame, begin, max(section.last, begin), spent))
    return runs


def _callers_of_first(names: Sequence[str], starts: Sequence[bool]) -> Frame | None:
    """
    Return the first function with its callers, as far as it returned to them.

    They were called before the path begins, and so are known from their ends only.
    Nothing of it holds behind the first switch to another thread.
    """
    known: list[str] = []
    frame: Frame | None = None
    for name, is_start in zip(names, starts, strict=True):
        if frame is not None and role_of(frame.name) is Role.SWITCH:
            break
        entered = _entered(frame, name, is_start=is_start)
        is_called = is_start or (name == FIRMWARE and frame is not None)
        if not is_called and not _is_in(frame, entered):
            known.append(name)
        frame = entered
    stack: Frame | None = None
    for name in reversed(known[:MAX_DEPTH]):
        stack = Frame(name, stack, 1 if stack is None else 1 + stack.depth)
    return stack


def _is_in(frame: Frame | None, called: Frame) -> bool:
    return frame is called or (frame is not None and called in frame.chain())


def _entered(frame: Frame | None, name: str, *, is_start: bool) -> Frame:
    """Return the frame after a block of `name`, which a call or a return led to."""
    if frame is None or _has_switched(frame, name, is_start=is_start):
        # Behind the switch lies another thread's stack, of which nothing is known.
        return Frame(name, None, 1)
    if is_start or name == FIRMWARE:
        if name == FIRMWARE and frame.name == FIRMWARE:
            return frame
        return Frame(name, frame if frame.depth < MAX_DEPTH else None, 1 + frame.depth)
    for caller in frame.chain():
        if caller.name == name:
            return caller
    return Frame(name, None, 1)


def _has_switched(frame: Frame, name: str, *, is_start: bool) -> bool:
    """Tell a new thread's first block from what the switch itself calls."""
    if role_of(frame.name) is not Role.SWITCH:
        return False
    return not is_start or name.startswith(_FIRST_OF_A_THREAD)


def main_frame(runs: Sequence[Run], *, share: float) -> Frame | None:
    """
    Return the innermost call in which at least this share was executed.

    More than a half, or it may be one of several; None if there is no such call.
    """
    spent: dict[Frame, int] = {}
    for run in runs:
        for frame in run.frame.chain():
            spent[frame] = spent.get(frame, 0) + run.own
    least = share * sum(run.own for run in runs)
    inside = [frame for frame, own in spent.items() if own >= least]
    return max(inside, key=lambda frame: frame.depth, default=None)


def spent_in(runs: Sequence[Run]) -> list[tuple[str, int]]:
    """Return own instructions by function, most first."""
    spent: dict[str, int] = {}
    for run in runs:
        spent[run.frame.name] = spent.get(run.frame.name, 0) + run.own
    return sorted(spent.items(), key=lambda row: -row[1])


def _blocks(
    section: Section, symbols: SymbolTable, *, arch: str, cpu: int
) -> tuple[list[int], list[str], list[bool], list[int]]:
    blocks = np.flatnonzero(section.kinds == Kind.BLOCK)
    at = section.at[blocks]
    end = max(section.last, int(at[-1])) if len(at) else 0
    lengths = np.append(at[1:], end) - at
    mine = section.cpus[blocks] == cpu
    values = section.values[blocks][mine]
    addresses, which = np.unique(values, return_inverse=True)
    names = _names(addresses, symbols, arch=arch)
    is_start = np.isin(addresses, symbols.starts)
    called = [names[i] for i in which.tolist()]
    starts = is_start[which].tolist() if len(addresses) else []
    for i in range(1, len(called)):
        if is_between(called[i]):
            called[i], starts[i] = called[i - 1], False
    return at[mine].tolist(), called, starts, lengths[mine].tolist()


def _names(
    addresses: NDArray[np.uint64], symbols: SymbolTable, *, arch: str
) -> list[str]:
    low, high = _RISCV_FIRMWARE
    firmware = (addresses >= low) & (addresses < high) & (arch == "riscv64")
    return [
        known
        or (
            FIRMWARE
            if is_firmware
            else USER
            if address < int(_KERNEL_HALF)
            else NAMELESS
        )
        for known, is_firmware, address in zip(
            symbols.names_of(addresses),
            firmware.tolist(),
            addresses.tolist(),
            strict=True,
        )
    ]
