"""The files for CI in the documentation: they parse, and their lines work."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakes.commandline import Rtscope
from fakes.measurements import record, thread
from rtscope.record.directory.records import create

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "run-in-ci.md"

FILES = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)


def scripts(value: Any) -> Iterator[str]:
    """Every line of a shell in the file."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("script", "after_script", "run", "steps"):
                yield from _lines(inner)
            yield from scripts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from scripts(inner)


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from value.splitlines()
    elif isinstance(value, list):
        yield from (one for one in value if isinstance(one, str))


def test_there_is_a_file_for_gitlab_github_and_lava() -> None:
    assert len(FILES) == 3


@pytest.mark.parametrize("number", range(3))
def test_the_lines_that_need_no_board_work(
    rtscope: Rtscope, here: Path, number: int
) -> None:
    store = create(here / "results", {}, command=("rtscope",))
    store.save(record([thread([5_000] * 5000)], "idle"))
    found = [line for line in scripts(yaml.safe_load(FILES[number])) if line]
    measured = [line for line in found if line.startswith("rtscope run ")]
    others = [line for line in found if re.match("rtscope (?:report|export) ", line)]
    assert measured
    assert others
    for line in others:
        words = shlex.split(line.removesuffix("|| true"))
        said = rtscope(*words[1:])
        assert said.status in (0, 4), said.err  # 4: too short for the claim
    for name in ("junit.xml", "summary.md"):
        asked = any(name in line for line in others)
        assert (here / name).is_file() is asked


@pytest.mark.parametrize("number", range(3))
def test_the_lines_that_need_a_board_are_understood(
    rtscope: Rtscope, here: Path, number: int
) -> None:
    for line in scripts(yaml.safe_load(FILES[number])):
        if line.startswith("rtscope run "):
            words = shlex.split(line.removesuffix("|| true"))
            said = rtscope(*words[1:], "--no-such-option")
            assert "No such option: --no-such-option" in said.err


@pytest.mark.skipif(
    not shutil.which("check-jsonschema"), reason="check-jsonschema is not installed"
)
@pytest.mark.parametrize(
    ("number", "schema"), [(0, "vendor.gitlab-ci"), (1, "vendor.github-workflows")]
)
def test_the_published_schemas_accept_the_files(
    tmp_path: Path, number: int, schema: str
) -> None:
    """Without network: check-jsonschema brings these schemas along."""
    path = tmp_path / "ci.yml"
    path.write_text(FILES[number])
    done = subprocess.run(
        ["check-jsonschema", "--builtin-schema", schema, path],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
