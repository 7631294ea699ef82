"""
Records of schema 1 in the names of schema 2.

Only names and places differ between the two: every value is taken over as it is. The
`result_digest` is computed over names of its own, so it stays the same.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic_core import from_json

from rtscope.contract.upgrade import (
    Names,
    names_of,
    old_names,
    read_tables,
    rename_values,
    renamed,
)

_LIFTED = ("virtual", "untraced", "tuned")
"""Keys of `extra`, which schema 2 has at the top."""


@cache
def renamed_tables() -> Mapping[str, Any]:
    """Return the tables of `renamed.toml`, which explains them."""
    return read_tables("rtscope.record")


@cache
def _names() -> Names:
    """Return the names in a record, those of the agent's lines in it included."""
    tables, lines = renamed_tables(), old_names().lines
    names = names_of(tables["record"])
    for place, line in tables["lines"].items():
        inside = lines[line].items()
        names |= {(*place.split("."), *inner): new for inner, new in inside}
    return names | {("untraced_runs",): lines["result"]["threads",]}


def document_of(text: bytes) -> dict[str, Any] | None:
    """Return the record of any schema as it is written; None for what is none."""
    try:
        found = from_json(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def upgraded_record(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of schema 1 as one of schema 2; what is damaged stays so."""
    top = {key: value for key, value in document.items() if key != "extra"}
    if isinstance(extra := document.get("extra"), Mapping):
        top |= {key: extra[key] for key in _LIFTED if key in extra}
    new: dict[str, Any] = renamed(top, _names())
    rename_values(new, ("load", "end", "type"), old_names().types)
    rename_values(new, ("caveats", "id"), renamed_tables()["caveats"])
    return new | {"schema": 2}
