"""`rtscope sweep` links each cell to its worst run, and explains what changed most."""

import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from fakes.bootedboard import FakeBoard
from fakes.commandline import Rtscope
from fakes.explaining import FakeExplaining
from fakes.fulldisk import full_for
from fakes.guestpaths import GUEST
from fakes.sweepfile import FILE, one_line
from rtscope.explain import directory as analysis
from rtscope.host.errors import RecordError, UsageError
from rtscope.record.explanation import EXPLAINED
from rtscope.record.instructions import file as exectrace
from rtscope.record.instructions.symbols import NO_SYMBOLS
from rtscope.verbs.sweep import boots as sweeping
from rtscope.verbs.sweep import result

SWEEP = ("sweep", "ticks.toml", "--out", "out")
RESUME = ("sweep", "--resume", "out")
BASE = "000-base/008-idle-s8"
OFF = "001-tick-off/008-idle-s8"
ONE = "002-CPUs-one/008-idle-s8"


@pytest.fixture
def explaining(
    sweep_board: FakeBoard, monkeypatch: pytest.MonkeyPatch
) -> FakeExplaining:
    """Explain runs of a board that says that it has recorded their paths."""
    sweep_board.paths = ({"file": "worst.trace.gz"}, {})
    made = FakeExplaining()
    made.culprit = lambda cell: "zap" if cell == "000-base" else "free_pages"
    monkeypatch.setattr(analysis, "explained_runs", made)
    return made


def run_dir(place: str) -> Path:
    cell, run = place.split("/")
    return Path("out/cells") / cell / "runs" / run


def worst_runs(out: str) -> dict[str, Any]:
    """Return the worst run of each cell, by its name."""
    cells = json.loads(out)["cells"]
    return {cell["name"]: cell["worst_runs"][0] for cell in cells}


def test_the_worst_run_of_each_cell_is_linked_and_explained(
    rtscope: Rtscope, explaining: FakeExplaining
) -> None:
    said = rtscope(*SWEEP, "--json")

    assert said.status == 0, said.err
    assert "explaining the worst wake-ups of 3 runs" in said.err
    assert explaining.asked[0] == BASE
    assert {*explaining.asked} == {BASE, OFF, ONE}
    off = worst_runs(said.out)["tick: off"]
    assert (off["worst_ns"], off["seed"], off["run"]) == (20_007, 8, "008-idle-s8")
    assert (off["known"], off["cause"]) == ("explained", "interrupts off in free_pages")
    assert 0 < off["cause_ns"] < off["worst_ns"]
    page = Path("out/sweep.html").read_text()
    for place in (BASE, OFF):
        for name in ("explain.html", "report.html"):
            file = f"cells/{place.replace('/', '/runs/')}/{name}"
            assert f'href="{file}"' in page
            assert (Path("out") / file).is_file()
    assert "interrupts off in zap" in page
    assert "interrupts off in free_pages" in (run_dir(OFF) / "explain.html").read_text()


def test_the_terminal_says_what_made_base_and_changed_cell_late(
    rtscope: Rtscope, explaining: FakeExplaining
) -> None:
    said = rtscope(*SWEEP)

    text = one_line(said.out)
    assert (
        "Worst wake-up under idle (virtual µs): of base 10.0, 9.82 by interrupts"
        in text
    )
    assert "of tick: off 20.0, 19.8 by interrupts off in free_pages." in text
    assert len(said.out.splitlines()) <= 22


def test_each_run_is_explained_once(
    rtscope: Rtscope, sweep_board: FakeBoard, explaining: FakeExplaining
) -> None:
    rtscope(*SWEEP)
    page = Path("out/sweep.html").read_text()
    made = (run_dir(OFF) / "explain.html").stat().st_mtime_ns
    explaining.asked.clear()

    said = rtscope(*RESUME)

    assert explaining.asked == []
    assert "explaining" not in said.err
    assert Path("out/sweep.html").read_text() == page
    assert (run_dir(OFF) / "explain.html").stat().st_mtime_ns == made


def test_a_run_that_is_measured_again_is_explained_again(
    rtscope: Rtscope, sweep_board: FakeBoard, explaining: FakeExplaining
) -> None:
    rtscope(*SWEEP)
    (run_dir(OFF) / "record.json").unlink()
    explaining.asked.clear()
    sweep_board.results = [30_000, 30_000]

    said = rtscope(*RESUME, "--json")

    assert explaining.asked == [OFF]
    off = worst_runs(said.out)["tick: off"]
    assert (off["worst_ns"], off["known"]) == (30_000, "explained")
    assert "30" in (run_dir(OFF) / "report.html").read_text()


def test_a_page_older_than_its_explanation_is_made_again(
    rtscope: Rtscope, explaining: FakeExplaining
) -> None:
    rtscope(*SWEEP)
    now = (run_dir(OFF) / "explain.html").stat().st_mtime_ns + 1
    os.utime(run_dir(OFF) / EXPLAINED, ns=(now, now))
    made = (run_dir(OFF) / "report.html").stat().st_mtime_ns
    explaining.asked.clear()

    rtscope(*RESUME)

    assert explaining.asked == [OFF]
    assert (run_dir(OFF) / "report.html").stat().st_mtime_ns > made


def test_ctrl_c_while_explaining_loses_nothing(
    rtscope: Rtscope, explaining: FakeExplaining
) -> None:
    def interrupt(place: str) -> None:
        if place != BASE:
            assert Path("out/sweep.html").is_file()
            raise KeyboardInterrupt

    explaining.before = interrupt

    said = rtscope(*SWEEP, "--json")

    assert said.status == 130
    assert (
        "not all worst wake-ups are explained; to explain them: rtscope sweep"
        in said.err
    )
    assert len(explaining.asked) == 2
    found = worst_runs(said.out)
    assert found["base"]["known"] == "explained"
    assert found["tick: off"]["known"] == "not explained"
    assert found["tick: off"]["explanation"] == ""
    page = Path("out/sweep.html").read_text()
    assert "rtscope explain cells/001-tick-off --run 008-idle-s8" in page

    explaining.before = lambda place: None
    explaining.asked.clear()
    again = rtscope(*RESUME, "--json")

    assert again.status == 0
    assert BASE not in explaining.asked
    assert worst_runs(again.out)["tick: off"]["known"] == "explained"


def test_ctrl_c_while_measuring_explains_nothing(
    rtscope: Rtscope, sweep_board: FakeBoard, explaining: FakeExplaining
) -> None:
    def interrupt(run: Any) -> bool:
        if run.id == "002-CPUs-one/008-idle-s8":
            raise KeyboardInterrupt
        return False

    sweep_board.fails = interrupt

    said = rtscope(*SWEEP, "--json")

    assert said.status == 130
    assert explaining.asked == []
    assert worst_runs(said.out)["tick: off"]["known"] == "not explained"


@pytest.mark.parametrize("error", [UsageError, RecordError])
def test_a_run_that_cannot_be_explained_is_named_and_the_others_go_on(
    rtscope: Rtscope, explaining: FakeExplaining, error: type[Exception]
) -> None:
    def fail(place: str) -> None:
        if place == OFF:
            raise error("worst.trace.gz is missing")

    explaining.before = fail

    said = rtscope(*SWEEP, "--json")

    assert said.status == 0
    assert "001-tick-off: worst.trace.gz is missing" in said.err
    found = worst_runs(said.out)
    assert found["tick: off"]["known"] == "not explained"
    assert found["CPUs: one"]["known"] == "explained"


def test_a_disk_that_is_full_while_it_explains_ends_that_with_one_message(
    rtscope: Rtscope, explaining: FakeExplaining, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = full_for(monkeypatch, "explain.html", "report.html")

    said = rtscope(*SWEEP, "--json")
    free()
    explaining.asked.clear()
    again = rtscope(*RESUME, "--json")

    assert said.status == 3
    assert said.err.count("No space left") == 1
    assert one_line(said.err).endswith("then type rtscope sweep --resume out")
    assert worst_runs(said.out)["base"]["explanation"].endswith("explain.json")
    assert again.status == 0
    assert {*explaining.asked} == {BASE, OFF, ONE}


def test_at_most_so_many_cells_are_explained_unasked(
    rtscope: Rtscope,
    sweep_board: FakeBoard,
    explaining: FakeExplaining,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sweeping, "CHECK_EVERY", 1_000)
    monkeypatch.setattr(result, "MOST_EXPLAINED", 4)
    levels = ",".join(
        f'{{ name = "loops {n}", kernel.append = "lpj={n}" }}' for n in range(1, 7)
    )
    base, _ = FILE.replace("seeds = 8", "seeds = 2").split("[[axis]]", 1)
    Path("ticks.toml").write_text(f'{base}[[axis]]\nname = "loops"\nlevel=[{levels}]')
    sweep_board.results = [10_000 + n // 2 * 500 for n in range(20)]

    said = rtscope(*SWEEP, "--json")

    assert said.status == 0, said.err
    assert len(explaining.asked) == 5
    known = [run["known"] for run in worst_runs(said.out).values()]
    assert (known.count("explained"), known.count("not explained")) == (5, 2)


def test_a_sweep_without_recorded_paths_says_so_and_how_to_get_them(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    said = rtscope(*SWEEP)

    assert "No cause is known: no path was recorded" in said.out
    assert "explaining" not in said.err
    page = Path("out/sweep.html").read_text()
    run = "cells/001-tick-off --run 008-idle-s8"
    assert f"rtscope board trace {run} --replay" in page
    assert f"rtscope explain {run}" in page
    assert "campaign.record = false" in page
    assert 'href="cells/001-tick-off/runs/008-idle-s8/report.html"' in page
    told = worst_runs(rtscope(*RESUME, "--json").out)["tick: off"]
    assert told["known"] == "no path recorded"


def test_an_explanation_made_by_hand_is_shown(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    """As after a replay, of a run that itself recorded nothing."""
    rtscope(*SWEEP)
    FakeExplaining()(Path("out/cells/001-tick-off"), "008-idle-s8")

    said = rtscope(*RESUME, "--json")

    off = worst_runs(said.out)["tick: off"]
    assert (off["known"], off["cause"]) == ("explained", "interrupts off in zap")
    assert off["explanation"].endswith("explain.json")


def test_explanations_of_another_result_are_not_taken(
    rtscope: Rtscope, sweep_board: FakeBoard, explaining: FakeExplaining
) -> None:
    rtscope(*SWEEP)
    shutil.copy(run_dir(BASE) / EXPLAINED, run_dir(OFF) / EXPLAINED)
    explaining.asked.clear()

    rtscope(*RESUME)

    assert explaining.asked == [OFF]


def test_a_damaged_explanation_is_made_again(
    rtscope: Rtscope, explaining: FakeExplaining
) -> None:
    rtscope(*SWEEP)
    (run_dir(OFF) / EXPLAINED).write_text("{")
    explaining.asked.clear()

    said = rtscope(*RESUME)

    assert explaining.asked == [OFF]
    assert said.status == 0


def test_paths_that_a_board_recorded_are_explained(
    rtscope: Rtscope, sweep_board: FakeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis, "symbols_of", lambda *_, **__: NO_SYMBOLS)
    content, note = exectrace.pack(GUEST, name=exectrace.FILE)
    sweep_board.paths = (asdict(note), {exectrace.FILE: content})
    sweep_board.smaller, sweep_board.results = (), [3_000] * 25  # as in the trace

    said = rtscope(*SWEEP, "--json")

    assert said.status == 0, said.err
    base = worst_runs(said.out)["base"]
    assert base["explanation"] == "cells/000-base/runs/001-idle-s1/explain.html"
    assert base["known"] not in ("not explained", "another wake-up is explained")
    assert "<svg" in (Path("out") / base["explanation"]).read_text()
