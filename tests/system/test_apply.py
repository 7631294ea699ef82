"""Real settings of this machine are applied, and are as before afterwards, always."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from rig import (
    JOURNAL_DIR,
    Program,
    agents_of,
    alive,
    native_agent,
    records_in,
    rtscope,
    until,
)

from fakes.sshd import SSHD, board
from rtscope.contract import AgentError, Applied, Refused, Restored, Tuned

pytestmark = [pytest.mark.system]

HUGE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
LOCKED = Path("/proc/sys/vm/compact_unevictable_allowed")
WATCHDOG = Path("/proc/sys/kernel/watchdog")
WATCHDOG_CPUS = Path("/proc/sys/kernel/watchdog_cpumask")

APPLIED = JOURNAL_DIR / "applied"
NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")


def as_they_are() -> Mapping[Path, str]:
    paths = (HUGE, LOCKED, WATCHDOG, WATCHDOG_CPUS)
    return {path: path.read_text() for path in paths if path.exists()}


@pytest.fixture
def settings(root: None) -> Iterator[Mapping[Path, str]]:
    """This machine's settings with two that fail their checks; put back at the end."""
    found = as_they_are()
    if {HUGE, LOCKED} - set(found):
        pytest.skip("this kernel lacks settings that the test changes")
    HUGE.write_text("always")
    LOCKED.write_text("1")
    yield as_they_are()
    subprocess.run([native_agent(), "restore", "--applied"], check=False)
    LOCKED.write_text(found[LOCKED])
    HUGE.write_text(found[HUGE].partition("[")[2].partition("]")[0])
    assert as_they_are() == found


def is_applied() -> bool:
    return "[never]" in HUGE.read_text() and LOCKED.read_text() == "0\n"


SET = ("--set", "transparent_hugepage=never", "--set", "compact_unevictable_allowed=0")


def audit(*words: str) -> tuple[int, str, str]:
    with rtscope("audit", *words) as program:
        done = program.finish()
    return done.status, done.stdout.decode(), done.stderr


def agent(*words: str) -> Program:
    return Program([native_agent(), *words])


CHECKS = "transparent_hugepages,locked_memory_moves"


def test_applied_settings_stay_until_they_are_asked_back(
    settings: Mapping[Path, str],
) -> None:
    status, out, err = audit("--apply", CHECKS, "--json")
    assert status == 0, err
    told: dict[str, Any] = json.loads(out)

    assert {row["path"]: row["value"] for row in told["applied"]} == {
        str(HUGE): "madvise",
        str(LOCKED): "0",
    }
    assert told["now"] == {
        "transparent_hugepages": "pass",
        "locked_memory_moves": "pass",
    }
    assert LOCKED.read_text() == "0\n"

    # The next start of an agent puts back what was left, and this was not left.
    with agent("restore") as program:
        assert program.finish().lines == []
    assert LOCKED.read_text() == "0\n"

    assert audit("--restore")[0] == 0
    assert as_they_are() == settings
    assert not APPLIED.exists()


def test_a_dry_run_shows_it_and_changes_nothing(settings: Mapping[Path, str]) -> None:
    status, out, _ = audit("--apply", CHECKS, "--dry-run", "--json")

    assert status == 0
    assert {row["check"] for row in json.loads(out)["planned"]} == set(
        CHECKS.split(",")
    )
    assert "applied" not in json.loads(out)
    assert as_they_are() == settings
    assert not APPLIED.exists()


def test_nothing_is_applied_unasked(settings: Mapping[Path, str]) -> None:
    audit("--observe", "0")

    assert as_they_are() == settings


def test_a_watchdog_is_put_back_to_its_cpus(settings: Mapping[Path, str]) -> None:
    if WATCHDOG.exists() is False or WATCHDOG.read_text() != "1\n":
        pytest.skip("this kernel has no lockup watchdog, or it is off")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("no CPU would be left for the rest")
    last = max(os.sched_getaffinity(0))

    assert audit("--cpus", str(last), "--apply", "watchdog")[0] == 0
    assert WATCHDOG_CPUS.read_text() != settings[WATCHDOG_CPUS]
    assert audit("--restore")[0] == 0
    assert as_they_are() == settings


def test_settings_applied_twice_go_back_to_the_first(
    settings: Mapping[Path, str],
) -> None:
    for value in ("madvise", "never"):
        with agent("apply", "--set", f"transparent_hugepage={value}") as program:
            assert program.finish().status == 0
    assert audit("--restore")[0] == 0
    assert as_they_are() == settings


def test_an_apply_that_is_killed_is_undone_by_the_next_start(
    settings: Mapping[Path, str],
) -> None:
    # It holds what it set in a journal of its own until all of it is set.
    with agent("hold", "--host-link", *SET) as program:
        until(is_applied, what="the settings are changed")
        program.send(signal.SIGKILL)
        program.finish()
    assert is_applied()
    assert (JOURNAL_DIR / f"journal.{program.pid}").exists()

    status, _, err = audit("--restore")
    assert status == 0, err
    assert as_they_are() == settings


def test_a_host_that_is_killed_takes_what_it_held_with_it(
    settings: Mapping[Path, str],
) -> None:
    with agent("hold", "--host-link", *SET) as program:
        until(is_applied, what="the settings are changed")
        program.send(signal.SIGTERM)
        lines = program.finish().lines

    assert [type(line) for line in lines] == [Applied, Applied, Tuned, *[Restored] * 2]
    assert as_they_are() == settings


def test_what_a_running_agent_has_changed_is_not_asked_back(
    settings: Mapping[Path, str],
) -> None:
    with agent("apply", "--set", "transparent_hugepage=madvise") as program:
        program.finish()
    with agent("hold", "--host-link", "--set", "transparent_hugepage=never") as holder:
        until(lambda: "[never]" in HUGE.read_text(), what="it is held")
        status, out, _ = audit("--restore")
        assert status == 1
        assert "NOT restored: transparent_hugepage to always" in out
        assert "another running rtscope has changed it" in out
        holder.send(signal.SIGTERM)
        holder.finish()

    assert audit("--restore")[0] == 0
    assert as_they_are() == settings


def test_a_setting_that_is_not_there_does_not_keep_others_from_being_made(
    settings: Mapping[Path, str],
) -> None:
    with agent("apply", *SET, "--set", "irq_affinity:9999=0") as program:
        done = program.finish()

    assert done.status == 0
    refused = [line for line in done.lines if isinstance(line, Refused)]
    assert [(line.knob, line.cause) for line in refused] == [
        ("irq_affinity", "missing")
    ]
    assert is_applied()


def test_a_user_without_rights_is_told_which_and_nothing_changes(
    settings: Mapping[Path, str], public_agent: Path
) -> None:
    for words in (("apply", *SET), ("hold", *SET)):
        with Program([*AS_NOBODY, public_agent, *words]) as program:
            done = program.finish()
        assert done.status == 3
        assert isinstance(done.lines[-1], AgentError)
        assert done.lines[-1].cause == "capability"
        assert "needs root" in done.lines[-1].message
    assert as_they_are() == settings


def test_a_user_without_rights_is_told_by_the_command_too(
    settings: Mapping[Path, str],
) -> None:
    me = (*AS_NOBODY, sys.executable, "-m", "rtscope")
    if subprocess.run([*me, "--help"], check=False, capture_output=True).returncode:
        pytest.skip("another user cannot run this installation")
    with Program([*me, "audit", "--apply", CHECKS]) as program:
        done = program.finish()

    assert done.status == 3
    assert "changing settings of the machine needs root" in done.stderr
    assert as_they_are() == settings


def test_a_user_without_rights_cannot_put_back_and_is_told(
    settings: Mapping[Path, str], public_agent: Path
) -> None:
    with agent("apply", *SET) as program:
        program.finish()
    with Program([*AS_NOBODY, public_agent, "restore", "--applied"]) as program:
        done = program.finish()

    assert (done.status, "as root" in done.error.remedy) == (3, True)
    assert is_applied()


def test_a_file_system_that_is_read_only_is_named(settings: Mapping[Path, str]) -> None:
    script = 'mount -o remount,ro,bind /sys && exec "$@"'
    words = ("unshare", "--mount", "sh", "-c", f"mount --bind /sys /sys && {script}")
    probe = subprocess.run([*words, "sh", "true"], check=False, capture_output=True)
    if probe.returncode:
        pytest.skip("may not mount in a name space of its own here")
    with Program([*words, "sh", native_agent(), "apply", *SET]) as program:
        done = program.finish()

    (refused,) = [line for line in done.lines if isinstance(line, Refused)]
    assert (refused.knob, refused.cause) == ("transparent_hugepage", "read-only")
    assert "as in a container" in refused.reason
    assert LOCKED.read_text() == "0\n"


def test_root_of_a_user_namespace_is_told_that_it_is_none(
    settings: Mapping[Path, str], public_agent: Path
) -> None:
    words = ("unshare", "--user", "--map-root-user")
    if subprocess.run([*words, "true"], check=False, capture_output=True).returncode:
        pytest.skip("may not make a user name space here")
    with Program([*AS_NOBODY, *words, public_agent, "apply", *SET]) as program:
        error = program.finish().error

    assert error.cause in ("container", "capability")
    assert as_they_are() == settings


@pytest.mark.skipif(SSHD is None, reason="needs openssh-server")
def test_a_board_is_changed_and_put_back_over_ssh(
    settings: Mapping[Path, str], scratch: Path
) -> None:
    with board(scratch / "ssh") as there:
        env = {"PATH": there.path}
        words = ("audit", "--target", "ssh:board")
        with rtscope(*words, "--apply", CHECKS, env=env) as program:
            applied = program.finish()
        during = as_they_are()
        with rtscope(*words, "--restore", env=env) as program:
            restored = program.finish()

    assert (applied.status, restored.status) == (0, 0), applied.stderr + restored.stderr
    assert during[LOCKED] == "0\n"
    assert "locked_memory_moves: now pass" in applied.stdout.decode()
    assert as_they_are() == settings


# --- rtscope run --tuned -----------------------------------------------------------


def tuned_run(out: Path, *, duration: str) -> Program:
    words = ("run", "--load", "idle", "--tuned", CHECKS, "--duration", duration)
    return rtscope(*words, "--out", out)


def is_tuned() -> bool:
    return "[madvise]" in HUGE.read_text() and LOCKED.read_text() == "0\n"


def test_a_run_is_tuned_while_it_lasts_and_its_audit_shows_it(
    settings: Mapping[Path, str], tmp_path: Path
) -> None:
    with tuned_run(tmp_path / "out", duration="1s") as campaign:
        until(is_tuned, what="the settings are changed")
        done = campaign.finish()

    assert done.status == 0, done.stderr
    assert as_they_are() == settings
    (run,) = (tmp_path / "out" / "runs").iterdir()
    checks = json.loads((run / "audit.json").read_text())["checks"]
    outcome = {row["id"]: row["outcome"] for row in checks}
    assert {outcome[name] for name in CHECKS.split(",")} == {"pass"}
    (kept,) = records_in(tmp_path / "out").values()
    assert {row["path"]: row["before"] for row in (kept.tuning or {})["changed"]} == {
        str(HUGE): "always",
        str(LOCKED): "1",
    }


def test_a_campaign_that_is_killed_puts_its_settings_back_at_once(
    settings: Mapping[Path, str], tmp_path: Path
) -> None:
    with tuned_run(tmp_path / "out", duration="60s") as campaign:
        until(is_tuned, what="the settings are changed")
        until(lambda: bool(agents_of(campaign.pid, "measure")), what="it measures")
        left = agents_of(campaign.pid, "measure") + agents_of(campaign.pid, "hold")
        campaign.send(signal.SIGKILL)
        campaign.finish()
    until(lambda: not alive(left), what="its agents have ended")

    assert as_they_are() == settings


def test_settings_lost_by_a_kill_end_the_campaign_and_the_next_start_restores(
    settings: Mapping[Path, str], tmp_path: Path
) -> None:
    with tuned_run(tmp_path / "out", duration="2s") as campaign:
        until(is_tuned, what="the settings are changed")
        (holder,) = agents_of(campaign.pid, "hold")
        os.kill(holder, signal.SIGKILL)
        done = campaign.finish()

    assert done.status == 3
    assert "the agent that held the settings of --tuned ended" in done.stderr
    assert not list((tmp_path / "out").glob("runs/*/record.json"))
    with agent("restore") as program:
        program.finish()
    assert as_they_are() == settings


# --- the interrupt threads of a device ------------------------------------------------


def interrupt_threads() -> dict[int, str]:
    """The name of each."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if (name := path.read_text().strip()).startswith("irq/"):
                found[int(path.parent.name)] = name
    return found


def priorities(threads: Iterable[int]) -> dict[int, tuple[int, int]]:
    return {
        tid: (os.sched_getscheduler(tid), os.sched_getparam(tid).sched_priority)
        for tid in threads
    }


def test_one_device_is_raised_and_put_back_also_after_a_kill(
    root: None, tmp_path: Path
) -> None:
    found = priorities(interrupt_threads())
    if not found:
        pytest.skip("interrupts have no threads on this kernel")
    tid, name = max(interrupt_threads().items())
    number = name.removeprefix("irq/").partition("-")[0]
    raised = {**found, tid: (os.SCHED_FIFO, 91)}
    word = f"interrupt_threads:{number}=91"

    assert audit("--apply", word, "--dry-run")[0] == 0
    assert priorities(found) == found
    status, out, err = audit("--apply", word, "--json")
    assert (status, json.loads(out)["now"]) == (0, {word: "pass"}), err
    assert priorities(found) == raised
    assert audit("--restore")[0] == 0
    assert priorities(found) == found

    options = ("--tuned", word, "--duration", "60s", "--out", tmp_path / "out")
    with rtscope("run", "--load", "idle", *options) as campaign:
        until(lambda: priorities(found) == raised, what="it is raised")
        left = agents_of(campaign.pid, "hold")
        campaign.send(signal.SIGKILL)
        campaign.finish()
    until(lambda: not alive(left), what="its agent has ended")
    assert priorities(found) == found
