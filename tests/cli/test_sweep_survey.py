"""`rtscope sweep` of a survey: which load is worst, on a board or on a machine."""

import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest

from fakes import targets
from fakes.bootedboard import FakeBoard
from fakes.commandline import Rtscope
from fakes.explaining import FakeExplaining
from fakes.faketarget import FakeTarget
from fakes.sweepfile import one_line
from pages.jsonkeys import keys_without_words
from rtscope.explain import directory as analysis
from rtscope.measure.loads import safe_stressors
from rtscope.verbs.sweep import directory as sweepwork
from rtscope.verbs.sweep import sweep
from rtscope.verbs.sweep.file import with_stressors

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
    monkeypatch.setattr(sweep, "open_target", lambda address, **_: nullcontext(made))
    return made


def test_a_survey_names_a_check_that_fails(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    Path("survey.toml").write_text(SURVEY_FILE)
    sweep_board.fails = lambda run: run.id.endswith("again")
    sweep_board.results = []

    said = rtscope("sweep", "survey.toml", "--out", "out")
    told = rtscope("sweep", "survey.toml", "--out", "other", "--json")

    assert "0 of 1 determinism check equal, 1 failed" in one_line(said.out)
    assert len(json.loads(told.out)["checks"]["failures"]) == 1


def test_a_survey_ranks_its_loads_and_goes_on_after_an_interruption(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    Path("survey.toml").write_text(SURVEY_FILE)
    sweep_board.results = [8_000, 8_000, 9_000, 90_000]

    said = rtscope("sweep", "survey.toml", "--out", "out", "--json")

    assert said.status == 0, said.err
    result = json.loads(said.out)
    assert keys_without_words(result, "rtscope sweep survey --json") == []
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
    sweep_board.results = [90_000, 90_000]

    again = rtscope("sweep", "--resume", "out", "-q")

    assert again.status == 0, again.err
    assert "2 of 2 stressors above the usual loads" in again.out
    assert Path("out/survey.html").read_text() == page


def test_ctrl_c_while_a_survey_explains_shows_the_ranking(
    rtscope: Rtscope, sweep_board: FakeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("survey.toml").write_text(SURVEY_FILE)
    sweep_board.results = [8_000, 8_000, 9_000, 90_000]
    explaining = FakeExplaining()
    monkeypatch.setattr(analysis, "explained_runs", explaining)

    def interrupt(_: str) -> None:
        if len(explaining.asked) == 2:
            raise KeyboardInterrupt

    explaining.before = interrupt

    said = rtscope("sweep", "survey.toml", "--out", "out", "--json")

    assert said.status == 130
    assert "explaining the worst wake-ups of 3 runs" in said.err
    assert "not all worst wake-ups are explained; to explain them" in said.err
    assert "set is worst with 90" in json.loads(said.out)["answer"]
    assert Path("out/survey.html").is_file()

    explaining.before = lambda _: None
    again = rtscope("sweep", "--resume", "out", "--json")

    assert again.status == 0
    assert len({*explaining.asked}) == 3
    assert len(explaining.asked) == 4  # the one that was cut short, twice
    standings = (load["standings"] for load in json.loads(again.out)["loads"])
    assert all(one["debian-6.12-rt"]["cause"] for one in standings)


def test_a_load_that_a_machine_does_not_run_is_named_and_the_others_go_on(
    rtscope: Rtscope, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = targets.target({"load": [[targets.LOAD_HELLO]]})
    monkeypatch.setattr(
        sweep, "open_target", lambda address, **_: nullcontext(refusing)
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
    monkeypatch.setattr(sweep, "open_target", lambda address, **_: nullcontext(lacking))
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
    assert f"{5 + len(safe_stressors())} loads, one after the other" in said.err


def test_a_shipped_sweep_is_found_beside_a_directory_of_its_name(
    rtscope: Rtscope, sweep_board: FakeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("survey").mkdir()
    monkeypatch.setattr(
        sweepwork, "with_listed", lambda found, command: with_stressors(found, ["fork"])
    )

    said = rtscope("sweep", "survey", "--kernel", "debian-6.12-rt", "--dry-run")

    assert said.status == 0, said.err
    assert "survey: 1 cell, 6 runs" in said.err
