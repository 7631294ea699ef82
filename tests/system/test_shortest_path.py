"""A wake-up takes the time of the path that the kernel executes, to a quantum."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from test_recording import RUN, finished
from test_recording import pytestmark as boards

from rtscope.record.directory.records import open_records

pytestmark = [*boards, pytest.mark.long]

CPU = 1
WAKEUPS = 50
TICK_NS = 100
"""The board's clock counts at 10 MHz, so a reading is up to this much too early."""

QUANTUM_NS = 5_000
"""While others are busy, a CPU that is behind reads the clock of one that is ahead."""

ENTRY = ("handle_exception", "riscv_v_context_nesting_start")
READING = "riscv_clocksource_rdtime"
LEAD_NS = 1500
"""The interrupt begins earlier than this before the mark less the latency: the agent
reads the clock by a system call, and the mark is behind the return from it."""


def blocks_of(wakeup: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return what the measured CPU executed, in its order."""
    return [
        step
        for step in wakeup["steps"]
        if step["cpu"] == wakeup["cpu"] and step["kind"] == "block"
    ]


def begin_of_interrupt_ns(blocks: Sequence[Mapping[str, Any]]) -> int:
    """Return the time of the first instruction of the interrupt of the timer."""
    (handled, *_) = (
        number
        for number, step in enumerate(blocks)
        if step["what"] == "hrtimer_interrupt" and step["after_expiry_ns"] > -LEAD_NS
    )
    begin = max(n for n in range(handled) if blocks[n]["what"] == ENTRY[0])
    while blocks[begin - 1]["what"] in ENTRY:
        begin -= 1
    return int(blocks[begin]["at_ns"])


def end_of_reading_ns(blocks: Sequence[Mapping[str, Any]]) -> int:
    """Return the time at which the measuring thread has read the clock."""
    reading = max(n for n, step in enumerate(blocks) if step["what"] == READING)
    return int(blocks[reading]["at_ns"] + blocks[reading]["executed_ns"])


@pytest.mark.parametrize(("load", "bound_ns"), [("idle", 0), ("os", QUANTUM_NS)])
def test_no_wake_up_is_shorter_than_its_path(
    tmp_path: Path, load: str, bound_ns: int
) -> None:
    out = tmp_path / "out"
    finished(
        *(*RUN, "--load", load, "--duration", "1s", "--interval", "20ms"),
        *("--cpus", str(CPU), "--warmup", "200ms", "--settle", "0s"),
        *("--worst", "64", "--out", out),
    )
    words = ("board", "trace", out, "--worst", "64", "--limit", "0", "--json")
    wakeups = json.loads(finished(*words).stdout)

    paths_ns = [
        end_of_reading_ns(blocks) - begin_of_interrupt_ns(blocks)
        for blocks in map(blocks_of, wakeups)
    ]

    assert len(wakeups) == WAKEUPS
    (thread,) = open_records(out)[0].result.threads
    assert thread.min_ns is not None
    assert thread.min_ns > min(paths_ns) - TICK_NS - bound_ns
    shorter_ns = [
        path_ns - TICK_NS - wakeup["latency_ns"]
        for wakeup, path_ns in zip(wakeups, paths_ns, strict=True)
    ]
    assert max(shorter_ns) < max(bound_ns, 1)
    assert sum(ns >= 0 for ns in shorter_ns) <= WAKEUPS // 10
