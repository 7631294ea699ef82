"""The sign-flip test, its interval, and what is found among many tests."""

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from rtscope.stats.comparison.design import (
    FALSE_DISCOVERIES,
    GROUPS,
    LEAST_PAIRS,
    MOST_ALONE,
    Paired,
    detectable_ratio_of_pairs,
    needed_pairs,
)
from rtscope.stats.comparison.effect import (
    CONFIDENCE,
    effect_of_pairs,
    false_discovered,
)


def p_of_signs(differences: Sequence[float]) -> float:
    return effect_of_pairs(differences, figure="max", alpha=0.05).p


def interval_of_mean(differences: Sequence[float]) -> tuple[float, float] | None:
    return Paired(tuple(differences)).interval(CONFIDENCE)


def discoveries(p_values: Sequence[float]) -> list[bool]:
    return [p <= FALSE_DISCOVERIES for p in false_discovered(p_values)]


def test_the_p_value_is_that_of_all_flips_of_signs() -> None:
    differences = [0.3, -0.1, 0.25, 0.4, -0.05]
    flips = [
        abs(sum(sign * d for sign, d in zip(signs, differences, strict=True)))
        for signs in product((-1, 1), repeat=5)
    ]
    as_far = sum(flip >= abs(sum(differences)) - 1e-12 for flip in flips)

    assert p_of_signs(differences) == as_far / 32
    assert p_of_signs([0.0] * 4) == 1
    assert p_of_signs([0.5]) == 1


@pytest.mark.parametrize(
    "differences",
    [
        [0.31, -0.12, 0.25, 0.4, -0.05, 0.17, 0.22, 0.09],
        [*([0.0] * 50), *([0.1] * 50), 4.0],  # groups of six and seven
    ],
)
def test_the_interval_holds_what_the_test_does_not_reject(
    differences: list[float],
) -> None:
    found = interval_of_mean(differences)

    assert found is not None
    low, high = found
    assert low < np.mean(differences) < high
    for shift, rejected in (
        (low - 0.001, True),
        (low + 0.001, False),
        (high - 0.001, False),
        (high + 0.001, True),
    ):
        p = p_of_signs([d - shift for d in differences])
        assert (p <= 0.05) is rejected, shift


def test_five_differences_have_no_interval() -> None:
    assert interval_of_mean([0.31, -0.12, 0.25, 0.4, -0.05]) is None


@pytest.mark.slow
def test_of_effects_that_are_none_five_in_a_hundred_sweeps_have_a_discovery() -> None:
    draw = np.random.default_rng(1)
    found = sum(
        any(discoveries([p_of_signs(row) for row in draw.normal(size=(20, 8))]))
        for _ in range(300)
    )

    # At most 5 %; 300 draws of 5 % give 26 or more with a probability of 0.4 %.
    assert found < 26


def test_discoveries_go_up_in_steps() -> None:
    assert discoveries([0.04, 0.01, 0.9, 0.02]) == [False, True, False, True]
    assert discoveries([0.04, 0.04, 0.04]) == [True, True, True]
    assert discoveries([]) == []


@pytest.mark.parametrize("tests", [1, 8, 10, 300])
def test_one_effect_among_many_needs_so_many_pairs(tests: int) -> None:
    pairs = needed_pairs(tests)
    others = [1.0] * (tests - 1)

    assert discoveries([p_of_signs([1.0] * pairs), *others])[0]
    assert not discoveries([p_of_signs([1.0] * (pairs - 1)), *others])[0]


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [6, 7, 8, 12])
def test_a_detectable_ratio_is_found_four_times_in_five(pairs: int) -> None:
    draw = np.random.default_rng(2)
    ratio = detectable_ratio_of_pairs(0.2, pairs=pairs)
    assert ratio is not None

    tests = [
        p_of_signs(row + math.log(ratio)) <= 0.05
        for row in draw.normal(scale=0.2, size=(2000, pairs))
    ]

    # More often where the spread is known: that of few pairs is often too small.
    assert 0.79 <= np.mean(tests) <= 0.9


def test_what_no_test_can_find_is_not_promised() -> None:
    assert p_of_signs([1.0] * (LEAST_PAIRS - 1)) > 0.05
    assert detectable_ratio_of_pairs(0.2, pairs=LEAST_PAIRS - 1) is None
    assert detectable_ratio_of_pairs(math.nan, pairs=8) is None


@pytest.mark.slow
def test_many_differences_are_tested_in_groups_at_the_level_that_is_said() -> None:
    draw = np.random.default_rng(3)
    rejected = [
        p_of_signs(row) <= 0.05
        for row in draw.standard_t(2, size=(400, MOST_ALONE + 13))
    ]

    # 5 % of 400 are 20; 33 and more have a probability of 0.3 %.
    assert sum(rejected) < 33
    assert p_of_signs([1.0] * 200) == 2 / 2**GROUPS
    assert p_of_signs([1.0] * MOST_ALONE) == 2 / 2**MOST_ALONE
