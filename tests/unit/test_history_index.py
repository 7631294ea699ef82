"""The index of `rtscope history`: made from records, anew at any time."""

import os
import shutil
import sqlite3
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.measurements import on_board, record, thread
from fakes.nights import keep, lab, latencies, run
from rtscope.host.errors import RecordError, TargetError, UsageError
from rtscope.host.process import Started, start
from rtscope.record.caveats.catalogue import make
from rtscope.record.directory.records import read_record
from rtscope.stats.summary import summarize
from rtscope.verbs.history import database, indexing, reading
from rtscope.verbs.history.entries import Entry, indexed_figures, read_entry
from rtscope.verbs.history.histograms import later_than, packed, unpacked
from rtscope.verbs.history.indexing import Tally, index_place
from rtscope.verbs.history.query import Filters
from rtscope.verbs.history.questions import Asked, baseline_of, questions
from rtscope.verbs.history.tags import tags_of, write_tags
from rtscope.verbs.history.timeline import timelines


@pytest.fixture
def nights(tmp_path: Path) -> Path:
    place = tmp_path / "nights"
    lab(place, 3, boards=("a", "b"))
    return place


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


def indexed(file: Path, place: Path) -> Tally:
    tally = Tally()
    with database.opened(file, make=True) as opened:
        index_place(opened, place, tally)
    return tally


def counts(tally: Tally) -> tuple[int, int, int, int, int]:
    return (
        *(tally.new, tally.changed, tally.unchanged, tally.vanished),
        len(tally.damaged),
    )


def rows(
    file: Path, query: str = "SELECT * FROM run ORDER BY path"
) -> list[sqlite3.Row]:
    with database.opened(file) as opened:
        return opened.execute(query).fetchall()


def one_record(place: Path) -> Path:
    return next(iter(sorted(place.rglob("record.json"))))


# --- what is kept ---------------------------------------------------------------------


def test_a_run_has_the_figures_of_its_record(nights: Path, file: Path) -> None:
    assert counts(indexed(file, nights)) == (6, 0, 0, 0, 0)

    [row, *_] = rows(file)
    kept = read_record(Path(row["path"]))
    summary = summarize(kept.result.threads)
    for name, figure in indexed_figures().items():
        if not figure.record:
            assert row[name] == figure.of_summary(summary), name
    assert unpacked(row["histogram"]) == list(summary.ranks.counts())
    assert (row["machine"], row["load"], row["counts"]) == ("ssh:a", "idle", 1)
    assert row["directory"] == str(nights / "night-00/a")
    assert row["digest"] == kept.result_digest


def test_what_must_be_equal_is_apart_from_what_may_be_a_cause(
    tmp_path: Path, file: Path
) -> None:
    places = tmp_path / "nights"
    keep(places / "1", run(latencies(1)))
    keep(places / "2", run(latencies(2), release="6.12.44", governor="powersave"))
    keep(places / "3", run(latencies(3), agent="0.2.0"))
    keep(places / "4", run(latencies(4), machine_model="Another Board"))
    keep(places / "5", run(latencies(5), preempt_rt=False))
    indexed(file, places)

    first, *others = rows(file)
    same_settings = [one["settings"] == first["settings"] for one in others]
    same_state = [one["state"] == first["state"] for one in others]
    assert same_settings == [True, False, False, False]
    assert same_state == [False, True, True, True]


def test_a_run_that_does_not_count_says_why(tmp_path: Path, file: Path) -> None:
    caveat = make("load_died", "gone")
    keep(tmp_path / "n", replace(run(latencies(1)), caveats=(caveat,)))
    indexed(file, tmp_path / "n")

    [row] = rows(file)
    assert not row["counts"]
    assert row["why"]
    assert rows(file, "SELECT * FROM caveat WHERE caveat = 'load_died'")


def test_a_run_without_a_sample_has_no_figure(tmp_path: Path, file: Path) -> None:
    keep(tmp_path / "n", record([thread([], activations=3)]))
    assert counts(indexed(file, tmp_path)) == (1, 0, 0, 0, 0)

    [row] = rows(file)
    assert (row["max_ns"], row["histogram"], row["counts"]) == (None, None, 0)


def test_a_board_has_its_revision_and_the_parts_of_a_sweep_are_marked(
    tmp_path: Path, file: Path
) -> None:
    sweep = tmp_path / "sweep"
    keep(sweep / "cells/000-base", on_board(run(latencies(1)), board_revision=2))
    (sweep / "sweep.json").write_text("{}")
    indexed(file, tmp_path)

    [row] = rows(file)
    assert (row["virtual"], row["board_revision"]) == (1, 2)
    assert row["part_of"] == "sweep"


@given(st.lists(st.tuples(st.integers(1, 2**40), st.integers(1, 2**50)), max_size=50))
def test_a_histogram_comes_back(steps: list[tuple[int, int]]) -> None:
    at_ns, counts = 0, []
    for step_ns, number in steps:
        at_ns += step_ns
        counts.append((at_ns, number))

    latencies_ns, numbers = [at for at, _ in counts], [number for _, number in counts]
    assert unpacked(packed(latencies_ns, numbers)) == counts
    assert later_than(counts, -1) == sum(number for _, number in counts)


@pytest.mark.parametrize("cut", [0, 1, -1])
def test_a_damaged_histogram_is_refused(cut: int) -> None:
    blob = packed([1_000, 2_000], [3, 4])
    broken = b"" if cut == 0 else blob[cut:] if cut > 0 else blob[:cut]
    with pytest.raises(RecordError, match="remove it, and index again"):
        unpacked(broken)


# --- again ----------------------------------------------------------------------------


def test_what_is_unchanged_is_not_read_again(
    nights: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexed(file, nights)
    monkeypatch.setattr(reading, "read_entry", None)
    assert counts(indexed(file, nights)) == (0, 0, 6, 0, 0)


def test_a_changed_record_is_read_again(nights: Path, file: Path) -> None:
    indexed(file, nights)
    before = rows(file)[0]["max_ns"]
    path = one_record(nights)
    shutil.rmtree(path.parents[2])
    keep(path.parents[2], run(latencies(0, worst_ns=90_000)))

    assert counts(indexed(file, nights)) == (0, 1, 5, 0, 0)
    assert len(rows(file)) == 6
    assert rows(file)[0]["max_ns"] > before


def test_a_vanished_record_keeps_its_figures_and_may_come_back(
    nights: Path, file: Path, tmp_path: Path
) -> None:
    indexed(file, nights)
    away = tmp_path / "away"
    (nights / "night-01").rename(away)
    assert counts(indexed(file, nights)) == (0, 0, 4, 2, 0)
    assert counts(indexed(file, nights)) == (0, 0, 4, 0, 0)
    assert sum(row["vanished"] is not None for row in rows(file)) == 2
    assert len(rows(file)) == 6

    away.rename(nights / "night-01")
    assert counts(indexed(file, nights)) == (0, 0, 6, 0, 0)
    assert not any(row["vanished"] for row in rows(file))


def test_another_place_is_left_alone(nights: Path, file: Path) -> None:
    indexed(file, nights)
    assert counts(indexed(file, nights / "night-01")) == (0, 0, 2, 0, 0)
    (nights / "night-0").mkdir()
    assert counts(indexed(file, nights / "night-0")) == (0, 0, 0, 0, 0)
    assert not any(row["vanished"] for row in rows(file))


def test_the_index_is_the_same_when_it_is_made_anew(nights: Path, file: Path) -> None:
    write_tags(nights / "night-00/a", {"good"})
    indexed(file, nights)
    before = [dict(row) for row in rows(file)]
    tags = rows(file, "SELECT * FROM tag")
    file.unlink()
    indexed(file, nights)

    assert [dict(row) for row in rows(file)] == before
    assert [tuple(one) for one in rows(file, "SELECT * FROM tag")] == [
        tuple(one) for one in tags
    ]


def test_tags_follow_their_file(nights: Path, file: Path) -> None:
    place = nights / "night-00/a"
    indexed(file, nights)
    for words in ({"good", "night"}, {"good"}, set()):
        write_tags(place, words)
        indexed(file, nights)
        assert tags_of(place) == words
        assert {row["tag"] for row in rows(file, "SELECT tag FROM tag")} == words
    assert not (place / "tags.json").exists()


# --- what goes wrong ------------------------------------------------------------------


def test_a_damaged_record_is_named_and_the_others_are_indexed(
    nights: Path, file: Path
) -> None:
    path = one_record(nights)
    path.write_bytes(path.read_bytes()[:1_000])
    tally = indexed(file, nights)
    assert counts(tally) == (5, 0, 0, 0, 1)
    assert str(path) in tally.damaged[0]
    # Known as damaged: not read again.
    assert counts(indexed(file, nights)) == (0, 0, 6, 0, 0)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"schema": 9, "tags": []}', '{"tags": [1]}']
)
def test_damaged_tags_are_named_and_nothing_is_taken_for_gone(
    nights: Path, file: Path, text: str
) -> None:
    indexed(file, nights)
    (nights / "night-00/a/tags.json").write_text(text)
    tally = indexed(file, nights)
    assert counts(tally) == (0, 0, 5, 0, 1)
    assert not any(row["vanished"] for row in rows(file))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
def test_a_folder_that_cannot_be_read_is_named(nights: Path, file: Path) -> None:
    indexed(file, nights)
    (nights / "night-00").chmod(0)
    try:
        assert indexed(file, nights).damaged
    finally:
        (nights / "night-00").chmod(0o755)
    assert not any(row["vanished"] for row in rows(file))


def test_a_file_that_is_no_index_is_refused_and_stays(
    nights: Path, tmp_path: Path
) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("mine\n" * 100)
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as database_:
        database_.execute("CREATE TABLE run (mine)")
    for file in (text, other):
        before = file.read_bytes()
        with pytest.raises(UsageError, match="another file"):
            indexed(file, nights)
        assert file.read_bytes() == before
    with pytest.raises(UsageError, match="no file"):
        indexed(tmp_path, nights)
    with pytest.raises(UsageError, match="rtscope history index"):
        rows(tmp_path / "none.db")


def test_an_index_of_another_version_is_made_anew(nights: Path, file: Path) -> None:
    indexed(file, nights)
    with closing(sqlite3.connect(file)) as opened:
        opened.execute("PRAGMA user_version = 99")
    with pytest.raises(UsageError, match="of another version"):
        rows(file)
    assert counts(indexed(file, nights)) == (6, 0, 0, 0, 0)


def test_a_damaged_index_is_an_error_in_words(nights: Path, file: Path) -> None:
    indexed(file, nights)
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    file.write_bytes(content)
    with pytest.raises(RecordError, match="index again"):
        indexed(file, nights)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE run SET started = 'yesterday'", "started is 'yesterday'"),
        ("UPDATE run SET series = x'00ff'", "damaged: series is"),
        ("UPDATE run SET missed_periods = -1", "missed_periods is '-1'"),
        ("UPDATE run SET max_ns = 9e999", "max_ns is 'inf'"),
        ("UPDATE run SET histogram = NULL", "a run that counts has no latencies"),
        ("UPDATE conditions SET text = '[' || id || ']'", "conditions 1 are no table"),
        ("UPDATE conditions SET text = id || '{'", "conditions 1 are no table"),
        ("UPDATE run SET settings = 70 + id", "it has no conditions 7"),
    ],
)
def test_what_rtscope_never_wrote_is_refused(
    nights: Path, file: Path, statement: str, said: str
) -> None:
    indexed(file, nights)
    with closing(sqlite3.connect(file)) as other, other:
        other.execute(statement)
    with pytest.raises(RecordError, match=f"{said}.*; remove the file"):
        read_all(file)


def read_all(file: Path) -> None:
    asked = Asked(1, frozenset(), baseline_of("last:2"), None)
    with database.opened(file) as opened:
        timelines(opened, Filters())
        questions(opened, Filters(), asked)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER more AFTER INSERT ON run BEGIN DELETE FROM tag; END",
        "DROP TABLE damaged; CREATE VIEW damaged AS WITH RECURSIVE n(path) AS "
        "(SELECT 1 UNION ALL SELECT path + 1 FROM n) SELECT path FROM n",
    ],
)
def test_an_index_that_does_more_than_hold_rows_is_no_index(
    nights: Path, file: Path, statement: str
) -> None:
    indexed(file, nights)
    with closing(sqlite3.connect(file)) as other, other:
        other.executescript(statement)
    with pytest.raises(UsageError, match="make it anew"), database.opened(file):
        pass


def test_a_place_that_cannot_be_written_is_an_error_in_words(nights: Path) -> None:
    with pytest.raises(RecordError, match="make its directory first"):
        indexed(nights / "none/history.db", nights)


# --- several writers ------------------------------------------------------------------


@pytest.fixture
def quick_turns() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("quick_turns")
def test_several_write_at_once(tmp_path: Path, file: Path) -> None:
    for number in range(4):
        lab(tmp_path / f"lab-{number}", 3, boards=(f"board-{number}",))
    tallies: list[Tally] = []
    threads = [
        threading.Thread(
            target=lambda number=number: tallies.append(
                indexed(file, tmp_path / f"lab-{number % 4}")
            )
        )
        for number in range(8)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()

    assert len(tallies) == 8
    assert len(rows(file)) == 12
    assert {row["machine"] for row in rows(file)} == {
        f"ssh:board-{number}" for number in range(4)
    }


# --- many records: processes read them ------------------------------------------------


@pytest.fixture
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five batches of records, one of them damaged, and tags."""
    monkeypatch.setattr(indexing, "BATCH", 2)
    monkeypatch.setattr(reading, "processes", lambda: 2)
    place = tmp_path / "nights"
    lab(place, 4, boards=("a", "b"))
    sorted(place.rglob("record.json"))[5].write_text("{")
    write_tags(place / "night-02/b", {"good"})
    return place


def all_of(file: Path) -> list[tuple[object, ...]]:
    tables = ("run", "conditions", "caveat", "tag", "damaged")
    return [tuple(row) for one in tables for row in rows(file, f"SELECT * FROM {one}")]


def index_of_one_process(many: Path, file: Path) -> list[tuple[object, ...]]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(indexing, "BATCH", 1_000)
        assert counts(indexed(file, many)) == (7, 0, 0, 0, 1)
    return all_of(file)


@pytest.mark.slow
def test_processes_make_the_same_index_as_one(
    many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = index_of_one_process(many, tmp_path / "one.db")
    here: list[Path] = []

    def noted(path: Path, *, mark: str, part_of: str) -> Entry:
        here.append(path)
        return read_entry(path, mark=mark, part_of=part_of)

    monkeypatch.setattr(reading, "read_entry", noted)
    tally = indexed(tmp_path / "many.db", many)
    assert counts(tally) == (7, 0, 0, 0, 1)
    assert len(here) == 2  # the first batch
    assert str(many) in tally.damaged[0]
    assert all_of(tmp_path / "many.db") == expected
    assert counts(indexed(tmp_path / "many.db", many)) == (0, 0, 8, 0, 0)


@pytest.mark.slow
def test_records_of_a_process_that_is_killed_are_read_here(
    many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Started] = []

    def start_and_kill(argv: Sequence[str]) -> Started:
        one = start(argv)
        started.append(one)
        if len(started) == 1:
            one.kill()
            one.wait()
        return one

    expected = index_of_one_process(many, tmp_path / "one.db")
    monkeypatch.setattr(reading, "start", start_and_kill)
    assert counts(indexed(tmp_path / "many.db", many)) == (7, 0, 0, 0, 1)
    assert all_of(tmp_path / "many.db") == expected
    assert len(started) == 2
    assert all(one.poll() is not None for one in started)


def test_without_another_process_all_is_read_here(
    many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_argv: Sequence[str]) -> Started:
        raise TargetError("Resource temporarily unavailable")

    expected = index_of_one_process(many, tmp_path / "one.db")
    monkeypatch.setattr(reading, "start", refuse)
    assert counts(indexed(tmp_path / "many.db", many)) == (7, 0, 0, 0, 1)
    assert all_of(tmp_path / "many.db") == expected


def test_no_process_is_left_when_the_index_cannot_be_written(
    many: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Started] = []

    def noted(_argv: Sequence[str]) -> Started:
        started.append(start(["cat"]))  # it answers at once
        return started[-1]

    def interrupt(opened: sqlite3.Connection) -> AbstractContextManager[None]:
        if started:
            raise KeyboardInterrupt
        return writing(opened)

    writing = database.writing
    monkeypatch.setattr(reading, "start", noted)
    monkeypatch.setattr(database, "writing", interrupt)
    with pytest.raises(KeyboardInterrupt):
        indexed(file, many)
    assert started
    assert all(one.poll() is not None for one in started)


def test_a_machine_with_one_cpu_reads_by_itself(
    many: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "processes", lambda: 1)
    monkeypatch.setattr(reading, "start", None)
    assert counts(indexed(file, many)) == (7, 0, 0, 0, 1)
