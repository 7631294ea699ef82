"""
What an index of `rtscope history` costs: CPU time and bytes of a run, and questions.

Directories are made records of four CPUs with hundreds of filled buckets. Millions of
runs are rows of the index copied within it, with other times and names: what asks it
sees no difference. CPU times hardly depend on what else the machine does.

    python bench/history_index.py --runs 1500000
    python bench/history_index.py --like nights --directories 15000

The second copies real records, with names, times and digests of their own, and counts
what `rtscope history index` costs of them: the first time, with nothing changed, and
with ten.
"""

import argparse
import json
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import duckdb

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from fakes.measurements import record, thread  # noqa: E402
from rtscope.host.units import plural  # noqa: E402
from rtscope.record.directory.records import create  # noqa: E402
from rtscope.record.explanation import EXPLAINED  # noqa: E402
from rtscope.verbs.history import database  # noqa: E402
from rtscope.verbs.history.histograms import unpacked  # noqa: E402
from rtscope.verbs.history.indexing import Tally, index_place  # noqa: E402
from rtscope.verbs.history.judge import judge  # noqa: E402
from rtscope.verbs.history.parquet import ParquetRequest, parquet  # noqa: E402
from rtscope.verbs.history.query import filters_of, select_runs  # noqa: E402
from rtscope.verbs.history.questions import (  # noqa: E402
    Asked,
    baseline_of,
    questions,
)

SERIES = 40
SAMPLES = 2_000
"""Of each CPU: they fill some 300 buckets."""

FIRST = datetime(2026, 1, 1)


def make(place: Path, directories: int, samples: int) -> int:
    """Write result directories; return the filled buckets of one."""
    rng = random.Random(1)
    threads = [
        thread(
            [int(rng.lognormvariate(9.2, 0.05)) for _ in range(samples - 5)]
            + [int(rng.lognormvariate(10.5, 0.3)) for _ in range(5)],
            cpu=cpu,
            worst_kept=64,
        )
        for cpu in range(4)
    ]
    one = record(threads, target="ssh:board")
    for number in range(directories):
        digest = f"{number:064x}"
        create(place / f"{number:05}", {}, command=("rtscope", "run")).save(
            replace(one, result_digest=digest)
        )
    return sum(len(each.histogram) for each in threads)


def copy(place: Path, directories: int, like: Path) -> int:
    """Write copies of the results below a place; return how many different ones."""
    known = [
        (file, json.loads(file.read_bytes())) for file in like.rglob("record.json")
    ]
    random.Random(1).shuffle(known)
    for number in range(directories):
        file, one = known[number % len(known)]
        run = place / f"{number // 100:03}" / f"{number:05}" / "runs" / one["run"]["id"]
        run.mkdir(parents=True)
        shutil.copy(file.parents[2] / "campaign.json", run.parents[1])
        begun = FIRST + timedelta(minutes=number)
        digest = f"{number:064x}"
        own = {"started_at": f"{begun:%Y-%m-%dT%H:%M:%SZ}", "result_digest": digest}
        (run / "record.json").write_text(json.dumps({**one, **own}))
        for beside in file.parent.glob(EXPLAINED):
            shutil.copy(beside, run)
    return len(known)


def cost(name: str, directories: int, file: Path, place: Path) -> None:
    """Print what a call of `rtscope history index` costs."""
    words = ["history", "index", str(place), "--index", str(file)]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    said = subprocess.run(
        [sys.executable, "-m", "rtscope", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    wall_s = time.monotonic() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    print(
        f"{name}: {directories / wall_s:,.0f} directories a second, "
        f"{directories / cpu:,.0f} of CPU ({wall_s:.1f} s, {cpu:.1f} s); at most "
        f"{used.ru_maxrss / 1024:.0f} MB so far; {said.stdout.partition(': ')[2]}",
        end="",
    )


def index_copies(directories: int, like: Path) -> None:
    """Print the cost of an index over copies of real records."""
    with tempfile.TemporaryDirectory() as folder:
        place, file = Path(folder, "nights"), Path(folder, "history.db")
        known = copy(place, directories, like)
        records = [*place.rglob("record.json")]
        size = sum(one.stat().st_size for one in records)
        print(f"{directories:,} directories of {known} records, {size / 1e6:,.0f} MB")
        cost("first", directories, file, place)
        cost("nothing changed", directories, file, place)
        for one in records[:10]:
            one.write_text(one.read_text() + " ")
        cost("ten changed", directories, file, place)
        print(f"{file.stat().st_size / directories:,.0f} bytes of index a run")
        ask(file)


def cpu_s(work: Callable[[], object]) -> float:
    """Return the CPU time of this process for some work."""
    before = time.process_time()
    work()
    return time.process_time() - before


def indexed(file: Path, place: Path) -> None:
    """Index a place."""
    with database.opened(file, make=True) as opened:
        index_place(opened, place, Tally())


def multiply(file: Path, runs: int) -> None:
    """Copy rows of the index until it has so many runs, of 40 series night by night."""
    with database.opened(file, make=True) as opened, database.writing(opened):
        names = [row["name"] for row in opened.execute("PRAGMA table_info(run)")]
        columns = ", ".join(f'"{name}"' for name in names if name != "id")
        values = ", ".join(
            {
                "path": "'/many/' || n || '/runs/1/record.json'",
                "directory": "'/many/' || n",
                "digest": "printf('%064x', 10000000 + n)",
                "series": f"'ssh:' || (n % {SERIES}) || ' idle'",
                "machine": f"'ssh:' || (n % {SERIES})",
                "started": "strftime('%Y-%m-%dT%H:%M:%SZ', 946684800 + n * 30, "
                "'unixepoch')",
                "max_ns": "max_ns + abs(random()) % 9999",
            }.get(name, f'"{name}"')
            for name in names
            if name != "id"
        )
        opened.execute(
            "WITH RECURSIVE many(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many "
            f"WHERE n < ?) INSERT INTO run ({columns}) SELECT {values} FROM many, "
            "(SELECT * FROM run LIMIT 1)",
            (runs,),
        )


def ask(file: Path) -> None:
    """Print the CPU time of questions to the index."""

    def newest() -> None:
        with database.opened(file) as opened:
            select_runs(opened, filters_of(), limit=40)

    def of_a_machine() -> None:
        with database.opened(file) as opened:
            select_runs(opened, filters_of(machine="ssh:7"), limit=40)

    def check() -> None:
        with database.opened(file) as opened:
            asked = Asked(4, frozenset(), baseline_of("last:20"), None)
            judge(questions(opened, filters_of(), asked))

    for name, work in (
        ("the newest 40 runs", newest),
        ("the newest 40 of a machine", of_a_machine),
        ("a check of 40 series", check),
    ):
        print(f"{name}: {cpu_s(work):.2f} s of CPU")


OF_DAYS = "started >= '2000-01-02' AND started < '{}'"
ENDS = {1: "2000-01-03", 30: "2000-02-01"}
"""First day behind so many days."""


def added_up(file: Path, days: int) -> dict[tuple[str, int], int]:
    """Return samples by series and latency of the first days, by SQLite."""
    sums: Counter[tuple[str, int]] = Counter()
    with database.opened(file) as opened:
        runs = "SELECT series, max_ns, histogram FROM run WHERE "
        for row in opened.execute(runs + OF_DAYS.format(ENDS[days])):
            for latency_ns, samples in unpacked(row["histogram"]):
                sums[row["series"], latency_ns] += samples
    return sums


def ask_duckdb(file: Path, place: Path) -> None:
    """Print the cost of the Parquet files of an index, and of histograms added up."""
    write_s = cpu_s(
        lambda: parquet(ParquetRequest(directory=place, index=file, json=False))
    )
    print(f"Parquet: {write_s:.1f} s of CPU")
    with duckdb.connect() as opened:
        for days in ENDS:
            of_days = OF_DAYS.format(ENDS[days]).replace("started", "run.started")
            sql = (
                "SELECT series, latency_ns, sum(histogram.samples) "
                f"FROM '{place}/histogram.parquet' AS histogram JOIN "
                f"'{place}/run.parquet' AS run ON run.id = histogram.run WHERE "
                f"{of_days} AND {of_days.replace('run.', 'histogram.')} GROUP BY ALL"
            )
            opened.execute(sql).fetchall()
            began = time.monotonic()
            rows = opened.execute(sql).fetchall()
            took_s = time.monotonic() - began
            began = time.monotonic()
            same = added_up(file, days)
            sqlite_s = time.monotonic() - began
            answer = {(series, latency): int(n) for series, latency, n in rows}
            print(
                f"histograms of {plural(days, 'day')} added up: {len(rows):,} rows, "
                f"DuckDB {took_s:.3f} s, SQLite and Python {sqlite_s:.3f} s, "
                f"{'equal' if answer == same else 'NOT EQUAL'}"
            )


def main() -> None:
    """Print what indexing and asking cost."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("--directories", type=int, default=1_000)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--runs", type=int, default=150_000)
    parser.add_argument("--like", type=Path)
    asked = parser.parse_args()
    if asked.like is not None:
        index_copies(asked.directories, asked.like)
        return
    with tempfile.TemporaryDirectory() as folder:
        place, file = Path(folder, "nights"), Path(folder, "history.db")
        buckets = make(place, asked.directories, asked.samples)
        first_s = cpu_s(lambda: indexed(file, place))
        again_s = cpu_s(lambda: indexed(file, place))
        print(
            f"{asked.directories} directories of {buckets} buckets: "
            f"{asked.directories / first_s:.0f} a second of CPU, unchanged "
            f"{asked.directories / again_s:.0f}; "
            f"{file.stat().st_size / asked.directories:.0f} bytes a run"
        )
        multiply(file, asked.runs)
        size = file.stat().st_size / 1e6
        print(f"{asked.runs:,} runs of {SERIES} series: {size:.0f} MB")
        try:
            ask(file)
            ask_duckdb(file, Path(folder, "parquet"))
        except sqlite3.Error as error:
            sys.exit(f"{file}: {error}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory: at most {memory:.0f} MB")


if __name__ == "__main__":
    main()
