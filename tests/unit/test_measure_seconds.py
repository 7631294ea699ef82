"""A run of a day has rows that are coarser, and a record that can be read again."""

from dataclasses import replace

import pytest

from fakes.measurements import record, thread
from rtscope.contract import LoadTick, LoadWindow, ProcessInWindow, Tick, TickCpu
from rtscope.measure.seconds import (
    MOST_PROCESSES,
    MOST_VALUES,
    seconds_of_load,
    seconds_of_ticks,
    thinned,
)
from rtscope.record.model import record_from_json, record_to_json

S = 1_000_000_000


def tick(at_s: int, cpus: int = 2) -> Tick:
    return Tick(
        t_ns=at_s * S + 70,
        cpus=tuple(TickCpu(n, at_s, 0, at_s * 7919 % 10_007 + n) for n in range(cpus)),
        freq_khz={0: 1000 + at_s % 5},
        temp_mc={"cpu": 40_000 + at_s % 7},
    )


@pytest.mark.parametrize("count", [1, 2, 3, 100, 2000])
def test_a_short_run_has_a_row_for_each_second(count: int) -> None:
    rows = seconds_of_ticks()
    for at_s in range(1, count + 1):
        rows.append(tick(at_s))

    assert list(rows) == [tick(at_s) for at_s in range(1, count + 1)]


@pytest.mark.parametrize(("cpus", "count"), [(2, 86_400), (2, 70_001), (64, 5000)])
def test_each_row_of_a_long_run_is_of_as_many_seconds(cpus: int, count: int) -> None:
    rows = seconds_of_ticks()
    for at_s in range(1, count + 1):
        rows.append(tick(at_s, cpus))

    assert len(rows) * 4 * cpus <= MOST_VALUES
    assert len(rows) > MOST_VALUES / (4 * cpus + 8) / 2 - 1
    assert rows.each & (rows.each - 1) == 0
    ends = [row.t_ns // S for row in rows]
    assert ends[:-1] == list(range(rows.each, count, rows.each))[: len(ends) - 1]
    assert ends[-1] == count
    begins = [0, *ends[:-1]]
    for begin, end, row in zip(begins, ends, rows, strict=True):
        seconds = [tick(at_s, cpus) for at_s in range(begin + 1, end + 1)]
        for n, cpu in enumerate(row.cpus):
            assert cpu.max_ns == max(one.cpus[n].max_ns for one in seconds)
            assert cpu.samples == end
        assert row.freq_khz[0] == min(one.freq_khz[0] for one in seconds)
        assert row.temp_mc["cpu"] == max(one.temp_mc["cpu"] for one in seconds)


def test_a_load_counts_on_and_shows_its_most_processes() -> None:
    rows = seconds_of_load()
    for at_s in range(1, 40_001):
        rows.append(LoadTick(at_s * S, at_s % 11, at_s * 5))

    assert len(rows) <= MOST_VALUES / 4
    assert [row.cpu_ns for row in rows] == [row.t_ns // S * 5 for row in rows]
    assert rows.each == 4
    assert max(row.processes for row in rows) == 10


def window(at: int, processes: int) -> LoadWindow:
    some = tuple(
        ProcessInWindow(pid, 1, 5, "stress-ng", "R", at, at, at)
        for pid in range(processes)
    )
    return LoadWindow(at, at + 1, some, 0)


def test_windows_of_very_many_processes_are_thinned() -> None:
    few = [window(at, 6) for at in range(600)]
    many = [window(at, 500) for at in range(600)]

    assert thinned(few) == tuple(few)
    kept = thinned(many)
    assert kept == tuple(many[::128])
    assert sum(len(one.processes) for one in kept) <= MOST_PROCESSES
    assert thinned([window(0, 5000)]) == (window(0, 5000),)
    assert thinned([]) == ()


def test_the_record_of_a_day_on_many_cpus_is_read_again() -> None:
    ticks, load = seconds_of_ticks(), seconds_of_load()
    for at_s in range(1, 86_401):
        ticks.append(tick(at_s, 32))
        load.append(LoadTick(at_s * S, 5, at_s))
    made = record([thread([10_000 + n]) for n in range(32)])
    made = replace(
        made,
        ticks=tuple(ticks),
        load=replace(
            made.load,
            ticks=tuple(load),
            windows=thinned([window(at, 512) for at in range(600)]),
        ),
    )

    again = record_from_json(record_to_json(made), name="record.json")

    assert again.ticks == made.ticks
    assert len(again.load.windows) > 4
