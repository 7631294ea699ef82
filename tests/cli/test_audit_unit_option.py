"""`rtscope audit --unit`: a file, an installed unit, and what its threads have."""

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fakes import targets, threads
from fakes.commandline import Rtscope
from rtscope.contract import Line

UNIT = "[Service]\nExecStart=/usr/bin/loop\nCPUSchedulingPolicy=fifo\n"
FULL = f"{UNIT}CPUSchedulingPriority=80\nLimitMEMLOCK=infinity\n"
INSTALLED = "/etc/systemd/system/loop.service"
RUNS = {
    INSTALLED: FULL,
    "/proc/1/comm": "systemd\n",
    "/proc/7/cgroup": "0::/system.slice/loop.service\n",
    "/proc/8/cgroup": "0::/system.slice/other.service\n",
}


Machine = Callable[..., None]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with these files and threads."""

    def made(files: dict[str, str], *lines: Line) -> None:
        target = targets.target({"tasks": [list(lines)]}, files=files)
        monkeypatch.setattr(
            "rtscope.verbs.audit.audit.open_target",
            lambda address, **_: contextlib.nullcontext(target),
        )

    return made


def rows(out: str) -> dict[str, dict[str, str]]:
    return {row["id"]: row for row in json.loads(out)["checks"]}


def test_a_file_is_judged_without_being_installed(rtscope: Rtscope, here: Path) -> None:
    (here / "loop.service").write_text(UNIT)
    said = rtscope("audit", "--unit", "loop.service", "--root", ".", "-v")

    assert said.status == 1
    assert "FAIL high    policy and priority: fifo without a priority" in said.out
    assert "loop.service:3: CPUSchedulingPolicy=fifo" in said.out.replace("\n", "")


def test_a_tree_is_searched_as_a_machine(rtscope: Rtscope, here: Path) -> None:
    place = here / "tree" / "etc" / "systemd" / "system"
    place.mkdir(parents=True)
    (place / "loop.service").write_text(FULL)
    said = rtscope("audit", "--unit", "loop", "--root", "tree", "--json")

    assert rows(said.out)["unit_priority"]["message"] == "fifo 80"
    message = rows(said.out)["unit_threads"]["message"]
    assert message == "a captured file tree has no threads"


def test_where_systemd_does_not_run_its_threads_are_not_asked_for(
    rtscope: Rtscope, machine: Machine
) -> None:
    machine({**RUNS, "/proc/1/comm": "runit\n"})
    said = rtscope("audit", "--unit", "loop", "--json")

    check = rows(said.out)["unit_threads"]
    assert check["outcome"] == "not applicable"
    assert check["message"] == "systemd does not run here: process 1 is runit"


@pytest.mark.parametrize(
    ("priority", "outcome"), [(80, "pass"), (50, "fail")], ids=["as asked", "other"]
)
def test_what_its_threads_have_is_compared_with_what_it_says(
    rtscope: Rtscope, machine: Machine, priority: int, outcome: str
) -> None:
    machine(
        RUNS,
        threads.task(7, "fifo", priority=priority),
        threads.task(8, "fifo", priority=80),
        threads.ending(2),
    )
    said = rtscope("audit", "--unit", "loop", "--json")

    assert rows(said.out)["unit_threads"]["outcome"] == outcome


def test_a_unit_that_was_not_started_is_said_to_be_so(
    rtscope: Rtscope, machine: Machine
) -> None:
    machine({k: v for k, v in RUNS.items() if k != "/proc/7/cgroup"})
    said = rtscope("audit", "--unit", "loop", "--json")

    assert rows(said.out)["unit_threads"]["message"] == (
        "no thread is visible: systemctl start loop.service"
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--unit", "nope", "--root", "."), "no such unit"),
        (("--unit", "limits.conf", "--root", "."), "checked by"),
        (("--user",), "name it with --unit"),
        (("--unit", "x.timer", "--root", "."), "units that start processes end in"),
        (("--unit", "x", "--config", "c"), "--unit and --config"),
        (("--unit", "x", "--apply", "safe"), "--apply and --unit"),
    ],
)
def test_what_is_no_unit_is_refused(
    rtscope: Rtscope, here: Path, words: tuple[str, ...], why: str
) -> None:
    said = rtscope("audit", *words)

    assert said.status == 2
    assert why in said.err


def test_a_unit_of_a_user_is_known_by_its_path_or_by_the_option(
    rtscope: Rtscope, here: Path, machine: Machine
) -> None:
    machine({})
    users = here / ".config/systemd/user"
    users.mkdir(parents=True)
    text = "[Service]\nExecStart=/bin/true\nUser=robot\n"
    (users / "motor.service").write_text(text)
    (here / "motor.service").write_text(text)

    by_path = rtscope("audit", "--unit", users / "motor.service", "--json")
    asked = rtscope("audit", "--unit", "./motor.service", "--user", "--json")
    system = rtscope("audit", "--unit", "./motor.service", "--json")

    outcomes = [
        rows(said.out)["unit_user_manager"]["outcome"]
        for said in (by_path, asked, system)
    ]
    assert outcomes == ["fail", "fail", "not applicable"]


def test_a_fifo_is_no_unit_and_nothing_waits_for_it(
    rtscope: Rtscope, here: Path, machine: Machine
) -> None:
    machine({})
    os.mkfifo(here / "motor.service")

    said = rtscope("audit", "--unit", "./motor.service")

    assert said.status == 2
    assert "not a regular file" in said.err
