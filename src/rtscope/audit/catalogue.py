"""The checks that there are: one TOML file for each group in `checks/`."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from rtscope.audit import (
    cpuchecks,
    interruptchecks,
    kernelchecks,
    machinechecks,
    threadchecks,
    unitchecks,
)
from rtscope.audit.context import CheckFunction
from rtscope.audit.model import CheckKind, Profile, Setting, Severity

FUNCTIONS: Mapping[str, CheckFunction] = {
    function.__name__: function
    for module in (
        *(cpuchecks, interruptchecks, kernelchecks, machinechecks),
        *(threadchecks, unitchecks),
    )
    for function in module.FUNCTIONS
}
"""Every check function by the name that the rows of `checks/*.toml` use."""

_VERSION = re.compile(r"(\d+)\.(\d+)")

_OWN_KEYS = frozenset(
    (
        *("title", "severity", "severity_for", "expected", "rationale", "source"),
        *("function", "remedy", "permanent_remedy", "risk", "profiles", "archs"),
        *("since", "until"),
        *("paths", "verifies", "observed_by", "apply", "safe"),
    )
)

CONFIG_FUNCTIONS = frozenset({"config", "preempt_rt", "preemption_model", "rt_groups"})


@cache
def catalogue() -> Mapping[str, CheckKind]:
    """Return every check by its id, in the order of the files and their rows."""
    kinds: dict[str, CheckKind] = {}
    folder = resources.files("rtscope.audit").joinpath("checks")
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
    """Make a check of a row; ValueError or KeyError for a row that is wrong."""
    function = row.get("function", "config")
    if function not in FUNCTIONS:
        raise ValueError(f"{name}: there is no check function {function!r}")
    args = {key: value for key, value in row.items() if key not in _OWN_KEYS}
    return CheckKind(
        id=name,
        group=group,
        title=row["title"],
        severity=Severity[row["severity"].upper()],
        severity_for={
            Profile(profile): Severity[word.upper()]
            for profile, word in row.get("severity_for", {}).items()
        },
        expected=row["expected"],
        rationale=row["rationale"],
        source=row["source"],
        function=function,
        remedy=row["remedy"],
        permanent_remedy=row.get("permanent_remedy", ""),
        risk=row.get("risk", ""),
        profiles=frozenset(map(Profile, row.get("profiles", Profile))),
        archs=frozenset(row.get("archs", ())),
        since=_version(row.get("since")),
        until=_version(row.get("until")),
        paths=tuple(row.get("paths", ())),
        about_config=function in CONFIG_FUNCTIONS,
        verifies=bool(row.get("verifies", False)),
        observed_by=str(row.get("observed_by", "")),
        apply=tuple(Setting(**setting) for setting in row.get("apply", ())),
        safe=bool(row.get("safe", False)),
        args=args,
    )


def _version(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = _VERSION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no version like 6.12")
    return int(found[1]), int(found[2])
