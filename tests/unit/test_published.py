"""The published tables: figures as printed, and each note calculated again."""

import re
from collections.abc import Mapping

import pytest

from rtscope.host.errors import UsageError
from rtscope.host.units import format_duration
from rtscope.record.published import (
    KernelKind,
    Published,
    get_published,
    published_names,
)
from rtscope.stats.exposure import supported_interval_ns

US = 1_000
HALF = 500
"""A figure in whole microseconds may be rounded by so much."""

STARFIVE = ("starfive-visionfive2", "starfive-jh7110-devkit")
TALK = ("scheduler-talk-raspberry-pi-3bplus", "scheduler-talk-x86-64")


def note(table: Published, note_id: str) -> str:
    [said] = [n.says for n in table.notes if n.id == note_id]
    return said


def maxima(table: Published, kind: KernelKind) -> list[int]:
    return [f.max_ns // US for (_, k), f in table.rows.items() if k is kind]


@pytest.mark.parametrize("name", published_names())
def test_a_table_says_where_it_is_from_and_how_it_was_made(name: str) -> None:
    table = get_published(name)
    assert all((table.title, table.date, table.place, table.licence, table.machine))
    assert table.command.startswith("cyclictest ")
    assert f"-i{table.interval_ns // US}" in table.command.replace("-i ", "-i")
    assert {kind for _, kind in table.rows} == set(table.kernels)
    assert {load for load, _ in table.rows} == set(table.loads)


@pytest.mark.parametrize("name", published_names())
def test_minimum_average_and_maximum_are_in_order(name: str) -> None:
    for figures in get_published(name).rows.values():
        assert (figures.min_ns or 0) <= (figures.avg_ns or figures.max_ns)
        assert (figures.avg_ns or 0) <= figures.max_ns


@pytest.mark.parametrize("name", STARFIVE)
def test_deviations_are_possible_with_the_samples_of_four_cpus(name: str) -> None:
    table = get_published(name)
    samples = table.samples_per_cpu * (table.cpus or 0)
    for f in table.rows.values():
        assert f.min_ns is not None
        assert f.avg_ns is not None
        assert f.stdev_ns is not None
        assert f.stdev_ns - HALF <= (f.max_ns - f.min_ns) / 2
        least = (f.max_ns - f.avg_ns - 2 * HALF) / samples**0.5
        assert f.stdev_ns + HALF >= least


def test_what_was_not_published_is_none_and_never_zero() -> None:
    table = get_published("raspberry-pi-2018")
    figures = table.rows["idle", KernelKind.RT]
    assert (figures.min_ns, figures.stdev_ns) == (None, None)
    assert (figures.avg_ns, figures.max_ns) == (16_000, 147_000)


def test_a_fraction_of_a_microsecond_is_exact() -> None:
    table = get_published("scheduler-talk-raspberry-pi-3bplus")
    assert table.rows["stress", KernelKind.MAINLINE].avg_ns == 16_300


@pytest.mark.parametrize("name", ["", "starfive", "STARFIVE-visionfive2", "../x"])
def test_a_table_that_is_not_there_is_answered_with_all_names(name: str) -> None:
    with pytest.raises(UsageError, match=r"starfive-jh7110-devkit, starfive-vision"):
        get_published(name)


# --- the notes, calculated -------------------------------------------------------


@pytest.mark.parametrize("name", STARFIVE)
def test_ten_minutes_are_twelve_million_samples_and_not_one_point_two(
    name: str,
) -> None:
    table = get_published(name)
    assert table.claimed_samples == 1_200_000
    assert table.samples_per_cpu == 3_000_000
    assert table.samples_per_cpu * (table.cpus or 0) == 12_000_000
    for words in ("1.2 million", "3,000,000", "12,000,000"):
        assert words in note(table, "samples")


@pytest.mark.parametrize("name", STARFIVE)
def test_three_mainline_maxima_lie_beyond_the_histogram(name: str) -> None:
    table = get_published(name)
    beyond = [us for us in maxima(table, KernelKind.MAINLINE) if us > 200]
    assert (len(beyond), max(beyond)) == (3, 14_125)
    assert max(maxima(table, KernelKind.RT)) < 200
    assert "three mainline maxima" in note(table, "histogram_end")


def test_the_mainline_figures_of_both_boards_are_the_same() -> None:
    first, second = map(get_published, STARFIVE)
    same = {key for key, f in first.rows.items() if second.rows[key] == f}
    mainline = {key for key in first.rows if key[1] is KernelKind.MAINLINE}
    assert same == mainline | {("storage", KernelKind.RT)}
    assert len(mainline) * 4 == 20
    for table in (first, second):
        assert "the 20 figures" in note(table, "same_twice")
        assert "4 of PREEMPT_RT under storage" in note(table, "same_twice")


@pytest.mark.parametrize(
    ("name", "low", "high"), [(STARFIVE[0], 37, 95), (STARFIVE[1], 36, 130)]
)
def test_no_figure_of_preempt_rt_is_over_150_and_they_depend_on_the_load(
    name: str, low: int, high: int
) -> None:
    table = get_published(name)
    found = maxima(table, KernelKind.RT)
    assert (min(found), max(found)) == (low, high)
    assert high < 150
    assert f"is {high} us" in note(table, "not_in_table")
    assert f"from {low} to {high} us" in note(table, "load_matters")
    assert "oom" not in table.loads


@pytest.mark.parametrize("name", STARFIVE)
def test_ten_minutes_support_one_in_3_3_minutes(name: str) -> None:
    table = get_published(name)
    supported = format_duration(supported_interval_ns(0, table.duration_ns))
    assert supported == "3.3 min"
    assert supported in note(table, "exposure")


def test_fifty_million_cycles_take_longer_than_two_and_a_half_hours() -> None:
    table = get_published("raspberry-pi-2018")
    assert 50_000_000 * table.interval_ns == table.duration_ns
    assert format_duration(table.duration_ns) == "2 h 47 min"
    assert "2 h 47 min" in note(table, "hours")


@pytest.mark.parametrize(("name", "skipped"), [(TALK[0], 72), (TALK[1], 105)])
def test_so_late_a_wake_up_skips_activations(name: str, skipped: int) -> None:
    table = get_published(name)
    worst = max(f.max_ns for f in table.rows.values())
    assert worst // table.interval_ns == skipped
    assert worst > table.histogram_end_ns
    assert f"misses {skipped} periods" in note(table, "skipped")


def test_the_two_kernels_of_the_talk_are_of_different_releases() -> None:
    table = get_published(TALK[0])
    releases = {k.release.split("-")[0] for k in table.kernels.values()}
    assert releases == {"5.4.70", "5.4.51"}


BY_AVERAGE: Mapping[str, str] = {"raspberry-pi-2018": "idle", TALK[0]: "stress"}


@pytest.mark.parametrize("name", BY_AVERAGE)
def test_by_the_average_the_ordinary_kernel_is_better(name: str) -> None:
    table = get_published(name)
    rt, plain = (table.rows[BY_AVERAGE[name], kind] for kind in KernelKind)
    assert (plain.avg_ns or 0) < (rt.avg_ns or 0)
    assert plain.max_ns > rt.max_ns
    figures = [f"{f:g}" for f in ((plain.avg_ns or 0) / US, (rt.avg_ns or 0) / US)]
    said = note(table, "average")
    assert re.findall(r"\(([\d.]+) against ([\d.]+) us\)", said)[0] == tuple(figures)


def test_the_other_talk_table_has_no_preempt_rt() -> None:
    assert set(get_published(TALK[1]).kernels) == {KernelKind.MAINLINE}
