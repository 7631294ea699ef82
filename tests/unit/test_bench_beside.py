"""The comparison with other tools: one that was not attached has not answered."""

import subprocess
import sys
import time

import pytest

from app_check_beside import (
    BLIND,
    CHECK,
    FAILED,
    OFFENCES,
    cell,
    cost_lines,
    ended_well,
)

STRACE = "strace -c"
WAITS = "import time; print('ready', flush=True); time.sleep(60)"
PATIENCE_S = 30


def started(program: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def test_a_tool_that_is_interrupted_was_attached() -> None:
    with started(WAITS) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        assert ended_well(STRACE, running)


@pytest.mark.parametrize("status", [0, 1])
def test_a_tool_that_ends_before_its_program_was_not_attached(status: int) -> None:
    with started(f"raise SystemExit({status})") as running:
        deadline = time.monotonic() + PATIENCE_S
        while running.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not ended_well(STRACE, running)


@pytest.mark.parametrize(
    ("tool", "status", "attached"),
    [(STRACE, 0, True), (STRACE, 1, False), (CHECK, 3, True), (CHECK, 2, False)],
)
def test_a_tool_whose_program_ended_tells_by_its_status(
    tool: str, status: int, attached: bool
) -> None:
    with started(f"raise SystemExit({status})") as running:
        running.wait(PATIENCE_S)
        assert ended_well(tool, running, lives=False) is attached


def test_a_cell_tells_blind_and_failed_from_not_found() -> None:
    write, preempted = OFFENCES["write"], OFFENCES["preempted"]

    assert cell(STRACE, write, "9 write", "3 read") == "yes"
    assert cell(STRACE, write, "9 read", "3 read") == "-"
    assert cell(STRACE, write, "9 write", "3 write") == "-"
    assert cell(STRACE, write, None, "3 read") == FAILED
    assert cell(STRACE, write, "9 write", None) == FAILED
    assert cell(STRACE, preempted, None, "3 read") == BLIND
    assert cell(CHECK, preempted, '{"id": "RA13"}', "{}") == "yes"


def test_a_tool_that_failed_costs_nothing_that_is_known() -> None:
    lines = list(cost_lines({None: [(20, 10), (20, 10)], STRACE: [(30, 15), None]}))

    assert [line for line in lines if line.startswith("| nothing")]
    assert not [line for line in lines if line.startswith("| strace")]
    assert lines[-1] == "\nstrace -c: failed in 1 of 2 runs"
