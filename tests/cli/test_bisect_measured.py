"""`rtscope bisect --measured`, as typed: verdicts, and errors that stop git."""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.boardruns import keep, near, runs_of
from fakes.commandline import Rtscope
from fakes.measurements import on_board
from rtscope.record.caveats.catalogue import make
from rtscope.record.model import RunRecord
from rtscope.verbs.bisect import bisect

JUDGE = ("bisect", "--measured", "new", "--good", "good", "--bad", "bad")
GOOD, BAD, SKIP, STOP = 0, 1, 125, 128


@pytest.fixture
def ends(here: Path) -> Path:
    """Records of a good and a bad kernel, five runs each."""
    keep(here / "good", near(40, kernel="6.12.1"))
    keep(here / "bad", near(80, kernel="6.12.9"))
    return here


def new_runs(base_us: float) -> list[RunRecord]:
    return near(base_us, kernel="6.12.5")


@pytest.mark.parametrize(
    ("runs", "status", "answer"),
    [
        (
            new_runs(41),
            GOOD,
            "good: --measured new is better than --bad bad, and not worse than --good "
            "good",
        ),
        (
            new_runs(81),
            BAD,
            "bad: --measured new is worse than --good good, and not better than --bad "
            "bad",
        ),
        (
            new_runs(60),
            SKIP,
            "skip: --measured new is worse than --good good and better than --bad bad: "
            "more than one change makes the difference; search on either side of it, "
            "with this record as an end",
        ),
        (
            new_runs(81)[:3],
            SKIP,
            "skip: too few valid runs of --measured new: 3, and a test at 1 % needs 4: "
            "measure it with --repetitions 5",
        ),
        (
            runs_of([38, 65, 66, 76, 82], kernel="6.12.5"),
            SKIP,
            "skip: no evidence that --measured new differs from --good good, nor from "
            "--bad bad: 5 runs decide in four cases of five, and this is the fifth: "
            "measure it again, e.g. with --repetitions 10",
        ),
    ],
)
def test_the_status_and_the_first_word_are_those_of_git(
    rtscope: Rtscope,
    ends: Path,
    runs: Sequence[RunRecord],
    status: int,
    answer: str,
) -> None:
    keep(ends / "new", runs)

    assert rtscope(*JUDGE, "-q").out == f"{answer}\n"
    said = rtscope(*JUDGE)
    assert said.status == status
    assert " ".join(said.out.split()).startswith(answer)


def test_an_undecided_kernel_says_how_many_runs_would_decide(
    rtscope: Rtscope, ends: Path
) -> None:
    keep(ends / "close", runs_of([56, 64, 67, 70, 87], kernel="6.12.9"))
    keep(ends / "new", runs_of([39, 40, 41, 72, 79], kernel="6.12.5"))

    said = rtscope(*JUDGE[:-1], "close")

    assert said.status == SKIP
    words = " ".join(said.out.split())
    assert "runs of each kernel, of the ends as well, decide in four cases" in words


def test_ends_that_differ_by_too_little_to_decide_most_steps_stop_it(
    rtscope: Rtscope, here: Path
) -> None:
    keep(here / "good", runs_of([30, 40, 55, 70, 80], kernel="6.12.1"))
    keep(here / "bad", runs_of([82, 84, 86, 100, 120], kernel="6.12.9"))
    keep(here / "new", near(50, kernel="6.12.5"))

    said = rtscope(*JUDGE)

    assert said.status == STOP
    words = " ".join(said.err.split())
    assert "--bad bad is worse than --good good, and so little that most" in words
    assert "9 runs of each decide four kernels of five" in words
    assert "with --repetitions 9" in words


def test_the_terminal_has_the_runs_the_tests_and_the_doubts(
    rtscope: Rtscope, ends: Path
) -> None:
    keep(ends / "new", new_runs(81))

    said = rtscope(*JUDGE).out

    assert "max under memory, µs" in said
    assert "against --good good: worse, 2.01 times (p = 0.0079)" in said
    assert "against --bad bad: no difference shown (p = " in said
    assert "All runs of a kernel are of one boot" in said
    assert "The order of these runs was not drawn at random" in said
    assert len(said.splitlines()) <= 22


def test_the_same_as_json(rtscope: Rtscope, ends: Path) -> None:
    keep(ends / "new", new_runs(81))

    said = rtscope(*JUDGE, "--json")

    found = json.loads(said.out)
    assert (said.status, found["verdict"], found["load"]) == (BAD, "bad", "memory")
    assert found["tests"]["from_good"]["p"] == pytest.approx(2 / 252)
    assert found["new"]["median"] == 81_600


def test_several_records_of_one_kernel_belong_together(
    rtscope: Rtscope, ends: Path
) -> None:
    runs = new_runs(81)
    keep(ends / "boot-1", runs[:2])
    keep(ends / "boot-2", runs[2:])

    said = rtscope(*(w.replace("new", "boot-1,boot-2") for w in JUDGE))

    assert said.status == BAD


def test_a_kernel_whose_runs_are_all_invalid_is_skipped_with_the_reason(
    rtscope: Rtscope, ends: Path
) -> None:
    lost = [replace(run, caveats=(make("load_died"),)) for run in new_runs(81)]
    keep(ends / "new", lost)

    said = rtscope(*JUDGE)

    assert said.status == SKIP
    words = " ".join(said.out.split())
    assert words.startswith("skip: too few valid runs of --measured new: 0")
    assert "the load ended before the measurement did" in words


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (near(81, load="idle"), "no load in common"),
        (near(81, target="ssh:other"), "target is ssh:other in place of ssh:board"),
        (near(81, facts={"governor": "powersave"}), "git bisect skip"),
        ([on_board(run) for run in near(81)], "a virtual board"),
        (near(40), "the same measurement"),
    ],
)
def test_runs_that_do_not_compare_stop_the_search(
    rtscope: Rtscope, ends: Path, new: Sequence[RunRecord], message: str
) -> None:
    keep(ends / "new", new)

    said = rtscope(*JUDGE)

    assert said.status == STOP
    assert message in " ".join(said.err.split())
    assert said.out == ""


def test_ends_that_do_not_differ_stop_it_with_what_could_have_been_seen(
    rtscope: Rtscope, ends: Path
) -> None:
    keep(ends / "new", new_runs(41))
    keep(ends / "close", near(40.5, kernel="6.12.8"))

    said = rtscope(*JUDGE[:-1], "close")

    assert said.status == STOP
    words = " ".join(said.err.split())
    assert "no evidence at 1 % that --bad close is worse than --good good" in words
    assert "medians 40.6 µs of 5 runs and 41.1 µs of 5 runs" in words
    assert "times with 80 % probability" in words
    assert "measure both with --repetitions" in words


def test_a_bad_end_that_looks_better_is_no_reason_for_more_runs(
    rtscope: Rtscope, ends: Path
) -> None:
    keep(ends / "new", new_runs(41))
    keep(ends / "close", near(39.5, kernel="6.12.8"))

    said = rtscope(*JUDGE[:-1], "close")

    assert said.status == STOP
    words = " ".join(said.err.split())
    assert "no evidence at 1 % that --bad close is worse" in words
    assert "--repetitions" not in words


def test_ends_that_are_the_wrong_way_round_or_too_few_stop_it(
    rtscope: Rtscope, ends: Path
) -> None:
    keep(ends / "new", new_runs(41))
    keep(ends / "few", near(90, kernel="6.12.9")[:3])

    swapped = rtscope(*JUDGE[:3], "--good", "bad", "--bad", "good")
    few = rtscope(*JUDGE[:-1], "few")

    assert (swapped.status, few.status) == (STOP, STOP)
    assert "--good bad is worse than --bad good" in swapped.err
    words = " ".join(few.err.split())
    assert "5 of --good good and 3 of --bad few" in words
    assert "--repetitions 10" in words


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("bisect", "--measured", "new"), "name their records with --good and --bad"),
        ((*JUDGE, "--seeds", "5"), "leave out the options of a search"),
        ((*JUDGE, "--margin", "1us"), "leave out the options of a search"),
        ((*JUDGE, "--out", "x"), "leave out the options of a search"),
        ((*JUDGE, "--figure", "worst"), "no such figure: 'worst'"),
        ((*JUDGE, "--load", "os"), "no run under os; it has runs under memory"),
        ((*JUDGE, "--no-such-option"), "No such option"),
        (("bisect", "--measured=", "--good", "good", "--bad", "bad"), "name a"),
        (("bisect", "--measured=gone", *JUDGE[3:]), "no such file or directory"),
    ],
)
def test_a_wrong_command_is_never_a_bad_kernel(
    rtscope: Rtscope, ends: Path, words: tuple[str, ...], message: str
) -> None:
    keep(ends / "new", new_runs(81))

    said = rtscope(*words)

    assert said.status == STOP
    assert message in " ".join(said.err.split())


@pytest.mark.parametrize(
    ("error", "status"),
    [(ZeroDivisionError(), 128), (MemoryError(), 128), (KeyboardInterrupt(), 130)],
)
def test_a_crash_is_never_a_bad_kernel(
    rtscope: Rtscope,
    ends: Path,
    error: BaseException,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object, **__: object) -> int:
        raise error

    monkeypatch.setattr(bisect, "judge_measured", fails)
    monkeypatch.setattr(tempfile, "tempdir", str(ends))  # where its traceback goes

    assert rtscope(*JUDGE).status == status


def test_a_damaged_record_stops_it(rtscope: Rtscope, ends: Path) -> None:
    keep(ends / "new", new_runs(81))
    (ends / "new/runs/001-memory/record.json").write_text("{}")

    assert rtscope(*JUDGE).status == STOP


def test_other_searches_keep_their_statuses(rtscope: Rtscope, here: Path) -> None:
    assert rtscope("bisect").status == 2
