"""
Lines of contract 1 in the names of contract 2.

Only names differ between the two, so every line that an agent of version 1 wrote, and
every record of schema 1, loads for ever.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

Names = Mapping[tuple[str, ...], Mapping[str, str]]
"""The place of an object, in new keys; and new names for its old keys."""

ANY = "*"
"""As the last key of a place: whatever that key is."""


@dataclass(frozen=True, slots=True)
class OldNames:
    """The contents of `renamed.toml`."""

    types: Mapping[str, str]
    lines: Mapping[str, Names]
    """By the type of a line."""


@cache
def old_names() -> OldNames:
    """Return the names of contract 1, with those of today."""
    tables = read_tables("rtscope.contract")
    lines = {line: names_of(places) for line, places in tables["lines"].items()}
    return OldNames(tables["types"], lines)


def read_tables(package: str) -> Mapping[str, Any]:
    """Return the tables of a package's `renamed.toml`."""
    file = resources.files(package).joinpath("renamed.toml")
    return tomllib.loads(file.read_text("utf-8"))


def names_of(
    places: Mapping[str, Mapping[str, str]],
) -> dict[tuple[str, ...], Mapping[str, str]]:
    """Return new names by place, from a table whose keys are places with dots."""
    return {tuple(filter(None, key.split("."))): new for key, new in places.items()}


def upgraded_line(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line of either contract in the names of contract 2."""
    kind = line.get("type")
    if not isinstance(kind, str):
        return dict(line)
    kind = old_names().types.get(kind, kind)
    return {**renamed(line, old_names().lines.get(kind, {})), "type": kind}


def renamed(value: Any, names: Names, place: tuple[str, ...] = ()) -> Any:
    """Return a document with other names for some keys of its objects."""
    if isinstance(value, list):
        return [renamed(item, names, place) for item in value]
    if not isinstance(value, Mapping):
        return value
    here = names.get(place) or names.get((*place[:-1], ANY), {})
    today = {here.get(key, key): item for key, item in value.items()}
    return {key: renamed(item, names, (*place, key)) for key, item in today.items()}


def rename_values(
    document: Any, place: Sequence[str], names: Mapping[str, str]
) -> None:
    """Change the texts at a place that have a new name; a list is all its items."""
    if isinstance(document, list):
        for item in document:
            rename_values(item, place, names)
    elif isinstance(document, dict) and place[0] in document:
        inner = document[place[0]]
        if place[1:]:
            rename_values(inner, place[1:], names)
        elif isinstance(inner, str):
            document[place[0]] = names.get(inner, inner)
