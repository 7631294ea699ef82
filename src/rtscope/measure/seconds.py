"""
What the agents tell once a second, in bounded memory: long runs have coarser rows.

A row has what came until its time, so two that follow each other become one: what
counts up is that of the later one, an extreme is that of both.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from rtscope.contract import LoadTick, LoadWindow, Tick

MOST_VALUES = 65_536
"""Of all rows: an hour of two CPUs by the second. What is written can be read again."""

MOST_PROCESSES = 4_096
"""Of all windows of a load."""

T = TypeVar("T")


@dataclass(slots=True)
class Seconds(Generic[T]):
    """Rows in the order of time, each of one second, later of 2, 4, 8, ..."""

    merged: Callable[[T, T], T]
    """Returns the row of two, the earlier one first."""
    values_of: Callable[[T], int]
    rows: list[T] = field(default_factory=list)
    each: int = 1
    """Seconds of a row."""
    of_last: int = 0

    def append(self, row: T) -> None:
        """Add the row of the next second."""
        if self.rows and self.of_last < self.each:
            self.rows[-1] = self.merged(self.rows[-1], row)
            self.of_last += 1
            return
        self.rows.append(row)
        self.of_last = 1
        if len(self.rows) * self.values_of(row) > MOST_VALUES:
            self._halve()

    def _halve(self) -> None:
        """Make one row of each two; the last one, if alone, goes on being filled."""
        whole = len(self.rows) // 2 * 2
        pairs = zip(self.rows[:whole:2], self.rows[1:whole:2], strict=True)
        alone = self.rows[whole:]
        self.rows = [*(self.merged(*pair) for pair in pairs), *alone]
        self.of_last += 0 if alone else self.each
        self.each *= 2

    def __iter__(self) -> Iterator[T]:
        """Yield the rows."""
        return iter(self.rows)

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self.rows)


def seconds_of_ticks() -> Seconds[Tick]:
    """Return the empty rows of a measurement."""
    return Seconds(_tick, _values)


def seconds_of_load() -> Seconds[LoadTick]:
    """Return the empty rows of a load."""
    return Seconds(_load_tick, lambda _: 4)


def thinned(windows: Sequence[LoadWindow]) -> tuple[LoadWindow, ...]:
    """Return all windows of a load, or each second, fourth, ... of very many."""
    every, most = 1, MOST_PROCESSES
    while every < len(windows) and _processes(windows[::every]) > most:
        every *= 2
    return tuple(windows[::every])


def _processes(windows: Sequence[LoadWindow]) -> int:
    return sum(len(one.processes) for one in windows)


def _values(tick: Tick) -> int:
    sensors = (tick.temp_mc, tick.energy_uj, tick.power_uw, tick.device_mc)
    return 4 * len(tick.cpus) + len(tick.freq_khz) + sum(map(len, sensors)) + 6


def _tick(first: Tick, last: Tick) -> Tick:
    """Return the row of two: the slowest clock, the highest of what may be too much."""
    known = {one.cpu: one.max_ns for one in first.cpus}
    return replace(
        last,
        cpus=tuple(
            replace(one, max_ns=max(one.max_ns, known.get(one.cpu, 0)))
            for one in last.cpus
        ),
        freq_khz=_of_both(min, first.freq_khz, last.freq_khz),
        temp_mc=_of_both(max, first.temp_mc, last.temp_mc),
        power_uw=_of_both(max, first.power_uw, last.power_uw),
        device_mc=_of_both(max, first.device_mc, last.device_mc),
        memory_used_kb=max(
            (
                one.memory_used_kb
                for one in (first, last)
                if one.memory_used_kb is not None
            ),
            default=None,
        ),
    )


K = TypeVar("K")


def _of_both(
    extreme: Callable[[int, int], int], first: Mapping[K, int], last: Mapping[K, int]
) -> dict[K, int]:
    both = {**first, **last}
    return {key: extreme(first.get(key, one), one) for key, one in both.items()}


def _load_tick(first: LoadTick, last: LoadTick) -> LoadTick:
    return replace(last, processes=max(first.processes, last.processes))
