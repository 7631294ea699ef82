"""
The value of wake-ups to a soft or firm deadline: a curve over the latency, on average.

A hard deadline is missed or not. To a soft one an answer is worth less the later it is,
to a firm one nothing once it is late; the average over all activations says how much
of the value a machine delivered (Jensen, Locke and Tokuda, "A time-driven scheduling
model for real-time operating systems", RTSS 1985).
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import numpy.typing as npt

from rtscope.contract import ThreadResult, bucket_width_ns
from rtscope.host.errors import UsageError, quote
from rtscope.host.units import exact_duration, parse_duration
from rtscope.stats.comparison.design import interval_of_mean
from rtscope.stats.distribution import with_skipped

CONFIDENCE = 0.95
LEAST_RUNS = 3
"""Two runs say next to nothing about how much runs differ."""
MAX_POINTS = 100


@dataclass(frozen=True, slots=True)
class Utility:
    """
    A curve of straight lines: (latency in ns, value from 0 to 1), not increasing.

    Two points of one latency are a step: the first value holds up to there. Before the
    first point and after the last one the value stays.
    """

    points: tuple[tuple[int, float], ...]

    def values_at(self, latency_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the value of each latency."""
        x = np.array([ns for ns, _ in self.points], dtype=np.float64)
        y = np.array([value for _, value in self.points])
        # at a step the first of its points counts
        after = np.clip(np.searchsorted(x, latency_ns, side="left"), 1, len(x) - 1)
        left, right = after - 1, after
        width = np.maximum(x[right] - x[left], 1e-9)
        share = np.clip((latency_ns - x[left]) / width, 0, 1)
        between = y[left] + share * (y[right] - y[left])
        values: npt.NDArray[np.float64] = np.where(latency_ns <= x[0], y[0], between)
        return values

    @property
    def words(self) -> str:
        """The curve as it is typed."""
        return ",".join(f"{exact_duration(ns)}:{value:g}" for ns, value in self.points)


@dataclass(frozen=True, slots=True)
class SoftValue:
    """The average value of the activations of some runs."""

    mean: float
    """Of the runs' own averages; each run counts alike."""
    least: float
    """Of the worst run."""
    runs: int
    interval: tuple[float, float] | None
    """Of the mean over runs at 95 % (Student); None with fewer than three runs."""


def parse_utility(text: str) -> Utility:
    """Read `200us:1,500us:0`; UsageError for another text, or a curve that rises."""
    points = []
    for part in text.split(","):
        latency, colon, value = part.strip().partition(":")
        if not colon or not re.fullmatch(r"[01](?:\.[0-9]{1,6})?", value.strip()):
            raise UsageError(
                f"{quote(part.strip())}: write LATENCY:VALUE, a value from 0 to 1, for "
                "example 200us:1,500us:0"
            )
        points.append((parse_duration(latency.strip()), float(value)))
    if not 2 <= len(points) <= MAX_POINTS or any(v > 1 for _, v in points):
        raise UsageError(
            f"{quote(text)}: write 2 to {MAX_POINTS} points with values from 0 to 1, "
            "for example 200us:1,500us:0"
        )
    for (early, more), (late, less) in itertools.pairwise(points):
        if late < early or less > more:
            raise UsageError(
                f"{quote(text)}: latencies go up and values do not, for example "
                "200us:1,500us:0; a step has one latency twice"
            )
    return Utility(tuple(points))


def soft_value(
    runs: Sequence[Sequence[ThreadResult]], utility: Utility
) -> SoftValue | None:
    """
    Return what the activations of runs were worth; None if there was none.

    Missed periods count with the lateness that each would have had. A bucket counts
    with its upper edge: no value is too high, or too low by more than 0.1 % of a
    latency.
    """
    values = [one for one in (_of_run(run, utility) for run in runs) if one is not None]
    if not values:
        return None
    return SoftValue(fmean(values), min(values), len(values), _interval(values))


def _of_run(threads: Sequence[ThreadResult], utility: Utility) -> float | None:
    seen = with_skipped(threads)
    if not seen.total:
        return None
    widths = [bucket_width_ns(int(low)) for low in seen.low_ns]
    if threads[0].foreign is not None:
        widths = [threads[0].foreign.step_ns] * len(seen.low_ns)
    upper_ns = seen.low_ns + np.array(widths, dtype=np.int64) - 1
    upper_ns = np.minimum(upper_ns, seen.max_ns)
    worth = utility.values_at(upper_ns)
    beyond = seen.beyond * utility.points[-1][1]
    return (float(worth @ seen.count) + beyond) / seen.total


def _interval(values: Sequence[float]) -> tuple[float, float] | None:
    if len(values) < LEAST_RUNS:
        return None
    low, high = interval_of_mean(values, CONFIDENCE)
    return max(low, 0.0), min(high, 1.0)
