"""
What a search can go by: a figure of one run, its unit, and where a run has it. Pure.

What a kernel costs besides latency is reckoned as in the columns of a sweep.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from rtscope.host.errors import UsageError, no_such
from rtscope.host.units import format_number, format_us
from rtscope.record.model import RunRecord
from rtscope.stats.costs import (
    IDLE,
    instructions_per_operation,
    kernel_bytes,
    memory_available_kb,
    operations_per_s,
    wakeups_per_s,
)
from rtscope.stats.summary import DEFAULT_PERCENTILES, Summary, summarize

OPERATIONS = "operations/s"
IMAGE = "image"
MEMORY = "memory"
WAKEUPS = "wake-ups/s"
INSTRUCTIONS = "instructions"


@dataclass(frozen=True, slots=True)
class Figure:
    """One of the things that a kernel can be worse in."""

    of: Callable[[RunRecord], float | None]
    """Its value of a run, in the unit; latencies in ns. None: the run has none."""
    unit: str
    show: Callable[[float], str]
    """Writes a value without its unit."""
    floor: float = 0
    """Values below are taken for this one where logarithms are compared."""
    more_is_better: bool = False
    is_time: bool = False
    """Whether a margin can be a time."""
    idle: bool | None = None
    """True: only the load idle has it; False: only loads of stress-ng have it."""
    of_machines: bool = True
    """Whether records of a machine have it, or those of virtual boards alone."""


def _latency(of: Callable[[Summary], float | None]) -> Figure:
    # At least 1 ns: a clock in coarse steps can give a latency of 0.
    return Figure(
        lambda record: of(summarize(record.result.threads)),
        unit="µs",
        show=format_us,
        floor=1,
        is_time=True,
    )


def _percentile(summary: Summary, pct: float) -> float | None:
    found = next(p for p in summary.percentiles if p.pct == pct)
    return None if found.at_most_ns is None else float(found.at_most_ns)


def _whole(value: float) -> str:
    return f"{value:,.0f}"


FIGURES: Mapping[str, Figure] = {
    "max": _latency(lambda summary: float(summary.max_ns)),
    "average": _latency(lambda summary: summary.mean_ns),
    "min": _latency(lambda summary: float(summary.min_ns)),
    **{
        f"p{pct:g}": _latency(partial(_percentile, pct=pct))
        for pct in DEFAULT_PERCENTILES
    },
    OPERATIONS: Figure(
        operations_per_s, OPERATIONS, format_number, more_is_better=True, idle=False
    ),
    INSTRUCTIONS: Figure(
        instructions_per_operation,
        "instructions per operation",
        _whole,
        idle=False,
        of_machines=False,
    ),
    IMAGE: Figure(kernel_bytes, "bytes", _whole, of_machines=False),
    MEMORY: Figure(memory_available_kb, "kB", _whole, more_is_better=True, idle=True),
    WAKEUPS: Figure(wakeups_per_s, WAKEUPS, format_number, floor=1, idle=True),
}
"""Latencies of the wake-ups, what the load got done, and what the kernel costs."""


def check_figure(name: str) -> str:
    """Return the name of a figure; UsageError lists them all."""
    if name not in FIGURES:
        raise UsageError(f"--figure: {no_such('figure', name, FIGURES)}")
    return name


def check_figure_of_machines(name: str) -> str:
    """Return the name of a figure that a machine's records have, or UsageError."""
    if not FIGURES[check_figure(name)].of_machines:
        raise UsageError(
            f"--figure {name}: only records of virtual boards have it; choose another "
            "one, or leave --measured out"
        )
    return name


def check_load(name: str, load: str) -> None:
    """Raise UsageError for a load whose runs do not have the figure."""
    idle = FIGURES[name].idle
    if idle is True and load != IDLE:
        raise UsageError(
            f"--figure {name}: is of a machine without a load, and {load} is one: use "
            "--load idle"
        )
    if idle is False and load == IDLE:
        raise UsageError(
            f"--figure {name}: the load idle does nothing: name a load of stress-ng, "
            "e.g. --load switch"
        )


def value_of(record: RunRecord, name: str) -> float | None:
    """Return a figure of one run; None if the run does not have it."""
    return FIGURES[name].of(record)


def format_value(value: float, name: str) -> str:
    """Write a figure with its unit."""
    return f"{format_without_unit(value, name)} {FIGURES[name].unit}"


def format_without_unit(value: float, name: str) -> str:
    """Write a figure for a table whose heading has the unit."""
    return FIGURES[name].show(value)


def unit_of_values(name: str) -> str:
    """Return the unit of the values themselves, in a JSON document."""
    figure = FIGURES[name]
    return "ns" if figure.is_time else figure.unit


def heading(name: str, load: str, *, virtual: bool = False) -> str:
    """Return the heading of a table of values, with their unit."""
    figure = FIGURES[name]
    words = [f"{name} under {load}"]
    if virtual and (figure.is_time or figure.unit.endswith("/s")):
        words.append("virtual time")
    if figure.unit != name:
        words.append(figure.unit)
    return ", ".join(words)
