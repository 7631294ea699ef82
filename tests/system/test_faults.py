"""What goes wrong around a measurement: each case is noticed, named, and cleaned up."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rig import (
    CPUS,
    MARK,
    MS,
    NEEDS_APT,
    PATIENCE_S,
    RISCV,
    SECOND_NS,
    UNTIL_KILLED_S,
    Done,
    agents_of,
    alive,
    arguments_of,
    children_of,
    doubts,
    due,
    invalid,
    marked,
    measures,
    most_long,
    out_of_memory,
    records_in,
    rtscope,
    until,
    workers_of,
)

from rtscope.contract import require
from rtscope.machine.cpulist import format_cpulist
from rtscope.record.model import RunRecord

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("root")]


def campaign(out: Path, *words: str | Path, seconds: int = 1) -> tuple[str | Path, ...]:
    timing = {"--duration": f"{seconds}s", "--warmup": "100ms", "--interval": "1ms"}
    unset = [
        word for name in timing.keys() - set(words) for word in (name, timing[name])
    ]
    return ("run", *unset, "--out", out, *words)


def only_record(out: Path) -> RunRecord:
    (kept,) = records_in(out).values()
    return kept


# --- loads ----------------------------------------------------------------------------


def test_without_stress_ng_nothing_is_measured_and_the_package_is_named(
    tmp_path: Path,
) -> None:
    out, empty = tmp_path / "results", tmp_path / "empty"
    empty.mkdir()
    with rtscope(*campaign(out, "--load", "idle,cpu"), env={"PATH": str(empty)}) as run:
        done = run.finish()

    assert done.status == 3
    assert done.stdout == b""
    assert "need stress-ng, which is not installed" in done.stderr
    assert "apt install stress-ng" in done.stderr
    assert "Traceback" not in done.stderr
    assert not out.exists()


def test_a_load_killed_in_mid_run_is_told_and_caps_the_verdict(tmp_path: Path) -> None:
    out = tmp_path / "results"
    # The interval is long so that a skipped activation needs a long delay.
    slowly = ("--load", "cpu", "--interval", "300ms", "--duration", "1500ms")
    with rtscope(
        *campaign(out, *slowly, "--deadline", "10s", "--claim", "1/1s")
    ) as run:
        until(lambda: bool(agents_of(run.pid, "measure")), what="it measures")
        time.sleep(0.5)
        for pid in workers_of(run.pid):
            os.kill(pid, signal.SIGKILL)
        done = run.finish()

    kept = only_record(out)
    assert doubts(kept)["load_died"] == "ended by signal 9"
    assert invalid(kept) == set()
    assert done.status == 4, done.stderr
    assert "NOT SHOWN" in done.stdout.decode()
    assert "HELD" not in done.stdout.decode()

    # One miss in this time is more than one per hour, with 95 % confidence.
    with rtscope("report", out, "--deadline", "2us", "--claim", "1/1h") as report:
        certain = report.finish()
    assert certain.status == 1, certain.stderr
    assert "NO: the deadline was missed" in certain.stdout.decode()


def test_a_load_that_was_stopped_is_told(tmp_path: Path) -> None:
    out = tmp_path / "results"
    # Whatever passes before it is stopped, more than three seconds remain.
    with rtscope(*campaign(out, "--load", "cpu", seconds=8)) as run:
        until(lambda: bool(agents_of(run.pid, "measure")), what="it measures")
        time.sleep(0.5)
        workers = workers_of(run.pid)
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        until(lambda: not agents_of(run.pid, "measure"), what="the measurement is over")
        for pid in workers:
            os.kill(pid, signal.SIGCONT)
        run.finish()

    kept = only_record(out)
    assert "no CPU time for" in doubts(kept)["load_stalled"]
    assert "load_died" not in doubts(kept)


def test_loads_that_do_nothing_are_told(tmp_path: Path, lazy_stress_ng: str) -> None:
    out = tmp_path / "results"
    words = campaign(out, "--load", "cpu,custom", "--command", "sleep 100", seconds=2)
    with rtscope(*words, env={"PATH": lazy_stress_ng}) as run:
        done = run.finish()

    assert done.status == 0, done.stderr
    kept = records_in(out)
    assert "no CPU time for" in doubts(kept["cpu"])["load_stalled"]
    # What a command of the user's is for may happen elsewhere.
    assert "no CPU time for" in doubts(kept["custom"])["load_unproved"]


def test_an_emptied_tmp_ends_the_campaign_with_its_reason(
    tmp_path: Path, private_tmp: Path
) -> None:
    out, words = tmp_path / "results", ("--load", "idle,cpu", "--interval", "300ms")
    with rtscope(*campaign(out, *words, "--duration", "3s")) as run:
        until(lambda: bool(agents_of(run.pid, "measure")), what="it measures")
        for place in private_tmp.glob("rtscope-*"):
            shutil.rmtree(place)
        done = run.finish()

    assert done.status == 3
    assert "was removed; leave temporary files alone" in done.stderr
    assert f"to continue: rtscope run --resume {out}" in done.stderr
    assert set(records_in(out)) == {"idle"}


@pytest.fixture
def lazy_stress_ng(tmp_path: Path) -> str:
    """A PATH on which stress-ng only sleeps."""
    made = tmp_path / "bin" / "stress-ng"
    made.parent.mkdir()
    made.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo lazy 1.0 && exit\nexec sleep 100\n'
    )
    made.chmod(0o755)
    return f"{made.parent}:{os.environ['PATH']}"


def test_a_load_that_does_not_start_is_told_with_its_last_words(tmp_path: Path) -> None:
    out = tmp_path / "results"
    command = "sh -c 'echo no such device >&2; exit 7'"
    with rtscope(
        *campaign(out, "--load", "custom", "--command", command, "--warmup", "1s")
    ) as run:
        done = run.finish()

    assert done.status == 3
    assert "the load ended before the measurement began (exit status 7)" in done.stderr
    assert "no such device" in done.stderr
    assert list((out / "runs").iterdir()) == []


def test_a_custom_load_that_is_not_there_is_told(tmp_path: Path) -> None:
    out = tmp_path / "results"
    words = ("--load", "custom", "--command", "/no/such/program")
    with rtscope(*campaign(out, *words)) as run:
        done = run.finish()

    assert done.status == 3
    assert "cannot run /no/such/program: No such file" in done.stderr


def test_the_oom_load_is_killed_inside_its_group_and_the_machine_survives(
    tmp_path: Path,
) -> None:
    groups = list(memory_groups())
    for seconds in UNTIL_KILLED_S:
        out = tmp_path / f"results-{seconds}"
        with rtscope(*campaign(out, "--load", "oom", seconds=seconds)) as run:
            done = run.finish()
        assert done.status == 0, done.stderr
        kept = only_record(out)
        if out_of_memory(kept):
            break
        assert "no_oom_kill" in doubts(kept)

    assert out_of_memory(kept)
    assert doubts(kept).get("oom_kill", "expected").startswith("expected")
    assert "no_oom_kill" not in doubts(kept)
    assert invalid(kept) == set()
    assert list(memory_groups()) == groups


def memory_groups() -> Iterator[Path]:
    yield from Path("/sys/fs/cgroup").glob("rtscope.*")
    yield from Path("/sys/fs/cgroup/memory").glob("rtscope.*")


# --- CPUs and clocks ------------------------------------------------------------------


@pytest.fixture
def last_cpu(cpus_alone: None) -> Iterator[Path]:
    """The switch of a CPU; it is online again afterwards, whatever ends the tests."""
    switch = Path(f"/sys/devices/system/cpu/cpu{CPUS[-1]}/online")
    if len(CPUS) < 2 or not os.access(switch, os.W_OK):
        pytest.skip("this machine can take no CPU offline")
    put_back = ["sh", "-c", f"trap '' INT TERM HUP; read _; echo 1 >{switch}"]
    with subprocess.Popen(put_back, stdin=subprocess.PIPE, process_group=0):
        yield switch
    assert switch.read_text() == "1\n"


@pytest.mark.parametrize("back", most_long([True, False]))
def test_a_cpu_that_goes_offline_makes_the_run_invalid_and_its_samples_are_kept(
    back: bool, last_cpu: Path, tmp_path: Path
) -> None:
    out = tmp_path / "results"
    words = ("--load", "cpu", "--deadline", "10s", "--claim", "1/1s")
    with rtscope(*campaign(out, *words, seconds=3)) as run:
        until(lambda: measures(run.pid), what="it measures")
        time.sleep(0.5)
        last_cpu.write_text("0")
        if back:
            last_cpu.write_text("1")
        done = run.finish()

    kept = only_record(out)
    assert done.status == 3, done.stderr
    assert "HELD" not in done.stdout.decode()
    assert {"migrated", "settings_differ"} & invalid(kept)
    assert ("cpu_offline" in invalid(kept)) is not back
    assert "cpus_changed" in doubts(kept)
    for thread in kept.result.threads:
        assert thread.own.samples + require(thread.missed_periods) >= due(thread) - 1
        assert due(thread) * thread.interval_ns > 2_900 * MS


def test_a_cpu_that_is_not_measured_and_goes_offline_limits_the_verdict(
    last_cpu: Path, tmp_path: Path
) -> None:
    out = tmp_path / "results"
    others = format_cpulist(cpu for cpu in CPUS if cpu != CPUS[-1])
    words = ("--load", "idle", "--cpus", others, "--deadline", "10s")
    with rtscope(*campaign(out, *words, "--claim", "1/1s", seconds=2)) as run:
        until(lambda: measures(run.pid), what="it measures")
        time.sleep(0.5)
        last_cpu.write_text("0")
        last_cpu.write_text("1")
        done = run.finish()

    assert done.status == 4, done.stderr
    kept = only_record(out)
    assert "HELD" not in done.stdout.decode()
    assert "cpus_changed" in doubts(kept)
    assert invalid(kept) == set()


STEP_NS = 120 * SECOND_NS
"""More than any time for which rtscope waits in a run."""


@pytest.fixture
def wall_clock() -> Iterator[Callable[[int], None]]:
    """Set the wall clock off by so many ns; it is right again afterwards."""
    real_ns = time.clock_gettime_ns(time.CLOCK_REALTIME)
    begun_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)

    def put_off(by_ns: int) -> None:
        since_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) - begun_ns
        time.clock_settime_ns(time.CLOCK_REALTIME, real_ns + since_ns + by_ns)

    try:
        put_off(0)
    except PermissionError:
        pytest.skip("nobody may set the clock of this machine")
    yield put_off
    put_off(0)


@pytest.mark.parametrize(
    "by_ns", most_long([STEP_NS, -STEP_NS]), ids=["forward", "backward"]
)
def test_a_clock_that_is_set_during_a_run_changes_no_measurement(
    by_ns: int, wall_clock: Callable[[int], None], tmp_path: Path
) -> None:
    out = tmp_path / "results"
    began = datetime.now(UTC)
    with rtscope(*campaign(out, "--load", "cpu", seconds=2)) as run:
        until(lambda: bool(agents_of(run.pid, "measure")), what="it measures")
        time.sleep(0.5)
        wall_clock(by_ns)
        until(lambda: not agents_of(run.pid, "measure"), what="it has measured")
        wall_clock(0)
        done = run.finish()

    kept = only_record(out)
    assert done.status == 0, done.stderr
    assert invalid(kept) == set()
    assert "clock_stepped" in doubts(kept)
    assert kept.result.machine is not None
    step_ns = kept.result.machine.realtime_step_ns
    assert abs(step_ns - STEP_NS) < 100 * MS
    assert kept.host_duration_s is not None
    assert 2 < kept.host_duration_s < PATIENCE_S
    assert abs(datetime.fromisoformat(kept.started_at) - began) < timedelta(minutes=1)
    assert kept.load.end is not None
    assert kept.load.end.stop_requested
    assert not {"load_died", "load_stalled", "load_unproved"} & doubts(kept).keys()
    assert all(
        t.own.samples + require(t.missed_periods) == due(t) for t in kept.result.threads
    )


@NEEDS_APT
@pytest.mark.parametrize(
    "by_ns",
    [
        pytest.param(STEP_NS, id="forward", marks=pytest.mark.long),
        pytest.param(-STEP_NS, id="backward"),
    ],
)
def test_a_clock_that_is_set_during_a_boot_changes_nothing_of_it(
    by_ns: int, wall_clock: Callable[[int], None], tmp_path: Path
) -> None:
    words = (
        *("run", "-t", "virtual:jh7110", "--kernel", RISCV),
        *("--load", "idle", "--duration", "1s"),
    )
    boots = (*words, "--settle", "0s", "--warmup", "0s", "--out")
    with rtscope(*boots, tmp_path / "set") as run:
        until(
            lambda: (
                not run.running
                or any("-icount" in arguments_of(pid) for pid in children_of(run.pid))
            ),
            what="a board boots",
        )
        wall_clock(by_ns)
        time.sleep(1)
        assert run.running, "the boot ended before its clock was set"
        wall_clock(0)
        done = run.finish()
    with rtscope(*boots, tmp_path / "left") as run:
        assert run.finish().status == 0

    kept, left = only_record(tmp_path / "set"), only_record(tmp_path / "left")
    assert done.status == 0, done.stderr
    assert kept.result_digest == left.result_digest
    assert invalid(kept) == set()
    assert "clock_stepped" not in doubts(kept), "the board has a clock of its own"


# --- disks ----------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for a campaign, until another file fills it."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=80m", "rtscope-test", str(mounted)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount")
    yield mounted
    subprocess.run(["umount", mounted], check=True)


def test_a_full_disk_is_told_and_leaves_no_half_record(
    small_disk: Path, private_tmp: Path
) -> None:
    out = small_disk / "results"
    mark = f"full-{os.getpid()}"
    words = campaign(out, "--load", "cpu", "--interval", "100us")
    filler = small_disk / "filler"
    with rtscope(*words, env={MARK: mark}) as run:
        until(lambda: bool(agents_of(run.pid, "measure")), what="it measures")
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        done = run.finish()

    assert_told_that_it_cannot_write(done, "No space left on device")
    assert files_below(out) == ["campaign.json"]
    assert marked(mark) == []
    assert list(private_tmp.iterdir()) == []

    filler.unlink()
    with rtscope("run", "--resume", out) as run:
        done = run.finish()
    assert done.status == 0, done.stderr
    assert files_below(out) == [
        "campaign.json",
        "report.html",
        "runs/001-cpu/audit.json",
        "runs/001-cpu/record.json",
    ]


def test_a_limit_of_file_sizes_is_told_and_the_runs_before_it_are_kept(
    tmp_path: Path, private_tmp: Path
) -> None:
    out = tmp_path / "results"
    with rtscope(*campaign(out, "--load", "idle")) as run:
        until(lambda: bool(agents_of(run.pid, "measure")), what="it measures")
        limit = ["prlimit", f"--pid={run.pid}", "--fsize=16384"]
        subprocess.run(limit, check=True)
        done = run.finish()

    assert_told_that_it_cannot_write(done, "File too large")
    assert files_below(out) == ["campaign.json"]
    assert list(private_tmp.iterdir()) == []


def assert_told_that_it_cannot_write(done: Done, reason: str) -> None:
    assert done.status == 3
    assert "Traceback" not in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("rtscope: cannot write ")
    assert last.count("record.json") == 1
    assert reason in last
    assert "rtscope run --resume" in last


def files_below(directory: Path) -> list[str]:
    return sorted(
        str(path.relative_to(directory))
        for path in directory.rglob("*")
        if path.is_file()
    )


# --- the agent ------------------------------------------------------------------------


def test_an_agent_that_is_killed_is_told_and_its_load_ends(tmp_path: Path) -> None:
    out = tmp_path / "results"
    with rtscope(*campaign(out, "--load", "cpu", seconds=30)) as run:
        until(lambda: bool(agents_of(run.pid, "measure")), what="it measures")
        until(lambda: bool(workers_of(run.pid)), what="the load runs")
        workers = workers_of(run.pid)
        (agent,) = agents_of(run.pid, "measure")
        os.kill(agent, signal.SIGKILL)
        done = run.finish()

    assert done.status == 3
    assert "001-cpu: the agent ended without a result" in done.stderr
    assert alive(workers) == []
    assert list((out / "runs").iterdir()) == []


def test_a_guard_that_is_killed_is_told_and_takes_its_load_along(
    tmp_path: Path,
) -> None:
    out = tmp_path / "results"
    with rtscope(*campaign(out, "--load", "cpu", seconds=2)) as run:
        until(lambda: bool(agents_of(run.pid, "measure")), what="it measures")
        until(lambda: bool(workers_of(run.pid)), what="the load runs")
        workers = workers_of(run.pid)
        (guard,) = agents_of(run.pid, "load")
        os.kill(guard, signal.SIGKILL)
        done = run.finish()

    assert done.status == 0, done.stderr
    assert "load_died" in doubts(only_record(out))
    until(lambda: alive(workers) == [], what="the load has ended")
