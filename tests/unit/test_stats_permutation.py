"""The joint permutation test, and what a comparison could have found."""

import math

import numpy as np
import pytest
import scipy  # whose stats take a second, and load when they are used
from hypothesis import given
from hypothesis import strategies as st

from rtscope.stats.comparison import design as designs
from rtscope.stats.comparison.design import (
    DRAWN_LABELLINGS,
    Dealt,
    FigureOfRuns,
    Slot,
    Values,
    detectable_ratio,
    needed_runs,
)
from rtscope.stats.comparison.effect import Effect, effects_of_runs


def design(*blocks: tuple[int, int]) -> Dealt:
    """Slots of blocks, each with so many of the baseline and of the candidate."""
    return Dealt(
        tuple(
            Slot(block, ours)
            for block, sizes in enumerate(blocks)
            for ours in (False, True)
            for _ in range(sizes[ours])
        )
    )


def figure(values: list[float]) -> FigureOfRuns:
    return FigureOfRuns(tuple(range(len(values))), tuple(values))


def alone(values: list[float], *blocks: tuple[int, int], seed: int = 0) -> Effect:
    [effect] = effects_of_runs(design(*blocks), [figure(values)], alpha=0.05, seed=seed)
    return effect


def test_the_statistic_and_p_are_those_of_scipy() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=5), rng.normal(0.8, 3, size=4)

    def welch(x: Values, y: Values, axis: int) -> Values:
        sizes: Values = np.abs(
            scipy.stats.ttest_ind(x, y, axis=axis, equal_var=False).statistic
        )
        return sizes

    reference = scipy.stats.permutation_test(
        (b, a), welch, alternative="greater", n_resamples=math.comb(9, 4)
    )
    test = alone([*a, *b], (5, 4))
    assert test.p == pytest.approx(float(reference.pvalue))
    assert test.statistic == pytest.approx(
        float(scipy.stats.ttest_ind(b, a, equal_var=False).statistic)
    )
    assert test.adjusted_p == test.p


def test_labels_are_dealt_within_blocks() -> None:
    two = design((2, 2), (3, 2))
    assert two.labellings == 6 * 10
    labels = two.all_labels(0)
    assert labels.shape == (60, 9)
    assert len({tuple(row) for row in labels}) == 60
    assert {tuple(row) for row in (labels[:, :4].sum(1, keepdims=True))} == {(2,)}
    assert labels[0].tolist() == [slot.candidate for slot in two.slots]


def test_a_level_of_a_block_is_no_difference_of_the_groups() -> None:
    flat = [1.0, 2, 3, 4, 2, 1, 4, 3]
    raised = [x + 100 * (i >= 4) for i, x in enumerate(flat)]
    assert alone(raised, (2, 2), (2, 2)) == alone(flat, (2, 2), (2, 2))
    levels = design((2, 2), (2, 2)).levels(figure(raised))
    assert sum(map(sum, levels)) == pytest.approx(0)


def test_every_labelling_is_tried_if_there_are_as_many_as_are_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(designs, "MAX_LABELLINGS", 70)
    assert design((4, 4)).is_exact
    assert not design((4, 5)).is_exact


def test_one_block_of_10_v_10_runs_is_tried_whole() -> None:
    assert design((10, 10)).is_exact
    assert not design((10, 11)).is_exact


@pytest.mark.parametrize(
    ("blocks", "smallest"),
    [
        (((4, 4),), 2 / 70),
        (((5, 4),), 1 / 126),
        (((2, 2), (3, 3)), 2 / 120),
        (((1, 0), (0, 1)), 1.0),
        (((20, 20),), 1 / (DRAWN_LABELLINGS + 1)),
    ],
)
def test_the_smallest_p_follows_from_the_labellings(
    blocks: tuple[tuple[int, int], ...], smallest: float
) -> None:
    assert design(*blocks).smallest_p == smallest
    if design(*blocks).is_exact:
        values = [float(slot.candidate) for slot in design(*blocks).slots]
        assert alone(values, *blocks).p == pytest.approx(smallest)


def test_groups_that_differ_without_variation_have_the_largest_statistic() -> None:
    test = alone([0.0] * 4 + [1.0] * 4, (4, 4))
    assert (test.p, test.statistic > 1e6) == (2 / 70, True)
    nothing = alone([0.3] * 8, (4, 4))
    assert (nothing.statistic, nothing.p) == (0, 1)


def test_ties_count_as_extreme_whatever_the_order_of_addition() -> None:
    assert alone([0.1, 0.2, 0.3, 0.1, 0.2, 0.3], (3, 3)).p == 1


def test_a_drawn_p_agrees_with_the_exact_one_and_is_never_0(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(2)
    values = [*rng.normal(size=8), *rng.normal(0.9, size=8)]
    exact = alone(values, (8, 8))
    far = [float(x) for x in (*range(8), *range(1000, 1008))]
    monkeypatch.setattr(designs, "MAX_LABELLINGS", 100)
    drawn = alone(values, (8, 8), seed=1)
    assert drawn != exact
    assert drawn.p == pytest.approx(exact.p, abs=0.006)
    assert alone(far, (8, 8)).p >= 1 / (DRAWN_LABELLINGS + 1)


@given(
    st.lists(
        st.lists(st.integers(0, 9), min_size=8, max_size=8), min_size=1, max_size=4
    )
)
def test_adjusted_p_values_keep_the_order_and_are_never_smaller(
    rows: list[list[int]],
) -> None:
    figures = [figure([float(x) for x in row]) for row in rows]
    tests = effects_of_runs(design((4, 4)), figures, alpha=0.05)
    critical = tests[0].critical
    assert critical is not None
    by_size = sorted(tests, key=lambda test: -abs(test.statistic))
    adjusted = [test.adjusted_p for test in by_size]
    assert adjusted == sorted(adjusted)
    assert all(test.p <= test.adjusted_p <= 1 for test in tests)
    # The critical value and the adjusted p say the same of the largest.
    assert (by_size[0].adjusted_p <= 0.05) <= (
        abs(by_size[0].statistic) >= critical * (1 - 1e-9)
    )


@pytest.mark.slow
def test_equal_groups_are_called_different_in_at_most_alpha_of_all_labellings() -> None:
    rng = np.random.default_rng(3)
    figures = [figure(row.tolist()) for row in rng.lognormal(size=(4, 8))]
    alarms = 0
    labels = design((4, 4)).all_labels(0)
    for row in labels:
        dealt = Dealt(tuple(Slot(0, bool(ours)) for ours in row))
        tests = effects_of_runs(dealt, figures, alpha=0.05)
        alarms += min(test.adjusted_p for test in tests) <= 0.05
    assert 0 < alarms <= 0.05 * len(labels)


@pytest.mark.slow
def test_unequal_variances_are_no_difference() -> None:
    """A difference of plain means rejects up to 38 % of these, nominally 5 %."""
    rng = np.random.default_rng(4)
    alarms = sum(
        alone([*rng.normal(size=16), *rng.normal(0, 8, size=4)], (16, 4)).p <= 0.05
        for _ in range(200)
    )
    assert alarms <= 200 * 0.15


@pytest.mark.parametrize("runs", [5, 10, 40])
def test_the_detectable_ratio_is_found_with_80_percent(runs: int) -> None:
    spread, alpha, rng = 0.1, 0.05, np.random.default_rng(runs)
    critical = float(scipy.stats.t.ppf(1 - alpha / 2, 2 * runs - 2))
    ratio = detectable_ratio(spread, critical=critical, runs=(runs, runs))
    assert ratio is not None
    a = rng.normal(0, spread, size=(20_000, runs))
    b = rng.normal(math.log(ratio), spread, size=(20_000, runs))
    found = scipy.stats.ttest_ind(b, a, axis=1).pvalue <= alpha
    # More often than 80 % where the spread is known, and not of few runs.
    assert 0.79 <= float(found.mean()) <= 0.92


def test_two_runs_of_a_group_find_large_ratios_whichever_group_it_is() -> None:
    few, other = (
        detectable_ratio(0.1, critical=2.5, runs=runs) for runs in ((2, 5), (5, 2))
    )
    assert few is not None
    assert few == other
    assert math.log(few) == pytest.approx(
        1.4 * (2.5 + scipy.stats.t.ppf(0.8, 5)) * 0.1 * math.sqrt(0.7)
    )


def test_needed_runs_find_the_ratio_and_one_less_does_not() -> None:
    needed = needed_runs(0.2, ratio=1.1, alpha=0.05, least=4)
    assert needed is not None
    assert needed == pytest.approx(
        2 * ((1.96 + 0.84) * 0.2 / math.log(1.1)) ** 2, abs=4
    )
    assert needed_runs(0.2, ratio=1.1, alpha=0.005, least=4) > needed  # type: ignore[operator]
    assert needed_runs(0.001, ratio=1.3, alpha=0.05, least=4) == 4
    assert needed_runs(50.0, ratio=1.1, alpha=0.05, least=4) is None


@pytest.mark.parametrize(
    ("spread", "critical", "runs"),
    [
        (0.1, math.inf, (5, 5)),
        (0.1, 3.0, (1, 5)),
        (0.1, 3.0, (5, 1)),
        (40.0, 3.0, (5, 5)),
    ],
)
def test_there_may_be_no_ratio_that_a_design_finds(
    spread: float, critical: float, runs: tuple[int, int]
) -> None:
    assert detectable_ratio(spread, critical=critical, runs=runs) is None


# --- the interval of a ratio ----------------------------------------------------------

DESIGNS = [
    # runs of both sides of each block, spread of both, and a drift from block to block
    (((4, 4),), (0.1, 0.1), 0.0),
    (((6, 6),), (0.1, 0.3), 0.0),
    (((4, 8),), (0.2, 0.2), 0.0),
    (((3, 3), (3, 3)), (0.1, 0.1), 0.5),
    (((2, 2), (2, 2), (2, 2)), (0.1, 0.2), 0.3),
]


@pytest.mark.parametrize(
    ("blocks", "spreads", "drift"),
    [DESIGNS[0], *(pytest.param(*one, marks=pytest.mark.slow) for one in DESIGNS[1:])],
)
def test_95_of_100_intervals_have_the_ratio(
    blocks: tuple[tuple[int, int], ...], spreads: tuple[float, float], drift: float
) -> None:
    rng, log_ratio, times, hit = np.random.default_rng(7), math.log(1.3), 300, 0
    for _ in range(times):
        values = [
            drift * block + log_ratio * ours + spreads[ours] * rng.standard_normal()
            for block, sizes in enumerate(blocks)
            for ours in (False, True)
            for _ in range(sizes[ours])
        ]
        interval = alone(values, *blocks).interval
        assert interval is not None
        hit += interval[0] <= 1.3 <= interval[1]

    # Of 300 at 95 %, three standard deviations; labellings are few, so some more.
    assert 0.91 <= hit / times <= 0.99


@given(st.lists(st.floats(0, 3), min_size=10, max_size=10), st.integers(0, 9))
def test_an_interval_has_1_in_it_unless_the_groups_differ(
    values: list[float], seed: int
) -> None:
    effect = alone([one + at / 100 for at, one in enumerate(values)], (5, 5), seed=seed)

    assert effect.interval is not None
    low, high = effect.interval
    assert low <= effect.ratio <= high
    if min(abs(math.log(low)), abs(math.log(high))) > 1e-2:
        assert (low <= 1 <= high) == (effect.p > 0.05)


@pytest.mark.parametrize("blocks", [((3, 3),), ((1, 9),), ((1, 20),), ((2, 2), (1, 1))])
def test_a_design_that_can_refuse_nothing_has_no_interval(
    blocks: tuple[tuple[int, int], ...],
) -> None:
    values = [0.1 * at for at in range(sum(map(sum, blocks)))]

    assert alone(values, *blocks).interval is None


def test_groups_without_variation_have_their_ratio_as_interval() -> None:
    interval = alone([1.0] * 4 + [2.0] * 4, (4, 4)).interval

    assert interval == pytest.approx((math.e, math.e), rel=1e-4)


@pytest.mark.slow
def test_the_same_runs_have_the_same_interval_each_time() -> None:
    values = np.random.default_rng(3).normal(size=20).tolist()
    one, again = (alone(values, (10, 10), seed=5).interval for _ in range(2))

    assert one == again
    assert one is not None
    others = [
        effect.interval for effect in (alone(values, (10, 10), seed=s) for s in (1, 2))
    ]
    for other in others:
        assert other == pytest.approx(one, rel=0.1)
