"""The rows of `loads.toml`, typed."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources

from pydantic import ConfigDict, TypeAdapter

from rtscope.errors import UsageError, no_such


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

    @property
    def uses_stress_ng(self) -> bool:
        """Whether the load runs stress-ng on the target."""
        return bool(self.argv)


def load_names() -> tuple[str, ...]:
    """Return the name of every load, in the order of the file."""
    return tuple(_catalogue())


def get_load(name: str) -> Load:
    """Return a load; UsageError names the nearest one if there is none of this name."""
    load = _catalogue().get(name)
    if load is None:
        raise UsageError(no_such("load", name, load_names()))
    return load


@cache
def _catalogue() -> Mapping[str, Load]:
    text = resources.files("rtscope.loads").joinpath("loads.toml").read_text("utf-8")
    load = TypeAdapter(Load)
    rows = tomllib.loads(text).items()
    return {name: load.validate_python({"name": name, **row}) for name, row in rows}
