"""
What charts over the time of a run draw: maxima per second, and the latest wake-ups.

A maximum stays a maximum when seconds are gathered. All times in ns but those named
otherwise.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rtscope.contract import Tick
from rtscope.host.units import NS_PER_S
from rtscope.present.words import cut
from rtscope.stats.latetimes import Timing
from rtscope.stats.meters import temperatures

MAX_TIME_STEPS = 300

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CpuCurve:
    """One CPU's values over a shared axis; `colour` is its place in the palette."""

    label: str
    colour: int
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class MaximaOverTime:
    """Maxima per time step; values of 0 are steps without a sample."""

    step_s: int
    seconds: tuple[float, ...]
    cpus: tuple[CpuCurve, ...]
    merged_ns: tuple[float, ...]
    skipped_s: tuple[float, ...]
    """Steps in which some CPU missed a period."""
    ghz: tuple[CpuCurve, ...]
    celsius: tuple[float, ...]
    """The hottest sensor, NaN where it gave nothing; empty if there is none."""
    sensor: str


@dataclass(frozen=True, slots=True)
class LateOverTime:
    """The latest events of one run, and the cycles of the distance that they keep."""

    seconds: tuple[float, ...]
    latency_ns: tuple[float, ...]
    """0: beyond the histogram of another tool, latency unknown."""
    cycles_s: tuple[float, ...]
    """When the distance found would have had an event; empty if none was found."""
    end_s: float
    from_start: bool


def cpu_label(cpu: int | None) -> str:
    """Name a CPU; a SCHED_DEADLINE thread has none."""
    return "unpinned" if cpu is None else str(cpu)


def maxima_over_time(
    ticks: Sequence[Tick], colours: Mapping[int | None, int]
) -> MaximaOverTime | None:
    """Gather ticks into at most MAX_TIME_STEPS steps; None without ticks."""
    if not ticks:
        return None
    duration_s = max(1, round(ticks[-1].t_ns / NS_PER_S))
    span_s = round(duration_s / len(ticks))  # more than one in a long run
    step_s = max(math.ceil(duration_s / MAX_TIME_STEPS), span_s)
    steps = math.ceil(duration_s / step_s)
    # A tick comes a little after the second that it is about, never before its end.
    place = [
        min(steps - 1, max(0, round(t.t_ns / NS_PER_S) - 1) // step_s) for t in ticks
    ]
    maxima = _maxima(ticks, place, steps)
    sensor, celsius = _hottest(ticks, place, steps)
    return MaximaOverTime(
        step_s=step_s,
        seconds=tuple(float(i * step_s) for i in range(steps)),
        cpus=tuple(
            CpuCurve(cpu_label(cpu), colours[cpu], tuple(values.tolist()))
            for cpu, values in maxima.items()
            if cpu in colours
        ),
        merged_ns=tuple(np.max(list(maxima.values()), axis=0).tolist())
        if maxima
        else (),
        skipped_s=_skipped_seconds(ticks, place, step_s),
        ghz=_frequencies(ticks, place, steps, colours=colours),
        celsius=celsius,
        sensor=sensor,
    )


def _maxima(
    ticks: Sequence[Tick], place: Sequence[int], steps: int
) -> dict[int | None, Floats]:
    maxima: dict[int | None, Floats] = {}
    for step, tick in zip(place, ticks, strict=True):
        for cpu in tick.cpus:
            values = maxima.setdefault(cpu.cpu, np.zeros(steps))
            values[step] = max(values[step], cpu.max_ns)
    return maxima


def _skipped_seconds(
    ticks: Sequence[Tick], place: Sequence[int], step_s: int
) -> tuple[float, ...]:
    before = 0
    steps: set[int] = set()
    for step, tick in zip(place, ticks, strict=True):
        so_far = sum(cpu.missed_periods for cpu in tick.cpus)
        if so_far > before:
            steps.add(step)
        before = so_far
    return tuple((step + 0.5) * step_s for step in sorted(steps))


def _frequencies(
    ticks: Sequence[Tick],
    place: Sequence[int],
    steps: int,
    *,
    colours: Mapping[int | None, int],
) -> tuple[CpuCurve, ...]:
    curves: dict[int, Floats] = {}
    for step, tick in zip(place, ticks, strict=True):
        for cpu, khz in tick.freq_khz.items():
            if cpu in colours:
                # The lowest of a step: a drop is what explains a latency.
                values = curves.setdefault(cpu, np.full(steps, np.nan))
                values[step] = np.fmin(values[step], khz / 1e6)
    return tuple(
        CpuCurve(cpu_label(cpu), colours[cpu], tuple(values.tolist()))
        for cpu, values in sorted(curves.items())
    )


def _hottest(
    ticks: Sequence[Tick], place: Sequence[int], steps: int
) -> tuple[str, tuple[float, ...]]:
    peaks: dict[str, int] = {}
    for tick in ticks:
        for name, milli in temperatures(tick).items():
            peaks[name] = max(peaks.get(name, milli), milli)
    if not peaks:
        return "", ()
    sensor = max(peaks, key=lambda name: (peaks[name], name))
    values = np.full(steps, np.nan)
    for step, tick in zip(place, ticks, strict=True):
        if sensor in (seen := temperatures(tick)):
            values[step] = np.fmax(values[step], seen[sensor] / 1000)
    return cut(sensor, 60), tuple(values.tolist())


def late_over_time(timing: Timing, *, watched_ns: int) -> LateOverTime:
    """Return the events of the run that has most of them."""
    run = max(timing.times, key=lambda one: len(one.events))
    seconds = [event.at_ns / NS_PER_S for event in run.events]
    end_s = max(watched_ns / NS_PER_S, seconds[-1])
    found = timing.steady.found
    return LateOverTime(
        seconds=tuple(seconds),
        latency_ns=tuple(float(event.latency_ns or 0) for event in run.events),
        cycles_s=()
        if found is None
        else _cycles(seconds, found.period_ns / NS_PER_S, end_s),
        end_s=end_s,
        from_start=run.from_start,
    )


def _cycles(
    seconds: Sequence[float], period_s: float, end_s: float
) -> tuple[float, ...]:
    """Return the instants of a distance, in the mean phase of the events."""
    turns = np.exp(2j * np.pi * np.asarray(seconds) / period_s).sum()
    phase_s = float(np.angle(turns)) / (2 * np.pi) % 1 * period_s
    return tuple(np.arange(phase_s, end_s, period_s).tolist())
