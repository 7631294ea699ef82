"""What `make run` does, with a fake rtscope: three commands, and one answer."""

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "setup" / "run"

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or shutil.which("apt-get") is None,
    reason="on this machine make run leaves the virtual board out",
)

# Leaves runs and pages where it is told to, unless it fails; says what it was told.
FAKE = """\
#!/bin/sh
echo "rtscope $*"
case $* in
*two-kernels*) status=$VIRTUAL ;;
explain*) status=$EXPLAIN ;;
*) status=$LOCAL ;;
esac
while [ "$#" -gt 1 ] && [ "$status" -ne 3 ]; do
    case $1 in
    --out)
        mkdir -p "$2/runs/003-memory-debian-6.12-rt" "$2/runs/004-memory-debian-6.12"
        : >"$2/report.html"
        ;;
    --html) : >"$2" ;;
    esac
    shift
done
exit "$status"
"""


@dataclass(frozen=True, slots=True)
class Ran:
    status: int
    said: list[str]

    def where(self, what: str) -> str:
        (line,) = (line.strip() for line in self.said if line.strip().startswith(what))
        return line.removeprefix(what).strip()

    @property
    def told(self) -> list[str]:
        return [line for line in self.said if line.startswith("rtscope ")]


def run(
    here: Path, *words: str, local: int = 0, virtual: int = 0, explain: int = 0
) -> Ran:
    fake = here / ".venv" / "bin" / "rtscope"
    fake.parent.mkdir(parents=True)
    fake.write_text(FAKE)
    fake.chmod(0o755)
    statuses = {"LOCAL": local, "VIRTUAL": virtual, "EXPLAIN": explain}
    env = {**os.environ, **{name: str(status) for name, status in statuses.items()}}
    done = subprocess.run(
        [SCRIPT, *words], cwd=here, env=env, capture_output=True, text=True, timeout=600
    )
    assert done.stderr == ""
    return Ran(done.returncode, done.stdout.splitlines())


def test_all_parts_run_and_their_pages_are_named_at_the_end(tmp_path: Path) -> None:
    ran = run(tmp_path, "--load", "idle,os")

    first, second, third = ran.told
    assert ran.status == 0
    assert first.endswith("--load idle,os")
    assert "examples/two-kernels.toml" in second
    assert third.startswith("rtscope explain ")
    assert "--run 004-memory-debian-6.12 " in third
    assert (tmp_path / ran.where("This machine:")).is_file()
    assert (tmp_path / ran.where("The virtual board:")).is_file()
    assert (tmp_path / ran.where("Its explanation:")).is_file()
    *_, last, rest = (line.strip() for line in ran.said)
    typed = last.removeprefix("To repeat it:").removesuffix("\\").split()
    assert f"{' '.join(typed)} {rest}" == f".venv/bin/{third.partition(' --html')[0]}"
    assert max(map(len, ran.said[-5:])) <= 80


def test_an_explanation_that_fails_leaves_both_reports(tmp_path: Path) -> None:
    ran = run(tmp_path, explain=3)

    assert ran.status == 3
    assert (tmp_path / ran.where("The virtual board:")).is_file()
    assert ran.where("Its explanation:") == "missing, see above"


def test_a_failed_comparison_leaves_the_measurement_and_is_told_by_the_status(
    tmp_path: Path,
) -> None:
    ran = run(tmp_path, virtual=3)

    assert ran.status == 3
    assert (tmp_path / ran.where("This machine:")).is_file()
    assert ran.where("The virtual board:").startswith("not measured, see above")


def test_a_machine_that_cannot_be_measured_still_shows_the_virtual_board(
    tmp_path: Path,
) -> None:
    ran = run(tmp_path, local=3)

    assert ran.status == 3
    assert ran.where("This machine:") == "not measured, see above"
    assert (tmp_path / ran.where("The virtual board:")).is_file()


def test_a_missed_deadline_of_this_machine_is_the_status(tmp_path: Path) -> None:
    assert run(tmp_path, "--deadline", "5us", local=1, virtual=3).status == 1


@pytest.mark.parametrize("status", [2, 130])
def test_a_wrong_option_and_ctrl_c_end_all_of_it(tmp_path: Path, status: int) -> None:
    ran = run(tmp_path, local=status)

    assert ran.status == status
    assert len(ran.told) == 1


def test_a_directory_of_ones_own_is_kept(tmp_path: Path) -> None:
    ran = run(tmp_path, "--out", "mine")

    assert ran.told[0] == "rtscope run --out mine"
    assert (tmp_path / "mine" / "report.html").is_file()
    assert ran.where("This machine:") == "in the directory that you named"
