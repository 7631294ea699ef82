"""Every miss is counted and none guessed away; so are episodes beyond a maximum."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.measurements import record, thread, ticks_of
from rtscope.contract import Wakeup
from rtscope.record.model import RunRecord
from rtscope.stats.episodes import (
    Excess,
    Misses,
    decluster,
    excess,
    late_samples,
    misses_of,
)
from rtscope.stats.summary import observed_ns

US, MS = 1_000, 1_000_000


def test_a_wakeup_at_the_deadline_is_in_time() -> None:
    assert late_samples(thread([100, 200, 200]), 200) == (0, 0)


def test_a_wakeup_1_ns_after_the_deadline_is_a_miss() -> None:
    assert late_samples(thread([100, 200, 201]), 200) == (1, 0)


def test_the_worst_list_resolves_the_bucket_of_the_deadline() -> None:
    # 200,000 to 200,003 ns lie in one bucket of 128 ns
    t = thread([1, 200_000, 200_001, 200_002, 200_003])
    assert late_samples(t, 200_001) == (2, 0)


def test_what_cannot_be_resolved_counts_as_a_miss_and_is_ambiguous() -> None:
    t = thread([1, 200_000, 200_001, 200_002, 200_003], worst_kept=1)
    assert late_samples(t, 200_001) == (4, 3)


def test_a_worst_list_that_reaches_below_the_deadline_resolves_everything() -> None:
    t = thread([200_000] * 5 + [200_002], worst_kept=2)
    assert late_samples(t, 200_001) == (1, 0)


def test_a_worst_list_that_ends_at_the_deadline_resolves_everything() -> None:
    t = thread([200_001] * 5 + [200_002], worst_kept=2)
    assert late_samples(t, 200_001) == (1, 0)


@pytest.mark.parametrize(("deadline_ns", "found"), [(200_063, 1), (200_062, 2)])
def test_a_bucket_that_ends_at_the_deadline_is_in_time(
    deadline_ns: int, found: int
) -> None:
    t = thread([1, 200_000, 300_000], worst_kept=1)  # bucket of 199,936 to 200,063
    assert late_samples(t, deadline_ns) == (found, found - 1)


def test_known_wakeups_of_other_buckets_do_not_resolve_this_one() -> None:
    # all in buckets of 128 ns from 199,936 and 200,064
    t = thread([1, 200_000, 200_010, 200_063, 200_064], worst_kept=2)
    assert late_samples(t, 200_005) == (4, 2)


def test_if_the_minimum_is_a_miss_all_are() -> None:
    assert late_samples(thread([-7, 200_005] * 3, worst_kept=0), 200_001) == (3, 0)


def test_wakeups_beyond_the_buckets_are_misses() -> None:
    t = thread([1, 2**35, 2**36], interval_ns=2**40, worst_kept=0)
    assert late_samples(t, 10**6) == (2, 0)
    assert late_samples(t, 2**35) == (2, 2)


def test_no_samples_have_no_misses() -> None:
    assert misses_of(record([thread([])]), 5) == Misses(0, 0, 0, 0, True)


def test_an_activation_skipped_by_a_wakeup_in_time_is_no_miss() -> None:
    # the interval is 1 ms: what a wake-up 1.5 ms late skipped was 0.5 ms late
    m = misses_of(record([thread([10, 1_500_000])]), 2 * MS)
    assert m == Misses(0, 0, 0, 0, True)


def test_a_deadline_of_a_second_is_not_missed_by_12_ms() -> None:
    t = thread([10, 12_800_000, 10], worst_kept=0)
    assert misses_of(record([t]), 1000 * MS) == Misses(0, 0, 0, 0, True)


def test_only_the_activations_that_late_wakeups_skipped_are_missed() -> None:
    t = thread([10, 3_500_000, 10, 1_500_000, 10])
    assert misses_of(record([t]), 2 * MS) == Misses(1, 3, 0, 1, True)


def test_activations_that_unknown_wakeups_skipped_stay_misses_and_are_ambiguous() -> (
    None
):
    # 2.1 and 3.5 ms are late, 1.5 ms is not, but only the worst has its time
    t = thread([10, 3_500_000, 10, 1_500_000, 10, 2_100_000], worst_kept=1)
    m = misses_of(record([t]), 2 * MS)
    assert (m.late_samples, m.missed_periods, m.ambiguous) == (2, 6, 3)
    assert not m.episodes_exact


def test_below_one_interval_every_skipped_activation_is_a_miss_for_certain() -> None:
    t = thread([10, 3_500_000, 10, 1_500_000], worst_kept=1)
    m = misses_of(record([t]), 500_000)
    assert (m.missed_periods, m.ambiguous) == (4, 0)


def test_a_late_last_wakeup_with_nothing_left_to_skip_is_no_miss() -> None:
    m = misses_of(record([thread([10, 1_500_000], activations=2)]), 2 * MS)
    assert m == Misses(0, 0, 0, 0, True)


def test_misses_of_two_cpus_at_the_same_time_are_one_episode() -> None:
    latencies = [10, 10, 300_000, 10]
    m = misses_of(record([thread(latencies), thread(latencies, cpu=1)]), 200_000)
    assert (m.total, m.episodes, m.episodes_exact) == (2, 1, True)


def test_misses_far_apart_are_episodes_of_their_own() -> None:
    m = misses_of(record([thread([300_000, *[10] * 20, 300_000, 300_000])]), 200_000)
    assert (m.total, m.episodes) == (3, 2)


@pytest.mark.parametrize(("start", "episodes"), [(60, 1), (61, 2)])
def test_the_gap_runs_from_the_end_of_the_last_wakeup(
    start: int, episodes: int
) -> None:
    first = Wakeup(0, 1, 0, 50)
    inside = Wakeup(1, 1, 10, 20)
    assert decluster([Wakeup(0, 2, start, 99), inside, first], 10) == episodes


@pytest.mark.parametrize(
    ("interval_ns", "quiet", "episodes"),
    [
        (100_000, 99, 1),  # 10 intervals are 1 ms: 10 ms count
        (100_000, 103, 2),
        (2 * MS, 9, 1),  # 10 intervals are 20 ms and count
        (2 * MS, 10, 2),
    ],
)
def test_the_gap_is_ten_intervals_or_10_ms_whichever_is_longer(
    interval_ns: int, quiet: int, episodes: int
) -> None:
    latencies = [20_500, *[10] * quiet, 20_500]
    m = misses_of(record([thread(latencies, interval_ns=interval_ns)]), 20_000)
    assert (m.episodes, m.episodes_exact) == (episodes, True)


def test_a_wakeup_at_the_deadline_is_no_episode() -> None:
    m = misses_of(record([thread([200_000, *[10] * 20, 200_001])]), 200_000)
    assert m == Misses(1, 0, 0, 1, True)


def test_a_wakeup_one_interval_late_is_in_time_for_a_deadline_of_one() -> None:
    m = misses_of(record([thread([10, MS, 10])]), MS)
    assert m == Misses(0, 0, 0, 0, True)


def test_without_all_wakeups_the_seconds_apart_with_a_miss_are_counted() -> None:
    latencies = [10] * 60
    latencies[38] = 200_000  # in time, but in the bucket of the deadline
    for k in (2, 3, 12, 27, 48):  # seconds 1, 1, 2, 3, 5
        latencies[k] = 300_000
    whole = thread(latencies, interval_ns=90 * MS)
    cut = replace(whole, worst=whole.worst[:1])
    ticks = ticks_of([whole])
    m = misses_of(record([cut], ticks=ticks), 200_000)
    assert (m.late_samples, m.ambiguous) == (6, 1)
    assert (m.episodes, m.episodes_exact) == (2, False)


def test_what_is_unknown_may_join_known_episodes_and_no_more_of_them() -> None:
    # four known 100 ms apart, the first two 21 ms: two unknown may join these
    known = [20_500, *[10] * 20, 20_501, *[10] * 99, 20_502, *[10] * 99, 20_503]
    for unknown, fewest in ((1, 4), (2, 3), (10, 3), (11, 2), (20, 1)):
        t = thread([*known, *[20_400] * unknown], worst_kept=4)
        m = misses_of(record([t]), 20_000)
        assert (m.episodes, m.episodes_exact) == (fewest, False), unknown


@given(
    st.lists(st.sampled_from([10, 10, 10, 20_100, 20_400, 30_000]), max_size=120),
    st.integers(0, 20),
)
def test_episodes_that_are_not_exact_are_never_too_many(
    latencies: list[int], known: int
) -> None:
    whole = thread([10, *latencies], interval_ns=3 * MS)
    cut = replace(whole, worst=whole.worst[:known])
    ticks = ticks_of([whole])
    counted = misses_of(record([cut], ticks=ticks), 20_000)
    truth = misses_of(record([whole]), 20_000)
    assert truth.episodes_exact
    assert counted.episodes <= truth.episodes
    assert not counted.episodes_exact or counted == truth
    assert (counted.episodes > 0) is (truth.episodes > 0)


def test_episodes_have_their_times_since_the_start_of_the_run() -> None:
    m = misses_of(record([thread([10, 300_000, *[10] * 20, 300_000])]), 200_000)
    assert m.starts_ns == (2 * MS, 23 * MS)


def test_misses_without_times_or_ticks_are_one_episode_at_least() -> None:
    m = misses_of(record([thread([300_000] * 3, worst_kept=0)]), 200_000)
    assert (m.episodes, m.episodes_exact) == (1, False)


@given(
    st.lists(st.integers(0, 3_000), min_size=1, max_size=40),
    st.integers(0, 3_000),
    st.integers(0, 40),
)
def test_certain_and_ambiguous_misses_enclose_the_truth(
    latencies: list[int], deadline_ns: int, known: int
) -> None:
    truth = sum(x > deadline_ns for x in latencies)
    most, ambiguous = late_samples(thread(latencies, worst_kept=known), deadline_ns)
    assert most - ambiguous <= truth <= most
    if known >= len(latencies):
        assert (most, ambiguous) == (truth, 0)


# --- one side beyond the other's maximum ---------------------------------------------


def run(
    late_us: dict[int, int], *, samples: int = 1_000, worst_kept: int = 1024
) -> RunRecord:
    """Wake-ups of 5 us every ms, but for those late (place: latency)."""
    latencies = [late_us.get(i, 5) * US for i in range(samples)]
    return record([thread(latencies, worst_kept=worst_kept)])


def excess_of(worse: RunRecord, better: RunRecord) -> Excess | None:
    """Count the episodes of one run beyond the maximum of another."""
    return excess(
        [worse],
        threshold_ns=better.max_ns or 0,
        worse_ns=observed_ns(worse.result.threads),
        better_ns=observed_ns(better.result.threads),
    )


def test_the_worse_side_is_counted_in_episodes_beyond_the_better_maximum() -> None:
    # 10 and 11 are one episode: closer than ten intervals
    # and as late as the better maximum is not later
    worse = run({10: 300, 11: 200, 300: 80, 500: 90, 900: 60})
    better = run({3: 80})
    found = excess_of(worse, better)
    assert found is not None
    assert (found.threshold_ns, found.episodes, found.exact) == (80 * US, 2, True)
    assert found.worse_ns == worse.result.end_ns - worse.result.start_ns
    # lower limit of 2 is 0.355, upper limit of 0 is 3.0 (stats.md 5.1)
    assert found.at_least_every_ns == pytest.approx(found.worse_ns / 0.3554, rel=1e-3)
    assert found.less_than_every_ns == pytest.approx(found.better_ns / 2.996, rel=1e-3)


@pytest.mark.parametrize("worse", [{10: 80}, {10: 79}, {}])
def test_a_side_that_was_never_later_has_no_excess(worse: dict[int, int]) -> None:
    assert excess_of(run(worse), run({3: 80})) is None


@pytest.mark.parametrize("watched_ns", [(0, 1), (1, 0), (0, 0)])
def test_a_side_that_was_not_watched_has_no_excess(watched_ns: tuple[int, int]) -> None:
    worse_ns, better_ns = watched_ns
    late = [run({10: 300})]
    found = excess(late, threshold_ns=80, worse_ns=worse_ns, better_ns=better_ns)
    assert found is None


def test_episodes_whose_times_were_not_kept_are_at_least_so_many() -> None:
    late = {i: 200 + i for i in range(0, 1_000, 100)}
    found = excess_of(run(late, worst_kept=3), run({3: 80}))
    assert found is not None
    assert (found.episodes, found.exact) == (3, False)


def test_a_skipped_activation_is_no_latency_beyond_a_maximum() -> None:
    better = record([thread([5 * US] * 500 + [9 * MS])])
    worse = record([thread([5 * US] * 400 + [7 * MS] + [5 * US] * 90 + [12 * MS])])
    found = excess_of(worse, better)
    assert found is not None
    assert found.episodes == 1


@settings(deadline=None)  # scipy is loaded by the first example
@given(
    st.dictionaries(st.integers(0, 400), st.integers(6, 900), max_size=20),
    st.dictionaries(st.integers(0, 400), st.integers(6, 900), max_size=20),
)
def test_at_most_one_of_the_two_exceeds_the_other(
    first: dict[int, int], second: dict[int, int]
) -> None:
    a, b = (run(late, samples=401) for late in (first, second))
    one, other = excess_of(a, b), excess_of(b, a)
    assert one is None or other is None
    for found in (one, other):
        if found is not None:
            assert 1 <= found.episodes <= 20
