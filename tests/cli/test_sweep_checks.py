"""Runs that `rtscope sweep` measures twice, and those that fail."""

import json
from pathlib import Path

import pytest

from fakes.bootedboard import FakeBoard
from fakes.commandline import Rtscope
from fakes.sweepfile import one_line
from rtscope.boards.runs import runner
from rtscope.boards.runs.store import StoredResults
from rtscope.host.errors import BoardError, ContractError, MeasurementError
from rtscope.record.directory.records import ResultDir, open_records
from rtscope.record.model import InputDigests, Run
from rtscope.verbs.sweep import boots as sweeping
from rtscope.verbs.sweep import directory as sweepwork


def test_equal_inputs_with_different_results_end_the_sweep(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    sweep_board.results[0] = 9_000

    said = rtscope("sweep", "ticks.toml", "--out", "out")

    assert said.status not in (0, 1)
    assert "measured twice with equal inputs, results differ" in said.err
    assert "to continue: rtscope sweep --resume out" in said.err
    assert "on this machine and" in said.err
    both = sorted(path.name for path in Path("out/differing/000-base").iterdir())
    assert [name.split("-")[-1] for name in both] == ["first.json", "second.json"]
    assert not list(Path("out/cells/000-base/runs").glob("*/record.json"))

    sweep_board.results = []
    again = rtscope("sweep", "--resume", "out", "-q")

    assert again.status == 0, again.err
    assert len(open_records(Path("out/cells/000-base"))) == 8


def test_costs_that_differ_end_the_sweep_though_the_wake_ups_are_equal(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    """Memory, operations and instructions are ranked too."""
    sweep_board.available_kb = [945_008, 945_004]
    computed = iter(["tcp://one", "tcp://two"])
    sweep_board.worker_of = lambda _: next(computed, "tcp://one")

    said = rtscope("sweep", "ticks.toml", "--out", "out")

    assert said.status == 3
    assert (
        "results differ: facts_before.memory_available_kb.value is 945008 on worker "
        "tcp://one and 945004 on worker tcp://two; "
        "facts_after.memory_available_kb.value differs too; one of them computes "
        "wrongly" in one_line(said.err)
    )
    assert not list(Path("out/cells/000-base/runs").glob("*/record.json"))


@pytest.mark.parametrize(("words", "reuse"), [([], True), (["--no-reuse"], False)])
def test_stored_results_are_taken_unless_told_otherwise(
    rtscope: Rtscope,
    sweep_board: FakeBoard,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    reuse: bool,
) -> None:
    taken: list[object] = []

    def started(
        prepared: object, _: object, __: object, reuse: object, *___: object
    ) -> object:
        taken.append(reuse)
        return sweep_board.runner(prepared)

    monkeypatch.setattr(runner, "BoardRunner", started)

    assert rtscope("sweep", "ticks.toml", "--out", "out", *words).status == 0
    assert taken == [reuse]


def test_results_that_differ_are_no_longer_stored(
    rtscope: Rtscope, sweep_board: FakeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[InputDigests] = []
    monkeypatch.setattr(StoredResults, "drop", lambda _, inputs: dropped.append(inputs))
    sweep_board.results[0] = 9_000

    rtscope("sweep", "ticks.toml", "--out", "out")

    assert [inputs.seed for inputs in dropped] == [1]


def test_other_results_from_where_they_differ_are_counted_and_no_longer_stored(
    rtscope: Rtscope, sweep_board: FakeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[InputDigests] = []
    monkeypatch.setattr(StoredResults, "drop", lambda _, inputs: dropped.append(inputs))
    monkeypatch.setattr(sweeping, "CHECK_EVERY", 5)
    sweep_board.results = [*[10_000] * 7, 9_000]
    sweep_board.worker_of = lambda run: "tcp://other" if run.seed == 2 else "tcp://same"

    said = rtscope("sweep", "ticks.toml", "--out", "out")

    assert sorted(inputs.seed for inputs in dropped) == [1, 3, 4, 5, 6]
    assert (
        "4 other results of this sweep were computed there, and may be wrong too"
        in one_line(said.err)
    )
    assert "rtscope sweep --no-reuse and another --out" in one_line(said.err)


def test_results_of_earlier_starts_from_where_they_differ_count_too(
    rtscope: Rtscope, sweep_board: FakeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[tuple[int, str]] = []
    monkeypatch.setattr(
        StoredResults,
        "drop",
        lambda _, inputs: dropped.append((inputs.seed, inputs.kernel)),
    )
    sweep_board.worker_of = lambda run: "tcp://other" if run.seed == 2 else "tcp://same"
    rtscope("sweep", "ticks.toml", "--only", "tick", "--out", "out")
    sweep_board.results = [9_000]

    said = rtscope("sweep", "--resume", "out", "--only", "CPUs")

    # The base and one level were complete: seven runs each are of that worker.
    assert (
        "14 other results of this sweep were computed there, and may be wrong too"
        in one_line(said.err)
    )
    assert sorted({seed for seed, _ in dropped}) == [1, 3, 4, 5, 6, 7, 8]
    assert len(dropped) == 15


def test_a_damaged_record_does_not_hide_that_results_differ(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    rtscope("sweep", "ticks.toml", "--only", "tick", "--out", "out")
    record = next(Path("out/cells/001-tick-off/runs").glob("*/record.json"))
    sweep_board.results = [9_000]
    sweep_board.fails = lambda run: bool(record.write_text("{")) and False

    said = rtscope("sweep", "--resume", "out", "--only", "CPUs")

    assert said.status == 3
    assert "measured twice with equal inputs, results differ" in one_line(said.err)


def test_a_check_that_fails_costs_no_result_and_is_named(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    sweep_board.fails = lambda run: run.id.endswith("again")
    sweep_board.results = []

    said = rtscope("sweep", "ticks.toml", "--out", "out")
    told = rtscope("sweep", "ticks.toml", "--out", "other", "--json")

    why = "000-base/001-idle-s1/again: it panics"
    assert said.status == told.status == 0, said.err
    assert f"0 of 1 determinism check equal, 1 failed: {why}" in one_line(said.out)
    result = json.loads(told.out)
    assert result["checks"] == {"planned": 1, "equal": 0, "failures": [why]}
    assert [cell["runs"] for cell in result["cells"]] == [8, 8, 8]


def test_a_check_without_a_first_result_is_named(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    sweep_board.fails = lambda run: run.id == "000-base/001-idle-s1"

    said = rtscope("sweep", "ticks.toml", "--out", "out", "--json")

    assert said.status == 1
    assert json.loads(said.out)["checks"] == {
        "planned": 1,
        "equal": 0,
        "failures": ["000-base/001-idle-s1: it panics"],
    }


def test_checks_of_earlier_starts_count(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    rtscope("sweep", "ticks.toml", "--out", "out")
    next(Path("out/cells/001-tick-off/runs").glob("*/record.json")).unlink()
    sweep_board.fails = lambda run: run.id.endswith("again")
    sweep_board.results = [20_000]

    said = rtscope("sweep", "--resume", "out", "--json")
    whole = rtscope("sweep", "--resume", "out", "--json")

    assert said.status == whole.status == 0, said.err
    checks = json.loads(said.out)["checks"]
    assert (checks["planned"], checks["equal"]) == (2, 1)
    assert len(checks["failures"]) == 1
    assert json.loads(whole.out)["checks"] == checks


def test_a_check_of_a_result_that_is_gone_does_not_count(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    rtscope("sweep", "ticks.toml", "--out", "out")
    Path("out/cells/000-base/runs/001-idle-s1/record.json").unlink()
    sweep_board.fails = lambda run: run.id.startswith("000-base/001-idle-s1")

    said = rtscope("sweep", "--resume", "out", "--json")

    assert said.status == 1
    assert json.loads(said.out)["checks"]["planned"] == 0


def test_a_run_that_fails_both_times_is_no_failed_check(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    sweep_board.fails = lambda run: run.id.startswith("000-base/001-idle-s1")

    said = rtscope("sweep", "ticks.toml", "--out", "out", "--json")

    assert said.status == 1
    assert json.loads(said.out)["checks"]["planned"] == 0


def test_a_run_that_failed_before_is_not_the_one_that_is_computed_twice(
    rtscope: Rtscope, sweep_board: FakeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "CHECK_EVERY", 5)
    sweep_board.results = []
    tried: list[str] = []

    def fails(run: Run) -> bool:
        tried.append(run.id)
        return run.id.startswith("000-base/001-idle-s1")

    sweep_board.fails = fails
    rtscope("sweep", "ticks.toml", "--only", "tick", "--out", "out")
    first = [name for name in tried if name.endswith("again")]
    tried.clear()

    rtscope("sweep", "--resume", "out", "--only", "CPUs")
    second = [name for name in tried if name.endswith("again")]
    tried.clear()
    rtscope("sweep", "--resume", "out")

    assert first[0] == "000-base/001-idle-s1/again"
    assert len(first) == 4
    assert second == [
        "002-CPUs-one/001-idle-s1/again",
        "002-CPUs-one/005-idle-s5/again",
    ]
    # It alone is left, and takes its time once.
    assert tried == ["000-base/001-idle-s1"]


def test_a_note_looks_at_the_runs_of_the_list_alone(
    rtscope: Rtscope, sweep_board: FakeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sweep of 2,000 cells takes hundreds of notes, and has 16,000 runs."""
    sweep_board.fails = lambda run: run.id == "001-tick-off/002-idle-s2"
    rtscope("sweep", "ticks.toml", "--out", "out")
    work = sweepwork.resumed_work(Path("out"), only=None)
    monkeypatch.setattr(ResultDir, "done_ids", lambda _: pytest.fail("all are listed"))

    sweepwork.note_failed(work, "001-tick-off/003-idle-s3", "it has a result")
    sweepwork.note_check(work, "0" * 300, "")
    sweepwork.note_check(work, "000-base/001-idle-s1", "")

    assert [*work.failed()] == ["001-tick-off/002-idle-s2"]
    assert work.checks.equal == 1


@pytest.mark.slow
@pytest.mark.parametrize("text", ["[]", "null", '{"a": null}', "[" * 200_000])
def test_a_damaged_list_of_failures_is_named(
    rtscope: Rtscope, sweep_board: FakeBoard, text: str
) -> None:
    rtscope("sweep", "ticks.toml", "--out", "out")
    Path("out/failed.json").write_text(text)

    said = rtscope("sweep", "--resume", "out")

    assert said.status == 3
    assert "out/failed.json: damaged: no list of failures" in one_line(said.err)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["{}", "null", '["x"]', "[" * 200_000])
def test_a_damaged_list_of_cells_is_named(
    rtscope: Rtscope, sweep_board: FakeBoard, text: str
) -> None:
    rtscope("sweep", "ticks.toml", "--out", "out")
    Path("out/asked.json").write_text(text)

    said = rtscope("sweep", "--resume", "out")

    assert said.status == 3
    assert "out/asked.json: damaged: no list of cells" in one_line(said.err)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["[]", "null", '{"a": null}', "[" * 200_000, "\xff"])
def test_a_damaged_list_of_checks_is_named(
    rtscope: Rtscope, sweep_board: FakeBoard, text: str
) -> None:
    rtscope("sweep", "ticks.toml", "--out", "out")
    Path("out/checked.json").write_text(text, encoding="latin-1")
    next(Path("out/cells/001-tick-off/runs").glob("*/record.json")).unlink()

    said = rtscope("sweep", "--resume", "out")

    assert said.status == 3
    assert len(open_records(Path("out/cells/001-tick-off"))) == 7
    assert "out/checked.json: damaged: no list of checks" in one_line(said.err)


@pytest.mark.parametrize("error", [BoardError, MeasurementError, ContractError])
def test_a_run_that_measured_nothing_is_named_and_the_others_go_on(
    rtscope: Rtscope, sweep_board: FakeBoard, error: type[MeasurementError]
) -> None:
    sweep_board.error = error
    sweep_board.fails = lambda run: run.id == "001-tick-off/002-idle-s2"

    said = rtscope("sweep", "ticks.toml", "--out", "out", "--json")

    assert said.status == 1
    (cell,) = (one for one in json.loads(said.out)["cells"] if one["failures"])
    assert cell["directory"] == "001-tick-off"
    assert cell["failures"] == ["001-tick-off/002-idle-s2: it panics"]
    assert cell["runs"] == 7


def test_runs_that_failed_in_an_earlier_start_keep_their_reason(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    """They were not interrupted, and going on with other cells does not retry them."""
    sweep_board.fails = lambda run: run.id == "001-tick-off/002-idle-s2"
    sweep_board.results = []
    rtscope("sweep", "ticks.toml", "--only", "tick", "--out", "out")

    said = rtscope("sweep", "--resume", "out", "--only", "CPUs")
    told = rtscope("sweep", "--resume", "out", "--only", "CPUs", "--json")

    why = "001-tick-off/002-idle-s2: it panics"
    assert f"1 planned run without a result: {why}" in one_line(said.out)
    cells = {cell["name"]: cell["failures"] for cell in json.loads(told.out)["cells"]}
    assert cells == {"base": [], "tick: off": [why], "CPUs: one": []}
    assert why in Path("out/sweep.html").read_text()
