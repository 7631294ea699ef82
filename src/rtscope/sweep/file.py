"""
A sweep file: a base campaign, and axes whose levels change it.

`[base]` has the tables of a campaign file. Each `[[axis]]` has a name and levels; a
level has a name and, of the same tables, the keys that it changes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from rtscope.campaign.file import read_toml
from rtscope.errors import UsageError
from rtscope.files import first_mistake

MAX_LEVELS = 1000

Name = Annotated[str, Field(pattern=r"^[\w][\w .,:=+/@()-]*$", max_length=80)]
Table = dict[str, Any]

Design = Literal["one", "pairs", "full"]
"""Each level alone, each pair of levels besides, or all combinations."""

_STRICT = ConfigDict(extra="forbid")


@checked_dataclass(frozen=True, slots=True, config=_STRICT)
class Level:
    """A value of an axis: the keys of the campaign that it changes, by table."""

    name: Name
    campaign: Table = Field(default_factory=dict)
    target: Table = Field(default_factory=dict)
    kernel: Table = Field(default_factory=dict)
    run: Table = Field(default_factory=dict)
    """Changes every [[run]]."""


@checked_dataclass(frozen=True, slots=True, config=_STRICT)
class Axis:
    """A thing that is varied."""

    name: Name
    level: Annotated[tuple[Level, ...], Field(min_length=1, max_length=MAX_LEVELS)]


@checked_dataclass(frozen=True, slots=True, config=_STRICT)
class Heading:
    """The table [sweep]."""

    name: Name = "sweep"
    design: Design = "one"


@checked_dataclass(frozen=True, slots=True, config=_STRICT)
class _Document:
    base: Table
    axis: Annotated[tuple[Axis, ...], Field(min_length=1, max_length=100)]
    sweep: Heading = Field(default_factory=Heading)


@dataclass(frozen=True, slots=True)
class Sweep:
    """What is varied, around what, and in which combinations."""

    name: str
    design: Design
    base: Mapping[str, Any]
    axes: tuple[Axis, ...]
    source: str
    """Begins every message about it."""


def load_sweep(path: Path) -> Sweep:
    """Read a sweep file; UsageError names the file, the place and the mistake."""
    return sweep_of(read_toml(path, kind="sweep"), source=str(path))


def sweep_of(document: object, *, source: str) -> Sweep:
    """Read a sweep from the tables of its file; UsageError as `load_sweep`."""
    try:
        read = TypeAdapter(_Document).validate_python(document)
    except ValidationError as error:
        raise UsageError(f"{source}: {first_mistake(error)}") from error
    for axis in read.axis:
        _refuse_twice([level.name for level in axis.level], f"{source}: {axis.name}")
    _refuse_twice([axis.name for axis in read.axis], source)
    return Sweep(read.sweep.name, read.sweep.design, read.base, read.axis, source)


def _refuse_twice(names: list[str], where: str) -> None:
    for n, name in enumerate(names):
        if name in names[:n]:
            raise UsageError(f"{where}: {name!r} occurs twice; give each its own name")
