"""
The index: an SQLite file, made of records, and made anew from them at any time.

    run         a run: where its record lies, names, figures (ns), histogram
    conditions  texts that many runs share: their settings and their state
    caveat      the caveats of a run
    tag         the tags of a result directory
    damaged     what could not be read, and why

Several processes may write at once: each batch is one short transaction, and SQLite
makes the others wait. No sample is in it.
"""

import math
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any

from rtscope.host.errors import RecordError, UsageError, quote
from rtscope.host.files import refuse_unwritable
from rtscope.host.files.documents import json_value
from rtscope.verbs.history.entries import Entry, indexed_figures

NAME = "history.db"
"""The index where no other is named, in the current directory."""

APPLICATION = 0x52545348
"""Marks an SQLite file as ours: RTSH."""

SCHEMA = 2

TIMES = ("started", "vanished")
"""Columns of run that are times of day, as text."""

_MAY_BE_NEGATIVE = ("_ns", "celsius", "priority", "seed")

_OTHERS = {
    **{"text": "TEXT NOT NULL", "tag": "TEXT NOT NULL", "caveats": "TEXT"},
    "histogram": "BLOB",
}
"""Columns of other tables, and of queries."""

PATIENCE_S = 120.0
"""How long a writer waits for others."""

Row = Mapping[str, Any]

_NAMES = {
    "path": "TEXT NOT NULL UNIQUE",
    "directory": "TEXT NOT NULL",
    "part_of": "TEXT NOT NULL",
    "mark": "TEXT NOT NULL",
    "vanished": "TEXT",
    "run": "TEXT NOT NULL",
    "series": "TEXT NOT NULL",
    "started": "TEXT NOT NULL",
    "machine": "TEXT NOT NULL",
    "board_revision": "INTEGER",
    "kernel": "TEXT NOT NULL",
    "kernel_release": "TEXT NOT NULL",
    "load": "TEXT NOT NULL",
    "variant": "TEXT NOT NULL",
    "event": "TEXT NOT NULL",
    "policy": "TEXT NOT NULL",
    "priority": "INTEGER NOT NULL",
    "interval_ns": "INTEGER NOT NULL",
    "observed_ns": "INTEGER",
    "seed": "INTEGER",
    "virtual": "INTEGER NOT NULL",
    "agent": "TEXT NOT NULL",
    "rtscope": "TEXT NOT NULL",
    "digest": "TEXT NOT NULL",
    "counts": "INTEGER NOT NULL",
    "why": "TEXT NOT NULL",
    "cause": "TEXT NOT NULL",
    "deadline_ns": "INTEGER",
    "misses": "INTEGER",
    "celsius": "REAL",
    "settings": "INTEGER NOT NULL REFERENCES conditions (id)",
    "state": "INTEGER NOT NULL REFERENCES conditions (id)",
    "mean_with_missed_ns": "REAL",
}

_TABLES = (
    "CREATE TABLE conditions (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)",
    "CREATE TABLE run (id INTEGER PRIMARY KEY, {columns}, histogram BLOB)",
    "CREATE TABLE caveat (run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE, "
    "caveat TEXT NOT NULL, PRIMARY KEY (run, caveat)) WITHOUT ROWID",
    "CREATE TABLE tag (directory TEXT NOT NULL, tag TEXT NOT NULL, "
    "PRIMARY KEY (directory, tag)) WITHOUT ROWID",
    "CREATE TABLE damaged (path TEXT PRIMARY KEY, mark TEXT NOT NULL, "
    "why TEXT NOT NULL) WITHOUT ROWID",
    "CREATE INDEX run_of_series ON run (series, started)",
    "CREATE INDEX run_of_directory ON run (directory)",
    "CREATE INDEX run_by_time ON run (started)",
)


@cache
def run_columns() -> dict[str, str]:
    """Return the columns of a run but `id` and `histogram`, each with its type."""
    # Without a type, a whole number stays one.
    return {**_NAMES, **dict.fromkeys(indexed_figures(), "")}


@contextmanager
def opened(path: Path, *, make: bool = False) -> Iterator[sqlite3.Connection]:
    """
    Give the index; `make` it if it is missing, or of another version.

    Raises UsageError where none is, or another file is; RecordError if it is damaged,
    cannot be read or written, or others hold it for two minutes.
    """
    if path.exists() and not path.is_file():
        raise UsageError(f"{path}: no file: name the file of the index with --index")
    if make:
        refuse_unwritable(path)
    if not make and not path.exists():
        raise UsageError(
            f"{path}: no such index; make it: rtscope history index DIR --index {path}"
        )
    mode = "rwc" if make else "ro"
    address = f"{path.absolute().as_uri()}?mode={mode}"
    try:
        with closing(
            sqlite3.connect(address, uri=True, timeout=PATIENCE_S, isolation_level=None)
        ) as index:
            index.row_factory = _checked_row
            index.execute("PRAGMA foreign_keys = ON")
            _check(index, path, make=make)
            yield index
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise _refused(path, error) from error


def _checked_row(cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> sqlite3.Row:
    """Return a row; raise DatabaseError for what rtscope has never written there."""
    names = tuple(one[0] for one in cursor.description)
    for place, name, kinds in _kinds_of(names):
        value = values[place]
        if not isinstance(value, kinds) or not _is_possible(name, value):
            raise sqlite3.DatabaseError(f"damaged: {name} is {quote(str(value))}")
    row = sqlite3.Row(cursor, values)
    if (
        "counts" in names
        and row["counts"]
        and None in (row["max_ns"], row["histogram"])
    ):
        raise sqlite3.DatabaseError("damaged: a run that counts has no latencies")
    return row


@cache
def _kinds_of(
    names: tuple[str, ...],
) -> tuple[tuple[int, str, tuple[type, ...]], ...]:
    """Return of each column that is known its place, its name, and its types."""
    of_runs = run_columns() if "started" in names else {}
    kinds = {**of_runs, **_OTHERS}
    return tuple(
        (place, name, _types(kinds[name]))
        for place, name in enumerate(names)
        if name in kinds
    )


def _types(kind: str) -> tuple[type, ...]:
    known = {"TEXT": (str,), "INTEGER": (int,), "BLOB": (bytes,)}
    plain = known.get(kind.partition(" ")[0], (int, float))
    return plain if "NOT NULL" in kind else (*plain, NoneType)


def _is_possible(name: str, value: object) -> bool:
    """Whether a column may have the value: a time is one, and no count is negative."""
    if name in TIMES and isinstance(value, str):
        try:
            return datetime.fromisoformat(value).year > 0
        except ValueError:
            return False
    if not isinstance(value, int | float):
        return True
    return math.isfinite(value) and (value >= 0 or name.endswith(_MAY_BE_NEGATIVE))


def _refused(path: Path, error: sqlite3.Error | UnicodeDecodeError) -> RecordError:
    said = str(error)
    is_damaged = "malformed" in said or "decode" in said
    if "locked" in said:
        hint = "another process holds it; wait for its end, then type this again"
    elif isinstance(error, sqlite3.OperationalError) and not is_damaged:
        hint = "free some space, or name a place that you may write with --index"
    else:
        hint = "remove the file, and index again: rtscope history index DIR"
    return RecordError(f"cannot use the index {path}: {said}; {hint}")


def _check(index: sqlite3.Connection, path: Path, *, make: bool) -> None:
    """Refuse what is no index of ours; make one where nothing is, or an old one is."""
    try:
        application, version = _marks(index)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise
        raise _foreign(path) from error
    if (application, version) == (APPLICATION, SCHEMA) and _is_ours(index):
        return
    if application not in (0, APPLICATION):
        raise _foreign(path)
    if not make:
        raise _unread(index, path)
    with writing(index):
        # Another process may just have made it.
        if _marks(index) == (APPLICATION, SCHEMA) and _is_ours(index):
            return
        names = tables_of(index)
        if names and _marks(index)[0] != APPLICATION:
            raise _foreign(path)
        _make(index, names)


def _unread(index: sqlite3.Connection, path: Path) -> UsageError:
    """Return the error for a file without an index that this rtscope reads."""
    names = tables_of(index)  # before its mark: another process may just make both
    if _marks(index)[0] == APPLICATION:
        why = "of another version of rtscope; make it anew"
    elif names:
        return _foreign(path)
    else:
        why = "nothing is in it; make it"
    return UsageError(f"{path}: {why}: rtscope history index DIR --index {path}")


def _marks(index: sqlite3.Connection) -> tuple[int, int]:
    application, version = (
        index.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("application_id", "user_version")
    )
    return application, version


def _is_ours(index: sqlite3.Connection) -> bool:
    """Whether its tables are as rtscope makes them, and nothing acts on them."""
    rows = index.execute("SELECT type, name, sql FROM sqlite_master")
    found = [(row["type"], row["name"], row["sql"]) for row in rows]
    made = {_name_of(one): one for one in _statements()}
    ours = {name: sql for _, name, sql in found if name in made}
    return ours == made and not any(kind == "trigger" for kind, *_ in found)


def _name_of(statement: str) -> str:
    return statement.split()[2]


@cache
def _statements() -> tuple[str, ...]:
    columns = ", ".join(f'"{name}" {kind}' for name, kind in run_columns().items())
    return tuple(one.format(columns=columns) for one in _TABLES)


def tables_of(index: sqlite3.Connection) -> list[str]:
    """Return the names of the tables of a file, ours or not."""
    rows = index.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return [row["name"] for row in rows]


def _make(index: sqlite3.Connection, old: Sequence[str]) -> None:
    index.execute("PRAGMA defer_foreign_keys = ON")
    for name in sorted(old, key=lambda one: one in ("run", "conditions")):
        if name in ("run", "conditions", "caveat", "tag", "damaged"):
            index.execute(f"DROP TABLE {name}")
    for statement in _statements():
        index.execute(statement)
    index.execute(f"PRAGMA application_id = {APPLICATION}")
    index.execute(f"PRAGMA user_version = {SCHEMA}")


def _foreign(path: Path) -> UsageError:
    return UsageError(
        f"{path}: another file, and no index of rtscope; name another one with --index"
    )


@contextmanager
def writing(index: sqlite3.Connection) -> Iterator[None]:
    """Make what is written one transaction, which other writers wait for."""
    index.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        index.execute("ROLLBACK")
        raise
    index.execute("COMMIT")


# --- what is written ------------------------------------------------------------------


def known_marks(index: sqlite3.Connection, below: Path) -> dict[str, str]:
    """Return the fingerprints of what was read below a place, also of damaged files."""
    marks: dict[str, str] = {}
    for table in ("damaged", "run"):
        rows = index.execute(
            f"SELECT path, mark FROM {table} WHERE {_BELOW}", _below(below)
        )
        marks |= {row["path"]: row["mark"] for row in rows}
    return marks


def known_tags(index: sqlite3.Connection, below: Path) -> Mapping[str, frozenset[str]]:
    """Return the tags of each directory at or below a place that has some."""
    found: dict[str, frozenset[str]] = {}
    for row in index.execute("SELECT directory, tag FROM tag"):
        if Path(row["directory"]).is_relative_to(below):
            tags = found.get(row["directory"], frozenset())
            found[row["directory"]] = tags | {row["tag"]}
    return found


_BELOW = "(path >= ? AND path < ?)"


def _below(place: Path) -> tuple[str, str]:
    """Return the ends of all paths below a place: `/` comes just before `0`."""
    head = str(place).rstrip("/")
    return f"{head}/", f"{head}0"


def put_entry(index: sqlite3.Connection, entry: Entry) -> None:
    """Write a run, in place of what was there of the same record."""
    names = [*run_columns(), "histogram"]
    _forget(index, str(entry.path))
    values = {
        **entry.columns,
        "settings": _condition(index, entry.settings),
        "state": _condition(index, entry.state),
    }
    cursor = index.execute(_insert(), [values.get(name) for name in names])
    index.executemany(
        "INSERT INTO caveat VALUES (?, ?)",
        [(cursor.lastrowid, one) for one in entry.caveats],
    )


@cache
def _insert() -> str:
    names = [*run_columns(), "histogram"]
    listed = ", ".join(f'"{name}"' for name in names)
    return f"INSERT INTO run ({listed}) VALUES ({', '.join('?' * len(names))})"


def _condition(index: sqlite3.Connection, text: str) -> int:
    index.execute("INSERT OR IGNORE INTO conditions (text) VALUES (?)", (text,))
    row = index.execute("SELECT id FROM conditions WHERE text = ?", (text,)).fetchone()
    number: int = row["id"]
    return number


def _forget(index: sqlite3.Connection, path: str) -> None:
    index.execute("DELETE FROM run WHERE path = ?", (path,))
    index.execute("DELETE FROM damaged WHERE path = ?", (path,))


def put_damaged(index: sqlite3.Connection, path: str, mark: str, why: str) -> None:
    """Write that a record could not be read."""
    _forget(index, path)
    index.execute("INSERT INTO damaged VALUES (?, ?, ?)", (path, mark, why))


def put_tags(index: sqlite3.Connection, directory: Path, tags: Iterable[str]) -> None:
    """Write the tags of a directory, in place of those that it had."""
    index.execute("DELETE FROM tag WHERE directory = ?", (str(directory),))
    rows = [(str(directory), one) for one in tags]
    index.executemany("INSERT INTO tag VALUES (?, ?)", rows)


def mark_vanished(index: sqlite3.Connection, gone: Iterable[str], *, now: str) -> int:
    """Mark runs whose record is gone, which keep their figures; return how many."""
    paths = [(path,) for path in gone]
    cursor = index.executemany(
        "UPDATE run SET vanished = ? WHERE path = ? AND vanished IS NULL",
        [(now, *path) for path in paths],
    )
    index.executemany("DELETE FROM damaged WHERE path = ?", paths)
    return max(cursor.rowcount, 0)


def mark_back(index: sqlite3.Connection, below: Path, there: Collection[str]) -> None:
    """Unmark runs whose record is there again."""
    rows = index.execute(
        f"SELECT path FROM run WHERE {_BELOW} AND vanished IS NOT NULL", _below(below)
    ).fetchall()
    back = [(row["path"],) for row in rows if row["path"] in there]
    index.executemany("UPDATE run SET vanished = NULL WHERE path = ?", back)


class _Conditions(dict[int, str]):
    def __missing__(self, number: int) -> str:
        raise sqlite3.DatabaseError(f"damaged: it has no conditions {number}")


def conditions(index: sqlite3.Connection) -> Mapping[int, str]:
    """Return the texts of settings and states; DatabaseError for one that is gone."""
    found = _Conditions()
    for number, text in index.execute("SELECT id, text FROM conditions"):
        try:
            is_table = isinstance(json_value(text, name="conditions"), dict)
        except RecordError:
            is_table = False
        if not is_table:
            raise sqlite3.DatabaseError(f"damaged: conditions {number} are no table")
        found[number] = text
    return found


def count_damaged(index: sqlite3.Connection) -> int:
    """Return how many records could not be read."""
    (number,) = index.execute("SELECT count(*) FROM damaged").fetchone()
    return int(number)
