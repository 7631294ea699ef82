"""
The registers of a sample, by the numbers that DWARF gives them.

In a sample they stand in the order of the kernel's `perf_regs.h`, as far as
`agent/watch/perfregs.h` asks for them.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

UNUSED = -1
"""Of a sampled register that no unwinding needs."""


@dataclass(frozen=True, slots=True)
class Registers:
    """An architecture: which of its registers is which in a sample and in DWARF."""

    word_bytes: int
    order: tuple[int, ...]
    """DWARF numbers in the order of a sample."""
    pc: int
    """DWARF number for the program counter; one of no register where it has none."""
    sp: int
    link: int | None
    """Holds the return address when a function begins; None: the stack does."""
    first_argument: int
    address_mask: int = (1 << 64) - 1
    """What of a return address is one: the rest may sign it."""


PC = 1000
"""Stands for the program counter where DWARF has no number for it."""

BY_MACHINE: Mapping[str, Registers] = MappingProxyType(
    {
        # AX BX CX DX SI DI BP SP IP FLAGS CS SS R8-R15; System V ABI, figure 3.36
        "x86_64": Registers(
            word_bytes=8,
            order=(
                *(0, 3, 2, 1, 4, 5, 6, 7, 16, UNUSED, UNUSED, UNUSED),
                *range(8, 16),
            ),
            pc=16,
            sp=7,
            link=None,
            first_argument=5,
        ),
        # X0-X30, SP, PC; user space has 52 bits of addresses, and a tag on top
        "aarch64": Registers(
            word_bytes=8,
            order=(*range(32), PC),
            pc=PC,
            sp=31,
            link=30,
            first_argument=0,
            address_mask=(1 << 48) - 1,
        ),
        "armv7l": Registers(
            word_bytes=4,
            order=(*range(15), 15),
            pc=15,
            sp=13,
            link=14,
            first_argument=0,
            address_mask=(1 << 32) - 2,
        ),
        # PC, X1-X31
        "riscv64": Registers(
            word_bytes=8,
            order=(PC, *range(1, 32)),
            pc=PC,
            sp=2,
            link=1,
            first_argument=10,
        ),
    }
)


def registers_in(data: bytes, machine: Registers) -> dict[int, int]:
    """Return the registers of a sample by their DWARF numbers; none if it has none."""
    count = len(data) // 8
    if count != len(machine.order):
        return {}
    values = struct.unpack(f"<{count}Q", data)
    return {
        number: value
        for number, value in zip(machine.order, values, strict=True)
        if number != UNUSED
    }
