"""
What a run cost besides time: power, heat, clock and memory, of its ticks.

A meter that a machine has not, or that gave no number, is None and never 0.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from rtscope.contract import Tick
from rtscope.host.units import NS_PER_S
from rtscope.record.model import RunRecord


@dataclass(frozen=True, slots=True)
class Meter:
    """A number of a run; more of it is worse unless said otherwise."""

    key: str
    """With its unit."""
    heading: str
    unit: str
    digits: int
    of: Callable[[Sequence[Tick]], float | None]
    less_is_worse: bool = False

    def of_record(self, record: RunRecord) -> float | None:
        """Return the number of a run; None if it was not measured."""
        return None if record.virtual else self.of(record.ticks)

    def show(self, value: float) -> str:
        """Write a value for people, with its unit."""
        return f"{value:,.{self.digits}f} {self.unit}"


def power_w(ticks: Sequence[Tick]) -> float | None:
    """
    Return the average power: of the counters of energy, else of hwmon.

    Zones within others (`intel-rapl:0:0`) are part of them and not added.
    """
    zones = dict.fromkeys(
        name for tick in ticks for name in tick.energy_uj if name.count(":") == 1
    )
    used = [one for zone in zones if (one := _zone_w(ticks, zone)) is not None]
    if used:
        return sum(used)
    sums = [sum(tick.power_uw.values()) for tick in ticks if tick.power_uw]
    return fmean(sums) / 1e6 if sums else None


def _zone_w(ticks: Sequence[Tick], zone: str) -> float | None:
    """Return the power of a zone; a second in which its counter began anew is left."""
    used_uj = took_ns = 0
    for before, after in pairwise(tick for tick in ticks if zone in tick.energy_uj):
        step_uj = after.energy_uj[zone] - before.energy_uj[zone]
        if step_uj >= 0:
            used_uj += step_uj
            took_ns += after.t_ns - before.t_ns
    return used_uj / 1e6 / (took_ns / NS_PER_S) if took_ns else None


def hottest_c(ticks: Sequence[Tick]) -> float | None:
    """Return the highest temperature of any sensor of the machine, in °C."""
    return max(
        (milli / 1000 for tick in ticks for milli in temperatures(tick).values()),
        default=None,
    )


def temperatures(tick: Tick) -> Mapping[str, int]:
    """Return the temperatures in thousandths of °C, by sensor."""
    return {**tick.temp_mc, **tick.device_mc}


def clock_ghz(ticks: Sequence[Tick]) -> float | None:
    """Return the average clock frequency of all CPUs."""
    means = [fmean(tick.freq_khz.values()) for tick in ticks if tick.freq_khz]
    return fmean(means) / 1e6 if means else None


def memory_mb(ticks: Sequence[Tick]) -> float | None:
    """Return the most memory in use, in MB of 10^6 bytes."""
    used = [t.memory_used_kb for t in ticks if t.memory_used_kb is not None]
    return max(used) * 1024 / 1e6 if used else None


METERS = {
    meter.key: meter
    for meter in (
        Meter("power_w", "power", "W", 2, power_w),
        Meter("hottest_c", "highest temperature", "°C", 1, hottest_c),
        Meter("clock_ghz", "clock frequency", "GHz", 3, clock_ghz, less_is_worse=True),
        Meter("memory_mb", "memory in use", "MB", 0, memory_mb),
    )
}


def meters_of(record: RunRecord) -> Mapping[str, float]:
    """Return the numbers of a run by key, of those that were measured."""
    known = ((key, meter.of_record(record)) for key, meter in METERS.items())
    return {key: value for key, value in known if value is not None}


def logarithm(meter: Meter, value: float) -> float:
    """Return a value for a comparison; temperatures count from absolute zero."""
    from_zero = value + 273.15 if meter.unit == "°C" else value
    return math.log(max(from_zero, 1e-9))


def sensors_over_time(ticks: Sequence[Tick]) -> Iterator[tuple[str, float, float]]:
    """Yield each temperature sensor with its lowest and highest reading, in °C."""
    names = dict.fromkeys(name for tick in ticks for name in temperatures(tick))
    for name in names:
        seen = [t[name] / 1000 for tick in ticks if name in (t := temperatures(tick))]
        yield name, min(seen), max(seen)
