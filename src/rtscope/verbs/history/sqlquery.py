"""`rtscope history query`: SQL to the index, and queries with names."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from rtscope.cli.console import Json, log, put, put_blocks, put_json, stdout_console
from rtscope.host.errors import UsageError, no_such
from rtscope.host.escape import printable
from rtscope.host.files import refuse_unwritable, write_atomically
from rtscope.host.files.csvtext import csv_text
from rtscope.host.files.jsontext import json_text
from rtscope.host.units import plural
from rtscope.present.document import Block, Column, Table
from rtscope.present.render.terminal import print_blocks
from rtscope.present.words import NOTHING, command_line
from rtscope.verbs.history import database
from rtscope.verbs.history.asking import Answer, Value, ask
from rtscope.verbs.history.canned import catalogue, datasette_metadata, query_names
from rtscope.verbs.history.indexing import IndexFile

LEAST_OF_A_COLUMN = 14
"""Characters of a terminal: with less for each column, rows stand below each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRequest:
    """The argument and options of `rtscope history query`."""

    query: Annotated[str | None, typer.Argument(metavar="QUERY")] = None
    """A SELECT of SQLite, or the name of a query, e.g. worst-per-night."""
    index: IndexFile = Path(database.NAME)
    """File of the index (default: history.db), e.g. lab.db."""
    limit: Annotated[int, typer.Option(min=0)] = 1000
    """Most rows of the answer (default: 1000; 0: all)."""
    names: Annotated[bool, typer.Option("--list")] = False
    """List the queries with names, and the tables."""
    datasette: Path | None = None
    """Metadata for Datasette to write: titles, columns, queries, e.g. metadata.json."""
    csv: Annotated[bool, typer.Option("--csv")] = False
    """Result as CSV."""
    json: Json = False


def query(request: QueryRequest) -> int:
    """
    Ask the index SQL: a SELECT of your own, or a query with a name.

    The file is open for reading alone. A row is a run in the table run, whose times are
    in ns; an unknown value is NULL. Ctrl-C stops a query.
    """
    _refuse_pairs(request)
    if request.names:
        _list(as_json=request.json)
        return 0
    if request.datasette is not None:
        _write_metadata(request.datasette, request.index)
        return 0
    if request.query is None:
        raise UsageError(
            "no query: write a SELECT, or a name: rtscope history query --list"
        )
    sql = _sql(request.query)
    with database.opened(request.index) as opened:
        answer = ask(opened, sql, limit=request.limit)
    _show(answer, request)
    return 0


def _refuse_pairs(request: QueryRequest) -> None:
    given = {
        "a query": request.query is not None,
        "--list": request.names,
        "--datasette": request.datasette is not None,
    }
    words = [name for name, is_there in given.items() if is_there]
    if len(words) > 1:
        raise UsageError(f"{' and '.join(words)}: write one of them")
    if request.csv and (request.json or request.query is None):
        raise UsageError("--csv: only for the rows of a query, and without --json")


def _sql(text: str) -> str:
    """Return the SQL of a name, or the text itself; UsageError for an unknown name."""
    word = text.strip()
    if word in query_names():
        return catalogue().queries[word].sql
    if word and word.replace("-", "").replace("_", "").isalnum():
        raise UsageError(f"{no_such('query', word, query_names())}, or write a SELECT")
    return text


def _write_metadata(path: Path, index: Path) -> None:
    refuse_unwritable(path)
    # Datasette calls a database as its file, without its ending.
    document = datasette_metadata(index.stem)
    write_atomically(path, json_text(document, ascii_only=False).encode())
    names = printable(str(index)), printable(str(path))
    opening = command_line(("datasette", names[0], "--metadata", names[1]))
    put(f"{names[1]}: written; open the index with it: {opening}\n")


# --- what is printed ------------------------------------------------------------------


def _list(*, as_json: bool) -> None:
    found = catalogue()
    if as_json:
        put_json(
            {
                "queries": {
                    name: {
                        "title": one.title,
                        "description": one.description,
                        "sql": one.sql.strip(),
                    }
                    for name, one in found.queries.items()
                },
                "tables": {
                    name: {
                        "description": one.description,
                        "columns": dict(one.columns),
                    }
                    for name, one in found.tables.items()
                },
            }
        )
        return
    put_blocks(
        Table(
            (Column("query"), Column("answers", fit="wraps")),
            [(name, one.title) for name, one in found.queries.items()],
        ),
        "",
        Table(
            (Column("table"), Column("has", fit="wraps")),
            [(name, one.description) for name, one in found.tables.items()],
        ),
        "",
        ("--json lists the columns and the SQL.", "muted"),
    )


def _show(answer: Answer, request: QueryRequest) -> None:
    rows = [
        [_plain(value, name) for value, name in zip(row, answer.columns, strict=True)]
        for row in answer.rows
    ]
    if request.json:
        put_json({"columns": answer.columns, "rows": rows, "more": answer.more})
        return
    if request.csv:
        cells = [["" if one is None else one for one in row] for row in rows]
        put(csv_text([answer.columns, *cells]))
        if answer.more:
            log(_count(answer))
        return
    with stdout_console() as console:
        print_blocks(_blocks(answer, rows, console.width), console)


def _plain(value: Value, column: str) -> str | int | float | None:
    """Return a value as JSON may have it; a blob by its size."""
    if isinstance(value, bytes):
        return f"{column}, {plural(len(value), 'byte')}"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _blocks(
    answer: Answer, rows: Sequence[Sequence[Any]], width: int
) -> Iterator[Block]:
    heads = [printable(name) for name in answer.columns]
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    is_narrow = sum(widths) + 2 * len(widths) > width
    if rows and is_narrow and len(heads) > width // LEAST_OF_A_COLUMN:
        for number, row in enumerate(cells, 1):
            pairs = list(zip(heads, row, strict=True))
            columns = (Column("", width=max(map(len, heads))), Column("", fit="folds"))
            yield (f"row {number:,}", "strong")
            yield Table(columns, pairs, indent=2)
    elif rows:
        yield Table(
            tuple(
                Column(
                    head,
                    right=_is_of_numbers([row[at] for row in rows]),
                    fit="folds" if is_narrow else "cut",
                )
                for at, head in enumerate(heads)
            ),
            cells,
        )
    yield _count(answer)


def _cell(value: object) -> str:
    if value is None:
        return NOTHING
    return printable(f"{value:.12g}" if isinstance(value, float) else str(value))


def _is_of_numbers(values: Sequence[object]) -> bool:
    return all(value is None or isinstance(value, int | float) for value in values)


def _count(answer: Answer) -> str:
    said = plural(len(answer.rows), "row")
    return f"{said}, and more; --limit 0 shows all." if answer.more else f"{said}."
