"""One answer to "does this run count?", in every verb that uses runs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from fakes.measurements import on_board, record, thread
from fakes.printed import render_text
from rtscope.present.formats.data import render_json
from rtscope.present.model.build import build_model
from rtscope.present.model.comparison import build_comparison
from rtscope.record.caveats.catalogue import Counts, Effect, catalogue, make
from rtscope.record.model import RunRecord
from rtscope.stats.compare import Pair, Word, compare_loads
from rtscope.stats.evidence import Claim, Verdict
from rtscope.stats.runcaveats import LeftOut, left_out_words, parted, why_left_out
from rtscope.stats.runsets import run_sets
from rtscope.stats.verdict import judge
from rtscope.verbs.exchange.writers.verdicts import cases
from rtscope.verbs.sweep.design import cells_of
from rtscope.verbs.sweep.file import sweep_of
from rtscope.verbs.sweep.ranking import ranking_of
from rtscope.verbs.sweep.result import SweepResult, result_of
from rtscope.verbs.sweep.text import lines_of_limits, sweep_answer, sweep_page

WITHOUT_LOAD = (
    *("load_died", "load_stalled", "stopped_early"),
    *("worker_died", "worker_stopped", "worker_idle"),
)

SEEDS = 12


def test_what_is_invalid_never_counts_and_the_rest_does_unless_the_table_says_so() -> (
    None
):
    counts = {name: kind.counts for name, kind in catalogue().items()}
    for name, kind in catalogue().items():
        if kind.effect is Effect.INVALID:
            assert counts[name] is Counts.NO
    limited = {n for n, c in counts.items() if c is Counts.NO} - {
        n for n, kind in catalogue().items() if kind.effect is Effect.INVALID
    }
    assert limited == set(WITHOUT_LOAD)


def runs(
    worst_ns: Sequence[int], *, caveats: Mapping[int, str] | None = None
) -> list[RunRecord]:
    """Return a run of a board for each seed; `caveats` are by the place of the run."""
    made = []
    for at, top in enumerate(worst_ns):
        latencies = [5_000 + at] * 1_000
        for late, place in enumerate((0, 101, 203, 307)):
            latencies[(53 * at + top % 50 + place) % 997] = top - late
        one = on_board(record([thread(latencies, worst_kept=4)]))
        run = replace(
            one.run,
            id=f"{at + 1:03}-cpu",
            seed=at + 1,
            kernel="rt",
            load="cpu",
            interval_ns=1_000_000,
        )
        named = (caveats or {}).get(at)
        raised = (make(named, "at once"),) if named else ()
        made.append(replace(one, run=run, caveats=raised))
    return made


def died(count: int, caveat: str = "load_died") -> Mapping[int, str]:
    return dict.fromkeys(range(count), caveat)


LATE = [900_000 + 7_000 * n for n in range(SEEDS)]
EARLY = [20_000 + 300 * n for n in range(SEEDS)]


def sweep(base: Sequence[RunRecord], changed: Sequence[RunRecord]) -> SweepResult:
    document = {
        "base": {
            "target": {"address": "virtual:pc"},
            "kernel": {"names": ["rt"]},
            "run": [{"load": "cpu", "duration": "1s", "interval": "1ms"}],
        },
        "axis": [
            {"name": "x", "level": [{"name": "y", "kernel": {"append": "quiet"}}]}
        ],
    }
    cells = cells_of(sweep_of(document, source="my.toml"))
    return result_of(
        "x",
        cells,
        records={0: base, 1: changed},
        planned={0: SEEDS, 1: SEEDS},
        failures={},
    )


@pytest.mark.parametrize("caveat", WITHOUT_LOAD)
def test_a_setting_that_kills_the_load_has_no_effect_in_a_sweep(caveat: str) -> None:
    found = sweep(runs(LATE), runs(EARLY, caveats=died(SEEDS, caveat)))

    assert found.effects == ()
    assert found.discoveries == ()
    assert found.cells[1].not_counted.startswith("12 of 12 runs of x: y do not count: ")
    assert catalogue()[caveat].message in sweep_answer(found)
    (line,) = lines_of_limits(found)
    assert "12 runs of x: y, left out of all effects" in line[0]
    assert "12 of 12 runs of x: y do not count" in sweep_page(found)


def test_the_pairs_that_are_left_are_tested_and_the_others_are_counted() -> None:
    found = sweep(runs(LATE), runs(EARLY, caveats=died(3)))

    effect = found.effect("x: y", found.keys[0], "worst")
    assert effect is not None
    assert effect.pairs == 9
    assert effect.found
    assert found.cells[1].not_counted.startswith("3 of 12 runs of x: y do not count")
    assert found.cells[0].not_counted == ""


def test_a_run_of_the_base_that_does_not_count_takes_its_pair_with_it() -> None:
    found = sweep(runs(LATE, caveats=died(2)), runs(EARLY))
    effect = found.effect("x: y", found.keys[0], "worst")
    assert effect is not None
    assert effect.pairs == 10


def machine(
    label: str, maxima_us: Sequence[int], caveats: Mapping[int, str] | None = None
) -> list[RunRecord]:
    made = []
    for at, top in enumerate(maxima_us):
        latencies = [5_000 + 11 * at + len(label)] * 999 + [1_000 * top + at]
        one = record([thread(latencies)], load="memory")
        named = (caveats or {}).get(at)
        raised = (make(named, "at once"),) if named else ()
        run = replace(one.run, id=f"{at + 1:03}-memory", repetition=at + 1)
        made.append(
            replace(one, run=run, caveats=raised, started_at=f"2026-01-01T00:{at:02}Z")
        )
    return made


SLOW = (900, 920, 930, 940, 950, 960)
FAST = (20, 21, 22, 23, 24, 25)


def pair_of(a: Sequence[RunRecord], b: Sequence[RunRecord]) -> Pair:
    (compared,) = compare_loads([run_sets({"a": a, "b": b})])
    (pair,) = compared.pairs
    return pair


@pytest.mark.parametrize("caveat", WITHOUT_LOAD)
def test_a_side_whose_load_died_is_not_better_in_a_comparison(caveat: str) -> None:
    pair = pair_of(machine("a", SLOW), machine("b", FAST, died(6, caveat)))

    assert (pair.better, pair.worse) == ((), ())
    assert pair.word is Word.TOO_FEW_RUNS
    assert pair.sizes == (6, 0)
    assert "6 of 6 runs of b do not count: " in pair.sentence
    assert catalogue()[caveat].message in pair.sentence


def test_a_comparison_goes_on_with_the_runs_that_count_and_says_how_many() -> None:
    pair = pair_of(machine("a", SLOW), machine("b", FAST, died(2)))
    assert pair.sizes == (6, 4)
    assert "2 of 6 runs of b do not count" in pair.sentence


def test_side_by_side_has_no_ratio_of_a_side_that_does_not_count() -> None:
    both = {"a": machine("a", SLOW), "b": machine("b", FAST, died(6))}
    document = json.loads(render_json(build_comparison(both)))
    (load,) = document["pair"]["loads"]
    assert load["max_ratio"] is None
    assert "6 of 6 runs of b do not count" in json.dumps(load["sentence"]).replace(
        "memory \\u00b7 ", ""
    )
    (compared,) = document["loads"]
    assert compared["sides"][1]["median_max_ns"] is None
    assert len(compared["sides"][1]["not_counted"]) == 6


def test_side_by_side_takes_the_maximum_of_the_runs_that_count() -> None:
    mixed = machine("b", (*FAST[:5], 9_999), {5: "load_died"})
    document = json.loads(
        render_json(build_comparison({"a": machine("a", SLOW), "b": mixed}))
    )
    (load,) = document["pair"]["loads"]
    assert load["max_ratio"] < 1


def test_a_report_shows_such_runs_and_gives_them_no_rate() -> None:
    model = build_model(machine("b", FAST, died(6)))
    (row,) = model.rows
    assert row.summary is not None
    assert row.summary.max_ns == 25_005
    assert "6 of 6 runs" in model.headline.support
    assert "less than once" not in model.headline.support
    assert any("6 of 6 runs" in said for said in model.findings)


def test_the_time_of_a_run_whose_load_died_supports_no_rate() -> None:
    all_count, some = (
        judge(machine("b", FAST, caveats), deadline_ns=10**6, claim=Claim(1, 10**9))
        for caveats in (None, died(3))
    )
    first, second = (one.findings[0].evidence for one in (all_count, some))
    assert second.observed_ns == first.observed_ns / 2
    assert "3 of 6 runs do not count" in some.findings[0].sentence


def test_a_miss_in_a_run_whose_load_died_is_a_miss() -> None:
    judged = judge(machine("b", FAST, died(6)), deadline_ns=22_000)
    assert judged.verdict is Verdict.NO


def test_a_case_of_a_run_that_does_not_count_does_not_pass() -> None:
    results = [
        case.result for case in cases(machine("b", FAST, died(1)), deadline_ns=10**6)
    ]
    assert results == ["unknown", *["pass"] * 5]
    (late, *_) = cases(machine("b", FAST, died(1)), deadline_ns=10_000)
    assert late.result == "fail"


@pytest.mark.parametrize("caveat", [*WITHOUT_LOAD, "load_unproved", "load_failed"])
def test_a_load_that_is_not_shown_to_have_run_has_no_rank(caveat: str) -> None:
    ranking = ranking_of(
        runs(EARLY[:2], caveats=died(1, caveat)), explained={}, failures={}
    )
    (load,) = ranking.loads
    assert load.standings == {}
    assert load.failures == {"rt": "at once"}


@pytest.mark.parametrize("caveat", ["load_unproved", "load_failed"])
def test_a_load_without_a_proof_counts_in_effects_and_comparisons(caveat: str) -> None:
    found = sweep(runs(LATE), runs(EARLY, caveats=died(SEEDS, caveat)))
    assert found.discoveries
    assert pair_of(machine("a", SLOW), machine("b", FAST, died(6, caveat))).better


def test_a_run_without_a_wake_up_does_not_count() -> None:
    (one,) = machine("a", [20])
    result = replace(one.result, threads=())
    assert why_left_out(replace(one, result=result)) == "no wake-up was measured"


def test_runs_of_one_name_from_two_places_are_told_apart() -> None:
    good, bad = (machine("a", [20], caveats) for caveats in (None, died(1)))
    counting, left_out = parted([*good, *bad])
    assert counting == tuple(good)
    assert [one.run for one in left_out] == ["001-memory"]


def test_the_reasons_are_counted() -> None:
    left_out = [LeftOut("1", "a"), LeftOut("2", "b"), LeftOut("3", "a")]
    assert left_out_words(left_out, of=12, whose="x") == (
        "3 of 12 runs of x do not count: a (2 runs); b (1 run)"
    )
    assert left_out_words(left_out[:1], of=1) == "1 of 1 run does not count: a"
    assert left_out_words([], of=12) == ""


def test_a_terminal_names_them_too() -> None:
    both = {"a": machine("a", SLOW), "b": machine("b", FAST, died(2))}
    assert "2 of 6 runs of b do not count" in " ".join(
        render_text(build_comparison(both)).split()
    )
