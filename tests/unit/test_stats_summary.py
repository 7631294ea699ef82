"""Figures of a summary, against known answers and against the raw values."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fakes.measurements import thread
from rtscope.contract import bucket_low_ns
from rtscope.host.errors import MeasurementError
from rtscope.stats.summary import (
    Summary,
    observed_ns,
    population_stdev,
    resolvable,
    summarize,
    summarize_samples,
)

LATENCIES = st.lists(st.integers(0, 2**36), min_size=1, max_size=60)


def percentiles(summary: Summary, *pcts: float) -> list[int | None]:
    return [summary.ranks.percentile_ns(pct) for pct in pcts]


def test_population_stdev_of_4_4_6_6_is_1() -> None:
    assert summarize([thread([4, 4, 6, 6])]).stdev_ns == 1


def test_stdev_of_huge_equal_values_is_0_and_not_a_rounding_error() -> None:
    assert summarize([thread([10**9 + 1] * 3, interval_ns=2 * 10**9)]).stdev_ns == 0


def test_sums_that_no_numbers_can_have_give_0_and_no_crash() -> None:
    assert population_stdev(2, 10, sum_sq=1) == 0


def test_no_samples_is_a_failed_measurement_and_not_a_zero_latency() -> None:
    with pytest.raises(MeasurementError, match="no samples"):
        summarize([thread([])])


def test_no_threads_is_a_failed_measurement() -> None:
    with pytest.raises(MeasurementError, match="no samples"):
        summarize([])


def test_only_early_wakeups_are_no_samples() -> None:
    with pytest.raises(MeasurementError, match="no samples"):
        summarize([thread([-5, -5])])


@pytest.mark.parametrize("lost", ["min_ns", "max_ns"])
def test_a_damaged_thread_without_an_extreme_is_a_failed_measurement(lost: str) -> None:
    with pytest.raises(MeasurementError, match="no samples"):
        summarize([replace(thread([10, 20]), **{lost: None})])  # type: ignore[arg-type]


def test_early_wakeups_are_counted_and_in_no_figure() -> None:
    s = summarize([thread([-1_000, 10, 20])])
    assert (s.samples, s.early, s.min_ns, s.mean_ns) == (3, 1, 10, 15)


def test_a_thread_without_samples_does_not_hide_the_others() -> None:
    s = summarize([thread([10]), replace(thread([], cpu=1), end_ns=0, start_ns=0)])
    assert (s.samples, s.min_ns, s.max_ns) == (1, 10, 10)


def test_skipped_activations_are_in_no_mean_but_the_one_that_says_so() -> None:
    # 2.5 intervals late: two skipped, implied lateness 1.5 and 0.5 ms
    s = summarize([thread([500_000, 2_500_000])])
    assert (s.missed_periods, s.overruns) == (2, 1)
    assert s.mean_ns == 1_500_000
    assert (
        s.mean_with_missed_periods_ns == (500_000 + 2_500_000 + 1_500_000 + 500_000) / 4
    )


def test_a_machine_was_observed_for_the_time_of_the_longest_thread() -> None:
    assert observed_ns([thread([1] * 5), thread([1] * 3, cpu=1)]) == 5_000_000


@pytest.mark.parametrize(
    ("samples", "pct", "expected"),
    [
        (4, 50, False),
        (5, 50, True),
        (100_000, 99.99, True),
        (100_000, 99.999, False),
        (1_200_000, 99.999, True),
        (1_200_000, 99.9999, False),
        (2_995_730, 99.9999, False),
        (2_995_731, 99.9999, True),
        (0, 50, False),
    ],
)
def test_a_percentile_is_resolvable_if_an_order_statistic_limits_it(
    samples: int, pct: float, expected: bool
) -> None:
    assert resolvable(pct, samples) is expected


def test_too_few_samples_give_no_percentile() -> None:
    assert percentiles(summarize([thread([7] * 100)]), 50, 99) == [7, None]


def test_a_percentile_is_the_nearest_rank_and_not_interpolated() -> None:
    s = summarize([thread(list(range(1, 1001)))])
    assert percentiles(s, 50, 99, 99.7) == [500, 990, 997]


def test_the_lowest_percentile_is_the_least_sample() -> None:
    assert percentiles(summarize([thread(list(range(1, 21)))]), 5, 10) == [1, 2]


def test_a_percentile_bucket_is_clipped_to_minimum_and_maximum() -> None:
    value = (1 << 20) + 5  # its bucket spans 1024 ns
    assert percentiles(summarize([thread([value] * 9, interval_ns=10**9)]), 50) == [
        value
    ]


def test_a_percentile_among_the_samples_beyond_17_s_says_so() -> None:
    latencies = [100] + [2**34 + 7] * 9
    s = summarize([thread(latencies, interval_ns=2**40)])
    assert s.overflow == 9
    assert percentiles(s, 50) == [2**34 + 7]


@given(LATENCIES)
@example([0, 0, 2**34, 2**34, 2**34 + 2**24])
def test_figures_are_those_of_the_raw_values(latencies: list[int]) -> None:
    s = summarize([thread(latencies, interval_ns=2**40)])
    mean = Fraction(sum(latencies), len(latencies))
    variance = sum((x - mean) ** 2 for x in latencies) / len(latencies)
    assert (s.min_ns, s.max_ns) == (min(latencies), max(latencies))
    assert s.mean_ns == float(mean)
    assert s.stdev_ns == math.sqrt(variance)
    if len(latencies) >= 5:
        median = sorted(latencies)[math.ceil(len(latencies) / 2) - 1]
        (found,) = percentiles(s, 50)
        assert found is not None
        assert median <= found
        # All samples beyond 17 s are in one bucket.
        if median < 2**34:
            assert bucket_low_ns(found) == bucket_low_ns(median) <= median


@given(st.lists(st.integers(-(2**20), 2**36), min_size=1, max_size=60))
def test_samples_in_no_buckets_have_exact_figures(samples: list[int]) -> None:
    s = summarize_samples(samples * 20)
    mean = Fraction(sum(samples), len(samples))
    variance = sum((x - mean) ** 2 for x in samples) / len(samples)
    in_order = sorted(samples)
    assert (s.samples, s.min_ns, s.max_ns) == (
        20 * len(samples),
        in_order[0],
        in_order[-1],
    )
    assert s.mean_ns == float(mean)
    assert s.stdev_ns == math.sqrt(variance)
    assert percentiles(s, 50) == [in_order[math.ceil(len(samples) / 2) - 1]]


@given(LATENCIES, LATENCIES)
def test_two_threads_give_what_one_with_all_samples_gives(
    a: list[int], b: list[int]
) -> None:
    interval_ns = 2**30
    both = summarize(
        [thread(a, interval_ns=interval_ns), thread(b, interval_ns=interval_ns)]
    )
    one = summarize([thread(a + b, interval_ns=interval_ns)])
    assert both == one
