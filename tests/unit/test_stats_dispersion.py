"""The dispersion of episodes over runs and time: known answers and calibration."""

import numpy as np
import pytest

from rtscope.stats.exposure import DRAWS, NONE, PARTS, dispersion_of

HOUR = 3_600 * 10**9


@pytest.mark.parametrize("starts", [(), (5,)])
def test_fewer_than_two_episodes_have_no_dispersion(starts: tuple[int, ...]) -> None:
    assert dispersion_of([(HOUR, starts)]) == NONE


def test_no_time_has_no_dispersion() -> None:
    assert dispersion_of([(0, (1, 2))]) == NONE


def test_a_burst_has_its_size_as_dispersion() -> None:
    found = dispersion_of([(HOUR, tuple(range(8)))])
    assert found.factor == pytest.approx(8)
    assert found.significant


def test_evenly_spread_episodes_narrow_no_limit() -> None:
    starts = tuple(range(0, HOUR, HOUR // 100))
    for runs in ([(HOUR, starts)], [(HOUR, starts)] * 2):
        found = dispersion_of(runs)
        assert (found.factor, found.p, found.significant) == (1, 1, False)


def test_runs_that_differ_are_found_whatever_their_lengths() -> None:
    # 1 and 9 expected of 10: (9 - 1)² / 1 + (1 - 9)² / 9 = 71.1
    starts = tuple(range(0, 9 * HOUR, HOUR))
    found = dispersion_of([(HOUR, tuple(s // 9 for s in starts)), (9 * HOUR, (5,))])
    assert found.factor == pytest.approx(71.1, rel=0.01)
    assert found.significant


def test_the_last_moment_belongs_to_the_last_part() -> None:
    assert dispersion_of([(PARTS, (PARTS, PARTS + 7))]).factor == pytest.approx(2)


@pytest.mark.slow
def test_independent_episodes_are_seldom_called_clustered() -> None:
    rng = np.random.default_rng(1)
    said = 0
    for _ in range(200):
        runs = [
            (HOUR, tuple(int(x) for x in rng.integers(0, HOUR, size=rng.poisson(3))))
            for _ in range(4)
        ]
        said += dispersion_of(runs).significant
    assert said <= 0.05 * 200 + 3 * (200 * 0.05 * 0.95) ** 0.5


def test_no_drawn_spread_is_as_large_as_a_burst_and_p_counts_the_burst_itself() -> None:
    starts = tuple(range(20))

    assert dispersion_of([(HOUR, starts)]).p == 1 / (DRAWS + 1)
    # Over runs and over time: the smaller p, twice.
    assert dispersion_of([(HOUR, starts), (HOUR, ())]).p == 2 / (DRAWS + 1)


def test_two_episodes_are_in_one_part_as_often_as_there_are_parts() -> None:
    assert dispersion_of([(HOUR, (5, 6))]).p == pytest.approx(1 / PARTS, rel=0.1)
