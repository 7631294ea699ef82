"""Effects of a sweep: exact, paired by seed, with false discoveries held."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from fakes.measurements import on_board, record, thread
from rtscope.record.model import RunRecord
from rtscope.stats.power import detectable_ratio_of_pairs
from rtscope.sweep.effects import (
    counterparts,
    discoveries,
    effects_of,
    interval_of_mean,
    needed_pairs,
    p_of_signs,
)


def runs(worst_ns: Sequence[int], *, load: str = "cpu") -> list[RunRecord]:
    """Return one run for each seed, with these maxima."""
    made = [on_board(record([thread([5_000, 7_000, top])])) for top in worst_ns]
    return [
        replace(one, run=replace(one.run, seed=seed, load=load))
        for seed, one in enumerate(made, 1)
    ]


BEFORE = (11_000, 12_000, 13_000, 14_000, 15_000, 16_000, 17_000, 18_000)


def test_a_doubled_maximum_is_found_and_nothing_else() -> None:
    changed = {
        "twice": runs([2 * ns for ns in BEFORE]),
        "nothing": runs(BEFORE),
    }

    worst, *rest = effects_of(runs(BEFORE), changed)

    assert (worst.cell, worst.figure, worst.pairs) == ("twice", "worst", 8)
    assert worst.found
    assert worst.is_worse
    assert worst.ratio == pytest.approx(2)
    assert worst.p == 2 / 2**8
    assert worst.low == pytest.approx(2)
    same = [effect for effect in rest if effect.cell == "nothing"]
    assert {effect.figure for effect in same} >= {"worst", "average"}
    assert all(effect.ratio == 1 and effect.p == 1 for effect in same)
    assert not any(effect.found for effect in same)


def test_runs_are_paired_by_load_and_seed_and_others_are_left_out() -> None:
    other = effects_of(runs(BEFORE), {"x": runs(BEFORE, load="idle")})
    some = effects_of(runs(BEFORE), {"x": runs([2 * ns for ns in BEFORE[:3]])})

    assert other == ()
    assert {effect.pairs for effect in some} == {3}
    assert all(effect.low is None for effect in some)


@pytest.mark.parametrize(
    "change",
    [{"policy": "rr"}, {"kernel": "debian-6.12"}, {"interval_ns": 500_000}],
)
def test_what_a_cell_changes_of_its_runs_is_compared_with_the_base(
    change: dict[str, Any],
) -> None:
    twice = runs([2 * ns for ns in BEFORE])
    changed = [replace(one, run=replace(one.run, **change)) for one in twice]

    worst, *_ = effects_of(runs(BEFORE), {"x": changed})

    assert (worst.figure, worst.pairs, worst.found) == ("worst", 8, True)
    assert worst.key[0] == "cpu"


def test_of_several_kernels_each_is_compared_with_itself() -> None:
    def both(*tops: Sequence[int]) -> list[RunRecord]:
        return [
            replace(one, run=replace(one.run, kernel=kernel))
            for kernel, some in zip(("rt", "std"), tops, strict=True)
            for one in runs(some)
        ]

    twice = [2 * ns for ns in BEFORE]
    found = effects_of(both(BEFORE, BEFORE), {"x": both(twice, BEFORE)})

    worst = {
        effect.key[1]: effect.ratio for effect in found if effect.figure == "worst"
    }
    assert worst == {"rt": pytest.approx(2), "std": 1}
    one_more = counterparts(
        [("cpu", "rt", "fifo", "1"), ("cpu", "std", "fifo", "1")],
        [("cpu", "other", "fifo", "1")],
    )
    assert one_more == {}


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


def test_the_interval_holds_what_the_test_does_not_reject() -> None:
    differences = [0.31, -0.12, 0.25, 0.4, -0.05, 0.17, 0.22, 0.09]

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
    assert interval_of_mean(differences[:5]) is None


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


def test_a_detectable_ratio_is_found_four_times_in_five() -> None:
    draw = np.random.default_rng(2)
    ratio = detectable_ratio_of_pairs(0.2, pairs=8)
    assert ratio is not None

    tests = [
        p_of_signs(row + math.log(ratio)) <= 0.05
        for row in draw.normal(scale=0.2, size=(2000, 8))
    ]

    assert np.mean(tests) == pytest.approx(0.8, abs=0.04)
    assert detectable_ratio_of_pairs(math.nan, pairs=8) is None
    assert detectable_ratio_of_pairs(0.2, pairs=1) is None
