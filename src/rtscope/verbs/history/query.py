"""Runs of the index by filters."""

import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from rtscope.host.errors import UsageError, quote
from rtscope.verbs.history.database import Row
from rtscope.verbs.history.tags import checked_tag

_AGO = re.compile(r"([1-9][0-9]{0,4})d")


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions that a run must meet."""

    conditions: tuple[str, ...] = ()
    """Of SQL, each with its marks."""
    values: tuple[object, ...] = field(default=())


def filters_of(
    *,
    machine: str | None = None,
    kernel: str | None = None,
    load: str | None = None,
    since: str | None = None,
    tag: str | None = None,
) -> Filters:
    """Return the conditions of options; raise UsageError for one that is wrong."""
    conditions: list[str] = []
    values: list[object] = []
    if machine is not None:
        conditions.append("machine GLOB ?")
        values.append(machine)
    if kernel is not None:
        conditions.append("(kernel GLOB ? OR kernel_release GLOB ?)")
        values += [kernel, kernel]
    if load is not None:
        loads = load.split(",")
        conditions.append(f"load IN ({', '.join('?' * len(loads))})")
        values += loads
    if since is not None:
        conditions.append("started >= ?")
        values.append(first_day(since))
    if tag is not None:
        conditions.append("directory IN (SELECT directory FROM tag WHERE tag = ?)")
        values.append(checked_tag(tag))
    return Filters(tuple(conditions), tuple(values))


def first_day(since: str) -> str:
    """Return the day that `2026-11-01`, or `30d` ago, is; UsageError for others."""
    if ago := _AGO.fullmatch(since):
        return (datetime.now(UTC) - timedelta(days=int(ago[1]))).date().isoformat()
    try:
        return date.fromisoformat(since).isoformat()
    except ValueError:
        raise UsageError(
            f"--since: {quote(since)}: write a day, 2026-11-01, or days, 30d"
        ) from None


def select_runs(
    index: sqlite3.Connection, filters: Filters, *, limit: int = 0
) -> tuple[Sequence[Row], int]:
    """Return runs, the newest first, and how many there are; 0: no limit."""
    where = f"WHERE {' AND '.join(filters.conditions)}" if filters.conditions else ""
    (total,) = index.execute(
        f"SELECT count(*) FROM run {where}", filters.values
    ).fetchone()
    rows = index.execute(
        "SELECT *, (SELECT group_concat(caveat, ' ') FROM caveat "
        f"WHERE caveat.run = run.id) AS caveats FROM run {where} "
        "ORDER BY started DESC, path DESC LIMIT ?",
        (*filters.values, limit or -1),
    ).fetchall()
    return rows, total
