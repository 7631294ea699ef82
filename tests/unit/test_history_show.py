"""Latencies over time: nights in order, change points, charts."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.measurements import on_board
from fakes.nights import keep, lab, latencies, run
from rtscope.present.document import Block, Chart, Section
from rtscope.record.caveats.catalogue import make
from rtscope.verbs.history import database
from rtscope.verbs.history.changepoints import change_points, penalty_of
from rtscope.verbs.history.indexing import Tally, index_place
from rtscope.verbs.history.query import Filters
from rtscope.verbs.history.shifts import Shift, shifts_of
from rtscope.verbs.history.showcharts import ticks_ns
from rtscope.verbs.history.showpage import show_document
from rtscope.verbs.history.showtext import Shown, remarks_of, show_blocks
from rtscope.verbs.history.timeline import Timeline, timelines


def shown(place: Path) -> Shown:
    with database.opened(place.parent / "history.db", make=True) as opened:
        tally = Tally()
        index_place(opened, place, tally)
        assert not tally.damaged
        lines, older = timelines(opened, Filters())
    return Shown(lines, shifts_of(lines), older)


def only(some: Shown) -> tuple[Timeline, tuple[Shift, ...]]:
    [line], [shifts] = some.lines, some.shifts
    return line, shifts


# --- where a level changes ------------------------------------------------------------


def test_a_new_level_begins_at_its_first_night() -> None:
    noise = random.Random(3)
    nights = [noise.gauss(0, 1) for _ in range(30)]
    changed = [noise.gauss(5, 1) for _ in range(20)]
    back = [noise.gauss(0, 1) for _ in range(30)]

    assert change_points([*nights, *changed], alpha=0.001) == (30,)
    assert change_points([*nights, *changed, *back], alpha=0.001) == (30, 50)


@pytest.mark.parametrize("before", [3, 5, 17, 18, 27])
@pytest.mark.parametrize("far", [2.0, 50.0])
def test_the_worst_night_before_a_change_is_not_its_first(
    before: int, far: float
) -> None:
    nights = [40.0 + night * 7.919 % 5 for night in range(30)]
    changed = [
        value * far if at >= before else value for at, value in enumerate(nights)
    ]
    assert change_points(changed, alpha=0.05) == (before,)
    assert change_points([-value for value in changed], alpha=0.05) == (before,)


@pytest.mark.parametrize("count", [0, 1, 5, 6, 40])
def test_nights_of_one_value_have_no_change(count: int) -> None:
    assert change_points([7.0] * count, alpha=0.05) == ()


def test_one_night_far_away_is_no_change() -> None:
    nights = [float(at % 7) for at in range(40)]
    nights[20] = 1e9
    assert change_points(nights, alpha=0.05) == ()


def test_equal_nights_have_a_change_as_rarely_as_promised() -> None:
    noise = random.Random(1)
    for count in (12, 30, 60):
        # Any distribution: only the order of nights counts.
        found = sum(
            bool(
                change_points([noise.paretovariate(1) for _ in range(count)], alpha=0.1)
            )
            for _ in range(200)
        )
        assert found <= 30  # of 20 that are allowed, and their scatter


def test_a_larger_family_costs_more() -> None:
    assert penalty_of(40, 0.05 / 120) > penalty_of(40, 0.05) > penalty_of(10, 0.05)


# --- a series over time ---------------------------------------------------------------


@pytest.mark.slow
def test_a_change_is_named_with_its_night_and_its_kernel(tmp_path: Path) -> None:
    place = tmp_path / "nights"
    lab(place, 20, boards=("a", "b"))
    for night in range(20, 35):
        for number, worst_ns in ((0, 40_000), (1, 90_000)):
            of_night = latencies(2 * night + number, worst_ns=worst_ns)
            board = "ab"[number]
            one = run(of_night, night=night, board=board, release="6.12.44")
            keep(place / f"night-{night}" / board, one)

    some = shown(place)
    assert some.shifts[0] == ()
    [shift] = [one for one in some.shifts[1] if one.figure == "max"]
    assert shift.at.night.directory == str(place / "night-20/b")
    assert shift.ratio == pytest.approx(92.5 / 42.5, rel=0.05)
    assert shift.changed == ("kernel 6.12.43 → 6.12.44",)
    assert "since 2026-11-21" in shift.sentence


def test_the_cause_of_the_new_worst_stands_beside_that_of_the_old(
    tmp_path: Path,
) -> None:
    place = tmp_path / "nights"
    lab(place, 20)
    for night in range(20, 35):
        keep(
            place / f"night-{night}/a",
            run(latencies(night, worst_ns=90_000), night=night),
        )
    shown(place)
    with database.opened(tmp_path / "history.db", make=True) as opened:
        opened.execute("UPDATE run SET cause = 'spinlock in foo' WHERE max_ns > 80000")
        opened.execute("UPDATE run SET cause = 'timer' WHERE max_ns < 80000")
        lines, _ = timelines(opened, Filters())
    [shift] = [one for one in shifts_of(lines)[0] if one.figure == "max"]
    assert "spinlock in foo, before: timer" in shift.sentence


def test_nights_that_do_not_compare_are_apart(tmp_path: Path) -> None:
    place = tmp_path / "nights"
    lab(place, 10)
    for night in range(10, 20):
        of_night = run(latencies(night, worst_ns=400_000), night=night, agent="0.2.0")
        keep(place / f"night-{night}/a", of_night)

    line, shifts = only(shown(place))
    assert shifts == ()
    assert [len(stretch) for stretch in line.stretches] == [10, 10]
    assert [at for at, point in enumerate(line.points) if point.begins] == [10]
    assert "not compared with nights before" in remarks_of(line.points[10])


def test_a_night_that_does_not_count_is_there_without_a_value(tmp_path: Path) -> None:
    place = tmp_path / "nights"
    lab(place, 2)
    died = replace(run(latencies(3), night=3), caveats=(make("load_died", "gone"),))
    keep(place / "night-03/a", died)

    some = shown(place)
    line, _ = only(some)
    assert [point.counts for point in line.points] == [True, True, False]
    assert line.points[2].max_ns is None
    assert "does not count" in remarks_of(line.points[2])[0]
    assert show_document(some).blocks


def test_a_level_of_a_virtual_board_ends_where_a_night_is_beyond_it(
    tmp_path: Path,
) -> None:
    place = tmp_path / "nights"
    for night in range(5):
        worst_ns = 400_000 if night > 2 else 40_000
        release = "6.12.44" if night > 2 else "6.12.43"
        made = run(latencies(night, worst_ns=worst_ns), night=night, release=release)
        keep(place / f"night-{night:02}/a", on_board(made))
    line, shifts = only(shown(place))
    [shift] = [one for one in shifts if one.figure == "max"]

    assert line.virtual
    assert (shift.at.day, len(shift.before), len(shift.after)) == ("2026-11-04", 3, 2)
    assert shift.changed == ("kernel 6.12.43 → 6.12.44",)
    assert 8 < shift.ratio < 12
    assert "virtual µs" in shift.sentence


def test_two_nights_of_one_day_are_told_apart_by_their_time(tmp_path: Path) -> None:
    place = tmp_path / "nights"
    lab(place, 2)
    later = replace(run(latencies(7), night=1), started_at="2026-11-02T14:30:00Z")
    keep(place / "night-01b/a", later)
    line, _ = only(shown(place))

    assert [point.day for point in line.points] == [
        *("2026-11-01", "2026-11-02 02:00", "2026-11-02 14:30"),
    ]


def test_a_caveat_of_every_night_is_said_once(tmp_path: Path) -> None:
    place = tmp_path / "nights"
    usual, rare = make("short_run", "1 s"), make("page_faults", "3")
    for night in range(3):
        one = run(latencies(night), night=night)
        own = (usual, rare) if night == 2 else (usual,)
        keep(place / f"night-{night:02}/a", replace(one, caveats=own))
    some = shown(place)
    line, _ = only(some)
    printed = "".join(map(str, show_blocks(some, nights=9)))
    chart = next(b for b in _flat(show_document(some).blocks) if isinstance(b, Chart))

    assert "short_run" in line.usual_caveats
    assert [remarks_of(point, line.usual_caveats) for point in line.points] == [
        *([], [], ["caveat page_faults"]),
    ]
    assert printed.count("short_run") == 1
    assert str(chart.markup).count("var(--paper") == 1  # one dot is hollow


def _flat(blocks: Sequence[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        if isinstance(block, Section):
            yield from _flat(block.blocks)


@pytest.mark.parametrize(
    ("low_us", "high_us", "first", "most"),
    [(5.3, 9.8, 5.5, 12), (7.0, 18.0, 7.0, 12), (1.0, 60.0, 1.0, 12), (1, 9e4, 1, 12)],
)
def test_an_axis_of_any_length_names_some_latencies(
    low_us: float, high_us: float, first: float, most: int
) -> None:
    ticks = [ns / 1000 for ns in ticks_ns(low_us * 1000, high_us * 1000)]

    assert 3 <= len(ticks) <= most
    assert ticks[0] == pytest.approx(first)
