"""
`rtscope history parquet`: the index as Parquet files, for DuckDB, pandas and others.

    run.parquet        a row per run, without its histogram
    histogram.parquet  a row per run and latency, runs in the order of time
    conditions, caveat, tag, damaged    as in the index

pyarrow is an extra: it is loaded here alone, and only when asked for.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtscope.cli.console import Json, put, put_json
from rtscope.host.errors import RecordError, UsageError
from rtscope.host.escape import printable
from rtscope.host.files import new_file
from rtscope.host.units import format_size, plural
from rtscope.present.words import command_line
from rtscope.verbs.history import database
from rtscope.verbs.history.canned import catalogue
from rtscope.verbs.history.histograms import unpacked
from rtscope.verbs.history.indexing import IndexFile

if TYPE_CHECKING:
    import pyarrow as pa

INSTALL = "pip install 'rtscope[parquet]'"

BATCH = 5000
"""Runs in memory at once: with 300 latencies each, 24 MB of numbers."""

TABLES = ("conditions", "caveat", "tag", "damaged")
"""Tables that lie in Parquet as in the index."""

RUN, HISTOGRAM = "run", "histogram"

TRUTHS = ("virtual", "counts")
"""Columns of run that are 0 or 1 in the index."""

NUMBERS = ("id", "run")
"""Columns of the other tables that are numbers of rows."""

Rows = Sequence[database.Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetRequest:
    """The argument and options of `rtscope history parquet`."""

    directory: Annotated[Path, typer.Argument(metavar="DIR")]
    """Folder for the files, e.g. parquet; files of these names are replaced."""
    index: IndexFile = Path(database.NAME)
    """File of the index (default: history.db), e.g. lab.db."""
    json: Json = False


@dataclass(slots=True)
class Written:
    """What was written: of each file its rows, and the bytes of all."""

    directory: str
    rows: dict[str, int] = field(default_factory=dict)
    size_bytes: int = 0


def parquet(request: ParquetRequest) -> int:
    """
    Write the index as Parquet files, which DuckDB, pandas and others read.

    Histograms are rows, run and latency with its count, so a query can add and compare
    those of many nights. Times of day are UTC, latencies are in ns; an unknown value is
    NULL. Each file is replaced as a whole; all are of one state of the index.
    """
    _refuse_without_library()
    place = request.directory
    written = Written(str(place))
    with database.opened(request.index) as opened:
        _make(place)
        opened.execute("BEGIN")  # what others index meanwhile is in no file
        _write_runs(opened, written)
        for name in TABLES:
            _write_table(opened, name, written)
    if request.json:
        put_json(asdict(written))
    else:
        put(_sentences(written, place))
    return 0


def _refuse_without_library() -> None:
    if find_spec("pyarrow") is None:
        raise UsageError(f"Parquet: needs the Python package pyarrow; type {INSTALL}")


def _make(place: Path) -> None:
    if place.exists() and not place.is_dir():
        raise UsageError(f"{place}: no folder; name another one")
    try:
        place.mkdir(exist_ok=True)
    except OSError as error:
        raise RecordError(f"cannot make {place}: {error.strerror}") from error


def _sentences(written: Written, place: Path) -> str:
    runs, rows = written.rows["run"], written.rows[HISTOGRAM]
    sql = "SELECT series, max(max_ns) FROM 'run.parquet' WHERE counts GROUP BY 1"
    where = command_line(("cd", str(place)))
    return (
        f"{printable(str(place))}: {plural(runs, 'run')}, "
        f"{plural(rows, 'row')} of histograms, {format_size(written.size_bytes)} in "
        f"{len(written.rows)} files\n"
        f'Ask them: {printable(where)} && duckdb -c "{sql}"\n'
    )


# --- what each file has ---------------------------------------------------------------


def _schema(table: str) -> "pa.Schema":
    import pyarrow as pa

    about = catalogue().about.description
    return pa.schema(
        [
            pa.field(name, kind, metadata={"description": text})
            for name, kind, text in _columns(table)
        ],
        metadata={"description": about},
    )


def _columns(table: str) -> "Iterator[tuple[str, pa.DataType, str]]":
    """Yield name, type and text of each column of a file."""
    import pyarrow as pa

    if table == HISTOGRAM:
        texts = catalogue().tables[RUN].columns
        yield "run", pa.int64(), "Number of the run: id in run.parquet."
        yield "started", pa.timestamp("us", tz="UTC"), texts["started"]
        yield "latency_ns", pa.int64(), "Latency, the highest of its bucket."
        yield "samples", pa.int64(), "Wake-ups with this latency."
        return
    for name, text in catalogue().tables[table].columns.items():
        if table != RUN:
            yield name, pa.int64() if name in NUMBERS else pa.string(), text
        elif name != HISTOGRAM:
            yield name, _type_of_run(name), text


def _type_of_run(name: str) -> "pa.DataType":
    """Return the type of a column of run; of a figure that of all its values."""
    import pyarrow as pa

    if name in database.TIMES:
        return pa.timestamp("us", tz="UTC")
    if name in TRUTHS:
        return pa.bool_()
    kind = {"id": "INTEGER", **database.run_columns()}[name]
    known = {"INTEGER": pa.int64(), "TEXT": pa.string()}
    return known.get(kind.partition(" ")[0], pa.float64())


# --- writing --------------------------------------------------------------------------


class _File:
    """A Parquet file while it is written."""

    def __init__(self, path: Path, schema: "pa.Schema") -> None:
        from pyarrow.parquet import ParquetWriter

        self._schema = schema
        self._writer = ParquetWriter(path, schema, compression="zstd")
        self.rows = 0

    def add(self, columns: Mapping[str, Sequence[object]]) -> None:
        """Write rows: a group of their own."""
        import pyarrow as pa

        table = pa.table(dict(columns), schema=self._schema)
        self.rows += table.num_rows
        self._writer.write_table(table)

    def close(self) -> None:
        """Write the end, without which nobody can read the file."""
        self._writer.close()


@contextmanager
def _file(name: str, written: Written) -> Iterator[_File]:
    """Give the file of a table, which replaces that of before when all is written."""
    path = Path(written.directory) / f"{name}.parquet"
    with new_file(path, RecordError) as new, closing(_File(new, _schema(name))) as file:
        yield file
    written.rows[name] = file.rows
    written.size_bytes += path.stat().st_size


def _write_runs(opened: sqlite3.Connection, written: Written) -> None:
    found = opened.execute("SELECT * FROM run ORDER BY started, id")
    with _file(RUN, written) as runs, _file(HISTOGRAM, written) as histograms:
        for batch in _batches(found):
            runs.add(_values(batch, [name for name, *_ in _columns(RUN)]))
            histograms.add(_counts(batch))


def _write_table(opened: sqlite3.Connection, name: str, written: Written) -> None:
    names = [one for one, *_ in _columns(name)]
    with _file(name, written) as file:
        found = opened.execute(f"SELECT * FROM {name} ORDER BY {', '.join(names)}")
        for batch in _batches(found):
            file.add(_values(batch, names))


def _batches(rows: sqlite3.Cursor) -> Iterator[Rows]:
    while batch := list(islice(rows, BATCH)):
        yield batch


def _values(rows: Rows, names: Sequence[str]) -> Mapping[str, Sequence[object]]:
    values = {name: [row[name] for row in rows] for name in names}
    for name in values.keys() & set(database.TIMES):
        values[name] = [_time(one) for one in values[name]]
    for name in values.keys() & set(TRUTHS):
        values[name] = [bool(one) for one in values[name]]
    return values


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _counts(rows: Rows) -> Mapping[str, Sequence[object]]:
    """Return the histograms of runs, a value per run and latency."""
    columns: dict[str, list[object]] = {name: [] for name, *_ in _columns(HISTOGRAM)}
    for row in rows:
        counts = unpacked(row["histogram"]) if row["histogram"] else ()
        columns["run"] += [row["id"]] * len(counts)
        columns["started"] += [_time(row["started"])] * len(counts)
        columns["latency_ns"] += [latency_ns for latency_ns, _ in counts]
        columns["samples"] += [number for _, number in counts]
    return columns
