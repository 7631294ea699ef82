"""Comparing groups of runs: exact, honest about few runs, no alarm about nothing."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import permutation_test

from fakes.measurements import SECOND_NS, record, thread
from fakes.traces import tracing
from rtscope.caveats.catalogue import make
from rtscope.errors import UsageError
from rtscope.record.model import RunRecord
from rtscope.stats.compare import Comparison, Pair, Word, compare
from rtscope.stats.permutation import (
    DRAWN_LABELLINGS,
    holm,
    is_exact,
    labellings,
    one_sided,
    smallest_p,
)

US = 1_000


def run_of(
    max_ns: int,
    mean_ns: int = 10_000,
    *,
    started: str = "2026-01-02T03:04:05Z",
    load: str = "memory",
    seconds: int = 100,
    interval_ns: int = SECOND_NS,
) -> RunRecord:
    latencies = [mean_ns] * (seconds * SECOND_NS // interval_ns - 1)
    t = thread([*latencies, max_ns], interval_ns=interval_ns)
    return record([t], load=load, started=started)


def runs_of(maxima_us: Sequence[int], mean_ns: int = 10_000) -> list[RunRecord]:
    return [
        run_of(us * US, mean_ns + i * US, started=f"2026-01-{i + 1:02}T00:00:00Z")
        for i, us in enumerate(maxima_us)
    ]


def only(comparison: Comparison) -> Pair:
    [pair] = comparison.pairs
    return pair


def test_runs_that_are_all_later_are_different_and_worse() -> None:
    a, b = runs_of([40, 41, 42, 43]), runs_of([80, 81, 82, 83])
    comparison = compare({"a": a, "b": b})
    pair = only(comparison)
    assert (pair.word, pair.worse, pair.better) == (Word.DIFFERENT, ("max",), ())
    assert comparison.load == "memory"
    [test] = [t for t in pair.tests if t.feature == "max"]
    assert test.p_worse == 1 / 70
    assert test.holm_worse == 2 / 70
    assert test.p_better == 1
    assert pair.sentence == (
        "b is worse in max than a (5% for each direction, 4 v 4 runs)"
    )


def test_a_kernel_may_be_worse_on_average_and_better_at_the_worst() -> None:
    # as PREEMPT_RT is
    a, b = runs_of([380, 375, 390, 370]), runs_of([70, 71, 72, 73], mean_ns=20_000)
    pair = only(compare({"mainline": a, "rt": b}, deadline_ns=200 * US))
    assert (pair.worse, pair.better) == (("mean",), ("misses", "max"))
    assert "rt is worse in mean, better in misses and max than mainline" in (
        pair.sentence
    )


def test_equal_runs_are_no_evidence_with_the_smallest_p_attainable() -> None:
    a = runs_of([40, 41, 42, 43, 44])
    pair = only(compare({"a": a, "b": a}, deadline_ns=200 * US))
    assert pair.word is Word.NO_EVIDENCE
    assert pair.smallest_p == 3 / 252
    assert pair.sentence == (
        "no evidence that b differs from a; 5 v 5 runs can give p = 0.012 at best"
    )


@pytest.mark.parametrize("sizes", [(3, 8), (8, 3), (1, 1), (3, 3)])
def test_below_4_v_4_are_too_few_runs(sizes: tuple[int, int]) -> None:
    a, b = runs_of(range(40, 40 + sizes[0])), runs_of(range(900, 900 + sizes[1]))
    comparison = compare({"a": a, "b": b}, deadline_ns=200 * US)
    pair = only(comparison)
    assert (pair.word, pair.tests) == (Word.TOO_FEW_RUNS, ())
    assert comparison.needed_runs == 4
    assert pair.sentence == (
        f"too few runs to tell b from a: {sizes[0]} v {sizes[1]}, needed 4 v 4"
    )


def test_three_groups_need_more_runs_than_two() -> None:
    groups = {name: runs_of([40, 41, 42, 43]) for name in "abc"}
    comparison = compare(groups, deadline_ns=200 * US)
    assert [p.word for p in comparison.pairs] == [Word.TOO_FEW_RUNS] * 2
    assert comparison.needed_runs == 5


def test_each_further_group_is_compared_with_the_first() -> None:
    a = runs_of([40, 41, 42, 43, 44])
    b, c = runs_of([80, 81, 82, 83, 84]), runs_of([40, 41, 42, 43, 45])
    comparison = compare({"a": a, "b": b, "c": c})
    assert [(p.baseline, p.candidate, p.word) for p in comparison.pairs] == [
        ("a", "b", Word.DIFFERENT),
        ("a", "c", Word.NO_EVIDENCE),
    ]


def test_effects_are_the_hodges_lehmann_shift_and_the_ratio_of_medians() -> None:
    a, b = runs_of([40, 50, 60, 70]), runs_of([80, 100, 120, 140], mean_ns=12_000)
    pair = only(compare({"a": a, "b": b}))
    assert pair.max_ratio == 2
    assert pair.max_ratio_range == (80 / 70, 140 / 40)
    shifts = sorted(
        (99 * (2_000 + (j - i) * US) + y - x) / 100
        for i, x in enumerate([40_000, 50_000, 60_000, 70_000])
        for j, y in enumerate([80_000, 100_000, 120_000, 140_000])
    )
    assert pair.mean_shift_ns == pytest.approx((shifts[7] + shifts[8]) / 2)


def test_maxima_of_zero_are_held_against_as_one_nanosecond() -> None:
    zeros, ones = (
        [run_of(max_ns, mean_ns=max_ns) for _ in range(4)] for max_ns in (0, 1)
    )
    for a, b in ((zeros, ones), (ones, zeros)):
        pair = only(compare({"a": a, "b": b}))
        assert (pair.max_ratio, pair.max_ratio_range) == (1, (1, 1))


def test_runs_without_a_valid_measurement_are_left_out_by_name() -> None:
    a = runs_of([40, 41, 42, 43])
    bad = replace(a[0], caveats=(make("cpu_throttled"),))
    comparison = compare({"a": [bad, *a[1:]], "b": a})
    assert comparison.groups[0].left_out == ("001-memory",)
    assert len(comparison.groups[0].runs) == 3
    assert only(comparison).word is Word.TOO_FEW_RUNS


def test_a_clock_too_coarse_for_the_deadline_leaves_a_run_out() -> None:
    a = runs_of([40, 41, 42, 43])
    comparison = compare({"a": a, "b": a}, deadline_ns=19)
    assert [len(g.runs) for g in comparison.groups] == [0, 0]
    pair = only(comparison)
    assert (pair.max_ratio, pair.mean_shift_ns, pair.in_turns) == (None, None, False)


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"load": "idle"}, "different loads"),
        ({"interval_ns": SECOND_NS // 2}, "different intervals"),
        ({"seconds": 120}, "do not compare: a longer run"),
    ],
)
def test_runs_under_different_conditions_are_refused(
    other: dict[str, int], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        compare({"a": [run_of(40 * US)], "b": [run_of(40 * US, **other)]})  # type: ignore[arg-type]


def traced(run: RunRecord, *, cause: str = "") -> RunRecord:
    return replace(run, result=replace(run.result, tracing=tracing(cause=cause)))


def test_a_traced_run_does_not_compare_with_one_that_was_not() -> None:
    plain = run_of(40 * US)

    with pytest.raises(UsageError, match="tracing makes every wake-up later"):
        compare({"a": [plain], "b": [traced(plain)]})
    assert compare({"a": [traced(plain)], "b": [traced(plain)]})
    # refused, it has changed nothing
    assert compare({"a": [plain], "b": [traced(plain, cause="lockdown")]})


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_groups_are_refused(count: int) -> None:
    with pytest.raises(UsageError, match="nothing to compare"):
        compare({str(i): [run_of(40 * US)] for i in range(count)})


def test_an_empty_group_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to compare"):
        compare({"a": [run_of(40 * US)], "b": []})


def test_runs_may_differ_by_a_tenth_in_length() -> None:
    groups = {"a": [run_of(40 * US)], "b": [run_of(40 * US, seconds=110)]}
    assert compare(groups).load == "memory"


@pytest.mark.parametrize(
    ("days", "in_turns"), [((1, 3), True), ((1, 2), False), ((3, 4), False)]
)
def test_groups_measured_one_after_the_other_are_noticed(
    days: tuple[int, int], in_turns: bool
) -> None:
    a = [run_of(40 * US + d, started=f"2026-01-0{d}T00:00:00Z") for d in days]
    b = [run_of(40 * US, started="2026-01-02T12:00:00Z")]
    assert only(compare({"a": a, "b": b})).in_turns is in_turns


def test_many_runs_are_tested_with_a_seeded_sample_of_labellings() -> None:
    a, b = runs_of(range(40, 52)), runs_of(range(60, 72))
    first, again = (only(compare({"a": a, "b": b}, seed=3)) for _ in range(2))
    assert (first.exact, first.word, first.worse) == (False, Word.DIFFERENT, ("max",))
    assert first == again
    assert first.smallest_p == 2 / (DRAWN_LABELLINGS + 1)
    assert min(t.p_worse for t in first.tests) > 0


def test_every_labelling_is_tried_up_to_10_v_10() -> None:
    assert is_exact(10, 10)
    assert not is_exact(11, 11)
    assert labellings(10, 10) == 184_756
    assert smallest_p(10, 10) == 1 / 184_756


def test_p_values_are_those_of_scipy() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.lognormal(size=5).tolist(), rng.lognormal(0.5, size=4).tolist()
    reference = permutation_test(
        (b, a),
        lambda x, y, axis: np.mean(x, axis=axis) - np.mean(y, axis=axis),
        alternative="greater",
        n_resamples=labellings(5, 4),
    )
    worse, better = one_sided(a, b, seed=0)
    assert worse == pytest.approx(float(reference.pvalue))
    assert worse + better == pytest.approx(1 + 1 / labellings(5, 4))


def test_tied_runs_count_as_extreme_whatever_the_order_of_addition() -> None:
    values = [0.1, 0.2, 0.3, 0.1, 0.2, 0.3]
    worse, better = one_sided(values[:3], values[3:], seed=0)
    assert worse == better
    assert worse > 0.5


def test_a_drawn_p_agrees_with_the_exact_one() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=11).tolist(), rng.normal(0.6, size=11).tolist()
    drawn, _ = one_sided(a, b, seed=0)
    sums = np.array([sum(c) for c in combinations([*a, *b], 11)])
    assert drawn == pytest.approx(float(np.mean(sums >= sum(b) - 1e-9)), abs=0.015)


def test_holm_multiplies_the_smallest_most_and_never_turns_the_order() -> None:
    assert holm([0.02, 0.01, 0.04]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_relabelling_runs_of_one_kernel_raises_at_most_alpha_false_alarms() -> None:
    """All 70 ways to call 4 of 8 runs of one kernel "b" are its A/A tests."""
    maxima = [41, 95, 44, 260, 47, 52, 230, 61]
    means = [9_000, 9_900, 9_200, 9_400, 11_000, 9_100, 10_500, 9_300]
    runs = [run_of(m * US, mean) for m, mean in zip(maxima, means, strict=True)]
    alarms = {"worse": 0, "better": 0}
    for chosen in combinations(range(8), 4):
        a = [runs[i] for i in range(8) if i not in chosen]
        b = [runs[i] for i in chosen]
        pair = only(compare({"a": a, "b": b}, deadline_ns=200 * US))
        alarms["worse"] += bool(pair.worse)
        alarms["better"] += bool(pair.better)
    assert all(count <= 0.05 * 70 for count in alarms.values())
    assert sum(alarms.values()) > 0  # the test can raise an alarm at all
