"""The power of a comparison: what two groups of runs find, by an independent count."""

import math
from statistics import median

import numpy as np
import pytest
from scipy.stats import t as student

from rtscope.stats.comparison.design import (
    MAX_RUNS,
    Dealt,
    FigureOfRuns,
    detectable_ratio,
    detectable_ratio_of_pairs,
    needed_runs,
    two_groups,
)
from rtscope.stats.comparison.effect import effect_of_pairs, effects_of_runs


@pytest.mark.parametrize("runs", [(2, 2), (5, 5), (3, 9), (10, 10)])
def test_a_ratio_is_found_that_exceeds_the_critical_value_in_4_of_5_cases(
    runs: tuple[int, int],
) -> None:
    n, m = runs
    quantile = student.ppf(0.8, n + m - 2)
    errors = 0.1 * math.sqrt(1 / n + 1 / m)

    found = detectable_ratio(0.1, critical=2.5, runs=runs)

    few = {2: 1.4, 3: 1.4, 5: 1.16, 10: 1.06}[min(n, m)]
    assert found == pytest.approx(math.exp(few * (2.5 + quantile) * errors))


@pytest.mark.parametrize(
    ("spread", "critical", "runs"),
    [(0.1, 2.5, (1, 9)), (0.1, 2.5, (9, 1)), (0.1, math.inf, (9, 9)), (9, 2, (2, 2))],
)
def test_without_a_finite_answer_there_is_none(
    spread: float, critical: float, runs: tuple[int, int]
) -> None:
    assert detectable_ratio(spread, critical=critical, runs=runs) is None


def test_a_ratio_of_a_million_is_no_answer_and_one_below_it_is() -> None:
    # Of 4 runs each, with sqrt(1/4 + 1/4).
    errors = 1.4 * (2.0 + float(student.ppf(0.8, 6)))
    at = math.log(1e6) / errors / math.sqrt(0.5)

    assert detectable_ratio(at * 1.0001, critical=2.0, runs=(4, 4)) is None
    assert detectable_ratio(at * 0.9999, critical=2.0, runs=(4, 4)) == pytest.approx(
        1e6, rel=0.01
    )


def enough(runs: int, spread: float, ratio: float, alpha: float) -> bool:
    degrees = 2 * (runs - 1)
    steps = student.ppf(1 - alpha / 2, degrees) + student.ppf(0.8, degrees)
    few = {4: 1.4, 5: 1.16, 6: 1.1, 7: 1.1}
    steps *= few.get(max(runs, 4), 1 + 0.6 / runs)
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


@pytest.fixture
def _no_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what takes nine tenths of the time and is not looked at."""
    monkeypatch.setattr(Dealt, "interval", lambda *_: None)


def joint(values: np.ndarray, runs: int) -> tuple[float, float]:
    """Return the adjusted p of the second of two figures, and the critical value."""
    places = tuple(range(2 * runs))
    figures = [FigureOfRuns(places, tuple(row)) for row in values.tolist()]
    effects = effects_of_runs(two_groups(runs, runs), figures, alpha=0.05)
    critical = effects[1].critical
    assert critical is not None
    return effects[1].adjusted_p, critical


def spread_of(values: np.ndarray, runs: int) -> float:
    halves = [half - half.mean() for half in (values[:runs], values[runs:])]
    squares = sum(float((half**2).sum()) for half in halves)
    return math.sqrt(squares / (2 * runs - 2))


NOISE = 0.045
"""Two standard deviations of a share of 0.8 in 300."""


@pytest.mark.usefixtures("_no_intervals")
@pytest.mark.parametrize("spread", [0.02, 0.2])
@pytest.mark.parametrize("runs", [4, 5, pytest.param(6, marks=pytest.mark.slow)])
def test_the_ratio_that_is_stated_is_found_in_4_of_5_cases(
    runs: int, spread: float
) -> None:
    rng = np.random.default_rng(runs)
    drawn = [rng.normal(0, spread, size=(2, 2 * runs)) for _ in range(300)]
    stated = [
        detectable_ratio(
            spread_of(one[1], runs), critical=joint(one, runs)[1], runs=(runs, runs)
        )
        for one in drawn
    ]
    shift = np.zeros((2, 2 * runs))
    shift[1, runs:] = math.log(median(ratio or math.inf for ratio in stated))
    found = sum(joint(one + shift, runs)[0] <= 0.05 for one in drawn)
    assert found / len(drawn) >= 0.8 - NOISE


@pytest.mark.parametrize("pairs", [6, 7, 8, 10, 12])
def test_the_ratio_that_pairs_state_is_found_in_4_of_5_cases(pairs: int) -> None:
    rng = np.random.default_rng(pairs)
    drawn = rng.normal(0, 0.1, size=(300, pairs))
    stated = [
        detectable_ratio_of_pairs(float(one.std(ddof=1)), pairs=pairs) for one in drawn
    ]
    shift = math.log(median(ratio or math.inf for ratio in stated))
    found = sum(
        effect_of_pairs((one + shift).tolist(), figure="max", alpha=0.05).found
        for one in drawn
    )
    assert found / len(drawn) >= 0.8 - NOISE
