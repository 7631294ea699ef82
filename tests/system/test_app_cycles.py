"""Cycles from outside are those that the program logged itself, to the ns."""

import json
import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median_low

import pytest
from rig import (
    PATIENCE_S,
    Program,
    agents_of,
    alive,
    native_agent,
    rtscope,
    until,
)
from test_rights import AS_NOBODY

from fakes.sshd import SSHD, board
from rtscope.contract import CycleRuns
from rtscope.programs.cycles.periods import Basis
from rtscope.programs.cycles.threadruns import runs_in
from rtscope.verbs.app.cycles import Period, ThreadCycles
from rtscope.verbs.app.watchedcycles import CycleRecording, recording_of

pytestmark = pytest.mark.system

SOURCE = Path(__file__).parent.parent / "offenders" / "periodic.c"
PERIOD_NS = 2_000_000
CYCLES = 1000
RECORDED_NS = 1_200_000_000


@pytest.fixture(scope="module")
def periodic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    out = tmp_path_factory.mktemp("periodic") / "prog"
    subprocess.run(["gcc", "-O1", "-o", out, SOURCE], check=True)
    return out


@pytest.fixture
def instances(root: None, tmp_path: Path) -> Iterator[Path]:
    """
    Where the kernel's tracing instances are seen.

    An agent that finds tracefs not mounted mounts it for itself, where nobody else sees
    it. The kernel has one tracefs: what is in this mount is what that agent made.
    """
    place = tmp_path / "tracefs"
    place.mkdir()
    mount = ["mount", "-t", "tracefs", "nodev", str(place)]
    done = subprocess.run(mount, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"tracefs cannot be mounted here: {done.stderr.strip()}")
    try:
        if not (place / "instances").is_dir():
            pytest.skip("this kernel gives out no trace")
        yield place / "instances"
    finally:
        subprocess.run(["umount", place], check=True)


@dataclass(frozen=True)
class Watched:
    """What the agent recorded of a program, and the program's own log of that time."""

    recording: CycleRecording
    cycles: ThreadCycles
    period: Period
    own: dict[int, tuple[int, int]]
    """When its code began and ended, by when that was due."""


def watched(periodic: Path, kind: str, log: Path) -> Watched:
    """Record a program while it runs; skip where the kernel gives out no trace."""
    with subprocess.Popen([periodic, kind, str(CYCLES), log]) as process:
        argv = [str(native_agent()), "cycles", "--pid", str(process.pid)]
        with Program([*argv, "--duration-ns", str(RECORDED_NS)]) as agent:
            done = agent.finish()
        assert process.wait(PATIENCE_S) == 0
    recording = recording_of(done.lines, done.stderr)
    tracing = recording.end.tracing
    if tracing.cause in ("lockdown", "unbuilt", "read-only"):
        pytest.skip(tracing.reason)
    assert tracing.enabled, tracing.reason
    cycles = recording.threads.get(process.pid)
    if cycles is None:
        pytest.skip("this kernel recorded no switch to the program")
    assert cycles.period is not None
    runs = runs_in(line for line in done.lines if isinstance(line, CycleRuns))
    recorded = [run.due_ns for run in runs[process.pid] if run.due_ns]
    rows = [tuple(map(int, line.split())) for line in log.read_text().splitlines()]
    own = {
        due: (began, ended)
        for due, began, ended in rows
        if min(recorded) <= due <= max(recorded)
    }
    return Watched(recording, cycles, cycles.period, own)


@pytest.mark.parametrize("kind", ["absolute", "skip", "long", "timerfd"])
def test_each_cycle_is_due_when_the_program_says(
    periodic: Path, root: None, tmp_path: Path, kind: str
) -> None:
    seen = watched(periodic, kind, tmp_path / "log")
    if seen.recording.end.losses:
        pytest.skip("this machine lost events")

    due = {one.begin_ns for one in seen.cycles.cycles}
    assert seen.period.period_ns == PERIOD_NS
    assert seen.period.absolute
    assert seen.period.exact_share == 1.0
    assert due <= set(seen.own)
    # Some kernels do not record the switch from idle to a thread, on some CPUs.
    assert len(seen.own) - len(due) <= seen.cycles.cut
    periods = (max(seen.own) - min(seen.own)) // PERIOD_NS + 1
    assert seen.period.missed == periods - len(seen.own)
    if kind == "skip":
        assert seen.period.missed >= 2 * (len(seen.own) // 20 - 1)
    if kind == "long":
        assert (seen.period.overruns or 0) >= len(seen.own) // 20 - 1


LOOP_NS = 5_000_000
LOOPS = {
    **dict.fromkeys(("absolute", "signal", "realtime", "rest", "second"), Basis.TIME),
    **dict.fromkeys(("timerfd", "timers", "timer"), Basis.TIME),
    "served": Basis.TIME,
    # its timeout is none of a cycle, since messages end it as well
    "served timeout": None,
    **dict.fromkeys(("relative", "timeout", "served once"), Basis.INTERVAL),
    **dict.fromkeys(("semaphore", "pipe", "socket"), Basis.WAKEUPS),
}


@pytest.mark.parametrize("kind", LOOPS)
def test_the_period_of_a_loop_is_found_whatever_wakes_it(
    root: None, tmp_path: Path, kind: str
) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    source = SOURCE.with_name("loops.c")
    subprocess.run(
        ["gcc", "-O1", "-pthread", "-o", tmp_path / "loops", source, "-lrt"], check=True
    )
    with subprocess.Popen([tmp_path / "loops", kind]) as process:
        until(lambda: "looping" in names_of(process.pid), what="it loops")
        tid = names_of(process.pid)["looping"]
        # Other work would keep it from its CPU for longer than its period.
        os.sched_setscheduler(tid, os.SCHED_FIFO, os.sched_param(1))
        argv = [str(native_agent()), "cycles", "--pid", str(process.pid)]
        with Program([*argv, "--duration-ns", str(2 * RECORDED_NS)]) as agent:
            done = agent.finish()
        process.kill()

    recording = recording_of(done.lines, done.stderr)
    if not recording.end.tracing.enabled or recording.end.losses:
        pytest.skip("this machine gives out no trace, or lost events")
    thread = recording.threads.get(tid)
    if thread is None:
        pytest.skip("this kernel recorded no switch to the thread")
    if LOOPS[kind] is None:
        assert thread.period is None
        return
    assert thread.period is not None
    assert thread.period.basis is LOOPS[kind]
    # What else the machine does can make a loop late, never early.
    assert thread.period.period_ns > 0.94 * LOOP_NS
    waits = Counter(one.waits for one in thread.cycles)
    if not kind.startswith("served"):
        assert waits.most_common(1)[0][0] == (1 if kind == "second" else 0)
    if kind in ("relative", "timeout", "served once"):
        assert thread.period.missed is thread.period.overruns is None
    if kind in ("served", "served once"):
        # who wakes it where it waits for its timer is of no cycle
        assert waits.most_common(1)[0][0] == 0
        assert thread.between > 0
        assert median_low([x.response_ns for x in thread.cycles]) < 1_000_000
    if kind in ("signal", "timers"):
        assert thread.between > len(thread.cycles) // 4


def names_of(pid: int) -> dict[str, int]:
    """Return the TIDs of a process's threads by their names."""
    tasks = Path(f"/proc/{pid}/task")
    return {
        (one / "comm").read_text().strip(): int(one.name) for one in tasks.iterdir()
    }


def test_the_program_runs_between_the_switch_to_it_and_its_sleep(
    periodic: Path, root: None, tmp_path: Path
) -> None:
    seen = watched(periodic, "absolute", tmp_path / "log")

    for one in seen.cycles.cycles:
        began, ended = seen.own[one.begin_ns]
        assert one.begin_ns <= one.in_ns <= began <= ended <= one.end_ns
        assert one.ran_ns <= one.end_ns - one.in_ns


def test_what_other_events_of_a_wake_up_show_is_not_recorded(
    periodic: Path, root: None, tmp_path: Path
) -> None:
    seen = watched(periodic, "absolute", tmp_path / "log")

    tracing = seen.recording.end.tracing
    assert {"sched:sched_waking", "sched:sched_switch"} <= set(tracing.events)
    # left out, not missing in the kernel
    left_out = {"sched:sched_wakeup", "timer:hrtimer_cancel"}
    assert not left_out & {*tracing.events, *tracing.missing_events}


def test_a_sleep_for_an_interval_drifts(
    periodic: Path, root: None, tmp_path: Path
) -> None:
    seen = watched(periodic, "relative", tmp_path / "log")

    assert not seen.period.absolute
    assert seen.period.period_ns > PERIOD_NS
    assert seen.period.drift_ns_per_s is not None
    # At least its own work of 0.1 ms in each period of 2 ms and something.
    assert seen.period.drift_ns_per_s > 0.9 * 1e9 * 100 / 2200


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGKILL])
def test_no_tracing_instance_stays_when_the_check_is_ended(
    periodic: Path, instances: Path, tmp_path: Path, signo: signal.Signals
) -> None:
    command = (str(periodic), "absolute", "60000", str(tmp_path / "log"))
    words = ("app", "check", "--duration", "1m", "--", *command)
    with rtscope(*words) as program:
        until(lambda: bool(agents_of(program.pid, "cycles")), what="it records")
        agents = agents_of(program.pid, "cycles")
        places = [instances / f"rtscope.{pid}" for pid in agents]
        until(lambda: any(p.exists() for p in places), what="it has an instance")
        os.kill(program.pid, signo)
        until(lambda: not alive(agents), what="the agent ends", within_s=PATIENCE_S)

    assert not [place for place in places if place.exists()]


def test_who_may_not_trace_is_told_so_and_what_to_do(root: None) -> None:
    argv = [*AS_NOBODY, str(native_agent()), "cycles", "--pid", str(os.getpid())]
    with Program([*argv, "--duration-ns", str(RECORDED_NS)]) as agent:
        done = agent.finish()

    recording = recording_of(done.lines, done.stderr)
    assert done.status == 0
    assert not recording.end.tracing.enabled
    assert recording.end.tracing.cause == "permission"
    assert "root" in recording.end.tracing.remedy
    assert recording.threads == {}


def test_what_a_killed_agent_left_the_next_one_removes(instances: Path) -> None:
    argv = [str(native_agent()), "cycles", "--pid", str(os.getpid())]
    with subprocess.Popen([*argv, "--duration-ns", str(60 * 10**9)]) as agent:
        place = instances / f"rtscope.{agent.pid}"
        until(place.exists, what="it has an instance")
        agent.kill()
    assert place.exists()

    with Program([*argv, "--duration-ns", "50000000"]) as following:
        assert following.finish().status == 0
    assert not place.exists()


@pytest.mark.skipif(SSHD is None, reason="needs openssh-server")
def test_a_program_on_a_board_is_checked_over_ssh(
    periodic: Path, root: None, tmp_path: Path
) -> None:
    page, perfetto = tmp_path / "page.html", tmp_path / "cycles.pftrace"
    words = ("app", "check", "--target", "ssh:board", "--duration", "1s", "--json")
    files = ("--html", str(page), "--perfetto", str(perfetto))
    argv = [str(periodic), "absolute", "60000", str(tmp_path / "log")]
    with board(tmp_path) as there, subprocess.Popen(argv) as process:
        env = {"PATH": there.path}
        with rtscope(*words, *files, str(process.pid), env=env) as program:
            done = program.finish(3 * PATIENCE_S)
        process.kill()

    assert done.status in (0, 1), done.stderr
    document = json.loads(done.stdout)
    if not document["cycles"]["recorded"]:
        pytest.skip("this machine gives out no trace")
    (thread,) = document["cycles"]["threads"]
    assert thread["tid"] == process.pid
    assert thread["period"]["period_ns"] == PERIOD_NS
    assert thread["period"]["missed"] == 0
    assert page.read_text().count('class="chart spread"') == 3
    assert 'class="flame"' in page.read_text()
    assert perfetto.stat().st_size > 0
