"""`rtscope test` runs programs as it was asked, and names what keeps one from that."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rig import NEEDS_APT, Done, rtscope

pytestmark = [pytest.mark.system, pytest.mark.long, NEEDS_APT]

SOURCE = Path(__file__).parent.parent / "offenders" / "misbehaved.c"
EXAMPLES = Path(__file__).parents[2] / "examples"
PATIENCE_S = 900.0


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dynamic program, so that it needs the libraries of this computer."""
    out = tmp_path_factory.mktemp("program") / "misbehaved"
    subprocess.run(["gcc", "-O1", "-g", "-pthread", "-o", out, SOURCE], check=True)
    return out


def ran(*words: str | Path, duration: str = "300ms", settle: str = "0s") -> Done:
    times = ("--settle", settle, "--duration", duration)
    with rtscope("test", *times, *words) as running:
        return running.finish(PATIENCE_S)


@dataclass(frozen=True, slots=True)
class Asked:
    """The answer of one boot with two starts."""

    row: dict[str, Any]
    starts: Sequence[dict[str, Any]]


@pytest.fixture(scope="module")
def asked(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """One boot serves all that is asserted of it."""
    work = tmp_path_factory.mktemp("work")
    (work / "input").write_text("one\ntwo\n")
    (work / "conf").write_text("configured\n")
    done = ran(
        *("--starts", "2", "--user", "1000:100", "--directory", "/tmp"),
        *("--environment", "A=b c", "--stdin", work / "input", "--cpus", "1"),
        *("--files", f"etc/asked.conf={work / 'conf'}", "--missed", "0"),
        *("--junit", work / "t.xml", "--json", "--", program, "ask"),
    )
    assert done.status == 0, done.stderr
    row = json.loads(done.stdout)
    assert 'name="' in (work / "t.xml").read_text()
    return Asked(row, row["runs"][0]["starts"])


def test_a_program_runs_as_its_user_with_its_files_and_input(asked: Asked) -> None:
    for start in asked.starts:
        assert start["stdout"]["text"].splitlines() == [
            "uid 1000 gid 100",
            "in /tmp",
            "A=b c",
            "file configured",
            "stdin one",
            "stdin two",
            "/tmp is new",
            "random numbers at once: yes",
        ]
        assert start["stderr"]["text"] == "to standard error\n"


def test_an_ordinary_user_has_the_rights_for_a_real_time_thread(asked: Asked) -> None:
    assert {one["priority"] for one in asked.row["threads"]} == {"50"}
    assert "no real-time priority" not in asked.starts[0]["stdout"]["text"]


def test_a_program_that_ends_well_is_judged_by_what_it_did(asked: Asked) -> None:
    assert [(one["status"], one["stopped"]) for one in asked.starts] == [(0, False)] * 2
    assert asked.row["outcome"] == "kept"
    assert all(0 < one["cycles"] <= 200 for one in asked.row["threads"])


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("crash", "by signal 11 in main misbehaved.c:82; it printed: before the crash"),
        ("fail", "with status 4; it printed: no such device"),
        ("end", "with status 0, before its warm-up of 100ms was over"),
        ("memory", "out of its memory"),
    ],
)
def test_a_program_that_does_not_run_as_asked_is_named(
    program: Path, way: str, said: str
) -> None:
    done = ran("--", program, way, duration="20s")

    assert done.status == 3
    assert done.stdout == b""
    assert "pc: misbehaved ended " in done.stderr
    assert said in done.stderr


def test_threads_that_never_sleep_are_ended_and_said_to_have_no_cycle(
    program: Path,
) -> None:
    done = ran("--response", "1ms", "--json", "--", program, "spin")

    row = json.loads(done.stdout)
    (start,) = row["runs"][0]["starts"]
    assert (start["stopped"], start["signal"]) == (True, signal.SIGKILL)
    assert done.status in (1, 3)
    assert row["outcome"] != "kept"


def test_a_program_that_goes_on_in_the_background_is_not_judged_to_be_in_time(
    program: Path,
) -> None:
    done = ran("--response", "1ms", "--json", "--", program, "background")

    row = json.loads(done.stdout)
    assert (done.status, row["outcome"]) == (3, "not seen")
    (doubt,) = row["doubts"]
    assert doubt["says"].startswith("the program misbehaved ended within ")


def test_more_output_than_there_is_room_for_is_refused_and_said(program: Path) -> None:
    done = ran("--json", "--", program, "output", duration="2s")

    (start,) = json.loads(done.stdout)["runs"][0]["starts"]
    out = start["stdout"]
    assert out["refused"]
    assert out["bytes"] == 32 << 20
    assert out["cut_bytes"] == out["bytes"] - (1 << 20)
    assert "bytes were not kept" in out["text"]


def test_a_script_runs_by_a_package_of_the_board(tmp_path: Path) -> None:
    script = tmp_path / "hello.sh"
    script.write_text("#!/bin/sh\necho from $0\nwhile :; do :; done\n")
    script.chmod(0o755)

    done = ran("--package", "dash", "--json", "--", script)

    row = json.loads(done.stdout)
    assert row["runs"][0]["starts"][0]["stdout"]["text"] == "from /hello.sh\n"


def test_an_interrupt_ends_the_boot_and_leaves_nothing(
    program: Path, tmp_path: Path
) -> None:
    env = {"TMPDIR": str(tmp_path)}
    with rtscope("test", "--settle", "1h", "--", program, "ask", env=env) as running:
        end = time.monotonic() + PATIENCE_S
        while not list(tmp_path.glob("*board*/progress")):
            assert running.running
            assert time.monotonic() < end
            time.sleep(0.05)
        running.send(signal.SIGINT)
        done = running.finish(PATIENCE_S)

    assert done.status == 130, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_load_runs_beside_it_which_is_proved(program: Path) -> None:
    # Without PREEMPT_RT the first timer of another thread fires before it is due. Of a
    # load's reports, which come every 100 ms, two must be in the time that is judged.
    done = ran(
        *("--kernel", "debian-6.12", "--load", "cpu", "--missed", "0", "--json"),
        *("--warmup", "1ms"),
        *("--", program, "ask"),
        settle="500ms",
    )

    assert done.status == 0, done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    assert (run["load"], run["caveats"]) == ("cpu", [])


# --- what became slower ---------------------------------------------------------------


SLOWER = SOURCE.with_name("slower.cpp")


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Sequence[dict[str, Any]]:
    """The differences of a program that computes more, from what it was."""
    work = tmp_path_factory.mktemp("slower")
    compiled = ("g++", "-g", "-O2", "-pthread", "-o", work / "loop", SLOWER)
    subprocess.run(compiled, check=True)
    saved = ran("--save", work / "base.json", "-q", "--no-explain", "--", work / "loop")
    assert saved.status == 0, saved.stderr
    subprocess.run([*compiled, "-DSLOWER"], check=True)
    done = ran(
        *("--no-worse-than", work / "base.json", "--tolerance", "1%", "--no-explain"),
        *("--json", "--", work / "loop"),
    )
    assert done.status == 1, done.stderr
    found: Sequence[dict[str, Any]] = json.loads(done.stdout)["differences"]
    return found


@pytest.mark.parametrize(
    ("function", "mark", "instructions"),
    [("compute", "each fiftieth", 20_000), ("weighted", "put into it", 40 * 64)],
)
def test_pure_computing_is_named_with_its_line(
    slower: Sequence[dict[str, Any]], function: str, mark: str, instructions: int
) -> None:
    lines = SLOWER.read_text().splitlines()
    (line,) = (number for number, text in enumerate(lines, 1) if mark in text)
    (most,) = (one for one in slower if "most instructions" in one["says"])
    (grown,) = (one for one in most["functions"] if function in one["function"])

    assert (grown["file"], grown["line"]) == ("slower.cpp", line)
    assert grown["now"] >= grown["before"] + instructions
    assert f"slower.cpp:{line} (" in most["says"]


# --- the script for CI, as an ordinary user -------------------------------------------


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """What a server has checked out."""
    shutil.copytree(EXAMPLES / "tested-program", tmp_path / "work")
    shutil.copytree(EXAMPLES / "ci", tmp_path / "work" / "ci")
    return tmp_path / "work"


def scripted(work: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run the script for CI with this rtscope in its PATH."""
    tools = work.parent / "bin"
    tools.mkdir(exist_ok=True)
    command = tools / "rtscope"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m rtscope "$@"\n')
    command.chmod(0o755)
    return subprocess.run(
        ["sh", "ci/rtscope-test", *words],
        cwd=work,
        env={
            **os.environ,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "GITHUB_STEP_SUMMARY": str(work / "summary.md"),
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_the_script_for_ci_passes_its_status_and_leaves_its_files(
    repository: Path,
) -> None:
    quick = ("--settle", "0s", "--duration", "200ms")
    kept = scripted(repository, "hello.toml", *quick)
    assert kept.returncode == 0, kept.stderr
    (repository / "rtscope-test.json").rename(repository / "baseline.json")
    assert "hello" in (repository / "summary.md").read_text()
    for kind in ("xml", "md", "html"):
        assert (repository / f"rtscope-test.{kind}").stat().st_size

    source = repository / "hello.c"
    changed = source.read_text().replace("#define TAPS      64", "#define TAPS      96")
    source.write_text(changed)
    worse = scripted(
        repository, "hello.toml", *quick, "--no-worse-than", "baseline.json"
    )

    assert worse.returncode == 1, worse.stderr
    assert "the program, its files or its libraries" in worse.stdout


def test_the_script_for_ci_says_how_to_call_it(repository: Path) -> None:
    done = scripted(repository)

    assert done.returncode == 2
    assert "usage: rtscope-test" in done.stderr


def test_beside_packets_the_functions_of_their_driver_have_names(
    tmp_path: Path,
) -> None:
    hello, page = tmp_path / "hello", tmp_path / "page.html"
    source = EXAMPLES / "tested-program" / "hello.c"
    subprocess.run(["gcc", "-O2", "-g", "-o", hello, source], check=True)

    done = ran(
        *("--kernel", "debian-6.12", "--load", "packets:20000", "--cpus", "1"),
        *("--response", "1ms", "--json", "--html", page, "--", hello),
        duration="2s",
    )

    assert done.status in (0, 1), done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    assert run["load"] == "packets:20000"
    assert "[e1000e]" in page.read_text()
    assert "no symbol" not in page.read_text()
