"""
Expressions in tables of frames: DWARF 5, section 2.5.

Linkers write one for the procedure linkage table, the C library one for each register
that a signal has saved.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from rtscope.programs.binaries.bytestream import Cursor
from rtscope.programs.binaries.elf import Damaged


class Unreadable(Exception):
    """Memory that was not copied, a register without a value, an unknown operation."""


_BINARY: Mapping[int, Callable[[int, int], int]] = MappingProxyType(
    {
        0x1A: operator.and_,
        0x1C: operator.sub,
        0x1E: operator.mul,
        0x21: operator.or_,
        0x22: operator.add,
        0x24: lambda a, b: a << min(b, 64),
        0x25: lambda a, b: a >> min(b, 64),
        0x27: operator.xor,
        0x29: lambda a, b: int(a == b),
        0x2A: lambda a, b: int(_signed(a) >= _signed(b)),
        0x2B: lambda a, b: int(_signed(a) > _signed(b)),
        0x2C: lambda a, b: int(_signed(a) <= _signed(b)),
        0x2D: lambda a, b: int(_signed(a) < _signed(b)),
        0x2E: lambda a, b: int(a != b),
    }
)
_CONSTANTS = MappingProxyType(
    {
        **{0x08: (1, False), 0x09: (1, True), 0x0A: (2, False), 0x0B: (2, True)},
        **{0x0C: (4, False), 0x0D: (4, True), 0x0E: (8, False), 0x0F: (8, True)},
    }
)
_WORD = (1 << 64) - 1
_MAX_STACK = 256


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression as a table has it, with the size of an address and its order."""

    content: bytes
    word_bytes: int = 8
    order: str = "<"


def evaluate(
    expression: Expression,
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
    one = expression
    cursor = Cursor(memoryview(one.content), word_bytes=one.word_bytes, order=one.order)
    try:
        while not cursor.ended and len(stack) < _MAX_STACK:
            _step(cursor, stack, registers, read)
        return stack[-1]
    except (IndexError, KeyError, Damaged) as error:
        raise Unreadable("an expression of a frame asks for what is not there") from (
            error
        )


def _step(
    cursor: Cursor,
    stack: list[int],
    registers: Mapping[int, int],
    read: Callable[[int], int],
) -> None:
    code = cursor.number(1)
    if code in _BINARY:
        right, left = stack.pop(), stack.pop()
        stack.append(_BINARY[code](left, right) & _WORD)
    elif 0x70 <= code <= 0x8F:
        stack.append((registers[code - 0x70] + cursor.signed()) & _WORD)
    elif code == 0x92:
        register = cursor.unsigned()
        stack.append((registers[register] + cursor.signed()) & _WORD)
    elif (constant := _constant(code, cursor)) is not None:
        stack.append(constant & _WORD)
    elif code == 0x23:
        stack.append((stack.pop() + cursor.unsigned()) & _WORD)
    elif code == 0x06:
        stack.append(read(stack.pop()))
    else:
        _rearrange(code, stack)


def _constant(code: int, cursor: Cursor) -> int | None:
    """Return the number that an operation has with it; None if it has none."""
    if 0x30 <= code <= 0x4F:
        return code - 0x30
    if code in _CONSTANTS:
        size, signed = _CONSTANTS[code]
        return cursor.number(size, signed=signed)
    if code in (0x10, 0x11):
        return cursor.unsigned() if code == 0x10 else cursor.signed()
    return cursor.address() if code == 0x03 else None


def _rearrange(code: int, stack: list[int]) -> None:
    if code == 0x12:
        stack.append(stack[-1])
    elif code == 0x13:
        stack.pop()
    elif code == 0x14:
        stack.append(stack[-2])
    elif code == 0x16:
        stack[-1], stack[-2] = stack[-2], stack[-1]
    elif code != 0x96:
        raise Unreadable(
            f"an expression of a frame has the unknown operation {code:#x}"
        )


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
