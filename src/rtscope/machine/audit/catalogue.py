"""The checks that there are: one TOML file for each group in `checks/`."""

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from importlib import resources
from inspect import get_annotations
from typing import Any

from pydantic import TypeAdapter

from rtscope.machine.audit import (
    cachechecks,
    cpuchecks,
    interruptchecks,
    kernelchecks,
    machinechecks,
    sessionchecks,
    threadchecks,
    unitchecks,
    usermanager,
)
from rtscope.machine.audit.answers import Answer
from rtscope.machine.audit.context import CheckFunction
from rtscope.machine.audit.model import CheckKind

_MODULES = (
    *(cachechecks, cpuchecks, interruptchecks),
    *(kernelchecks, machinechecks, sessionchecks, threadchecks),
    *(unitchecks, usermanager),
)

FUNCTIONS: Mapping[str, CheckFunction] = {
    name: function
    for module in _MODULES
    for name, function in vars(module).items()
    if not name.startswith("_")
    and getattr(function, "__module__", "") == module.__name__
    and get_annotations(function).get("return") is Answer
}
"""Every check function by the name that the rows of `checks/*.toml` use."""

_KIND = TypeAdapter(CheckKind)
_OWN_KEYS = {field.name for field in fields(CheckKind)}


@cache
def catalogue() -> Mapping[str, CheckKind]:
    """Return every check by its id, in the order of the files and their rows."""
    kinds: dict[str, CheckKind] = {}
    folder = resources.files("rtscope.machine.audit").joinpath("checks")
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        if not file.name.endswith(".toml"):
            continue
        group = file.name.removesuffix(".toml")
        for name, row in tomllib.loads(file.read_text("utf-8")).items():
            if name in kinds:
                raise ValueError(f"{file.name}: {name} is there already")
            kinds[name] = parse_row(name, row, group=group)
    return kinds


def parse_row(name: str, row: Mapping[str, Any], *, group: str) -> CheckKind:
    """Make a check of a row; ValueError for a row that is wrong."""
    own = {key: value for key, value in row.items() if key in _OWN_KEYS}
    args = {key: value for key, value in row.items() if key not in _OWN_KEYS}
    function = own.setdefault("function", "config")
    if function not in FUNCTIONS:
        raise ValueError(f"{name}: there is no check function {function!r}")
    return _KIND.validate_python({**own, "id": name, "group": group, "args": args})
