"""Which end a kernel is like, by whole runs of a machine and exact tests at 1 %."""

import math

import pytest

from rtscope.stats.comparison.design import can_differ, least_runs
from rtscope.verbs.bisect.outcome import Verdict
from rtscope.verbs.bisect.step import ALPHA, Why, decides_steps, difference, judge

US = 1_000.0
GOOD = [40 * US, 41 * US, 42 * US, 43 * US, 44 * US]
BAD = [80 * US, 81 * US, 82 * US, 83 * US, 84 * US]


def near(base_us: float) -> list[float]:
    return [(base_us + 0.3 * step) * US for step in range(5)]


@pytest.mark.parametrize(
    ("new_us", "verdict", "why"),
    [
        (41, Verdict.GOOD, Why.LIKE_GOOD),
        (81, Verdict.BAD, Why.LIKE_BAD),
        (60, Verdict.SKIPPED, Why.BETWEEN),
        (20, Verdict.GOOD, Why.LIKE_GOOD),
        (300, Verdict.BAD, Why.LIKE_BAD),
    ],
)
def test_a_kernel_is_like_the_end_that_it_does_not_differ_from(
    new_us: float, verdict: Verdict, why: Why
) -> None:
    judged = judge(GOOD, BAD, near(new_us), figure="max")

    assert (judged.verdict, judged.why) == (verdict, why)


def test_a_kernel_that_differs_from_neither_end_is_undecided() -> None:
    judged = judge(
        [40 * US, 50 * US, 60 * US, 70 * US, 80 * US],
        [90 * US, 100 * US, 110 * US, 120 * US, 130 * US],
        [45 * US, 65 * US, 85 * US, 105 * US, 125 * US],
        figure="max",
    )

    assert (judged.verdict, judged.why) == (Verdict.SKIPPED, Why.UNDECIDED)


def test_fewer_operations_are_worse() -> None:
    good, bad = [900.0, 910, 920, 930, 940], [500.0, 510, 520, 530, 540]

    assert difference(good, bad, "operations/s").is_worse
    assert difference(good, bad, "max").is_better
    assert judge(good, bad, [512.0] * 5, figure="operations/s").verdict is Verdict.BAD


def test_five_runs_of_each_are_the_least_and_fewer_will_do_against_many() -> None:
    assert least_runs(ALPHA) == 5
    assert not can_differ(4, 4, alpha=ALPHA)
    assert least_runs(ALPHA, others=20) == least_runs(ALPHA, others=5) == 4
    assert least_runs(ALPHA, others=4) == 5
    assert judge(GOOD, BAD, near(81)[:3], figure="max").why is Why.TOO_FEW


def test_the_p_value_is_the_share_of_all_labellings() -> None:
    found = difference(GOOD, BAD, "max")

    assert found.p == 2 / math.comb(10, 5) <= ALPHA
    assert found.runs == (5, 5)


def test_a_test_says_what_it_could_have_found_and_what_it_needs() -> None:
    close = difference(GOOD, [value + US for value in GOOD], "max")

    assert not close.is_worse
    assert not close.is_better
    assert close.ratio == pytest.approx(43 / 42, rel=1e-3)
    assert 1 + 1 / 42 < (close.detectable_ratio or 0) < 1.2
    assert 5 < (close.needed_runs(close.ratio) or 0) < 200
    assert difference(GOOD, GOOD, "max").needed_runs(1) is None


def test_ends_that_differ_by_luck_alone_do_not_decide_steps() -> None:
    far = difference(GOOD, BAD, "max")
    near_by = difference(
        [30 * US, 40 * US, 55 * US, 70 * US, 80 * US],
        [82 * US, 84 * US, 86 * US, 100 * US, 120 * US],
        "max",
    )

    assert (far.is_worse, decides_steps(far)) == (True, True)
    assert (near_by.is_worse, decides_steps(near_by)) == (True, False)


def test_a_latency_of_0_of_a_coarse_clock_is_no_error() -> None:
    assert difference([0.0] * 5, [1_000.0] * 5, "min").is_worse
