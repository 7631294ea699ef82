"""`rtscope audit --apply` and `--restore` on a machine that answers as it is told."""

import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from fakes import targets
from fakes.commandline import Rtscope
from fakes.faketarget import FakeTarget
from rtscope.contract import AgentError, Applied, Line, Refused, Restored, Tuned

LOCKED = "/proc/sys/vm/compact_unevictable_allowed"
HUGE = "/sys/kernel/mm/transparent_hugepage/enabled"
KSM = "/sys/kernel/mm/ksm/run"
FILES = {LOCKED: "1\n", HUGE: "always [madvise] never\n", KSM: "1\n"}
DONE = Tuned(2, applied=1, already=0, refused=0)
APPLY = ("audit", "--apply", "locked_memory_moves")

Machine = Callable[..., FakeTarget]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine whose agent says these lines, whatever it is asked to change."""

    def made(*lines: Line, files: Mapping[str, str] = FILES) -> FakeTarget:
        scripts = {verb: [list(lines)] for verb in ("apply", "restore")}
        target = targets.target(scripts, files=files)
        monkeypatch.setattr(
            "rtscope.verbs.audit.audit.open_target",
            lambda address, **_: contextlib.nullcontext(target),
        )
        return target

    return made


def asked(target: FakeTarget) -> list[str]:
    return [line for line in target.log if line.startswith("root")]


def test_a_dry_run_shows_what_would_be_written_and_asks_for_nothing(
    rtscope: Rtscope, machine: Machine
) -> None:
    target = machine()
    said = rtscope("audit", "--apply", "locked_memory_moves,ksm", "--dry-run")

    assert said.status == 0
    assert f"locked_memory_moves  {LOCKED}  1 -> 0" in said.out
    assert f"ksm                  {KSM}" in said.out
    assert "ksm costs: guests take more memory of their host" in said.out
    assert asked(target) == []


def test_what_was_not_named_is_not_changed(rtscope: Rtscope, machine: Machine) -> None:
    target = machine(Applied("compact_unevictable_allowed", 0, "1", "0"), DONE)
    rtscope(*APPLY)

    assert asked(target) == ["root apply --set compact_unevictable_allowed:0=0"]


def test_what_is_good_already_is_said_and_left_alone(
    rtscope: Rtscope, machine: Machine
) -> None:
    target = machine()
    said = rtscope("audit", "--apply", "transparent_hugepages")

    assert said.status == 0
    assert "transparent_hugepages: nothing to do, pass" in said.out
    assert asked(target) == []


def test_a_check_that_still_fails_afterwards_is_an_exit_status_of_1(
    rtscope: Rtscope, machine: Machine
) -> None:
    # The fake's files stay as they are, whatever its agent says.
    machine(Applied("compact_unevictable_allowed", 0, "1", "0"), DONE)
    said = rtscope(*APPLY)

    assert said.status == 1
    assert "changed and read back: 1 file\n" in said.out
    assert "locked_memory_moves: now fail" in said.out


def test_a_refusal_is_named_beside_what_was_done(
    rtscope: Rtscope, machine: Machine
) -> None:
    machine(
        Applied("ksm_run", 0, "1", "2"),
        Refused("compact_unevictable_allowed", 0, "0", "read-only", "a container"),
        DONE,
    )
    said = rtscope("audit", "--apply", "locked_memory_moves,ksm", "--json")

    told = json.loads(said.out)
    assert said.status == 1
    assert [row["check"] for row in told["applied"]] == ["ksm"]
    assert [(r["path"], r["cause"]) for r in told["refused"]] == [(LOCKED, "read-only")]


def test_without_rights_nothing_is_changed_and_the_exit_status_is_3(
    rtscope: Rtscope, machine: Machine
) -> None:
    machine(AgentError("changing settings needs root", "capability", "run it as root"))
    said = rtscope(*APPLY)

    assert said.status == 3
    assert said.err == (
        "rtscope: fake: changing settings needs root (run it as root)\n"
    )


def test_what_a_machine_does_not_have_cannot_be_applied(
    rtscope: Rtscope, machine: Machine
) -> None:
    machine(files={})
    said = rtscope("audit", "--apply", "preemption_model")

    assert said.status == 1
    assert (
        "NOT DONE preemption_model: this machine has no /sys/kernel/debug/" in said.out
    )


def test_restore_says_what_is_back(rtscope: Rtscope, machine: Machine) -> None:
    places = [Restored("irq_affinity", number, "0-1") for number in (24, 25)]
    machine(*places, Restored("watchdog", 0, "1"))
    said = rtscope("audit", "--restore")

    assert said.status == 0
    assert said.out == (
        "put back: irq_affinity to 0-1 (2 files)\nput back: watchdog to 1\n"
    )


def test_restore_says_what_is_not_back(rtscope: Rtscope, machine: Machine) -> None:
    machine(
        Restored("watchdog", 0, "1"),
        Refused("ksm_run", 0, "1", "held", "another one has it"),
        AgentError("not everything could be put back", "knob", ""),
    )
    said = rtscope("audit", "--restore", "--json")

    assert said.status == 1
    assert json.loads(said.out)["not_put_back"] == [
        {
            "knob": "ksm_run",
            "value": "1",
            "cause": "held",
            "reason": "another one has it",
        }
    ]


def test_with_nothing_applied_restore_says_so(
    rtscope: Rtscope, machine: Machine
) -> None:
    machine()

    assert rtscope("audit", "--restore").out == ("no changed settings to restore\n")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--apply", "nonsense"), "is no check"),
        (("--apply", "swap"), "no setting that can be put back"),
        (("--apply", "safe", "--restore"), "--apply and --restore cannot be combined"),
        (("--apply", "safe", "--config", "x"), "--apply and --config"),
        (("--restore", "--root", "x"), "--restore and --root"),
        (("--dry-run",), "--dry-run needs --apply"),
        (("--apply", "rt_throttling"), "--profile polling"),
        (("--apply", "safe", "--target", "virtual:pc"), "local, ssh:HOST or lab:PLACE"),
        (("--apply", "safe", "--kernel", "x"), "for virtual boards only"),
    ],
)
def test_what_does_not_go_together_is_refused(
    rtscope: Rtscope, here: Path, words: tuple[str, ...], why: str
) -> None:
    said = rtscope("audit", *words)

    assert said.status == 2
    assert why in said.err


def test_a_cpu_that_is_not_there_is_refused_before_anything_is_applied(
    rtscope: Rtscope, machine: Machine
) -> None:
    machine()

    said = rtscope("audit", "--apply", "safe", "--cpus", "1000", "--dry-run")

    assert said.status == 2
    assert "CPU 1000 is not online" in said.err
