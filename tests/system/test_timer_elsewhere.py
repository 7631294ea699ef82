"""A CPU without tick: its thread's timer expires on another, and is explained so."""

import json
from pathlib import Path
from typing import Any

import pytest
from rig import NEEDS_APT
from test_recording import SHORT, finished

pytestmark = [pytest.mark.system, pytest.mark.long, NEEDS_APT]

CAUSE = "a timer on another CPU"


def causes_on_cpu_1(out: Path, append: str) -> set[tuple[str, bool]]:
    """Return the causes of the thread on CPU 1, and whether something is unproven."""
    words = ("--target", "virtual:pc", "--kernel", "debian-6.12-rt", *SHORT)
    finished("run", *words, "--cpus", "1", "--append", append, "--out", out)
    told: list[dict[str, Any]] = json.loads(finished("explain", out, "--json").stdout)
    wakeups = told[0]["wakeups"]
    assert wakeups
    return {
        (segment["cause"], bool(wakeup["broken_invariants"]))
        for wakeup in wakeups
        for segment in wakeup["segments"]
    }


def test_the_timer_of_a_cpu_without_tick_expires_on_another(tmp_path: Path) -> None:
    found = causes_on_cpu_1(tmp_path / "given", "nohz_full=1")

    assert (CAUSE, False) in found
    assert not any(broken for _, broken in found)


def test_the_remedy_keeps_the_timer_where_its_thread_is(tmp_path: Path) -> None:
    append = "nohz_full=1 sysctl.kernel.timer_migration=0"

    found = causes_on_cpu_1(tmp_path / "kept", append)

    assert not any(cause == CAUSE for cause, _ in found)
    assert not any(broken for _, broken in found)
