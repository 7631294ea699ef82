"""`rtscope sweep` on a disk that fills up: one message, nothing torn, more later."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from fakes.bootedboard import FakeBoard
from fakes.commandline import Rtscope
from fakes.fulldisk import full_for
from fakes.sweepfile import ONE_CELL, one_line
from rtscope.boards.runs import runner
from rtscope.record.directory.records import open_records
from rtscope.verbs.sweep import sweep

NO_SPACE = "No space left on device; free some space"
TO_GO_ON = "rtscope sweep --resume out"


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch, here: Path) -> FakeBoard:
    """A board in place of those that boot."""
    made = FakeBoard()
    monkeypatch.setattr(sweep, "prepare_campaign", made.prepare)
    monkeypatch.setattr(
        runner, "BoardRunner", lambda prepared, *_: made.runner(prepared)
    )
    (here / "ticks.toml").write_text(ONE_CELL)
    return made


def half_written() -> list[Path]:
    return [path for path in Path("out").rglob(".*") if path.is_file()]


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("record.json", 0),
        *(
            pytest.param(name, after, marks=pytest.mark.slow)
            for name, after in (
                ("record.json", 2),
                ("checked.json", 0),
                ("asked.json", 0),
                ("sweep.html", 0),
                ("sweep.json", 0),
                ("campaign.json", 0),
                ("campaign.json", 1),
            )
        ),
    ],
)
def test_a_full_disk_ends_a_sweep_with_one_message_and_it_goes_on(
    rtscope: Rtscope,
    board: FakeBoard,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    after: int,
) -> None:
    free = full_for(monkeypatch, name, after=after)

    said = rtscope("sweep", "ticks.toml", "--out", "out")
    torn = half_written()
    free()
    on = ("ticks.toml", "--out", "out") if name == "sweep.json" else ("--resume", "out")
    again = rtscope("sweep", *on, "--json")

    assert said.status == 3, said.err
    last = one_line(said.err.splitlines()[-1])
    assert last.startswith("rtscope: cannot write out/")
    assert NO_SPACE in last
    assert said.err.count("No space left") == 1
    assert "rtscope run --resume" not in said.err
    assert name == "sweep.json" or said.err.count(TO_GO_ON) == 1
    assert torn == []
    assert again.status == 0, again.err
    assert [cell["runs"] for cell in json.loads(again.out)["cells"]] == [2, 2]


def test_what_was_measured_is_shown_though_no_page_can_be_written(
    rtscope: Rtscope, board: FakeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    full_for(monkeypatch, "sweep.html")

    said = rtscope("sweep", "ticks.toml", "--out", "out", "--json")
    shown = rtscope("sweep", "--resume", "out")

    assert said.status == shown.status == 3
    assert [cell["runs"] for cell in json.loads(said.out)["cells"]] == [2, 2]
    assert "none of 2 effects can be found" in shown.out


def test_a_failed_run_is_named_though_the_list_of_failures_cannot_be_written(
    rtscope: Rtscope, board: FakeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    board.fails = lambda run: run.id == "000-base/001-idle-s1"
    full_for(monkeypatch, "failed.json")

    said = rtscope("sweep", "ticks.toml", "--out", "out")

    assert said.status == 3
    assert "000-base/001-idle-s1: it panics" in said.err
    assert f"cannot write out/failed.json: {NO_SPACE}" in one_line(said.err)
    assert not list(Path("out/cells/000-base").glob("runs/*s1*"))


@pytest.mark.parametrize("names", [("001-idle-s1-first.json",), ("checked.json",)])
def test_results_that_differ_are_named_though_they_cannot_be_kept(
    rtscope: Rtscope,
    board: FakeBoard,
    monkeypatch: pytest.MonkeyPatch,
    names: Sequence[str],
) -> None:
    board.results = [9_000]
    full_for(monkeypatch, *names)

    said = rtscope("sweep", "ticks.toml", "--out", "out")

    assert said.status == 3
    assert "measured twice with equal inputs, results differ" in one_line(said.err)
    assert not list(Path("out/cells/000-base").glob("runs/*s1/record.json"))
    assert half_written() == []


def test_a_directory_that_lacks_cells_gets_them_when_it_goes_on(
    rtscope: Rtscope, board: FakeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = full_for(monkeypatch, "campaign.json", after=1)
    rtscope("sweep", "ticks.toml", "--out", "out")
    free()

    assert rtscope("sweep", "--resume", "out").status == 0
    assert len(open_records(Path("out/cells/001-tick-off"))) == 2
    assert rtscope("report", "out/cells/001-tick-off").status == 0


@pytest.mark.parametrize("place", ["out", "out/cells", "out/cells/000-base"])
def test_a_result_that_is_removed_meanwhile_is_told_and_not_made_anew(
    rtscope: Rtscope, board: FakeBoard, place: str
) -> None:
    def vanish(_run: object) -> bool:
        shutil.rmtree(place, ignore_errors=True)
        return False

    board.fails = vanish

    said = rtscope("sweep", "ticks.toml", "--out", "out")

    assert said.status == 3
    assert "gone, with what was in it" in one_line(said.err)
    assert not Path(place).exists()
