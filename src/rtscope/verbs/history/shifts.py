"""The change points of a timeline, and what else changed there."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from rtscope.host.units import format_number
from rtscope.present.words import us
from rtscope.verbs.history.changepoints import change_points
from rtscope.verbs.history.judge import ALPHA, LEAST_OF_BOARD
from rtscope.verbs.history.series import Measure, Night, level_ns, measures_of
from rtscope.verbs.history.timeline import Point, Timeline

WARMER = 3.0
"""Degrees Celsius between the medians of two stretches that are named."""

_COLUMNS = {"max": "max_ns", "mean": "mean_with_missed_ns"}
"""Of figures that are latencies."""

NEAR = 1
"""Nights by which a change point is estimated; what changed there is beside it."""


@dataclass(frozen=True, slots=True)
class Shift:
    """From a night on, a figure of a timeline is on another level."""

    figure: str
    """`mean`, `max` or `tail`."""
    words: str
    ratio: float
    """Of geometric means, of the nights after to those before."""
    before: tuple[Point, ...]
    after: tuple[Point, ...]
    """Up to the next change."""
    changed: tuple[str, ...]
    """What changed at most a night away."""

    @property
    def at(self) -> Point:
        """The first night on the new level."""
        return self.after[0]

    @property
    def sentence(self) -> str:
        """The whole, as a person would write it."""
        times = f"{format_number(self.ratio, 3)} times"
        levels = "" if self.figure == "tail" else f" ({self._levels})"
        about = [f"{self.words} {times}{levels} since {self.at.day}", *self._beside()]
        return "; ".join(about)

    @property
    def _levels(self) -> str:
        column = _COLUMNS[self.figure]
        virtual = "virtual " if self.at.night.runs[0]["virtual"] else ""
        old, new = (
            level_ns((point.night for point in some), column)
            for some in (self.before, self.after)
        )
        return f"{us(old, virtual)} → {us(new, virtual)}"

    def _beside(self) -> Iterator[str]:
        if self.changed:
            yield f"there: {', '.join(self.changed)}"
        warm = [
            [p.celsius for p in some if p.celsius] for some in (self.before, self.after)
        ]
        if all(warm) and abs(median(warm[1]) - median(warm[0])) > WARMER:
            yield f"{median(warm[0]):.0f} → {median(warm[1]):.0f} °C"
        old, new = (_worst_cause(some) for some in (self.before, self.after))
        if new:
            was = f", before: {old}" if old else ""
            yield f"cause of the worst wake-up: {new}{was}"


def _worst_cause(points: Sequence[Point]) -> str:
    worst = max((point.night.worst for point in points), key=lambda run: run["max_ns"])
    return str(worst["cause"])


def shifts_of(timelines: Sequence[Timeline]) -> tuple[tuple[Shift, ...], ...]:
    """
    Return the change points of each timeline, the newest last.

    All figures of all of them are one family: if nothing changed anywhere, in at most
    5 % of cases there is one at all. Virtual boards repeat exactly, and need no test: a
    level ends where all runs of a night lie beyond all of it, by `LEAST_OF_BOARD`.
    """
    stretches = [tuple(one.stretches) for one in timelines]
    measures = [
        [measures_of([point.night for point in stretch]) for stretch in some]
        for some in stretches
    ]
    family = sum(
        len(figures)
        for line, some in zip(timelines, measures, strict=True)
        for figures in some
        if not line.virtual
    )
    found = []
    for line, some, figures in zip(timelines, stretches, measures, strict=True):
        shifts = [
            shift
            for stretch, known in zip(some, figures, strict=True)
            for one in known
            for shift in (
                _of_board(stretch, one)
                if line.virtual
                else _shifts(
                    stretch, one, change_points(one.values, alpha=ALPHA / family), NEAR
                )
            )
        ]
        found.append(tuple(sorted(shifts, key=lambda one: one.at.night.started)))
    return tuple(found)


def _of_board(stretch: Sequence[Point], measure: Measure) -> Iterator[Shift]:
    if measure.name == "tail":
        return
    places, known = [], _values(stretch[0], measure)
    for at, point in enumerate(stretch):
        values = _values(point, measure)
        low, high = min(known) / LEAST_OF_BOARD, max(known) * LEAST_OF_BOARD
        if min(values) >= high or max(values) <= low:
            places.append(at)
            known = values
        known = [*known, *values]
    yield from _shifts(stretch, measure, places, 0)


def _values(point: Point, measure: Measure) -> list[float]:
    return [max(run[_COLUMNS[measure.name]], 1) for run in point.night.runs]


def level_of(
    new: Sequence[Night], before: Sequence[Night], shifts: Sequence[Shift]
) -> tuple[Shift, ...]:
    """
    Return the shifts that led to the level of the newest of the nights `new`.

    Those before all nights that they are compared with are left out.
    """
    if not new:
        return ()
    first = before[0].started if before else ""
    newest = new[-1].directory
    return tuple(
        one
        for one in shifts
        if one.at.night.started > first
        if newest in {point.night.directory for point in one.after}
    )


def _shifts(
    stretch: Sequence[Point], measure: Measure, places: Sequence[int], near: int
) -> Iterator[Shift]:
    ends = (0, *places, len(stretch))
    for begin, at, end in zip(ends, ends[1:], ends[2:], strict=False):
        there = stretch[max(begin + 1, at - near) : at + near + 1]
        changed = dict.fromkeys(one for point in there for one in point.changed)
        ratio = fmean(measure.values[at:end]) - fmean(measure.values[begin:at])
        yield Shift(
            figure=measure.name,
            words=measure.words,
            ratio=math.exp(ratio),
            before=tuple(stretch[begin:at]),
            after=tuple(stretch[at:end]),
            changed=tuple(changed),
        )
