"""
Which C file includes which, by modules: a source and its header are one.

A name between quotes is looked up beside the file that includes it, then at the top of
its tree, as the Makefiles have it (`-I.`). Headers of the system do not count.
"""

import re
from collections.abc import Mapping, Set
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from structure.sizes import c_of

COMMANDS = frozenset(
    {"measure", "load", "watch", "cycles", "tasks", "settings", "start", "demo"}
)
"""Folders of the agent that have one command, or a family of them, for themselves."""

_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)

Includes = Mapping[str, Set[str]]
"""Modules that a module includes; each is its path without the suffix."""


def includes(root: Path, *trees: str) -> Includes:
    """Return what the C files of some trees include."""
    found: dict[str, set[str]] = {}
    for path in c_of(root, *trees):
        top = root / path.relative_to(root).parts[0]
        module = _module(root, path)
        of_module = found.setdefault(module, set())
        for name in _INCLUDE.findall(path.read_text("utf-8")):
            beside = path.parent / name
            header = beside if beside.is_file() else top / name
            if header.is_file():
                of_module |= {_module(root, header)} - {module}
    return found


@cache
def _module(root: Path, path: Path) -> str:
    return path.resolve().relative_to(root).with_suffix("").as_posix()


def circle(graph: Includes) -> list[str]:
    """Return one circle of modules that include each other; empty without any."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def foreign_commands(graph: Includes) -> set[tuple[str, str]]:
    """Return includes from a folder of the agent into the folder of another command."""
    return {
        (module, header)
        for module, headers in graph.items()
        for header in headers
        if (into := _folder(header)) in COMMANDS
        and _folder(module) not in (None, "tests", into)
    }


def _folder(module: str) -> str | None:
    """Return the folder below agent/ in which a module lies; None: at its top."""
    tree, *folders, _ = module.split("/")
    return folders[0] if tree == "agent" and folders else None
