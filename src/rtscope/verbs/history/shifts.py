"""The change points of a timeline, and what else changed there."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from rtscope.host.units import format_number
from rtscope.present.words import us
from rtscope.verbs.history.changepoints import change_points
from rtscope.verbs.history.judge import ALPHA
from rtscope.verbs.history.series import Measure, Night, measures_of
from rtscope.verbs.history.timeline import Point, Timeline

WARMER = 3.0
"""Degrees Celsius between the medians of two stretches that are named."""

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
        column = "max_ns" if self.figure == "max" else "mean_with_missed_ns"
        virtual = "virtual " if self.at.night.runs[0]["virtual"] else ""
        old, new = (
            median(run[column] for point in some for run in point.night.runs)
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
    5 % of cases there is one at all. Virtual boards repeat exactly, and need no test.
    """
    stretches = [() if one.virtual else tuple(one.stretches) for one in timelines]
    measures = [
        [measures_of([point.night for point in stretch]) for stretch in some]
        for some in stretches
    ]
    family = sum(len(figures) for some in measures for figures in some)
    found = []
    for some, figures in zip(stretches, measures, strict=True):
        shifts = [
            shift
            for stretch, known in zip(some, figures, strict=True)
            for one in known
            for shift in _shifts(stretch, one, ALPHA / family)
        ]
        found.append(tuple(sorted(shifts, key=lambda one: one.at.night.started)))
    return tuple(found)


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
    stretch: Sequence[Point], measure: Measure, alpha: float
) -> Iterator[Shift]:
    places = change_points(measure.values, alpha=alpha)
    ends = (0, *places, len(stretch))
    for begin, at, end in zip(ends, ends[1:], ends[2:], strict=False):
        near = stretch[max(begin + 1, at - NEAR) : at + NEAR + 1]
        changed = dict.fromkeys(one for point in near for one in point.changed)
        ratio = fmean(measure.values[at:end]) - fmean(measure.values[begin:at])
        yield Shift(
            figure=measure.name,
            words=measure.words,
            ratio=math.exp(ratio),
            before=tuple(stretch[begin:at]),
            after=tuple(stretch[at:end]),
            changed=tuple(changed),
        )
