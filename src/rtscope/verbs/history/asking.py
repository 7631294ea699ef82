"""
A question to the index in SQL: read-only, bounded, and stopped by Ctrl-C.

SQLite opens the file for reading alone, and compiles nothing else: no other file is
attached, and none is written by VACUUM INTO.
"""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from rtscope.host.errors import UsageError
from rtscope.host.escape import printable
from rtscope.verbs.history.database import tables_of

Value = str | int | float | bytes | None

MOST_BYTES = 64 << 20
"""Of one value, and of the query."""

MOST_OF_ALL = 256 << 20
"""Characters and bytes of all rows."""

STEPS = 10_000
"""Of SQLite's machine, between which Ctrl-C is noticed: below a millisecond."""

_READS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
_PRAGMAS = {"table_info", "table_xinfo", "table_list", "index_list", "index_info"}

_OF_THE_FILE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOTADB,
}
"""Errors that are no fault of the query."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of a query."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Value, ...]]
    more: bool
    """Whether there are rows beyond the limit."""


def ask(index: sqlite3.Connection, sql: str, *, limit: int) -> Answer:
    """
    Return at most `limit` rows of a query; 0: all.

    Raises UsageError for a query that SQLite refuses, or that would write;
    KeyboardInterrupt if Ctrl-C ends it; sqlite3.Error for a damaged index.
    """
    tables = _columns_by_table(index)
    index.text_factory = lambda text: text.decode("utf-8", "backslashreplace")
    index.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)
    index.set_authorizer(_authorized)
    # Python runs its handlers of signals in this call.
    index.set_progress_handler(lambda: 0, STEPS)
    cursor = index.cursor()
    # The index's own factory checks the columns of `run`: a query may rename any.
    cursor.row_factory = None
    with _in_words(sql, tables):
        cursor.execute(sql)
        if cursor.description is None:
            raise UsageError(
                "no query: write SELECT ..., or --list for those with names"
            )
        rows = list(_bounded(islice(cursor, limit + 1 if limit else None)))
        columns = tuple(str(one[0]) for one in cursor.description)
    if limit:
        return Answer(columns, rows[:limit], len(rows) > limit)
    return Answer(columns, rows, more=False)


def _bounded(rows: Iterable[tuple[Value, ...]]) -> Iterator[tuple[Value, ...]]:
    """Yield rows; raise UsageError where they no longer fit into memory."""
    size = 0
    for row in rows:
        size += sum(len(one) for one in row if isinstance(one, str | bytes))
        if size > MOST_OF_ALL:
            raise UsageError(
                f"the answer has more than {MOST_OF_ALL >> 20} MiB: choose fewer "
                "columns, or fewer rows with --limit"
            )
        yield row


def _columns_by_table(index: sqlite3.Connection) -> dict[str, list[str]]:
    return {
        name: [row["name"] for row in index.execute(f"PRAGMA table_info({name})")]
        for name in tables_of(index)
    }


def _authorized(
    action: int, first: str | None, _second: str | None, *_where: str | None
) -> int:
    is_pragma = action == sqlite3.SQLITE_PRAGMA and first in _PRAGMAS
    # SQLite asks for it when it makes json_each; SQL itself cannot.
    is_function = action == sqlite3.SQLITE_UPDATE and first == "sqlite_master"
    allowed = action in _READS or is_pragma or is_function
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


@contextmanager
def _in_words(sql: str, tables: dict[str, list[str]]) -> Iterator[None]:
    """Turn what SQLite refuses into words; leave errors of the file."""
    try:
        yield
    except sqlite3.Warning as error:  # Python 3.11: more than one statement
        raise _refused(sql, str(error), tables) from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code == sqlite3.SQLITE_INTERRUPT:
            raise KeyboardInterrupt from error
        if code in _OF_THE_FILE:
            raise
        if code in (sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY):
            raise UsageError(
                "the index is open for reading alone: write one SELECT; `rtscope "
                "history index` changes it"
            ) from error
        raise _refused(sql, str(error), tables) from error
    except (UnicodeEncodeError, OverflowError, MemoryError) as error:
        raise _refused(sql, str(error) or "out of memory", tables) from error


def _refused(sql: str, said: str, tables: dict[str, list[str]]) -> UsageError:
    """Say what SQLite said, and which tables and columns there are."""
    hint = f"tables: {', '.join(tables)}"
    if "no such column" in said:
        words = set(re.findall(r"\w+", sql.lower()))
        named = [name for name in tables if name in words] or list(tables)
        hint = "; ".join(f"columns of {one}: {', '.join(tables[one])}" for one in named)
    return UsageError(
        f"SQLite refuses the query: {printable(said.rstrip('.'), limit=200)}; {hint}"
    )
