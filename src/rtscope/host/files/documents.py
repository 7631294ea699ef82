"""
Read TOML and JSON that others may have written: any mistake is an error of rtscope.

A document may be nested without end, have numbers of a million digits, or halves of
characters.

Three bytes of JSON can become hundreds in memory: a value, and each mistake in it.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError, SchemaValidator, from_json

from rtscope.host.errors import RecordError, RtscopeError, UsageError
from rtscope.host.units import MAX_DIGITS

MAX_DEPTH = 64
"""Of TOML: more than any table of ours has; JSON is limited to 200 by its reader."""

MAX_DOTS = 10_000
"""In one word of a text, which is read as fast as any other."""

_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_DOTTED = re.compile(
    rf"{_PART}(?:[ \t]*+\.[ \t]*+{_PART})++(?=(?P<is_key>[ \t]*+[=\]])?)"
)


def toml_tables(
    content: bytes | str, *, name: str, error: type[RtscopeError] = UsageError
) -> dict[str, Any]:
    """Return the tables of a TOML document; `error` names document and mistake."""
    try:
        text = content.decode() if isinstance(content, bytes) else content
        if any(map(_is_too_deep, _DOTTED.finditer(text))):
            raise RecursionError
        tables = tomllib.loads(text)
    except RecursionError as cause:
        raise error(f"{name}: not valid TOML: nested too deep") from cause
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as cause:
        raise error(f"{name}: not valid TOML: {str(cause)[:200]}") from cause
    except ValueError as cause:  # a number of more digits than Python reads
        where, digits = _endless_number(text)
        said = f"a number of {digits:,} digits; {_BITS}"
        raise error(f"{name}: {where}{said}") from cause
    if _is_deeper(tables, MAX_DEPTH):  # a.a.a.a = 1 is read without recursion
        raise error(f"{name}: nested deeper than {MAX_DEPTH} tables and lists")
    if (key := _huge_number(tables)) is not None:
        line = _line_of(text, key)
        raise error(f"{name}: {line}key {key}: a number too large; {_BITS}")
    return tables


_BITS = "whole numbers of TOML have 64 bits, 19 digits at most"
_ENDLESS_FROM = 10**MAX_DIGITS
_ENDLESS = re.compile(r"[0-9](?:_?[0-9]){4000,}")
_QUOTED_TEXT = re.compile(r"\"[^\"\n]*+\"|'[^'\n]*+'")
_KEY = re.compile(rf"[ \t]*+({_PART}(?:[ \t]*+\.[ \t]*+{_PART})*+)[ \t]*+=")


def _endless_number(text: str) -> tuple[str, int]:
    """Return line and key of a number of thousands of digits, and their number."""
    key = ""
    for number, line in enumerate(text.splitlines(), 1):
        named = _KEY.match(line)
        key = f", key {named[1][:80]}" if named else key
        if found := _ENDLESS.search(_QUOTED_TEXT.sub("", line)):
            return f"line {number}{key}: ", len(found[0].replace("_", ""))
    return "", 0


def _huge_number(tables: Mapping[str, Any]) -> str | None:
    """Return the last key of a number beyond 64 bits, or no finite one; else None."""
    level: list[tuple[str, object]] = [*tables.items()]
    while level:
        for key, value in level:
            if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
                return key[:80]
            if isinstance(value, float) and not isfinite(value):
                return key[:80]
        level = [
            (key if isinstance(value, list) else str(name), inner)
            for key, value in level
            for name, inner in _named(value)
        ]
    return None


def _named(value: object) -> Sequence[tuple[object, object]]:
    if isinstance(value, Mapping):
        return list(value.items())
    return [("", one) for one in value] if isinstance(value, list) else ()


def _line_of(text: str, key: str) -> str:
    """Return the line that a key begins, if it is one alone."""
    lines = [
        number
        for number, line in enumerate(text.splitlines(), 1)
        if (named := _KEY.match(line)) and named[1].rpartition(".")[2].strip() == key
    ]
    return f"line {lines[0]}, " if len(lines) == 1 else ""


def _is_too_deep(dotted: re.Match[str]) -> bool:
    """
    Tell whether `a.a.a.a` is a key of too many parts, or so long that it may be none.

    The time that the reader takes for one grows with their square.
    """
    dots = dotted[0].count(".")
    return dots > (MAX_DEPTH if dotted["is_key"] else MAX_DOTS)


def json_value(
    content: bytes | str, *, name: str, error: type[RtscopeError] = RecordError
) -> Any:
    """Return the value of a JSON document; `error` names document and mistake."""
    try:
        # json.loads lets halves of a character through, and fails by RecursionError.
        value = from_json(content, allow_inf_nan=False)
    except ValueError as cause:
        raise error(f"{name}: damaged: {str(cause)[:200]}") from cause
    if (place := _endless_at(value)) is not None:
        where = f"{place}: " if place else ""
        raise error(
            f"{name}: damaged: {where}a number too large; numbers of JSON are below "
            f"10^{MAX_DIGITS} or have a fraction below 1.8e308"
        )
    return value


def _endless_at(value: object) -> str | None:
    """
    Return where a number is that no reader can hold; None without one.

    Python reads 1e999 as infinity, and whole numbers of thousands of digits.
    """
    level: list[tuple[str, object]] = [("", [value])]
    while level:
        place, one = level.pop()
        named = one.items() if isinstance(one, dict) else enumerate(_list(one))
        for key, inner in named:
            kind = type(inner)
            if kind is dict or kind is list:
                level.append((f"{place}.{str(key)[:40]}", inner))
            elif (kind is int or kind is float) and _is_endless(inner):
                return f"{place}.{str(key)[:40]}"[3:203]  # without the list around it
    return None


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _is_endless(value: object) -> bool:
    if isinstance(value, float):
        return not isfinite(value)
    return isinstance(value, int) and not -_ENDLESS_FROM < value < _ENDLESS_FROM


def json_object(
    content: bytes | str, *, name: str, error: type[RtscopeError] = RecordError
) -> dict[str, Any]:
    """Return the object of a JSON document; `error` if it is none."""
    document = json_value(content, name=name, error=error)
    if not isinstance(document, dict):
        raise error(f"{name}: damaged: not an object")
    return document


def _is_deeper(value: object, depth: int) -> bool:
    """Whether tables and lists lie in more than so many others."""
    level: list[object] = [value]
    for _ in range(depth):
        level = [inner for one in level for inner in _inner(one)]
    return any(isinstance(one, Mapping | list) for one in level)


def _inner(value: object) -> Sequence[object]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else ()


# --- check JSON that others may have written against a type, in bounded memory --------

T = TypeVar("T")

MAX_VALUES_BYTES = 192 << 20
"""Of the values of a document; a result of 250 threads with 5,000 distinct latencies
each has less."""

_WEIGHTS = {b":": 600, b"{": 160, b"[": 64, b",": 40}
"""Bytes in memory, at most, of what such a character begins or separates."""


class JsonShape(Generic[T]):
    """A type, against which documents are checked."""

    def __init__(self, shape: TypeAdapter[T]) -> None:
        """
        Take the type; a list with mistakes is read until the first of them.

        A number beyond what a float holds is a mistake, as 1e999 is.
        """
        self._shape = shape
        self._validator = SchemaValidator(_ends_early(shape.core_schema))

    def read(self, text: bytes) -> T:
        """Return the value of a document; ValidationError if it is none."""
        if holds_too_much(text):
            raise ValidationError.from_exception_data(
                "JSON",
                [{"type": PydanticCustomError("too_much", _TOO_MUCH), "input": None}],
            )
        value: T = self._validator.validate_json(text)
        return value

    def write(self, value: T) -> bytes:
        """Write a value, which `read` gives back."""
        return self._shape.dump_json(value)


_TOO_MUCH = f"too many values: more than {MAX_VALUES_BYTES:,} bytes of memory"


def memory_of(text: bytes) -> int:
    """Return how many bytes the values of a JSON document take, at most."""
    values = sum(text.count(one) * weight for one, weight in _WEIGHTS.items())
    return len(text) + values


def holds_too_much(text: bytes) -> bool:
    """Tell whether the values of a JSON document would take too much memory."""
    small = len(text) * max(_WEIGHTS.values()) <= MAX_VALUES_BYTES
    return not small and memory_of(text) - len(text) > MAX_VALUES_BYTES


def _ends_early(schema: Any) -> Any:
    """Return a schema that reads no list on after a mistake, and no endless number."""
    if isinstance(schema, dict):
        changed = {key: _ends_early(value) for key, value in schema.items()}
        if schema.get("type") in ("list", "tuple"):
            changed["fail_fast"] = True
        if schema.get("type") == "float":
            changed["allow_inf_nan"] = False
        return changed
    if isinstance(schema, list):
        return [_ends_early(one) for one in schema]
    return schema
