"""Exact repetitions count once; equal inputs with different results are a failure."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.comparing import compare
from fakes.measurements import on_board, record, thread
from rtscope.host.errors import UsageError
from rtscope.present.model.build import build_model
from rtscope.record.model import InputDigests, RunRecord
from rtscope.stats.compare import Word
from rtscope.stats.determinism import (
    against,
    among,
    caveats_among,
    contradictions,
    distinct,
    inputs_of,
)
from rtscope.stats.verdict import Claim, judge

SECOND_NS = 1_000_000_000
KERNEL = {"rt": "a" * 64, "plain": "e" * 64}


def run(
    max_us: int, *, seed: int = 1, kernel: str = "rt", load: str = "os"
) -> RunRecord:
    made = record([thread([5_000] * 99 + [max_us * 1_000])], load, kernel=kernel)
    return on_board(made, seed=seed, kernel_digest=KERNEL[kernel])


def ids_of(records: list[RunRecord]) -> list[set[str]]:
    return [{c.id for c in raised} for raised in caveats_among(records)]


def test_results_of_two_models_of_a_board_say_so() -> None:
    older = run(40)
    assert older.virtual is not None
    newer = on_board(run(50), kernel_digest=KERNEL["rt"], board_revision=2)
    other = on_board(
        run(60), kernel_digest=KERNEL["rt"], board="rpi3", board_revision=2
    )

    raised = caveats_among([older, newer, other])

    found = [[c for c in one if c.id == "other_board_model"] for one in raised]
    assert [len(one) for one in found] == [1, 1, 0]
    assert found[0][0].detail == f"{older.virtual.board}: revisions 1 and 2"
    assert "other_board_model" not in ids_of([older, run(50)])[0]


@settings(deadline=None)  # scipy is loaded by the first example
@given(st.lists(st.integers(10, 15), min_size=1, max_size=12))
def test_each_result_counts_once_however_often_it_was_measured(
    maxima_us: list[int],
) -> None:
    runs = [run(us, seed=us) for us in maxima_us]
    kept = distinct(runs)
    assert [r.result_digest for r in kept] == list(
        dict.fromkeys(r.result_digest for r in runs)
    )
    assert contradictions(runs) == ()
    (row,) = build_model(runs).rows
    assert (row.runs, row.runs + row.repeats) == (len(set(maxima_us)), len(runs))
    assert row.observed_ns == sum(
        t.end_ns - t.start_ns for r in kept for t in r.result.threads
    )


def test_runs_of_a_machine_are_no_copies_of_each_other() -> None:
    runs = [record([thread([5_000] * 9, start_ns=s * SECOND_NS)]) for s in (1, 2)]
    assert distinct(runs) == tuple(runs)
    assert inputs_of(runs[0]) is None
    assert contradictions([runs[0], record([thread([6_000] * 9)])]) == ()


def test_runs_of_a_machine_that_never_woke_are_all_kept() -> None:
    runs = [record([thread([])], repetition=i) for i in (1, 2)]
    assert distinct(runs) == tuple(runs)


def test_a_record_of_a_machine_given_three_times_counts_once_and_is_noted() -> None:
    once = [record([thread([5_000] * 999 + [950_000])])]
    thrice = [once[0], replace(once[0], run=replace(once[0].run, id="002-idle"))] * 2
    assert distinct(thrice) == tuple(once)
    noted = ids_of(once)[0] | {"copied_record"}
    assert ids_of(thrice) == [noted] * 4
    details = [c.detail for c in caveats_among(thrice)[1] if c.id == "copied_record"]
    assert details == ["idle: 4 copies of one record"]
    claim = Claim(1, SECOND_NS)
    [one], [three] = (
        judge(runs, deadline_ns=900_000, claim=claim, min_boots=1).findings
        for runs in (once, thrice)
    )
    assert one == three
    row, rows = (build_model(runs).rows[0] for runs in (once, thrice))
    assert (row.runs, rows.runs, rows.repeats) == (1, 1, 3)
    assert row.observed_ns == rows.observed_ns


def test_an_exact_repetition_is_noted_and_adds_no_exposure() -> None:
    once, thrice = [run(40)], [run(40)] * 3
    assert ids_of(thrice)[0] - ids_of(once)[0] == {"identical_repeats"}
    claim = Claim(1, SECOND_NS)
    judged = [
        judge(runs, deadline_ns=900_000, claim=claim).findings[0]
        for runs in (once, thrice)
    ]
    assert judged[0].evidence.observed_ns == judged[1].evidence.observed_ns
    assert (
        judged[0].evidence.supported_interval_ns
        == judged[1].evidence.supported_interval_ns
    )


def test_equal_inputs_with_different_results_are_said_loudly_and_invalid() -> None:
    model = build_model([run(40), run(41)], deadline_ns=900_000)
    assert model.verdict is not None
    assert model.verdict.word == "INVALID"
    assert model.caveats[0].id == "not_deterministic"
    assert model.caveats[0].details == ("os: 2 runs, 2 different results",)
    assert any(f.startswith("DETERMINISM FAILURE") for f in model.findings)


@pytest.mark.parametrize(
    "other",
    [
        run(41, seed=2),
        run(41, kernel="plain"),
        run(41, load="memory"),
        record([thread([41_000] * 9)], "os"),
    ],
)
def test_other_inputs_may_give_other_results(other: RunRecord) -> None:
    assert contradictions([run(40), other]) == ()


@pytest.mark.parametrize(
    ("label", "other"),
    [
        ("kernel", {"kernel_digest": "f" * 64}),
        ("initrd", {"initrd_digest": "f" * 64}),
        ("qemu", {"qemu_digest": "f" * 64}),
        ("plugin", {"plugin_digest": "f" * 64}),
        ("board", {"board": "vf2"}),
        ("board", {"cpus": 4}),
        ("board", {"mips": 250.0}),
        ("board", {"quantum_instructions": 5000}),
        ("seed", {"seed": 2}),
    ],
)
def test_whatever_is_another_is_another_input(
    label: str, other: dict[str, Any]
) -> None:
    runs = [run(40), on_board(run(41), **{"kernel_digest": KERNEL["rt"], **other})]
    assert contradictions(runs) == ()
    assert among(runs)[0].differing == (label,)


# --- comparing ---------------------------------------------------------------------


def test_one_trajectory_of_each_is_exact_and_no_sample() -> None:
    [pair] = compare(
        {"rt": [run(40)] * 5, "plain": [run(400, kernel="plain")] * 5}
    ).pairs
    assert (pair.word, pair.figures) == (Word.TOO_FEW_SEEDS, ())
    assert pair.max_ratios == (10.0, 10.0, 10.0)
    assert pair.sentence == (
        "one trajectory each, exact for these inputs; to tell plain from rt over all "
        "seeds takes 4 v 4"
    )


def test_over_four_seeds_the_trajectories_are_tested_exactly() -> None:
    rt = [run(40 + s, seed=s) for s in range(4)]
    plain = [run(400 + s, seed=s, kernel="plain") for s in range(4)]
    [pair] = compare({"rt": rt * 2, "plain": plain}).pairs
    assert (pair.word, pair.worse) == (Word.DIFFERENT, ("mean", "max"))
    assert "(4 v 4 trajectories, p = 0.029 after correction" in pair.sentence
    assert min(f.p for f in pair.figures) == 2 / 70


def test_equal_digests_are_identical_and_not_merely_without_evidence() -> None:
    groups = {"a": [run(40)], "b": [run(40)] * 4}
    [pair] = compare(groups).pairs
    assert pair.word is Word.IDENTICAL
    assert pair.sentence == (
        "b and a have the same results to the last count (equal digests)"
    )


def test_a_contradiction_between_the_sides_is_a_determinism_failure() -> None:
    comparison = compare({"before": [run(40)], "after": [run(41)]})
    assert comparison.pairs[0].word is Word.NOT_DETERMINISTIC


def test_a_contradiction_within_a_side_leaves_its_runs_out() -> None:
    comparison = compare({"a": [run(40), run(41)], "b": [run(9, kernel="plain")]})
    assert comparison.groups[0].runs == ()
    assert len(comparison.groups[0].left_out) == 2
    assert comparison.pairs[0].word is Word.NOT_DETERMINISTIC


def test_virtual_time_is_not_compared_with_a_machines() -> None:
    real = record([thread([5_000] * 100)], "os")
    with pytest.raises(UsageError, match="do not compare"):
        compare({"board": [run(40)], "machine": [real]})


# --- the gate ------------------------------------------------------------------------


def cell(
    run_id: str,
    *,
    result: str = "a",
    load: str = "idle",
    board: str = "a",
    **other: Any,
) -> RunRecord:
    made = record([thread([5_000])], load, kernel="k")
    seed = other.get("seed", 1)
    digests = InputDigests(
        kernel="a",
        initrd="b",
        qemu="c",
        plugin="d",
        board=board,
        campaign="e",
        seed=seed,
    )
    made = on_board(made, **{"input_digests": digests, **other})
    made = replace(made, result_digest=result * 64)
    return replace(made, run=replace(made.run, id=run_id, seed=seed))


def test_equal_inputs_and_results_are_identical() -> None:
    (found,) = among([cell("001-idle"), cell("002-idle")])

    assert found.identical
    assert found.name == "idle, k, seed 1"
    assert found.runs == ("001-idle", "002-idle")


def test_each_run_is_held_against_its_own_repetitions_only() -> None:
    found = among(
        [
            cell("001-idle"),
            cell("002-cpu", load="cpu", result="b"),
            cell("003-idle"),
            cell("004-cpu", load="cpu", result="c"),
        ]
    )

    assert [(one.name, one.identical) for one in found] == [
        ("idle, k, seed 1", True),
        ("cpu, k, seed 1", False),
    ]


def test_a_run_that_was_done_once_is_not_shown_to_be_identical() -> None:
    (found,) = among([cell("001-idle")])

    assert not found.identical


def test_the_inputs_that_differ_are_named() -> None:
    (found,) = against(
        [cell("001-idle", result="b", kernel_digest="new", initrd_digest="new")],
        [cell("001-idle")],
    )

    assert not found.same_result
    assert found.differing == ("kernel", "initrd")
    assert found.runs == ("stored 001-idle", "001-idle")


def test_a_run_of_another_seed_is_held_against_the_only_one_that_there_is() -> None:
    other = cell("001-idle", result="b", seed=2)
    (found,) = against([other], [cell("001-idle")])

    assert not found.same_result
    assert found.differing == ("seed",)
    assert len(against([other], [cell("001-idle"), cell("002-idle")])[0].results) == 3
    assert len(against([other, cell("002-idle")], [cell("001-idle")])[0].results) == 1


def test_an_equal_result_of_other_inputs_is_not_identical() -> None:
    (found,) = against([cell("001-idle", qemu_digest="new")], [cell("001-idle")])

    assert found.same_result
    assert not found.identical


def test_runs_of_several_events_have_them_in_their_names() -> None:
    def woken(event: str) -> RunRecord:
        one = cell("001-idle")
        return replace(one, run=replace(one.run, event=event))

    found = among([woken("timer"), woken("timer"), woken("uio"), woken("uio")])

    assert [one.name for one in found] == [
        "idle, k, seed 1",
        "idle, event uio, k, seed 1",
    ]


def test_what_the_stored_record_lacks_is_not_identical_to_it() -> None:
    found = against(
        [cell("001-idle"), cell("002-cpu", load="cpu")],
        [cell("007-idle"), cell("008-os", load="os")],
    )

    assert [one.identical for one in found] == [True, False]


def test_a_record_that_does_not_know_its_inputs_proves_nothing() -> None:
    (found,) = against([cell("001-idle")], [cell("001-idle", input_digests=None)])

    assert found.same_result
    assert not found.known
    assert not found.identical


def test_both_name_the_same_input_where_only_qemus_command_line_differs() -> None:
    runs = [cell("001-idle"), cell("002-idle", result="b", board="new")]

    assert [one.differing for one in among(runs)] == [("board",)]
    assert contradictions(runs) == ()
