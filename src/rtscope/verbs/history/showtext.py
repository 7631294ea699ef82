"""Latencies over time, for a terminal and for programs."""

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from statistics import median
from typing import Any

from rtscope.host.units import format_us, plural
from rtscope.present.document import Block, Column, Item, Span, Table, Weight
from rtscope.present.words import NOTHING
from rtscope.verbs.history.series import unit_words
from rtscope.verbs.history.shifts import Shift
from rtscope.verbs.history.timeline import HIGH, MEDIAN, Point, Timeline

HEIGHTS = "▁▂▃▄▅▆▇█"
LENGTH = 24
"""Nights of a small chart, or characters of the longest bar."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Timelines, with the change points of each."""

    lines: tuple[Timeline, ...]
    shifts: tuple[tuple[Shift, ...], ...]
    older: int
    """Older runs that are left out."""

    @property
    def left_out(self) -> str:
        """Say what is left out; empty: nothing."""
        if not self.older:
            return ""
        older = plural(self.older, "older run")
        return f"{older} left out; choose fewer series, or --since."


def remarks_of(point: Point, usual: Set[str] = frozenset()) -> Sequence[str]:
    """Return what a reader must know of a night, but for usual caveats."""
    if not point.counts:
        return [f"does not count: {', '.join(dict.fromkeys(point.night.left_out))}"]
    caveats = [f"caveat {one}" for one in point.caveats if one not in usual]
    break_ = ["not compared with nights before"] if point.begins else []
    return [*point.changed, *break_, *caveats]


def usual_words(line: Timeline) -> str:
    """Name the caveats of every night; empty: there is none."""
    usual = sorted(line.usual_caveats)
    return f"Caveats of every night: {', '.join(usual)}." if usual else ""


def show_blocks(shown: Shown, *, nights: int) -> Iterator[Block]:
    """Yield the nights of one series, or a line for each of several."""
    if len(shown.lines) == 1:
        yield from _one(shown.lines[0], nights)
    else:
        yield _several(shown)
    for line, shifts in zip(shown.lines, shown.shifts, strict=True):
        for shift in shifts:
            weight: Weight = "open" if shift.ratio > 1 else "good"
            yield Item((f"{line.name}: {shift.sentence}", weight))
    yield (unit_words(line.virtual for line in shown.lines), "muted")
    if shown.left_out:
        yield (shown.left_out, "open")


def _several(shown: Shown) -> Table:
    rows: list[list[Span]] = []
    for line, shifts in zip(shown.lines, shown.shifts, strict=True):
        maxima = [point.night.max_ns for point in line.counting]
        rows.append(
            [
                line.name,
                f"{len(line.counting)}",
                format_us(median(maxima)) if maxima else NOTHING,
                format_us(maxima[-1]) if maxima else NOTHING,
                _small_chart(maxima[-LENGTH:]),
                shifts[-1].at.day if shifts else "",
            ]
        )
    numbers = ("nights", "usual max", "newest")
    charts = _whole(f"worst, last {LENGTH}", [str(row[4]) for row in rows])
    head = (*_numbers("series", numbers), charts, Column("changed", fit="wraps"))
    return Table(head, rows)


def _numbers(name: str, numbers: Sequence[str]) -> Iterator[Column]:
    yield Column(name, fit="wraps")
    yield from (Column(one, right=True, fit="wraps") for one in numbers)


def _whole(heading: str, cells: Sequence[str]) -> Column:
    """Return a column that is never cut: a chart's newest night is its last."""
    return Column(heading, least=max(map(len, cells), default=0))


def _small_chart(values: Sequence[float]) -> str:
    if not values:
        return ""
    low, high = (math.log(max(1, one)) for one in (min(values), max(values)))
    span = max(high - low, math.log(2))
    steps = len(HEIGHTS) - 1
    return "".join(
        HEIGHTS[round(steps * (math.log(max(1, one)) - low) / span)] for one in values
    )


def _one(line: Timeline, nights: int) -> Iterator[Block]:
    points = line.points[-nights:]
    maxima = [point.night.max_ns for point in points if point.counts]
    longest = max(maxima, default=1)
    rows: list[list[Span]] = [
        [
            point.day,
            format_us(point.max_ns),
            format_us(point.typical(HIGH)),
            format_us(point.typical(MEDIAN)),
            "█" * math.ceil(LENGTH / 2 * (point.max_ns or 0) / longest),
            "; ".join(remarks_of(point, line.usual_caveats)),
        ]
        for point in points
    ]
    yield (line.name, "strong")
    bars = _whole("max", [str(row[4]) for row in rows])
    numbers = ("max", "p99.9", "median")
    yield Table((*_numbers("night", numbers), bars, Column("", fit="wraps")), rows)
    said = plural(len(line.points), "night")
    if len(points) < len(line.points):
        said += f", of which the newest {len(points)} are shown; --nights shows more"
    yield f"{said}."
    if usual := usual_words(line):
        yield usual


def show_json(shown: Shown) -> dict[str, Any]:
    """
    Return it for programs: latencies in ns, null where one is not known.

    `begins` is true where a night was measured in another way than the one before.
    """
    return {
        "series": [
            {
                "series": line.name,
                "machine": line.machine,
                "load": line.load,
                "virtual": line.virtual,
                "nights": [_night(point) for point in line.points],
                "change_points": [shift_json(one) for one in shifts],
            }
            for line, shifts in zip(shown.lines, shown.shifts, strict=True)
        ],
        "older_runs": shown.older,
    }


def _night(point: Point) -> dict[str, Any]:
    return {
        "directory": point.night.directory,
        "started": point.night.started,
        "counts": point.counts,
        "why": list(dict.fromkeys(point.night.left_out)),
        "max_ns": point.max_ns,
        HIGH: point.typical(HIGH),
        MEDIAN: point.typical(MEDIAN),
        "celsius": point.celsius,
        "kernel": point.kernel,
        "caveats": list(point.caveats),
        "changed": list(point.changed),
        "begins": point.begins,
    }


def shift_json(shift: Shift) -> dict[str, Any]:
    """Return a change point for programs: nights before and after, and what changed."""
    return {
        "directory": shift.at.night.directory,
        "started": shift.at.night.started,
        "figure": shift.figure,
        "ratio": shift.ratio,
        "before": len(shift.before),
        "after": len(shift.after),
        "changed": list(shift.changed),
        "sentence": shift.sentence,
    }
