"""`rtscope bisect --test`, as typed: real commits, and a test that boots no board."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from fakes import fakeprogramtest
from fakes.commandline import Rtscope
from fakes.searched import git
from pages.jsonkeys import keys_without_words
from rtscope.verbs.bisect import program

COMMITS, FIRST_BAD, BROKEN = 12, 8, 6
BISECT = ("bisect", "--test", "linux/control.toml", "--good", "start", "--bad", "HEAD")


@pytest.fixture(autouse=True)
def _places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    fake = str(Path(fakeprogramtest.__file__))
    monkeypatch.setattr(program, "COMMAND", (sys.executable, fake))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the repository of these tests is kept once it is made."""
    return tmp_path_factory.mktemp("made") / "linux"


@pytest.fixture
def history(here: Path, made: Path) -> list[str]:
    """A start and twelve commits: slow from the eighth on, the sixth is broken."""
    if made.exists():
        shutil.copytree(made, here / "linux", symlinks=True)
    else:
        _make_history(here)
        shutil.copytree(here / "linux", made, symlinks=True)
    return git("rev-list", "--reverse", "HEAD").split()


def _make_history(here: Path) -> None:
    (here / "linux").mkdir()
    git("init", "--quiet")
    for number in range(COMMITS + 1):
        work = 90_000 if number >= FIRST_BAD else 20_000
        end = " broken" if number == BROKEN else ""
        (here / "linux/control.c").write_text(f"// {work} {number}{end}\n")
        (here / "linux/control.toml").write_text(f"# 40000 {number}\n")
        git("add", "--all")
        git("commit", "--quiet", "-m", f"control: Step {number}")
        if not number:
            git("tag", "start")


@pytest.mark.slow
def test_the_first_bad_commit_is_found_and_one_that_does_not_build_is_skipped(
    rtscope: Rtscope, history: list[str], tmp_path: Path
) -> None:
    said = rtscope(*BISECT, "--out", "out", "--json")

    assert said.status == 0, said.err
    found = json.loads(said.out)
    assert keys_without_words(found, "rtscope bisect --test --json") == []
    (commit,) = found["commits"]
    assert commit["name"] == history[FIRST_BAD]
    assert commit["title"] == f"control: Step {FIRST_BAD}"
    assert commit["author"].startswith("a <a@b>, ")
    assert found["before"] == history[FIRST_BAD - 1]
    values = [found["answers"][s]["budgets"][0]["value"] for s in ("before", "after")]
    assert values == [20_000, 90_000]
    assert found["cause"] == "its own code"
    (skipped,) = found["skipped"]
    assert skipped == {
        "name": history[BROKEN],
        "why": "it gives no result: the build command ended with status 2: make",
    }
    assert git("status", "--porcelain") == ""
    assert not list((tmp_path / "rtscope/bisect").iterdir())


@pytest.mark.slow
def test_the_terminal_has_commit_author_figures_and_cause(
    rtscope: Rtscope, history: list[str]
) -> None:
    said = rtscope(*BISECT, "--out", "out")

    assert said.status == 0, said.err
    lines = said.out.splitlines()
    first = history[FIRST_BAD][:12]
    assert lines[0] == f"{first} is the first bad commit: control: Step {FIRST_BAD}"
    assert "control: response" in said.out
    assert "20.0   90.0     40.0" in said.out
    assert "control: cycle 0 is the first." in said.out
    assert "its own code" in lines
    assert f"skipped {history[BROKEN][:12]}: it gives no result" in said.out
    assert len(lines) <= 22


@pytest.mark.slow
def test_it_goes_on_where_it_was_ended(rtscope: Rtscope, history: list[str]) -> None:
    rtscope(*BISECT, "--out", "out")
    journal = Path("out/steps.jsonl")
    done = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(done[:3]))

    refused = rtscope("bisect", "--resume", "out")
    said = rtscope("bisect", "--resume", "out", "--yes", "--json")

    assert refused.status == 2
    assert "add --yes" in refused.err
    assert said.status == 0, said.err
    assert json.loads(said.out)["commits"][0]["name"] == history[FIRST_BAD]
    assert journal.read_text().splitlines(keepends=True)[:3] == done[:3]


def test_the_test_of_now_judges_every_commit(
    rtscope: Rtscope, history: list[str], here: Path
) -> None:
    (here / "linux/control.toml").write_text("# 10000 of now\n")

    said = rtscope(*BISECT, "--out", "out")

    assert said.status == 2
    assert "--good is bad already: worst response 20000 ns" in said.err
    assert (here / "linux/control.toml").read_text() == "# 10000 of now\n"


@pytest.mark.slow
def test_a_share_finds_what_breaks_no_budget(
    rtscope: Rtscope, history: list[str], here: Path
) -> None:
    (here / "linux/control.toml").write_text("# 900000 of now\n")

    kept = rtscope(*BISECT, "--out", "one")
    worse = rtscope(*BISECT, "--out", "two", "--margin", "2%", "-q")

    assert kept.status == 4
    assert "--bad is not worse: nothing to search for" in kept.out
    assert worse.status == 0, worse.err
    assert worse.out.startswith(history[FIRST_BAD][:12])


def test_a_bug_of_the_test_ends_the_search(
    rtscope: Rtscope, history: list[str], here: Path
) -> None:
    (here / "linux/control.c").write_text("// 90000 crash\n")
    git("commit", "--quiet", "-am", "control: Crash")

    said = rtscope(*BISECT, "--out", "out")

    assert said.status == 3
    assert "rtscope test ended with status 70: a bug" in said.err
    assert "to continue: rtscope bisect --resume out" in said.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--test", "none.toml"], "--test none.toml: No such file"),
        (["--test", "alone.toml"], "in no git repository"),
        (["--test", "linux/control.toml"], "name both ends, --good and --bad"),
        (["--test", "linux/control.toml", "--load", "cpu"], "--load is for kernels"),
        ([*BISECT[1:], "--margin", "20us"], "with --test write a share"),
        ([*BISECT[1:5], "--bad", "none"], "no such commit, branch or tag"),
    ],
)
def test_a_mistake_is_refused_before_anything_is_tested(
    rtscope: Rtscope, history: list[str], here: Path, words: list[str], said: str
) -> None:
    (here / "alone.toml").write_text("# 1\n")

    answer = rtscope("bisect", *words, "--out", "out")

    assert answer.status == 2, answer.err
    assert said in answer.err
    assert not (here / "out").exists()
