"""`git bisect run` with the script of the how-to guide, on records of a fake board."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fakes.boardruns import keep, near
from pages.blocks import all_pages

GUIDE = "how-to/find-the-change-that-made-a-kernel-worse.md"
FIRST_BAD = 6
COMMITS = 9

FOUND = re.compile("is the first '?bad'? commit")
"""git 2.55 has quotes."""

RTSCOPE = f"""#!/bin/sh
# Measures a kernel by giving the records that were prepared for it.
if test "$1" = run; then
    cp -r "../prepared/$(cat number)" "../steps/$(git rev-parse --short=12 HEAD)"
else
    exec {sys.executable} -m rtscope "$@"
fi
"""


def git(where: Path, *words: str) -> str:
    argv = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
    done = subprocess.run(argv, cwd=where, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def board(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with nine commits, the script of the guide, and what it calls."""
    [page] = [one for one in all_pages() if one.name == GUIDE]
    [script] = [one.text for one in page.blocks if one.file == "step.sh"]
    program(here / "step.sh", script)
    program(here / "build.sh", "#!/bin/sh\ntest ! -e broken\n")
    program(here / "install-and-boot.sh", "#!/bin/sh\n")
    (here / "bin").mkdir()
    program(here / "bin/rtscope", RTSCOPE)
    program(here / "bin/ssh", "#!/bin/sh\ngit rev-parse HEAD\n")
    program(here / "bin/make", "#!/bin/sh\ngit rev-parse HEAD\n")
    monkeypatch.setenv("PATH", f"{here / 'bin'}:{os.environ['PATH']}")
    (here / "steps").mkdir()
    keep(here / "good", near(40, kernel="6.12.0"))
    keep(here / "bad", near(80, kernel="6.12.9"))
    tree = here / "linux"
    tree.mkdir()
    git(tree, "init", "--quiet")
    for number in range(COMMITS + 1):
        base = 80 if number >= FIRST_BAD else 40
        runs = near(base + number / 10 + 0.01, kernel=f"6.12.{number}-test")
        keep(here / "prepared" / str(number), runs)
        (tree / "number").write_text(f"{number}\n")
        git(tree, "add", "--all")
        git(tree, "commit", "--quiet", "-m", f"change {number}")
    git(tree, "bisect", "start", "HEAD", f"HEAD~{COMMITS}")
    return here


def search(board: Path) -> str:
    return git(board / "linux", "bisect", "run", "../step.sh")


@pytest.mark.slow
def test_git_finds_the_first_bad_commit_by_the_script_of_the_guide(
    board: Path,
) -> None:
    said = search(board)

    assert FOUND.search(said), said
    assert f"change {FIRST_BAD}\n" in said
    assert len(list((board / "steps").iterdir())) in (3, 4)


@pytest.mark.slow
def test_a_kernel_with_too_few_runs_is_skipped_and_git_goes_around_it(
    board: Path,
) -> None:
    few = near(40.5, kernel="6.12.4-test")[:2]
    path = board / "prepared/4"
    for run in (path / "runs").iterdir():
        if run.name not in {one.run.id for one in few}:
            (run / "record.json").unlink()
            run.rmdir()

    said = search(board)

    assert "skip: too few valid runs" in said
    assert f"change {FIRST_BAD}\n" in said


@pytest.mark.slow
def test_ends_that_do_not_differ_stop_the_search_at_its_first_step(
    board: Path,
) -> None:
    (board / "bad").rename(board / "bad-before")
    keep(board / "bad", near(40.05, kernel="6.12.9"))

    said = search(board)

    assert "no evidence at 1 %" in said
    assert "exit code 255" in said
    assert not FOUND.search(said)
    assert len(list((board / "steps").iterdir())) == 1


@pytest.mark.slow
def test_a_missing_rtscope_and_another_kernel_stop_the_search(board: Path) -> None:
    program(board / "bin/ssh", "#!/bin/sh\necho 6.12.0\n")
    other = search(board)
    program(board / "bin/ssh", "#!/bin/sh\ngit rev-parse HEAD\n")
    program(board / "bin/rtscope", RTSCOPE.replace(sys.executable, "/gone"))
    missing = search(board)

    for said in (other, missing):
        assert "exit code 255" in said
        assert not FOUND.search(said)


@pytest.mark.slow
def test_the_exit_status_alone_leads_git_as_well(board: Path) -> None:
    judge = "--good ../good --bad ../bad"
    program(
        board / "step.sh",
        "#!/bin/sh\nout=../prepared/$(cat number)\n"
        f"exec rtscope bisect --measured $out {judge}\n",
    )
    found = search(board)
    git(board / "linux", "bisect", "reset")
    git(board / "linux", "bisect", "start", "HEAD", f"HEAD~{COMMITS}")
    (board / "good/runs/001-memory/record.json").write_text("{}")
    stopped = search(board)

    assert f"change {FIRST_BAD}\n" in found
    assert not FOUND.search(stopped)
    assert "exit code 128" in stopped
