"""`rtscope app demo states` on this machine: its states are seen, and nothing stays."""

import json
import os
import shutil
import signal
import site
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from fakes.commandline import Rtscope
from rtscope.machine.filetree import FileReader
from rtscope.verbs.demo import statemaker, states

PATIENCE_S = 300.0
SRC = Path(statemaker.__file__).parents[3]
SYSTEM_PYTHON = "/usr/bin/python3"

# It does with one maker as the command does, until somebody ends it.
HOLDER = """
import os, sys, time
from rtscope.host.process import start
words = ["-I", "-S", sys.argv[1], sys.argv[2], str(os.getpid())]
held = start([sys.executable, *words])
os.write(1, held.stdout.readline())
time.sleep(3600)
"""


def makers_of(pid: int) -> list[int]:
    """Return the processes that were started as makers of a process, and live."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[-2:] == [str(pid).encode(), b""] and any(
            word.endswith(b"statemaker.py") for word in words
        ):
            found.append(int(place.name))
    return found


def until_none_is_left(pid: int) -> None:
    end = time.monotonic() + PATIENCE_S
    while left := makers_of(pid):
        assert time.monotonic() < end, f"still there: {left}"
        time.sleep(0.02)


@contextmanager
def started(words: Sequence[str]) -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(
        [*words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as one:
        try:
            yield one
        finally:
            one.kill()


def fits(document: dict[str, object]) -> None:
    """Assert that each state was seen, but one that the machine refuses."""
    shown = document["states"]
    assert isinstance(shown, list)
    outcomes = {one["name"]: (one["outcome"], one["reason"]) for one in shown}
    refusable = {"traced", "vfork"}
    for name, (outcome, reason) in outcomes.items():
        refused = name in refusable and outcome == "not shown" and "refused" in reason
        assert outcome == "seen" or refused, (name, outcome, reason)
    assert list(outcomes) == list(statemaker.MAKERS)
    assert document["held"] is True


def test_each_state_is_seen_on_this_machine(rtscope: Rtscope) -> None:
    said = rtscope("app", "demo", "states", "--json")

    fits(json.loads(said.out))
    assert said.status == 0
    assert said.err.count("state: ") == len(statemaker.MAKERS)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="another test runs as this user")
@pytest.mark.skipif(
    shutil.which("setpriv") is None or not Path(SYSTEM_PYTHON).exists(),
    reason="needs setpriv and the system's Python",
)
def test_each_state_is_seen_by_an_ordinary_user(tmp_path: Path) -> None:
    paths = os.pathsep.join([str(SRC), *site.getsitepackages()])
    words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    program = [*words, SYSTEM_PYTHON, "-m", "rtscope", "app", "demo", "states"]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": paths, "HOME": "/"}
    can = subprocess.run(
        [*words, SYSTEM_PYTHON, "-c", "import rtscope.cli.start, typer, rich"],
        check=False,
        capture_output=True,
        env=environment,
        cwd="/",
    )
    if can.returncode:
        pytest.skip("an ordinary user cannot read this checkout")
    done = subprocess.run(
        [*program, "--json"],
        check=False,
        capture_output=True,
        env=environment,
        cwd="/",
        timeout=PATIENCE_S * 4,
    )

    assert (done.returncode, done.stderr.count(b"Traceback")) == (0, 0)
    fits(json.loads(done.stdout))


# --- every ending ends the children ---------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", statemaker.MAKERS)
def test_a_killed_demo_leaves_no_process(name: str) -> None:
    words = [sys.executable, "-c", HOLDER, statemaker.__file__, name]
    with started(words) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline()
        assert makers_of(holder.pid)
        holder.kill()
        holder.wait()
        until_none_is_left(holder.pid)


@pytest.mark.slow
def test_ctrl_c_ends_it_in_words_and_leaves_no_process() -> None:
    words = [sys.executable, "-P", "-m", "rtscope", "app", "demo", "states"]
    with started(words) as demo:
        assert demo.stderr is not None
        assert demo.stderr.readline().startswith(b"state: R")
        demo.send_signal(signal.SIGINT)
        _, said = demo.communicate(timeout=PATIENCE_S)
        until_none_is_left(demo.pid)

    assert demo.returncode == 130
    assert b"Traceback" not in said


def test_a_failure_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> states.Look:
        assert makers_of(os.getpid())
        raise RuntimeError("for the test")

    monkeypatch.setattr(states, "look_at", fails)
    with pytest.raises(RuntimeError, match="for the test"):
        states.show_states(FileReader(), log=lambda _: None)

    assert makers_of(os.getpid()) == []


# --- what cannot be shown -------------------------------------------------------------


def made_by(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a program of the test make all states."""
    program = tmp_path / "statemaker.py"
    program.write_text(text)
    monkeypatch.setattr(statemaker, "__file__", str(program))


def test_a_refused_state_is_told_with_its_reason_and_fails_nothing(
    rtscope: Rtscope, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = "print('refused ptrace was refused: Operation not permitted')"
    made_by(text, tmp_path, monkeypatch)
    said = rtscope("app", "demo", "states")

    assert said.status == 0
    one_line = " ".join(said.out.split())
    why = "not shown, because ptrace was refused: Operation not permitted"
    assert one_line.count(why) == len(statemaker.MAKERS)


def test_a_maker_that_breaks_is_unknown_and_status_1(
    rtscope: Rtscope, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made_by("raise SystemExit('no ctypes here')", tmp_path, monkeypatch)
    page = tmp_path / "page.html"
    said = rtscope("app", "demo", "states", "--html", page)

    assert said.status == 1
    assert "unknown: its process ended at once: no ctypes here" in said.out
    assert "9 of 9 states were not seen." in said.out
    assert "no ctypes here" in page.read_text()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--target", "ssh:board"), "on the board itself"),
        (("--target", "virtual:pc"), "on the board itself"),
        (("--cpu", "0"), "leave them out"),
        (("--chars",), "leave them out"),
        (("--chars", "--json"), "leave one out"),
        (("--kernel", "debian-6.12"), "--target virtual:BOARD"),
    ],
)
def test_options_that_do_not_fit_are_refused_before_anything_runs(
    rtscope: Rtscope, words: tuple[str, ...], why: str
) -> None:
    said = rtscope("app", "demo", "states", *words)

    assert (said.status, said.out) == (2, "")
    assert why in said.err
