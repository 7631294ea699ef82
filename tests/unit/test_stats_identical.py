"""The gate: equal inputs, equal results, and the name of what differs."""

from dataclasses import replace
from typing import Any

from fakes.measurements import record, thread
from rtscope.record.model import RunRecord
from rtscope.stats.identical import INPUTS, against, among


def run(
    run_id: str, *, result: str = "a", load: str = "idle", **other: Any
) -> RunRecord:
    made = record([thread([5_000])], load, kernel="k")
    inputs = {name: "same" for name in INPUTS} | {"seed": 1} | other
    return replace(
        made,
        run=replace(made.run, id=run_id, seed=1),
        result_digest=result * 64,
        extra={"virtual": {"inputs": inputs}},
    )


def test_equal_inputs_and_results_are_identical() -> None:
    (found,) = among([run("001-idle"), run("002-idle")])

    assert found.identical
    assert found.name == "idle, k, seed 1"
    assert found.runs == ("001-idle", "002-idle")


def test_each_run_is_held_against_its_own_repetitions_only() -> None:
    found = among(
        [
            run("001-idle"),
            run("002-cpu", load="cpu", result="b"),
            run("003-idle"),
            run("004-cpu", load="cpu", result="c"),
        ]
    )

    assert [(one.name, one.identical) for one in found] == [
        ("idle, k, seed 1", True),
        ("cpu, k, seed 1", False),
    ]


def test_a_run_that_was_done_once_is_not_shown_to_be_identical() -> None:
    (found,) = among([run("001-idle")])

    assert not found.identical


def test_the_inputs_that_differ_are_named() -> None:
    (found,) = against(
        [run("001-idle", result="b", kernel="new", initrd="new")], [run("001-idle")]
    )

    assert not found.same_result
    assert found.differing == ("kernel", "initrd")
    assert found.runs == ("stored 001-idle", "001-idle")


def test_a_run_of_another_seed_is_held_against_the_only_one_that_there_is() -> None:
    other = run("001-idle", result="b", seed=2)
    other = replace(other, run=replace(other.run, seed=2))
    (found,) = against([other], [run("001-idle")])

    assert not found.same_result
    assert found.differing == ("seed",)
    assert len(against([other], [run("001-idle"), run("002-idle")])[0].results) == 3
    assert len(against([other, run("002-idle")], [run("001-idle")])[0].results) == 1


def test_an_equal_result_of_other_inputs_is_not_identical() -> None:
    (found,) = against([run("001-idle", qemu="new")], [run("001-idle")])

    assert found.same_result
    assert not found.identical


def test_what_the_stored_record_lacks_is_not_identical_to_it() -> None:
    found = against(
        [run("001-idle"), run("002-cpu", load="cpu")],
        [run("007-idle"), run("008-os", load="os")],
    )

    assert [one.identical for one in found] == [True, False]


def test_a_record_that_does_not_know_its_inputs_proves_nothing() -> None:
    old = replace(run("001-idle"), extra={"virtual": {}})
    (found,) = against([run("001-idle")], [old])

    assert found.same_result
    assert not found.known
    assert not found.identical
