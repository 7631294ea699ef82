"""`rtscope sweep` on a board that is not booted: cells and parts."""

import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest

from fakes.bootedboard import FakeBoard
from fakes.commandline import Rtscope
from fakes.scheduler import FakeScheduler
from fakes.sweepfile import FILE, one_line
from pages.jsonkeys import keys_without_words
from rtscope.record.directory.place import hold
from rtscope.record.directory.records import open_records
from rtscope.verbs.sweep import sweep
from rtscope.verbs.sweep.cluster import dask
from rtscope.verbs.sweep.cluster import runner as cluster


def test_a_sweep_measures_each_cell_and_ranks_what_it_found(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    said = rtscope("sweep", "ticks.toml", "--out", "out", "--json")

    assert said.status == 0, said.err
    result = json.loads(said.out)
    assert keys_without_words(result, "rtscope sweep --json") == []
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


def test_a_full_design_tells_what_a_level_does_over_all_cells(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    Path("full.toml").write_text(FILE.replace("[sweep]", '[sweep]\ndesign = "full"'))
    first, *base = sweep_board.results[:9]
    twice = [2 * ns for ns in base]
    sweep_board.results = [first, *base, *base, *twice, *twice]

    said = rtscope("sweep", "full.toml", "--out", "out", "--json")
    shown = rtscope("sweep", "--resume", "out", "-v")

    assert said.status == 0, said.err
    assert "the main effect of a level has 16 pairs of runs" in one_line(said.err)
    effects = json.loads(said.out)["main_effects"]
    assert {(one["cell"], one["pairs_of_cells"]) for one in effects} == {
        ("tick: off", 2),
        ("CPUs: one", 2),
    }
    worst = next(one for one in effects if one["found"] and one["figure"] == "worst")
    assert (worst["cell"], round(worst["ratio"], 2)) == ("tick: off", 2)
    assert "tick: off raises it under idle to 2.00 times" in one_line(shown.out)
    assert "Single cells:" in shown.out


def test_a_part_of_a_sweep_is_measured_and_the_rest_is_added_later(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    plan = rtscope("sweep", "ticks.toml", "--only", "tick", "--dry-run")
    part = rtscope("sweep", "ticks.toml", "--only", "tick", "--out", "out", "--json")
    page = Path("out/sweep.html").read_text()
    sweep_board.results = [
        10_000,
        *(10_000 + n for n in range(8)),
    ]  # the first one twice
    rest = rtscope("sweep", "--resume", "out", "--only", "o*", "--json")

    assert "ticks: 2 cells, 16 runs" in plan.err
    assert "1 more cell can be added later, with rtscope sweep --resume" in one_line(
        plan.err
    )
    assert part.status == 0, part.err
    first = json.loads(part.out)
    assert [cell["name"] for cell in first["cells"]] == ["base", "tick: off"]
    assert first["left_out"] == 1
    assert "1 cell of this sweep was left out by <code>--only</code>" in page
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
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    rtscope("sweep", "ticks.toml", "--only", "tick", "--out", "out")
    for run in Path().glob("out/cells/001-tick-off/runs/*"):
        (run / "record.json").unlink()
    sweep_board.results = [
        10_000,
        *(10_000 + n for n in range(8)),
    ]  # the first one twice

    said = rtscope("sweep", "--resume", "out", "--only", "CPUs", "--json")

    result = json.loads(said.out)
    assert said.status == 1
    assert {c["name"]: (c["runs"], c["planned"]) for c in result["cells"]}[
        "tick: off"
    ] == (0, 8)
    assert result["left_out"] == 0


def test_resuming_a_part_keeps_what_others_measured(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    rtscope("sweep", "ticks.toml", "--only", "tick", "--out", "out")
    sweep_board.results = [
        10_000,
        *(10_000 + n for n in range(8)),
    ]  # the first one twice

    said = rtscope("sweep", "--resume", "out", "--only", "CPUs: one", "--json")

    assert said.status == 0, said.err
    result = json.loads(said.out)
    assert [cell["planned"] for cell in result["cells"]] == [8, 8, 8]


def test_a_level_that_does_not_exist_is_refused_with_those_that_do(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    said = rtscope("sweep", "ticks.toml", "--only", "tick,tock")

    assert said.status == 2
    assert "nothing is called 'tock': name an axis (tick, CPUs)" in one_line(said.err)
    assert not list(Path().glob("**/campaign.json"))


def test_a_resumed_sweep_measures_what_is_left(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    rtscope("sweep", "ticks.toml", "--out", "out")
    whole = Path("out/sweep.html").read_text()
    gone = sorted(Path("out/cells/001-tick-off/runs").glob("*/record.json"))[1]
    gone.unlink()
    sweep_board.results = [20_001, 20_001]

    said = rtscope("sweep", "--resume", "out", "-q")

    assert said.status == 0, said.err
    assert "tick: off raises it under idle to 2.00 times" in said.out
    assert Path("out/sweep.html").read_text() == whole


def test_a_sweep_does_not_go_on_with_another_agent_in_any_cell(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    rtscope("sweep", "ticks.toml", "--out", "out")
    for record in Path("out/cells/001-tick-off/runs").glob("*/record.json"):
        record.unlink()
    sweep_board.agent = "other"

    said = rtscope("sweep", "--resume", "out")

    assert said.status == 2
    assert "was measured with another agent-x86_64 than there is now" in said.err
    assert not list(Path("out/cells/001-tick-off/runs").glob("*/record.json"))


def test_a_sweep_that_is_complete_is_shown_though_its_kernel_is_gone(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    rtscope("sweep", "ticks.toml", "--out", "out")
    document = Path("out/sweep.json")
    document.write_text(document.read_text().replace("debian-6.12-rt", "gone-6.12"))

    assert rtscope("sweep", "--resume", "out").status == 0


@pytest.mark.parametrize(
    ("on", "warned"),
    [
        (["tcp://127.0.0.1:9"], True),
        (["tls://h:9", "--tls-ca", "c", "--tls-cert", "c", "--tls-key", "c"], False),
    ],
)
def test_plain_tcp_warns_of_other_users_of_this_machine(
    rtscope: Rtscope,
    sweep_board: FakeBoard,
    monkeypatch: pytest.MonkeyPatch,
    on: Sequence[str],
    warned: bool,
) -> None:
    Path("c").write_text("")
    scheduler = FakeScheduler(lambda *_: None, {"w1": 2})
    monkeypatch.setattr(dask, "connected", lambda _: nullcontext(scheduler))
    monkeypatch.setattr(
        cluster, "ClusterRunner", lambda _, prepared, *__: sweep_board.runner(prepared)
    )

    said = rtscope("sweep", "ticks.toml", "--out", "out", "--on", *on)

    assert said.status == 0, said.err
    assert "1 worker at t" in said.err
    assert ("any user of this machine can run programs as you" in said.err) == warned


@pytest.mark.parametrize(
    "text", ["{}", "[", "[" * 100_000, '{"schema": 1, "sweep": 3, "command": []}']
)
def test_a_damaged_document_is_refused(
    rtscope: Rtscope, sweep_board: FakeBoard, text: str
) -> None:
    Path("out").mkdir()
    Path("out/sweep.json").write_text(text)

    said = rtscope("sweep", "--resume", "out")

    assert said.status in (2, 3)
    assert "out/sweep.json" in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("link", ["cells", "cells/001-tick-off"])
def test_a_sweep_that_leads_out_of_its_directory_is_refused(
    rtscope: Rtscope, sweep_board: FakeBoard, link: str
) -> None:
    """It may have come by mail, and results and pages are written there."""
    rtscope("sweep", "ticks.toml", "--out", "out")
    Path("out", link).rename("elsewhere")
    Path("out", link).symlink_to(Path("elsewhere").absolute())
    before = sorted(Path("elsewhere").rglob("*"))

    said = rtscope("sweep", "--resume", "out")

    assert said.status == 3
    assert f"out/{link}: a link, which rtscope does not make" in one_line(said.err)
    assert sorted(Path("elsewhere").rglob("*")) == before


def test_a_second_start_changes_nothing_in_the_directory(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    rtscope("sweep", "ticks.toml", "--only", "tick", "--out", "out")
    before = Path("out/asked.json").read_bytes()

    with hold(Path("out")):
        said = rtscope("sweep", "--resume", "out", "--only", "CPUs")

    assert said.status == 2
    assert "another rtscope measures into it" in one_line(said.err)
    assert Path("out/asked.json").read_bytes() == before


def test_a_start_does_not_mix_with_one_that_came_while_it_prepared(
    rtscope: Rtscope, sweep_board: FakeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first(work: Path) -> None:
        Path("out").mkdir()
        Path("out/sweep.json").write_text("{}")

    monkeypatch.setattr(sweep, "refuse_full_disk", first)

    said = rtscope("sweep", "ticks.toml", "--out", "out")

    assert said.status == 2
    assert "out already holds a sweep; go on with the sweep in it" in one_line(said.err)
    assert [path.name for path in Path("out").iterdir()] == ["sweep.json"]
