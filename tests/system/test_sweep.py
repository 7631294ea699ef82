"""A sweep of booted boards: exact effects, and what does not boot is named."""

import json
from pathlib import Path

import pytest
from rig import NEEDS_APT, rtscope

from rtscope.record.directory.records import open_records

pytestmark = [pytest.mark.system, pytest.mark.long, NEEDS_APT]

FILE = """
[base]
target.address = "virtual:pc"
kernel.names = ["debian-6.12-rt"]
campaign = { seeds = 2, settle = "0s", warmup = "0s", record = false }
run = [{ load = "idle", duration = "1s", interval = "1ms" }]
[[axis]]
name = "tick"
level = [{ name = "nohz=off", kernel.append = "nohz=off" }]
[[axis]]
name = "interrupts"
level = [{ name = "on CPU 0", target.tuned = "irq_affinity", run.cpus = "1" }]
"""

PATIENCE_S = 900.0


def test_a_kernel_parameter_changes_what_is_measured(tmp_path: Path) -> None:
    file, out = tmp_path / "tick.toml", tmp_path / "out"
    file.write_text(FILE)

    with rtscope("sweep", file, "--no-reuse", "--json", "--out", out) as sweep:
        done = sweep.finish(PATIENCE_S)

    assert done.status == 0, done.stderr
    result = json.loads(done.stdout)
    assert [cell["runs"] for cell in result["cells"]] == [2, 2, 2]
    records = [one for cell in (out / "cells").iterdir() for one in open_records(cell)]
    assert len(records) == 6
    assert not any(one.require_virtual().reused for one in records)
    moved = [one.tuning["changed"] for one in records if one.tuning]
    assert len(moved) == 2
    # As the agent read them back in the guest.
    assert all(change["value"] == "0" for changes in moved for change in changes)
    assert {change["before"] for changes in moved for change in changes} == {"0-1"}
    assert result["checks"] == {"planned": 1, "equal": 1, "failures": []}
    worst = next(e for e in result["effects"] if e["figure"] == "worst")
    assert worst["ratio"] != 1
    assert worst["p"] >= 0.5
    assert not worst["found"]
