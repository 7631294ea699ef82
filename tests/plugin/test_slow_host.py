"""A virtual board gives the same results however the host schedules QEMU's threads."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from bare import NO_QEMU, ROOT, Board, build, compiled, find_qemu

CPUS = 4
QUANTUM = 1250


@pytest.fixture
def slow_host() -> Path:
    """Build what makes QEMU's threads late, each time at other moments."""
    return compiled(
        "slowhost.c",
        *("-target", "x86_64-linux-gnu.2.31", "-D_GNU_SOURCE", "-O2"),
        *("-shared", "-fPIC"),
    )


def slowed(qemu: Sequence[str], by: Path, *, said: Path) -> Sequence[str]:
    """Return how QEMU starts with a library that is loaded before, and says so."""
    words = [f"LD_PRELOAD={by}", f"SLOWHOST={said}"]
    if qemu[0] == "env":  # it clears the environment
        return [*qemu[:2], *words, *qemu[2:]]
    return ["env", *words, *qemu]


def counted(qemu: Sequence[str], guest: Path, work: Path) -> Mapping[str, Any]:
    """Return all that was counted, and the sums that the guest has marked."""
    board = Board(qemu, work)
    paths = work / "paths"
    summary = board.count(guest, cpus=CPUS, quantum=QUANTUM, out=paths, shift=1)
    return {**summary, "paths": paths.read_bytes()}


@pytest.mark.slow
def test_timers_come_at_the_same_instruction_on_a_slow_host(
    tmp_path: Path, slow_host: Path
) -> None:
    qemu = find_qemu()
    if qemu is None:
        pytest.skip(NO_QEMU)
    subprocess.run(["make", "-s", "-C", str(ROOT / "plugin"), "WERROR=1"], check=True)
    guest = build("timers.S", CPUS=CPUS, ROUNDS=200)

    expected = counted(qemu, guest, tmp_path)

    assert expected["marks"] == CPUS
    for said in (tmp_path / "first", tmp_path / "second"):
        assert counted(slowed(qemu, slow_host, said=said), guest, tmp_path) == expected
        assert said.exists()
