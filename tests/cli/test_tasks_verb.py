"""`rtscope tasks` asks the agent once, and says what it was asked for."""

import contextlib
import json
from dataclasses import replace

import pytest

from fakes import targets
from fakes.commandline import Rtscope
from fakes.faketarget import FakeTarget, Script
from fakes.threads import kernel, lines, listing, task
from rtscope.contract import AgentError
from rtscope.machine.target.address import Address
from rtscope.machine.tasks.model import Listing
from rtscope.verbs.tasks import tasks

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
