"""Distributions: as measured, and with the skipped activations put back."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.measurements import thread
from rtscope.contract import (
    bucket_width_ns,
    require,
)
from rtscope.stats.distribution import (
    Distribution,
    ccdf,
    distribution_of,
    with_skipped,
)


def counts(d: Distribution) -> dict[int, int]:
    return dict(zip(d.low_ns.tolist(), d.count.tolist(), strict=True))


def bucket(value_ns: int) -> int:
    return value_ns - value_ns % bucket_width_ns(value_ns)


def test_threads_are_added_up() -> None:
    d = distribution_of([thread([1, 2]), thread([2, 5000], cpu=1)])
    assert counts(d) == {1: 1, 2: 2, bucket(5000): 1}
    assert (d.total, d.beyond, d.max_ns) == (4, 0, 5000)


def test_no_samples_are_an_empty_distribution() -> None:
    d = distribution_of([])
    low_ns, left = ccdf(d)
    assert (d.total, d.max_ns, low_ns.size, left.size) == (0, 0, 0, 0)


def test_ccdf_starts_at_one_and_steps_down() -> None:
    low_ns, left = ccdf(distribution_of([thread([1, 2, 2, 2, 9, 9, 9, 9])]))
    assert low_ns.tolist() == [1, 2, 9]
    assert left.tolist() == [1, 0.875, 0.5]


def test_latencies_beyond_the_buckets_are_a_step_of_the_ccdf() -> None:
    low_ns, left = ccdf(distribution_of([thread([1, 2**34], interval_ns=2**40)]))
    assert low_ns.tolist() == [1, 2**34]
    assert left.tolist() == [1, 0.5]


def test_without_skips_nothing_is_added() -> None:
    threads = [thread([10, 999_999])]
    assert counts(with_skipped(threads)) == counts(distribution_of(threads))


def test_each_skipped_activation_gets_the_lateness_it_would_have_had() -> None:
    d = with_skipped([thread([50, 2_500], interval_ns=1_000)])
    assert counts(d) == {50: 1, bucket(2_500): 1, bucket(1_500): 1, 500: 1}


def test_the_last_skip_below_one_interval_is_not_left_out() -> None:
    assert counts(with_skipped([thread([1_000], interval_ns=1_000)])) == {0: 1, 1000: 1}


def test_the_end_of_the_grid_cuts_skips_off() -> None:
    t = thread([5_500], interval_ns=1_000, activations=3)
    assert t.missed_periods == 2
    assert counts(with_skipped([t])) == {bucket(x): 1 for x in (5500, 4500, 3500)}


def test_the_end_of_the_grid_cuts_off_the_last_skips_and_no_others() -> None:
    t = thread([1_500, 5_500], interval_ns=1_000, activations=4)
    expected = {bucket(x): 1 for x in (1_500, 500, 5_500, 4_500)}
    assert counts(with_skipped([t])) == expected


def test_an_unknown_wakeup_is_taken_at_the_upper_edge_of_its_bucket() -> None:
    t = thread([300_000] * 3 + [1_000_000], interval_ns=250_000, worst_kept=1)
    # 300,000 lies in the bucket of 299,776 to 300,031: 50,031 is implied
    added = counts(with_skipped([t]))
    assert added[bucket(50_031)] == 3
    assert with_skipped([t]).total == t.own.samples + require(t.missed_periods)


def test_an_unknown_wakeup_is_not_taken_above_the_known_ones() -> None:
    t = thread([300_000, 300_000], interval_ns=250_000, worst_kept=1)
    assert counts(with_skipped([t]))[bucket(50_000)] == 2


def test_skips_beyond_17_s_are_counted_beyond() -> None:
    d = with_skipped([thread([2**34 + 10**10], interval_ns=10**10)])
    assert d.beyond == 2
    assert d.total == 3


def test_skips_of_wakeups_that_are_not_among_the_worst_come_from_their_buckets() -> (
    None
):
    latencies = [5_500, 3_300, 2_200, 2_200, 70]
    whole = thread(latencies, interval_ns=1_000)
    d = with_skipped([replace(whole, worst=whole.worst[:1])])
    assert d.total == whole.own.samples + require(whole.missed_periods)
    assert counts(d)[bucket(4_500)] == 1
    assert sum(n for low, n in counts(d).items() if low < 1_000) == 1 + 4


def test_an_end_cut_off_from_unknown_wakeups_takes_the_smallest_skips() -> None:
    t = replace(thread([5_500], interval_ns=1_000, activations=3), worst=())
    d = with_skipped([t])
    assert d.total == 3
    assert min(d.low_ns.tolist()) > 3_400


def test_a_damaged_record_with_late_samples_that_are_not_late_adds_nothing() -> None:
    t = replace(thread([10, 20]), overruns=2, missed_periods=2, worst=())
    assert with_skipped([t]).total == 2


def test_a_hung_hour_takes_no_list_of_its_skips() -> None:
    hour = 3_600 * 10**9
    [w] = thread([hour], interval_ns=10**9).worst
    t = replace(
        thread([hour], interval_ns=10**9),
        interval_ns=1_000,
        missed_periods=hour // 1_000,
        end_ns=w.expiry_ns + hour,
    )
    d = with_skipped([t])
    assert d.total == 1 + hour // 1_000


@given(
    st.lists(st.integers(0, 30_000), min_size=1, max_size=30), st.integers(1_000, 9_000)
)
def test_correction_is_exact_for_known_wakeups(
    latencies: list[int], interval_ns: int
) -> None:
    t = thread(latencies, interval_ns=interval_ns)
    expected = Counter(
        bucket(x - j * interval_ns)
        for x in latencies
        for j in range(x // interval_ns + 1)
    )
    assert counts(with_skipped([t])) == expected


@given(
    st.lists(st.integers(0, 30_000), min_size=1, max_size=30),
    st.integers(1_000, 9_000),
    st.integers(0, 30),
    st.integers(0, 20),
)
def test_correction_adds_as_many_as_were_skipped(
    latencies: list[int], interval_ns: int, known: int, short: int
) -> None:
    whole = thread(latencies, interval_ns=interval_ns)
    due = whole.own.samples + require(whole.missed_periods)
    last = latencies[-1] // interval_ns
    t = thread(
        latencies,
        interval_ns=interval_ns,
        activations=due - min(short, last),
        worst_kept=known,
    )
    assert with_skipped([t]).total == t.own.samples + require(t.missed_periods)


@pytest.mark.parametrize("worst_kept", [0, 1, 5])
def test_late_samples_beyond_the_buckets_are_corrected_too(worst_kept: int) -> None:
    t = thread([2**34 + 5, 2**34], interval_ns=10**9, worst_kept=worst_kept)
    assert with_skipped([t]).total == t.own.samples + require(t.missed_periods)
    assert with_skipped([t]).beyond == 2
    assert with_skipped([t]).count.max() <= 2
