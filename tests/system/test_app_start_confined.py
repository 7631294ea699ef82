"""`rtscope app start` where a control group or a container refuses something."""

import contextlib
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import CPUS, Done, Program, native_agent

pytestmark = pytest.mark.system

CPU, CPUSET = (Path("/sys/fs/cgroup", name) for name in ("cpu", "cpuset"))
UNIFIED = Path("/sys/fs/cgroup/cgroup.controllers")
FIFO = ("--policy", "fifo", "--priority", "10")
FILTER = """
import ctypes, os, struct, sys
ALLOW, EPERM = 0x7FFF0000, 0x00050001
load, equal, give = (0x20, 0, 0), 0x15, 0x06
steps = [(*load, 0), (equal, 1, 0, 144), (equal, 0, 1, 314), (give, 0, 0, EPERM),
         (give, 0, 0, ALLOW)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in steps))
at = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(22, 2, at, 0, 0):
    sys.exit(77)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Refuses sched_setscheduler and sched_setattr of x86-64, as a container does."""


def started(*words: str, prefix: tuple[str | Path, ...]) -> Done:
    with Program([*prefix, native_agent(), "start", *words, "--", "true"]) as program:
        return program.finish()


def inside(group: Path) -> tuple[str, ...]:
    """Return words before a command, which then begins in a control group."""
    tasks = "cgroup.procs"
    return ("sh", "-c", f'echo $$ > {group}/{tasks} && exec "$@"', "sh")


@pytest.fixture
def group(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A new control group of version 1, or 2 for the CPUs, below the root."""
    parent: Path = request.param
    if parent == CPUSET and UNIFIED.exists():
        parent = UNIFIED.parent
        control = parent / "cgroup.subtree_control"
        with contextlib.suppress(OSError):
            control.write_text("+cpuset")
        if "cpuset" not in control.read_text():
            pytest.skip("this kernel gives no cpusets to groups")
    path = parent / f"rtscope-test-{os.getpid()}"
    try:
        path.mkdir()
    except OSError as error:
        pytest.skip(f"no group can be made here: {error}")
    try:
        yield path
    finally:
        path.rmdir()


@pytest.mark.parametrize("group", [CPU], indirect=True, ids=["v1"])
def test_a_group_without_real_time_is_named_with_its_file(
    group: Path, root: None
) -> None:
    allowed = group / "cpu.rt_runtime_us"
    if not allowed.exists():
        pytest.skip("this kernel shares out no real-time by groups")
    refused = started(*FIFO, prefix=inside(group))
    allowed.write_text("100000")

    assert refused.status == 3
    assert f"echo 100000 | sudo tee {allowed}" in refused.stderr
    assert started(*FIFO, prefix=inside(group)).status == 0


@pytest.mark.parametrize("group", [CPUSET], indirect=True, ids=["cpuset"])
def test_a_cpu_outside_of_the_cpuset_is_named_with_those_that_it_has(
    group: Path, root: None
) -> None:
    if len(CPUS) < 2:
        pytest.skip("needs two CPUs")
    first, last = CPUS[0], CPUS[-1]
    (group / "cpuset.cpus").write_text(str(first))
    (group / "cpuset.mems").write_text("0")
    refused = started("--cpus", str(last), prefix=inside(group))

    assert refused.status == 3
    said, typed = refused.stderr.splitlines()
    assert f"CPU {last} is outside of the cpuset of this process, which has " in said
    assert said.endswith(str(first))
    assert "AllowedCPUs=" in typed
    assert started("--cpus", str(first), prefix=inside(group)).status == 0


@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of x86-64")
def test_a_filter_of_system_calls_is_named_with_the_options_of_containers(
    root: None,
) -> None:
    refused = started(*FIFO, prefix=(sys.executable, "-c", FILTER))
    if refused.status == 77:
        pytest.skip("no filter can be set here")

    assert refused.status == 3
    assert "a filter of system calls (seccomp)" in refused.stderr
    assert "--security-opt seccomp=unconfined" in refused.stderr


def test_a_container_without_capabilities_names_the_limit_and_the_options(
    root: None,
) -> None:
    dropped = ("setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice")
    prefix = (*dropped, "prlimit", "--rtprio=0:0")
    if subprocess.run([*prefix, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no capability can be dropped here")
    refused = started(*FIFO, prefix=prefix)

    assert refused.status == 3
    assert "lacks CAP_SYS_NICE, and RLIMIT_RTPRIO" in refused.stderr
    assert "--ulimit rtprio=10" in refused.stderr
