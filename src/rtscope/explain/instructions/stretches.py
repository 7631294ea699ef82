"""
From executed blocks to stretches: what a CPU executed in one function at a time. Pure.

A path may have millions. Of so many, a call that was short, was no step of a wake-up
and called nothing is part of its caller, and so on up.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rtscope.record.instructions.section import CpuBlocks
from rtscope.record.instructions.symbols import KERNEL_HALF, USER, SymbolTable

MOST_STRETCHES = 400_000
"""A path of more has its short calls merged with their callers."""
SHORT_NS = 200
"""A call of at most this time is a short one."""
# What GCC moves away from the rest of a function, which jumps to it and back.
_COLD = re.compile(r"\.cold(?:\.\d+)?(?= |$)")
# x86: jumps that guard against speculation, and the last steps of an interrupt's exit.
_STEPS_BETWEEN = (
    *("__x86_indirect_", "__pi___x86_indirect_"),  # the second since Linux 6.17
    *("__x86_return_thunk", "its_return_thunk", "srso_"),
    *("retbleed_", "entry_untrain_ret", "early_xen_iret_patch"),
    *("native_irq_return_iret", "common_interrupt_return"),
)
FIRMWARE = "(firmware)"
NAMELESS = "(no symbol)"
_PAGE = 12
_PARTS = {
    label: function
    for function, labels in {
        "ftrace_caller": "ftrace_call ftrace_caller_op_ptr ftrace_caller_end "
        "ftrace_epilogue",
        "ftrace_regs_caller": "ftrace_regs_call ftrace_regs_caller_op_ptr "
        "ftrace_regs_caller_jmp ftrace_regs_caller_end",
        "asm_exc_nmi": "first_nmi nested_nmi nested_nmi_out repeat_nmi end_repeat_nmi "
        "nmi_no_fsgsbase nmi_swapgs nmi_restore",
    }.items()
    for label in labels.split()
}
"""Labels inside of functions, with symbols of their own."""
# Where QEMU's virt machine for RISC-V has OpenSBI; the kernel begins at 2 MiB.
_RISCV_FIRMWARE = (np.uint64(0x8000_0000), np.uint64(0x8020_0000))


@lru_cache(maxsize=1 << 16)
def is_between(name: str) -> bool:
    """Tell whether a name is of a step from one function to another, and of none."""
    return name.startswith(_STEPS_BETWEEN)


_AT_ONCE = 1 << 18
"""Blocks that are sorted at once: of millions each copy is large."""
MayMerge = Callable[[str, str], bool]
"""Whether a short call of a function may be merged with its caller, by their names."""


@dataclass(frozen=True, slots=True)
class Stretches:
    """What a CPU did, in order; the sequences are equally long."""

    at_ns: Sequence[int]
    names: Sequence[str]
    """The function of each."""
    starts: Sequence[bool]
    """Whether it was called there; else the CPU returned to it."""
    own_ns: Sequence[int]
    last_ns: int
    is_merged: bool = False
    """Short calls are part of their callers."""

    @property
    def ends_ns(self) -> Sequence[int]:
        """Where the next one begins, or the path ends."""
        return [*self.at_ns[1:], max([self.last_ns, *self.at_ns[-1:]])]


@dataclass(frozen=True, slots=True)
class _Columns:
    """The same as arrays, with a number for each name."""

    at_ns: NDArray[np.int64]
    codes: NDArray[np.int32]
    starts: NDArray[np.bool_]
    own_ns: NDArray[np.int64]


def stretches_of(
    blocks: CpuBlocks, symbols: SymbolTable, may_merge: MayMerge, *, arch: str
) -> Stretches:
    """Return what a CPU did; with short calls merged where that is very much."""
    if not len(blocks.at_ns):
        return Stretches([], [], [], [], blocks.last_ns)
    addresses, which = _distinct(blocks.addresses)
    found = symbols.names_of(addresses)
    known = [_whole(name or "") or None for name in found]
    is_part = np.array([_whole(name or "") != (name or "") for name in found])
    are_starts = symbols.are_starts(addresses) & ~is_part
    names = _names(addresses, known, arch=arch)
    codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
    is_step = np.array([is_between(name) for name in names])[which]
    starts = are_starts[which] & ~is_step
    # Steps that the path begins with lead to the first function, and are part of it.
    begin = int(np.argmin(is_step))
    starts[0], starts[1 : begin + 1] = starts[begin], False
    called_from = np.arange(len(which), dtype=np.int32)
    called_from[is_step] = 0
    called_from[: begin + 1] = begin
    np.maximum.accumulate(called_from, out=called_from)
    code = np.array([codes[name] for name in names], np.int32)[which[called_from]]
    first = np.flatnonzero(np.append(True, (code[1:] != code[:-1]) | starts[1:]))
    columns = _Columns(
        blocks.at_ns[first],
        code[first],
        starts[first],
        np.add.reduceat(blocks.executed_ns, first),
    )
    words, whole = tuple(codes), len(first)
    if whole > MOST_STRETCHES:
        columns = _merged(columns, words, may_merge)
    return Stretches(
        columns.at_ns.tolist(),
        [words[one] for one in columns.codes.tolist()],
        columns.starts.tolist(),
        columns.own_ns.tolist(),
        blocks.last_ns,
        is_merged=len(columns.codes) < whole,
    )


def _distinct(
    values: NDArray[np.uint64],
) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Return the distinct ones of millions, ascending, and which each one is."""
    parts = [values[at : at + _AT_ONCE] for at in range(0, len(values), _AT_ONCE)]
    distinct = np.unique(np.concatenate([np.unique(part) for part in parts]))
    which = np.empty(len(values), np.int32)
    for number, part in enumerate(parts):
        begin = number * _AT_ONCE
        which[begin : begin + len(part)] = np.searchsorted(distinct, part)
    return distinct, which


def _merged(columns: _Columns, words: Sequence[str], may_merge: MayMerge) -> _Columns:
    """Merge short calls with their callers, innermost first, until none is left."""
    pairs: dict[int, bool] = {}
    while len(columns.codes) > MOST_STRETCHES:
        mergeable = _short_calls(columns)
        inner, outer = columns.codes[mergeable], columns.codes[mergeable - 1]
        keys = inner.astype(np.int64) * len(words) + outer
        for key in np.unique(keys).tolist():
            if key not in pairs:
                name, caller = divmod(key, len(words))
                pairs[key] = may_merge(words[name], words[caller])
        allowed = [key for key, may in pairs.items() if may]
        mergeable = mergeable[np.isin(keys, allowed)]
        if not len(mergeable):
            break
        # With the call goes the return behind it: both are the caller's now.
        kept = np.ones(len(columns.codes), np.bool_)
        kept[mergeable] = kept[mergeable + 1] = False
        rows = np.flatnonzero(kept)
        columns = _Columns(
            columns.at_ns[rows],
            columns.codes[rows],
            columns.starts[rows],
            np.add.reduceat(columns.own_ns, rows),
        )
    return columns


def _short_calls(columns: _Columns) -> NDArray[np.int64]:
    """Return the rows of calls that returned soon, called nothing and never paused."""
    codes, starts = columns.codes, columns.starts
    busy = columns.own_ns[:-1] >= np.diff(columns.at_ns)
    is_call = starts[1:-1] & ~starts[2:] & (codes[2:] == codes[:-2])
    is_call &= (codes[1:-1] != codes[:-2]) & (columns.own_ns[1:-1] <= SHORT_NS)
    return 1 + np.flatnonzero(is_call & busy[1:] & busy[:-1])


def _whole(name: str) -> str:
    """Return the function that a symbol is of, where it is only a part of that."""
    return _PARTS.get(name) or _COLD.sub("", name)


def _names(
    addresses: NDArray[np.uint64], known: Sequence[str | None], *, arch: str
) -> list[str]:
    low, high = _RISCV_FIRMWARE
    firmware = (addresses >= low) & (addresses < high) & (arch == "riscv64")
    return [
        name or _nameless(address, is_firmware=is_firmware)
        for name, is_firmware, address in zip(
            known,
            firmware.tolist(),
            addresses.tolist(),
            strict=True,
        )
    ]


def _nameless(address: int, *, is_firmware: bool) -> str:
    if is_firmware:
        return FIRMWARE
    if address < KERNEL_HALF:
        return USER
    return f"{NAMELESS} page {address >> _PAGE:x}"
