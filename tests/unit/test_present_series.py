import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.measurements import thread, ticks_of
from rtscope.present.model.charts import (
    MAX_DRAWN_CPUS,
    cpu_colours,
    histogram_of,
    thinned,
)
from rtscope.present.model.overtime import MAX_TIME_STEPS, maxima_over_time


@given(st.lists(st.integers(0, 5_000_000_000), min_size=1, max_size=60))
def test_every_sample_is_in_a_bin_and_the_maximum_in_the_last_one_filled(
    latencies_ns: list[int],
) -> None:
    threads = [thread(latencies_ns, interval_ns=10_000_000_000)]
    histogram = histogram_of(threads, cpu_colours(threads))

    assert histogram is not None
    assert sum(histogram.merged) == len(latencies_ns)
    last = max(i for i, count in enumerate(histogram.merged) if count)
    assert histogram.edges_ns[last] <= max(*latencies_ns, 1) * (1 + 1e-9)
    assert max(latencies_ns) < histogram.edges_ns[last + 1] * 1.001


def test_cpus_add_up_to_the_merged_histogram() -> None:
    threads = [thread([3_000, 4_000, 90_000], cpu=0), thread([3_500, 4_000], cpu=1)]
    histogram = histogram_of(threads, cpu_colours(threads))

    assert histogram is not None
    assert [
        a + b for a, b in zip(*(c.values for c in histogram.cpus), strict=True)
    ] == (list(histogram.merged))


def test_samples_beyond_the_buckets_are_drawn_in_the_last_bin() -> None:
    late = 20_000_000_000
    threads = [thread([3_000, late], interval_ns=2 * late)]
    histogram = histogram_of(threads, cpu_colours(threads))

    assert histogram is not None
    assert histogram.merged[-1] == 1
    assert histogram.max_ns == late


def test_a_narrow_distribution_gets_a_linear_axis_and_a_wide_one_a_logarithmic() -> (
    None
):
    narrow, wide = [thread([3_000, 9_000])], [thread([3_000, 900_000])]

    assert not histogram_of(narrow, cpu_colours(narrow)).logarithmic  # type: ignore[union-attr]
    assert histogram_of(wide, cpu_colours(wide)).logarithmic  # type: ignore[union-attr]


def test_no_sample_gives_no_histogram_instead_of_an_empty_one() -> None:
    threads = [thread([])]
    assert histogram_of(threads, cpu_colours(threads)) is None


@given(st.lists(st.integers(1, 10**10), min_size=1, max_size=200, unique=True))
def test_a_thinned_tail_keeps_its_end(x_ns: list[int]) -> None:
    x_ns.sort()
    probability = [(len(x_ns) - i) / len(x_ns) for i in range(len(x_ns))]
    tail = thinned(x_ns, probability)

    assert (tail.x_ns[-1], tail.probability[-1]) == (x_ns[-1], probability[-1])
    assert list(tail.x_ns) == sorted(tail.x_ns)


def test_only_the_cpus_with_the_highest_maxima_are_drawn_when_there_are_many() -> None:
    threads = [thread([1_000 + cpu], cpu=cpu) for cpu in range(64)]
    colours = cpu_colours(threads)

    assert list(colours) == list(range(64 - MAX_DRAWN_CPUS, 64))
    assert sorted(colours.values()) == list(range(MAX_DRAWN_CPUS))


def test_gathered_seconds_keep_the_maximum_and_the_skips() -> None:
    (tick,) = ticks_of([thread([5_000] * 1000)])
    ticks = [
        dataclasses.replace(
            tick,
            t_ns=(i + 1) * 10**9 + 76_903,
            cpus=(
                dataclasses.replace(
                    tick.cpus[0],
                    max_ns=777_000 if i == 430 else 5_000,
                    missed_periods=3 if i >= 500 else 0,
                ),
            ),
            freq_khz={0: 1_000_000 if i == 100 else 1_500_000},
            temp_mc={"soc": 50_000 + i},
        )
        for i in range(900)
    ]
    over_time = maxima_over_time(ticks, {0: 0})

    assert over_time is not None
    assert over_time.step_s == 900 // MAX_TIME_STEPS
    assert max(over_time.merged_ns) == over_time.merged_ns[430 // 3] == 777_000
    assert over_time.skipped_s == ((500 // 3 + 0.5) * 3,)
    assert min(over_time.ghz[0].values) == over_time.ghz[0].values[33] == 1.0
    assert over_time.sensor == "soc"
    assert over_time.celsius[-1] == pytest.approx(50.899)


def test_a_second_without_a_frequency_is_a_hole_and_not_a_zero() -> None:
    (tick,) = ticks_of([thread([5_000] * 1000)])
    ticks = [
        dataclasses.replace(tick, t_ns=10**9, freq_khz={0: 1_500_000}),
        dataclasses.replace(tick, t_ns=2 * 10**9),
    ]
    over_time = maxima_over_time(ticks, {0: 0})

    assert over_time is not None
    assert over_time.ghz[0].values[0] == 1.5
    assert math.isnan(over_time.ghz[0].values[1])


def test_without_ticks_nothing_is_over_time() -> None:
    assert maxima_over_time([], {0: 0}) is None
