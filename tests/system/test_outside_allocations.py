"""Allocations, faults and waits are seen with their lines, as the program counts."""

import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rig import NEEDS_APT, rtscope

pytestmark = [pytest.mark.system, pytest.mark.long, NEEDS_APT]

SOURCE = Path(__file__).parent.parent / "offenders" / "allocates.c"
PATIENCE_S = 900.0
CYCLES = 200
TIMES = ("--warmup", "0s", "--duration", "400ms")
"""All its cycles, and some time in which it only stays."""
ZERO = ("--allocations", "0", "--faults", "0", "--blocking", "0")
PLACES = {
    "dynamic": ("pc", "debian-6.12-rt"),
    "static": ("pc", "debian-6.12"),
    "riscv64": ("jh7110", "jh7110-6.12-rt"),
}
TARGETS = {"static": "x86_64-linux-musl", "riscv64": "riscv64-linux-musl"}
CALLS = Counter(
    {
        **{"malloc": CYCLES // 10, "calloc": CYCLES // 50, "realloc": CYCLES // 50},
        **{"posix_memalign": CYCLES // 50, "aligned_alloc": CYCLES // 50},
        "free": CYCLES // 10 + 3 * (CYCLES // 50),
    }
)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The program with the C library of this computer, and static ones with musl."""
    folder = tmp_path_factory.mktemp("allocates")
    built = {name: folder / name for name in PLACES}
    options = ("-g", "-O1", "-pthread")
    subprocess.run(["gcc", *options, "-o", built["dynamic"], SOURCE], check=True)
    for name, target in TARGETS.items():
        zig = (sys.executable, "-m", "ziglang", "cc", "-target", target, "-static")
        subprocess.run([*zig, *options, "-o", built[name], SOURCE], check=True)
    return built


def asked(program: Path, board: str, kernel: str) -> tuple[int, dict[str, Any]]:
    words = ("--board", board, "--kernel", kernel, "--settle", "0s", "--json")
    done = rtscope(*("test", *words, *TIMES, *ZERO, "--", program, str(CYCLES))).finish(
        PATIENCE_S
    )
    assert done.status in (1, 3), done.stderr
    return done.status, json.loads(done.stdout)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a test said of the thread control."""

    row: dict[str, Any]

    @property
    def said(self) -> list[int]:
        """What the program counted: calls of the allocator, faults, waits."""
        text = self.row["runs"][0]["starts"][0]["stdout"]["text"]
        return [int(one) for one in text.split()]

    @property
    def threads(self) -> dict[str, dict[str, Any]]:
        """The judged threads by their names."""
        return {one["thread"]: one for one in self.row["threads"]}

    def budget(self, name: str) -> dict[str, Any]:
        """Return a budget."""
        found: dict[str, Any]
        (found,) = (
            one
            for one in self.row["budgets"]
            if (one["thread"], one["budget"]) == ("control", name)
        )
        return found


@pytest.fixture(scope="module", params=PLACES)
def seen(request: pytest.FixtureRequest, programs: dict[str, Path]) -> Seen:
    """One boot of each kernel serves all that is asserted of it."""
    status, row = asked(programs[request.param], *PLACES[request.param])
    assert status == 1
    return Seen(row)


def line_of(comment: str) -> int:
    lines = SOURCE.read_text().splitlines()
    (found,) = (n for n, line in enumerate(lines, 1) if f"/* {comment} */" in line)
    return found


def test_allocations_are_those_that_the_program_counts(seen: Seen) -> None:
    found = seen.budget("allocations")
    by_name: Counter[str] = Counter()
    for one in found["places"]:
        by_name[one["what"]] += one["times"]

    assert found["value"] == seen.said[0] == CALLS.total()
    assert by_name == CALLS


def test_each_is_where_the_program_has_it(seen: Seen) -> None:
    (malloc,) = (
        one for one in seen.budget("allocations")["places"] if one["what"] == "malloc"
    )
    touched = [
        one for one in seen.budget("faults")["places"] if one["function"] == "touch"
    ]

    assert (malloc["function"], malloc["line"]) == (
        "write_log",
        line_of("the line of allocations"),
    )
    assert {one["line"] for one in touched} == {line_of("the line of faults")}
    assert sum(one["times"] for one in touched) == seen.said[1]
    lines = {one["line"] for one in seen.budget("blocking")["places"]}
    # a lock of musl spins before it sleeps, on a board of two CPUs to its end
    assert lines == {line_of("the line of the lock")} or (
        not lines and seen.row["name"] == "static"
    )
    said = seen.row["answer"]
    assert re.search(r"malloc in write_log\(\) allocates\.c:\d+ \(20 times\)", said)


def test_each_function_is_in_as_many_cycles_as_the_program_calls_it(
    seen: Seen,
) -> None:
    (control,) = (
        one for one in seen.row["code"]["threads"] if one["thread"] == "control"
    )
    own = {
        one["function"]: one
        for one in control["functions"]
        if one["file"] == SOURCE.name
    }
    planted = {"push": 100, "write_log": 10, "grow": 50, "touch": 20}

    assert control["cycles_left_out"] == 0
    assert {name: own[name]["cycles"] for name in planted} == {
        name: CYCLES // each for name, each in planted.items()
    }
    assert own["run"]["cycles"] == seen.threads["control"]["cycles"]
    most = seen.threads["control"]["instructions"]
    assert all(0 < one["instructions"] <= most for one in control["functions"])


def test_what_only_another_thread_enters_is_told_from_what_none_does(
    seen: Seen,
) -> None:
    (file,) = seen.row["code"]["files"]

    assert "main" in file["other_threads"]
    assert file["never"] == []
    assert file["functions"] > len(file["other_threads"])
    assert "run" not in file["other_threads"]


def test_the_same_again_and_no_guess_without_names(
    programs: dict[str, Path], tmp_path: Path
) -> None:
    _, first = asked(programs["dynamic"], *PLACES["dynamic"])
    _, again = asked(programs["dynamic"], *PLACES["dynamic"])
    assert again["budgets"] == first["budgets"]
    assert again["threads"] == first["threads"]

    bare = tmp_path / "bare"
    subprocess.run(["strip", "-o", bare, programs["static"]], check=True)
    _, row = asked(bare, *PLACES["static"])
    found = Seen(row).budget("allocations")
    assert (found["value"], found["outcome"]) == (None, "not seen")
    assert "static, and stripped of the names of its functions" in found["why"]
