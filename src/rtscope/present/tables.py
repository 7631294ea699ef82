"""
The columns of all tables: `figures.toml` has one entry for each.

Every table of a report or comparison, in every format, takes its columns, their order,
their headings and the text of each cell from here.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import resources
from typing import Any, Literal, Protocol

from rtscope.host.units import format_us, plural
from rtscope.present.model.published_comparison import MeasuredSide, PublishedSide
from rtscope.present.model.rows import Row
from rtscope.present.words import NOTHING, as_published, count
from rtscope.record.published import KernelKind
from rtscope.stats.summary import Summary

Table = Literal["main", "brief", "cpu", "pair", "sets", "sets_page", "published"]
WIDE = 100
"""Columns from this place on are for wide terminals, or for a second table."""


class HasSummary(Protocol):
    """What has figures: a row of a table, or one CPU of it."""

    @property
    def summary(self) -> Summary | None:
        """None if nothing was measured."""


@dataclass(frozen=True, slots=True)
class Definition:
    """What a number of a report means, and where it misleads."""

    key: str
    name: str
    weakness: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a run; `figures.toml` says what its fields mean."""

    key: str
    heading: str
    unit: Literal["ns", "count", "rate"]
    attribute: str = ""
    of_row: bool = False
    percentile: float | None = None
    tables: Mapping[Table, int] = field(default_factory=dict)
    strong: bool = False
    alarm: bool = False
    zero: bool = False
    compared: bool = False

    def of(self, row: HasSummary) -> float | None:
        """Return the figure of a row, ns if it is a time; None if it has none."""
        measured = row if self.of_row else row.summary
        if measured is None:
            return None
        if self.percentile is not None and row.summary is not None:
            return percentile_ns(row.summary, self.percentile)
        value: float | None = getattr(measured, self.attribute)
        return value

    def text(self, row: HasSummary, *, zero: bool = False) -> str:
        """Write it for people; `zero`: in a table with 0 where nothing was measured."""
        value = self.of(row)
        if value is None:
            return "0" if zero and self._is_zero(row) else NOTHING
        return format_us(value) if self.unit == "ns" else count(value)

    def csv(self, row: HasSummary) -> str:
        """Write it for a spreadsheet; empty if there is none."""
        value = self.of(row)
        if value is None:
            return "0" if self._is_zero(row) else ""
        if self.unit == "ns":
            return f"{value / 1000:.3f}"
        return f"{value:.2f}" if self.unit == "rate" else str(value)

    def _is_zero(self, row: HasSummary) -> bool:
        return self.zero and row.summary is None

    @property
    def csv_heading(self) -> str:
        """Its heading in a spreadsheet, with the unit."""
        return f"{self.heading}_us" if self.unit == "ns" else self.attribute

    def is_bad(self, row: HasSummary) -> bool:
        """Whether the figure alone is bad news."""
        return self.alarm and bool(self.of(row))

    def ratio(self, first: HasSummary, second: HasSummary) -> float | None:
        """Return the second side's over the first's; None if one of them has none."""
        values = self.of(first), self.of(second)
        if values[0] is None or values[1] is None:
            return None
        # At least 1 ns: a clock in coarse steps can give a maximum of 0.
        return max(values[1], 1) / max(values[0], 1)


@cache
def figures() -> tuple[Figure, ...]:
    """Return all figures; in JSON they are in this order."""
    names = {one.name for one in fields(Figure)}
    return tuple(
        Figure(key=key, **{name: row[name] for name in row.keys() & names})
        for key, row in _rows()
        if "unit" in row
    )


def columns(table: Table, *, wide: bool = True) -> tuple[Figure, ...]:
    """Return the figures of a table in their order."""
    figures_of_table = [one for one in figures() if table in one.tables]
    figures_of_table.sort(key=lambda one: one.tables[table])
    return tuple(one for one in figures_of_table if wide or one.tables[table] < WIDE)


def compared() -> tuple[Figure, ...]:
    """Return the figures of which two sides have a ratio."""
    return tuple(one for one in figures() if one.compared)


@cache
def definitions() -> tuple[Definition, ...]:
    """Return what is defined, in the order of the main table."""
    return tuple(
        Definition(key, row["name"], row["weakness"], row["meaning"])
        for key, row in _rows()
        if "meaning" in row
    )


def _rows() -> Iterator[tuple[str, dict[str, Any]]]:
    yield from tomllib.loads(_table()).items()


def _table() -> str:
    return (
        resources.files("rtscope.present").joinpath("figures.toml").read_text("utf-8")
    )


def percentile_ns(summary: Summary, pct: float) -> int | None:
    """Return the highest latency of the bucket that holds a percentile."""
    for percentile in summary.percentiles:
        if percentile.pct == pct:
            return percentile.at_most_ns
    return None


SEEDS_HEADINGS = ("lowest max", "median max", "highest max", "worst seed", "seeds")
SEEDS_EXPLAINED = (
    "A seed is one trajectory, not a repetition: each row of the main table merges the "
    "trajectories of its seeds, and its maximum is the highest of theirs. More seeds "
    "can only raise it."
)


def seeds_title(rows: Sequence[Row]) -> str:
    """Return the heading of the table over seeds, with their number."""
    seeds = {seed for row in rows if row.seeds for seed, _ in row.seeds.maxima_ns}
    return f"Maxima over {plural(len(seeds), 'seed')}"


def seeds_cells(row: Row) -> tuple[str, ...]:
    """Write how a row's maximum varies over seeds, in the order of the headings."""
    assert row.seeds is not None
    maxima = (row.seeds.lowest_ns, row.seeds.median_ns, row.seeds.highest_ns)
    last = str(row.seeds.worst_seed), str(len(row.seeds.maxima_ns))
    return (*map(format_us, maxima), *last)


Cells = list[tuple[Figure, str]]


def published_cells(side: PublishedSide) -> Cells:
    """Write the published figures of a load, those of each kernel kind in turn."""
    return [
        (one, as_published(getattr(side.figures.get(kind), f"{one.key}_ns", None)))
        for kind in KernelKind
        for one in columns("published")
    ]


def measured_cells(side: MeasuredSide) -> Cells:
    """Write the measured latencies of a load, in the same columns."""
    rows = [side.rows.get(kind) for kind in KernelKind]
    return [
        (one, one.text(row) if row else NOTHING)
        for row in rows
        for one in columns("published")
    ]
