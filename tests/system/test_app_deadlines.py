"""A wait until a time of a clock that can be set is told from all others."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rig import PATIENCE_S, rtscope

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("root")]

SOURCE = Path(__file__).parent.parent / "offenders" / "deadlines.c"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("needs gcc")
    out = tmp_path_factory.mktemp("deadlines") / "prog"
    argv = [gcc, "-O1", "-g", "-o", str(out), str(SOURCE), "-pthread", "-lrt"]
    subprocess.run(argv, check=True)
    return out


def found(program: Path, kind: str) -> list[dict[str, Any]]:
    words = ("app", "check", "--json", "--light", "--duration", "500ms")
    with rtscope(*words, "--thread", "cycle", "--", str(program), kind) as checked:
        done = checked.finish(4 * PATIENCE_S)
    assert done.status in (0, 1, 3), done.stderr
    findings = json.loads(done.stdout)["findings"]
    return [one for one in findings if one["id"] == "RA09"]


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        ("condition", "futex"),
        ("semaphore", "futex"),
        ("queue", "mq_timedreceive"),
        ("timer", "read"),
    ],
)
def test_a_time_of_that_clock_that_ends_the_wait(
    program: Path, kind: str, call: str
) -> None:
    (one,) = found(program, kind)

    assert one["title"] == "waits until a time of a clock that can be set"
    assert one["weight"] == "medium"
    assert one["count"] > 100
    assert one["detail"].startswith(f"until a time of CLOCK_REALTIME: {call} ")


def test_a_time_of_that_clock_that_is_never_reached(program: Path) -> None:
    (one,) = found(program, "guard")

    assert one["title"] == "a deadline is of a clock that can be set"
    assert one["weight"] == "low"
    assert one["detail"].endswith("(it ended 0)")


@pytest.mark.parametrize("kind", ["monotonic", "interval"])
def test_another_clock_and_an_interval_are_none(program: Path, kind: str) -> None:
    assert found(program, kind) == []
