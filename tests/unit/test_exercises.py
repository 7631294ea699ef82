"""The exercises of docs/how-to/learn-by-exercises.md: they compile, as it says."""

import difflib
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXERCISES = ROOT / "examples" / "exercises"
PAGE = (ROOT / "docs" / "how-to" / "learn-by-exercises.md").read_text("utf-8")
FINDINGS = ROOT / "src" / "rtscope" / "verbs" / "app" / "findings.toml"
NAMES = sorted(path.stem for path in EXERCISES.glob("*.c"))

MOST_WORDS = 400
MOST_CHANGED = 16
"""Lines: a fault is one thing, not another program."""


def test_the_page_has_a_row_for_each_exercise_and_each_has_a_solution() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| RA\d\d \|", PAGE, re.M)

    assert rows == NAMES
    assert sorted(path.stem for path in (EXERCISES / "solutions").glob("*.c")) == NAMES


def test_each_finding_that_the_page_names_exists() -> None:
    known = tomllib.loads(FINDINGS.read_text("utf-8"))

    assert set(re.findall(r"RA\d\d", PAGE)) <= set(known)


def test_the_page_is_short() -> None:
    assert len(PAGE.split()) <= MOST_WORDS


@pytest.mark.parametrize("name", NAMES)
def test_a_solution_changes_a_few_lines(name: str) -> None:
    fault, solved = (
        (folder / f"{name}.c").read_text("utf-8").partition("#define")[2].splitlines()
        for folder in (EXERCISES, EXERCISES / "solutions")
    )
    changed = [one for one in difflib.ndiff(fault, solved) if one[0] in "+-"]

    assert 0 < len(changed) <= MOST_CHANGED, changed


@pytest.mark.slow
@pytest.mark.skipif(
    not (shutil.which("gcc") and shutil.which("make")), reason="needs gcc and make"
)
def test_all_compile_without_a_warning(tmp_path: Path) -> None:
    argv = ["make", "-s", "-C", str(EXERCISES), f"OUT={tmp_path}", "CC=gcc -Werror"]
    subprocess.run(argv, check=True, timeout=60)

    for folder in (tmp_path, tmp_path / "solutions"):
        assert sorted(path.name for path in folder.iterdir() if path.is_file()) == NAMES
