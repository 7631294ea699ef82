"""What `rtscope history thin` removes, and all that it leaves."""

import json
import os
from pathlib import Path

import pytest

from fakes.commandline import Rtscope
from fakes.nights import keep, latencies, run
from rtscope.record.directory.place import hold
from rtscope.record.pack import RECORDINGS
from rtscope.verbs.history.thinning import BIG, Freed, remove, runs_below, to_thin

KEPT = ("record.json", "explain.json", "kernel.log", "report.html")
WORST = 2
"""The old night with the latest wake-up."""


@pytest.fixture
def nights(here: Path) -> Path:
    """Six nights with a file of each kind, as large as its night and name say."""
    for night in range(6):
        worst_ns = 900_000 if night == WORST else 40_000
        of_night = latencies(night, worst_ns=worst_ns)
        store = keep(here / f"nights/{night}", run(of_night, night=night))
        for name in (*KEPT[2:], *BIG):
            store.attach(folder(here, night).name, name, bytes(1_000))
    return here / "nights"


def folder(here: Path, night: int) -> Path:
    """Return the directory of the run of a night."""
    return next((here / f"nights/{night}/runs").iterdir())


def all_files(place: Path) -> dict[str, int]:
    return {
        str(path.relative_to(place)): path.lstat().st_ino
        for path in sorted(place.rglob("*"))
    }


def with_big(here: Path) -> list[int]:
    """Return the nights that have all big files; each has all or none."""
    there = {n: [(folder(here, n) / name).exists() for name in BIG] for n in range(6)}
    assert all(len(set(some)) == 1 for some in there.values())
    return [night for night, some in there.items() if all(some)]


def thinned(rtscope: Rtscope, *words: str | Path) -> str:
    said = rtscope("history", "thin", *words, "--keep-nights", "2", "--keep-worst", "1")
    assert said.status == 0
    return said.out


def test_old_nights_but_the_worst_lose_their_big_files(
    rtscope: Rtscope, nights: Path, here: Path
) -> None:
    before = all_files(nights)
    dry = thinned(rtscope, nights, "--dry-run")
    assert "would free 14.6 KiB: 15 files of 3 results" in dry
    assert all_files(nights) == before

    assert "freed 14.6 KiB: 15 files of 3 results" in thinned(rtscope, nights)
    assert with_big(here) == [WORST, 4, 5]
    gone = before.keys() - all_files(nights).keys()
    assert {Path(path).name for path in gone} == set(BIG)
    assert "freed 0 B: 0 files of 0 results" in thinned(rtscope, nights)


@pytest.mark.parametrize(
    ("nights_worth", "left"),
    [(9, [WORST, 4, 5]), (3, [WORST, 4, 5]), (2, [WORST, 5]), (1, [WORST]), (0, [])],
)
def test_beyond_a_budget_the_oldest_go_and_the_worst_last(
    nights_worth: int, left: list[int], rtscope: Rtscope, nights: Path, here: Path
) -> None:
    size = nights_worth * 1_000 * len(BIG) or 1

    thinned(rtscope, nights, "--budget", f"{size}B")

    assert with_big(here) == left


def test_only_recordings_without_an_explanation_are_warned_of(
    rtscope: Rtscope, nights: Path, here: Path
) -> None:
    (folder(here, 0) / "explain.json").write_text("{}")
    for name in RECORDINGS:
        (folder(here, 1) / name).unlink()
    dry = thinned(rtscope, nights, "--dry-run")
    assert "1 run with a recording and no explanation; type rtscope explain" in dry
    assert "1 run had a recording and no explanation" in thinned(rtscope, nights)
    assert (folder(here, 0) / "explain.json").exists()


def test_the_index_is_right_afterwards(
    rtscope: Rtscope, nights: Path, here: Path
) -> None:
    rtscope("history", "index", nights)
    listed = rtscope("history", "list", "--json").out
    thinned(rtscope, nights)
    again = json.loads(rtscope("history", "index", nights, "--json").out)
    assert (again["unchanged"], again["vanished"], again["damaged"]) == (6, 0, [])
    assert rtscope("history", "list", "--json").out == listed
    assert rtscope("report", nights / "0").status in (0, 4)


def test_nights_and_worst_runs_are_those_of_each_series(
    rtscope: Rtscope, nights: Path, here: Path
) -> None:
    """A board that was measured long ago keeps its own newest nights."""
    other = run(latencies(9), night=-30, board="b")
    keep(here / "nights/old", other).attach(other.run.id, BIG[0], bytes(10))
    thinned(rtscope, nights)
    assert list((here / "nights/old").rglob(BIG[0]))
    assert with_big(here) == [WORST, 4, 5]


@pytest.mark.parametrize("document", ["sweep.json", "bisect.json", None])
def test_only_results_of_rtscope_run_are_touched(
    rtscope: Rtscope, nights: Path, document: str | None
) -> None:
    """Parts of a sweep or search are campaigns; records of other tools have none."""
    if document:
        (nights / document).write_text("{}")
    else:
        for night in range(6):
            (nights / f"{night}/campaign.json").unlink()
    before = all_files(nights)
    thinned(rtscope, nights)
    assert all_files(nights) == before


@pytest.mark.parametrize("link", ["file", "run", "runs", "result"])
def test_no_link_is_followed(
    rtscope: Rtscope, nights: Path, here: Path, link: str
) -> None:
    of_run = folder(here, 0)
    places = {
        "file": of_run / BIG[0],
        "run": of_run,
        "runs": of_run.parent,
        "result": nights / "0",
    }
    place = places[link]
    away = here / "away"
    place.rename(away)
    place.symlink_to(away)
    before = all_files(away) if away.is_dir() else {}
    thinned(rtscope, nights)
    assert place.is_symlink()
    assert away.exists()
    assert before == (all_files(away) if away.is_dir() else {})


def test_a_folder_that_becomes_a_link_meanwhile_is_not_followed(
    nights: Path, here: Path
) -> None:
    found = runs_below([nights])
    going = to_thin(found.runs, keep_nights=5, keep_worst=0)
    runs, away = nights / "0/runs", here / "away"
    runs.rename(away)
    runs.symlink_to(away)
    before, freed = all_files(away), Freed()
    remove(going, freed)
    assert all_files(away) == before
    assert (freed.files, len(freed.failed)) == (0, 1)


def test_a_result_that_is_being_written_is_left(
    rtscope: Rtscope, nights: Path, here: Path
) -> None:
    with hold(nights / "0"):
        said = rtscope("history", "thin", nights, "--keep-nights", "2")
        assert said.status == 0
        words = ("--keep-nights", "2", "--keep-worst", "1", "--json")
        left = json.loads(rtscope("history", "thin", nights, *words).out)["left"]
    assert left == [f"{nights / '0'}: another rtscope writes into it"]
    assert with_big(here) == [0, WORST, 4, 5]


@pytest.mark.parametrize("after", range(0, 15, 4))
def test_an_interruption_leaves_results_that_can_be_read_and_thinned(
    rtscope: Rtscope,
    nights: Path,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    after: int,
) -> None:
    unlink = os.unlink
    done: list[str] = []

    def interrupted(name: str, *, dir_fd: int | None = None) -> None:
        if len(done) == after:
            raise KeyboardInterrupt
        done.append(name)
        unlink(name, dir_fd=dir_fd)

    words = ("history", "thin", nights, "--keep-nights", "2", "--keep-worst", "1")
    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", interrupted)
        said = rtscope(*words)
    assert said.status == 130
    assert f"{after} file" in said.err
    index = json.loads(rtscope("history", "index", nights, "--json").out)
    assert (index["new"], index["damaged"]) == (6, [])
    assert f"{15 - after} files of" in rtscope(*words).out
    assert with_big(here) == [WORST, 4, 5]


def test_a_damaged_record_keeps_its_files(
    rtscope: Rtscope, nights: Path, here: Path
) -> None:
    (folder(here, 0) / "record.json").write_text("{")
    thinned(rtscope, nights)
    assert with_big(here) == [0, WORST, 4, 5]


def test_a_file_with_another_name_frees_nothing(
    rtscope: Rtscope, nights: Path, here: Path
) -> None:
    os.link(folder(here, 0) / BIG[0], here / "saved")
    assert "freed 13.7 KiB: 15 files" in thinned(rtscope, nights)
    assert (here / "saved").stat().st_size == 1_000


def test_a_file_that_cannot_be_removed_is_named_and_costs_no_other(
    rtscope: Rtscope, nights: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlink = os.unlink

    def refused(name: str, *, dir_fd: int | None = None) -> None:
        if name == BIG[0]:
            raise PermissionError(13, "Permission denied")
        unlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", refused)
    said = rtscope("history", "thin", nights, "--keep-nights", "5", "--keep-worst", "0")
    assert said.status == 3
    assert f"{BIG[0]}: Permission denied" in "".join(said.err.split("\n"))
    assert "4 files of 1 result" in said.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere"], "nowhere: no such directory"),
        (["nights", "--keep-nights", "0"], "greater than or equal to 1"),
        ([], "missing"),
    ],
)
def test_a_wrong_thinning_is_told(
    rtscope: Rtscope, nights: Path, words: list[str], told: str
) -> None:
    said = rtscope("history", "thin", *words)
    assert said.status == 2
    assert told in said.err.lower()
