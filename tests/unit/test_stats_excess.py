"""What two samples support about their tails: counts beyond the better maximum."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.measurements import record, thread
from rtscope.record.model import RunRecord
from rtscope.stats.excess import excess

US, MS = 1_000, 1_000_000


def run(
    late_us: dict[int, int], *, samples: int = 1_000, worst_kept: int = 1024
) -> RunRecord:
    """Wake-ups of 5 us every ms, but for those late (place: latency)."""
    latencies = [late_us.get(i, 5) * US for i in range(samples)]
    return record([thread(latencies, worst_kept=worst_kept)])


def test_the_worse_side_is_counted_in_episodes_beyond_the_better_maximum() -> None:
    # 10 and 11 are one episode: closer than ten intervals
    # and as late as the better maximum is not later
    worse = run({10: 300, 11: 200, 300: 80, 500: 90, 900: 60})
    better = run({3: 80})
    found = excess([worse], [better])
    assert found is not None
    assert (found.threshold_ns, found.episodes, found.exact) == (80 * US, 2, True)
    assert found.worse_ns == worse.result.end_ns - worse.result.start_ns
    assert found.chance == pytest.approx(2 * 0.5**2)
    # lower limit of 2 is 0.355, upper limit of 0 is 3.0 (stats.md 5.1)
    assert found.at_least_every_ns == pytest.approx(found.worse_ns / 0.3554, rel=1e-3)
    assert found.less_than_every_ns == pytest.approx(found.better_ns / 2.996, rel=1e-3)


def test_of_two_equal_samples_one_episode_more_shows_nothing() -> None:
    found = excess([run({10: 300})], [run({10: 299})])
    assert found is not None
    assert found.chance == 1


@pytest.mark.parametrize("worse", [{10: 80}, {10: 79}, {}])
def test_a_side_that_was_never_later_has_no_excess(worse: dict[int, int]) -> None:
    assert excess([run(worse)], [run({3: 80})]) is None


def test_a_side_without_a_sample_has_no_excess() -> None:
    assert excess([run({3: 80})], [record([thread([])])]) is None


def test_episodes_whose_times_were_not_kept_are_at_least_so_many() -> None:
    late = {i: 200 + i for i in range(0, 1_000, 100)}
    found = excess([run(late, worst_kept=3)], [run({3: 80})])
    assert found is not None
    assert (found.episodes, found.exact) == (3, False)


def test_a_skipped_activation_is_no_latency_beyond_a_maximum() -> None:
    better = record([thread([5 * US] * 500 + [9 * MS])])
    worse = record([thread([5 * US] * 400 + [7 * MS] + [5 * US] * 90 + [12 * MS])])
    found = excess([worse], [better])
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
    one, other = excess([a], [b]), excess([b], [a])
    assert one is None or other is None
    for found in (one, other):
        if found is not None:
            assert 1 <= found.episodes <= 20
            assert 0 < found.chance <= 1
