"""Boards without high-resolution timers: a wake-up is explained by the tick."""

import json
from pathlib import Path

import pytest
from rig import NEEDS_APT
from test_recording import SHORT, finished

pytestmark = [
    pytest.mark.system,
    pytest.mark.long,
    NEEDS_APT,
]


@pytest.mark.parametrize(
    ("board", "kernel"), [("pc", "debian-6.12-rt"), ("jh7110", "jh7110-6.12-rt")]
)
def test_a_timer_that_waits_for_the_tick_is_explained_so(
    board: str, kernel: str, tmp_path: Path
) -> None:
    out = tmp_path / "low"
    words = ("--target", f"virtual:{board}", "--kernel", kernel, *SHORT)

    finished("run", *words, "--append", "highres=off", "--out", out)
    (told,) = json.loads(finished("explain", out, "--json").stdout)

    assert told["wakeups"]
    for wakeup in told["wakeups"]:
        assert wakeup["broken_invariants"] == []
        dominant = wakeup["segments"][wakeup["dominant_segment"]]
        assert dominant["cause"] == "a timer that waits for the tick"
        assert wakeup["dominant_ns"] > 0.9 * wakeup["latency_ns"]
        assert any("highres=off" in line for line in dominant["evidence"])
