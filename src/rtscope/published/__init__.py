"""
The published tables that there are: one TOML file each in `tables/`.

The files have microseconds, as published; from here on all times are ns. A missing
number is None, never 0. The notes name inconsistencies; the tests calculate each again.
"""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any

from rtscope.errors import UsageError
from rtscope.units import NS_PER_US, parse_duration

_TABLES = "tables"


class KernelKind(StrEnum):
    """The preemption model that matches a published kernel to a record."""

    RT = "rt"
    MAINLINE = "mainline"


@dataclass(frozen=True, slots=True)
class PublishedKernel:
    """A kernel that was measured."""

    release: str
    model: str


@dataclass(frozen=True, slots=True)
class Figures:
    """One kernel under one load; None if not published."""

    min_ns: int | None
    avg_ns: int | None
    stdev_ns: int | None
    max_ns: int


@dataclass(frozen=True, slots=True)
class Note:
    """An inconsistency, or something else that a reader must know."""

    id: str
    says: str


@dataclass(frozen=True, slots=True)
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
    cpus: int | None
    """None if not published."""
    tool: str
    command: str
    interval_ns: int
    duration_ns: int
    policy: str
    priority: int
    histogram_end_ns: int
    claimed_samples: int | None
    """The number in the text; None without one."""
    conditions: str
    kernels: Mapping[KernelKind, PublishedKernel]
    loads: Mapping[str, str]
    """The command of each load; empty for none."""
    rows: Mapping[tuple[str, KernelKind], Figures]
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
    folder = resources.files("rtscope.published").joinpath(_TABLES)
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
    file = resources.files("rtscope.published").joinpath(_TABLES, f"{name}.toml")
    # Decimal: 16.3 us are 16,300 ns, and not a hair less.
    return _table(name, tomllib.loads(file.read_text("utf-8"), parse_float=Decimal))


def _table(name: str, row: Mapping[str, Any]) -> Published:
    return Published(
        name=name,
        **{
            key: row[key]
            for key in (
                *("title", "author", "date", "version", "place", "licence"),
                *("machine", "tool", "command", "policy", "priority"),
                *("conditions", "loads"),
            )
        },
        cpus=row.get("cpus"),
        interval_ns=parse_duration(row["interval"]),
        duration_ns=parse_duration(row["duration"]),
        histogram_end_ns=parse_duration(row["histogram_end"]),
        claimed_samples=row.get("claimed_samples"),
        kernels={
            KernelKind(k): PublishedKernel(**v) for k, v in row["kernels"].items()
        },
        rows={(r["load"], KernelKind(r["kernel"])): _figures(r) for r in row["rows"]},
        notes=tuple(Note(**note) for note in row["notes"]),
    )


def _figures(row: Mapping[str, Any]) -> Figures:
    highest = _ns(row["max_us"])
    assert highest is not None
    return Figures(
        min_ns=_ns(row.get("min_us")),
        avg_ns=_ns(row.get("avg_us")),
        stdev_ns=_ns(row.get("stdev_us")),
        max_ns=highest,
    )


def _ns(us: int | Decimal | None) -> int | None:
    return None if us is None else int(us * NS_PER_US)
