"""Cycles from runs whose numbers are known: period, misses, drift, percentiles."""

from collections.abc import Sequence

import pytest

from rtscope.stats.summary import buckets_of, summarize_samples
from rtscope.verbs.app.cycles import (
    CUT,
    GAP,
    NO_SLEEP,
    RELATIVE,
    Run,
    ThreadCycles,
    cycles_of,
)

MS = 1_000_000
TID = 7


def run(
    due_ns: int, *, latency: int = 20, ran: int = 100, flags: int = 0, armed: int = 0
) -> Run:
    in_ns = due_ns + latency
    out_ns = in_ns + ran
    return Run(
        TID, 0, armed or due_ns - MS, due_ns, due_ns + 10, in_ns, out_ns, ran, 0, flags
    )


def woken(at_ns: int, *, ran: int = 50) -> Run:
    return Run(TID, 0, 0, 0, at_ns, at_ns + 5, at_ns + 5 + ran, ran, 0, 0)


def cycles(runs: Sequence[Run]) -> ThreadCycles:
    found = cycles_of(runs)
    assert found is not None
    return found


def grid(*periods: int) -> list[Run]:
    return [run(number * MS) for number in periods]


def test_a_grid_is_a_period_that_nothing_misses() -> None:
    found = cycles(grid(*range(1, 101)))

    assert found.period is not None
    assert found.period.period_ns == MS
    assert found.period.absolute
    assert found.period.exact_share == 1.0
    assert found.period.missed == found.period.overruns == found.period.late_starts == 0
    assert found.period.drift_ns_per_s == 0.0
    assert found.latency.min_ns == found.latency.max_ns == 20
    assert found.execution.max_ns == 100
    assert found.response.max_ns == 120


def test_a_period_that_was_left_out_is_missed() -> None:
    found = cycles(grid(1, 2, 3, 4, 7, 8, 9, 10))

    assert found.period is not None
    assert found.period.missed == 2


def test_where_events_were_lost_nothing_is_missed() -> None:
    runs = [*grid(1, 2, 3, 4), run(7 * MS, flags=GAP), *grid(8, 9, 10)]

    found = cycles(runs)

    assert found.period is not None
    assert found.period.missed == 0
    assert found.period.exact_share == 1.0


def test_a_cycle_without_all_events_is_in_no_number_and_not_missed() -> None:
    cut = Run(TID, 0, 4 * MS, 5 * MS, 5 * MS + 9, 0, 6 * MS - 1, 0, 0, CUT)

    found = cycles([*grid(1, 2, 3, 4), cut, *grid(6, 7, 8)])

    assert found.period is not None
    assert found.period.missed == 0
    assert found.cut == 1
    assert found.cut_longest_ns == MS - 1
    assert found.latency.samples == len(found.cycles) == 7
    assert found.response.max_ns == 120


def test_a_cut_cycle_that_ends_too_late_is_an_overrun() -> None:
    cut = Run(TID, 0, 4 * MS, 5 * MS, 5 * MS + 9, 0, 6 * MS + 1, 0, 0, CUT)

    found = cycles([*grid(1, 2, 3, 4), cut, *grid(6, 7, 8)])

    assert found.period is not None
    assert found.period.overruns == 1


def test_a_cycle_that_lasts_longer_than_its_period_is_counted() -> None:
    late = run(3 * MS, ran=MS + 500)
    next_one = run(4 * MS, latency=MS, flags=NO_SLEEP)

    found = cycles([*grid(1, 2), late, next_one, *grid(5, 6, 7)])

    assert found.period is not None
    assert found.period.overruns == 2
    assert found.period.late_starts == 1
    assert found.period.missed == 0
    assert found.worst.begin_ns == 3 * MS


def test_a_sleep_for_an_interval_drifts_by_the_cycle() -> None:
    # It asks for 1 ms when it has run for 0.1 ms: each period is 1.1 ms.
    step = MS + MS // 10
    runs = [run(n * step, flags=RELATIVE, armed=n * step - MS) for n in range(1, 12)]

    period = cycles(runs).period

    assert period is not None
    assert not period.absolute
    assert period.period_ns == step
    assert period.drift_ns_per_s == pytest.approx(1e9 / 11)


def test_other_waits_are_a_part_of_the_cycle() -> None:
    runs = []
    for number in range(1, 9):
        runs += [run(number * MS), woken(number * MS + 400)]

    found = cycles(runs)

    assert len(found.cycles) == 8
    assert found.cycles[0].waits == 1
    assert found.cycles[0].response_ns == 455
    assert found.cycles[0].ran_ns == 150


def test_wake_ups_without_a_steady_timer_are_cycles_each() -> None:
    runs = [woken(at) for at in (100, 5000, 5600, 90_000, 91_000)]

    found = cycles(runs)

    assert found.period is None
    assert len(found.cycles) == 5
    assert found.latency.max_ns == 5


def test_a_timeout_that_expires_now_and_then_is_no_period() -> None:
    runs = [run(at * MS) for at in (1, 4, 5, 19, 23, 42, 43)]

    assert cycles(runs).period is None


def test_a_thread_that_did_not_wake_up_has_no_cycles() -> None:
    assert cycles_of([]) is None


@pytest.mark.parametrize(
    ("samples", "pct", "known"),
    [(4, 50, False), (5, 50, True), (298, 99, False), (299, 99, True)],
)
def test_a_percentile_needs_samples(samples: int, pct: float, known: bool) -> None:
    spread = summarize_samples(list(range(1, samples + 1)))

    assert (spread.ranks.percentile_ns(pct) is not None) is known


def test_a_percentile_is_a_sample() -> None:
    spread = summarize_samples(list(range(1000, 0, -1)))

    assert spread.ranks.percentile_ns(99) == 990
    assert spread.ranks.percentile_ns(50) == 500
    assert spread.mean_ns == 500.5


def test_buckets_hold_every_sample_within_a_thousandth() -> None:
    samples = [0, 1, 1023, 1024, 2047, 2048, 2049, 123_456_789]

    buckets = list(buckets_of(summarize_samples(samples)))

    assert sum(number for _, _, number in buckets) == len(samples)
    for low, high, _ in buckets:
        assert high - low <= max(1, low // 1024)
    assert (2048, 2050, 2) in buckets
