"""
Culprits made from user space on a real kernel, each found by `rtscope explain`.

Whatever else the machine did, what was planted takes longer than its noise, or can be
mistaken for nothing else. So the wake-up it made late is among the worst, explained by
its name to at least 95 %.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from rig import (
    PATIENCE_S,
    agents_of,
    arguments_of,
    invalid,
    records_in,
    rtscope,
    until,
)

from rtscope.record.events.dat import open_trace
from rtscope.record.events.events import Trace
from rtscope.record.events.text import text_trace
from rtscope.record.events.writer import TRACE
from tracecmd import needs_trace_cmd, trace_cmd

ATTRIBUTED = 0.95
CPU = min(os.sched_getaffinity(0))
SECONDS = 10
"""All that is planted takes about six, on a machine that does other things too."""


def can_trace() -> bool:
    return os.geteuid() == 0 and "tracefs" in Path("/proc/filesystems").read_text()


pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not can_trace(), reason="needs root and a kernel with tracefs"),
]

RUN_PATIENCE_S = 3 * PATIENCE_S
"""It measures without tracing before and after, and this machine may be busy."""

# What is planted is ready before, and waits for a line: on a busy machine a program
# takes seconds to start.
NAMED = """
import ctypes, os, resource, sys, time
def named(name):
    with open("/proc/self/comm", "w") as file:
        file.write(name)
def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
def wait_for_the_line():
    os.setpriority(os.PRIO_PROCESS, 0, -15)
    os.sched_setaffinity(0, {int(sys.argv[1])})
    sys.stdin.readline()
"""
HOG = f"""{NAMED}
wait_for_the_line()
named("culprit")
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(80))
spin(0.15)
"""
# A real-time thread that the measuring one preempts, and one that never gets the CPU.
STARVING = f"""{NAMED}
wait_for_the_line()
if os.fork() == 0:
    named("starved")
    spin(2.5)
    os._exit(0)
named("busy")
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
spin(2.3)
os.wait()
"""
# Timers of the same instant: their callbacks run in one interrupt after another. No
# more than have room in the kernel's buffer while a busy machine lets nobody read it.
# Three times, because a virtual machine's host may pause it in the middle of one.
STORM = f"""{NAMED}
libc = ctypes.CDLL(None, use_errno=True)
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
number = min(12000, most) - 100
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
class Spec(ctypes.Structure):
    _fields_ = [(n, ctypes.c_long) for n in ("every_s", "every_ns", "s", "ns")]
timers = [libc.timerfd_create(1, 0) for _ in range(number)]
assert min(timers) >= 0
wait_for_the_line()
for _ in range(3):
    at = time.monotonic_ns() + 400_000_000
    at -= at % 1_000_000
    spec = Spec(0, 0, at // 10**9, at % 10**9)
    for one in timers:
        assert libc.timerfd_settime(one, 1, ctypes.byref(spec), None) == 0
    time.sleep(0.6)
"""


Wakeups = Sequence[Mapping[str, Any]]

FROZEN = f"rtscope-frozen-{os.getpid()}"
"""The control group that the measuring threads are frozen in."""


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path | None]:
    """The hierarchy of cgroup v2, mounted; None if this machine has none to give."""
    mounted = tmp_path_factory.mktemp("groups")
    mount = ["mount", "-t", "cgroup2", "none", str(mounted)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        yield None
        return
    try:
        yield mounted
    finally:
        subprocess.run(["umount", mounted], check=True)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory, groups: Path | None) -> Path:
    """One run, while one culprit after the other is planted."""
    out = tmp_path_factory.mktemp("culprits") / "r"
    options = ("--duration", f"{SECONDS}s", "--interval", "1ms", "--out", out)
    # So many are kept that the noise of a virtual machine leaves room for all planted.
    # Sixteen are explained: those of a CPU where nothing is planted would take places.
    wanted = ("--priority", "50", "--worst", "64", "--cpus", str(CPU))
    words = ("run", "--explain", "--load", "idle", *wanted, *options)
    with ExitStack() as stack:
        hog, storm, starving = (
            stack.enter_context(ready(program)) for program in (HOG, STORM, STARVING)
        )
        campaign = stack.enter_context(rtscope(*words))
        until(
            lambda: bool(measuring(campaign.pid)) or not campaign.running,
            what="the traced run has begun",
            within_s=RUN_PATIENCE_S,
        )
        time.sleep(0.5)
        plant(hog)
        stop(measuring(campaign.pid), 0.2)
        if groups is not None:
            freeze(measuring(campaign.pid), 0.2, groups)
        plant(storm)
        plant(starving)
        done = campaign.finish(RUN_PATIENCE_S)
    # It ends with 3 when a caveat makes its numbers no evidence, which the machine may
    # give reason for: the kernel leaves its clocksource, or stops a thread we planted.
    assert done.status in {0, 3}, done.stderr
    assert not invalid(records_in(out)["idle"]), done.stdout
    return out


@pytest.fixture(scope="module")
def wakeups(result: Path) -> Wakeups:
    """The worst wake-ups of that run, explained."""
    with rtscope("explain", result, "--worst", "128", "--json") as explain:
        done = explain.finish(RUN_PATIENCE_S)
        assert done.status == 0, done.stderr
    (run,) = json.loads(done.stdout)
    found: Wakeups = run["wakeups"]
    return found


@contextmanager
def ready(program: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start what is planted later; end it in any case."""
    command = [sys.executable, "-c", program, str(CPU)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def plant(process: "subprocess.Popen[bytes]") -> None:
    """Let it do what it does, and wait until it has."""
    process.communicate(b"\n", timeout=PATIENCE_S)
    assert process.returncode == 0


def measuring(pid: int) -> list[int]:
    """Return the agents of a campaign whose traced threads have begun to measure.

    What tracing costs is told by runs before without it: nothing is planted there.
    """
    return [
        agent
        for agent in agents_of(pid, "measure")
        if "--trace" in arguments_of(agent)
        and any(name.startswith("rtscope/") for name in threads_of(agent))
    ]


def threads_of(pid: int) -> Iterator[str]:
    for comm in Path(f"/proc/{pid}/task").glob("*/comm"):
        try:
            yield comm.read_text().strip()
        except (FileNotFoundError, ProcessLookupError):
            continue


def stop(agents: Sequence[int], seconds: float) -> None:
    for sign in (signal.SIGSTOP, signal.SIGCONT):
        for agent in agents:
            os.kill(agent, sign)
        time.sleep(seconds)


def freeze(agents: Sequence[int], seconds: float, groups: Path) -> None:
    group = groups / FROZEN
    group.mkdir()
    try:
        if not (group / "cgroup.freeze").exists():
            return  # before Linux 5.2
        for agent in agents:
            told = Path(f"/proc/{agent}/cgroup").read_text()
            (before,) = (row[3:] for row in told.splitlines() if row[:3] == "0::")
            (group / "cgroup.procs").write_text(str(agent))
            (group / "cgroup.freeze").write_text("1")
            time.sleep(seconds)
            (group / "cgroup.freeze").write_text("0")
            (groups / before[1:] / "cgroup.procs").write_text(str(agent))
        empty = "populated 0"
        until(lambda: empty in (group / "cgroup.events").read_text(), what=empty)
    finally:
        group.rmdir()


def blamed(
    wakeups: Sequence[Mapping[str, Any]], causes: set[str]
) -> list[Mapping[str, Any]]:
    """Return the well explained wake-ups whose culprit is one of these causes."""
    return [
        one
        for one in wakeups
        if one["dominant_segment"] is not None
        and one["segments"][one["dominant_segment"]]["cause"] in causes
        and explained_share(one) >= ATTRIBUTED
    ]


def explained_share(one: Mapping[str, Any]) -> float:
    """Return how much is attributed of the time whose events were recorded.

    Some machines have tasks that the kernel writes no switch of; what then is missing
    must be told as missing, and can be no one's.
    """
    missing_ns = sum(
        stretch["end_ns"] - stretch["begin_ns"]
        for stretch in one["segments"]
        if stretch["cause"] == "unknown" and "events are missing" in stretch["name"]
    )
    latency_ns = one["latency_ns"]
    share: float = one["attributed_share"] * latency_ns / (latency_ns - missing_ns)
    return share if 2 * missing_ns < latency_ns else 0.0


def names(wakeups: Sequence[Mapping[str, Any]]) -> set[str]:
    return {one["segments"][one["dominant_segment"]]["name"] for one in wakeups}


def test_a_task_of_higher_priority_is_found(wakeups: Wakeups) -> None:
    found = blamed(wakeups, {"another task"})
    # It renames itself while it runs: then the evidence has its later name.
    told = [one["segments"][one["dominant_segment"]] for one in found]
    called = [f"{one['name']} {' '.join(one['evidence'])}" for one in told]
    assert any("culprit" in one and "priority 80" in one for one in called), called
    assert max(one["latency_ns"] for one in found) > 100_000_000


def test_a_stopped_agent_is_found(wakeups: Wakeups) -> None:
    found = blamed(wakeups, {"a stopped thread"})
    assert max(one["latency_ns"] for one in found) > 100_000_000


def test_a_frozen_agent_is_found_with_who_froze_it(
    wakeups: Wakeups, groups: Path | None
) -> None:
    if groups is None:
        pytest.skip("cannot mount the hierarchy of cgroup v2 here")
    found = blamed(wakeups, {"a frozen thread"})
    longest = max(found, key=lambda one: one["latency_ns"])
    assert longest["latency_ns"] > 100_000_000
    told = longest["segments"][longest["dominant_segment"]]
    assert told["name"] == f"/{FROZEN}"
    assert any(f"froze /{FROZEN}" in line for line in told["evidence"])
    assert any(f"unfroze /{FROZEN}" in line for line in told["evidence"])


def test_a_storm_of_timers_is_found(wakeups: Wakeups) -> None:
    found = blamed(wakeups, {"another timer's callback"})
    assert "timerfd_tmrproc" in names(found)


def test_the_fair_server_or_throttling_is_found(wakeups: Wakeups) -> None:
    """Which of them it is depends on the kernel; either lets the starved one run."""
    found = blamed(wakeups, {"the fair server", "real-time throttling"})
    assert any("not real-time" in name or name == "idle" for name in names(found))


def test_every_sum_closes(wakeups: Wakeups) -> None:
    # of a busy machine a wake-up or two may have time that no event tells of
    assert sum(one["residual_ns"] > 0 for one in wakeups) <= 2
    for one in wakeups:
        assert one["residual_ns"] >= 0
        assert sum(one["parts"].values()) + one["residual_ns"] == one["latency_ns"]


def listed(trace: Trace) -> list[tuple[int, int, str]]:
    """Return time, CPU and name of every event."""
    return sorted(
        (at_ns, rows.cpu, trace.names[kind])
        for rows in trace.rows
        for at_ns, kind in zip(rows.at_ns.tolist(), rows.kinds.tolist(), strict=True)
    )


@needs_trace_cmd
def test_every_event_is_what_trace_cmd_reads(result: Path) -> None:
    (file,) = result.glob(f"runs/*/{TRACE}")
    ours = listed(open_trace(file))
    text = trace_cmd("report", "-t", "-i", file)

    assert len(ours) > 1000
    assert ours == listed(text_trace(memoryview(text), name="trace-cmd report"))


@needs_trace_cmd
def test_version_7_has_the_same_events(result: Path, tmp_path: Path) -> None:
    (file,) = result.glob(f"runs/*/{TRACE}")
    other = tmp_path / "trace.dat"
    version = ("--file-version", "7", "--compression", "none")
    trace_cmd("convert", *version, "-i", file, "-o", other)

    assert listed(open_trace(other)) == listed(open_trace(file))
