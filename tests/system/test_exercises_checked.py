"""The exercises: the check finds each planted fault, and nothing in its solution."""

import json
import re
import shutil
import subprocess
from collections.abc import Set
from pathlib import Path

import pytest
from rig import PATIENCE_S, rtscope

ROOT = Path(__file__).parents[2]
EXERCISES = ROOT / "examples" / "exercises"
PAGE = (ROOT / "docs" / "how-to" / "learn-by-exercises.md").read_text("utf-8")
FAULTS = re.findall(r"^\| `([^`]+)` \| (RA\d\d) \|", PAGE, re.M)
TIMES = ("--settle", "300ms", "--duration", "1500ms")

(_LINE,) = (line for line in PAGE.splitlines() if "may stay" in line)
OF_THE_MACHINE = frozenset(re.findall(r"RA\d\d", _LINE))

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        not (shutil.which("gcc") and shutil.which("make")), reason="needs gcc and make"
    ),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("exercises")
    argv = ["make", "-s", "-C", str(EXERCISES), f"OUT={out}", "CC=gcc"]
    subprocess.run(argv, check=True, timeout=PATIENCE_S)
    return out


def found_in(program: Path) -> Set[str]:
    with rtscope("app", "check", "--json", *TIMES, "--", program) as running:
        done = running.finish(3 * PATIENCE_S)
    assert done.status in (0, 1), done.stderr
    return {one["id"] for one in json.loads(done.stdout)["findings"]}


@pytest.mark.parametrize(("name", "finding"), FAULTS)
def test_the_planted_fault_is_found(
    name: str, finding: str, built: Path, root: None
) -> None:
    assert finding in found_in(built / name)


@pytest.mark.parametrize("name", [name for name, _ in FAULTS])
def test_nothing_is_found_in_a_solution_but_what_the_machine_does(
    name: str, built: Path, root: None
) -> None:
    # With inheritance it still waits for the lock, as the page says.
    waits = {"RA09"} if name == "4-lock" else set()
    assert found_in(built / "solutions" / name) <= OF_THE_MACHINE | waits
