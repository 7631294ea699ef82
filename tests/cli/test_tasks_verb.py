"""`rtscope tasks` asks the agent once, and says what it was asked for."""

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fakes import targets
from fakes.commandline import Rtscope
from fakes.faketarget import FakeTarget, Script
from fakes.shielding import Machine
from fakes.threads import kernel, lines, listing, task
from rtscope.contract import AgentError
from rtscope.host import process
from rtscope.machine.target.address import Address
from rtscope.machine.tasks.model import Listing
from rtscope.verbs.app import start as appstart
from rtscope.verbs.tasks import shielding, tasks

TASKS = (
    kernel(18, "migration/0", 99),
    task(40, name="app"),
    task(41, "fifo", pid=40, priority=80, name="loop"),
)
THREADS: Script = [lines(*TASKS)]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> FakeTarget:
    return given(monkeypatch, THREADS)


def given(monkeypatch: pytest.MonkeyPatch, script: Script) -> FakeTarget:
    target = targets.target({"tasks": script})
    monkeypatch.setattr(
        tasks, "open_target", lambda address, **_: contextlib.nullcontext(target)
    )
    return target


def test_all_threads_are_listed_with_the_rights_that_can_be_had(
    rtscope: Rtscope, machine: FakeTarget
) -> None:
    said = rtscope("tasks")

    assert (said.status, said.err) == (0, "")
    assert "  loop" in said.out
    assert "3 threads: 2 fifo, 1 other; 2 user, 1 kernel, 0 interrupt" in said.out
    assert "root tasks" in machine.log


def test_a_share_is_measured_over_the_time_that_was_asked_for(
    rtscope: Rtscope, machine: FakeTarget
) -> None:
    assert rtscope("tasks", "--share", "250ms").status == 0
    assert "root tasks --window-ns 250000000" in machine.log


def test_json_has_the_threads_that_were_chosen(
    rtscope: Rtscope, machine: FakeTarget
) -> None:
    document = json.loads(rtscope("tasks", "--pid", "41", "--rt", "--json").out)

    assert [t["tid"] for t in document["threads"]] == [41]
    assert document["threads_seen"] == 3
    assert document["target"] == "local"


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ([[AgentError("no /proc", "missing", "mount it")]], "no /proc (mount it)"),
        ([THREADS[0][:-1]], "not complete"),
        ([[]], "listed no threads"),
    ],
)
def test_a_list_that_cannot_be_had_is_no_empty_list(
    script: Script, told: str, rtscope: Rtscope, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(monkeypatch, script)
    said = rtscope("tasks")

    assert (said.status, said.out) == (3, "")
    assert told in said.err


def test_watching_looks_again_until_it_is_interrupted(
    rtscope: Rtscope, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    def opened(address: Address, **_: bool) -> contextlib.nullcontext[FakeTarget]:
        return contextlib.nullcontext(targets.target({"tasks": THREADS}))

    def look(machine: FakeTarget, *, window_ns: int) -> object:
        nonlocal looks
        looks += 1
        if looks == 3:
            raise KeyboardInterrupt
        assert window_ns == 2_000_000_000
        return listing(*TASKS)

    monkeypatch.setattr(tasks, "open_target", opened)
    monkeypatch.setattr(tasks, "list_threads", look)
    said = rtscope("tasks", "--watch", "2s")

    assert said.status == 130
    assert said.out.count("3 threads: ") == 2


def changing(monkeypatch: pytest.MonkeyPatch, *looks: Listing) -> None:
    """Let the verb see one list after the other."""
    given(monkeypatch, THREADS)
    seen = iter(looks)
    monkeypatch.setattr(tasks, "list_threads", lambda *_, **__: next(seen))


def test_changes_are_a_line_each_until_so_many_looks(
    rtscope: Rtscope, monkeypatch: pytest.MonkeyPatch
) -> None:
    faster = replace(TASKS[2], priority=81, kernel_priority=-82)
    own = task(90, name="rtscope-agent")
    changing(
        monkeypatch,
        listing(*TASKS),
        listing(*TASKS[:2], faster, own),
        listing(*TASKS[:2]),
    )
    said = rtscope("tasks", "--watch", "1s", "--changes", "--count", "2")

    assert said.status == 0
    assert "3 threads, looked at every 1 s; Ctrl-C ends" in said.out
    assert "loop [app]             policy fifo 80 → fifo 81" in said.out
    assert "2 changes in 2 looks" in said.out
    assert "rtscope-agent" not in said.out


def test_changes_as_json_are_those_of_the_threads_that_were_chosen(
    rtscope: Rtscope, monkeypatch: pytest.MonkeyPatch
) -> None:
    fair = replace(TASKS[2], policy="other", priority=0, kernel_priority=20)
    new = task(50, name="new")
    changing(monkeypatch, listing(*TASKS), listing(*TASKS[:2], fair, new))
    said = rtscope(
        *("tasks", "--watch", "1s", "--changes", "--count", "1", "--rt", "--json")
    )
    (line,) = said.out.splitlines()

    assert json.loads(line)["before"] == "fifo 80"
    assert json.loads(line)["after"] == "other"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--changes"], "--changes needs an interval: add --watch 1s"),
        (["--count", "3"], "--count needs an interval: add --watch 1s"),
        (["--watch", "1s", "--changes", "--sort", "name"], "leave --sort out"),
    ],
)
def test_changes_need_an_interval_and_no_order(
    options: list[str], told: str, rtscope: Rtscope, machine: FakeTarget
) -> None:
    said = rtscope("tasks", *options)

    assert (said.status, said.out, machine.log) == (2, "", [])
    assert told in said.err


def test_a_list_is_shown_as_often_as_was_asked_for(
    rtscope: Rtscope, monkeypatch: pytest.MonkeyPatch
) -> None:
    changing(monkeypatch, listing(*TASKS), listing(*TASKS))
    said = rtscope("tasks", "--watch", "1s", "--count", "2")

    assert said.status == 0
    assert said.out.count("3 threads: ") == 2


# --- --shield ---------------------------------------------------------------------


@pytest.fixture
def shieldable(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine that can be shielded; Ctrl-C comes at the second look."""
    machine, looks = Machine(), iter([False, True])

    def sleep(_seconds: float) -> None:
        if next(looks):
            raise KeyboardInterrupt

    for module in (shielding, appstart):
        monkeypatch.setattr(
            module, "open_target", lambda address, **_: contextlib.nullcontext(machine)
        )
        monkeypatch.setattr(module, "agent_file", lambda _arch: Path("/agent"))
    monkeypatch.setattr("rtscope.verbs.tasks.shielding.time.sleep", sleep)
    return machine


def test_a_shield_lasts_until_ctrl_c_and_says_what_it_is(
    rtscope: Rtscope, shieldable: Machine
) -> None:
    said = rtscope("tasks", "--shield", "2-3")

    assert said.status == 0, said.err
    assert "CPU 2-3 is shielded: an isolated partition" in said.out
    assert "echo PID > /sys/fs/cgroup/rtscope.shield/cgroup.procs" in said.out
    assert "until Ctrl-C" in said.err
    assert "shield of CPU 2-3 is gone, and all settings are restored" in said.err
    assert shieldable.log[-2:] == ["stop hold", "kill hold"]


def test_a_shield_as_json(rtscope: Rtscope, shieldable: Machine) -> None:
    document = json.loads(rtscope("tasks", "--shield", "2,3", "--json").out)

    assert (document["cpus"], document["partition"]) == ([2, 3], "isolated")
    assert document["threads_moved"] == 2
    assert {one["what"] for one in document["not_moved"]} == {"thread", "interrupt"}


@pytest.mark.parametrize(
    ("words", "argv"),
    [
        (
            ("tasks", "--shield", "2-3"),
            ["/agent", "start", "--shield", "--", "x", "-y"],
        ),
        (
            ("app", "start", "--shield", "--cpus", "2-3", "--lock"),
            [
                *("/agent", "start", "--cpus", "2-3", "--shield", "--lock-memory"),
                *("--", "x", "-y"),
            ],
        ),
    ],
)
def test_a_command_runs_behind_the_shield_and_its_status_is_the_answer(
    rtscope: Rtscope,
    shieldable: Machine,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    argv: list[str],
) -> None:
    def run(given: Sequence[str], environ: Mapping[str, str], **_: object) -> int:
        shieldable.log.append(f"run {list(given) == argv} {environ == os.environ}")
        return 7

    monkeypatch.setattr(process, "run_in_front", run)
    said = rtscope(*words, "--", "x", "-y")

    assert (said.status, said.out) == (7, "")
    assert "CPU 2-3 is shielded" in said.err
    assert "all settings are restored" in said.err
    assert shieldable.log[-3:] == ["run True True", "stop hold", "kill hold"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("tasks", "--", "x"), "rtscope tasks --shield 2-3 -- x"),
        (("tasks", "--shield", "2", "x"), "before the program write --"),
        (("tasks", "--shield", "2-", "--", "x"), "not a CPU list"),
        (("tasks", "--shield", "2", "--json", "--", "x"), "is the COMMAND's"),
        (("tasks", "--shield", "2", "-t", "ssh:b", "--", "x"), "on this machine"),
        (("app", "start", "--shield", "--", "x"), "add --cpus 3"),
        (
            ("app", "start", "--shield", "--cpus", "2", "-t", "ssh:b", "--", "x"),
            "rtscope tasks --target ssh:b --shield 2",
        ),
    ],
)
def test_a_shield_that_fits_nothing_is_refused_with_what_to_type(
    rtscope: Rtscope, words: tuple[str, ...], says: str
) -> None:
    said = rtscope(*words)

    assert said.status == 2
    assert says in said.err
