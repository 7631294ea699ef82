"""What tests cost and leave, and runs that go on where they ended."""

import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import asdict
from pathlib import Path

import pytest

from rings import alone, ctests, flakes, leftovers, machines, nightly, steps, times
from rings.steps import Ended, Step

ROOT = Path(__file__).parents[2]
TRUE = (sys.executable, "-c", "")


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "build" / "journal.jsonl"


# --- leftovers -------------------------------------------------------------------


def left(before: frozenset[str], folder: Path) -> frozenset[str]:
    return leftovers.left_after(before, folder, folder.name, patience_s=0)


def test_a_file_and_a_process_that_stay_are_named(tmp_path: Path) -> None:
    with leftovers.marked(tmp_path) as mark:
        before = leftovers.seen(tmp_path, mark)
        (tmp_path / "rtscope-board-1").touch()
        script = "import sys; print(flush=True); sys.stdin.read()"
        with subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as stays:
            assert stays.stdout is not None
            stays.stdout.readline()  # it has its own environment now
            found = left(before, tmp_path)
            stays.communicate()

    assert len(found) == 2
    assert f"file {tmp_path}/rtscope-board-1" in found
    assert any(one.startswith(f"process {stays.pid}: ") for one in found)


def test_what_was_there_before_is_not_left(tmp_path: Path) -> None:
    (tmp_path / "before").touch()
    before = leftovers.seen(tmp_path, tmp_path.name)

    assert not left(before, tmp_path)


def test_a_process_of_others_is_not_left(tmp_path: Path) -> None:
    before = leftovers.seen(tmp_path, tmp_path.name)
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
    ) as others:
        assert not left(before, tmp_path)
        others.communicate()


def test_a_mount_is_left_and_not_the_settings_that_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts, setting = tmp_path / "mountinfo", tmp_path / "tracing_on"
    other = tmp_path / "watchdog"
    mounts.write_text("23 27 0:22 / /sys rw - sysfs sysfs rw\n")
    other.write_text("1\n")
    monkeypatch.setattr(leftovers, "MOUNTS", mounts)
    monkeypatch.setattr(leftovers, "SETTINGS", (str(setting), str(other)))
    folder = tmp_path / "files"
    folder.mkdir()
    everything = leftovers.Machine.ALL
    before = leftovers.seen(folder, folder.name, everything)
    with mounts.open("a") as file:
        file.write("30 23 0:26 / /sys/kernel/tracing rw - tracefs nodev rw\n")
    setting.write_text("1\n")
    other.write_text("0\n")

    found = leftovers.left_after(before, folder, folder.name, everything, patience_s=0)

    assert found == {"mount /sys/kernel/tracing", f"setting {other} = 0"}


@pytest.mark.parametrize(
    ("ours", "is_left"), [("of the agent", True), ("of this run", False)]
)
def test_what_a_living_agent_of_another_run_has_is_not_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ours: str, is_left: bool
) -> None:
    instances, folder = tmp_path / "instances", tmp_path / "files"
    for made in (instances, folder):
        made.mkdir()
    monkeypatch.setattr(leftovers, "INSTANCES", instances)
    script = "import sys; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, leftovers.MARK: "of the agent"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as agent:
        assert agent.stdout is not None
        agent.stdout.readline()
        instance = instances / f"rtscope.{agent.pid}"
        instance.mkdir()
        found = leftovers.seen(folder, ours, leftovers.Machine.OF_AGENTS)
        agent.communicate()
    ended = leftovers.seen(folder, ours, leftovers.Machine.OF_AGENTS)

    assert (f"tracing instance {instance}" in found) == is_left
    assert f"tracing instance {instance}" in ended


def test_the_environment_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", "/tmp")
    with leftovers.marked(tmp_path):
        pass

    assert os.environ["TMPDIR"] == "/tmp"
    assert leftovers.MARK not in os.environ


# --- steps -----------------------------------------------------------------------


def test_a_run_goes_on_with_the_step_that_has_not_ended(journal: Path) -> None:
    said: list[str] = []
    first, second = Step("one", TRUE), Step("two", (*TRUE[:2], "raise SystemExit(3)"))
    steps.run_steps([first], journal, said.append)
    done = steps.run_steps([first, second], journal, said.append)

    assert [(one.name, one.status) for one in done] == [("one", 0), ("two", 3)]
    assert [line.split(":")[0] for line in said] == ["--- one", "--- two"]


def test_a_line_of_the_journal_that_was_cut_is_run_again(journal: Path) -> None:
    steps.run_steps([Step("one", TRUE)], journal, lambda _: None)
    journal.write_text(journal.read_text().rstrip("\n"))

    assert steps.journal_in(journal) == {}


def test_what_runs_beside_a_step_ends_with_it(journal: Path) -> None:
    beside = (sys.executable, "-c", "import time; time.sleep(1000)")
    [done] = steps.run_steps(
        [Step("one", TRUE, beside=beside)], journal, lambda _: None
    )

    assert done.status == 0


# --- flakes ----------------------------------------------------------------------


@pytest.mark.slow
def test_a_test_that_ever_failed_is_named_with_its_seeds(tmp_path: Path) -> None:
    tests = tmp_path / "test_it.py"
    tests.write_text(
        "from pathlib import Path\n"
        "def test_right(): pass\n"
        f"def test_flaps(): Path({str(tmp_path)!r}, 'there').mkdir()\n"
    )
    words = ("-n0", str(tests))
    runs = flakes.steps(2, tmp_path, words)
    steps.run_steps(
        [Step(one.name, one.argv) for one in runs], tmp_path / "j", lambda _: None
    )
    reports = {seed: flakes.report_of(tmp_path, seed) for seed in (1, 2)}

    assert flakes.failed_in(reports) == {"test_it::test_flaps": [2]}


@pytest.mark.parametrize("signal", ["SIGTERM", "SIGINT"])
def test_a_run_that_is_ended_takes_its_load_with_it(signal: str) -> None:
    script = (
        "import os, signal, sys; from rings.steps import beside\n"
        "load = (sys.executable, '-c', 'import time; time.sleep(1000)')\n"
        "with beside(load):\n"
        "    os.kill(os.getpid(), getattr(signal, sys.argv[1]))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, signal],
        stderr=subprocess.PIPE,  # the load has it too: it ends with both
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
    ) as ended:
        assert ended.stderr is not None
        ended.stderr.read()

    assert ended.returncode != 0


def test_each_run_of_a_c_test_that_fails_says_what_it_printed(tmp_path: Path) -> None:
    folder = tmp_path / "lib" / "build" / "x86_64-thread" / "tests"
    folder.mkdir(parents=True)
    script = (
        f"#!/bin/sh\nmkdir {tmp_path}/there 2>/dev/null || {{ echo no >&2; exit 3; }}"
    )
    for name in ("test_flaps", "test_flaps.passed"):
        (folder / name).write_text(script)
    (folder / "test_flaps").chmod(0o700)
    tests = ctests.programs([tmp_path / "lib"], "x86_64")
    said: list[str] = []
    failed = ctests.run(tests, [ctests.Mode("alone", (), 3)], 2, said.append)

    assert [path.name for path in tests] == ["test_flaps"]
    assert list(failed.values()) == [["3: no\n"] * 2]
    assert said[0].endswith("alone: 2 of 3 failed")
    assert ctests.table(failed, [ctests.Mode("alone", (), 3)])[2].endswith("| 2 |")


def test_each_test_that_was_changed_for_a_flap_is_there_and_says_its_ground() -> None:
    rows = tomllib.loads((ROOT / "tests" / "rings" / "flaps.toml").read_text())["test"]
    gone = [
        row["name"]
        for row in rows
        if not re.search(rf"\b{row['name']}\(", (ROOT / row["file"]).read_text())
    ]

    assert gone == []
    assert {row["depends"] for row in rows} == {
        *("sums", "event", "bound", "virtual", "own", "least"),
    }
    assert all(row["now"] and row["commits"] for row in rows)
    assert len({(row["file"], row["name"]) for row in rows}) == len(rows)


def test_every_second_run_is_beside_a_load(tmp_path: Path) -> None:
    beside = [bool(step.beside) for step in flakes.steps(10, tmp_path)]

    assert beside == [False, True] * 5


# --- times -----------------------------------------------------------------------


@pytest.mark.slow
def test_what_a_test_and_its_fixture_cost_is_told(tmp_path: Path) -> None:
    tests = tmp_path / "test_it.py"
    tests.write_text(
        "import pytest, subprocess, sys, time\n"
        "@pytest.fixture\n"
        "def worked():\n"
        "    code = 'while sum(__import__(\"os\").times()[:2]) < 0.3: pass'\n"
        "    subprocess.run([sys.executable, '-c', code])\n"
        "def test_sleeps(worked): time.sleep(0.2)\n"
    )
    said = subprocess.run(
        [sys.executable, "-m", "rings.times", "-n0", str(tests)],
        env={"PYTHONPATH": str(ROOT / "tests"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    ).stdout
    rows = {" ".join(row[5:]): row for row in map(str.split, said.splitlines())}

    assert float(rows["test_it.py fixture worked"][0]) >= 0.3
    assert float(rows["test_it.py::test_sleeps"][4]) >= 0.2
    assert float(rows["all"][4]) >= 0.2


def test_the_dearest_come_first_and_all_are_in_the_sum(tmp_path: Path) -> None:
    def line(name: str, cpu_s: float) -> str:
        cost = times.Cost(name, cpu_s, 1.0, 2, 0, 0.5)
        return json.dumps(asdict(cost)) + "\n"

    (tmp_path / "1.jsonl").write_text(line("a", 1) + line("b", 5) + line("a", 1))
    costs = times.costs_in(tmp_path)

    assert [(one.name, one.cpu_s, one.boots) for one in costs] == [
        ("b", 5, 2),
        ("a", 2, 4),
    ]
    assert list(times.table(costs, dearest=1))[-1].split() == [
        *("7.0", "3.0", "6", "0", "1.5", "all")
    ]


# --- what other work can fail ----------------------------------------------------


@pytest.fixture
def tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of tests in a project of its own, which is the working directory."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "test_some.py"


@pytest.mark.slow
def test_what_fails_once_is_named_and_what_fails_twice_fails(
    tests: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tests.write_text(
        "from pathlib import Path\n"
        f"SEEN = Path({str(tmp_path / 'seen')!r})\n"
        "def test_passes(): SEEN.open('a').write('p')\n"
        "def test_flaps():\n"
        "    there = 'f' in SEEN.read_text()\n"
        "    SEEN.open('a').write('f')\n"
        "    assert there\n"
    )
    assert alone.run(["-p", "no:randomly"], tmp_path / "first") == 0
    said = capfd.readouterr().out
    assert "test_some.py::test_flaps failed above, and passes alone" in said
    assert (tmp_path / "seen").read_text() == "pff"

    tests.write_text("def test_fails(): assert False\n")
    assert alone.run([], tmp_path / "second") == 1
    assert "FLAPS" not in capfd.readouterr().out


@pytest.mark.slow
def test_many_that_fail_are_not_run_again(
    tests: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    names = "".join(f"def test_{n}(): assert False\n" for n in range(alone.FEW + 1))
    tests.write_text(names)

    assert alone.run([], tmp_path / "cache") == 1
    assert "once more" not in capfd.readouterr().out


# --- nights ----------------------------------------------------------------------


def test_each_step_of_a_night_is_a_target_of_make() -> None:
    targets = {
        line.partition(":")[0] for line in (ROOT / "Makefile").read_text().splitlines()
    }

    assert nightly.STEPS.keys() <= targets


def test_ci_makes_what_is_a_target_of_make() -> None:
    made = re.findall(r"^make (\S+)", (ROOT / ".ci" / "run").read_text(), re.M)

    assert made == ["test"]


@pytest.mark.parametrize(
    ("status", "said"),
    [(0, "passed"), (77, "not made"), (2, "exit status 2")],
)
def test_a_machine_that_cannot_be_made_is_named(status: int, said: str) -> None:
    assert said in machines.row(Ended("sid, make run", status, 1, 60))
