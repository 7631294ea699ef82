"""
Where the caller of a function is, from the table that compilers write for exceptions.

`.eh_frame`, or `.debug_frame` where there is none. Libraries without frame pointers
and without debug packages have it: exceptions go through them.
"""

import operator
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from types import MappingProxyType
from typing import Any, Protocol

from elftools.common.exceptions import ELFError
from elftools.dwarf.callframe import FDE, CallFrameInfo, RegisterRule
from elftools.dwarf.dwarf_expr import DWARFExprParser
from elftools.dwarf.structs import DWARFStructs
from elftools.elf.elffile import ELFFile

# --- expressions of DWARF 5, section 2.5 --------------------------------------------

# What compilers and assemblers use for frames: linkers write one for the procedure
# linkage table, the C library one for each register that a signal has saved.


class Operation(Protocol):
    """An operation as pyelftools parses it."""

    @property
    def op_name(self) -> str:
        """As `DW_OP_plus`."""
        ...

    @property
    def args(self) -> Sequence[int]:
        """Its numbers."""
        ...


class Unreadable(Exception):
    """Memory that was not copied, a register without a value, an unknown operation."""


_BINARY: Mapping[str, Callable[[int, int], int]] = MappingProxyType(
    {
        "DW_OP_plus": operator.add,
        "DW_OP_minus": operator.sub,
        "DW_OP_mul": operator.mul,
        "DW_OP_and": operator.and_,
        "DW_OP_or": operator.or_,
        "DW_OP_xor": operator.xor,
        "DW_OP_shl": lambda a, b: a << min(b, 64),
        "DW_OP_shr": lambda a, b: a >> min(b, 64),
        "DW_OP_eq": lambda a, b: int(a == b),
        "DW_OP_ne": lambda a, b: int(a != b),
        "DW_OP_ge": lambda a, b: int(_signed(a) >= _signed(b)),
        "DW_OP_gt": lambda a, b: int(_signed(a) > _signed(b)),
        "DW_OP_le": lambda a, b: int(_signed(a) <= _signed(b)),
        "DW_OP_lt": lambda a, b: int(_signed(a) < _signed(b)),
    }
)
_WORD = (1 << 64) - 1


def evaluate(
    operations: Iterable[Operation],
    *,
    registers: Mapping[int, int],
    read: Callable[[int], int],
    first: int | None = None,
) -> int:
    """
    Return what an expression stands for; `first` is on its stack at the begin.

    `read` gives the word at an address. Raises Unreadable.
    """
    stack = [] if first is None else [first]
    try:
        for operation in operations:
            _step(operation, stack, registers, read)
        return stack[-1]
    except (IndexError, KeyError) as error:
        raise Unreadable("an expression of a frame asks for what is not there") from (
            error
        )


def _step(
    operation: Operation,
    stack: list[int],
    registers: Mapping[int, int],
    read: Callable[[int], int],
) -> None:
    name, args = operation.op_name, operation.args
    if name in _BINARY:
        right, left = stack.pop(), stack.pop()
        stack.append(_BINARY[name](left, right) & _WORD)
    elif name.startswith("DW_OP_breg"):
        stack.append((registers[int(name[10:])] + args[0]) & _WORD)
    elif name == "DW_OP_bregx":
        stack.append((registers[args[0]] + args[1]) & _WORD)
    elif name.startswith("DW_OP_lit"):
        stack.append(int(name[9:]))
    elif name.startswith("DW_OP_const") or name == "DW_OP_addr":
        stack.append(args[0] & _WORD)
    elif name == "DW_OP_plus_uconst":
        stack.append((stack.pop() + args[0]) & _WORD)
    elif name == "DW_OP_deref":
        stack.append(read(stack.pop()))
    else:
        _rearrange(name, stack)


def _rearrange(name: str, stack: list[int]) -> None:
    if name == "DW_OP_dup":
        stack.append(stack[-1])
    elif name == "DW_OP_drop":
        stack.pop()
    elif name == "DW_OP_over":
        stack.append(stack[-2])
    elif name == "DW_OP_swap":
        stack[-1], stack[-2] = stack[-2], stack[-1]
    elif name != "DW_OP_nop":
        raise Unreadable(f"an expression of a frame has the unknown operation {name}")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


# --- tables -------------------------------------------------------------------------

SECTIONS = (".eh_frame", ".debug_frame")


@dataclass(frozen=True, slots=True)
class Saved:
    """
    Where a register of the caller is.

    `kind` is `at` (in memory, at the frame's address and `value`), `is` (it is that
    sum), `in` (in the register `value`), `at_expression`, `is_expression`, or
    `undefined`: of the return address that says that there is no caller.
    """

    kind: str
    value: int = 0
    operations: Sequence[Operation] = ()


@dataclass(frozen=True, slots=True)
class FrameRow:
    """How to find the caller from one place in a function."""

    cfa_register: int
    cfa_offset: int
    cfa_operations: Sequence[Operation] | None
    saved: Mapping[int, Saved]
    return_column: int
    is_signal: bool
    """The caller was interrupted there, and did not call."""


class FrameTable:
    """The table of one file, by addresses as they are in the file."""

    def __init__(self, elf: ELFFile) -> None:
        """Read it; one that is damaged is as one that is not there."""
        self._structs = DWARFStructs(
            little_endian=elf.little_endian,
            dwarf_format=32,
            address_size=elf.elfclass // 8,
        )
        self.section: str | None = None
        entries: list[Any] = []
        for name in SECTIONS:
            section = elf.get_section_by_name(name)
            if section is None or section["sh_type"] == "SHT_NOBITS":
                continue
            section_entries = _entries(section, self._structs, eh=name == ".eh_frame")
            if section_entries:
                self.section, entries = name, section_entries
                break
        entries.sort(key=lambda entry: entry["initial_location"])
        self._entries = entries
        self._begins = [entry["initial_location"] for entry in entries]

    def row_at(self, vaddr: int) -> FrameRow | None:
        """Return how to find the caller from there; None if the table does not tell."""
        at = bisect_right(self._begins, vaddr) - 1
        if at < 0:
            return None
        entry = self._entries[at]
        if vaddr >= entry["initial_location"] + entry["address_range"]:
            return None
        try:
            rows = [row for row in entry.get_decoded().table if row["pc"] <= vaddr]
        except (ELFError, KeyError, ValueError, IndexError, TypeError):
            return None
        return self._row(rows[-1], entry.cie) if rows else None

    def _row(self, row: Mapping[Any, Any], cie: Any) -> FrameRow:
        cfa = row["cfa"]
        return FrameRow(
            cfa_register=-1 if cfa.reg is None else cfa.reg,
            cfa_offset=cfa.offset or 0,
            cfa_operations=None if cfa.expr is None else self._parsed(cfa.expr),
            saved={
                number: self._saved(rule)
                for number, rule in row.items()
                if isinstance(number, int)
            },
            return_column=cie["return_address_register"],
            is_signal=b"S" in cie["augmentation"],
        )

    def _saved(self, rule: Any) -> Saved:
        kinds = {
            RegisterRule.OFFSET: "at",
            RegisterRule.VAL_OFFSET: "is",
            RegisterRule.REGISTER: "in",
            RegisterRule.SAME_VALUE: "same",
            RegisterRule.UNDEFINED: "undefined",
        }
        if rule.type in kinds:
            return Saved(kinds[rule.type], rule.arg or 0)
        kind = "at" if rule.type == RegisterRule.EXPRESSION else "is"
        return Saved(f"{kind}_expression", operations=self._parsed(rule.arg))

    def _parsed(self, expression: Sequence[int]) -> Sequence[Operation]:
        return tuple(DWARFExprParser(self._structs).parse_expr(expression))


def _entries(section: Any, structs: DWARFStructs, *, eh: bool) -> list[Any]:
    data = section.data()
    info = CallFrameInfo(
        stream=BytesIO(data),
        size=len(data),
        address=section["sh_addr"],
        base_structs=structs,
        for_eh_frame=eh,
    )
    try:
        return [entry for entry in info.get_entries() if isinstance(entry, FDE)]
    except (ELFError, AssertionError, KeyError, ValueError, IndexError):
        return []
