"""`rtscope run` on a board that is not booted: what is refused, and the gate."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from fakes.bootedboard import AGENT, FakeBoard
from fakes.commandline import Rtscope
from rtscope.boards.runs import runner
from rtscope.record.directory.records import open_records
from rtscope.record.model import RunRecord
from rtscope.verbs.run import run

RUN = ("run", "--target", "virtual:pc", "--load", "idle", "--interval", "1ms")
GATE = (*RUN, "--kernel", "debian-6.12", "--repetitions", "2", "--require-identical")


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> FakeBoard:
    """A board in place of those that boot."""
    made = FakeBoard()
    monkeypatch.setattr(run, "prepare_campaign", made.prepare)
    monkeypatch.setattr(runner, "BoardRunner", lambda one, **_: made.runner(one))
    return made


def ids(records: Sequence[RunRecord]) -> list[str]:
    return [record.run.id for record in records]


def test_the_gate_passes_if_all_repetitions_are_identical(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    said = rtscope(*GATE, "--out", "out")

    assert said.status == 0
    assert "IDENTICAL: 1 of 1 runs are identical in all of their repe" in said.out
    assert "idle, debian-6.12, seed 1  result " in said.out
    assert ", 2 times, inputs equal" in said.out


def test_the_gate_fails_if_one_is_not_and_names_the_runs(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    board.results = [5_000, 6_000]
    said = rtscope(*GATE, "--out", "out")

    assert said.status == 1
    assert "NOT IDENTICAL: 0 of 1 runs" in said.out
    assert "RESULTS DIFFER, inputs equal" in said.out
    assert "001-idle-r1" in said.out
    assert "002-idle-r2" in said.out


def test_with_json_the_gate_speaks_on_standard_error(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    said = rtscope(*GATE, "--json", "--out", "out")

    assert json.loads(said.out)["runs"][0]["seed"] == 1
    assert "IDENTICAL: 1 of 1" in said.err


def test_explain_changes_nothing_on_a_board_and_says_so(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    said = rtscope(*RUN, "--kernel", "debian-6.12", "--explain", "--out", "out")

    assert said.status == 0
    assert "--explain has no effect on a virtual board" in said.err
    assert board.plan is not None
    assert not board.plan.traced


def test_a_stored_record_is_a_gate_too(rtscope: Rtscope, board: FakeBoard) -> None:
    rtscope(*RUN, "--seeds", "2", "--out", "then")
    same = rtscope(*RUN, "--seeds", "2", "--identical-to", "then", "--out", "now")
    board.inputs = {"kernel": "b", "initrd": "b"}
    board.results = [6_000]
    other = rtscope(*RUN, "--identical-to", "then", "--out", "other")

    assert same.status == 0
    assert "IDENTICAL: 2 of 2 runs are identical to the stored record" in same.out
    assert other.status == 1
    assert "RESULTS DIFFER, INPUTS DIFFER: kernel, initrd" in other.out
    assert "stored 001-idle-s1" in other.out


def test_each_seed_is_a_run_and_the_report_says_so(
    rtscope: Rtscope, board: FakeBoard, here: Path
) -> None:
    board.results = [5_000, 9_000, 7_000]
    said = rtscope(*RUN, "--seeds", "1,5,9", "--out", "out", "-v")

    assert ids(open_records(here / "out")) == [
        *("001-idle-s1", "002-idle-s5", "003-idle-s9")
    ]
    assert "(seed 5)" in said.out
    assert "Maxima over 3 seeds" in said.out


def test_what_is_left_of_the_seeds_is_run_on_resuming(
    rtscope: Rtscope, board: FakeBoard, here: Path
) -> None:
    rtscope(*RUN, "--seeds", "3", "--out", "out")
    (here / "out/runs/002-idle-s2/record.json").unlink()
    said = rtscope("run", "--resume", "out")

    assert said.status == 0
    assert board.plan is not None
    assert [one.id for one in board.plan.runs] == ["002-idle-s2"]


@pytest.mark.parametrize("name", ["kernel", "qemu", "plugin", AGENT])
def test_going_on_with_other_parts_is_refused(
    rtscope: Rtscope, board: FakeBoard, here: Path, name: str
) -> None:
    rtscope(*RUN, "--seeds", "2", "--out", "out")
    (here / "out/runs/002-idle-s2/record.json").unlink()
    if name == AGENT:
        board.agent = "other"
    else:
        board.inputs = {name: "other"}
    said = rtscope("run", "--resume", "out")

    assert said.status == 2
    assert f"001-idle-s1 was measured with another {name} than there is" in said.err
    assert ids(open_records(here / "out")) == ["001-idle-s1"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--kernel", "./none"), "none: no such file"),
        (("--kernel", "debian-6.12,./folder"), "folder: a directory; name the image"),
        (("--kernel", "text"), "text: no kernel image; for x86_64 name the build's"),
        (("--kernel", "Image"), "a kernel for aarch64, and the board is x86_64"),
        (("--kernel", "Debian"), "--kernel: 'Debian': write for example debian-6.12"),
        (("--kernel", "debian-6.13"), "no kernel 'debian-6.13' for x86_64"),
        (("--qemu", "none"), "none: no such file; name the program qemu-system-x86_64"),
        (("--qemu", "text"), "text: does not start: cannot run"),
        (("--lockfile", "none"), "none: No such file or directory"),
        (("--lockfile", "text"), "text: "),
        (("--identical-to", "none"), "none: no such file or directory"),
        (("--seeds", "0"), "--seeds: 0: write 1 to 1000"),
        (("--seeds", "2", "--seed", "1"), "--seeds: excludes seed"),
        (("--require-identical",), "one repetition has no other to be"),
        (("--target", "local"), "--target is given twice"),
    ],
)
def test_what_is_wrong_is_told_before_a_directory_is_made(
    rtscope: Rtscope,
    here: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (here / "folder").mkdir()
    (here / "text").write_bytes(b"no kernel" * 1000)
    (here / "Image").write_bytes(bytes(56) + b"ARM\x64" + bytes(600))
    kernel = () if "--kernel" in words else ("--kernel", "./Image")
    said = rtscope(*RUN, *kernel, *words, "--out", "out")

    assert said.status == 2
    assert message in said.err.replace("\n", " ")
    assert not (here / "out").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--seeds", "3"), "a real machine has no random seed"),
        (
            ("--repetitions", "2", "--require-identical"),
            "no two runs of a real machine have identical",
        ),
        (("--qemu", "x"), "a real machine needs no QEMU"),
        (("--kernel", "debian-6.12"), "--kernel is for virtual boards only"),
        (("--lockfile", "x"), "a real machine uses its installed packages"),
    ],
)
def test_what_a_real_machine_cannot_do_is_refused_with_the_reason(
    rtscope: Rtscope, here: Path, words: tuple[str, ...], message: str
) -> None:
    said = rtscope("run", "--load", "idle", *words, "--out", "out")

    assert said.status == 2
    assert message in said.err
    assert not (here / "out").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*GATE, "--reuse"), "--require-identical measures again"),
        ((*RUN, "--identical-to", "then", "--reuse"), "--identical-to measures again"),
        (("run", "--load", "idle", "--reuse"), "--reuse is for virtual boards only"),
    ],
)
def test_stored_results_are_refused_where_a_measurement_must_be_new(
    rtscope: Rtscope, board: FakeBoard, words: Sequence[str], message: str
) -> None:
    said = rtscope(*words, "--out", "out")

    assert said.status == 2
    assert message in said.err
    assert not Path("out").exists()


def test_a_campaign_that_must_be_identical_is_not_resumed_with_stored_results(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    rtscope(*GATE, "--out", "out")
    Path("out/runs/002-idle-r2/record.json").unlink()

    said = rtscope("run", "--resume", "out", "--reuse")

    assert said.status == 2
    assert "--require-identical measures again" in said.err


@pytest.mark.parametrize("is_complete", [True, False])
def test_a_gate_is_not_passed_by_the_stored_results_of_an_earlier_start(
    rtscope: Rtscope, board: FakeBoard, is_complete: bool
) -> None:
    rtscope(*RUN, "--seeds", "2", "--out", "then")
    board.reused = True
    rtscope(*RUN, "--seeds", "2", "--reuse", "--out", "out")
    if not is_complete:
        Path("out/runs/002-idle-s2/record.json").unlink()
    board.reused, board.plan = False, None

    said = rtscope("run", "--resume", "out", "--identical-to", "then")

    assert said.status == 2
    assert "IDENTICAL" not in said.out
    assert "out has stored results, such as 001-idle-s1" in said.err
    assert board.plan is None


def test_stored_results_are_told_by_terminal_and_page(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    board.reused = True
    said = rtscope(*RUN, "--seeds", "2", "--reuse", "--out", "out", "-v")

    assert said.status == 0
    assert "2 of 2 runs: stored results of equal inputs" in said.err
    assert "stored result of equal inputs" in said.out
    assert "stored result of equal inputs" in Path("out/report.html").read_text()
