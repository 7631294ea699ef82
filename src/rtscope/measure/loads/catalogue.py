"""
The loads by name: the rows of `loads.toml`, and each stressor of stress-ng by its own.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from rtscope.host.errors import UsageError, no_such


class Need(StrEnum):
    """A requirement of a load on the machine, besides stress-ng."""

    MEMORY = "memory"
    STORAGE = "storage"
    MEMORY_LIMIT = "memory_limit"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class SignsOfLife:
    """
    What shows that a worker works: in each window any one of these is enough.

    `loads.toml` explains each field.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    cpu_percent: float
    preempted: bool
    switches_per_s: float | None = None
    disk_wait: bool = False
    short_lived: bool = False


@dataclass(frozen=True, slots=True)
class Load:
    """A row of the catalogue; `loads.toml` explains each field."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: str
    title: str
    why: str
    argv: tuple[str, ...]
    needs: frozenset[Need]
    expects_progress: bool
    alive: SignsOfLife
    default_bytes: int = 0
    default_entries: int = 0
    is_safe: bool = True
    """Whether a machine survives it; False: for virtual boards only."""
    why_unsafe: str = ""
    """What it does to a machine, if that is known."""

    @property
    def uses_stress_ng(self) -> bool:
        """Whether the load runs stress-ng on the target."""
        return bool(self.argv)


STRESSOR = "stress-ng:"
"""Before the name of a stressor, which then is a load."""

STRESSOR_NAME = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$"
"""As stress-ng writes the names of stressors."""

_ANY_SIGN = SignsOfLife(
    cpu_percent=1,
    preempted=True,
    switches_per_s=10,
    disk_wait=True,
    short_lived=True,
)
"""Stressors differ: computing, waiting, or making children that do the work."""


def load_names() -> tuple[str, ...]:
    """Return the name of every load, in the order of the file."""
    return tuple(_catalogue())


def get_load(name: str) -> Load:
    """
    Return a load, or a stressor of stress-ng (`stress-ng:fork`).

    UsageError names the nearest load if there is none of this name. Whether stress-ng
    has the stressor is known only where it runs.
    """
    if name.startswith(STRESSOR):
        return _stressor(name)
    load = _catalogue().get(name)
    if load is None:
        raise UsageError(no_such("load", name, load_names()))
    return load


def _stressor(name: str) -> Load:
    stressor = name.removeprefix(STRESSOR)
    if not re.fullmatch(STRESSOR_NAME, stressor):
        raise UsageError(
            f"no load {name!r}: a stressor is named as stress-ng names it, such as "
            f"{STRESSOR}fork"
        )
    return Load(
        name=name,
        title=stressor,
        why=f"The stressor {stressor} of stress-ng, with its default options.",
        argv=(f"--{stressor}", "{workers}", "--oomable"),
        needs=frozenset(),
        expects_progress=False,
        alive=_ANY_SIGN,
        is_safe=stressor in safe_stressors(),
        why_unsafe=unsafe_stressors().get(stressor, ""),
    )


@cache
def safe_stressors() -> frozenset[str]:
    """Return the stressors that `stressors.toml` allows on a machine."""
    return frozenset(_rows("stressors.toml")["safe"])


@cache
def unsafe_stressors() -> Mapping[str, str]:
    """Return stressors that only look safe, with what they do to a machine."""
    reasons: Mapping[str, str] = _rows("stressors.toml")["left_out"]
    return reasons


@cache
def _catalogue() -> Mapping[str, Load]:
    load = TypeAdapter(Load)
    rows = _rows("loads.toml").items()
    return {name: load.validate_python({"name": name, **row}) for name, row in rows}


def _rows(file: str) -> dict[str, Any]:
    text = resources.files("rtscope.measure.loads").joinpath(file).read_text("utf-8")
    return tomllib.loads(text)
