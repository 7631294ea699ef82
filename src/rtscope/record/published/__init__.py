"""
The published tables that there are: one TOML file each in `tables/`.

The files have microseconds, as published; from here on all times are ns. A missing
number is None, never 0. The notes name inconsistencies; the tests calculate each again.

    tables/  the tables, by name
"""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Annotated

from pydantic import BeforeValidator, Field, TypeAdapter

from rtscope.host.errors import UsageError
from rtscope.host.units import NS_PER_US, parse_duration

_TABLES = "tables"

Duration = Annotated[int, BeforeValidator(parse_duration)]
"""ns, of a text such as `10min`."""

Microseconds = Annotated[int, BeforeValidator(lambda us: int(us * NS_PER_US))]
"""ns, of microseconds."""


class KernelKind(StrEnum):
    """The preemption model that matches a published kernel to a record."""

    RT = "rt"
    MAINLINE = "mainline"


@dataclass(frozen=True, slots=True)
class PublishedKernel:
    """A kernel that was measured."""

    release: str
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One kernel under one load; None if not published."""

    min_ns: Annotated[Microseconds | None, Field(alias="min_us")] = None
    avg_ns: Annotated[Microseconds | None, Field(alias="avg_us")] = None
    stdev_ns: Annotated[Microseconds | None, Field(alias="stdev_us")] = None
    max_ns: Annotated[Microseconds, Field(alias="max_us")]


@dataclass(frozen=True, slots=True)
class Note:
    """An inconsistency, or something else that a reader must know."""

    id: str
    says: str


def _by_load_and_kernel(rows: list[dict[str, object]]) -> dict[object, object]:
    return {(row["load"], row["kernel"]): row for row in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A table, with everything that its source reports about its making."""

    name: str
    title: str
    author: str
    """Empty if not recorded."""
    date: str
    version: str
    place: str
    licence: str
    machine: str
    cpus: int | None = None
    """None if not published."""
    tool: str
    command: str
    interval_ns: Annotated[Duration, Field(alias="interval")]
    duration_ns: Annotated[Duration, Field(alias="duration")]
    policy: str
    priority: int
    histogram_end_ns: Annotated[Duration, Field(alias="histogram_end")]
    claimed_samples: int | None = None
    """The number in the text; None without one."""
    conditions: str
    kernels: Mapping[KernelKind, PublishedKernel]
    loads: Mapping[str, str]
    """The command of each load; empty for none."""
    rows: Annotated[
        Mapping[tuple[str, KernelKind], Figures], BeforeValidator(_by_load_and_kernel)
    ]
    notes: tuple[Note, ...]

    @property
    def samples_per_cpu(self) -> int:
        """Wake-ups of each CPU, without missed periods."""
        return self.duration_ns // self.interval_ns

    @property
    def source(self) -> str:
        """Author, title, version, date and place."""
        version = f" {self.version}" if self.version else ""
        author = f"{self.author}, " if self.author else ""
        return f"{author}“{self.title}”{version} ({self.date}), {self.place}"


def published_names() -> tuple[str, ...]:
    """Return the name of every table, in alphabetical order."""
    folder = resources.files("rtscope.record.published").joinpath(_TABLES)
    return tuple(
        sorted(
            entry.name.removesuffix(".toml")
            for entry in folder.iterdir()
            if entry.name.endswith(".toml")
        )
    )


@cache
def get_published(name: str) -> Published:
    """Return a table; UsageError if its name is unknown."""
    if name not in published_names():
        near = difflib.get_close_matches(name[:64], published_names(), n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(
            f"no such published table: {name[:64]!r}{hint} "
            f"(tables: {', '.join(published_names())})"
        )
    file = resources.files("rtscope.record.published").joinpath(_TABLES, f"{name}.toml")
    # Decimal: 16.3 us are 16,300 ns, and not a hair less.
    table = tomllib.loads(file.read_text("utf-8"), parse_float=Decimal)
    return TypeAdapter(Published).validate_python({"name": name, **table})
