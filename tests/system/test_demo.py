"""
The demonstrations on the real kernel: what must happen does, and refusals have a cause.

D1 to D10 are what the programs of a talk on the scheduler do wrong
(lab/demonstrations.md); the tests with these letters are of what this one
does there.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from rig import (
    CPUS,
    PATIENCE_S,
    RT_RUNTIME,
    Done,
    Program,
    agents_of,
    most_long,
    native_agent,
    repeated,
    rtscope,
    until,
)

from rtscope.contract import AgentError, DemoBegin, DemoEnd, Line, parse_line
from rtscope.verbs.demo.model import Scenario, demos

pytestmark = pytest.mark.system

MS = 1_000_000


def demo(*words: str) -> tuple[Done, dict[str, Any]]:
    """Perform a demonstration here; return its document."""
    with rtscope("app", "demo", *words, "--json") as program:
        done = program.finish(PATIENCE_S)
    return done, json.loads(done.stdout) if done.stdout else {}


def agent(scripts: Sequence[str], *, words: Sequence[str] = ()) -> list[Line]:
    """Return what the agent writes of some scripts, started by other words."""
    done = subprocess.run(
        [*words, str(native_agent()), "demo", "--lock-memory", "--", *scripts],
        check=False,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    return [parse_line(line) for line in done.stdout.splitlines()]


def without(*capabilities: str) -> list[str]:
    """Return the words that start a program without some of root's capabilities."""
    if shutil.which("setpriv") is None:
        pytest.skip("needs setpriv of util-linux")
    dropped = ",".join(f"-{name}" for name in capabilities)
    return ["setpriv", "--inh-caps", dropped, "--bounding-set", dropped]


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("scenario", most_long(demos(), but=3))
def test_d10_what_must_happen_happens_here(scenario: Scenario) -> None:
    # another thread or a hypervisor may take the time of one
    done, found = repeated(
        lambda: demo(scenario.value), lambda answer: answer[0].status == 0
    )

    assert [c for c in found.get("checks", ()) if not c["held"]] == [], done.stderr
    assert done.status == 0, done.stderr
    assert found["checks"]
    assert [c["name"] for c in found["cases"]]
    assert all(t["spans"] for c in found["cases"] for t in c["threads"])


@pytest.mark.usefixtures("root")
def test_d1_d6_every_thread_tells_its_own_id_policy_priority_and_cpu() -> None:
    _, found = demo("preempt")

    threads = found["cases"][0]["threads"]
    assert [(t["name"], t["policy"], t["priority"]) for t in threads] == [
        ("m", "other", 0),
        ("2", "fifo", 20),
        ("3", "fifo", 30),
    ]
    assert len({t["tid"] for t in threads}) == 3
    assert {t["affinity"] for t in threads} == {str(CPUS[-1])}


@pytest.mark.usefixtures("root")
def test_d2_a_deadline_thread_is_shown_with_its_parameters_and_breaks_nothing() -> None:
    _, found = demo("deadline")

    thread = found["cases"][0]["threads"][0]
    assert (thread["policy"], thread["priority"]) == ("deadline", 0)
    assert (thread["runtime_ns"], thread["period_ns"]) == (10 * MS, 50 * MS)


def test_d3_d4_the_limiter_is_named_and_its_settings_are_put_back(
    rt_runtime: str,
) -> None:
    done, found = demo("throttle")

    assert done.status == 0, (done.stderr, found.get("checks"))
    assert RT_RUNTIME.read_text() == rt_runtime
    # -1 was tried meanwhile: what it changes tells who limits
    assert {"as-found", "no-limit"} <= {c["name"] for c in found["cases"]}
    assert "limits real-time threads on this kernel" in found["notes"][0]


@pytest.fixture
def group(root: None) -> Iterator[Path]:
    """A control group of RT_GROUP_SCHED, which may not run real-time threads yet."""
    top = Path("/sys/fs/cgroup/cpu")
    if not (top / "cpu.rt_runtime_us").exists():
        pytest.skip("this machine has no cgroup v1 hierarchy with cpu.rt_runtime_us")
    made = top / f"rtscope-demo-{os.getpid()}"
    made.mkdir()
    yield made
    until(lambda: (made / "cgroup.procs").read_text() == "", what="it is empty")
    made.rmdir()


def within(group: Path, *words: str) -> Done:
    """Run rtscope in a control group."""
    enter = f'echo $$ > {group}/cgroup.procs && exec "$@"'
    with Program(["sh", "-c", enter, "sh", *RTSCOPE, *words]) as program:
        return program.finish(PATIENCE_S)


RTSCOPE = (sys.executable, "-m", "rtscope")


def test_d3_a_control_group_with_a_limit_of_its_own_is_named(
    rt_runtime: str, group: Path
) -> None:
    (group / "cpu.rt_runtime_us").write_text("300000")
    done = within(group, "app", "demo", "throttle", "--json")

    found = json.loads(done.stdout)
    assert done.status == 0, found["checks"]
    assert found["notes"][0].startswith("RT throttling of its control group limits")
    assert RT_RUNTIME.read_text() == rt_runtime


def test_d7_a_control_group_without_real_time_is_the_cause_of_a_refusal(
    group: Path,
) -> None:
    done = within(group, "app", "demo", "preempt")

    assert (done.status, done.stdout) == (3, b"")
    assert f"{group}/cpu.rt_runtime_us is 0" in done.stderr


@pytest.mark.usefixtures("root")
def test_d2_a_deadline_thread_that_may_not_use_all_cpus_is_refused_with_the_cause() -> (
    None
):
    if len(CPUS) < 2:
        pytest.skip("needs two CPUs")
    with Program(
        ["taskset", "-c", str(CPUS[0]), *RTSCOPE, "app", "demo", "deadline"]
    ) as program:
        done = program.finish(PATIENCE_S)

    assert (done.status, done.stdout) == (3, b"")
    assert "must be allowed on every CPU" in done.stderr


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_d4_the_settings_are_put_back_whatever_ends_the_demonstration(
    rt_runtime: str, end: signal.Signals
) -> None:
    with rtscope("app", "demo", "throttle") as program:
        until(lambda: RT_RUNTIME.read_text() == "-1\n", what="the setting is held")
        program.send(end)
        program.finish(PATIENCE_S)

    until(lambda: RT_RUNTIME.read_text() == rt_runtime, what="it is put back")


def test_d4_after_a_kill_of_the_agent_that_holds_them_a_command_restores(
    rt_runtime: str,
) -> None:
    with rtscope("app", "demo", "throttle") as program:
        until(lambda: RT_RUNTIME.read_text() == "-1\n", what="the setting is held")
        (holder,) = agents_of(program.pid, "hold")
        os.kill(holder, signal.SIGKILL)
        done = program.finish(PATIENCE_S)

    assert done.status == 3
    assert "rtscope audit --restore" in done.stderr
    # Any other command that begins meanwhile puts it back, too.
    assert RT_RUNTIME.read_text() in ("-1\n", rt_runtime)
    with rtscope("audit", "--restore") as program:
        program.finish(PATIENCE_S)
    assert RT_RUNTIME.read_text() == rt_runtime


@pytest.mark.usefixtures("root")
def test_d5_the_work_is_cpu_time_and_not_turns_of_a_loop() -> None:
    _, found = demo("preempt")

    asked = {"m": 400 * MS, "2": 350 * MS, "3": 210 * MS}
    for thread in found["cases"][0]["threads"]:
        extra_ns = thread["cpu_time_ns"] - asked[thread["name"]]
        assert 0 <= extra_ns < 20 * MS  # its few system calls
    chars = found["cases"][0]["chars"]
    assert (chars.count("m"), chars.count("2"), chars.count("3")) == (400, 350, 210)


@pytest.mark.usefixtures("root")
def test_d7_a_refused_priority_ends_it_with_its_cause() -> None:
    lines = agent(["a:fifo:20:at=0,run=1000000"], words=without("sys_nice"))

    (error,) = lines
    assert isinstance(error, AgentError)
    assert error.cause in ("capability", "rlimit")
    assert "thread a" in error.message
    assert error.remedy


@pytest.mark.usefixtures("root")
def test_d8_the_usual_limit_of_locked_memory_is_enough_and_none_is_named() -> None:
    if shutil.which("prlimit") is None:
        pytest.skip("needs prlimit of util-linux")
    scripts = ["a:fifo:20:at=0,run=1000000", "b:fifo:30:at=0,run=1000000"]
    caps = without("ipc_lock")

    usual = agent(scripts, words=["prlimit", f"--memlock={8 << 20}", *caps])
    assert isinstance(usual[0], DemoBegin)
    assert usual[0].memory_locked
    assert isinstance(usual[-1], DemoEnd)

    (error,) = agent(scripts, words=["prlimit", "--memlock=0", *caps])
    assert isinstance(error, AgentError)
    assert error.cause == "memlock"
    assert "RLIMIT_MEMLOCK is 0 KB" in error.message


@pytest.mark.usefixtures("root")
def test_d9_policy_and_cpu_are_had_before_the_first_step_also_with_one_cpu() -> None:
    words = ["taskset", "-c", str(CPUS[0])]
    lines = agent(["a:fifo:20:at=0,run=1000000"], words=words)

    begin = lines[0]
    assert isinstance(begin, DemoBegin)
    (thread,) = begin.threads
    assert (begin.cpu, thread.affinity) == (CPUS[0], str(CPUS[0]))
    assert (thread.policy, thread.priority) == ("fifo", 20)
    first = next(e for line in lines for e in getattr(line, "events", ()))
    assert first[0] == "woke"
    assert first[2] >= 0  # what is read back is from before the start


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("scenario", ["preempt", "deadline"])
def test_a_cpu_that_the_affinity_leaves_out_is_reached_as_isolated_ones_are(
    scenario: str,
) -> None:
    if len(CPUS) < 2:
        pytest.skip("needs two CPUs")
    words = ("app", "demo", scenario, "--json", "--cpu", str(CPUS[-1]))
    with Program(["taskset", "-c", str(CPUS[0]), *RTSCOPE, *words]) as program:
        done = program.finish(PATIENCE_S)

    # Whether all held is for another test: a busy machine takes time from any thread.
    assert done.status in (0, 1), done.stderr
    assert {one["cpu"] for one in json.loads(done.stdout)["cases"]} == {CPUS[-1]}


@pytest.mark.usefixtures("root")
def test_a_cpu_that_is_not_there_is_refused_with_those_that_are() -> None:
    done, _ = demo("preempt", "--cpu", "1000")

    assert (done.status, done.stdout) == (3, b"")
    assert "may not use CPU 1000" in done.stderr
    assert "--cpu" in done.stderr


RUN_NS = 10_000 * MS
"""What a thread computes that the watchdog ends before; demo takes no more."""


@pytest.mark.usefixtures("root")
def test_the_watchdog_ends_threads_that_would_go_on() -> None:
    done = subprocess.run(
        [
            *(str(native_agent()), "demo", "--duration-ns", "300000000", "--"),
            *(
                f"a:fifo:90:at=0,lock=0,run={RUN_NS},unlock=0",
                "b:fifo:98:at=10000000,lock=0",
            ),
        ],
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )

    end = parse_line(done.stdout.splitlines()[-1])
    assert isinstance(end, DemoEnd)
    assert end.stopped == "watchdog"
    assert end.end_ns < RUN_NS


SPIN_S = 60
"""What ends it with the cause ends it before that: the spinner is still there."""
SPINNER = """\
import os, time
os.sched_setaffinity(0, {%d})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
print(flush=True)
while time.monotonic() < %f: pass
"""


@pytest.mark.usefixtures("root")
def test_threads_that_never_get_their_cpu_end_it_with_the_cause() -> None:
    if len(CPUS) < 2:
        pytest.skip("needs a CPU beside the one that a spinner has")
    spinner = SPINNER % (CPUS[-1], time.monotonic() + SPIN_S)
    words = ["--cpus", str(CPUS[-1]), "--duration-ns", "1000000000"]
    script = "a:fifo:20:at=0,run=1000000"
    with subprocess.Popen(
        [sys.executable, "-c", spinner], stdout=subprocess.PIPE
    ) as rival:
        assert rival.stdout is not None
        rival.stdout.readline()
        done = subprocess.run(
            [str(native_agent()), "demo", *words, "--", script],
            check=False,
            capture_output=True,
            # of 5 s to begin, or 1 s to compute, and 2 s to end, where nobody is busy
            timeout=SPIN_S - 10,
        )
        still_there = rival.poll() is None
        rival.kill()

    assert still_there
    assert done.returncode == 3
    error = parse_line(done.stdout.splitlines()[-1])
    assert isinstance(error, AgentError)
    assert error.cause == "starved"


@pytest.mark.usefixtures("root")
def test_without_rights_the_status_is_3_and_the_cause_is_said() -> None:
    words = [*without("sys_nice"), *RTSCOPE, "app", "demo", "preempt"]
    with Program(words) as program:
        done = program.finish(PATIENCE_S)

    assert done.status == 3
    assert "CAP_SYS_NICE" in done.stderr
    assert done.stdout == b""
    assert os.sched_getscheduler(0) == os.SCHED_OTHER
