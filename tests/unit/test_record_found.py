"""Directories of records below a place, and what came of each run."""

import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from fakes.measurements import record, thread
from rtscope.host.errors import RecordError, UsageError
from rtscope.record.directory.journal import State
from rtscope.record.directory.place import CAMPAIGN, SEARCH, SWEEP, kind_of
from rtscope.record.directory.records import (
    Outcome,
    ResultDir,
    create,
    find,
    no_records,
    open_records,
    outcomes,
)

TESTS = Path(__file__).parents[1]
UNFINISHED = TESTS / "net/inputs/unfinished.tar.gz"
GOOD = "20ddc1594785de3791d40ea3e2d2c2350bde7214"
BAD = "ac24d1d238041f3991746985d18624a6f92e226e"
NEXT = "f4389407c1974c4e5ad61653abe7ff884af77f48"


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    """A campaign, a sweep and a search that were interrupted, with a file beside."""
    with tarfile.open(UNFINISHED) as archive:
        archive.extraction_filter = getattr(
            tarfile, "data_filter", lambda member, path: member
        )
        archive.extractall(tmp_path)
    (tmp_path / "notes.txt").write_text("mine\n")
    imported = ResultDir(tmp_path / "deep/er/imported")
    imported.path.mkdir(parents=True)
    imported.save(record([thread([5_000])]))
    return tmp_path


def names(found: Path, kind: object, root: Path) -> tuple[str, object]:
    return str(found.relative_to(root)), kind


def test_all_directories_below_a_place_are_found_in_their_order(
    unfinished: Path,
) -> None:
    assert [names(*one, unfinished) for one in find(unfinished)] == [
        ("campaign", CAMPAIGN),
        ("deep/er/imported", None),
        ("search", SEARCH),
        (f"search/steps/{GOOD}", CAMPAIGN),
        (f"search/steps/{BAD}", CAMPAIGN),
        (f"search/steps/{NEXT}", CAMPAIGN),
        ("sweep", SWEEP),
        ("sweep/cells/000-base", CAMPAIGN),
        ("sweep/cells/001-tick-off", CAMPAIGN),
    ]
    assert [one for one, _ in find(unfinished, depth=0)] == []


def test_a_link_is_not_followed(unfinished: Path) -> None:
    there = list(find(unfinished))
    (unfinished / "again").symlink_to(unfinished)
    (unfinished / "campaign2").symlink_to(unfinished / "campaign")
    (unfinished / "sweep/cells/002-out").symlink_to(unfinished / "campaign")

    assert list(find(unfinished)) == there
    assert "002-out" not in str(list(outcomes(unfinished / "sweep")))


def test_folders_are_searched_to_a_depth_that_no_result_has(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(60):
        deep = deep / "d"
    deep.mkdir(parents=True)
    create(deep / "out", {}, command=())

    assert list(find(tmp_path)) == []
    assert list(find(deep)) == [(deep / "out", CAMPAIGN)]


def test_each_run_of_a_campaign_has_its_state(unfinished: Path) -> None:
    def planned(asked: object) -> list[str]:
        assert isinstance(asked, dict)
        assert asked["run"]
        return [f"00{n}-idle-s{n}" for n in range(1, 6)]

    found = list(outcomes(unfinished / "campaign", planned))

    assert [(one.name, one.state) for one in found] == [
        ("001-idle-s1", State.DONE),
        ("002-idle-s2", State.DONE),
        ("003-idle-s3", State.FAILED),
        ("004-idle-s4", State.ASKED),
        ("005-idle-s5", State.ASKED),
    ]
    assert found[2].why.endswith("campaign/unfinished/003-idle-s3.jsonl")
    assert [one.why for one in found[3:]] == ["interrupted", ""]


def test_each_run_of_a_sweep_has_its_state(unfinished: Path) -> None:
    sweep = unfinished / "sweep"
    ids = ["001-idle-s1", "002-idle-s2"]

    assert list(outcomes(sweep, lambda _: ids)) == [
        Outcome("000-base/001-idle-s1", State.DONE),
        Outcome(
            "000-base/002-idle-s2", State.FAILED, "000-base/002-idle-s2: it panics"
        ),
        Outcome("001-tick-off/001-idle-s1", State.DONE),
        Outcome("001-tick-off/002-idle-s2", State.ASKED),
    ]
    (sweep / "asked.json").write_text("[0]\n")
    assert {one.name[:3] for one in outcomes(sweep)} == {"000"}


def test_a_remedy_that_a_board_does_not_have_is_impossible(unfinished: Path) -> None:
    sweep = unfinished / "sweep"
    (sweep / "cells/001-tick-off").rename(sweep / "cells/001-remedy-no-timer.migration")
    (sweep / "impossible.json").write_text('{"no timer.migration": "not possible"}')

    *_, last = outcomes(sweep)

    assert last == Outcome(
        "001-remedy-no-timer.migration", State.IMPOSSIBLE, "not possible"
    )


def test_each_run_of_a_search_and_each_kernel_without_one_has_its_state(
    unfinished: Path,
) -> None:
    search = unfinished / "search"
    with (search / "steps.jsonl").open("a") as file:
        for name, why, built in (("a1", "it does not build", False), ("b2", "x", True)):
            file.write(json.dumps({"name": name, "why": why, "built": built}) + "\n")
        file.write('{"name": "c')
    before = (search / "steps.jsonl").read_bytes()

    found = list(outcomes(search, lambda _: ["001-idle-s1"]))

    assert [(one.name, one.state) for one in found if "/" not in one.name] == [
        ("a1", State.IMPOSSIBLE),
        ("b2", State.FAILED),
    ]
    done = [one.name for one in found if one.state is State.DONE]
    assert len(done) == 4
    assert Outcome(f"{NEXT}/001-idle-s1", State.ASKED) in found
    assert (search / "steps.jsonl").read_bytes() == before


# --- what may come by mail ------------------------------------------------------------


def fifo(path: Path) -> None:
    os.mkfifo(path)


def damaged(path: Path) -> None:
    path.write_text("[" * 200_000 + "\n")


def huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 10 << 30)


def link(path: Path) -> None:
    path.symlink_to("/proc/self/environ")


@pytest.mark.parametrize("make", [fifo, damaged, huge, link])
@pytest.mark.parametrize(
    "name",
    [
        "campaign/campaign.json",
        "sweep/failed.json",
        "sweep/impossible.json",
        "sweep/asked.json",
        "search/steps.jsonl",
    ],
)
def test_a_hostile_file_is_refused_in_words(
    unfinished: Path, name: str, make: Callable[[Path], None]
) -> None:
    path = unfinished / name
    path.unlink(missing_ok=True)
    make(path)

    with pytest.raises(RecordError, match=path.name):
        list(outcomes(path.parent))


def test_a_folder_for_what_agents_told_that_is_a_link_is_left_alone(
    tmp_path: Path,
) -> None:
    store = create(tmp_path / "out", {}, command=())
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "001-idle.jsonl").write_text("mine\n")
    (store.path / "unfinished").symlink_to(mine)

    with pytest.raises(RecordError, match="unfinished: a link"):
        store.save(record([thread([5_000])]))

    assert (mine / "001-idle.jsonl").read_text() == "mine\n"


# --- a directory without a record ----------------------------------------------------


def test_who_opens_a_sweep_or_a_search_is_told_where_its_records_are(
    unfinished: Path,
) -> None:
    for name, first in (("sweep", "cells/000-base"), ("search", f"steps/{GOOD}")):
        with pytest.raises(UsageError) as raised:
            open_records(unfinished / name)
        assert f"but in {unfinished / name / first} and 1 others" in str(raised.value)


def test_a_campaign_without_a_result_says_why_and_how_it_goes_on(
    tmp_path: Path,
) -> None:
    store = create(tmp_path / "out", {}, command=())
    assert "no run of the campaign in it is done; go on with" in str(
        no_records(store.path)
    )
    store.keep_unfinished("001-idle", b"{}\n")

    with pytest.raises(UsageError) as raised:
        open_records(store.path)

    assert " 001-idle: no result; what its agent told is in " in str(raised.value)
    assert str(raised.value).endswith(f"rtscope run --resume {store.path}")


def test_a_kind_is_told_by_its_document(unfinished: Path) -> None:
    kinds = {path.name: kind_of(path) for path in unfinished.iterdir()}

    assert {name: kind for name, kind in kinds.items() if kind} == {
        "campaign": CAMPAIGN,
        "sweep": SWEEP,
        "search": SEARCH,
    }
