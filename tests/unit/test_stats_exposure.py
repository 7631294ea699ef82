"""Exposure: known answers of the exact Poisson limits."""

import math

import pytest
from scipy.special import betaincinv, gammaincinv
from scipy.stats import nbinom

from fakes.measurements import thread
from rtscope.contract import ThreadResult
from rtscope.stats.exposure import (
    RUN_VARIATION,
    Watched,
    effective_runs,
    limits_over_runs,
    lower_limit,
    rate_limits_per_hour,
    supported_interval_ns,
    upper_limit,
    watched,
)

MINUTE = 60 * 10**9
HOUR = 60 * MINUTE


@pytest.mark.parametrize(
    ("events", "limit"),
    [(0, 2.996), (1, 4.744), (2, 6.296), (3, 7.754), (4, 9.154), (5, 10.51)],
)
def test_upper_limits_at_95_percent(events: int, limit: float) -> None:
    assert upper_limit(events) == pytest.approx(limit, abs=0.005)


@pytest.mark.parametrize(("events", "limit"), [(0, 4.605), (1, 6.638), (5, 13.11)])
def test_upper_limits_at_99_percent(events: int, limit: float) -> None:
    assert upper_limit(events, confidence=0.99) == pytest.approx(limit, abs=0.005)


def test_the_lower_limit_solves_the_poisson_equation() -> None:
    m = lower_limit(2)
    assert 1 - math.exp(-m) * (1 + m) == pytest.approx(0.05)


def test_no_event_has_no_lower_limit() -> None:
    assert lower_limit(0) == 0


def test_one_episode_when_stopped_at_it_gives_the_published_interval() -> None:
    low, _ = rate_limits_per_hour(1, HOUR, confidence=0.975)
    _, high = rate_limits_per_hour(0, HOUR, confidence=0.975)
    assert (low, high) == pytest.approx((0.0253, 3.69), abs=0.005)


def test_rates_are_per_hour_whatever_the_exposure() -> None:
    low, high = rate_limits_per_hour(3, 2 * HOUR)
    assert (2 * low, 2 * high) == pytest.approx((0.8177, 7.754), abs=0.001)
    assert low * 2 == pytest.approx(lower_limit(3))


def test_nothing_seen_for_no_time_excludes_nothing() -> None:
    assert rate_limits_per_hour(0, 0) == (0, math.inf)


def test_10_minutes_without_a_miss_support_fewer_than_one_per_3_3_minutes() -> None:
    assert supported_interval_ns(0, 10 * MINUTE) / MINUTE == pytest.approx(3.338, 1e-3)


@pytest.mark.parametrize(("seen", "hours"), [(0, 3.0), (1, 4.7), (2, 6.3)])
def test_hours_to_run_for_a_claim_of_one_per_hour(seen: int, hours: float) -> None:
    assert upper_limit(seen) == pytest.approx(hours, abs=0.05)


def test_the_exposure_needed_supports_the_claim_and_a_ns_less_does_not() -> None:
    needed = math.ceil(HOUR * upper_limit(0))
    assert supported_interval_ns(0, needed) >= HOUR
    assert supported_interval_ns(0, needed - 3) < HOUR


@pytest.mark.parametrize(
    ("runs", "limit"), [(1, 19), (4, 4.459), (10, 3.493), (10_000, 2.996)]
)
def test_the_limit_over_runs_without_an_event(runs: float, limit: float) -> None:
    # R (20^(1/R) - 1), from (1 + m/R)^-R = 0.05
    low, high = limits_over_runs(0, runs=runs)
    assert low == 0
    assert high == pytest.approx(limit, rel=1e-3)


def test_the_lower_limit_over_one_run_is_that_of_a_geometric_count() -> None:
    # m / (1 + m) = 0.05
    low, _ = limits_over_runs(1, runs=1)
    assert low == pytest.approx(1 / 19)


def test_limits_over_runs_enclose_those_of_one_rate_and_approach_them() -> None:
    few, many = (limits_over_runs(5, runs=runs) for runs in (3, 1e6))
    assert few[0] < many[0] == pytest.approx(lower_limit(5), rel=1e-3)
    assert few[1] > many[1] == pytest.approx(upper_limit(5), rel=1e-3)


def test_dispersed_events_have_the_limits_of_their_clusters() -> None:
    assert upper_limit(20, dispersion=10) == pytest.approx(10 * upper_limit(2))
    assert lower_limit(20, dispersion=10) == pytest.approx(10 * lower_limit(2))


def test_a_long_run_beside_short_ones_is_hardly_more_than_one() -> None:
    assert effective_runs([5, 5, 5, 5]) == 4
    assert effective_runs([100, 1, 1]) == pytest.approx(1.04, abs=0.01)
    assert effective_runs([]) == effective_runs([0]) == 1


@pytest.mark.parametrize("runs", [1.0, 2.5, 40.0])
def test_limits_without_an_event_are_those_of_the_general_formula(runs: float) -> None:
    """They are closed, so that a report without misses does not load scipy."""
    shape = runs / RUN_VARIATION**2
    upper = betaincinv(shape, 1, 1 - 0.95)

    assert upper_limit(0) == pytest.approx(gammaincinv(1, 0.95), rel=1e-12)
    lowest, highest = limits_over_runs(0, runs=runs)
    assert lowest == 0
    assert highest == pytest.approx(shape * (1 - upper) / upper, rel=1e-12)


def test_the_time_of_each_cpu_is_added_up_over_runs() -> None:
    def run(first: int, second: int) -> list[ThreadResult]:
        return [thread([9] * first), thread([-9] + [9] * second, cpu=1)]

    assert watched([run(5, 6), run(7, 3)]) == Watched(
        least_ns=11 * 10**6, longest_ns=12 * 10**6, fewest_wakeups=9
    )


def test_runs_without_threads_watched_nothing() -> None:
    assert watched([]) == watched([[], []]) == Watched(0, 0, 0)


def test_runs_of_other_threads_are_not_added_up() -> None:
    with pytest.raises(ValueError, match="shorter"):
        watched([[thread([9]), thread([9], cpu=1)], [thread([9])]])


@pytest.mark.parametrize(("runs", "events"), [(4, 1), (4, 6), (9, 3)])
def test_at_the_limits_over_runs_the_count_has_a_probability_of_a_twentieth(
    runs: int, events: int
) -> None:
    low, high = limits_over_runs(events, runs=runs)

    # scipy's has p of a success before `runs` failures; its mean is runs (1 - p) / p.
    assert nbinom.cdf(events, runs, runs / (runs + high)) == pytest.approx(0.05)
    assert nbinom.sf(events - 1, runs, runs / (runs + low)) == pytest.approx(0.05)


def test_clustered_events_widen_the_limits_over_runs_by_their_dispersion() -> None:
    narrow = limits_over_runs(3, runs=5)
    wide = limits_over_runs(6, runs=5, dispersion=2.0)

    assert wide == pytest.approx((2 * narrow[0], 2 * narrow[1]))
