"""The power of a comparison: what two groups of runs find, by an independent count."""

import math

import pytest
from scipy.stats import t as student

from rtscope.stats.power import MAX_RUNS, detectable_ratio, needed_runs


@pytest.mark.parametrize("runs", [(2, 2), (5, 5), (3, 9), (10, 10)])
def test_a_ratio_is_found_that_exceeds_the_critical_value_in_4_of_5_cases(
    runs: tuple[int, int],
) -> None:
    n, m = runs
    quantile = student.ppf(0.8, n + m - 2)
    errors = 0.1 * math.sqrt(1 / n + 1 / m)

    found = detectable_ratio(0.1, critical=2.5, runs=runs)

    assert found == pytest.approx(math.exp((2.5 + quantile) * errors))


@pytest.mark.parametrize(
    ("spread", "critical", "runs"),
    [(0.1, 2.5, (1, 9)), (0.1, 2.5, (9, 1)), (0.1, math.inf, (9, 9)), (9, 2, (2, 2))],
)
def test_without_a_finite_answer_there_is_none(
    spread: float, critical: float, runs: tuple[int, int]
) -> None:
    assert detectable_ratio(spread, critical=critical, runs=runs) is None


def test_a_ratio_of_a_million_is_no_answer_and_one_below_it_is() -> None:
    errors = 2.0 + float(student.ppf(0.8, 6))  # of 4 runs each, with sqrt(1/4 + 1/4)
    at = math.log(1e6) / errors / math.sqrt(0.5)

    assert detectable_ratio(at * 1.0001, critical=2.0, runs=(4, 4)) is None
    assert detectable_ratio(at * 0.9999, critical=2.0, runs=(4, 4)) == pytest.approx(
        1e6, rel=0.01
    )


def enough(runs: int, spread: float, ratio: float, alpha: float) -> bool:
    degrees = 2 * (runs - 1)
    steps = student.ppf(1 - alpha / 2, degrees) + student.ppf(0.8, degrees)
    return bool(steps * spread * math.sqrt(2 / runs) <= math.log(ratio))


@pytest.mark.parametrize("alpha", [0.05, 0.01])
@pytest.mark.parametrize(
    ("spread", "ratio"), [(0.05, 1.5), (0.2, 1.5), (0.2, 1.2), (0.3, 1.1)]
)
def test_the_fewest_runs_that_are_enough_are_needed(
    spread: float, ratio: float, alpha: float
) -> None:
    needed = needed_runs(spread, ratio=ratio, alpha=alpha, least=2)

    assert needed is not None
    assert enough(needed, spread, ratio, alpha)
    assert needed == 2 or not enough(needed - 1, spread, ratio, alpha)


def test_no_fewer_runs_are_needed_than_can_find_anything_and_no_fewer_than_2() -> None:
    assert needed_runs(0.001, ratio=2, alpha=0.05, least=7) == 7
    assert needed_runs(0.0, ratio=2, alpha=0.05, least=0) == 2


def test_more_than_10000_runs_are_no_answer() -> None:
    at = math.log(1.1) / math.sqrt(2 / MAX_RUNS) / (1.9602 + 0.8417)

    assert needed_runs(at * 1.001, ratio=1.1, alpha=0.05, least=2) is None
    almost = needed_runs(at * 0.999, ratio=1.1, alpha=0.05, least=2)
    assert almost == pytest.approx(MAX_RUNS, rel=0.01)
