"""
Names for addresses of a kernel: its System.map, or its /proc/kallsyms.

A name holds from its address to the next one of whatever kind, so that an address
between the kernel and its modules gets none.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rtscope.host.errors import ContractError

USER = "(user space)"
KERNEL_HALF = 1 << 63
"""The addresses of programs lie below."""
MAX_SYMBOLS_BYTES = 64 << 20
MAX_FUNCTION_BYTES = 1 << 20
"""Farther behind the last symbol of a module than any function is long."""

PAGE_BYTES = 4096
_ROW = re.compile(
    r"^([0-9a-f]{8,16}) (\S) ([^\s\[\]]{1,512})(?:[^\S\n]+\[([^\]\s]{1,64})\])? ?$"
)
# The last space: for RISC-V the assembler makes labels ".L0 ", with a space, so that no
# source can name them; one stays in System.map of Linux 6.1 as "__efistub_.L0 ".
_TEXT = frozenset("tTwW")
# Names that the compiler and the linker make, beside the function's own.
_MADE_UP = ("$", ".L", "__pfx_", "__cfi_")
_COLD = ".cold"
"""A piece of a function that is seldom executed."""


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
        return next(self.addresses_of(function), None)

    def addresses_of(self, function: str) -> Iterator[int]:
        """
        Yield the same for all functions of a name: two files may have one each.

        Those without a suffix come first. A `.cold` piece, which may lie before its
        function, is none: nobody calls it.
        """
        clone, clones = f"{function}.", list[int]()
        for address, name in zip(self.starts.tolist(), self.names, strict=True):
            if name == function:
                yield int(address)
            elif name is not None and name.startswith(clone):
                clones += [int(address)] * (_COLD not in name)
        yield from clones

    def names_of(self, addresses: NDArray[np.uint64]) -> list[str | None]:
        """Return the function that each address lies in; None if it lies in none."""
        if not len(self.starts):
            return [None] * len(addresses)
        at = np.searchsorted(self.starts, addresses, side="right") - 1
        inside = (at >= 0) & (addresses < _ends(self)[np.maximum(at, 0)])
        return [
            self.names[i] if known else None
            for i, known in zip(at.tolist(), inside.tolist(), strict=True)
        ]

    def are_starts(self, addresses: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Tell which addresses are the first of a symbol."""
        at = np.searchsorted(self.starts, addresses, side="right") - 1
        same: NDArray[np.bool_] = np.append(self.starts, np.uint64(0))[at] == addresses
        return same & (at >= 0)


@lru_cache(maxsize=4)
def _ends(table: SymbolTable) -> NDArray[np.uint64]:
    """
    Return up to where each name may hold, if no other begins before.

    The last function of a module ends with its page at the latest: behind that there
    may be a trampoline, in memory of its own.
    """
    ends = table.starts + np.uint64(MAX_FUNCTION_BYTES)
    for at, (name, after) in enumerate(pairwise((*table.names, None))):
        module = _module_of(name)
        if module and _module_of(after) != module:
            ends[at] = (table.starts[at] | np.uint64(PAGE_BYTES - 1)) + np.uint64(1)
    return ends


def _module_of(name: str | None) -> str:
    return name.partition(" [")[2] if name else ""


NO_SYMBOLS = SymbolTable(np.empty(0, np.uint64), (), {})


def parse_symbols(text: str, *, moved: Mapping[str, int] | None = None) -> SymbolTable:
    """
    Read System.map or kallsyms; ContractError for a line that is of neither.

    `moved` has the bytes to add to the addresses of a module's symbols, by its name.
    """
    return _parsed(text, tuple((moved or {}).items()))


@lru_cache(maxsize=4)
def _parsed(text: str, moved: tuple[tuple[str, int], ...]) -> SymbolTable:
    """Read a table once for all runs of a kernel: it takes half a second."""
    by_module = dict(moved)
    best: dict[int, tuple[str, str | None]] = {}
    values: dict[str, int] = {}
    for digits, kind, word, module in _rows(text):
        address = int(digits, 16) + by_module.get(module, 0)
        name = None
        if kind in _TEXT:
            name = f"{word} [{module}]" if module else word
        else:
            values.setdefault(word, address)
        known = best.get(address)
        if known is None or _rank(word, name) < _rank(*known):
            best[address] = word, name
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


def _rows(text: str) -> Iterator[Sequence[str]]:
    """Yield address, kind, name and module of each line: of 200,000 none is kept."""
    for line in text.splitlines():
        row = _ROW.fullmatch(line)
        if row is None:
            raise ContractError(f"not a line of a symbol table: {line[:80]!r}")
        yield row.groups("")


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


def _rank(word: str, function: str | None) -> int:
    """Return how bad a name is, of several for one address."""
    if function is None:
        return 1000
    made_up = word.startswith(_MADE_UP)
    return 500 * made_up + len(word) - len(word.lstrip("_"))
