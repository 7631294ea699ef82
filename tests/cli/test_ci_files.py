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


# --- the files of examples/ci, which need no runner of one's own ----------------------

CI = PAGE.parents[2] / "examples" / "ci"
TESTED = CI.parent / "tested-program"


def test_the_action_and_the_templates_name_files_that_there_are(
    rtscope: Rtscope, here: Path
) -> None:
    action = yaml.safe_load((CI / "action.yml").read_text())
    workflow = yaml.safe_load((CI / "github.yml").read_text())
    template = yaml.safe_load((CI / "gitlab.yml").read_text())
    shutil.copytree(CI, here / "ci")
    shutil.copytree(TESTED, here, dirs_exist_ok=True)

    given = workflow["jobs"]["test"]["steps"][1]["with"]["test"]
    ran = [line for line in scripts(action) if "rtscope-test" in line]
    (script,) = template["real-time"]["script"]
    assert ran == ['sh "$ACTION/rtscope-test" $TEST']
    assert shlex.split(script) == ["sh", "ci/rtscope-test", *shlex.split(given)]
    assert (here / "ci" / "rtscope-test").is_file()
    assert set(action["inputs"]) >= set(workflow["jobs"]["test"]["steps"][1]["with"])
    # the options are known: what is missing is a file of the reader
    said = rtscope("test", *shlex.split(given))
    assert "baseline.json" in said.err


def test_the_script_is_one_for_every_shell() -> None:
    script = CI / "rtscope-test"

    assert script.stat().st_mode & 0o111
    subprocess.run(["sh", "-n", script], check=True)
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", script], check=True)


@pytest.mark.skipif(
    not shutil.which("check-jsonschema"), reason="check-jsonschema is not installed"
)
@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("gitlab.yml", "vendor.gitlab-ci"),
        ("github.yml", "vendor.github-workflows"),
        ("action.yml", "vendor.github-actions"),
    ],
)
def test_the_published_schemas_accept_the_examples(name: str, schema: str) -> None:
    words = ["check-jsonschema", "--builtin-schema", schema, str(CI / name)]
    done = subprocess.run(words, check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout
