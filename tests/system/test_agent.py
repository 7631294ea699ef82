"""The agent on the real kernel: what it got is what was asked, and nothing is lost."""

import json
import os
import platform
import re
import shutil
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest
from rig import (
    CPUS,
    GONE_WITHIN_S,
    MS,
    PATIENCE_S,
    SECOND_NS,
    Program,
    doubts,
    due,
    invalid,
    judged,
    measuring,
    native_agent,
    until,
)

from rtscope.contract import (
    Hello,
    require,
)
from rtscope.host.errors import TargetError
from rtscope.machine.cpulist import parse_cpulist
from rtscope.machine.target import agent_file

pytestmark = pytest.mark.system

needs_a_spare_cpu = pytest.mark.skipif(
    len(CPUS) < 2, reason="needs two CPUs: one to measure and one to spare"
)


@pytest.mark.parametrize(
    ("policy", "priority"),
    [("fifo", 1), ("fifo", 99), ("rr", 50), ("other", 0), ("batch", 0), ("idle", 0)],
)
@pytest.mark.usefixtures("root")
def test_each_policy_is_read_back_as_asked_on_each_cpu(
    policy: str, priority: int
) -> None:
    with measuring(policy=policy, priority=priority, seconds=0.2) as agent:
        result = agent.finish().result

    got = [(t.cpu, t.policy, t.priority, t.affinity) for t in result.threads]
    assert got == [(cpu, policy, priority, str(cpu)) for cpu in CPUS]


@pytest.mark.usefixtures("root")
def test_a_deadline_thread_is_read_back_and_runs_where_the_kernel_likes() -> None:
    with measuring(policy="deadline", seconds=0.2) as agent:
        result = agent.finish().result

    assert [(t.cpu, t.policy) for t in result.threads] == [(None, "deadline")] * len(
        CPUS
    )
    assert {parse_cpulist(t.affinity) for t in result.threads} == {CPUS}


@pytest.mark.usefixtures("root")
def test_every_activation_is_a_sample_or_skipped_and_the_sums_fit() -> None:
    with measuring(seconds=1) as agent:
        done = agent.finish()

    assert isinstance(done.lines[0], Hello)
    assert invalid(judged(done.result)) == set()
    for t in done.result.threads:
        assert abs(due(t) - 1000) <= 1
        assert abs(t.own.samples + require(t.missed_periods) - due(t)) <= 1
        assert t.samples == sum(count for _, count in t.histogram) + t.overflow


@pytest.mark.usefixtures("root")
def test_an_agent_stopped_for_a_second_counts_the_activations_it_missed() -> None:
    with measuring(seconds=2.5) as agent:
        time.sleep(0.7)
        begun = time.monotonic()
        agent.send(signal.SIGSTOP)
        time.sleep(1.0)
        agent.send(signal.SIGCONT)
        stopped_ms = 1000 * (time.monotonic() - begun)
        result = agent.finish().result

    for t in result.threads:
        assert 950 <= require(t.missed_periods) <= stopped_ms + 100
        assert abs(t.own.samples + require(t.missed_periods) - due(t)) <= 1
        assert t.max_ns is not None
        assert t.max_ns >= 950 * MS
    kept = judged(result)
    assert invalid(kept) == set()
    with_and_without = re.fullmatch(
        r"\d+ missed by \d+ overruns; average ([\d.,]+) us, "
        r"with missed periods ([\d.,]+) us",
        doubts(kept)["missed_periods"],
    )
    assert with_and_without is not None
    without, with_missed = (
        float(figure.replace(",", "")) for figure in with_and_without.groups()
    )
    # 1000 lost activations, half a second late on average, among 2500
    assert with_missed > 50_000 > without


@pytest.mark.usefixtures("root")
def test_a_sample_takes_one_system_call_and_a_thread_rests_before_it_ends(
    tmp_path: Path,
) -> None:
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    out = tmp_path / "calls"
    watch = ("strace", "-f", "-ff", "-o", out, "--")
    with measuring(policy="other", seconds=0.3, prefix=watch) as agent:
        done = agent.finish()
    if "ptrace" in done.stderr:
        pytest.skip("this machine lets nobody trace")

    for t in done.result.threads:
        calls = (tmp_path / f"calls.{t.tid}").read_text().splitlines()
        sleeps = "".join("s" if "TIMER_ABSTIME" in call else "-" for call in calls)
        *_, samples, rest = map(len, re.findall("s+", sleeps))
        # The last is the rest, while the other threads wake for the last time.
        assert (samples, rest) == (t.own.samples, 1)
        assert samples > 1


@pytest.mark.usefixtures("root")
def test_a_measuring_thread_gives_its_cpu_away_once_per_sample() -> None:
    with measuring(seconds=0.5) as agent:
        result = agent.finish().result

    for t in result.threads:
        assert t.voluntary_switches is not None
        assert t.own.samples - 5 <= t.voluntary_switches <= t.own.samples + 5
        assert (t.minor_faults, t.major_faults, t.migrations) == (0, 0, 0)


@pytest.mark.usefixtures("root")
def test_locked_memory_is_bounded() -> None:
    def locked_kb(seconds: float) -> int:
        with measuring(seconds=seconds) as agent:
            return require(agent.finish().result.locked_kb)

    short, long = locked_kb(0.2), locked_kb(2)

    # Beside the program itself: its stack, and what each measuring thread keeps.
    program = memory_bytes(agent_file(platform.machine()).read_bytes()) // 1024
    assert 0 < short - program <= 416 + 320 * len(CPUS)
    assert long == short


@needs_a_spare_cpu
@pytest.mark.usefixtures("root")
def test_with_a_spare_cpu_only_the_sampler_can_run_on_the_measured_one() -> None:
    measured = CPUS[-1]
    with measuring("--cpus", str(measured), seconds=2) as agent:
        until(lambda: len(threads_of(agent.pid)) == 2, what="both threads")
        until(
            lambda: (
                set(threads_of(agent.pid).values())
                == {(measured,), tuple(cpu for cpu in CPUS if cpu != measured)}
            ),
            what="the threads are pinned",
        )
        allowed = threads_of(agent.pid)
        result = agent.finish().result

    assert measured not in allowed[agent.pid]
    assert result.housekeeping_cpu in allowed[agent.pid]
    assert [(t.cpu, allowed[t.tid]) for t in result.threads] == [
        (measured, (measured,))
    ]
    assert "no_housekeeping_cpu" not in doubts(judged(result))


@pytest.mark.usefixtures("root")
def test_with_every_cpu_measured_there_is_a_thread_for_each_and_one_to_watch() -> None:
    with measuring(seconds=0.6) as agent:
        until(
            lambda: len(threads_of(agent.pid)) == 1 + len(CPUS),
            what="a thread for each CPU",
        )
        result = agent.finish().result

    assert result.housekeeping_cpu is None
    assert "no_housekeeping_cpu" in doubts(judged(result))


def threads_of(pid: int) -> dict[int, tuple[int, ...]]:
    """Return the CPUs that each thread may use."""
    found: dict[int, tuple[int, ...]] = {}
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        try:
            text = status.read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        allowed = re.search(r"^Cpus_allowed_list:\s*(\S+)", text, re.MULTILINE)
        assert allowed is not None
        found[int(status.parent.name)] = parse_cpulist(allowed[1])
    return found


@pytest.mark.usefixtures("root")
@pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")
def test_a_cpu_that_this_process_was_kept_from_is_measured_if_it_is_named() -> None:
    """As with isolcpus=, which keeps every process from the CPUs that matter."""
    kept_on, other = CPUS[0], CPUS[1]
    prefix = ("taskset", "-c", str(kept_on))
    with measuring("--cpus", str(other), seconds=0.1, prefix=prefix) as agent:
        result = agent.finish().result
    with measuring(seconds=0.1, prefix=prefix) as agent:
        unasked = agent.finish().result

    assert [thread.affinity for thread in result.threads] == [str(other)]
    assert result.housekeeping_cpu == kept_on
    assert [thread.cpu for thread in unasked.threads] == [kept_on]


@pytest.mark.usefixtures("root")
def test_a_cpu_that_is_not_there_is_named_with_those_that_can_be_measured() -> None:
    absent = 500
    with measuring("--cpus", f"{CPUS[0]},{absent}") as agent:
        done = agent.finish()

    assert done.status == 3
    assert done.error.cause == "cpu"
    assert done.error.message.startswith(f"CPU {absent} cannot be measured: offline")
    assert parse_cpulist(done.error.remedy.rpartition("--cpus ")[2]) == CPUS


@pytest.mark.usefixtures("root")
def test_a_cpu_held_awake_is_in_the_result_and_let_go_afterwards() -> None:
    if not Path("/dev/cpu_dma_latency").exists():
        pytest.skip("this kernel has no /dev/cpu_dma_latency")

    with measuring("--hold-cpu-awake", seconds=0.4) as agent:
        until(lambda: dma_latency_us() == 0, what="idle states are forbidden")
        held = agent.finish().result
    assert dma_latency_us() > 0
    with measuring(seconds=0.1) as agent:
        left_alone = agent.finish().result

    assert held.dma_latency_held
    assert "cpu_held_awake" in doubts(judged(held))
    assert not left_alone.dma_latency_held
    assert left_alone.dma_latency_us == dma_latency_us()
    assert "cpu_held_awake" not in doubts(judged(left_alone))


def dma_latency_us() -> int:
    content = Path("/dev/cpu_dma_latency").read_bytes()
    return int.from_bytes(content[:4], "little", signed=True)


@pytest.mark.usefixtures("root")
def test_a_wall_clock_that_is_stepped_is_noticed_and_the_latencies_do_not_care() -> (
    None
):
    with measuring(seconds=1.6) as agent:
        time.sleep(0.3)
        ahead_ns = SECOND_NS // 2
        real_ns = time.clock_gettime_ns(time.CLOCK_REALTIME)
        begun_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        try:
            time.clock_settime_ns(time.CLOCK_REALTIME, real_ns + ahead_ns)
            result = agent.finish().result
        finally:
            since_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) - begun_ns
            time.clock_settime_ns(time.CLOCK_REALTIME, real_ns + since_ns)

    kept = judged(result)
    assert result.machine is not None
    assert abs(result.machine.realtime_step_ns - ahead_ns) < 100 * MS
    assert "clock_stepped" in doubts(kept)
    assert invalid(kept) == set()


@pytest.mark.parametrize(
    ("machine", "emulator"),
    [
        ("x86_64", "qemu-x86_64"),
        ("aarch64", "qemu-aarch64"),
        ("armv7l", "qemu-arm"),
        ("riscv64", "qemu-riscv64"),
    ],
)
def test_every_architecture_measures_and_keeps_its_contract(
    machine: str, emulator: str
) -> None:
    try:
        agent = agent_file(machine)
    except TargetError as error:
        pytest.skip(str(error))
    found = shutil.which(f"{emulator}-static") or shutil.which(emulator)
    if found is None:
        pytest.skip(f"needs {emulator}-static")

    # What an unprivileged user may do anywhere: no lock beyond 8 MiB, policy other.
    with measuring(policy="other", seconds=0.5, prefix=[found], agent=agent) as running:
        result = running.finish().result

    kept = judged(result)
    # An emulated CPU may be taken from its thread at any time, but nothing gets lost.
    assert invalid(kept) & {"identity_broken", "sums_inconsistent"} == set()
    assert [t.cpu for t in result.threads] == list(CPUS)
    assert all(t.own.samples > 0 for t in result.threads)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64", "armv7l", "riscv64"])
def test_every_agent_is_small_and_static(machine: str) -> None:
    try:
        content = agent_file(machine).read_bytes()
    except TargetError as error:
        pytest.skip(str(error))

    # 336 KiB before events of devices: CAN, UIO, interfaces of one's own; 344 KiB
    # before AF_XDP (its program, its rings and what is said when they are refused) and
    # the kernel's tracer hwlat (its settings, its reports): 5 KB each; 356 KiB before
    # flags of descriptors as of the call, and refusals that say what to type: 3 KB;
    # 360 KiB before probes that are closed late, programs executed at once, and waits
    # for one of several things: 4 KB.
    assert len(content) <= 368 * 1024
    assert PT_INTERP not in program_headers(content)


PT_LOAD, PT_INTERP = 1, 3


def memory_bytes(elf: bytes) -> int:
    """Return how much memory the segments of a 64-bit program take."""
    loads = [at for at in header_places(elf) if of_type(elf, at) == PT_LOAD]
    return sum(struct.unpack_from("<Q", elf, at + 40)[0] for at in loads)


def program_headers(elf: bytes) -> list[int]:
    """Return the type of each program header: elf(5)."""
    return [of_type(elf, at) for at in header_places(elf)]


def header_places(elf: bytes) -> list[int]:
    assert elf[:4] == b"\x7fELF"
    if elf[4] == 2:
        (start,) = struct.unpack_from("<Q", elf, 32)
        size, count = struct.unpack_from("<HH", elf, 54)
    else:
        (start,) = struct.unpack_from("<I", elf, 28)
        size, count = struct.unpack_from("<HH", elf, 42)
    return [start + n * size for n in range(count)]


def of_type(elf: bytes, at: int) -> int:
    kind: int = struct.unpack_from("<I", elf, at)[0]
    return kind


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["measure", "--interval-ns", "9999"], "bad option or value: 9999"),
        (["measure", "--policy", "other", "--priority", "5"], "takes no --priority"),
        (["frobnicate"], "unknown command: frobnicate"),
        (["load"], "no command after --"),
        ([], "no command"),
    ],
)
def test_a_wrong_command_line_is_refused_with_status_2(
    words: list[str], told: str
) -> None:
    done = subprocess.run(
        [native_agent(), *words], capture_output=True, timeout=PATIENCE_S, check=False
    )

    assert done.returncode == 2
    assert done.stdout == b""
    assert told in done.stderr.decode()


@pytest.mark.parametrize(("words", "left"), [("sleep 60 &", 1), ("sleep 0", 0)])
def test_the_guard_says_what_a_command_has_left_in_the_background(
    words: str, left: int
) -> None:
    argv = (native_agent(), "load", "--log", "/dev/null", "--", "sh", "-c", words)
    done = subprocess.run(argv, capture_output=True, timeout=PATIENCE_S, check=True)

    end = json.loads(done.stdout.splitlines()[-1])
    assert (end["type"], end["status"], end["left"]) == ("load_end", 0, left)


def test_an_agent_whose_host_is_gone_ends() -> None:
    reading, writing = os.pipe()
    argv = [str(native_agent()), "measure", "--host-link", "--policy", "other"]
    agent = subprocess.Popen(argv, stdin=reading, stdout=subprocess.DEVNULL)
    os.close(reading)
    try:
        time.sleep(0.3)
        os.close(writing)
        assert agent.wait(GONE_WITHIN_S) == 0
    finally:
        agent.kill()
        agent.wait()


@pytest.mark.usefixtures("root")
def test_an_agent_told_to_stop_reports_what_it_has() -> None:
    with Program(
        [
            native_agent(),
            "measure",
            "--host-link",
            "--policy",
            "fifo",
            "--priority",
            "9",
        ]
    ) as agent:
        time.sleep(0.5)
        agent.send(signal.SIGTERM)
        done = agent.finish()

    assert done.status == 0
    assert done.result.stopped == "signal"
    assert "stopped_early" in doubts(judged(done.result))
    assert invalid(judged(done.result)) - {"settings_differ"} == set()
