"""What is said of a unit's lines agrees with what systemd itself says of them."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rtscope.machine.audit.examine import auditing_a_unit, examine, read_context
from rtscope.machine.audit.model import CheckOutcome
from rtscope.machine.audit.unitfiles import load_unit
from rtscope.machine.filetree import FileReader

ANALYZE = shutil.which("systemd-analyze")

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze"),
]

GOOD = """\
CPUSchedulingPriority=80
CPUSchedulingPolicy=fifo
CPUAffinity=0 \\
# a comment
  1-2,3
LimitRTPRIO=10:99
LimitMEMLOCK=64M:infinity
RestrictRealtime=off
CapabilityBoundingSet=~CAP_KILL
"""
BAD = (
    "CPUSchedulingPolicy=deadline",
    "CPUSchedulingPriority=100",
    "CPUAffinity=a-b",
    "RestrictRealtime=maybe",
    "LimitRTPRIO=lots",
    "LimitMEMLOCK=64X",
    "no assignment",
)


def complaints(path: Path) -> str:
    assert ANALYZE is not None
    done = subprocess.run(
        [ANALYZE, "verify", "--man=no", path],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return "".join(
        line for line in done.stderr.splitlines(keepends=True) if path.name in line
    )


def outcome_of(path: Path) -> CheckOutcome:
    kinds = [kind for kind in auditing_a_unit() if kind.id == "unit_values"]
    context = read_context(FileReader(), kinds)
    unit = load_unit(str(path), FileReader())
    return examine(replace(context, unit=unit), kinds)[0].outcome


@pytest.mark.parametrize("line", [GOOD, *BAD], ids=lambda text: text.partition("\n")[0])
def test_systemd_and_rtscope_ignore_the_same_lines(tmp_path: Path, line: str) -> None:
    path = tmp_path / "rtscope-test.service"
    path.write_text(f"[Service]\nExecStart=/bin/true\n{line}\n")
    said = complaints(path)

    assert bool(said) is (outcome_of(path) is CheckOutcome.FAIL), said
    assert bool(said) is (line in BAD)
