"""Comparing groups of runs: exact, honest about few runs, no alarm about nothing."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pytest

from fakes.comparing import compare
from fakes.measurements import SECOND_NS, on_board, record, thread
from fakes.traces import tracing
from rtscope.host.errors import UsageError
from rtscope.record.caveats.catalogue import make
from rtscope.record.model import RunRecord
from rtscope.stats.compare import (
    Comparison,
    Pair,
    Word,
    compare_loads,
)
from rtscope.stats.comparison.design import DRAWN_LABELLINGS
from rtscope.stats.comparison.effect import Effect
from rtscope.stats.runsets import run_sets

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


def planned(
    maxima_us: Sequence[int],
    variant: str,
    mean_ns: int = 10_000,
    *,
    load: str = "memory",
    block: int | None = None,
    campaign: int = 7,
) -> list[RunRecord]:
    """Runs of one campaign whose order was drawn at random, five a block."""
    made = []
    for i, us in enumerate(maxima_us):
        # No two runs of a machine have equal results.
        one = run_of(us * US, mean_ns + i * US + sum(map(ord, variant)), load=load)
        drawn = replace(
            one.run, variant=variant, repetition=i + 1, block=block or 1 + i // 5
        )
        settings = {"campaign": {"order_seed": campaign}}
        made.append(replace(one, run=drawn, campaign=settings))
    return made


def only(comparison: Comparison) -> Pair:
    [pair] = comparison.pairs
    return pair


def of(pair: Pair, figure: str) -> Effect:
    [one] = [f for f in pair.figures if f.figure == figure]
    return one


def test_runs_that_are_all_later_are_different_and_worse() -> None:
    a, b = planned([40, 41, 42, 43], "a"), planned([80, 81, 82, 83], "b")
    comparison = compare({"a": a, "b": b})
    pair = only(comparison)
    assert (pair.word, pair.worse, pair.better) == (Word.DIFFERENT, ("max",), ())
    assert (comparison.load, pair.randomised) == ("memory", True)
    assert of(pair, "max").adjusted_p == 2 / 70
    assert pair.sentence == (
        "b is worse in max than a (4 v 4 runs, p = 0.029 after correction for 2 tests)"
    )


def test_a_kernel_may_be_worse_on_average_and_better_at_the_worst() -> None:
    # as PREEMPT_RT is
    a = planned([380, 375, 390, 370, 385], "a")
    b = planned([70, 71, 72, 73, 74], "b", mean_ns=20_000)
    pair = only(compare({"mainline": a, "rt": b}, deadline_ns=200 * US))
    assert (pair.worse, pair.better) == (("mean",), ("misses", "max"))
    assert "rt is worse in mean, better in misses and max than mainline" in (
        pair.sentence
    )


def test_runs_in_no_random_order_are_never_shown_to_be_different() -> None:
    a, b = runs_of([40, 41, 42, 43]), runs_of([80, 81, 82, 83], mean_ns=20_000)
    pair = only(compare({"a": a, "b": b}))
    assert (pair.word, pair.randomised) == (Word.ORDER_NOT_RANDOMISED, False)
    assert pair.worse == ("mean", "max")
    assert pair.sentence.startswith(
        "the runs of b are worse in mean and max than those of a, but their order was "
        "not drawn at random"
    )


def test_labels_other_than_those_that_were_drawn_are_no_random_order() -> None:
    a, b = planned([40, 41, 42, 43], "a"), planned([80, 81, 82, 83], "b")
    mixed = {"x": [*a[:2], *b[:2]], "y": [*a[2:], *b[2:]]}
    assert not only(compare(mixed)).randomised
    one_without = [*b[:3], replace(b[3], run=replace(b[3].run, block=None))]
    assert not only(compare({"a": a, "b": one_without})).randomised


def test_labels_are_dealt_within_the_blocks_that_were_drawn_only() -> None:
    low, high = [40, 41, 42, 43], [80, 81, 82, 83]
    groups = {
        "a": planned(low, "a", block=1) + planned(low, "a", block=2, mean_ns=12_345),
        "b": planned(high, "b", block=1) + planned(high, "b", block=2, mean_ns=12_345),
    }
    assert of(only(compare(groups)), "max").p == 2 / 70**2
    # Each block has one variant only: then nothing was dealt between them.
    apart = {"a": planned(low, "a", block=1), "b": planned(high, "b", block=2)}
    assert only(compare(apart)).word is Word.TOO_FEW_RUNS


def test_the_blocks_of_two_campaigns_are_not_one() -> None:
    low, high = [40, 41, 42, 43], [80, 81, 82, 83]
    apart = {"a": planned(low, "a", campaign=1), "b": planned(high, "b", campaign=2)}
    assert only(compare(apart)).word is Word.TOO_FEW_RUNS


def test_all_loads_are_one_family() -> None:
    def sets(load: str, high: Sequence[int]) -> dict[str, list[RunRecord]]:
        return {
            "a": planned([40, 41, 42, 43, 44], "a", load=load),
            "b": planned(high, "b", load=load),
        }

    loads = [run_sets(sets(f"load{i}", [40 + i, 44, 39, 42, 45 - i])) for i in range(4)]
    one = run_sets(sets("cpu", [60, 61, 62, 63, 64]))
    alone, among = compare_loads([one])[0], compare_loads([*loads, one])[-1]
    assert only(alone).tests == 2
    assert only(among).tests == 10
    p, adjusted = (of(only(c), "max").adjusted_p for c in (alone, among))
    assert 2 / 252 == p <= adjusted


def test_equal_runs_are_no_evidence_with_what_would_have_been_found() -> None:
    a, b = planned([40, 41, 42, 43, 44], "a"), planned([40, 44, 42, 41, 43], "b")
    pair = only(compare({"a": a, "b": b}, deadline_ns=200 * US))
    assert pair.word is Word.NO_EVIDENCE
    maximum = of(pair, "max")
    assert maximum.detectable_ratio is not None
    assert 1.05 < maximum.detectable_ratio < 1.2
    few, many = (maximum.needed_runs(ratio) for ratio in (1.3, 1.1))
    assert few is not None
    assert many is not None
    assert 4 <= few <= many
    assert pair.sentence == (
        "no evidence that b differs from a; 5 v 5 runs find a maximum "
        f"{maximum.detectable_ratio:.2f} times as high with 80 % probability (needed "
        f"runs for 1.1 times {many} v {many}, 1.3 times {few} v {few})"
    )


@pytest.mark.parametrize("sizes", [(3, 8), (8, 3), (1, 1), (3, 3)])
def test_below_4_v_4_are_too_few_runs(sizes: tuple[int, int]) -> None:
    a = planned(range(40, 40 + sizes[0]), "a")
    b = planned(range(900, 900 + sizes[1]), "b")
    comparison = compare({"a": a, "b": b}, deadline_ns=200 * US)
    pair = only(comparison)
    assert (pair.word, pair.figures) == (Word.TOO_FEW_RUNS, ())
    assert pair.needed == 4
    assert pair.sentence == (
        f"too few runs to tell b from a: {sizes[0]} v {sizes[1]}, needed 4 v 4"
    )


def test_three_groups_need_more_runs_than_two() -> None:
    groups = {name: planned([40, 41, 42, 43], name) for name in "abc"}
    comparison = compare(groups, deadline_ns=200 * US)
    assert [p.word for p in comparison.pairs] == [Word.TOO_FEW_RUNS] * 2
    assert [p.needed for p in comparison.pairs] == [5, 5]


def test_each_further_group_is_compared_with_the_first() -> None:
    a = planned([40, 41, 42, 43, 44], "a")
    b = planned([80, 81, 82, 83, 84], "b")
    c = planned([40, 41, 42, 43, 45], "c", mean_ns=9_999)
    comparison = compare({"a": a, "b": b, "c": c})
    assert [(p.baseline, p.candidate, p.word) for p in comparison.pairs] == [
        ("a", "b", Word.DIFFERENT),
        ("a", "c", Word.NO_EVIDENCE),
    ]


def test_a_copy_of_a_measurement_is_no_second_run() -> None:
    a, b = planned([40], "a"), planned([80], "b")
    comparison = compare({"a": a * 4, "b": b * 4})
    assert [len(g.runs) for g in comparison.groups] == [1, 1]
    assert [g.repeats for g in comparison.groups] == [3, 3]
    assert only(comparison).word is Word.TOO_FEW_RUNS


def test_one_measurement_in_two_groups_is_refused() -> None:
    a = planned([40, 41, 42, 43], "a")
    with pytest.raises(UsageError, match=r"the same measurement .* is in a and in b:"):
        compare({"a": a, "b": a})


def test_the_ratio_of_maxima_is_that_of_their_medians() -> None:
    a, b = runs_of([40, 50, 60, 70]), runs_of([80, 100, 120, 140])
    pair = only(compare({"a": a, "b": b}))
    assert pair.max_ratios == (2, 80 / 70, 140 / 40)


def test_maxima_of_zero_are_held_against_as_one_nanosecond() -> None:
    zeros, ones = ([run_of(max_ns, mean_ns=max_ns)] for max_ns in (0, 1))
    for a, b in ((zeros, ones), (ones, zeros)):
        pair = only(compare({"a": a, "b": b}))
        assert pair.max_ratios == (1, 1, 1)


def test_runs_without_a_valid_measurement_are_left_out_by_name() -> None:
    a = runs_of([40, 41, 42, 43])
    bad = replace(a[0], caveats=(make("cpu_throttled"),))
    b = runs_of([40, 41, 42, 43], mean_ns=11_111)
    comparison = compare({"a": [bad, *a[1:]], "b": b})
    (left_out,) = comparison.groups[0].left_out
    assert left_out.run == "001-memory"
    assert len(comparison.groups[0].runs) == 3
    assert only(comparison).word is Word.TOO_FEW_RUNS


def test_a_clock_too_coarse_for_the_deadline_leaves_a_run_out() -> None:
    a = runs_of([40, 41, 42, 43])
    comparison = compare({"a": a, "b": a}, deadline_ns=19)
    assert [len(g.runs) for g in comparison.groups] == [0, 0]
    pair = only(comparison)
    assert pair.max_ratios is None


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"load": "idle"}, "runs under different loads (idle, memory): one a time"),
        (
            {"interval_ns": SECOND_NS // 2},
            "runs with different intervals (500 ms, 1 s) do not compare",
        ),
        (
            {"seconds": 120},
            "runs of 100 s to 2 min do not compare: a longer run has a larger "
            "maximum; measure equally long",
        ),
    ],
)
def test_runs_under_different_conditions_are_refused(
    other: dict[str, int], says: str
) -> None:
    with pytest.raises(UsageError) as refused:
        compare({"a": [run_of(40 * US)], "b": [run_of(40 * US, **other)]})  # type: ignore[arg-type]
    assert str(refused.value) == says


def test_a_virtual_board_does_not_compare_with_a_machine() -> None:
    with pytest.raises(UsageError, match="a virtual board's time and a machine's do"):
        compare({"a": [run_of(40 * US)], "b": [on_board(run_of(40 * US))]})


def traced(run: RunRecord, *, cause: str = "") -> RunRecord:
    return replace(run, result=replace(run.result, tracing=tracing(cause=cause)))


def test_a_traced_run_does_not_compare_with_one_that_was_not() -> None:
    plain, other = run_of(40 * US), run_of(41 * US)

    with pytest.raises(UsageError, match="tracing makes every wake-up later"):
        compare({"a": [plain], "b": [traced(plain)]})
    assert compare({"a": [traced(plain)], "b": [traced(other)]})
    # refused, it has changed nothing
    assert compare({"a": [plain], "b": [traced(other, cause="lockdown")]})


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


def test_many_runs_are_tested_with_a_seeded_sample_of_labellings() -> None:
    a, b = planned(range(40, 55), "a"), planned(range(60, 75), "b")
    first, again = (only(compare({"a": a, "b": b}, seed=3)) for _ in range(2))
    assert first.word is Word.DIFFERENT
    assert "max" in first.worse
    assert first == again
    assert min(f.p for f in first.figures) == 1 / (DRAWN_LABELLINGS + 1)


def test_the_spread_is_what_labels_and_blocks_leave() -> None:
    a, b = planned([40, 50, 60, 70], "a"), planned([80, 90, 70, 60], "b")
    pair = only(compare({"a": a, "b": b}))
    logs = [
        [math.log(us) for us in maxima]
        for maxima in ((40, 50, 60, 70), (80, 90, 70, 60))
    ]
    within = sum(4 * statistics.pvariance(values) for values in logs)
    # Eight values without the means of two groups of one block.
    assert of(pair, "max").spread == pytest.approx(math.sqrt(within / 6))


@pytest.mark.slow
def test_reports_of_the_same_runs_draw_the_same_labellings() -> None:
    groups = {"a": planned(range(40, 55), "a"), "b": planned(range(52, 67), "b")}
    first = compare(groups)
    assert first == compare(groups, seed=0) != compare(groups, seed=1)
    assert compare_loads([run_sets(groups)]) == (first,)


def test_a_laxer_level_calls_different_what_the_usual_one_does_not() -> None:
    groups = {"a": planned([40, 41, 42, 43], "a"), "b": planned([41, 42, 44, 45], "b")}
    usual, lax = compare(groups), compare(groups, alpha=0.5)
    assert [only(c).word for c in (usual, lax)] == [Word.NO_EVIDENCE, Word.DIFFERENT]


@pytest.mark.slow
def test_relabelling_runs_of_one_kernel_raises_at_most_alpha_false_alarms() -> None:
    """All 252 ways to call 5 of 10 runs of one kernel "b" are its A/A tests."""
    maxima = [41, 95, 44, 260, 47, 52, 230, 61, 48, 77]
    runs = planned(maxima, "a", block=1)
    alarms = 0
    for chosen in combinations(range(10), 5):
        a, b = (
            [
                replace(r, run=replace(r.run, variant="b" if i in chosen else "a"))
                for i, r in enumerate(runs)
                if (i in chosen) is ours
            ]
            for ours in (False, True)
        )
        pair = only(compare({"a": a, "b": b}, deadline_ns=200 * US))
        alarms += pair.word is Word.DIFFERENT
    assert 0 < alarms <= 0.05 * 252
