"""
Seeds and readers of what is kept for later: an index, a test, its baseline, wake-ups.

An index is read by every verb that shows one; the first byte of an index and of kept
wake-ups says whether the file or what lies in it was changed.
"""

import contextlib
import gzip
import sqlite3
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path

from fakes.measurements import record, thread
from fakes.nights import lab
from fuzz.folders import TREE, given_file, silent
from rtscope.cli.options import DisplayOptions
from rtscope.contract import Samples
from rtscope.host.files.documents import json_value
from rtscope.host.files.jsontext import json_text
from rtscope.record.samples import FILE, SamplesParts, read_samples, samples_file
from rtscope.verbs.history import database
from rtscope.verbs.history.check import CheckRequest, check
from rtscope.verbs.history.indexing import Tally, index_place
from rtscope.verbs.history.listing import FilterOptions, ListRequest, list_runs
from rtscope.verbs.history.show import ShowRequest, show
from rtscope.verbs.test.baseline import Baseline, KeptStart, KeptThread, read_baseline
from rtscope.verbs.test.file import load_test
from rtscope.verbs.test.keptcode import KeptCode, KeptFunction

_ROWS = ("conditions", "run", "caveat", "tag")


@cache
def indexes() -> Sequence[bytes]:
    """Return the index of a few nights of two boards, as a file and by its rows."""
    with tempfile.TemporaryDirectory() as folder:
        lab(Path(folder, "nights"), 6, boards=("a", "b"))
        index = Path(folder, "history.db")
        with database.opened(index, make=True) as opened:
            index_place(opened, Path(folder, "nights"), Tally())
            rows = {
                name: [
                    [one.hex() if isinstance(one, bytes) else one for one in tuple(row)]
                    for row in opened.execute(f"SELECT * FROM {name}")
                ]
                for name in _ROWS
            }
        return [b"\0" + index.read_bytes(), *[b"\1" + json_text(rows).encode()] * 3]


def read_index(data: bytes) -> object:
    """List it, show it over time, and check its newest night."""
    with given_file("history.db", data[1:]) as index, silent():
        if data[:1] == b"\1":
            index.unlink()
            _make(index, json_value(data[1:], name="rows"))
        listed = list_runs(ListRequest(index=index, filters=FilterOptions()))
        shown = show(ShowRequest(index=index, filters=FilterOptions()))
        return listed, shown, check(CheckRequest(index=index, display=DisplayOptions()))


def _make(path: Path, rows: object) -> None:
    """Make an index of these rows; what SQLite does not take is left out."""
    with database.opened(path, make=True) as index:
        index.execute("PRAGMA foreign_keys = OFF")
        for name in _ROWS:
            found = rows.get(name) if isinstance(rows, dict) else None
            for row in found if isinstance(found, list) else ():
                _insert(index, name, row)


def _insert(index: sqlite3.Connection, name: str, row: object) -> None:
    if not isinstance(row, list):
        return
    values = list(row)
    if name == "run" and values and isinstance(values[-1], str):
        with contextlib.suppress(ValueError):
            values[-1] = bytes.fromhex(values[-1])
    with contextlib.suppress(sqlite3.Error, OverflowError):
        places = ", ".join("?" * len(values))
        index.execute(f"INSERT INTO {name} VALUES ({places})", values)


@cache
def tests() -> Sequence[bytes]:
    """Return the test of a program among the examples."""
    return [(TREE / "examples/tested-program/hello.toml").read_bytes()]


def read_test(data: bytes) -> object:
    """Read the file of a test."""
    with given_file("t.toml", data) as path:
        return load_test(path)


@cache
def baselines() -> Sequence[bytes]:
    """Return the cycles of two threads of a test."""
    code = KeptCode(
        [KeptFunction("step", "a.c", 41, [(7, 30), (9, 11)])],
        *([[0, 40], [0, 41]], [0, 1, 0]),
    )
    threads = [
        KeptThread(
            *(name, 3, 0, [9_000, 9_100, 9_050], [5_000] * 3, [40, 41, 40]),
            *({"malloc step": 1}, {"write": (2, 900)}, code),
        )
        for name in ("loop", "io")
    ]
    start = KeptStart("pc", "debian-6.12-rt", "idle", 1, 1, {"qemu": "1"}, threads)
    kept = asdict(Baseline(1, "0.1.0", ["./loop"], [start]))
    return [json_text(kept).encode()]


def read_kept(data: bytes) -> object:
    """Read a baseline."""
    with given_file("base.json", data) as path:
        return read_baseline(path)


MEASURED = record([thread((3, 2, 66))])
FIVE = "BwACgQEA"
"""Five periods as an agent packs them, two without a wake-up."""


@cache
def wakeups() -> Sequence[bytes]:
    """Return the file of kept wake-ups: as it is, and what is packed in it."""
    parts = SamplesParts()
    parts.take(Samples(cpu=0, first=0, periods=5, base64=FIVE))
    content = samples_file(parts, MEASURED)
    assert content is not None
    return [b"\0" + content, b"\1" + gzip.decompress(content)]


def read_wakeups(data: bytes) -> object:
    """Read kept wake-ups beside their record."""
    content = data[1:] if data[:1] == b"\0" else gzip.compress(data[1:], 1)
    with given_file(FILE, content) as path:
        return read_samples(path, MEASURED)
