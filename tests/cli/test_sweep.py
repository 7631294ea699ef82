"""`rtscope sweep` on a board that is not booted."""

import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest

from fakes import targets
from fakes.bootedboard import FakeBoard
from fakes.commandline import Rtscope
from fakes.scheduler import FakeScheduler
from rtscope.cli import machinesurvey, sweep, sweepplan, sweepwork
from rtscope.cluster import dask
from rtscope.cluster import runner as cluster
from rtscope.errors import BoardError, ContractError, MeasurementError
from rtscope.loads import safe_stressors
from rtscope.record.model import Run
from rtscope.record.resultdir import open_records
from rtscope.record.virtual import InputDigests
from rtscope.sweep.file import with_stressors
from rtscope.target.fake import FakeTarget
from rtscope.virtual import runner, sweeping
from rtscope.virtual.hosttime import Kind, Took
from rtscope.virtual.stored import StoredResults

FILE = """
[sweep]
name = "ticks"
[base]
target.address = "virtual:pc"
kernel.names = ["debian-6.12-rt"]
campaign.seeds = 8
run = [{ load = "idle", duration = "1s", interval = "1ms" }]
[[axis]]
name = "tick"
level = [{ name = "off", kernel.append = "nohz=off" }]
[[axis]]
name = "CPUs"
level = [{ name = "one", run.cpus = "1" }]
"""


def one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeBoard:
    """A board in place of those that boot; its first results are the base's."""
    made = FakeBoard()
    made.smaller = (5_000, 7_000)
    base, twice = [10_000 + n for n in range(8)], [20_000 + n for n in range(8)]
    made.results = [base[0], *base, *twice, *base]
    monkeypatch.setattr(sweep, "prepare_campaign", made.prepare)
    monkeypatch.setattr(
        runner, "BoardRunner", lambda prepared, *_: made.runner(prepared)
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ticks.toml").write_text(FILE)
    return made


def test_a_sweep_measures_each_cell_and_ranks_what_it_found(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    said = rtscope("sweep", "ticks.toml", "--out", "out", "--json")

    assert said.status == 0, said.err
    result = json.loads(said.out)
    assert [cell["directory"] for cell in result["cells"]] == [
        "000-base",
        "001-tick-off",
        "002-CPUs-one",
    ]
    assert result["checks"] == {"planned": 1, "equal": 1, "failures": []}
    first = result["effects"][0]
    assert (first["cell"], first["figure"]) == ("tick: off", "worst")
    assert first["found"]
    assert first["ratio"] == pytest.approx(2, rel=0.01)
    assert not any(e["found"] for e in result["effects"] if e["cell"] == "CPUs: one")
    assert len(open_records(Path("out/cells/001-tick-off"))) == 8
    page = Path("out/sweep.html").read_text()
    assert "tick: off" in page
    assert "<script" not in page
    assert rtscope("report", "out/cells/000-base").status == 0


def test_a_dry_run_prints_the_cells_and_makes_nothing(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    said = rtscope("sweep", "ticks.toml", "--dry-run")

    assert said.status == 0
    assert "ticks: 3 cells, 24 runs" in said.err
    assert "to find it takes 9 (--seeds 9)" in one_line(said.err)
    assert not list(Path().glob("**/campaign.json"))


def test_the_plan_of_a_dry_run_is_there_as_json(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    said = rtscope("sweep", "ticks.toml", "--only", "tick", "--dry-run", "--json")

    assert said.status == 0, said.err
    plan = json.loads(said.out)
    assert plan["cells"] == [
        {
            "number": 0,
            "name": "base",
            "levels": {},
            "directory": "000-base",
            "runs": 8,
            "loads": ["idle"],
            "kernels": ["debian-6.12-rt"],
            "virtual_ns": 8 * 12_000_000_000,
        },
        {
            "number": 1,
            "name": "tick: off",
            "levels": {"tick": "off"},
            "directory": "001-tick-off",
            "runs": 8,
            "loads": ["idle"],
            "kernels": ["debian-6.12-rt"],
            "virtual_ns": 8 * 12_000_000_000,
        },
    ]
    assert (plan["name"], plan["target"], plan["runs"]) == ("ticks", "pc", 16)
    assert (plan["seeds"], plan["needed_seeds"]) == ([1, 2, 3, 4, 5, 6, 7, 8], 8)
    assert (plan["effects"], plan["cells_left"]) == (4, 1)
    assert plan["virtual_ns"] == 16 * 12_000_000_000
    assert plan["kernels_from_source"] == []
    assert not list(Path().glob("**/campaign.json"))


def test_the_plan_estimates_host_time_from_boots_of_the_same_loads(
    rtscope: Rtscope, board: FakeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    took = [Took(Kind("pc", "idle", 12_000_000_000), host_s) for host_s in (50, 70)]
    monkeypatch.setattr(sweepplan, "earlier_boots", lambda _: took)
    jobs = ("--jobs", "2", "--dry-run")

    said = rtscope("sweep", "ticks.toml", *jobs)
    told = rtscope("sweep", "ticks.toml", *jobs, "--json")
    board.results = []
    rtscope("sweep", "ticks.toml", "--out", "out", "--only", "tick")
    rest = rtscope("sweep", "--resume", "out", "--jobs", "1", "--dry-run")
    whole = rtscope("sweep", "--resume", "out", "--only", "tick", "--dry-run")

    assert (
        "about 12 min on this machine with 2 boards at once, from 2 earlier boots "
        "under the same loads; less for stored results"
    ) in one_line(said.err)
    host = json.loads(told.out)["host"]
    assert host == {"seconds": 720.0, "runs": 2, "boards_at_once": 2}
    assert "16 runs measured already about 8 min" in one_line(rest.err)
    assert "about" not in whole.err


def test_without_such_boots_the_plan_estimates_no_host_time(
    rtscope: Rtscope, board: FakeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    took = [Took(Kind("jh7110", "idle", 12_000_000_000), 50.0)]
    monkeypatch.setattr(sweepplan, "earlier_boots", lambda _: took)

    said = rtscope("sweep", "ticks.toml", "--dry-run", "--json")

    assert "this machine" not in said.err
    assert json.loads(said.out)["host"] is None


def test_the_plan_of_a_machine_has_its_own_time_and_no_seeds(
    rtscope: Rtscope,
) -> None:
    said = rtscope("sweep", "survey-machine", "--dry-run", "--json")

    plan = json.loads(said.out)
    assert plan["target"] == "local"
    assert plan["duration_ns"] > 0
    assert "virtual_ns" not in plan
    assert (plan["seeds"], plan["needed_seeds"]) == ([], None)


def test_a_full_design_tells_what_a_level_does_over_all_cells(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    Path("full.toml").write_text(FILE.replace("[sweep]", '[sweep]\ndesign = "full"'))
    first, *base = board.results[:9]
    twice = [2 * ns for ns in base]
    board.results = [first, *base, *base, *twice, *twice]

    said = rtscope("sweep", "full.toml", "--out", "out", "--json")
    shown = rtscope("sweep", "--resume", "out", "-v")

    assert said.status == 0, said.err
    assert "over all cells has 16 pairs of runs" in one_line(said.err)
    effects = json.loads(said.out)["main_effects"]
    assert {(one["cell"], one["pairs_of_cells"]) for one in effects} == {
        ("tick: off", 2),
        ("CPUs: one", 2),
    }
    worst = next(one for one in effects if one["found"] and one["figure"] == "worst")
    assert (worst["cell"], round(worst["ratio"], 2)) == ("tick: off", 2)
    assert "tick: off raises it under idle to 2.00 times" in one_line(shown.out)
    assert "Of single cells" in shown.out


def test_a_part_of_a_sweep_is_measured_and_the_rest_is_added_later(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    plan = rtscope("sweep", "ticks.toml", "--only", "tick", "--dry-run")
    part = rtscope("sweep", "ticks.toml", "--only", "tick", "--out", "out", "--json")
    page = Path("out/sweep.html").read_text()
    board.results = [10_000, *(10_000 + n for n in range(8))]  # the first one twice
    rest = rtscope("sweep", "--resume", "out", "--only", "o*", "--json")

    assert "ticks: 2 cells, 16 runs" in plan.err
    assert "1 more cell can be added later, with rtscope sweep --resume" in one_line(
        plan.err
    )
    assert part.status == 0, part.err
    first = json.loads(part.out)
    assert [cell["name"] for cell in first["cells"]] == ["base", "tick: off"]
    assert first["left_out"] == 1
    assert "1 cell of this sweep was not asked for yet" in page
    assert rest.status == 0, rest.err
    whole = json.loads(rest.out)
    assert [(cell["name"], cell["runs"]) for cell in whole["cells"]] == [
        ("base", 8),
        ("tick: off", 8),
        ("CPUs: one", 8),
    ]
    assert whole["left_out"] == 0
    # All effects are judged together.
    assert {effect["cell"] for effect in whole["effects"]} == {"tick: off", "CPUs: one"}


def test_what_an_earlier_part_lacks_is_still_missing_after_another_part(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    rtscope("sweep", "ticks.toml", "--only", "tick", "--out", "out")
    for run in Path().glob("out/cells/001-tick-off/runs/*"):
        (run / "record.json").unlink()
    board.results = [10_000, *(10_000 + n for n in range(8))]  # the first one twice

    said = rtscope("sweep", "--resume", "out", "--only", "CPUs", "--json")

    result = json.loads(said.out)
    assert said.status == 1
    assert {c["name"]: (c["runs"], c["planned"]) for c in result["cells"]}[
        "tick: off"
    ] == (0, 8)
    assert result["left_out"] == 0


def test_resuming_a_part_keeps_what_others_measured(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    rtscope("sweep", "ticks.toml", "--only", "tick", "--out", "out")
    board.results = [10_000, *(10_000 + n for n in range(8))]  # the first one twice

    said = rtscope("sweep", "--resume", "out", "--only", "CPUs: one", "--json")

    assert said.status == 0, said.err
    result = json.loads(said.out)
    assert [cell["planned"] for cell in result["cells"]] == [8, 8, 8]


def test_a_level_that_does_not_exist_is_refused_with_those_that_do(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    said = rtscope("sweep", "ticks.toml", "--only", "tick,tock")

    assert said.status == 2
    assert "nothing is called 'tock': name an axis (tick, CPUs)" in one_line(said.err)
    assert not list(Path().glob("**/campaign.json"))


def test_the_plan_counts_the_kernels_that_must_be_built(
    rtscope: Rtscope, board: FakeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path("cache").absolute()))
    base, _ = FILE.split("[[axis]]", 1)
    levels = ",".join(
        f'{{ name = "{hz}", kernel.config = "CONFIG_HZ_{hz}=y" }}' for hz in (100, 300)
    )
    made = base.replace("debian-6.12-rt", "pc-6.12-rt")
    Path("hz.toml").write_text(f'{made}[[axis]]\nname = "HZ"\nlevel=[{levels}]')

    said = rtscope("sweep", "hz.toml", "--dry-run")
    packaged = rtscope("sweep", "ticks.toml", "--dry-run")
    told = rtscope("sweep", "hz.toml", "--dry-run", "--json")
    cached = {(): True, ("CONFIG_HZ_100=y",): None}
    monkeypatch.setattr(
        sweepplan, "is_built_for", lambda one, _: cached.get(one.config, False)
    )
    mixed = rtscope("sweep", "hz.toml", "--dry-run")

    assert "3 kernels from source: 3 to build first" in one_line(said.err)
    assert (
        "3 kernels from source: 1 in the cache, 1 to build first, in minutes to an "
        "hour each (in less with ccache), 1 of a tree or repository of yours, built "
        "first if changed"
    ) in one_line(mixed.err)
    assert [one["config"] for one in json.loads(told.out)["kernels_from_source"]] == [
        [],
        ["CONFIG_HZ_100=y"],
        ["CONFIG_HZ_300=y"],
    ]
    assert "from source" not in packaged.err


def test_a_plan_of_many_cells_is_not_listed_whole(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    levels = ",".join(
        f'{{ name = "loops {n}", kernel.append = "lpj={n}" }}' for n in range(1, 50)
    )
    base, _ = FILE.split("[[axis]]", 1)
    Path("many.toml").write_text(f'{base}[[axis]]\nname = "loops"\nlevel=[{levels}]')

    said = rtscope("sweep", "many.toml", "--dry-run")

    assert said.status == 0, said.err
    assert "50 cells" in said.err
    assert "   39 " in said.err
    assert "   40 " not in said.err
    assert "and 10 more cells" in said.err


def test_a_resumed_sweep_measures_what_is_left(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    rtscope("sweep", "ticks.toml", "--out", "out")
    whole = Path("out/sweep.html").read_text()
    gone = sorted(Path("out/cells/001-tick-off/runs").glob("*/record.json"))[1]
    gone.unlink()
    board.results = [20_001, 20_001]

    said = rtscope("sweep", "--resume", "out", "-q")

    assert said.status == 0, said.err
    assert "tick: off raises it under idle to 2.00 times" in said.out
    assert Path("out/sweep.html").read_text() == whole


def test_a_sweep_does_not_go_on_with_another_agent_in_any_cell(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    rtscope("sweep", "ticks.toml", "--out", "out")
    for record in Path("out/cells/001-tick-off/runs").glob("*/record.json"):
        record.unlink()
    board.agent = "other"

    said = rtscope("sweep", "--resume", "out")

    assert said.status == 2
    assert "was measured with another agent-x86_64 than there is now" in said.err
    assert not list(Path("out/cells/001-tick-off/runs").glob("*/record.json"))


def test_equal_inputs_with_different_results_end_the_sweep(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    board.results[0] = 9_000

    said = rtscope("sweep", "ticks.toml", "--out", "out")

    assert said.status not in (0, 1)
    assert "measured twice with equal inputs, results differ" in said.err
    assert "to continue: rtscope sweep --resume out" in said.err
    assert "on this machine and" in said.err
    both = sorted(path.name for path in Path("out/differing/000-base").iterdir())
    assert [name.split("-")[-1] for name in both] == ["first.json", "second.json"]
    assert not list(Path("out/cells/000-base/runs").glob("*/record.json"))

    board.results = []
    again = rtscope("sweep", "--resume", "out", "-q")

    assert again.status == 0, again.err
    assert len(open_records(Path("out/cells/000-base"))) == 8


@pytest.mark.parametrize(("words", "reuse"), [([], True), (["--no-reuse"], False)])
def test_stored_results_are_taken_unless_told_otherwise(
    rtscope: Rtscope,
    board: FakeBoard,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    reuse: bool,
) -> None:
    taken: list[object] = []

    def started(
        prepared: object, _: object, __: object, reuse: object, *___: object
    ) -> object:
        taken.append(reuse)
        return board.runner(prepared)

    monkeypatch.setattr(runner, "BoardRunner", started)

    assert rtscope("sweep", "ticks.toml", "--out", "out", *words).status == 0
    assert taken == [reuse]


def test_results_that_differ_are_no_longer_stored(
    rtscope: Rtscope, board: FakeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[InputDigests] = []
    monkeypatch.setattr(StoredResults, "drop", lambda _, inputs: dropped.append(inputs))
    board.results[0] = 9_000

    rtscope("sweep", "ticks.toml", "--out", "out")

    assert [inputs.seed for inputs in dropped] == [1]


def test_other_results_from_where_they_differ_are_counted_and_no_longer_stored(
    rtscope: Rtscope, board: FakeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[InputDigests] = []
    monkeypatch.setattr(StoredResults, "drop", lambda _, inputs: dropped.append(inputs))
    monkeypatch.setattr(sweeping, "CHECK_EVERY", 5)
    board.results = [*[10_000] * 7, 9_000]
    board.worker_of = lambda run: "tcp://other" if run.seed == 2 else "tcp://same"

    said = rtscope("sweep", "ticks.toml", "--out", "out")

    assert sorted(inputs.seed for inputs in dropped) == [1, 3, 4, 5, 6]
    assert (
        "4 other results of this sweep are from there, and may be wrong too"
        in one_line(said.err)
    )
    assert "rtscope sweep --no-reuse and another --out" in one_line(said.err)


def test_results_of_earlier_starts_from_where_they_differ_count_too(
    rtscope: Rtscope, board: FakeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[tuple[int, str]] = []
    monkeypatch.setattr(
        StoredResults,
        "drop",
        lambda _, inputs: dropped.append((inputs.seed, inputs.kernel)),
    )
    board.worker_of = lambda run: "tcp://other" if run.seed == 2 else "tcp://same"
    rtscope("sweep", "ticks.toml", "--only", "tick", "--out", "out")
    board.results = [9_000]

    said = rtscope("sweep", "--resume", "out", "--only", "CPUs")

    # The base and one level were complete: seven runs each are of that worker.
    assert (
        "14 other results of this sweep are from there, and may be wrong too"
        in one_line(said.err)
    )
    assert sorted({seed for seed, _ in dropped}) == [1, 3, 4, 5, 6, 7, 8]
    assert len(dropped) == 15


def test_a_damaged_record_does_not_hide_that_results_differ(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    rtscope("sweep", "ticks.toml", "--only", "tick", "--out", "out")
    record = next(Path("out/cells/001-tick-off/runs").glob("*/record.json"))
    board.results = [9_000]
    board.fails = lambda run: bool(record.write_text("{")) and False

    said = rtscope("sweep", "--resume", "out", "--only", "CPUs")

    assert said.status == 3
    assert "measured twice with equal inputs, results differ" in one_line(said.err)


def test_a_check_that_fails_costs_no_result_and_is_named(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    board.fails = lambda run: run.id.endswith("again")
    board.results = []

    said = rtscope("sweep", "ticks.toml", "--out", "out")
    told = rtscope("sweep", "ticks.toml", "--out", "other", "--json")

    why = "000-base/001-idle-s1/again: it panics"
    assert said.status == told.status == 0, said.err
    assert f"0 of 1 determinism check equal, 1 failed: {why}" in one_line(said.out)
    result = json.loads(told.out)
    assert result["checks"] == {"planned": 1, "equal": 0, "failures": [why]}
    assert [cell["runs"] for cell in result["cells"]] == [8, 8, 8]


def test_a_check_without_a_first_result_is_named(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    board.fails = lambda run: run.id == "000-base/001-idle-s1"

    said = rtscope("sweep", "ticks.toml", "--out", "out", "--json")

    assert said.status == 1
    assert json.loads(said.out)["checks"] == {
        "planned": 1,
        "equal": 0,
        "failures": ["000-base/001-idle-s1: it panics"],
    }


def test_checks_of_earlier_starts_count(rtscope: Rtscope, board: FakeBoard) -> None:
    rtscope("sweep", "ticks.toml", "--out", "out")
    next(Path("out/cells/001-tick-off/runs").glob("*/record.json")).unlink()
    board.fails = lambda run: run.id.endswith("again")
    board.results = [20_000]

    said = rtscope("sweep", "--resume", "out", "--json")
    whole = rtscope("sweep", "--resume", "out", "--json")

    assert said.status == whole.status == 0, said.err
    checks = json.loads(said.out)["checks"]
    assert (checks["planned"], checks["equal"]) == (2, 1)
    assert len(checks["failures"]) == 1
    assert json.loads(whole.out)["checks"] == checks


def test_a_check_of_a_result_that_is_gone_does_not_count(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    rtscope("sweep", "ticks.toml", "--out", "out")
    Path("out/cells/000-base/runs/001-idle-s1/record.json").unlink()
    board.fails = lambda run: run.id.startswith("000-base/001-idle-s1")

    said = rtscope("sweep", "--resume", "out", "--json")

    assert said.status == 1
    assert json.loads(said.out)["checks"]["planned"] == 0


def test_a_run_that_fails_both_times_is_no_failed_check(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    board.fails = lambda run: run.id.startswith("000-base/001-idle-s1")

    said = rtscope("sweep", "ticks.toml", "--out", "out", "--json")

    assert said.status == 1
    assert json.loads(said.out)["checks"]["planned"] == 0


def test_a_run_that_failed_before_is_not_the_one_that_is_computed_twice(
    rtscope: Rtscope, board: FakeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "CHECK_EVERY", 5)
    board.results = []
    tried: list[str] = []

    def fails(run: Run) -> bool:
        tried.append(run.id)
        return run.id.startswith("000-base/001-idle-s1")

    board.fails = fails
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


@pytest.mark.parametrize("text", ["[]", "null", '{"a": null}', "[" * 200_000])
def test_a_damaged_list_of_failures_is_named(
    rtscope: Rtscope, board: FakeBoard, text: str
) -> None:
    rtscope("sweep", "ticks.toml", "--out", "out")
    Path("out/failed.json").write_text(text)

    said = rtscope("sweep", "--resume", "out")

    assert said.status == 3
    assert "out/failed.json: damaged: no list of failures" in one_line(said.err)


@pytest.mark.parametrize("text", ["{}", "null", '["x"]', "[" * 200_000])
def test_a_damaged_list_of_cells_is_named(
    rtscope: Rtscope, board: FakeBoard, text: str
) -> None:
    rtscope("sweep", "ticks.toml", "--out", "out")
    Path("out/asked.json").write_text(text)

    said = rtscope("sweep", "--resume", "out")

    assert said.status == 3
    assert "out/asked.json: damaged: no list of cells" in one_line(said.err)


@pytest.mark.parametrize("text", ["[]", "null", '{"a": null}', "[" * 200_000, "\xff"])
def test_a_damaged_list_of_checks_is_named(
    rtscope: Rtscope, board: FakeBoard, text: str
) -> None:
    rtscope("sweep", "ticks.toml", "--out", "out")
    Path("out/checked.json").write_text(text, encoding="latin-1")
    next(Path("out/cells/001-tick-off/runs").glob("*/record.json")).unlink()

    said = rtscope("sweep", "--resume", "out")

    assert said.status == 3
    assert len(open_records(Path("out/cells/001-tick-off"))) == 7
    assert "out/checked.json: damaged: no list of checks" in one_line(said.err)


def test_a_survey_names_a_check_that_fails(rtscope: Rtscope, board: FakeBoard) -> None:
    Path("survey.toml").write_text(SURVEY_FILE)
    board.fails = lambda run: run.id.endswith("again")
    board.results = []

    said = rtscope("sweep", "survey.toml", "--out", "out")
    told = rtscope("sweep", "survey.toml", "--out", "other", "--json")

    assert "0 of 1 determinism check equal, 1 failed" in one_line(said.out)
    assert len(json.loads(told.out)["checks"]["failures"]) == 1


@pytest.mark.parametrize("error", [BoardError, MeasurementError, ContractError])
def test_a_run_that_measured_nothing_is_named_and_the_others_go_on(
    rtscope: Rtscope, board: FakeBoard, error: type[MeasurementError]
) -> None:
    board.error = error
    board.fails = lambda run: run.id == "001-tick-off/002-idle-s2"

    said = rtscope("sweep", "ticks.toml", "--out", "out", "--json")

    assert said.status == 1
    (cell,) = (one for one in json.loads(said.out)["cells"] if one["failures"])
    assert cell["directory"] == "001-tick-off"
    assert cell["failures"] == ["001-tick-off/002-idle-s2: it panics"]
    assert cell["runs"] == 7


SURVEY_FILE = """
[sweep]
name = "which load"
[base]
target.address = "virtual:pc"
kernel.names = ["debian-6.12-rt"]
run = [{ load = "idle", duration = "1s", interval = "1ms" }]
[survey]
stressors = ["fork", "set"]
"""


def test_a_survey_ranks_its_loads_and_goes_on_after_an_interruption(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    Path("survey.toml").write_text(SURVEY_FILE)
    board.results = [8_000, 8_000, 9_000, 90_000]

    said = rtscope("sweep", "survey.toml", "--out", "out", "--json")

    assert said.status == 0, said.err
    result = json.loads(said.out)
    assert [load["name"] for load in result["loads"]] == [
        "stress-ng:set",
        "stress-ng:fork",
        "idle",
    ]
    assert "set is worst with 90" in result["answer"]
    page = Path("out/survey.html").read_text()
    assert "Loads on debian-6.12-rt" in page
    assert "<script" not in page
    gone = next(Path("out/cells/000-base/runs").glob("*set*/record.json"))
    gone.unlink()
    board.results = [90_000, 90_000]

    again = rtscope("sweep", "--resume", "out", "-q")

    assert again.status == 0, again.err
    assert "2 of 2 stressors above the usual loads" in again.out
    assert Path("out/survey.html").read_text() == page


MACHINE_FILE = """
[sweep]
name = "which load"
[base]
target.address = "local"
campaign.warmup = "0s"
run = [{ load = "idle", duration = "6s", interval = "100ms" }]
[survey]
stressors = ["switch", "sem"]
"""


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> FakeTarget:
    """A machine on which all goes well, in place of this one."""
    made = targets.target()
    monkeypatch.setattr(
        machinesurvey, "open_target", lambda address, **_: nullcontext(made)
    )
    return made


def test_a_load_that_a_machine_does_not_run_is_named_and_the_others_go_on(
    rtscope: Rtscope, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = targets.target({"load": [[targets.LOAD_HELLO]]})
    monkeypatch.setattr(
        machinesurvey, "open_target", lambda address, **_: nullcontext(refusing)
    )
    Path("survey.toml").write_text(MACHINE_FILE)

    said = rtscope("sweep", "survey.toml", "--out", "out", "--json")

    assert said.status == 1
    loads = {load["name"]: load for load in json.loads(said.out)["loads"]}
    assert not loads["idle"]["failures"]
    for name in ("stress-ng:switch", "stress-ng:sem"):
        (why,) = loads[name]["failures"].values()
        assert "the load ended before the measurement began" in why
    assert "Loads that did not run" in Path("out/survey.html").read_text()


def test_a_survey_of_a_machine_measures_its_loads_one_after_the_other(
    rtscope: Rtscope, machine: FakeTarget
) -> None:
    Path("survey.toml").write_text(MACHINE_FILE)

    said = rtscope("sweep", "survey.toml", "--out", "out", "--json")

    assert said.status == 0, said.err
    result = json.loads(said.out)
    assert not result["is_virtual"]
    assert {load["name"] for load in result["loads"]} == {
        "idle",
        "stress-ng:switch",
        "stress-ng:sem",
    }
    assert "virtual" not in result["answer"]
    assert [one["caveat"] for one in result["doubts"]] == ["guest"]
    page = Path("out/survey.html").read_text()
    assert "Loads on this machine, ranked" in page
    assert "LIMIT: this machine is virtual" in page
    assert "virtual µs" not in page
    gone = next(Path("out/cells/000-base/runs").glob("*sem*/record.json"))
    gone.unlink()

    again = rtscope("sweep", "--resume", "out", "-q")

    assert again.status == 0, again.err
    assert "1 of 1: stress-ng:sem" in again.err


def test_a_survey_that_came_by_mail_runs_no_command_on_a_machine(
    rtscope: Rtscope, machine: FakeTarget
) -> None:
    Path("survey.toml").write_text(MACHINE_FILE)
    rtscope("sweep", "survey.toml", "--out", "mail")
    document = json.loads(Path("mail/sweep.json").read_text())
    document["sweep"]["base"]["run"] += [{"load": "custom"}]
    document["sweep"]["base"]["campaign"]["command"] = ["touch", "owned"]
    Path("mail/sweep.json").write_text(json.dumps(document))
    machine.log.clear()

    said = rtscope("sweep", "--resume", "mail")

    assert said.status == 2
    assert "runs no command of its file" in one_line(said.err)
    assert machine.log == []


def test_a_survey_of_a_machine_that_cannot_measure_makes_no_directory(
    rtscope: Rtscope, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = targets.target(programs={})
    monkeypatch.setattr(
        machinesurvey, "open_target", lambda address, **_: nullcontext(lacking)
    )
    Path("survey.toml").write_text(MACHINE_FILE)

    said = rtscope("sweep", "survey.toml", "--out", "out")

    assert said.status == 3
    assert "need stress-ng, which is not installed" in one_line(said.err)
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["survey", "-t", "ssh:board"],
            "type rtscope sweep survey-machine --target ssh:board",
        ),
        (
            ["survey-machine", "-k", "debian-6.12"],
            "local is measured with the kernel that it runs",
        ),
        (["survey-machine", "--jobs", "2"], "on a machine, runs follow one another"),
        (["survey-machine", "--only", "sem"], "a survey has no levels"),
    ],
)
def test_what_is_of_boards_is_refused_on_a_machine(
    rtscope: Rtscope, words: Sequence[str], message: str
) -> None:
    said = rtscope("sweep", *words, "--dry-run")

    assert said.status == 2
    assert message in one_line(said.err)


def test_a_machine_takes_the_stressors_that_it_survives(rtscope: Rtscope) -> None:
    said = rtscope("sweep", "survey-machine", "--dry-run")

    assert said.status == 0, said.err
    assert f"{5 + len(safe_stressors())} loads, in turn" in said.err


def test_ones_own_qemu_is_refused_on_a_cluster_before_anything_is_made(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    text = FILE.replace("[base]", '[base]\ntarget.qemu = "./qemu"')
    Path("ticks.toml").write_text(text)
    Path("qemu").touch()
    on = ("--on", "tcp://127.0.0.1:9")

    said = rtscope("sweep", "ticks.toml", "--out", "out", *on)

    assert said.status == 2
    assert "target.qemu names a QEMU of this machine" in one_line(said.err)
    assert not Path("out").exists()
    assert rtscope("sweep", "ticks.toml", "--out", "out").status == 0


def test_workers_of_a_cluster_decide_how_many_boards_they_boot(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    on = ("--on", "tcp://127.0.0.1:9")

    said = rtscope("sweep", "ticks.toml", "--out", "out", "--jobs", "2", *on)

    assert said.status == 2
    assert "--jobs 2: each worker of a cluster boots as many boards as" in one_line(
        said.err
    )
    assert "--nthreads" in said.err
    assert not Path("out").exists()


LEVELS = """
[[axis]]
name = "kernel"
level = [{ name = "none", kernel.names = ["debian-6.21"] }]
[[axis]]
name = "symbols"
level = [{ name = "HZ", kernel.config = "CONFIG_HZ_100=y" }]
[[axis]]
name = "setting"
level = [{ name = "ticks", target.tuned = "skewed_ticks" }]
"""


@pytest.mark.parametrize("more", [("--dry-run",), ()])
def test_what_the_board_cannot_do_is_refused_before_the_plan_all_at_once(
    rtscope: Rtscope, board: FakeBoard, more: Sequence[str]
) -> None:
    Path("ticks.toml").write_text(FILE.replace('cpus = "1"', 'cpus = "5"') + LEVELS)

    said = rtscope("sweep", "ticks.toml", "--out", "out", *more)

    assert said.status == 2
    lines = [line.strip() for line in said.err.splitlines()]
    assert [line.split(":")[0] for line in lines if line[:6] != "ticks."] == [
        "rtscope",
        "CPUs",
        "kernel",
        "symbols",
        "setting",
    ]
    assert "virtual time" not in said.err
    assert not Path("out").exists()


def test_a_board_that_there_is_not_is_refused_before_its_stressors_are_listed(
    rtscope: Rtscope,
) -> None:
    said = rtscope("sweep", "survey", "--target", "virtual:pcc", "--dry-run")

    assert said.status == 2
    assert "survey: base: no such board: 'pcc'; did you mean 'pc'?" in one_line(
        said.err
    )


def test_a_sweep_that_is_complete_is_shown_though_its_kernel_is_gone(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    rtscope("sweep", "ticks.toml", "--out", "out")
    document = Path("out/sweep.json")
    document.write_text(document.read_text().replace("debian-6.12-rt", "gone-6.12"))

    assert rtscope("sweep", "--resume", "out").status == 0


@pytest.mark.parametrize(
    ("words", "seeds"),
    [
        (("--seeds", "3"), [1, 2, 3]),
        (("--seeds", "5,9"), [5, 9]),
        (("--seed", "7"), [7]),
    ],
)
def test_seeds_replace_those_of_the_file_and_stay_after_an_interruption(
    rtscope: Rtscope, board: FakeBoard, words: Sequence[str], seeds: list[int]
) -> None:
    board.results = []

    said = rtscope("sweep", "ticks.toml", "--out", "out", *words)
    for record in Path().glob("out/cells/*/runs/*/record.json"):
        record.unlink()
    again = rtscope("sweep", "--resume", "out", "--json")

    assert said.status == again.status == 0, said.err
    for cell in json.loads(again.out)["cells"]:
        found = open_records(Path("out/cells") / cell["directory"])
        assert [record.run.seed for record in found] == seeds


def test_a_shipped_sweep_takes_other_seeds_too(rtscope: Rtscope) -> None:
    words = ("--target", "virtual:jh7110", "--kernel", "jh7110-6.12-rt")

    said = rtscope(
        "sweep",
        "price",
        *words,
        "--seeds",
        "8",
        "--only",
        "boot",
        "--dry-run",
        "--json",
    )

    assert said.status == 0, said.err
    plan = json.loads(said.out)
    assert plan["seeds"] == list(range(1, 9))
    assert plan["cells"][0]["runs"] == 3 * 8


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("ticks.toml", "--seeds", "21"), "--seeds '21': write at most 20"),
        (("ticks.toml", "--seeds", "0"), "--seeds: 0: write 1 to"),
        (("ticks.toml", "--seeds", "1,1"), "--seeds: '1' occurs twice"),
        (("ticks.toml", "--seeds", "few"), "--seeds: 'few': write a whole number"),
        (("ticks.toml", "--seed", "-1"), "--seed: -1: write 0 to"),
        (("ticks.toml", "--seed", "1", "--seeds", "2"), "--seeds: excludes seed"),
        (("survey-machine", "--seeds", "2"), "--seeds: local has no random seed"),
        (("remedies", "out", "--seeds", "2"), "leave out --seeds"),
        (("--resume", "out", "--seeds", "2"), "leave out --seeds"),
        (("--resume", "out", "--seed", "0"), "leave out --seed"),
    ],
)
def test_seeds_that_cannot_be_taken_are_refused(
    rtscope: Rtscope, board: FakeBoard, words: Sequence[str], message: str
) -> None:
    said = rtscope("sweep", *words, "--dry-run")

    assert said.status == 2
    assert message in one_line(said.err)


@pytest.mark.parametrize(
    ("on", "warned"),
    [
        (["tcp://127.0.0.1:9"], True),
        (["tls://h:9", "--tls-ca", "c", "--tls-cert", "c", "--tls-key", "c"], False),
    ],
)
def test_plain_tcp_warns_of_other_users_of_this_machine(
    rtscope: Rtscope,
    board: FakeBoard,
    monkeypatch: pytest.MonkeyPatch,
    on: Sequence[str],
    warned: bool,
) -> None:
    Path("c").write_text("")
    scheduler = FakeScheduler(lambda *_: None, {"w1": 2})
    monkeypatch.setattr(dask, "connected", lambda _: nullcontext(scheduler))
    monkeypatch.setattr(
        cluster, "ClusterRunner", lambda _, prepared, *__: board.runner(prepared)
    )

    said = rtscope("sweep", "ticks.toml", "--out", "out", "--on", *on)

    assert said.status == 0, said.err
    assert "1 worker at t" in said.err
    assert ("any user of this machine can run programs as you" in said.err) == warned


def test_a_shipped_sweep_is_found_beside_a_directory_of_its_name(
    rtscope: Rtscope, board: FakeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("survey").mkdir()
    monkeypatch.setattr(
        sweepwork, "with_listed", lambda found, command: with_stressors(found, ["fork"])
    )

    said = rtscope("sweep", "survey", "--kernel", "debian-6.12-rt", "--dry-run")

    assert said.status == 0, said.err
    assert "survey: 1 cell, 6 runs" in said.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name a sweep file"),
        (["none.toml"], "cannot read sweep none.toml: no such file; with rtscope come"),
        (["ticks.toml", "--resume", "out"], "as it was started: leave out FILE"),
        (["--resume", "."], "no sweep there: it has no sweep.json; name the --out of"),
        (["ticks.toml", "--out", "."], "not empty"),
        (["ticks.toml", "--out", "ticks.toml"], "--out ticks.toml: not empty"),
    ],
)
def test_what_cannot_begin_is_refused(
    rtscope: Rtscope, board: FakeBoard, words: Sequence[str], message: str
) -> None:
    said = rtscope("sweep", *words)

    assert said.status == 2
    assert message in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    "text", ["{}", "[", "[" * 100_000, '{"schema": 1, "sweep": 3, "command": []}']
)
def test_a_damaged_document_is_refused(
    rtscope: Rtscope, board: FakeBoard, text: str
) -> None:
    Path("out").mkdir()
    Path("out/sweep.json").write_text(text)

    said = rtscope("sweep", "--resume", "out")

    assert said.status in (2, 3)
    assert "out/sweep.json" in said.err
    assert "Traceback" not in said.err


def test_a_directory_with_a_sweep_is_refused_with_how_to_go_on(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    rtscope("sweep", "ticks.toml", "--out", "out")

    said = rtscope("sweep", "ticks.toml", "--out", "out")

    assert said.status == 2
    assert "go on with the sweep in it: rtscope sweep --resume out" in one_line(
        said.err
    )
