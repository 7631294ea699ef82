"""Statistics that rtscope reads are those that the program itself has."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rig import PATIENCE_S

from rtscope.machine.filetree import FileReader
from rtscope.machine.tasks.statistics import (
    Program,
    Spread,
    State,
    TaskStatistics,
    read_statistics,
)

LIB = Path(__file__).parents[2] / "lib"

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc"),
]

FIELDS = (
    *("tid", "name", "period_ns", "offset_ns", "deadline_ns"),
    *("cycles", "missed", "overruns", "skipped", "minor_faults", "major_faults"),
    *("voluntary_switches", "involuntary_switches", "number"),
    *("usage_cycle", "usage_ns"),
)
SPREADS = ("latency", "execution", "response", "jitter")


@pytest.fixture(scope="module")
def says(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("says") / "says"
    sources = (LIB / "tests" / "says.c", LIB / "rtscope_task.c")
    subprocess.run(["gcc", "-O2", "-pthread", "-o", out, *sources], check=True)
    return out


@contextmanager
def spoken(
    says: Path, *words: str
) -> Iterator[tuple[list[dict[str, Any]], subprocess.Popen[bytes]]]:
    """Run the program; give what it says, while it lives."""
    with subprocess.Popen(
        [says, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        try:
            assert child.stdout is not None
            yield [json.loads(child.stdout.readline()) for _ in range(2)], child
        finally:
            child.kill()
            page(child.pid).unlink(missing_ok=True)


def page(pid: int) -> Path:
    return Path(f"/dev/shm/rtscope-task.{pid}")


def read(pid: int, *, lives: bool) -> Program:
    found = read_statistics(FileReader(), {pid} if lives else ())
    (program,) = (one for one in found.programs if one.pid == pid)
    return program


def assert_same(task: TaskStatistics, said: dict[str, Any]) -> None:
    assert {name: getattr(task, name) for name in FIELDS} == {
        name: said[name] for name in FIELDS
    }
    assert (task.state, task.in_cycle) == (State(said["state"]), bool(said["in_cycle"]))
    assert not task.torn
    for name in SPREADS:
        spread, told = getattr(task, name), said[name]
        assert isinstance(spread, Spread)
        assert (spread.count, spread.early) == (told["count"], told["early"])
        assert spread.overflow == told["overflow"]
        assert (spread.min_ns, spread.max_ns) == (told["min_ns"], told["max_ns"])
        assert spread.mean_ns == told["sum_ns"] / told["count"]
        assert [list(bucket) for bucket in spread.buckets] == told["buckets"]


def test_what_is_read_is_what_the_program_has(says: Path) -> None:
    with spoken(says) as (said, child):
        program = read(child.pid, lives=True)

    assert [task.name for task in program.tasks] == ["first", "second"]
    for task, one in zip(program.tasks, said, strict=True):
        assert_same(task, one)
        assert task.cycles == 40
        assert task.missed > 0
        assert task.usage_cycle == task.number
    assert program.tasks[0].skipped > 0
    assert program.tasks[1].overruns > 0
    assert (program.closed, program.crashed) == (False, False)


def test_what_is_kept_after_the_end_is_the_same(says: Path) -> None:
    with spoken(says, "keep") as (said, child):
        child.communicate(timeout=PATIENCE_S)
        program = read(child.pid, lives=False)

    assert child.returncode == 0
    assert (program.closed, program.crashed) == (True, False)
    for task, one in zip(program.tasks, said, strict=True):
        assert_same(task, one)


def test_what_a_killed_program_leaves_is_the_same(says: Path) -> None:
    with spoken(says) as (said, child):
        child.kill()
        child.wait(PATIENCE_S)
        program = read(child.pid, lives=False)

    assert (program.closed, program.crashed) == (False, True)
    for task, one in zip(program.tasks, said, strict=True):
        assert_same(task, one)


def test_nothing_is_left_of_a_program_that_ends_well(says: Path) -> None:
    with spoken(says) as (_, child):
        assert page(child.pid).exists()
        child.communicate(timeout=PATIENCE_S)

        assert not page(child.pid).exists()
