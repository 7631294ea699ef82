"""Looking at a machine over SSH gives what looking at it from itself gives."""

import itertools
import json
import os
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rig import rtscope
from test_thread_list import scene

from fakes.sshd import SSHD, Board, board

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(SSHD is None, reason="needs openssh-server"),
    pytest.mark.usefixtures("root"),
]

# What depends on the session that looks, on time, or is tried in another way there.
ONLY_HERE = ("late_microcode", "split_locks", "interrupt_coalescing")
"""Checks of the kernel log, or by calls of the kernel that no file shows."""
OF_THE_SESSION = {
    *("cpu_dma_latency", "smi_count", "clock_doubted", "logged_delays"),
    *("unknown_parameters", "clock_cost", "realtime_policy", "group_budget"),
    *("rtprio_limit", "memlock_limit", "rttime_limit", "steal", "fixed_frequency"),
    *("observed_device_interrupts", "observed_ticks", "observed_ipis"),
    *("temperature", "stray_processes", "real_time_threads", "interrupt_threads"),
}


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Board]:
    with board(tmp_path) as machine:
        yield machine


def asked(*words: str, there: Board | None = None) -> tuple[int, Any]:
    env = {"PATH": there.path} if there else None
    where = ("--target", "ssh:board") if there else ()
    with rtscope(*words, *where, "--json", env=env) as program:
        done = program.finish()
    assert done.stdout, done.stderr
    return done.status, json.loads(done.stdout)


def verdict_of(row: dict[str, Any]) -> tuple[str, str]:
    says = row["message"]
    # Without debugfs the kernel log tells the model, and over SSH the configuration.
    if row["id"] == "preemption_model":
        says = says.partition(":")[0]
    return row["outcome"], says


def test_threads_are_the_same_from_there_and_from_here(there: Board) -> None:
    with scene() as (pid, made):
        _, here = asked("tasks", "--pid", str(pid), "--sort", "name")
        status, far = asked("tasks", "--pid", str(pid), "--sort", "name", there=there)

    kept = ("tid", "name", "kind", "policy", "priority", "nice", "cpus", "deadline")
    assert status == 0
    assert far["target"] == "ssh:board"
    assert {row["tid"] for row in far["threads"]} == {pid, *made.values()}
    assert [[row[key] for key in kept] for row in far["threads"]] == [
        [row[key] for key in kept] for row in here["threads"]
    ]


def test_changes_are_seen_from_there(there: Board) -> None:
    policies = itertools.cycle((os.SCHED_BATCH, os.SCHED_IDLE, os.SCHED_OTHER))
    pauses = random.Random(1)
    words = ("tasks", "--watch", "100ms", "--changes", "--count", "15", "--json")
    # A pipe that nobody reads until the end holds few lines: those of one process.
    with subprocess.Popen(["sleep", "600"]) as changing:
        env = {"PATH": there.path}
        only = ("--pid", str(changing.pid), "--target", "ssh:board")
        try:
            with rtscope(*words, *only, env=env) as program:
                while program.running:
                    policy = next(policies)
                    os.sched_setscheduler(changing.pid, policy, os.sched_param(0))
                    time.sleep(pauses.uniform(0.02, 0.2))
                done = program.finish()
        finally:
            changing.kill()
    seen = [json.loads(line) for line in done.stdout.splitlines()]

    assert done.status == 0, done.stderr
    assert {(one["tid"], one["what"]) for one in seen} == {(changing.pid, "policy")}


def test_a_machine_is_judged_the_same_from_there_and_from_here(there: Board) -> None:
    status, far = asked("audit", "--observe", "0.1", there=there)
    _, here = asked("audit", "--observe", "0.1")

    outcomes = [
        {
            row["id"]: verdict_of(row)
            for row in document["checks"]
            if row["id"] not in {*OF_THE_SESSION, *ONLY_HERE}
        }
        for document in (far, here)
    ]
    assert status in (0, 1)
    assert outcomes[0] == outcomes[1]
    rows = {row["id"]: row for row in far["checks"]}
    # Tried by the agent on the board, and timed there.
    assert rows["realtime_policy"]["evidence"][0]["path"].endswith("by the agent")
    assert rows["clock_cost"]["outcome"] in ("pass", "fail")
    # What cannot be seen over SSH says so.
    for name in ("logged_delays", "cpu_dma_latency", *ONLY_HERE):
        assert rows[name]["outcome"] == "unknown"
        assert rows[name]["message"]
