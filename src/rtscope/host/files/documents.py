"""
Read TOML and JSON that others may have written: any mistake is an error of rtscope.

A document may be nested without end, have numbers of a million digits, or halves of
characters.
"""

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import from_json

from rtscope.host.errors import RecordError, RtscopeError, UsageError

MAX_DEPTH = 64
"""Of TOML: more than any table of ours has; JSON is limited to 200 by its reader."""


def toml_tables(
    content: bytes | str, *, name: str, error: type[RtscopeError] = UsageError
) -> dict[str, Any]:
    """Return the tables of a TOML document; `error` names document and mistake."""
    try:
        text = content.decode() if isinstance(content, bytes) else content
        tables = tomllib.loads(text)
    except RecursionError as cause:
        raise error(f"{name}: not valid TOML: nested too deep") from cause
    except ValueError as cause:
        raise error(f"{name}: not valid TOML: {str(cause)[:200]}") from cause
    if _is_deeper(tables, MAX_DEPTH):  # a.a.a.a = 1 is read without recursion
        raise error(f"{name}: nested deeper than {MAX_DEPTH} tables and lists")
    return tables


def json_value(
    content: bytes | str, *, name: str, error: type[RtscopeError] = RecordError
) -> Any:
    """Return the value of a JSON document; `error` names document and mistake."""
    try:
        # json.loads lets halves of a character through, and fails by RecursionError.
        return from_json(content, allow_inf_nan=False)
    except ValueError as cause:
        raise error(f"{name}: damaged: {str(cause)[:200]}") from cause


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
