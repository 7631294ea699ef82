"""The tutorials' commands, typed as they say, on whatever machine this is."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from rig import NEEDS_APT

from rtscope.record.resultdir import open_records

pytestmark = pytest.mark.system

ROOT = Path(__file__).parent.parent.parent
TUTORIALS = ROOT / "docs" / "tutorial"

# A noisy machine may miss any deadline, or give no valid figures; both are answers.
ANSWERS = {0, 1, 3, 4}

PATIENCE_S = 400.0
"""The first call for a virtual board fetches it."""


def type_all(tutorial: str, *, here: Path) -> None:
    (here / "examples").symlink_to(ROOT / "examples")
    text = (TUTORIALS / tutorial).read_text("utf-8")
    commands = re.findall(r"^ {4}\.venv/bin/rtscope (.*)$", text, re.M)
    assert commands
    for words in map(shlex.split, commands):
        done = subprocess.run(
            [sys.executable, "-m", "rtscope", *words],
            cwd=here,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        allowed = ANSWERS if "--deadline" in words else {0}
        assert done.returncode in allowed, (words, done.stderr)
        assert done.stdout, words


def test_the_first_measurement_runs_from_top_to_bottom(tmp_path: Path) -> None:
    type_all("first-measurement.md", here=tmp_path)

    assert (tmp_path / "rtscope-first" / "again.html").is_file()


@NEEDS_APT
@pytest.mark.long
def test_two_kernels_differ_and_one_of_them_gives_the_same_digits_again(
    tmp_path: Path,
) -> None:
    type_all("two-kernels-without-a-board.md", here=tmp_path)

    rt, ordinary = open_records(tmp_path / "rtscope-kernels")
    (again,) = open_records(tmp_path / "rtscope-again")
    assert (rt.run.kernel, ordinary.run.kernel) == ("debian-6.12-rt", "debian-6.12")
    assert again.result_digest == rt.result_digest != ordinary.result_digest
