"""`rtscope run` over several boards: a board's trouble is its own."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fakes import boardprocess as fake_process
from fakes.commandline import Rtscope
from rtscope.record.directory.place import LAB, read_document
from rtscope.record.directory.records import open_records
from rtscope.verbs.run import boardprocess, boards

SHORT = ("--duration", "6s", "--interval", "100ms", "--warmup", "0s")
TESTS = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _fake_boards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boardprocess, "COMMAND", fake_process.COMMAND)
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


def run(rtscope: Rtscope, targets: str, *more: str, loads: str = "idle") -> Any:
    return rtscope(
        *("run", "-t", targets, "-l", loads, *SHORT, "--out", "out", "--json", *more)
    )


@pytest.mark.slow
def test_each_board_has_a_result_directory_of_its_own(
    rtscope: Rtscope, here: Path
) -> None:
    said = run(rtscope, "ssh:a,ssh:b.lan,virtual:pc", loads="idle,cpu")

    assert said.status == 0, said.err
    told = json.loads(said.out)
    assert [one["board"] for one in told["boards"]] == [
        "ssh-a",
        "ssh-b-lan",
        "virtual-pc",
    ]
    assert {one["state"] for one in told["boards"]} == {"done"}
    for one in told["boards"]:
        records = open_records(here / one["directory"])
        assert [kept.run.load for kept in records] == ["idle", "cpu"]
        assert (here / one["directory"] / "report.html").exists()
    table = {(one["load"], one["board"]): one for one in told["table"]}
    assert table["idle", "ssh-a"]["max_ns"] == 7_000
    assert (table["cpu", "virtual-pc"]["max_ns"], len(table)) == (9_000, 6)
    assert [table["cpu", one]["virtual"] for one in ("virtual-pc", "ssh-a")] == [
        *(True, False)
    ]
    assert "\x1b" not in said.err
    assert "ssh-a: \\x1b[31mwelcome" in said.err
    assert "rtscope: ssh-a: babble\n" in said.err
    assert 'rtscope: ssh-b-lan: {"is": "plan"}\n' in said.err
    assert (here / "out" / "report.html").exists()
    assert rtscope("report", "out/boards/ssh-a").status == 0
    assert "out/boards/ssh-a" in rtscope("report", "out").err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("victim", "why"),
    [
        ("dies", "its process ended with signal 9"),
        ("fails", "no route to host"),
        ("full", "No space left"),
    ],
)
def test_a_board_loses_its_own_runs_alone_and_resume_measures_them(
    victim: str, why: str, rtscope: Rtscope, here: Path
) -> None:
    said = run(rtscope, f"ssh:a,ssh:{victim},ssh:b", loads="idle,cpu")

    assert said.status == 3
    a, lost, b = json.loads(said.out)["boards"]
    assert (a["state"], lost["state"], b["state"]) == ("done", "failed", "done")
    assert (a["runs"], b["runs"]) == (2, 2)
    assert why in lost["why"]
    assert lost["runs"] == (1 if victim == "dies" else 0)
    before = {path: path.read_bytes() for path in (here / "out").rglob("record.json")}

    (here / "well").touch()
    again = rtscope("run", "--resume", "out", "--json")

    assert again.status == 0, again.err
    assert {one["runs"] for one in json.loads(again.out)["boards"]} == {2}
    assert len(list((here / "out").rglob("record.json"))) == 6
    assert all(path.read_bytes() == content for path, content in before.items())
    assert "ssh-a: preparing" not in again.err
    assert rtscope("run", "--resume", "out").status == 0


@pytest.mark.slow
def test_the_worst_exit_status_counts(rtscope: Rtscope, here: Path) -> None:
    (here / "lab.toml").write_text(
        '[[board]]\ntarget = "ssh:a"\nsettings = { deadline = "6us" }\n'
        '[[board]]\ntarget = "ssh:b"\n'
    )
    words = ("-l", "idle", *SHORT, "--out", "out", "--json")

    said = rtscope("run", "--lab", "lab.toml", *words)

    told = json.loads(said.out)
    assert (said.status, told["exit_status"]) == (1, 1), said.err
    assert [one["exit_status"] for one in told["boards"]] == [1, 0]
    assert list(boards.WORST_LAST) == [0, 4, 1, 2, 3, 130, 70]


PATIENCE_S = 600
"""A hang lasts longer; a start beside other work may take minutes."""


def interrupted(here: Path, targets: str, signo: int, *, ending_s: float) -> Any:
    """Type a command in a process of its own, and end it when a board hangs."""
    program = (
        "import sys; from fakes import boardprocess as fake; "
        "from rtscope.verbs.run import boardprocess, boards; "
        f"boardprocess.COMMAND, boards.ENDING_S = fake.COMMAND, {ending_s}; "
        "from rtscope.cli.start import main; main()"
    )
    words = ("run", "-t", targets, "-l", "idle", *SHORT, "--out", "out", "--json")
    with subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=here,
    ) as started:
        try:
            end = time.monotonic() + PATIENCE_S
            while not ((here / "hangs").exists() and list(here.rglob("record.json"))):
                assert time.monotonic() < end
                assert started.poll() is None
                time.sleep(0.02)
            os.kill(started.pid, signo)
            out, err = started.communicate(timeout=PATIENCE_S)
        finally:
            started.kill()
    return started.returncode, out, err


@pytest.mark.slow
@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_all_boards_and_keeps_what_they_have(
    here: Path, signo: int
) -> None:
    status, out, err = interrupted(here, "ssh:a,ssh:hangs", signo, ending_s=60)

    assert status == 130
    states = [(one["state"], one["why"]) for one in json.loads(out)["boards"]]
    assert states == [("done", ""), ("interrupted", "interrupted")]
    assert "to continue: rtscope run --resume out" in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_a_board_that_does_not_end_is_ended(here: Path) -> None:
    status, out, _ = interrupted(
        here, "ssh:a,ssh:stubborn", signal.SIGINT, ending_s=0.5
    )

    assert status == 130
    assert "signal 9" in json.loads(out)["boards"][1]["why"]


def command_line(file: Path) -> bytes:
    """Return that of a process; empty if it has just ended."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


@pytest.mark.slow
def test_processes_of_boards_end_when_nobody_reads_them(here: Path) -> None:
    status, _, _ = interrupted(here, "ssh:a,ssh:hangs", signal.SIGKILL, ending_s=60)

    assert status == -signal.SIGKILL
    end = time.monotonic() + PATIENCE_S
    while any(
        b"fakes.boardprocess" in command_line(one)
        and (one.parent / "cwd").resolve() == here
        for one in Path("/proc").glob("[0-9]*/cmdline")
    ):
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("-t", "ssh:a,"), "--target: '': write local, ssh:HOST"),
        (("-t", "ssh:a,ssh:-x"), "'ssh:-x': write local"),
        (("-t", "ssh:a,ssh:a"), "ssh-a and ssh-a-2 are the same machine"),
        (("-t", ",".join(f"ssh:h{n}" for n in range(65))), "name at most 64"),
        (("-t", "ssh:a,ssh:b", "--identical-to", "x"), "--identical-to is for one"),
        (("-t", "ssh:a,ssh:b", "--require-identical"), "--require-identical is for"),
        (("-t", "ssh:a,ssh:b", "--jobs", "2"), "board ssh-a: --jobs is for virtual"),
        (("-t", "ssh:a,ssh:b", "--kernel", "x"), "board ssh-a: --kernel is for"),
        (("-t", "ssh:a,ssh:b", "-l", "lod"), "board ssh-a: --load: no such load"),
        (("-t", "ssh:a,virtual:nix"), "board virtual-nix: no such board"),
        (("--tag", "x"), "--tag chooses boards of a lab"),
        (("--lab", "lab.toml", "-t", "local"), "leave --target out"),
        (("--lab", "gone.toml"), "gone.toml"),
        (("--lab", "lab.toml", "--tag", "y"), "no such tag: 'y'"),
        (("--lab", "lab.toml", "--resume", "out"), "leave out the other arguments"),
    ],
)
def test_a_mistake_is_refused_before_anything_is_measured(
    words: tuple[str, ...], why: str, rtscope: Rtscope, here: Path
) -> None:
    (here / "lab.toml").write_text('[[board]]\ntarget = "ssh:a"\ntags = ["x"]\n')

    said = rtscope("run", "--out", "out", *words)

    assert said.status == 2
    assert why in said.err
    assert not (here / "out").exists()


@pytest.mark.slow
def test_a_directory_that_others_wrote_is_refused_in_words(
    rtscope: Rtscope, here: Path
) -> None:
    run(rtscope, "ssh:a,ssh:fails")
    asked = read_document(here / "out", LAB).asked
    whole = json.loads((here / "out/lab.json").read_text())
    changes: list[Any] = [
        None,
        {"boards": []},
        {**asked, "boards": [{**asked["boards"][0], "name": "../x"}]},
        {**asked, "boards": [asked["boards"][0]] * 2},
        {**asked, "boards": asked["boards"] * 40},
        {**asked, "boards": [{**asked["boards"][1], "campaign": {"run": 3}}]},
        {**asked, "jobs": "2"},
        {**asked, "boards": {"name": 3}},
    ]
    for changed in changes:
        (here / "out/lab.json").write_text(json.dumps({**whole, "lab": changed}))
        said = rtscope("run", "--resume", "out")
        assert said.status in (2, 3)
        assert "lab.json" in said.err
    (here / "out/lab.json").write_text(json.dumps(whole))
    (here / "out/boards").rename(here / "elsewhere")
    (here / "out/boards").symlink_to(here / "elsewhere")
    assert "a link" in rtscope("run", "--resume", "out").err


@pytest.mark.slow
def test_damage_of_a_board_ends_that_board_alone_and_says_what_helps(
    rtscope: Rtscope, here: Path
) -> None:
    run(rtscope, "ssh:a,ssh:b,ssh:c,ssh:fails")
    runs = {name: here / f"out/boards/ssh-{name}/runs" for name in "abc"}
    (record,) = runs["a"].rglob("record.json")
    record.write_text("{")
    (here / "out/boards/ssh-b/campaign.json").write_text("[")
    runs["c"].rename(here / "elsewhere")
    runs["c"].symlink_to(here / "elsewhere")
    (here / "well").touch()

    said = rtscope("run", "--resume", "out", "--json")

    assert said.status == 3, said.err
    a, b, c, healed = json.loads(said.out)["boards"]
    assert [one["state"] for one in (a, b, c)] == ["failed"] * 3
    assert (a["runs"], a["planned"]) == (1, 1)
    assert "damaged record" in a["why"]
    assert f"remove {record.parent.relative_to(here)}: --resume then" in a["why"]
    assert "campaign.json" in b["why"]
    assert "remove out/boards/ssh-b: --resume then" in b["why"]
    assert "a link" in c["why"]
    assert (healed["state"], healed["runs"]) == ("done", 1)
    assert "to continue" not in said.err

    shutil.rmtree(record.parent)
    shutil.rmtree(here / "out/boards/ssh-b")
    runs["c"].unlink()
    (here / "elsewhere").rename(runs["c"])
    again = rtscope("run", "--resume", "out", "--json")
    assert again.status == 0, again.err


@pytest.mark.slow
@pytest.mark.parametrize("more", [("--json",), ()])
def test_the_report_is_printed_where_its_page_cannot_be_written(
    more: tuple[str, ...], rtscope: Rtscope, here: Path
) -> None:
    run(rtscope, "ssh:a,ssh:b")
    (here / "out/report.html").unlink()
    (here / "out/report.html").mkdir()

    said = rtscope("run", "--resume", "out", *more)

    assert said.status == 3
    assert "out/report.html" in said.err
    assert "report.html" not in said.out.replace("boards/ssh", "")
    if more:
        assert json.loads(said.out)["exit_status"] == 3
    else:
        assert "2 of 2 boards measured" in said.out
        assert "ssh-a" in said.out


@pytest.mark.slow
def test_without_a_result_there_is_no_table(rtscope: Rtscope) -> None:
    words = ("run", "-t", "ssh:fails,ssh:full", "-l", "idle", *SHORT, "--out", "out")

    said = rtscope(*words)

    assert said.status == 3
    assert "0 of 2 boards measured; no run has a result." in said.out
    assert "Minimum/average" not in said.out
    assert not any(line.split() == ["board"] for line in said.out.splitlines())
    page = Path("out/report.html").read_text()
    assert "2 boards in one campaign" in page
    assert "<th" not in page


@pytest.mark.slow
def test_a_used_directory_is_refused_with_how_to_go_on(rtscope: Rtscope) -> None:
    run(rtscope, "ssh:a,ssh:b")
    said = run(rtscope, "ssh:a,ssh:b")

    assert said.status == 2
    assert "rtscope run --resume out" in said.err
