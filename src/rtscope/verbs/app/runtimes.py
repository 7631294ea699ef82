"""Runtimes of languages that take memory without a call that could be seen."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True)
class Runtime:
    """A row of `runtimes.toml`."""

    name: str
    functions: tuple[str, ...]
    files: tuple[str, ...]
    advice: str
    unless: str
    """A variable of the environment with which it calls the C library; empty: none."""


@cache
def runtimes() -> tuple[Runtime, ...]:
    """Return those that are known."""
    text = (
        resources.files("rtscope.verbs.app")
        .joinpath("runtimes.toml")
        .read_text("utf-8")
    )
    return tuple(
        Runtime(
            name,
            tuple(row["functions"]),
            tuple(row.get("files", ())),
            row["do"],
            row.get("unless", ""),
        )
        for name, row in tomllib.loads(text).items()
    )


def marks() -> tuple[str, ...]:
    """Return the functions by which a file is known for one of them."""
    return tuple(name for one in runtimes() for name in one.functions)


def runtimes_in(
    files: Mapping[str, Iterable[str]], environ: str
) -> tuple[Runtime, ...]:
    """
    Return those of a process whose allocations are not seen.

    `files`: by their paths, the functions of `marks` that each has.
    """
    found = {name for some in files.values() for name in some}
    names = [PurePosixPath(path.removesuffix(" (deleted)")).name for path in files]
    settings = environ.split("\0")
    return tuple(
        one
        for one in runtimes()
        if (found.intersection(one.functions) or _is_named(names, one.files))
        and not (one.unless and one.unless in settings)
    )


def _is_named(names: Iterable[str], patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, one) for one in patterns for name in names)
