"""
What a search can go by, and what makes a kernel bad: figures of runs. Pure.

A seed is one trajectory, so a kernel's figure is the median over seeds. Good and bad
must differ by more than a margin; then a kernel between them counts as the one of the
two that its figure is nearer to.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rtscope.host.errors import UsageError, no_such
from rtscope.host.units import parse_duration
from rtscope.record.model import RunRecord
from rtscope.stats.comparison.design import Exact, typical
from rtscope.stats.figures import IDLE, named

# --- what a search can go by: figures, their units, and which runs have them ----------

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


# --- what makes a kernel bad: a figure of its runs, over seeds, against the good one --

_SHARE = re.compile(r"([0-9]{1,4}(?:\.[0-9]+)?) ?%")

Values = Mapping[int, float]
"""A figure by seed; latencies in ns."""


@dataclass(frozen=True, slots=True)
class Margin:
    """How far good and bad must lie apart."""

    absolute: float | None = None
    """In ns; None: a share of the good kernel's figure."""
    share: float | None = None
    """1 is the whole figure; both None: what the good kernel's seeds differ by."""

    def of(self, good: Values) -> float:
        """Return the margin in the unit of the figure."""
        if self.absolute is not None:
            return self.absolute
        if self.share is not None:
            return self.share * typical(good)
        return max(good.values()) - min(good.values())


def parse_margin(text: str | None, figure: str) -> Margin:
    """Read `20us` or `10%`; UsageError for anything else, or a time for no latency."""
    if text is None:
        return Margin()
    if share := _SHARE.fullmatch(text.strip()):
        return Margin(share=float(share[1]) / 100)
    if not FIGURES[figure].is_time:
        raise UsageError(f"--margin {text!a}: {figure} needs a share, e.g. 10%")
    try:
        return Margin(absolute=parse_duration(text))
    except UsageError as error:
        raise UsageError(
            f"--margin {text!a}: write a duration or a share, e.g. 20us or 10%"
        ) from error


def threshold_of(good: Values, bad: Values, margin: Margin) -> Exact:
    """Return two measured kernels, which say what each one between them is like."""
    return Exact(typical(good), typical(bad), margin.of(good))


def is_reversed(ends: Exact, figure: str) -> bool:
    """Whether the good kernel is the worse one, by more than the margin."""
    worse = ends.second < ends.first
    if FIGURES[figure].more_is_better:
        worse = ends.second > ends.first
    return ends.differs and worse
