"""`rtscope run` on a fake machine: what it does, says, keeps and returns."""

import json
import shutil
from pathlib import Path

import pytest

from fakes import targets
from fakes.commandline import Rtscope
from fakes.faketarget import FakeTarget
from rtscope.contract import AgentError, Tick
from rtscope.record.directory.place import CAMPAIGN, read_document
from rtscope.record.directory.records import create, open_records

CUSTOM = {
    "campaign": {"command": ["touch", "/tmp/\x1b[31mevil"]},
    "run": [{"load": ["custom"], "duration": ["1s"]}],
}

IDLE = ("run", "--load", "idle", "--duration", "6s", "--interval", "100ms")

ALL_BUT_LOAD = ("run", "--duration", "6s", "--interval", "100ms")
IDLE_AND_CPU = (*ALL_BUT_LOAD, "--load", "idle,cpu", "--warmup", "0s")


@pytest.mark.usefixtures("fake")
def test_a_run_prints_its_result_and_talks_on_standard_error(
    rtscope: Rtscope, here: Path
) -> None:
    said = rtscope(*IDLE, "--out", "out")

    assert said.status == 0
    assert said.err == "1 of 1: idle, 6 s\n  maximum 7.00 us\n"
    assert "idle  7.00" in said.out
    assert "Page with charts: out/report.html" in said.out
    assert len(said.out.splitlines()) <= 22
    everything = rtscope("report", "out", "-v").out
    assert "Repeat with: rtscope run --load idle --duration 6s" in everything
    assert (here / "out" / "report.html").exists()
    assert len(open_records(here / "out")) == 1


@pytest.mark.usefixtures("fake")
def test_json_is_all_that_standard_output_gets(rtscope: Rtscope) -> None:
    said = rtscope(*IDLE, "--json", "--out", "out")

    assert json.loads(said.out)["schema"] == 2


@pytest.mark.usefixtures("fake")
def test_the_command_to_repeat_it_leaves_the_directory_out(
    rtscope: Rtscope, here: Path
) -> None:
    rtscope(*IDLE, "--out", "a")
    rtscope(*IDLE, "--out=b")

    for name in ("a", "b"):
        assert read_document(here / name, CAMPAIGN).command == ("rtscope", *IDLE)


@pytest.mark.usefixtures("fake")
def test_without_out_the_results_get_a_directory_of_their_own(
    rtscope: Rtscope, here: Path
) -> None:
    rtscope(*IDLE)

    (made,) = here.iterdir()
    assert made.name.startswith("rtscope-2")


@pytest.mark.parametrize(
    ("options", "status", "word"),
    [
        ((), 0, ""),
        (("--deadline", "1s"), 4, "NOT SHOWN"),
        (("--deadline", "6500ns"), 1, "NO"),
        (("--deadline", "6500ns", "--claim", "1/1h"), 1, "NO"),
        (("--deadline", "1s", "--claim", "1/1h"), 4, "NOT SHOWN"),
        (("--policy", "other"), 3, "INVALID"),
    ],
)
@pytest.mark.usefixtures("fake")
def test_the_exit_status_is_the_verdict(
    options: tuple[str, ...],
    status: int,
    word: str,
    rtscope: Rtscope,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = rtscope(*IDLE, *options, "--out", "out")

    assert word in said.out
    assert said.status == status


def test_a_refusal_of_the_agent_is_told_with_its_remedy(
    rtscope: Rtscope, fake: FakeTarget, here: Path
) -> None:
    refusal = AgentError("no right", cause="capability", remedy="run it as root")
    fake._scripts = {"measure": [[refusal]]}
    said = rtscope(*IDLE, "--out", "out")

    assert (said.status, said.out) == (3, "")
    assert said.err == "rtscope: fake: no right; run it as root\n"
    assert not (here / "out").exists()


def test_a_missing_stress_ng_is_told(
    rtscope: Rtscope, fake: FakeTarget, here: Path
) -> None:
    fake._programs = {}
    said = rtscope("run", "--out", "out")

    assert (said.status, said.out) == (3, "")
    assert said.err.startswith("rtscope: fake: the loads cpu, os, memory, storage need")
    assert "apt install stress-ng" in said.err
    assert fake.log == []


def test_a_stressor_that_no_machine_takes_is_refused_with_what_it_does(
    rtscope: Rtscope, fake: FakeTarget, here: Path
) -> None:
    said = rtscope("run", "--load", "stress-ng:loop,stress-ng:fork", "--out", "out")

    assert said.status == 2
    assert (
        "stress-ng:loop (makes loopback block devices), stress-ng:fork: may"
        in " ".join(said.err.split())
    )
    assert fake.log == []


def test_after_a_failure_what_was_measured_is_shown(
    rtscope: Rtscope, fake: FakeTarget
) -> None:
    fake._scripts = {**fake._scripts, "load": [[AgentError("gone", "x", "")]]}
    said = rtscope(*IDLE_AND_CPU, "--out", "out")

    assert said.status == 3
    assert "idle  7.00" in said.out
    assert "to continue: rtscope run --resume out" in said.err
    assert said.err.endswith("rtscope: fake, 002-cpu: gone\n")


@pytest.mark.parametrize("gone", ["rm", "mv"])
def test_results_that_are_removed_meanwhile_are_told_and_not_made_anew(
    rtscope: Rtscope,
    fake: FakeTarget,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    gone: str,
) -> None:
    def vanish(display: object, line: object) -> None:
        if isinstance(line, Tick) and (here / "out").exists():
            shutil.move(here / "out", here / "elsewhere")
            if gone == "rm":
                shutil.rmtree(here / "elsewhere")

    monkeypatch.setattr("rtscope.cli.progress.LiveDisplay._receive", vanish)
    said = rtscope(*IDLE_AND_CPU, "--out", "out")

    assert said.status == 3
    assert "out: gone, with what was in it" in said.err
    assert "--resume" not in said.err
    assert not (here / "out").exists()


def test_ctrl_c_saves_shows_and_can_be_resumed(
    rtscope: Rtscope,
    fake: FakeTarget,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = iter(range(1, 100))

    def interrupt_once(display: object, line: object) -> None:
        if isinstance(line, Tick) and next(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("rtscope.cli.progress.LiveDisplay._receive", interrupt_once)
    said = rtscope(*IDLE_AND_CPU, "--out", "out")

    assert said.status == 130
    assert "idle" in said.out
    assert "to continue: rtscope run --resume out" in said.err
    assert said.err.endswith("rtscope: interrupted\n")
    assert "002-cpu" not in fake.log
    kept = here / "out" / "runs" / "001-idle"
    assert {path.name for path in kept.iterdir()} == {"audit.json", "interrupted.json"}

    said = rtscope("run", "--resume", "out")
    assert said.status == 0, said.err
    assert {path.name for path in kept.iterdir()} == {"audit.json", "record.json"}
    assert len(open_records(here / "out")) == 2

    fake.log.clear()
    said = rtscope("run", "--resume", "out")
    assert said.status == 0
    assert "idle" in said.out
    assert fake.log == []


def test_a_command_that_came_by_mail_is_not_run_unasked(
    rtscope: Rtscope, fake: FakeTarget, here: Path
) -> None:
    create(here / "mail", CUSTOM, command=())
    said = rtscope("run", "--resume", "mail")

    assert (said.status, said.out) == (2, "")
    assert "runs the custom command touch" in said.err
    assert "evil" in said.err
    assert "add --yes" in said.err
    assert "\x1b" not in said.err
    assert fake.log == []


def test_with_yes_it_is_run(rtscope: Rtscope, fake: FakeTarget, here: Path) -> None:
    create(here / "mail", CUSTOM, command=())
    rtscope("run", "--resume", "mail", "--yes")

    (load,) = [line for line in fake.log if line.startswith("load")]
    assert load.endswith("-- touch /tmp/\x1b[31mevil")


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"run": [{"load": ["custom"]}]}, "the custom load needs a command"),
        ({"run": []}, "write 1 to"),
        ({"run": 5}, "write 1 to"),
        ({"target": {"address": "ssh:-oProxyCommand=x"}}, "does not begin with '-'"),
        ({"campaign": {"name": "\x1b[31m" * 2}}, "campaign"),
        ({"invented": {}}, "invented"),
    ],
)
def test_a_campaign_that_came_by_mail_is_checked_as_any_other(
    document: dict[str, object],
    told: str,
    rtscope: Rtscope,
    fake: FakeTarget,
    here: Path,
) -> None:
    create(here / "mail", document, command=())
    said = rtscope("run", "--resume", "mail")

    assert said.status == 2
    assert told in said.err
    assert "\x1b" not in said.err
    assert fake.log == []


@pytest.mark.usefixtures("fake")
def test_hostile_words_of_a_machine_do_not_reach_the_terminal_or_the_page(
    rtscope: Rtscope, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = "\x1b]0;owned\x07<script>alert(1)</script>[bold]=cmd|' /C calc'!A0"
    hostile = targets.target(files={"/proc/cmdline": evil, "/proc/cpuinfo": evil})
    monkeypatch.setattr("fakes.targets.target", lambda: hostile)
    said = rtscope(*IDLE, "--out", "out")
    assert said.status == 0

    page = (here / "out" / "report.html").read_text()
    assert "<script>alert" not in page
    for words in (("report", "out"), ("report", "out", "--format", "csv")):
        said = rtscope(*words)
        assert "\x1b" not in said.out
        assert "\x07" not in said.out
        assert not any(line.startswith(("=", "@", "+")) for line in said.out.split())


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--tuned", "nonsense"), "is no check"),
        (("--tuned", "smt"), "no setting that can be put back"),
        (("--tuned", "Safe!"), "write for example safe"),
        (
            ("--tuned", "scaling_governor", "--governor", "powersave"),
            "change the same setting: remove one of them",
        ),
    ],
)
def test_what_cannot_be_tuned_is_refused_before_a_directory_is_made(
    rtscope: Rtscope, here: Path, words: tuple[str, ...], why: str
) -> None:
    said = rtscope("run", *words)

    assert said.status == 2
    assert why in said.err
    assert not list(here.iterdir())


@pytest.mark.usefixtures("fake")
def test_where_nothing_needs_tuning_that_is_said(rtscope: Rtscope, here: Path) -> None:
    said = rtscope(*IDLE, "--tuned", "safe", "--out", "out")

    assert said.status == 0
    assert "restored after it: no change needed" in said.err
    (kept,) = open_records(here / "out")
    assert (kept.tuning or {})["changed"] == []
