"""
The expressions by which call frame information tells where a frame is.

Of DWARF 5, section 2.5, what compilers and assemblers use for frames: linkers write
one for the procedure linkage table, the C library one for each register that a signal
has saved.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol


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
