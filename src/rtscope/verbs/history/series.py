"""
Series of nights: the runs of one machine under one load, result by result.

A *night* is one result directory, whenever it was measured. Several runs of a series
in it are one value of each figure, the mean of their logarithms: they share a boot, an
afternoon and a temperature, and are no independent repetitions.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from rtscope.stats.figures import percentiles
from rtscope.verbs.history.database import Row
from rtscope.verbs.history.entries import DEFINITION
from rtscope.verbs.history.histograms import later_than, unpacked

COPY = "it is a copy of another result"


@dataclass(frozen=True, slots=True)
class Night:
    """The runs of a series in one result directory."""

    directory: str
    started: str
    runs: tuple[Row, ...]
    """Those that count, each measurement once."""
    left_out: tuple[str, ...] = ()
    """Why others do not count."""

    @property
    def max_ns(self) -> int:
        """The latest wake-up of all."""
        return max(int(run["max_ns"]) for run in self.runs)

    @property
    def worst(self) -> Row:
        """The run with that wake-up."""
        return max(self.runs, key=lambda run: run["max_ns"])

    def value(self, column: str) -> float:
        """Return the mean logarithm of a latency (ns)."""
        # At least 1 ns: a clock in coarse steps can give 0.
        return fmean(math.log(max(run[column], 1)) for run in self.runs)

    def tail(self, limit_ns: float) -> float:
        """Return the mean logarithm of 1 + the wake-ups later than the limit."""
        counts = (
            later_than(unpacked(run["histogram"]), limit_ns)
            + (run["missed_periods"] or 0)
            for run in self.runs
        )
        return fmean(math.log1p(count) for count in counts)


def level_ns(nights: Iterable[Night], column: str) -> float:
    """Return the geometric mean of a latency (ns), of which ratios are."""
    return math.exp(fmean(night.value(column) for night in nights))


@dataclass(frozen=True, slots=True)
class Series:
    """Nights with equal settings, the oldest first."""

    name: str
    machine: str
    load: str
    virtual: bool
    settings: int
    nights: tuple[Night, ...]


def series_of(rows: Iterable[Row]) -> tuple[Series, ...]:
    """Return the series of runs; nights without a run that counts are in none."""
    grouped: dict[tuple[str, int], dict[str, list[Row]]] = {}
    for row in rows:
        nights = grouped.setdefault((row["series"], row["settings"]), {})
        nights.setdefault(row["directory"], []).append(row)
    return tuple(
        _series(name, settings, list(nights.values()))
        for (name, settings), nights in sorted(grouped.items())
    )


def _series(name: str, settings: int, nights: Sequence[Sequence[Row]]) -> Series:
    first = nights[0][0]
    # No machine measures the same twice: such a result is a copy of another one.
    seen: set[str] | None = None if first["virtual"] else set()
    in_order = sorted(nights, key=_begun)
    return Series(
        name=name,
        machine=first["machine"],
        load=first["load"],
        virtual=bool(first["virtual"]),
        settings=settings,
        nights=tuple(_night(rows, seen) for rows in in_order),
    )


def _begun(rows: Sequence[Row]) -> tuple[str, str]:
    return min(row["started"] for row in rows), rows[0]["directory"]


def _night(rows: Sequence[Row], seen: set[str] | None) -> Night:
    counting = {row["digest"]: row for row in rows if row["counts"]}
    left_out = [row["why"] for row in rows if not row["counts"]]
    if seen is not None:
        copies = counting.keys() & seen
        seen.update(counting)
        counting = {one: row for one, row in counting.items() if one not in copies}
        left_out += [COPY] * len(copies)
    return Night(
        directory=rows[0]["directory"],
        started=_begun(rows)[0],
        runs=tuple(counting.values()),
        left_out=tuple(left_out),
    )


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure of all nights of a comparison, as logarithms."""

    name: str
    words: str
    """What it is, for a sentence."""
    values: tuple[float, ...]


def measures_of(nights: Sequence[Night]) -> tuple[Measure, ...]:
    """
    Return the figures by which nights are compared: average, maximum and tail.

    The tail are the wake-ups beyond what is usual: later than the median night's
    highest percentile that each night's samples resolve. That limit depends on all
    nights alike, so no night is favoured. Without such a percentile there is no tail.
    """
    mean = Measure("mean", "average", _values(nights, "mean_with_missed_ns"))
    maximum = Measure("max", "maximum", _values(nights, "max_ns"))
    known = [mean] if all(mean.values) else []
    if limit := _tail_limit(nights):
        name, limit_ns = limit
        tail = tuple(night.tail(limit_ns) for night in nights)
        known.append(Measure("tail", f"wake-ups beyond the usual {name}", tail))
    return (*known, maximum)


def _values(nights: Sequence[Night], column: str) -> tuple[float, ...]:
    if any(run[column] is None for night in nights for run in night.runs):
        return (0.0,) * len(nights)
    return tuple(night.value(column) for night in nights)


def _tail_limit(nights: Sequence[Night]) -> tuple[str, float] | None:
    for one, _ in reversed(percentiles()):
        values = [
            run[f"{one.key}_ns"]
            for night in nights
            for run in night.runs
            if run["histogram"] is not None
        ]
        if values and None not in values:
            return one.heading, median(values)
    return None


# --- what differs between nights ------------------------------------------------------

_FOLLOWS = {
    "kernel": {
        "kernel build",
        "kernel image",
        "kernel configuration",
        "board's kernel",
    },
    "kernel command line": {DEFINITION},
}
"""Conditions that others change too."""

DIGEST, SHOWN = re.compile(r"[0-9a-f]{64}"), 12
"""A digest, and how many of its digits are shown."""

MOST_CHANGES = 6


def changes(before: str, after: str) -> tuple[str, ...]:
    """Return in words what differs between two texts of conditions."""
    one, other = (json.loads(text) for text in (before, after))
    labels = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    follow = {one for name in labels for one in _FOLLOWS.get(name, ())}
    labels = [name for name in labels if name not in follow]
    return tuple(_change(name, one.get(name), other.get(name)) for name in labels)


def _change(label: str, before: object, after: object) -> str:
    old, new = (list(map(_cut, _words(value))) for value in (before, after))
    if len(old) > 1 or len(new) > 1:
        gone = [f"-{word}" for word in old if word not in new]
        added = [f"+{word}" for word in new if word not in old]
        said = " ".join([*gone, *added][:MOST_CHANGES])
        return f"{label} {said}" if said else f"{label} in another order"
    return f"{label} {' '.join(old)} → {' '.join(new)}"


def _cut(word: str) -> str:
    return word[:SHOWN] if DIGEST.fullmatch(word) else word


def _words(value: object) -> list[str]:
    if value is None:
        return ["unknown"]
    if isinstance(value, bool):
        return ["on" if value else "off"]
    if isinstance(value, list):
        return [str(one) for one in value] or ["none"]
    if isinstance(value, Mapping):
        return [f"{name}={one}" for name, one in value.items()]
    return str(value).split() or ["none"]


def hottest(nights: Iterable[Night]) -> list[float]:
    """Return the highest temperature (°C) of each night that has one."""
    found = []
    for night in nights:
        known = [run["celsius"] for run in night.runs if run["celsius"] is not None]
        found += [max(known)] if known else []
    return found


def unit_words(are_virtual: Iterable[bool]) -> str:
    """Say the unit of latencies, by whether each is of a virtual board."""
    kinds = {bool(one) for one in are_virtual}
    if kinds == {True}:
        return "Latencies in virtual µs."
    also = "; those of virtual boards in virtual ones" if True in kinds else ""
    return f"Latencies in µs{also}."
