"""`rtscope app unit`: of a program that runs, with systemd's word on the result."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rig import CPUS, Program, rtscope, until

from rtscope.machine.audit.unit import parse

pytestmark = pytest.mark.system

ANALYZE = shutil.which("systemd-analyze")
DAEMON = "1"
CPU = str(CPUS[-1])
SCRIPT = """\
import ctypes, time
ctypes.CDLL(None).mlockall(3)
print("ready", flush=True)
time.sleep(600)
"""


@contextmanager
def running(*prefix: str) -> Iterator[int]:
    """Run a program that locks its memory, with a command before it; give its PID."""
    if shutil.which(prefix[0]) is None:
        pytest.skip(f"needs {prefix[0]}")
    with subprocess.Popen(
        [*prefix, "/usr/bin/env", "python3", "-c", SCRIPT, "$HOME", "50%", "a b"],
        stdout=subprocess.PIPE,
        cwd="/tmp",
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            yield child.pid
        finally:
            child.kill()


def written(pid: int, path: Path) -> dict[str, str]:
    """Write the unit of a process; return its settings."""
    with rtscope("app", "unit", str(pid), "--out", path) as program:
        done = program.finish()
    assert done.status == 0, done.stderr
    found, odd = parse(path.read_text(), name=path.name)
    assert odd == []
    return {one.key: one.value for one in found}


def audited(path: Path) -> list[str]:
    with rtscope("audit", "--json", "--fail-on", "low", "--unit", path) as program:
        done = program.finish()
    checks = json.loads(done.stdout)["checks"]
    failed = [one for one in checks if one["outcome"] == "fail"]
    return [one["id"] for one in failed if one["severity"] != "info"]


def complaints(path: Path) -> str:
    if ANALYZE is None:
        return ""
    with Program([ANALYZE, "verify", "--man=no", path]) as program:
        done = program.finish()
    lines = done.stderr.splitlines(keepends=True)
    return "".join(line for line in lines if path.name in line)


def test_the_unit_of_a_pinned_real_time_program_is_what_it_has(
    tmp_path: Path, root: None
) -> None:
    path = tmp_path / "loop.service"
    with running("taskset", "-c", CPU, "chrt", "--fifo", "43") as pid:
        found = written(pid, path)
        locked = Path(f"/proc/{pid}/status").read_text().partition("VmLck:")[2].split()

    assert found["CPUSchedulingPolicy"] == "fifo"
    assert found["CPUSchedulingPriority"] == found["LimitRTPRIO"] == "43"
    assert found["LimitMEMLOCK"] == "infinity"
    assert found["WorkingDirectory"] == "/tmp"
    assert found.get("CPUAffinity", CPU) == CPU
    assert ("CPUAffinity" in found) is (os.cpu_count() != 1)
    assert found["ExecStart"].endswith(' $$HOME 50%% "a b"')
    assert "User" not in found
    assert f"{int(locked[0]):,} KiB of memory locked" in path.read_text()
    assert audited(path) == []
    assert complaints(path) == ""


def test_the_unit_of_another_user_has_its_name_and_capabilities(
    tmp_path: Path, root: None
) -> None:
    path = tmp_path / "loop.service"
    user = ("--reuid", DAEMON, "--regid", DAEMON, "--clear-groups")
    raised = ("--inh-caps", "+sys_nice", "--ambient-caps", "+sys_nice")
    with running("chrt", "--rr", "7", "setpriv", *user, *raised) as pid:
        found = written(pid, path)

    assert found["User"] == "daemon"
    assert found["AmbientCapabilities"] == "CAP_SYS_NICE"
    assert found["CPUSchedulingPolicy"] == "rr"
    assert audited(path) == []
    assert complaints(path) == ""


def test_the_unit_of_an_ordinary_program_asks_for_no_right(tmp_path: Path) -> None:
    path = tmp_path / "loop.service"
    with running("nice", "-n", "5") as pid:
        found = written(pid, path)

    assert found["Nice"] == "5"
    assert found.keys().isdisjoint({"CPUSchedulingPolicy", "LimitRTPRIO"})
    assert complaints(path) == ""


def test_a_program_that_is_not_there_and_a_wrong_name_of_a_file_are_refused(
    tmp_path: Path,
) -> None:
    with rtscope("app", "unit", "no-such-program") as program:
        done = program.finish()
    assert (done.status, done.stdout) == (2, b"")
    assert "there is no such process" in done.stderr

    with rtscope("app", "unit", "1", "--out", tmp_path / "x.unit") as program:
        done = program.finish()
    assert done.status == 2
    assert "x.service" in done.stderr


def test_a_finding_of_the_audit_is_told_with_status_1(root: None) -> None:
    with running("chrt", "--fifo", "99") as pid, rtscope("app", "unit", str(pid)) as p:
        done = p.finish()

    assert done.status == 1
    assert "the audit finds: priority 99" in done.stderr
    assert b"CPUSchedulingPriority=99\n" in done.stdout


def test_a_thread_of_the_kernel_has_no_command(root: None) -> None:
    statuses = Path("/proc").glob("[0-9]*/status")
    kernel = [one.parent.name for one in statuses if "VmSize" not in one.read_text()]
    if not kernel:
        pytest.skip("no thread of the kernel is visible here")
    with rtscope("app", "unit", kernel[0]) as program:
        done = program.finish()

    assert (done.status, done.stdout) == (2, b"")
    assert "thread of the kernel" in done.stderr


def test_the_unit_of_a_program_of_app_start_gives_it_the_same(
    tmp_path: Path, root: None
) -> None:
    path = tmp_path / "loop.service"
    words = ("--policy", "fifo", "--priority", "43", "--cpus", CPU, "--lock")
    with rtscope("app", "start", *words, "--", "/usr/bin/sleep", "600") as program:
        comm = Path(f"/proc/{program.pid}/comm")
        until(lambda: comm.read_text() == "sleep\n", what="it has become the program")
        until(lambda: _locked_kb(program.pid) > 0, what="its memory is locked")
        found = written(program.pid, path)

    assert "app start --lock -- /usr/bin/sleep 600" in found["ExecStart"]
    assert found["CPUSchedulingPolicy"] == "fifo"
    assert found["CPUSchedulingPriority"] == found["LimitRTPRIO"] == "43"
    assert found["LimitMEMLOCK"] == "infinity"
    assert complaints(path) == ""


def _locked_kb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmLck:")[2].split()[0])


def test_the_unit_of_a_deadline_program_starts_it_with_its_deadline(
    tmp_path: Path, root: None
) -> None:
    path = tmp_path / "loop.service"
    words = ("--policy", "deadline", "--runtime", "1ms/5ms/20ms")
    with rtscope("app", "start", *words, "--", "/usr/bin/sleep", "600") as program:
        comm = Path(f"/proc/{program.pid}/comm")
        until(lambda: comm.read_text() == "sleep\n", what="it has become the program")
        found = written(program.pid, path)

    given = "--policy deadline --runtime 1000000ns/5000000ns/20000000ns -- "
    assert f"app start {given}/usr/bin/sleep 600" in found["ExecStart"]
    assert complaints(path) == ""
