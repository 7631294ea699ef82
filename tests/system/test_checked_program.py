"""The steps of the tutorial: each has the findings that the page names, and no others.

docs/tutorial/a-checked-program.md has a table of what each step removes. A finding of
it is in the check of the step before, and is gone from this one.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from rig import PATIENCE_S, most_long, rtscope

ROOT = Path(__file__).parents[2]
STEPS = ROOT / "examples" / "checked-program"
PAGE = ROOT / "docs" / "tutorial" / "a-checked-program.md"
NAIVE, LAST = "1-naive", "8-library"
SETTLES = ("300ms", "1s", "4s")
"""On a busy machine a program takes longer to make its thread real-time."""

OF_THE_MACHINE = {"RA12", "RA13", "RA14", "RA17"}
"""What other threads, the kernel and a host do to the last step."""

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        not (shutil.which("gcc") and shutil.which("make")), reason="needs gcc and make"
    ),
]


@dataclass(frozen=True, slots=True)
class Row:
    """A step of the page's table."""

    step: str
    gone: tuple[tuple[str, str], ...]
    """Ids of findings, with a word of their details."""


DETAILS = {"sleeps": "sleeps", "`write`": "write", "6 and 7": "only the first thread"}


def rows() -> Sequence[Row]:
    found = re.findall(
        r"^\| `([^`]+)` \| [^|]+ \| (RA[^|]+) \|$", PAGE.read_text(), re.M
    )
    return [Row(step, tuple(_gone(words))) for step, words in found]


def _gone(words: str) -> Sequence[tuple[str, str]]:
    ids, _, word = words.partition(" of ")
    detail = DETAILS[word] if word else ""
    return [(id_, detail) for id_ in ids.split(", ")]


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("steps")
    argv = ["make", "-s", "-C", str(STEPS), f"OUT={out}", "CC=gcc"]
    subprocess.run(argv, check=True)
    return out


@cache
def checked(steps: Path, step: str) -> Mapping[str, Any]:
    # What a library looks up late is of the library, not of the step.
    env = {**os.environ, "LD_BIND_NOW": "1"}
    for settle in SETTLES:
        times = ("--settle", settle, "--duration", "1500ms")
        words = ("app", "check", "--json", *times, "--", steps / step)
        with rtscope(*words, steps / "log", env=env) as running:
            done = running.finish(3 * PATIENCE_S)
        assert done.status in (0, 1), done.stderr
        document: Mapping[str, Any] = json.loads(done.stdout)
        if step == NAIVE or not finds(document, "RA01", ""):
            break
    return document


def finds(document: Mapping[str, Any], id_: str, word: str) -> bool:
    return any(
        one["id"] == id_ and word in one["detail"] for one in document["findings"]
    )


NAMES = [NAIVE, *(row.step for row in rows())]


def test_the_page_names_the_findings_that_may_stay() -> None:
    (line,) = (x for x in PAGE.read_text().splitlines() if "may stay" in x)

    assert {*re.findall(r"RA\d\d", line)} == OF_THE_MACHINE


def test_the_page_has_a_row_for_each_step() -> None:
    sources = sorted(path.stem for path in STEPS.glob("*.c"))

    assert sources == NAMES
    assert all(row.gone for row in rows())


@pytest.mark.parametrize("row", most_long(rows(), but=3), ids=lambda row: str(row.step))
def test_a_step_removes_what_the_page_says(row: Row, steps: Path, root: None) -> None:
    before = checked(steps, NAMES[NAMES.index(row.step) - 1])
    after = checked(steps, row.step)

    for id_, word in row.gone:
        assert finds(before, id_, word), (id_, before["findings"])
        assert not finds(after, id_, word), (id_, after["findings"])


def test_the_lock_of_step_6_is_found(steps: Path, root: None) -> None:
    assert not finds(checked(steps, "5-clock"), "RA10", "")
    assert finds(checked(steps, "6-logger"), "RA10", "")


def test_in_the_last_step_nothing_is_found_but_what_the_machine_does(
    steps: Path, root: None
) -> None:
    document = checked(steps, LAST)

    assert {one["id"] for one in document["findings"]} <= OF_THE_MACHINE
    assert document["not_seen"] == []


def test_the_last_step_has_statistics_and_leaves_none_behind(
    steps: Path, root: None
) -> None:
    document = checked(steps, LAST)
    (program,) = document["statistics"]
    (task,) = program["tasks"]

    assert (task["name"], task["period_ns"]) == ("control", 1_000_000)
    assert task["cycles"] > 0
    assert not Path(f"/dev/shm/rtscope-task.{document['pid']}").exists()
