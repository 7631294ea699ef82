"""A campaign's directory: what is done, what is not, and nothing outside it."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.measurements import record, thread
from rtscope.host.errors import RecordError, UsageError
from rtscope.host.version import __version__
from rtscope.record.directory import records as stored
from rtscope.record.directory.place import CAMPAIGN, hold, read_document
from rtscope.record.directory.records import ResultDir, create, open_records
from rtscope.record.model import MAX_RECORD_BYTES, RunRecord

FIRST = record([thread([5_000, 7_000])])
SECOND = record([thread([6_000])], "cpu")
SECOND = replace(SECOND, run=replace(SECOND.run, id="002-cpu"))
ASKED = {"run": [{"load": ["idle"]}]}


@pytest.fixture
def store(tmp_path: Path) -> ResultDir:
    return create(tmp_path / "out", ASKED, command=("rtscope", "run"))


def test_a_campaign_is_written_down_before_anything_is_measured(
    store: ResultDir,
) -> None:
    assert json.loads((store.path / "campaign.json").read_text()) == {
        "schema": 2,
        "rtscope": __version__,
        "command": ["rtscope", "run"],
        "campaign": ASKED,
    }
    assert store.done_ids() == frozenset()
    assert store.records() == []


def test_a_second_campaign_does_not_go_where_one_is(store: ResultDir) -> None:
    with pytest.raises(UsageError, match=r"already holds a campaign.*--resume"):
        create(store.path, {}, command=())


def test_a_place_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(RecordError, match=r"cannot make .*: Not a directory"):
        create(tmp_path / "file", {}, command=())


def test_saved_records_come_back_in_order(store: ResultDir) -> None:
    store.save(SECOND)
    store.save(FIRST)

    assert store.records() == [FIRST, SECOND]
    assert store.done_ids() == {"001-idle", "002-cpu"}
    assert open_records(store.path) == [FIRST, SECOND]
    assert open_records(store.run_dir("002-cpu")) == [SECOND]
    assert open_records(store.run_dir("002-cpu") / "record.json") == [SECOND]


def test_an_interrupted_run_is_kept_and_is_not_done(store: ResultDir) -> None:
    store.save(FIRST, interrupted=True)

    assert store.done_ids() == frozenset()
    assert store.records() == [FIRST]
    assert open_records(store.run_dir("001-idle")) == [FIRST]


def test_a_run_that_was_repeated_replaces_the_interrupted_one(
    store: ResultDir,
) -> None:
    short = record([thread([9_000])])
    store.save(short, interrupted=True)
    store.save(FIRST)

    assert store.records() == [FIRST]
    (left,) = store.run_dir("001-idle").iterdir()
    assert left.name == "record.json"


@pytest.mark.parametrize("what", ["missing", "empty"])
def test_where_no_record_is_that_is_said(what: str, tmp_path: Path) -> None:
    path = tmp_path / what
    if what == "empty":
        path.mkdir()

    with pytest.raises(UsageError, match=r"no such file|no record in it"):
        open_records(path)


# --- what may come by mail ------------------------------------------------------------

Place = Callable[[Path], None]


def link_out(path: Path) -> None:
    path.symlink_to("/proc/self/environ")


def fifo(path: Path) -> None:
    os.mkfifo(path)


def directory(path: Path) -> None:
    path.mkdir()


def ten_gigabytes(path: Path) -> None:
    path.touch()
    os.truncate(path, 10 * 1024**3)


@pytest.mark.parametrize(
    ("place", "why"),
    [
        (link_out, "not a regular file"),
        (fifo, "not a regular file"),
        (directory, "not a regular file"),
        (ten_gigabytes, "10,737,418,240 bytes, more than the"),
    ],
)
def test_what_is_no_file_of_a_fair_size_is_not_read(
    place: Place, why: str, store: ResultDir
) -> None:
    run = store.run_dir("001-idle")
    run.mkdir()
    place(run / "record.json")

    with pytest.raises(RecordError, match=why):
        store.records()

    (store.path / "campaign.json").unlink()
    place(store.path / "campaign.json")
    with pytest.raises(RecordError, match=why):
        read_document(store.path, CAMPAIGN)


def test_the_limit_of_a_record_is_above_the_largest_there_is() -> None:
    assert 100 * 1024**2 < MAX_RECORD_BYTES < 1024**3


@pytest.mark.parametrize("level", ["runs", "run"])
def test_a_directory_that_is_a_link_is_neither_read_nor_written(
    level: str, store: ResultDir, tmp_path: Path
) -> None:
    elsewhere = create(tmp_path / "other", {}, command=())
    elsewhere.save(FIRST)
    before = snapshot(elsewhere.path)
    if level == "runs":
        (store.path / "runs").rmdir()
        (store.path / "runs").symlink_to(elsewhere.path / "runs")
    else:
        store.run_dir("001-idle").symlink_to(elsewhere.run_dir("001-idle"))

    with pytest.raises(RecordError, match="a link"):
        store.records()
    with pytest.raises(RecordError, match="a link"):
        store.save(replace(FIRST, host_duration_s=1.0))

    assert snapshot(elsewhere.path) == before


def snapshot(path: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_more_runs_than_any_campaign_has_are_refused(
    store: ResultDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "MAX_RUNS", 1)
    store.save(FIRST)
    store.save(SECOND)

    with pytest.raises(RecordError, match="more than 1 runs"):
        store.records()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "damaged"),
        ("[]", "not an object"),
        ("{" * 10, "damaged"),
        ('{"a":' * 100_000, "damaged"),
        ('{"schema": ' + "9" * 5000 + "}", "damaged"),
        ("{}", "schema None, and this rtscope reads 2"),
        ('{"schema": 1, "campaign": {}}', "schema 1, .*: measure again: rtscope run"),
        ('{"schema": 3}', "schema 3, .* with the newer rtscope"),
        ('{"schema": "\\u001b[31m"}', r"schema '\\x1b\[31m', and"),
    ],
)
def test_a_campaign_that_is_damaged_or_from_the_future_is_refused(
    text: str, why: str, store: ResultDir
) -> None:
    (store.path / "campaign.json").write_text(text)

    with pytest.raises(RecordError, match=why):
        read_document(store.path, CAMPAIGN)


def test_bytes_that_are_no_text_are_refused(store: ResultDir) -> None:
    (store.path / "campaign.json").write_bytes(b'{"schema":\xff}')

    with pytest.raises(RecordError, match="damaged"):
        read_document(store.path, CAMPAIGN)


def test_a_damaged_record_is_named(store: ResultDir) -> None:
    path = store.save(FIRST)
    path.write_bytes(path.read_bytes()[:-100])

    with pytest.raises(RecordError, match=r"001-idle/record\.json: damaged record"):
        store.records()


def test_a_directory_without_a_campaign_cannot_be_resumed(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"no campaign there: it has no campaign\.json"
    ):
        read_document(tmp_path, CAMPAIGN)


def test_a_result_can_be_moved_and_read_elsewhere(
    store: ResultDir, tmp_path: Path
) -> None:
    kept: RunRecord = FIRST
    store.save(kept)
    shutil.move(store.path, tmp_path / "moved")

    assert open_records(tmp_path / "moved") == [kept]
    assert json.loads((tmp_path / "moved" / "campaign.json").read_text())


def test_a_directory_is_measured_into_by_one_at_a_time(store: ResultDir) -> None:
    with (
        hold(store.path),
        pytest.raises(UsageError, match="out: another rtscope measures into it"),
        hold(store.path),
    ):
        pytest.fail("both hold it")
    with hold(store.path):
        pass


def test_a_directory_that_is_not_there_is_not_held(tmp_path: Path) -> None:
    with hold(tmp_path / "none"):
        assert not (tmp_path / "none").exists()
