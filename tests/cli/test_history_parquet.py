"""The index as Parquet files: DuckDB's answers are those of SQLite."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from fakes.commandline import Rtscope
from fakes.nights import keep, lab, latencies, run
from rtscope.verbs.history import parquet
from rtscope.verbs.history.histograms import unpacked

FILES = ("caveat", "conditions", "damaged", "histogram", "run", "tag")


@pytest.fixture
def index(rtscope: Rtscope, here: Path) -> Path:
    """Nights of two boards, one of them tagged, and a damaged record."""
    lab(here / "nights", 4, boards=("a", "b"))
    keep(here / "nights/odd", run(latencies(99), board="tab\there", celsius="40"))
    damaged = next((here / "nights/night-03/b/runs").iterdir()) / "record.json"
    damaged.write_text("{")
    assert rtscope("history", "tag", "good", "nights/night-00/a").status == 0
    assert rtscope("history", "index", "nights").status == 0
    return here / "history.db"


def from_sqlite(sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect("history.db")) as opened:
        return opened.execute(sql).fetchall()


def from_parquet(sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as opened:
        for name in FILES:
            opened.execute(
                f"CREATE VIEW \"{name}\" AS SELECT * FROM 'out/{name}.parquet'"
            )
        return opened.execute(sql).fetchall()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT series, count(*), max(max_ns), min(min_ns), sum(samples) "
        "FROM run WHERE counts GROUP BY series ORDER BY series",
        "SELECT id, path, directory, series, kernel_release, seed, p50_ns, celsius "
        "FROM run ORDER BY id",
        "SELECT caveat, count(*) FROM caveat GROUP BY caveat ORDER BY caveat",
        "SELECT tag, path FROM tag JOIN run USING (directory) ORDER BY path",
        "SELECT id, text FROM conditions ORDER BY id",
        "SELECT path, mark, why FROM damaged",
    ],
)
def test_duckdb_answers_as_sqlite_does(rtscope: Rtscope, index: Path, sql: str) -> None:
    assert rtscope("history", "parquet", "out").status == 0
    asked = from_sqlite(sql)
    assert asked
    assert from_parquet(sql) == asked


def test_histograms_are_rows(rtscope: Rtscope, index: Path) -> None:
    assert rtscope("history", "parquet", "out").status == 0
    blobs = from_sqlite("SELECT id, histogram FROM run ORDER BY id")
    packed = {(run, *pair) for run, blob in blobs for pair in unpacked(blob)}
    rows = from_parquet("SELECT run, latency_ns, samples FROM histogram")
    assert len(rows) == len(packed)
    assert set(rows) == packed
    of_a_night = from_parquet(
        "SELECT sum(histogram.samples), max(latency_ns) FROM histogram "
        "JOIN run ON run.id = histogram.run WHERE day(run.started) = 2"
    )
    in_all = "SELECT sum(samples), max(max_ns) FROM run WHERE started LIKE '%-02T%'"
    assert of_a_night == from_sqlite(in_all)


def test_times_are_times_and_truths_are_truths(rtscope: Rtscope, index: Path) -> None:
    assert rtscope("history", "parquet", "out").status == 0
    kinds = dict(
        from_parquet("SELECT column_name, column_type FROM (DESCRIBE FROM run)")
    )
    assert kinds["started"] == kinds["vanished"] == "TIMESTAMP WITH TIME ZONE"
    assert kinds["counts"] == kinds["virtual"] == "BOOLEAN"
    assert {kinds[name] for name in ("max_ns", "celsius", "samples")} == {"DOUBLE"}
    first = (
        "SELECT count(*) FROM run WHERE started = TIMESTAMPTZ '2026-11-01 02:00:00Z'"
    )
    assert from_parquet(first) == [(3,)]


def test_files_are_replaced_and_counted(rtscope: Rtscope, index: Path) -> None:
    first = json.loads(rtscope("history", "parquet", "out", "--json").out)
    assert first["rows"]["run"] == 8
    assert first["rows"]["damaged"] == 1
    sizes = [path.stat().st_size for path in Path("out").iterdir()]
    assert first["size_bytes"] == sum(sizes)
    again = rtscope("history", "parquet", "out")
    assert again.out.startswith("out: 8 runs, ")
    assert sorted(path.stem for path in Path("out").iterdir()) == list(FILES)


def test_an_empty_index_has_empty_files(rtscope: Rtscope, here: Path) -> None:
    (here / "nights").mkdir()
    assert rtscope("history", "index", "nights").status == 0
    assert rtscope("history", "parquet", "out").status == 0
    assert from_parquet("SELECT count(*), max(max_ns) FROM run") == [(0, None)]


def test_without_the_library_it_says_what_to_install(
    rtscope: Rtscope, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "find_spec", lambda _: None)
    said = rtscope("history", "parquet", "out")
    assert said.status == 2
    assert "pip install 'rtscope[parquet]'" in said.err
    assert not Path("out").exists()


def test_what_cannot_be_written_is_said(
    rtscope: Rtscope, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("file").write_text("")
    said = rtscope("history", "parquet", "file")
    assert (said.status, said.err.count("\n")) == (2, 1)
    missing = rtscope("history", "parquet", "no/such")
    assert "cannot make no/such: No such file or directory" in missing.err
    assert rtscope("history", "parquet", "out").status == 0
    before = Path("out/run.parquet").read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet._File, "add", full)
    said = rtscope("history", "parquet", "out")
    assert said.status == 3
    assert "out/histogram.parquet: No space left on device; free some space" in said.err
    assert Path("out/run.parquet").read_bytes() == before
    assert sorted(path.stem for path in Path("out").iterdir()) == list(FILES)


def test_a_damaged_histogram_leaves_the_files(rtscope: Rtscope, index: Path) -> None:
    assert rtscope("history", "parquet", "out").status == 0
    before = Path("out/run.parquet").read_bytes()
    with closing(sqlite3.connect("history.db")) as opened, opened:
        opened.execute("UPDATE run SET histogram = x'00' WHERE id = 2")
    said = rtscope("history", "parquet", "out")
    assert "damaged histogram" in said.err
    assert Path("out/run.parquet").read_bytes() == before
