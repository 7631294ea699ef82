"""A survey of this machine, with the real agent and stress-ng."""

import json
from pathlib import Path

import pytest
from rig import rtscope

from rtscope.record.directory.records import open_records

pytestmark = [pytest.mark.system]

FILE = """
[sweep]
name = "two stressors"
[base]
target.address = "local"
campaign.warmup = "250ms"
run = [{ load = "idle", duration = "1s", interval = "1ms" }]
[survey]
stressors = ["sem", "yield"]
"""


def test_the_loads_of_this_machine_are_ranked(tmp_path: Path) -> None:
    file, out = tmp_path / "survey.toml", tmp_path / "out"
    file.write_text(FILE)

    with rtscope("sweep", file, "--json", "--out", out) as survey:
        done = survey.finish()

    assert done.status == 0, done.stderr
    result = json.loads(done.stdout)
    loads = {load["name"]: load for load in result["loads"]}
    assert set(loads) == {"idle", "stress-ng:sem", "stress-ng:yield"}
    # A load that other work kept from running has no rank, but its reason.
    assert all(load["standings"] or load["failures"] for load in loads.values())
    worst = {
        record.run.load: record.max_ns
        for record in open_records(out / "cells/000-base")
    }
    for name, load in loads.items():
        for standing in load["standings"].values():
            assert standing["worst_ns"] == worst[name]
    assert not result["is_virtual"]
    assert "Loads on this machine" in (out / "survey.html").read_text()
