"""The exercises: the check finds each planted fault, and not in its solution."""

import json
import re
import shutil
import subprocess
from collections.abc import Set
from pathlib import Path

import pytest
from rig import PATIENCE_S, most_long, rtscope

ROOT = Path(__file__).parents[2]
EXERCISES = ROOT / "examples" / "exercises"
PAGE = (ROOT / "docs" / "how-to" / "learn-by-exercises.md").read_text("utf-8")
FAULTS = re.findall(r"^\| `([^`]+)` \| (RA\d\d) \|", PAGE, re.M)
TIMES = ("--settle", "300ms", "--duration", "1500ms")

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


def test_a_solution_has_the_finding_that_the_page_names(
    built: Path, root: None
) -> None:
    ((name, finding),) = re.findall(r"The solution of `(.+)` has (RA\d\d)", PAGE)

    assert finding in found_in(built / "solutions" / name)


@pytest.mark.parametrize(("name", "finding"), most_long(FAULTS))
def test_it_is_gone_in_the_solution(
    name: str, finding: str, built: Path, root: None
) -> None:
    # What else is found depends on who else works on this machine.
    assert finding not in found_in(built / "solutions" / name)
