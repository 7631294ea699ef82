"""
What a search can go by: figures, their units, and which runs have them. Pure.
"""

from rtscope.host.errors import UsageError, no_such
from rtscope.record.model import RunRecord
from rtscope.stats.costs import IDLE
from rtscope.stats.figures import named

FIGURES = named("bisect")
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
    figure = FIGURES[name]
    value = figure.of_record(record)
    return value if value is None or not figure.is_time else float(value)


def format_value(value: float, name: str) -> str:
    """Write a figure with its unit."""
    return f"{format_without_unit(value, name)} {FIGURES[name].label}"


def format_without_unit(value: float, name: str) -> str:
    """Write a figure for a table whose heading has the unit."""
    return FIGURES[name].show(value)


def unit_of_values(name: str) -> str:
    """Return the unit of the values themselves, in a JSON document."""
    figure = FIGURES[name]
    return "ns" if figure.is_time else figure.label


def heading(name: str, load: str, *, virtual: bool = False) -> str:
    """Return the heading of a table of values, with their unit."""
    figure = FIGURES[name]
    words = [f"{name} under {load}"]
    if virtual and (figure.is_time or figure.label.endswith("/s")):
        words.append("virtual time")
    if figure.label != name:
        words.append(figure.label)
    return ", ".join(words)
