"""
The figures of every command: `figures.toml` has one entry for each.

Every table of a report, comparison, check, search or sweep, in every format, takes its
figures from here: their order, headings, direction, values and the text of each.

The instructions of an operation are those of every CPU that was not idle, with what the
measuring threads executed, by the operations that stress-ng counted.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import resources
from typing import Any, Literal, Protocol

from rtscope.host.units import NS_PER_S, count, format_us
from rtscope.machine.facts import memory_available_bytes
from rtscope.record.model import RunRecord
from rtscope.stats.summary import Summary, summarize, total_of

# What one run cost besides latency: image, memory, wake-ups of an idle machine, work.

IDLE = "idle"


def kernel_bytes(record: RunRecord) -> int | None:
    """Return the size of the kernel's image; None for a run of a machine."""
    return record.virtual.kernel_bytes if record.virtual else None


def memory_available_kb(record: RunRecord) -> float | None:
    """Return MemAvailable of /proc/meminfo when measuring began."""
    size_bytes = memory_available_bytes(record.facts_before)
    return None if size_bytes is None else size_bytes / 1024


def wakeups_per_s(record: RunRecord) -> float | None:
    """
    Return the interrupts per second of all CPUs that woke no measuring thread.

    None without counters, and if one interrupt woke more than one of those threads.
    """
    machine = record.result.machine
    if machine is None:
        return None
    interrupts = sum(sum(delta.per_cpu.values()) for delta in machine.interrupts)
    own = total_of(thread.samples for thread in record.result.threads)
    if own is None or interrupts < own:
        return None
    return (interrupts - own) / _measured_s(record)


def operations_per_s(record: RunRecord) -> float | None:
    """Return what stress-ng counted, of all stressors; None if it counted nothing."""
    return sum(record.load.throughput.values()) or None


def instructions_per_operation(record: RunRecord) -> float | None:
    """
    Return the instructions of an operation of the load on a virtual board.

    They are those of every CPU that was not idle.
    """
    board, machine = record.virtual, record.result.machine
    rate = operations_per_s(record)
    if board is None or machine is None or not rate:
        return None
    idle_s = sum(one.idle_ns for one in machine.cpu_times) / NS_PER_S
    busy = max(0.0, board.cpus - idle_s / _measured_s(record))
    return busy * board.mips * 1e6 / rate


def _measured_s(record: RunRecord) -> float:
    return (record.result.end_ns - record.result.start_ns) / NS_PER_S


_COSTS: Mapping[str, Callable[[RunRecord], float | None]] = {
    function.__name__: function
    for function in (
        *(kernel_bytes, memory_available_kb, wakeups_per_s),
        *(operations_per_s, instructions_per_operation),
    )
}

# --- the figures of every command: `figures.toml` has one entry for each --------------

Table = Literal[
    "main",
    "brief",
    "cpu",
    "pair",
    "sets",
    "sets_page",
    "published",
    "traced",
    "bisect",
    "sweep",
    "cycles",
    "cycles_page",
    "cycles_marks",
    "export",
    "history",
]
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
    unit: Literal["ns", "count", "rate"] = "ns"
    attribute: str = ""
    of_row: bool = False
    percentile: float | None = None
    record: str = ""
    tables: Mapping[Table, int] = field(default_factory=dict)
    names: Mapping[Table, str] = field(default_factory=dict)
    label: str = "µs"
    help: str = ""
    strong: bool = False
    alarm: bool = False
    zero: bool = False
    compared: bool = False
    more_is_better: bool = False
    floor: float = 1
    idle: bool | None = None
    of_machines: bool = True

    @property
    def is_time(self) -> bool:
        """Whether it is a latency: its values are ns."""
        return self.unit == "ns"

    def name_in(self, table: Table) -> str:
        """Return what a table calls it."""
        return self.names.get(table, self.heading)

    def of(self, row: HasSummary) -> float | None:
        """Return the figure of a row, ns if it is a time; None if it has none."""
        if self.of_row:
            value: float | None = getattr(row, self.attribute)
            return value
        return None if row.summary is None else self.of_summary(row.summary)

    def of_summary(self, summary: Summary) -> float | None:
        """Return the figure of samples, ns if it is a time; None if they have none."""
        if self.percentile is not None:
            return summary.ranks.percentile_ns(self.percentile)
        value: float | None = (
            getattr(summary, self.attribute) if self.attribute else None
        )
        return value

    def of_record(self, record: RunRecord) -> float | None:
        """
        Return the figure of a run, ns if it is a time; None if it has none.

        Raises MeasurementError for a latency of a run without samples.
        """
        if self.record:
            return _COSTS[self.record](record)
        return self.of_summary(summarize(record.result.threads))

    def text(self, row: HasSummary, *, zero: bool = False) -> str:
        """Write it for people; `zero`: in a table with 0 where nothing was measured."""
        return "0" if zero and self._is_zero(row) else self.show(self.of(row))

    def show(self, value: float | None) -> str:
        """Write a value for people, without its unit; an en dash for None."""
        return format_us(value) if self.is_time or value is None else count(value)

    def csv(self, row: HasSummary) -> str:
        """Write it for a spreadsheet; empty if there is none."""
        value = self.of(row)
        if value is None:
            return "0" if self._is_zero(row) else ""
        if self.is_time:
            return f"{value / 1000:.3f}"
        return f"{value:.2f}" if self.unit == "rate" else str(value)

    def _is_zero(self, row: HasSummary) -> bool:
        return self.zero and row.summary is None

    @property
    def csv_heading(self) -> str:
        """Its heading in a spreadsheet, with the unit."""
        return f"{self.heading}_us" if self.is_time else self.attribute

    def is_bad(self, row: HasSummary) -> bool:
        """Whether the figure alone is bad news."""
        return self.alarm and bool(self.of(row))

    def ratio(self, first: HasSummary, second: HasSummary) -> float | None:
        """Return the second side's over the first's; None if one of them has none."""
        values = self.of(first), self.of(second)
        if values[0] is None or values[1] is None:
            return None
        return max(values[1], self.floor) / max(values[0], self.floor)


@cache
def figures() -> tuple[Figure, ...]:
    """Return all figures; in JSON they are in this order."""
    names = {one.name for one in fields(Figure)}
    return tuple(
        Figure(**{"key": key, "heading": _heading(key, row)} | given)
        for key, row in _rows()
        if (given := {name: row[name] for name in row.keys() & names})
    )


def _heading(key: str, row: Mapping[str, Any]) -> str:
    return f"p{row['percentile']:g}" if "percentile" in row else key


def figure(key: str) -> Figure:
    """Return one figure."""
    return next(one for one in figures() if one.key == key)


def percentiles() -> tuple[tuple[Figure, float], ...]:
    """Return all percentiles with their ranks, ascending."""
    return tuple((f, f.percentile) for f in figures() if f.percentile is not None)


def columns(table: Table, *, wide: bool = True) -> tuple[Figure, ...]:
    """Return the figures of a table in their order."""
    figures_of_table = [one for one in figures() if table in one.tables]
    figures_of_table.sort(key=lambda one: one.tables[table])
    return tuple(one for one in figures_of_table if wide or one.tables[table] < WIDE)


def named(table: Table) -> Mapping[str, Figure]:
    """Return the figures of a table by the names that it has for them."""
    return {one.name_in(table): one for one in columns(table)}


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
    return resources.files("rtscope.stats").joinpath("figures.toml").read_text("utf-8")
