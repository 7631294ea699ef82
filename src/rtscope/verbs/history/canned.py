"""
Queries with names, and the texts of tables and columns: `queries.toml` has them.

Datasette shows the index with both: its metadata is made here.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from pydantic import TypeAdapter

from rtscope.verbs.history.entries import indexed_figures


@dataclass(frozen=True, slots=True)
class About:
    """What the whole index is."""

    title: str
    description: str


@dataclass(frozen=True, slots=True)
class TableText:
    """What a table of the index has."""

    description: str
    columns: Mapping[str, str]
    """What each column is."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query with a name."""

    title: str
    description: str
    sql: str


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All of `queries.toml`."""

    about: About
    tables: Mapping[str, TableText]
    queries: Mapping[str, Query]


@cache
def catalogue() -> Catalogue:
    """Return tables and queries, in the order of the file."""
    file = resources.files("rtscope.verbs.history").joinpath("queries.toml")
    document = tomllib.loads(file.read_text("utf-8"))
    document["tables"]["run"]["columns"] |= {
        name: f"Latency that {figure.percentile:g} % of wake-ups do not exceed."
        for name, figure in indexed_figures().items()
        if figure.percentile is not None
    }
    return TypeAdapter(Catalogue).validate_python(document)


def query_names() -> tuple[str, ...]:
    """Return the names of queries, which completions offer."""
    return tuple(catalogue().queries)


def datasette_metadata(database: str) -> Mapping[str, Any]:
    """Return Datasette's metadata for an index that it calls `database`."""
    found = catalogue()
    about = {"title": found.about.title, "description": found.about.description}
    tables = {
        name: {"description": one.description, "columns": dict(one.columns)}
        for name, one in found.tables.items()
    }
    queries = {
        name: {
            "title": one.title,
            "description": one.description,
            "sql": one.sql.strip(),
        }
        for name, one in found.queries.items()
    }
    return {
        **about,
        "databases": {database: {**about, "tables": tables, "queries": queries}},
    }
