"""Exports, read by the libraries and programs that others read them with."""

import csv
import io
import json
import math
import shutil
import subprocess
from datetime import datetime
from pathlib import Path

import pytest
from junitparser import Failure, JUnitXml, Properties
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from fakes.measurements import record, thread
from rtscope.record.model import RunRecord
from rtscope.verbs.exchange.writers import WRITERS, ExportOptions

LATENCIES_NS = [*range(5_000, 45_000, 37), 120_345, 1_999_999]

HIGHEST = """\
stats "{file}" using ($2 > 0 ? $1 : NaN) nooutput
first = STATS_max
stats "{file}" using ($3 > 0 ? $1 : NaN) nooutput
print sprintf("%d %d", first, STATS_max)
"""
"""Of two columns of a histogram; gnuplot takes lines with # for comments."""


def ours() -> RunRecord:
    return record([thread(LATENCIES_NS), thread(LATENCIES_NS[:50], cpu=1)])


def test_junitparser_reads_the_same_cases(tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    path.write_text(WRITERS["junit"]([ours()], ExportOptions(deadline_ns=100_000)))
    (suite,) = JUnitXml.fromfile(str(path))
    assert (suite.name, suite.tests, suite.failures, suite.errors, suite.skipped) == (
        *("001-idle", 2, 1, 0, 0),
    )
    first, second = suite
    (failure,) = first.result
    assert isinstance(failure, Failure)
    assert failure.message == f"2 of {len(LATENCIES_NS)} wake-ups later than 100 us"
    assert (second.name, second.is_passed) == ("CPU 1", True)
    told = {one.name: one.value for one in first.child(Properties)}
    assert told["max_us"] == "1999.999"
    assert told["samples"] == str(len(LATENCIES_NS))


def test_prometheus_reads_the_same_numbers() -> None:
    text = WRITERS["openmetrics"]([ours()], ExportOptions())
    families = {one.name: one for one in text_string_to_metric_families(text)}
    highest = {
        one.labels["cpu"]: one.value
        for one in families["rtscope_latency_max_seconds"].samples
    }
    assert highest == {"0": 0.001999999, "1": (5_000 + 37 * 49) / 1e9}

    wakeups = families["rtscope_latency_seconds"]
    assert (wakeups.type, wakeups.unit) == ("histogram", "seconds")
    first = [one for one in wakeups.samples if one.labels["cpu"] == "0"]
    by_edge = {
        float(one.labels["le"]): one.value
        for one in first
        if one.name.endswith("_bucket")
    }
    assert list(by_edge.values()) == sorted(by_edge.values())
    assert by_edge[float("inf")] == len(LATENCIES_NS)
    assert by_edge[0.001] == len(LATENCIES_NS) - 1
    (total_s,) = [one.value for one in first if one.name.endswith("_sum")]
    assert total_s == pytest.approx(sum(LATENCIES_NS) / 1e9)


@pytest.mark.skipif(not shutil.which("gnuplot"), reason="gnuplot is not installed")
def test_gnuplot_finds_the_same_maxima_in_a_histogram(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(WRITERS["cyclictest-text"]([ours()], ExportOptions()))
    done = subprocess.run(
        ["gnuplot"],
        input=HIGHEST.format(file=path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout + done.stderr).split() == [
        "1999",
        str((5_000 + 37 * 49) // 1000),
    ]


def test_points_of_a_series_have_the_figures_of_the_run() -> None:
    names = ("otava-csv", "influx", "benchmark-action", "bencher")
    written = {name: WRITERS[name]([ours()], ExportOptions()) for name in names}

    [row] = csv.DictReader(io.StringIO(written["otava-csv"]))
    assert math.expm1(float(row["log_max_ns"])) == pytest.approx(1_999_999, rel=1e-5)
    assert datetime.fromisoformat(row["time"]).tzinfo is not None

    head, fields, at_ns = written["influx"].split(" ")
    assert head.startswith("rtscope,run=001-idle,")
    assert "max_ns=1999999i" in fields.split(",")
    assert int(at_ns) % 10**9 == 0

    values = json.loads(written["benchmark-action"])
    assert all(set(one) == {"name", "unit", "value"} for one in values)
    assert [one["value"] for one in values if one["name"].endswith(" max_ns")] == [
        1_999_999
    ]
    [measures] = json.loads(written["bencher"]).values()
    assert measures["max_ns"] == {"value": 1_999_999}
