"""Offences of a program are counted from outside as it counts them itself."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from rig import NEEDS_APT, rtscope

pytestmark = [pytest.mark.system, pytest.mark.long, NEEDS_APT]

SOURCE = Path(__file__).parent.parent / "offenders" / "twenty.c"
PATIENCE_S = 900.0
CYCLES = 18
"""No offence in the last three: periods that are skipped there are nobody's."""
PLACES = (
    ("pc", "debian-6.12-rt", "x86_64-linux-musl"),
    ("pc", "debian-6.12", "x86_64-linux-musl"),
    ("jh7110", "jh7110-6.12-rt", "riscv64-linux-musl"),
)
COUNTERS = ("blocking", "preemptions", "faults", "missed", "inversions", "times")
"""What the program prints behind the name of a thread."""
BY_SIGHT = ("blocking", "faults", "missed", "inversions")
FEWEST_KINDS = 20


@pytest.fixture(scope="module", params=PLACES, ids=lambda place: "-".join(place[:2]))
def answer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Any]:
    """One boot of each kernel serves all that is asserted of it."""
    board, kernel, target = request.param
    program = tmp_path_factory.mktemp("twenty") / "twenty"
    zig = (sys.executable, "-m", "ziglang", "cc", "-target", target)
    subprocess.run([*zig, "-O1", "-static", "-o", program, SOURCE], check=True)
    # a kernel that has just begun tests its ciphers, and the worst cycle waits for that
    done = rtscope(
        *("test", "--board", board, "--kernel", kernel, "--settle", "2s"),
        *("--warmup", "0s", "--json", "--", program, str(CYCLES)),
    ).finish(PATIENCE_S)
    assert done.status == 0, done.stderr
    row: Mapping[str, Any] = json.loads(done.stdout)
    return row


def counted(answer: Mapping[str, Any]) -> Mapping[str, Mapping[str, int]]:
    text: str = answer["runs"][0]["starts"][0]["stdout"]["text"]
    rows: Sequence[Sequence[str]] = [line.split() for line in text.splitlines()]
    return {
        name: dict(zip(COUNTERS, map(int, numbers), strict=True))
        for name, *numbers in rows
    }


def test_each_count_is_that_of_the_program(answer: Mapping[str, Any]) -> None:
    seen = {one["thread"]: one for one in answer["threads"]}
    own = counted(answer)

    assert len(own) >= FEWEST_KINDS
    for name, counts in own.items():
        wanted = {what: counts[what] for what in BY_SIGHT}
        assert {what: seen[name][what] for what in BY_SIGHT} == wanted, name
        assert counts["times"] == CYCLES // 5


def test_who_waits_in_a_call_says_in_which(answer: Mapping[str, Any]) -> None:
    says = {one["thread"]: one["worst"]["says"] for one in answer["threads"]}

    for name, call in (
        ("lending", "futex, ended by helper"),
        ("flock", "flock, ended by helper"),
        ("pipe", "read, ended by helper"),
        ("socket", "recvfrom, ended by helper"),
        ("signal", "rt_sigtimedwait, ended by helper"),
    ):
        waits, _, ended = call.partition(", ")
        # between them the program's function, where its stack can be read
        assert re.search(rf"waiting in {waits}( in [^,]*)?, {ended}", says[name])
    # a timer ends its sleep, whatever that interrupts
    assert "ended by" not in says["nap"]
    assert "preempted by urgent" in says["pushed"]
