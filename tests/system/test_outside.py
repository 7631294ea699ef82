"""A program on a virtual board is seen from outside, as its own clock reads it."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from rig import NEEDS_APT, rtscope

pytestmark = [pytest.mark.system, pytest.mark.long, NEEDS_APT]

SOURCE = Path(__file__).parent.parent / "offenders" / "twoloops.c"
PATIENCE_S = 900.0
CYCLES = 1_000
"""Of fast, one a ms."""
TICK_MS = 4
"""The kernels' own timer interrupt, which may keep in step with the loops."""
FEW = 10
"""Other interrupts."""
KERNELS = ("debian-6.12-rt", "debian-6.12", "debian-6.17", "debian-6.1-rt")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The loops, static: the file that every board gets."""
    out = tmp_path_factory.mktemp("loops") / "twoloops"
    zig = (sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-musl")
    subprocess.run([*zig, "-O1", "-static", "-o", out, SOURCE], check=True)
    return out


@dataclass(frozen=True, slots=True)
class Answer:
    """What a test said, and the cycles that it kept."""

    status: int
    row: dict[str, Any]
    kept: bytes


def asked(program: Path, work: Path, kernel: str, *options: str | Path) -> Answer:
    work.mkdir(exist_ok=True)
    save = work / "kept.json"
    words = ("--kernel", kernel, "--settle", "0s", "--warmup", "0s", "--json")
    done = rtscope(
        *("test", *words, "--save", save, *options, "--", program, str(CYCLES))
    ).finish(PATIENCE_S)
    assert done.status in (0, 1), done.stderr
    return Answer(done.status, json.loads(done.stdout), save.read_bytes())


@pytest.fixture(scope="module", params=KERNELS)
def answer(
    request: pytest.FixtureRequest,
    program: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Answer:
    """One boot of each kernel serves all that is asserted of it."""
    return asked(program, tmp_path_factory.mktemp("one"), request.param)


def test_every_cycle_is_seen_and_differs_from_its_own_reading_by_a_constant(
    answer: Answer,
) -> None:
    text = answer.row["runs"][0]["starts"][0]["stdout"]["text"]
    own: dict[str, list[int]] = {}
    for name, due, began in (line.split() for line in text.splitlines()):
        own.setdefault(name, []).append(int(began) - int(due))
    kept = json.loads(answer.kept)["starts"][0]["threads"]

    assert {one["name"]: one["cycles"] for one in kept} == {"fast": 1_000, "slow": 500}
    for one in kept:
        apart = Counter(
            mine - seen
            for mine, seen in zip(own[one["name"]], one["latency_ns"], strict=True)
        )
        # the code between its first instruction and its reading, where no interrupt
        # comes between them; the guest's clock is cut to a ns. Whether the tick comes
        # there depends on when the program starts, and so on each byte of its file.
        usual = apart.most_common(1)[0][0]
        assert min(apart) in (usual - 1, usual)
        assert 0 < usual < 1_000
        same = apart[usual - 1] + apart[usual] + apart[usual + 1]
        assert one["cycles"] - same <= CYCLES // TICK_MS + FEW


def test_planted_work_is_seen_to_the_instruction(answer: Answer) -> None:
    kept = json.loads(answer.kept)["starts"][0]["threads"]
    (fast,) = (one for one in kept if one["name"] == "fast")
    usual = Counter(fast["instructions"]).most_common(1)[0][0]
    more = [n for n, seen in enumerate(fast["instructions"], 1) if seen > usual + 5_000]

    assert more == list(range(100, 1_001, 100))


def test_the_answer_says_all_threads_and_misses_nothing(answer: Answer) -> None:
    threads = {one["thread"]: one for one in answer.row["threads"]}

    assert {name: one["priority"] for name, one in threads.items()} == {
        "fast": "97",
        "slow": "60",
    }
    assert {one["missed"] for one in threads.values()} == {0}
    assert threads["fast"]["period_ns"] == 1_000_000
    # In the middle: the latest may wait for the kernel, which is nobody's turn.
    kept = json.loads(answer.kept)["starts"][0]["threads"]
    usual_ns = {one["name"]: median(one["latency_ns"]) for one in kept}
    assert usual_ns["slow"] > usual_ns["fast"]


def test_the_same_again_beside_other_work(program: Path, tmp_path: Path) -> None:
    first = asked(program, tmp_path / "a", KERNELS[0])
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            baseline = tmp_path / "a" / "kept.json"
            again = asked(
                *(program, tmp_path / "b", KERNELS[0]),
                *("--identical-to", baseline, "--response", "1us"),
            )
        finally:
            busy.kill()
    assert again.kept == first.kept
    assert again.row["differences"] == []
    assert (again.status, again.row["outcome"]) == (1, "broken")
