"""The script that a virtual board runs, and what its answer is made of."""

from dataclasses import replace

import pytest

from rtscope.boards.runs.inspect import GuestFiles
from rtscope.boards.runs.script import job_of, phase_ns
from rtscope.machine.reader import Missing
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.loads import LoadCommand
from rtscope.record.model import Run

RUN = Run(
    id="001-idle",
    target="virtual:pc",
    kernel="debian-6.12-rt",
    load="idle",
    repetition=1,
    policy="fifo",
    priority=99,
    interval_ns=1_000_000,
    duration_ns=2_000_000_000,
    cpus=None,
)


BOARD = Campaign(target="virtual:pc")
IDLE = LoadCommand((), None, ())


def script(*load: str, campaign: Campaign = BOARD) -> list[str]:
    command = LoadCommand(load, None, ())
    job = job_of(RUN, campaign, command, facts=["/proc/version"], seed=3)
    return job.script.splitlines()


def test_facts_are_read_before_and_after_the_measurement() -> None:
    assert script() == [
        "sleep 10",
        "rtscope-agent read -- /proc/version >>/out/facts-before.jsonl",
        "sleep 1",
        "rtscope-agent measure --policy fifo --priority 99 --interval-ns 1000000 "
        "--duration-ns 2000000000 --worst 16 --phase-ns 111039 >/out/measure.jsonl",
        "status=$?",
        "rtscope-agent read -- /proc/version >>/out/facts-after.jsonl",
        "cat /proc/modules >/out/modules 2>/dev/null",
        "exit $status",
    ]


def test_settings_are_made_before_the_board_settles() -> None:
    settings = ("--set", "watchdog:0=0", "--set", "irq_affinity:4,9=0")

    job = job_of(RUN, BOARD, IDLE, facts=["/x"], seed=3, settings=settings)

    assert job.script.splitlines()[:3] == [
        "mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null",
        "rtscope-agent apply --set watchdog:0=0 --set irq_affinity:4,9=0 "
        ">/out/tuned.jsonl",
        "sleep 10",
    ]


def test_the_load_runs_around_the_measurement_and_is_told_to_end() -> None:
    lines = script("stress-ng", "--matrix", "2")
    begins = next(i for i, line in enumerate(lines) if "load --log" in line)
    measures = next(i for i, line in enumerate(lines) if " measure " in line)
    ends = lines.index("kill $load 2>/dev/null")

    assert lines[begins].endswith(
        "-- stress-ng --matrix 2 </dev/null >/out/load.jsonl &"
    )
    assert begins < measures < ends
    assert lines[ends + 1] == "wait $load"


def test_only_the_network_load_gets_a_loopback_interface() -> None:
    command = LoadCommand(("stress-ng", "--sock", "2"), None, ())
    run = replace(RUN, load="network")
    lines = job_of(run, BOARD, command, facts=["/proc/version"], seed=3).script

    begins = lines.index("load --log")
    assert 0 < lines.index("ip link set lo up\n") < begins
    assert "ip link" not in "".join(script("stress-ng", "--matrix", "2"))


def test_a_board_settles_first_for_as_long_as_is_asked() -> None:
    assert script(campaign=replace(BOARD, settle_ns=1_500_000_000))[0] == "sleep 1.5"
    assert script(campaign=replace(BOARD, settle_ns=0))[0].startswith("rtscope-agent")


def test_words_of_a_custom_load_arrive_as_they_are() -> None:
    line = next(line for line in script("sh", "-c", "echo '$x'; y") if " load " in line)

    assert "-- sh -c 'echo '\"'\"'$x'\"'\"'; y' <" in line


def test_each_seed_has_a_phase_of_its_own_within_the_interval() -> None:
    phases = [phase_ns(RUN, seed) for seed in range(64)]

    assert len(set(phases)) == 64
    assert all(0 <= phase < RUN.interval_ns for phase in phases)
    assert phase_ns(replace(RUN, interval_ns=37_013), 5) == 0


def test_a_pattern_stands_for_what_the_board_has_read() -> None:
    reader = GuestFiles({"/sys/cpu0/max": b"1", "/sys/cpu1/max": b"2"})

    assert reader.read_many(["/sys/cpu*/max", "/sys/none"]) == {
        "/sys/cpu0/max": b"1",
        "/sys/cpu1/max": b"2",
        "/sys/none": Missing(),
    }


def test_symbols_of_modules_that_the_load_inserts_are_kept_while_it_runs() -> None:
    mine = LoadCommand(("mine",), None, ())
    job = job_of(
        RUN, BOARD, mine, facts=[], seed=3, own_modules=True
    ).script.splitlines()

    known = next(i for i, line in enumerate(job) if "modules-before" in line)
    begins = next(i for i, line in enumerate(job) if "load --log" in line)
    kept = next(i for i, line in enumerate(job) if "/out/module-symbols" in line)
    ends = job.index("kill $load 2>/dev/null")

    assert known < begins < kept < ends
    assert not any("modules-before" in line for line in script("mine"))


@pytest.mark.parametrize(
    ("event", "inserts"),
    [
        ("udp", ["veth"]),
        ("raw:priority=50", ["veth"]),
        ("xdp", ["veth"]),
        ("can", ["can", "can-raw"]),
        ("raw:from=eth0:to=eth1:cpu=same", []),
        ("futex", []),
        ("timer", []),
    ],
)
def test_modules_for_events_are_there_for_those_that_need_them(
    event: str, inserts: list[str]
) -> None:
    """Of those that the kernel has; what it lacks may be built into it."""
    modules = {"can-raw.ko": b"1", "veth.ko": b"2", "can.ko": b"3"}
    run = replace(RUN, event=event)
    job = job_of(run, BOARD, IDLE, facts=[], seed=3, event_modules=modules)
    lines = job.script.splitlines()

    inserted = [line for line in lines if line.startswith("insmod")]
    assert inserted == [f"insmod /job/{name}.ko" for name in inserts]
    assert job.files == {f"{name}.ko": modules[f"{name}.ko"] for name in inserts}
    assert any("modules-before" in line for line in lines) == bool(inserts)
    measured = next(i for i, line in enumerate(lines) if "measure.jsonl" in line)
    assert all(lines.index(line) < measured for line in inserted)


def test_terminals_are_there_for_the_event_that_needs_them() -> None:
    def mounts(event: str) -> list[str]:
        run = replace(RUN, event=event)
        lines = job_of(run, BOARD, IDLE, facts=[], seed=3).script.splitlines()
        return [line for line in lines if "devpts" in line]

    assert mounts("pty") == ["mount -t devpts devpts /dev/pts"]
    assert not mounts("pipe")
