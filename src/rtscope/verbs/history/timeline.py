"""A series over time: its nights, in order, with what changed from one to the next."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from rtscope.verbs.history.database import Row, conditions
from rtscope.verbs.history.query import Filters, select_runs
from rtscope.verbs.history.series import Night, Series, changes, hottest, series_of

MOST_RUNS = 50_000
"""Of all series, the newest, that are read at once."""

MEDIAN, HIGH = "p50_ns", "p99_9_ns"
"""Columns of the index that are shown beside the maximum."""


@dataclass(frozen=True, slots=True)
class Point:
    """A night of a timeline."""

    night: Night
    settings: int
    changed: tuple[str, ...] = ()
    """What differs from the night before: kernel, settings, machine."""
    begins: bool = False
    """Whether it was measured in another way than the night before."""
    is_timed: bool = False
    """Whether another night of the series began on the same day."""

    @property
    def counts(self) -> bool:
        """Whether a run of it counts."""
        return bool(self.night.runs)

    @property
    def day(self) -> str:
        """Its date, and the time if the date does not name it."""
        return self.night.started[: 16 if self.is_timed else 10].replace("T", " ")

    @property
    def kernel(self) -> str:
        """The release of its kernel, or its name; empty: unknown, or no run counts."""
        if not self.night.runs:
            return ""
        last = self.night.runs[-1]
        return str(last["kernel_release"] or last["kernel"])

    @property
    def celsius(self) -> float | None:
        """The highest temperature (°C) of its runs."""
        return next(iter(hottest([self.night])), None)

    @property
    def caveats(self) -> tuple[str, ...]:
        """The caveats of its runs."""
        words = [
            word for run in self.night.runs for word in (run["caveats"] or "").split()
        ]
        return tuple(dict.fromkeys(words))

    @property
    def max_ns(self) -> float | None:
        """The latest wake-up; None: no run counts."""
        return self.night.max_ns if self.night.runs else None

    def typical(self, column: str) -> float | None:
        """Return the median over its runs of a column; None: one has no value."""
        values = [run[column] for run in self.night.runs]
        return median(values) if values and None not in values else None


@dataclass(frozen=True, slots=True)
class Timeline:
    """All nights of one name, the oldest first."""

    name: str
    machine: str
    load: str
    virtual: bool
    points: tuple[Point, ...]

    @property
    def counting(self) -> tuple[Point, ...]:
        """The nights with a run that counts."""
        return tuple(point for point in self.points if point.counts)

    @property
    def usual_caveats(self) -> frozenset[str]:
        """The caveats of every night that counts."""
        each = [frozenset(point.caveats) for point in self.counting]
        return frozenset.intersection(*each) if each else frozenset()

    @property
    def stretches(self) -> Iterator[tuple[Point, ...]]:
        """Yield the nights that count, apart wherever they do not compare."""
        stretch: list[Point] = []
        for point in self.counting:
            if stretch and stretch[-1].settings != point.settings:
                yield tuple(stretch)
                stretch = []
            stretch.append(point)
        if stretch:
            yield tuple(stretch)

    @property
    def deadline_ns(self) -> int | None:
        """The deadline of the newest campaign that had one."""
        runs = (run for point in reversed(self.counting) for run in point.night.runs)
        return next((run["deadline_ns"] for run in runs if run["deadline_ns"]), None)


def timelines(
    index: sqlite3.Connection, filters: Filters
) -> tuple[tuple[Timeline, ...], int]:
    """Return the timelines of runs by filters, and how many older runs are left out."""
    whole = Filters(("part_of = ''", *filters.conditions), filters.values)
    rows, total = select_runs(index, whole, limit=MOST_RUNS)
    return timelines_of(rows, conditions(index)), total - len(rows)


def timelines_of(rows: Sequence[Row], texts: Mapping[int, str]) -> tuple[Timeline, ...]:
    """Return the timelines of runs; `texts` are their conditions."""
    by_name: dict[str, list[Series]] = {}
    for one in series_of(rows):
        by_name.setdefault(one.name, []).append(one)
    return tuple(
        Timeline(
            name=name,
            machine=group[0].machine,
            load=group[0].load,
            virtual=group[0].virtual,
            points=tuple(_points(group, texts)),
        )
        for name, group in by_name.items()
    )


def _points(group: Sequence[Series], texts: Mapping[int, str]) -> Iterator[Point]:
    nights = sorted(
        ((night, one.settings) for one in group for night in one.nights),
        key=lambda item: (item[0].started, item[0].directory),
    )
    before: tuple[Night, int] | None = None
    days = Counter(night.started[:10] for night, _ in nights)
    for night, settings in nights:
        is_timed = days[night.started[:10]] > 1
        if not night.runs or before is None:
            yield Point(night, settings, is_timed=is_timed)
        else:
            begins = before[1] != settings
            ours = changes(texts[before[1]], texts[settings]) if begins else ()
            states = before[0].runs[-1]["state"], night.runs[-1]["state"]
            also = (
                changes(*map(texts.__getitem__, states)) if len({*states}) > 1 else ()
            )
            yield Point(night, settings, (*also, *ours), begins, is_timed)
        if night.runs:
            before = night, settings
