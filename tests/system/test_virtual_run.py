"""A campaign on a virtual board: exact, and said to be virtual."""

from pathlib import Path

import pytest
from rig import NEEDS_APT, RISCV, Done, rtscope

from rtscope.boards.catalogue import get_board, with_append
from rtscope.boards.runs.assemble import board_digest
from rtscope.contract import require
from rtscope.host.units import NS_PER_S
from rtscope.record.directory.records import open_records
from rtscope.record.model import RunRecord
from rtscope.stats.runcaveats import all_caveats

pytestmark = [
    pytest.mark.system,
    NEEDS_APT,
]

BOARD = ("run", "--target", "virtual:pc", "--kernel", "debian-6.12-rt")
SHORT = ("--duration", "1s", "--interval", "1ms", "--warmup", "200ms")

PATIENCE_S = 400.0
"""The first call fetches QEMU and a kernel."""


def run(*words: str, out: Path) -> Done:
    with rtscope(*words, "--out", out) as campaign:
        return campaign.finish(PATIENCE_S)


@pytest.mark.long
def test_the_same_campaign_has_the_same_result_and_another_seed_another(
    tmp_path: Path,
) -> None:
    twice = tmp_path / "twice"
    words = (*BOARD, *SHORT, "--load", "idle,memory", "--repetitions", "2")
    done = run(*words, out=twice)
    assert done.status == 0, done.stderr

    records = open_records(twice)
    digests = {r.run.id: r.result_digest for r in records}
    idle = {d for name, d in digests.items() if "idle" in name}
    memory = {d for name, d in digests.items() if "memory" in name}
    assert (len(records), len(idle), len(memory)) == (4, 1, 1)
    assert idle != memory
    for record in records:
        assert [
            t.own.samples + require(t.missed_periods) for t in record.result.threads
        ] == [
            1000,
            1000,
        ]
        assert record.virtual is not None
        assert record.virtual.plugin_counters["marks"] > 0
        assert "virtual_board" in {c.id for c in all_caveats(record)}
    counted = {str(r.virtual.plugin_counters) for r in records if r.virtual}
    assert len(counted) == 2  # one of each load: nothing of a boot's end
    assert b"virtual board pc" in done.stdout

    other = tmp_path / "other"
    words = (*BOARD, *SHORT, "--load", "idle", "--seed", "2")
    assert run(*words, out=other).status == 0
    assert {r.result_digest for r in open_records(other)}.isdisjoint(idle)


@pytest.mark.long
def test_the_network_load_has_a_network_on_a_board(tmp_path: Path) -> None:
    """The loopback interface is down after a boot, and a board has no other."""
    done = run(*BOARD, *SHORT, "--load", "network", out=tmp_path / "out")

    assert done.status == 0, done.stderr
    [record] = open_records(tmp_path / "out")
    assert record.load.operations["sock"] > 0
    working = [w for w in record.load.workers if not w.waits]
    assert len(working) == 2
    assert all(w.cpu_ns and not w.lapses for w in working)


def test_the_gate_passes_twice_the_same_and_fails_for_another_seed(
    tmp_path: Path,
) -> None:
    words = ("run", "--target", "virtual:jh7110", "--kernel", RISCV)
    short = (*words, "--load", "idle", "--duration", "1s", "--interval", "1ms")
    first = tmp_path / "first"
    gated = run(*short, "--repetitions", "2", "--require-identical", out=first)
    other = run(
        *(*short, "--seed", "2", "--identical-to", str(first)), out=tmp_path / "b"
    )

    assert gated.status == 0, gated.stderr
    assert b"IDENTICAL: 1 of 1 runs are identical in all" in gated.stdout
    assert b"2 times, inputs equal" in gated.stdout
    assert other.status == 1
    assert b"RESULTS DIFFER, INPUTS DIFFER: initrd, seed" in other.stdout


def with_fault(script: str, out: Path) -> tuple[Done, RunRecord]:
    """Run with a load that, half a second into it, does something to the board."""
    load = ("--load", "custom", "--command", f"sh -c 'sleep 0.5; {script}; sleep 99'")
    done = run(*BOARD, *SHORT, *load, "--yes", "--deadline", "1s", out=out)
    (kept,) = open_records(out)
    return done, kept


def all_samples_are_there(kept: RunRecord) -> bool:
    return all(
        t.own.samples + require(t.missed_periods) == 1000 for t in kept.result.threads
    )


def test_a_cpu_that_goes_offline_makes_the_run_invalid(tmp_path: Path) -> None:
    off = "echo 0 >/sys/devices/system/cpu/cpu1/online"
    done, kept = with_fault(off, tmp_path / "out")

    assert done.status == 3, done.stderr
    assert b"HELD" not in done.stdout
    found = {c.id for c in all_caveats(kept)}
    assert found >= {"cpu_offline", "cpus_changed", "migrated", "settings_differ"}
    assert all_samples_are_there(kept)


@pytest.mark.long
def test_a_clock_that_is_set_by_years_changes_no_measurement(tmp_path: Path) -> None:
    there_and_back = "date -s 2030-01-01; sleep 0.3; date -s 2020-01-01"
    done, kept = with_fault(there_and_back, tmp_path / "out")

    assert done.status == 0, done.stderr
    found = {c.id for c in all_caveats(kept)}
    assert "clock_stepped" in found
    assert kept.result.machine is not None
    assert kept.result.machine.realtime_step_ns > 4 * 365 * 86_400 * NS_PER_S
    assert not found & {"suspended", "identity_broken", "sums_inconsistent"}
    assert all_samples_are_there(kept)


def test_the_kernel_boots_with_the_parameters_of_the_campaign(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = (*BOARD, *SHORT, "--settle", "0s", "--load", "idle")

    done = run(*words, "--append", "nohz=off rcu_nocbs=1", out=out)

    assert done.status == 0, done.stderr
    (kept,) = open_records(out)
    known = str(kept.facts_before["kernel_cmdline"].value)
    assert known.endswith(" nohz=off rcu_nocbs=1")
    assert kept.virtual is not None
    assert kept.virtual.input_digests is not None
    assert kept.virtual.input_digests.board == board_digest(
        with_append(get_board("pc"), ("nohz=off", "rcu_nocbs=1"))
    )
    assert kept.virtual.input_digests.board != board_digest(get_board("pc"))


@pytest.mark.long
def test_a_process_that_memory_max_kills_is_named(tmp_path: Path) -> None:
    group = "/sys/fs/cgroup/small"
    limit = (
        "echo +memory >/sys/fs/cgroup/cgroup.subtree_control; "
        f"mkdir {group}; echo 4M >{group}/memory.max; "
        f"echo $$ >{group}/cgroup.procs; head -c 60000000 /dev/zero | tail"
    )
    _, kept = with_fault(limit, tmp_path / "out")

    details = {c.id: c.detail for c in all_caveats(kept)}
    assert "Memory cgroup out of memory: Killed process" in details["oom_kill"]
    assert all_samples_are_there(kept)


def test_a_kernel_that_does_not_boot_is_told_with_its_reason(tmp_path: Path) -> None:
    image = tmp_path / "bzImage"
    image.write_bytes(b"no kernel" * 1000)
    words = ("run", "--target", "virtual:pc", "--kernel", str(image), "--load", "idle")
    done = run(*words, out=tmp_path / "out")

    assert done.status in (2, 3)
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()
