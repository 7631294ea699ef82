"""No minimum is shorter than the path that the kernel has to take, but for an edge."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from test_recording import RUN, finished
from test_recording import pytestmark as boards

from rtscope.record.resultdir import open_records

pytestmark = [*boards, pytest.mark.long]

CPU = 1
WAKEUPS = 50
EDGE_NS = 1000
"""So much before the due time a timer's interrupt may begin: half a microsecond was
seen, of which the time from the reading to its mark and the clock's tick are a part.
A quantum is five times as long."""

ENTRY = ("handle_exception", "riscv_v_context_nesting_start")


def path_ns(wakeup: Mapping[str, Any]) -> int:
    """Return the time from the timer interrupt's first instruction to the mark."""
    steps = [step for step in wakeup["steps"] if step["cpu"] == wakeup["cpu"]]
    (handled, *_) = (
        number
        for number, step in enumerate(steps)
        if step["what"] == "hrtimer_interrupt" and step["after_expiry_ns"] > -EDGE_NS
    )
    begin = max(n for n in range(handled) if steps[n]["what"] == ENTRY[0])
    while steps[begin - 1]["what"] in ENTRY:
        begin -= 1
    return int(steps[-1]["at_ns"] - steps[begin]["at_ns"])


@pytest.mark.parametrize("load", ["idle", "os"])
def test_no_minimum_is_below_the_shortest_path(tmp_path: Path, load: str) -> None:
    out = tmp_path / "out"
    finished(
        *(*RUN, "--load", load, "--duration", "1s", "--interval", "20ms"),
        *("--cpus", str(CPU), "--warmup", "200ms", "--settle", "0s"),
        *("--worst", "64", "--out", out),
    )
    words = ("board", "trace", out, "--worst", "64", "--limit", "0", "--json")
    wakeups = json.loads(finished(*words).stdout)

    assert len(wakeups) == WAKEUPS
    (thread,) = open_records(out)[0].result.threads
    shortest_ns = min(path_ns(wakeup) for wakeup in wakeups)
    assert thread.min_ns is not None
    assert thread.min_ns >= shortest_ns - EDGE_NS
