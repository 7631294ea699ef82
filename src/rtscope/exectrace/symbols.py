"""
Names for addresses of a kernel: its System.map, or its /proc/kallsyms.

A name holds from its address to the next one of whatever kind, so that an address
between the kernel and its modules gets none.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtscope.errors import ContractError

USER = "(user space)"
KERNEL_HALF = 1 << 63
"""The addresses of programs lie below."""
MAX_SYMBOLS_BYTES = 64 << 20
MAX_FUNCTION_BYTES = 1 << 20
"""Farther behind the last symbol of a module than any function is long."""

_ROW = re.compile(
    r"([0-9a-f]{8,16}) (\S) ([^\s\[\]]{1,512})(?:\s+\[([^\]\s]{1,64})\])?"
)
_TEXT = frozenset("tTwW")
# Names that the compiler and the linker make, beside the function's own.
_MADE_UP = ("$", ".L", "__pfx_", "__cfi_")


@dataclass(frozen=True, slots=True, eq=False)
class SymbolTable:
    """Symbols by ascending address; the sequences are of equal length."""

    starts: NDArray[np.uint64]
    names: tuple[str | None, ...]
    """None from there on for what is no function."""
    values: Mapping[str, int]
    """Address of every symbol that is no function, by its name."""

    def address_of(self, function: str) -> int | None:
        """Return where a function begins, also if the compiler made a clone of it."""
        clone = f"{function}."
        for address, name in zip(self.starts.tolist(), self.names, strict=True):
            if name is not None and (name == function or name.startswith(clone)):
                return int(address)
        return None

    def names_of(self, addresses: NDArray[np.uint64]) -> list[str | None]:
        """Return the function that each address lies in; None if it lies in none."""
        if not len(self.starts):
            return [None] * len(addresses)
        at = np.searchsorted(self.starts, addresses, side="right") - 1
        starts = self.starts[np.maximum(at, 0)]
        inside = (at >= 0) & (addresses - starts < np.uint64(MAX_FUNCTION_BYTES))
        return [
            self.names[i] if known else None
            for i, known in zip(at.tolist(), inside.tolist(), strict=True)
        ]


NO_SYMBOLS = SymbolTable(np.empty(0, np.uint64), (), {})


def parse_symbols(text: str, *, moved: Mapping[str, int] | None = None) -> SymbolTable:
    """
    Read System.map or kallsyms; ContractError for a line that is of neither.

    `moved` has the bytes to add to the addresses of a module's symbols, by its name.
    """
    best: dict[int, tuple[int, str | None]] = {}
    values: dict[str, int] = {}
    for line in text.splitlines():
        row = _ROW.fullmatch(line)
        if row is None:
            raise ContractError(f"not a line of a symbol table: {line[:80]!r}")
        address = int(row[1], 16) + (moved or {}).get(row[4] or "", 0)
        name = None
        if row[2] in _TEXT:
            name = f"{row[3]} [{row[4]}]" if row[4] else row[3]
        else:
            values.setdefault(row[3], address)
        rank = _rank(row[3], is_text=name is not None)
        if address not in best or rank < best[address][0]:
            best[address] = (rank, name)
    order = sorted(address for address in best if 0 <= address < 1 << 64)
    if best and not any(order):
        raise ContractError(
            "the symbol table has no addresses: the kernel hides them (kptr_restrict)"
        )
    return SymbolTable(
        starts=np.array(order, np.uint64),
        names=tuple(best[address][1] for address in order),
        values=values,
    )


def merged(table: SymbolTable, more: SymbolTable) -> SymbolTable:
    """Return the symbols of both tables; `more` counts where both have an address."""
    if not len(more.starts):
        return table
    names = dict(zip(table.starts.tolist(), table.names, strict=True))
    names |= zip(more.starts.tolist(), more.names, strict=True)
    order = sorted(names)
    return SymbolTable(
        starts=np.array(order, np.uint64),
        names=tuple(names[address] for address in order),
        values={**table.values, **more.values},
    )


def _rank(name: str, *, is_text: bool) -> int:
    """Return how bad a name is, of several for one address."""
    if not is_text:
        return 1000
    made_up = name.startswith(_MADE_UP)
    return 500 * made_up + len(name) - len(name.lstrip("_"))
