"""
The kernel's events around the worst wake-ups, recorded by the real kernel.

An event is forced: the agent is stopped, or something with a higher priority has its
CPU. What was kept must then hold that time, and tell it.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from rig import (
    CPUS,
    JOURNAL_DIR,
    MS,
    Done,
    Program,
    measuring,
    native_agent,
    rtscope,
    until,
)

from fakes.sshd import SSHD, board
from rtscope.contract import (
    AgentResult,
    Hello,
    KeptTrace,
    Restored,
    TraceFile,
    TracePages,
    Tracing,
)
from rtscope.explain.events.eventway import explain_event
from rtscope.explain.events.run import wakeups_of
from rtscope.explain.events.threadstates import MachineTraits
from rtscope.explain.events.window import window_around
from rtscope.explain.model import Cause
from rtscope.record.directory.records import open_records
from rtscope.record.events.dat import open_trace
from rtscope.record.events.writer import TraceParts, trace_of
from rtscope.stats.runcaveats import all_caveats, trace_cost
from tracecmd import needs_trace_cmd, trace_cmd

MOUNT = ("mount", "-t", "tracefs", "nodev")


@dataclass(frozen=True, slots=True)
class Machine:
    target: str
    env: dict[str, str]


def has_tracefs() -> bool:
    return os.geteuid() == 0 and "tracefs" in Path("/proc/filesystems").read_text()


pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        not has_tracefs(), reason="needs root and a kernel with tracefs"
    ),
]

# Where this machine has it mounted.
WITHOUT_TRACEFS = (
    *("unshare", "--mount", "sh", "-c"),
    *('umount -q /sys/kernel/tracing; exec "$@"', "sh"),
)
WITHOUT_SYS_ADMIN = ("setpriv", "--bounding-set", "-sys_admin")

# Has a CPU for a while, above the measuring thread, once its standard input has ended.
HOG = """
import os, sys, time
cpu, priority, busy_s = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
os.sched_setaffinity(0, {cpu})
sys.stdin.read()
time.sleep(0.3)
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
end = time.monotonic() + busy_s
while time.monotonic() < end:
    pass
"""


@pytest.fixture
def tracefs(tmp_path: Path) -> Iterator[Path]:
    """Tracefs at a place of the test's own."""
    place = tmp_path / "tracefs"
    place.mkdir()
    done = subprocess.run([*MOUNT, place], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"tracefs cannot be mounted here: {done.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", place], check=True)


def has_instance(tracefs: Path, agent: Program) -> bool:
    # Others that run here have theirs.
    return (tracefs / "instances" / f"rtscope.{agent.pid}").exists()


def is_mounted() -> bool:
    lines = Path("/proc/mounts").read_text().splitlines()
    return "/sys/kernel/tracing" in [line.split()[1] for line in lines]


def traced(done: Done) -> tuple[AgentResult, Tracing]:
    result = done.result
    assert result.tracing is not None
    assert result.tracing.enabled, result.tracing
    return result, result.tracing


def written(done: Done, to: Path) -> Path:
    """Write what the agent has sent as the host would."""
    parts = TraceParts()
    for line in done.lines:
        if isinstance(line, TraceFile):
            parts.take_file(line)
        elif isinstance(line, TracePages):
            parts.take_pages(line)
    content = trace_of(parts, done.result.tracing)
    assert content is not None
    to.write_bytes(content)
    return to


def reported(file: Path, *events: str) -> list[tuple[int, str]]:
    """Return (time, line) of these events, as trace-cmd reads them."""
    only = [word for event in events for word in ("-F", event)]
    # Threads of others may have names of any bytes.
    text = trace_cmd("report", "-t", "-i", file, *only).decode("utf-8", "replace")
    found = []
    for line in text.splitlines():
        head, separator, _ = line.partition(": ")
        if separator and head.split()[-1].replace(".", "").isdigit():
            seconds, fraction = head.split()[-1].split(".")
            found.append((int(seconds) * 10**9 + int(fraction.ljust(9, "0")), line))
    return found


def within(events: Sequence[tuple[int, str]], kept: KeptTrace) -> list[str]:
    return [line for at, line in events if kept.expiry_ns <= at <= kept.wake_ns]


def idle_switches(events: Sequence[tuple[int, str]], cpu: int | None) -> list[str]:
    """
    Return the switches from the idle task of a CPU.

    A kernel was met that records none on its second CPU, whoever traces it.
    """
    idle = f"swapper/{cpu}:0"
    return [line for _, line in events if idle in line.partition("==>")[0]]


def test_of_the_worst_of_the_run_the_trace_is_kept_worst_first() -> None:
    with measuring("--trace", "--worst", "4", seconds=1) as agent:
        result, tracing = traced(agent.finish())

    worst = sorted(
        (w for t in result.threads for w in t.worst),
        key=lambda w: w.latency_ns,
        reverse=True,
    )[:4]
    kept = [(k.wake_ns - k.expiry_ns) for k in tracing.kept]
    assert kept == [w.latency_ns for w in worst]
    assert all(k.pages for k in tracing.kept)
    assert {"sched:sched_switch", "timer:hrtimer_expire_entry"} <= set(tracing.events)
    assert [cpu.damaged for cpu in tracing.cpus] == [0] * len(tracing.cpus)


@contextmanager
def set_globally(tracefs: Path, name: str, value: str) -> Iterator[None]:
    before = (tracefs / name).read_text()
    (tracefs / name).write_text(value)
    try:
        yield
    finally:
        (tracefs / name).write_text(before)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("options/overwrite", "0"),
        # What begins or ends meanwhile may read another size than it traces with.
        pytest.param("buffer_subbuf_size_kb", "8", marks=pytest.mark.long),
    ],
)
def test_what_the_user_traces_with_does_not_change_what_is_kept(
    tracefs: Path, name: str, value: str
) -> None:
    if not (tracefs / name).exists():
        pytest.skip(f"this kernel has no {name}")
    with (
        set_globally(tracefs, name, value),
        measuring("--trace", "--worst", "2", seconds=1) as agent,
    ):
        until(lambda: state_is_measuring(agent.pid), what="it measures")
        instance = tracefs / "instances" / f"rtscope.{agent.pid}"
        assert (instance / "options/overwrite").read_text() == "1\n"
        _, tracing = traced(agent.finish())

    assert all(kept.pages for kept in tracing.kept)


@needs_trace_cmd
def test_an_agent_that_was_stopped_has_that_time_in_its_trace(tmp_path: Path) -> None:
    with measuring("--trace", "--worst", "4", seconds=2) as agent:
        until(lambda: state_is_measuring(agent.pid), what="it measures")
        time.sleep(0.4)
        agent.send(signal.SIGSTOP)
        time.sleep(0.08)
        agent.send(signal.SIGCONT)
        done = agent.finish()
    _, tracing = traced(done)

    worst = tracing.kept[0]
    assert worst.wake_ns - worst.expiry_ns > 50 * MS
    events = reported(written(done, tmp_path / "worst.trace.dat"), "sched_switch")
    assert any(worst.from_ns <= at <= worst.expiry_ns for at, _ in events)
    assert any(worst.wake_ns <= at <= worst.to_ns for at, _ in events)
    ours = [line for line in within(events, worst) if f"rtscope/{worst.cpu}:" in line]
    assert not worst.truncated
    if not idle_switches(events, worst.cpu):
        pytest.skip("this kernel does not record what an idle CPU switches to")
    # To be stopped it has to run, once more or for the first time after its expiry.
    assert any("==> rtscope/" in line for line in ours)


def measured_beside_a_hog(cpu: int, *options: str) -> Done:
    """Measure one CPU, which a program of higher priority takes meanwhile."""
    with (
        Program([sys.executable, "-c", HOG, str(cpu), "80", "0.03"]) as hog,
        measuring(
            *("--trace", "--cpus", str(cpu), *options), seconds=2.0, priority=50
        ) as agent,
    ):
        until(lambda: state_is_measuring(agent.pid), what="it measures")
        hog.tell(b"")
        return agent.finish()


@needs_trace_cmd
@pytest.mark.skipif(len(CPUS) < 2, reason="needs a CPU to be busy and one for the rest")
def test_a_thread_of_higher_priority_is_named_in_the_trace(tmp_path: Path) -> None:
    done = measured_beside_a_hog(CPUS[-1])
    _, tracing = traced(done)

    # Others may have been in the way too: of those that were, one is our hog.
    events = reported(written(done, tmp_path / "worst.trace.dat"), "sched_switch")
    blamed = [line for kept in tracing.kept for line in within(events, kept)]
    assert any("python" in line and "[19]" in line for line in blamed), blamed


@pytest.mark.skipif(len(CPUS) < 2, reason="needs a CPU to be busy and one for the rest")
def test_an_answer_that_a_thread_of_higher_priority_delayed_names_it(
    tmp_path: Path,
) -> None:
    done = measured_beside_a_hog(CPUS[-1], "--event", "futex")
    (thread,), trace = done.result.threads, written(done, tmp_path / "trace.dat")
    assert thread.event is not None

    explained = [
        explain_event(
            *window_around(open_trace(trace), wakeup),
            machine=MachineTraits(),
            sender=thread.event.stimulus_tid,
        )
        for wakeup in wakeups_of([thread])
    ]

    assert [one.residual_ns for one in explained] == [0] * len(explained)
    segments = [segment for one in explained for segment in one.segments]
    assert any(
        one.cause is Cause.OTHER_TASK and "priority 80" in one.name for one in segments
    )


def state_is_measuring(pid: int) -> bool:
    names = Path(f"/proc/{pid}/task").glob("*/comm")
    return any(name.read_text().startswith("rtscope/trace") for name in names)


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_no_instance_and_no_mount_is_left_by_an_agent_told_to_end(
    signo: signal.Signals, tracefs: Path
) -> None:
    before = is_mounted()
    with measuring("--trace", seconds=60) as agent:
        until(lambda: state_is_measuring(agent.pid), what="it measures")
        assert has_instance(tracefs, agent)
        assert is_mounted() == before  # what it mounts nobody else sees
        agent.send(signo)
        _, tracing = traced(agent.finish())

    assert tracing.enabled
    assert not has_instance(tracefs, agent)
    assert is_mounted() == before


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
def test_no_instance_is_left_by_an_agent_that_cannot_measure(tracefs: Path) -> None:
    prefix = ("setpriv", "--bounding-set", "-sys_nice")
    with measuring("--trace", seconds=60, prefix=prefix) as agent:
        done = agent.finish()

    assert done.status == 3
    assert "SCHED_FIFO" in done.error.message
    assert not has_instance(tracefs, agent)


def killed(tracefs: Path) -> Program:
    with measuring("--trace", seconds=60) as agent:
        until(lambda: state_is_measuring(agent.pid), what="it measures")
        agent.send(signal.SIGKILL)
        agent.finish()
    assert has_instance(tracefs, agent)
    return agent


def test_what_a_killed_agent_left_the_next_start_removes(tracefs: Path) -> None:
    gone = killed(tracefs)

    with measuring(seconds=0.1) as agent:
        hello = agent.finish().lines[0]

    assert isinstance(hello, Hello)
    assert "trace_instance" in hello.restored
    assert not has_instance(tracefs, gone)
    assert not (JOURNAL_DIR / f"journal.{gone.pid}").exists()


def test_restore_alone_removes_it_too(tracefs: Path) -> None:
    gone = killed(tracefs)

    with Program([native_agent(), "restore"]) as agent:
        done = agent.finish()

    assert Restored("trace_instance", gone.pid, "absent") in done.lines
    assert not has_instance(tracefs, gone)


def test_where_the_kernel_has_other_numbers_for_the_threads_nothing_is_traced() -> None:
    words = ("unshare", "--pid", "--fork", "--mount-proc")
    if subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip("needs namespaces of PIDs")

    with measuring("--trace", "--worst", "3", seconds=1, prefix=words) as agent:
        done = agent.finish()

    assert done.result.tracing is not None
    assert not done.result.tracing.enabled
    assert done.result.tracing.cause == "namespace"
    assert not any(isinstance(line, TracePages) for line in done.lines)


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
def test_without_the_right_to_mount_counters_around_the_worst_are_kept() -> None:
    with measuring(
        *("--trace", "--worst", "3"),
        seconds=1,
        prefix=(*WITHOUT_TRACEFS, *WITHOUT_SYS_ADMIN),
    ) as agent:
        done = agent.finish()
    result = done.result

    assert result.tracing is not None
    assert (result.tracing.enabled, result.tracing.cause) == (False, "capability")
    assert not any(isinstance(line, TracePages) for line in done.lines)
    worst = max(
        (w for t in result.threads for w in t.worst), key=lambda w: w.latency_ns
    )
    around = result.tracing.counter_deltas
    assert len(around) == 3
    assert (around[0].expiry_ns, around[0].wake_ns) == (worst.expiry_ns, worst.wake_ns)
    for one in around:
        assert one.from_ns < one.wake_ns < one.to_ns
        assert one.truncated == (one.from_ns > one.expiry_ns)
        assert one.interrupts
        assert one.switches > 0


@pytest.fixture(params=["local", "ssh"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    """This machine, and the same behind an SSH server."""
    if request.param == "local":
        yield Machine("local", {})
        return
    if SSHD is None:
        pytest.skip("needs openssh-server")
    with board(tmp_path / "ssh") as there:
        yield Machine("ssh:board", {"PATH": there.path})


def test_a_campaign_keeps_the_trace_beside_its_record_and_tells_the_cost(
    tmp_path: Path, machine: Machine
) -> None:
    out = tmp_path / "out"
    words = f"run --explain --target {machine.target} --load idle --duration 1s"
    with rtscope(*words.split(), "--out", out, env=machine.env) as campaign:
        done = campaign.finish()

    assert done.status == 0, done.stderr
    assert f"for the causes of the worst wake-ups: rtscope explain {out}" in done.stderr
    (record,) = open_records(out)
    (run,) = (out / "runs").iterdir()
    assert (run / "worst.trace.dat").read_bytes().startswith(b"\x17\x08\x44tracing6\0")
    assert record.hello.options["trace"] is True
    doubts = {caveat.id: caveat.detail for caveat in all_caveats(record)}
    assert "untraced for 1 s and 1 s before and after" in doubts["traced"]
    cost = trace_cost(record)
    assert cost is not None
    assert cost.untraced.samples
