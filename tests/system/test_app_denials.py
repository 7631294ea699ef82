"""Who may not watch is told what was not seen, why, and what would permit it."""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from rig import MS, Program, native_agent, until
from test_rights import AS_NOBODY

from rtscope.contract import AgentError, WatchBegin, WatchedThread, WatchEnd

pytestmark = [
    pytest.mark.system,
    pytest.mark.usefixtures("root"),
    pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv"),
]

PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
TRACEPOINTS = {"preempted", "memory_call", "blocking_call", "lock_wait", "timeline"}
COUNTERS = {"minor_fault", "major_fault", "migration"}

SYSCALL_NUMBERS = {"x86_64": (0xC000003E, 298), "aarch64": (0xC00000B7, 241)}
"""Of seccomp: the architecture's word, and perf_event_open."""

WITHOUT_PERF = """
import ctypes, os, struct, sys
arch, number = int(sys.argv[1]), int(sys.argv[2])
ops = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x50001), (0x06, 0, 0,
       0x7fff0000)]
code = b"".join(struct.pack("HBBI", *op) for op in ops)
filters = ctypes.create_string_buffer(code)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filters", ctypes.c_void_p)]
program = Program(len(ops), ctypes.addressof(filters))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
os.execv(sys.argv[3], sys.argv[3:])
"""
"""A container's usual filter, as far as it concerns us: EPERM for perf_event_open."""


@pytest.fixture
def sleeper(request: pytest.FixtureRequest) -> Iterator[int]:
    """A process of root, or of another user if the test says so."""
    prefix: Sequence[str] = getattr(request, "param", ())
    process = subprocess.Popen([*prefix, "sleep", "60"])
    comm = Path(f"/proc/{process.pid}/comm")
    try:
        # Until then it still has the rights of whoever starts it.
        until(lambda: comm.read_text() == "sleep\n", what="it sleeps")
        yield process.pid
    finally:
        process.kill()
        process.wait()


def watched(pid: int, *prefix: str) -> tuple[WatchBegin, list[object]]:
    """Watch for a moment; give the first line and the others."""
    argv = [*prefix, str(native_agent()), "watch", "--pid", str(pid)]
    with Program([*argv, "--duration-ns", str(100 * MS), "--stacks", "4"]) as agent:
        done = agent.finish()
    first = done.lines[0]
    assert isinstance(first, WatchBegin), (first, done.stderr)
    assert done.status == 0
    assert isinstance(done.lines[-1], WatchEnd)
    return first, list(done.lines[1:])


def refused(begin: WatchBegin) -> Mapping[str, tuple[str, str]]:
    assert all(
        one.cause and one.reason and one.remedy for one in begin.events if not one.seen
    )
    return {one.name: (one.cause, one.remedy) for one in begin.events if not one.seen}


def test_root_may_see_all(sleeper: int) -> None:
    begin, _ = watched(sleeper)

    assert refused(begin) == {}


@pytest.mark.parametrize("sleeper", [AS_NOBODY], indirect=True)
def test_a_user_sees_of_an_own_process_what_the_machine_lets_users_see(
    sleeper: int,
) -> None:
    begin, lines = watched(sleeper, *AS_NOBODY)

    why = refused(begin)
    assert why.keys() >= TRACEPOINTS
    assert {cause for cause, _ in why.values()} <= {"permission", "paranoid"}
    assert all("sudo" in remedy for _, remedy in why.values())
    if int(PARANOID.read_text()) > 2:
        assert why.keys() >= COUNTERS
        assert "kernel.perf_event_paranoid=2" in why["minor_fault"][1]
        return
    seen = {one.name: one for one in begin.events if one.seen}
    assert seen.keys() >= COUNTERS
    assert seen["minor_fault"].user_only == (int(PARANOID.read_text()) == 2)
    (thread,) = [one for one in lines if isinstance(one, WatchedThread)]
    assert "minor_fault" in thread.events
    assert "preempted" not in thread.events


def test_a_user_sees_nothing_of_the_process_of_another(sleeper: int) -> None:
    begin, _ = watched(sleeper, *AS_NOBODY)

    why = refused(begin)
    assert why.keys() >= TRACEPOINTS | COUNTERS
    assert all("sudo" in remedy for _, remedy in why.values())


@pytest.mark.parametrize("sleeper", [AS_NOBODY], indirect=True)
def test_a_root_without_the_right_is_told_which(sleeper: int) -> None:
    begin, _ = watched(sleeper, "setpriv", "--bounding-set=-perfmon,-sys_admin")

    why = refused(begin)
    assert why.keys() >= TRACEPOINTS
    assert {cause for cause, _ in why.values()} == {"capability"}
    assert all("CAP_PERFMON" in remedy for _, remedy in why.values())


def test_a_filter_of_system_calls_is_named(sleeper: int) -> None:
    if platform.machine() not in SYSCALL_NUMBERS:
        pytest.skip("needs the number of a system call")
    arch, number = SYSCALL_NUMBERS[platform.machine()]
    launcher = (sys.executable, "-c", WITHOUT_PERF, str(arch), str(number))

    begin, _ = watched(sleeper, *launcher)

    why = refused(begin)
    assert why.keys() >= TRACEPOINTS | COUNTERS
    assert {cause for cause, _ in why.values()} == {"seccomp"}
    assert all("perf_event_open" in remedy for _, remedy in why.values())


def test_the_root_of_a_user_namespace_is_told_to_come_out(sleeper: int) -> None:
    words = ("unshare", "--user", "--map-root-user")
    if subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip("needs user namespaces")

    begin, _ = watched(sleeper, *words)

    why = refused(begin)
    assert why.keys() >= TRACEPOINTS
    assert {cause for cause, _ in why.values()} == {"namespace"}
    assert all("outside" in remedy for _, remedy in why.values())


def test_a_process_that_a_container_does_not_show_is_missing(sleeper: int) -> None:
    words = ("unshare", "--pid", "--fork", "--mount-proc")
    argv = [*words, str(native_agent()), "watch", "--pid", str(os.getpid())]
    with Program([*argv, "--duration-ns", str(100 * MS)]) as agent:
        done = agent.finish()

    assert done.status == 3
    (error,) = done.lines
    assert isinstance(error, AgentError)
    assert error.cause == "missing"
