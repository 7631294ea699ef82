"""
Sections of a known length on the jh7110, and what rtscope says of their length.

A kernel without modules gets them by a patch of its image. Their length is counted in
instructions: 500 for each virtual us. What other CPUs do may change it by a quantum,
and the kernel executes a little around it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rig import NEEDS_APT, are_built

from culprits.build import know_kernel
from culprits.measure import finished
from planted.patch import PLACE, build_sweep, patched_kernel
from rtscope.boards.catalogue import get_board
from rtscope.host.units import NS_PER_US

KERNEL = "jh7110-6.12-rt"
BOARD = get_board("jh7110")
QUANTUM_NS = (BOARD.quantum_instructions or 0) << BOARD.shift
AROUND_NS = 1_500
"""To take a lock and to release it, with preemption off, on both CPUs."""
WITHIN_NS = QUANTUM_NS + AROUND_NS
INTERRUPT_NS = 3_000
"""More than the timer's takes; one that comes inside of a section is part of it."""
CPU, OTHER_CPU = 1, 2
BUSY = f"stress-ng --matrix {BOARD.cpus} --oomable --timeout 60s -q & "
LATER_NS = 4_000
"""So much later in the interval is each section than the one before it."""

pytestmark = [
    pytest.mark.system,
    pytest.mark.long,
    NEEDS_APT,
    pytest.mark.skipif(
        not are_built(KERNEL),
        reason="its kernel takes minutes to compile: rtscope board build jh7110",
    ),
]


@dataclass(frozen=True, slots=True)
class Planted:
    """What is planted again and again, until it meets a wake-up that is due."""

    us: int
    cause: str
    interval_ms: int = 1
    lock: bool = False

    @property
    def script(self) -> str:
        """How `sweep` is started."""
        every_ns = self.interval_ms * 1_000_000 + LATER_NS
        other = f" {OTHER_CPU}" if self.lock else ""
        return f"exec /files/sweep {CPU} {every_ns} {self.us}{other}"


PLANTED = {
    "100 us without preemption": Planted(100, "preemption off"),
    "1,000 us without preemption": Planted(1000, "preemption off", interval_ms=2),
    "a lock held for 200 us": Planted(200, "waiting for a lock", lock=True),
}


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The patched kernel, whose symbols are known."""
    image = patched_kernel(KERNEL, tmp_path_factory.mktemp("kernel"))
    know_kernel(str(image), board=BOARD.name)
    return image


@pytest.mark.parametrize("others", ["idle", "busy"])
@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_a_section_is_as_long_as_it_was_planted(
    kernel: Path, tmp_path: Path, planted: Planted, others: str
) -> None:
    out = tmp_path / "out"
    before = BUSY if others == "busy" else ""
    finished(
        *("run", "--target", f"virtual:{BOARD.name}", "--kernel", kernel),
        *("--duration", "1s", "--interval", f"{planted.interval_ms}ms"),
        *("--warmup", "200ms", "--settle", "0s", "--cpus", str(CPU), "--worst", "8"),
        *("--guest-files", build_sweep(tmp_path)),
        *("--load", "custom", "--command", f"sh -c '{before}{planted.script}'"),
        *("--out", out),
    )
    planted_ns = planted.us * NS_PER_US

    (explained,) = json.loads(finished("explain", out, "--json").stdout)
    worst = max(explained["wakeups"], key=lambda wakeup: wakeup["latency_ns"])
    assert worst["segments"][worst["dominant_segment"]]["cause"] == planted.cause
    assert executed_ns(worst["segments"]) == pytest.approx(planted_ns, abs=WITHIN_NS)

    (bounded,) = json.loads(finished("explain", out, "--bound", "--json").stdout)
    (cpu,) = bounded["bounds"]
    (longest,) = (s for s in cpu["sections"] if s["section"] == "POID")
    assert PLACE in longest["callers"]
    excess_ns = longest["duration_ns"] - planted_ns
    assert -WITHIN_NS <= excess_ns <= WITHIN_NS + INTERRUPT_NS


def executed_ns(segments: Sequence[dict[str, Any]]) -> int:
    """Return what of a wake-up's path belongs to the planted section."""
    return sum(s["end_ns"] - s["begin_ns"] for s in segments if s["name"] == PLACE)
