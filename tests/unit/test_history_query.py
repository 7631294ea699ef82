"""SQL to the index: its texts, its named queries, and how one ends."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.nights import lab
from rtscope.host.errors import UsageError
from rtscope.verbs.history import asking, database
from rtscope.verbs.history.asking import ask
from rtscope.verbs.history.canned import catalogue, query_names
from rtscope.verbs.history.indexing import Tally, index_place


@pytest.fixture
def index(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    lab(tmp_path / "nights", 2, boards=("a", "b"))
    with database.opened(tmp_path / "history.db", make=True) as made:
        index_place(made, tmp_path / "nights", Tally())
    with database.opened(tmp_path / "history.db") as opened:
        yield opened


def test_each_table_and_column_is_described(index: sqlite3.Connection) -> None:
    found = {
        table: {row["name"] for row in index.execute(f"PRAGMA table_info({table})")}
        for table in catalogue().tables
    }
    tables = index.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    assert {row["name"] for row in tables} == set(found)
    texts = catalogue().tables.items()
    assert {name: set(one.columns) for name, one in texts} == found


@pytest.mark.parametrize("name", query_names())
def test_each_named_query_is_answered(index: sqlite3.Connection, name: str) -> None:
    answer = ask(index, catalogue().queries[name].sql, limit=1)
    assert answer.columns
    if name == "worst-per-night":
        assert answer.rows[0][:3] == ("2026-11-02", "ssh:a idle", 40_838)
        assert answer.more


def test_every_foreign_key_names_its_column(index: sqlite3.Connection) -> None:
    """Without it, Datasette fails on a row of the table."""
    for table in catalogue().tables:
        keys = index.execute(f"PRAGMA foreign_key_list({table})").fetchall()
        assert all(key["to"] == "id" for key in keys)


def test_ctrl_c_ends_an_endless_query(index: sqlite3.Connection) -> None:
    """As a signal does, the first call between two steps raises it."""
    index.create_function("stop", 0, index.interrupt)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) "
    with pytest.raises(KeyboardInterrupt):
        ask(index, f"{endless} SELECT count(stop()) FROM n", limit=1)


def test_an_answer_that_fills_the_memory_is_refused(
    index: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "MOST_OF_ALL", 1000)
    with pytest.raises(UsageError, match="fewer"):
        ask(index, "SELECT zeroblob(400) FROM run", limit=0)
