"""Exports, read again: by our importers, and by what others read them with."""

import csv
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fakes.measurements import record, thread
from rtscope.contract import ThreadResult
from rtscope.host.errors import UsageError
from rtscope.present.formats.cyclictest import (
    histogram_text,
    microseconds_of,
    table_text,
)
from rtscope.record.foreign import read
from rtscope.record.foreign.source import Source
from rtscope.record.model import RunRecord
from rtscope.stats.runcaveats import all_caveats
from rtscope.stats.summary import summarize
from rtscope.verbs.exchange.records import Stated, record_of
from rtscope.verbs.exchange.writers import LACKS, WRITERS, ExportOptions

OUTPUTS = Path(__file__).parent.parent / "foreign"

LATENCIES_NS = [*range(5_000, 45_000, 37), 120_345, 1_999_999]

JUDGED = ExportOptions(deadline_ns=100_000)

METERS = ("cyclictest-text", "cyclictest-json", "jitterdebugger-json", "rtla-text")


def ours() -> RunRecord:
    return record([thread(LATENCIES_NS), thread(LATENCIES_NS[:50], cpu=1)])


def imported(path: Path) -> RunRecord:
    source = Source(path)
    (run,) = read(source)
    return record_of(run, source, Stated(), run_id="001-x", repetition=1, command=())


def again(tmp_path: Path, form: str, records: Sequence[RunRecord]) -> RunRecord:
    path = tmp_path / "x"
    path.write_text(WRITERS[form](records, ExportOptions()))
    return imported(path)


def test_every_format_says_what_it_lacks() -> None:
    assert WRITERS.keys() == LACKS.keys()


@pytest.mark.parametrize("form", METERS)
def test_a_meter_format_has_the_numbers_of_the_record(
    tmp_path: Path, form: str
) -> None:
    back = again(tmp_path, form, [ours()])
    for mine, theirs in zip(ours().result.threads, back.result.threads, strict=True):
        own, found = summarize([mine]), summarize([theirs])
        assert found.samples == own.samples
        assert found.min_ns == own.min_ns // 1000 * 1000
        assert found.max_ns == own.max_ns // 1000 * 1000
        assert found.mean_ns == pytest.approx(own.mean_ns, abs=1000)
    raised = {caveat.id for caveat in all_caveats(back)}
    assert "import_contradicts" not in raised


@pytest.mark.parametrize("name", ["cyclictest-2.10.json", "cyclictest-2.4.json"])
def test_json_of_cyclictest_comes_back_with_the_same_digest(
    tmp_path: Path, name: str
) -> None:
    first = imported(OUTPUTS / name)
    back = again(tmp_path, "cyclictest-json", [first])
    assert back.result_digest == first.result_digest


@pytest.mark.parametrize("name", sorted(p.name for p in OUTPUTS.glob("cyc*-hist*.txt")))
def test_text_of_cyclictest_comes_back_with_the_same_digest(
    tmp_path: Path, name: str
) -> None:
    first = imported(OUTPUTS / name)
    back = again(tmp_path, "cyclictest-text", [first])
    assert back.result_digest == first.result_digest


def test_jitterdebugger_comes_back_with_the_same_digest(tmp_path: Path) -> None:
    first = imported(OUTPUTS / "jitterdebugger-0.3.json")
    back = again(tmp_path, "jitterdebugger-json", [first])
    assert back.result_digest == first.result_digest


@pytest.mark.parametrize("kind", ["loaded", "irq", "user", "overflow"])
def test_rtla_comes_back_with_the_same_digest(tmp_path: Path, kind: str) -> None:
    source = Source(OUTPUTS / f"rtla-6.12-timerlat-hist-{kind}.txt")
    for run in read(source):
        first = record_of(
            run, source, Stated(), run_id="001-x", repetition=1, command=()
        )
        back = again(tmp_path, "rtla-text", [first])
        assert back.result_digest == first.result_digest
        assert back.run.variant == first.run.variant


@pytest.mark.parametrize("form", METERS)
def test_a_meter_format_has_room_for_one_run(form: str) -> None:
    with pytest.raises(UsageError, match="room for one run"):
        WRITERS[form]([ours(), ours()], ExportOptions())


@pytest.mark.parametrize("name", ["oslat-2.10.json", "hwlatdetect-2.10.txt"])
@pytest.mark.parametrize("form", METERS)
def test_what_is_no_wakeup_is_not_written_as_one(form: str, name: str) -> None:
    with pytest.raises(UsageError, match="this format is of wake-ups, and here is the"):
        WRITERS[form]([imported(OUTPUTS / name)], ExportOptions())


def test_the_way_to_an_interrupt_is_no_line_of_cyclictest() -> None:
    source = Source(OUTPUTS / "rtla-6.12-timerlat-hist-irq.txt")
    first = record_of(
        read(source)[0], source, Stated(), run_id="001-x", repetition=1, command=()
    )
    assert first.run.variant == "irq"
    with pytest.raises(UsageError, match="this format is of wake-ups"):
        WRITERS["cyclictest-text"]([first], ExportOptions())


def test_nothing_measured_is_no_row_of_zeros() -> None:
    with pytest.raises(UsageError, match="has no sample"):
        WRITERS["cyclictest-text"]([record([thread([])])], ExportOptions())


def test_junit_has_a_case_for_each_cpu() -> None:
    root = ElementTree.fromstring(WRITERS["junit"]([ours()], JUDGED))
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    first, second = suite
    assert (first.get("name"), second.get("name")) == ("CPU 0", "CPU 1")
    failure = first.find("failure")
    assert failure is not None
    assert (
        failure.get("message") == f"2 of {len(LATENCIES_NS)} wake-ups later than 100 us"
    )
    assert second.find("failure") is None
    told = {p.get("name"): p.get("value") for p in first.iter("property")}
    assert told["max_us"] == "1999.999"


def test_without_a_deadline_no_case_fails() -> None:
    assert "<failure" not in WRITERS["junit"]([ours()], ExportOptions())


def test_an_invalid_run_is_an_error_and_not_a_pass(tmp_path: Path) -> None:
    text = (OUTPUTS / "cyclictest-2.10.json").read_text()
    (tmp_path / "x").write_text(text.replace('"min": ', '"min": 9', 1))
    bad = imported(tmp_path / "x")
    assert "<error" in WRITERS["junit"]([bad], JUDGED)
    assert "\nok " not in WRITERS["ktap"]([bad], JUDGED)
    tests = json.loads(WRITERS["kcidb"]([bad], JUDGED))["tests"]
    assert {test["status"] for test in tests} == {"ERROR"}


def test_limits_of_a_run_are_in_its_junit() -> None:
    shown = WRITERS["junit"]([imported(OUTPUTS / "cyclictest-2.10.json")], JUDGED)
    assert 'name="limits" value="import_beyond_histogram, ' in shown


def test_ktap_counts_its_lines() -> None:
    lines = WRITERS["ktap"]([ours()], JUDGED).splitlines()
    assert lines[:2] == ["KTAP version 1", "1..2"]
    assert [line for line in lines if not line.startswith("#")][2:] == [
        "not ok 1 001-idle-CPU-0",
        "ok 2 001-idle-CPU-1",
    ]


def test_lava_finds_its_signals() -> None:
    """LAVA's own expression (lava_dispatcher/actions/test.py)."""
    signal = re.compile(r"<LAVA_SIGNAL_(\S+) ([^>]+)>")
    lines = WRITERS["lava"]([ours()], JUDGED).splitlines()
    found = [signal.fullmatch(line) for line in lines]
    assert all(found)
    told = dict(word.split("=") for word in lines[-1][:-1].split()[1:])
    assert told["TEST_CASE_ID"] == "001-idle-CPU-1-max"
    assert (told["RESULT"], told["UNITS"]) == ("pass", "us")


def test_tidy_csv_has_every_sample_in_a_row() -> None:
    rows = list(csv.DictReader(io.StringIO(WRITERS["csv"]([ours()], ExportOptions()))))
    counted = sum(int(row["count"]) for row in rows if row["cpu"] == "0")
    assert counted == len(LATENCIES_NS)
    assert all(int(row["low_ns"]) < int(row["high_ns"]) for row in rows)


def test_openmetrics_counts_within_exact_edges() -> None:
    text = WRITERS["openmetrics"]([ours()], ExportOptions())
    assert text.endswith("# EOF\n")
    buckets = re.findall(r'_bucket\{.*cpu="0",le="(.*?)"\} (\d+)', text)
    for edge, count in buckets[:-1]:
        assert "e" not in edge
        edge_ns = round(float(edge) * 1e9)
        within = sum(ns <= edge_ns for ns in LATENCIES_NS)
        assert within * 0.99 - 1 <= int(count) <= within
    assert buckets[-1] == ("+Inf", str(len(LATENCIES_NS)))
    assert 'rtscope_latency_max_seconds{run="001-idle"' in text
    assert re.search(r'max_seconds\{.*cpu="0"\} 0\.001999999\n', text)


def test_what_is_unknown_is_in_no_metric() -> None:
    first = imported(OUTPUTS / "cyclictest-2.10.json")
    text = WRITERS["openmetrics"]([first], ExportOptions())
    assert "rtscope_latency_stdev_seconds{" not in text
    assert "_sum{" not in text
    assert "_count{" not in text  # OpenMetrics has no count without a sum


def test_kcidb_has_the_maximum_in_seconds() -> None:
    document = json.loads(WRITERS["kcidb"]([ours()], JUDGED))
    assert document["version"] == {"major": 5, "minor": 3}
    first, second = document["tests"]
    assert (first["status"], second["status"]) == ("FAIL", "PASS")
    assert first["number"] == {"value": 0.001999999, "unit": "s", "prefix": "metric"}
    unjudged = json.loads(WRITERS["kcidb"]([ours()], ExportOptions()))["tests"]
    assert {test["status"] for test in unjudged} == {"DONE"}


def test_the_histogram_up_to_a_limit_has_each_row_and_the_sums(tmp_path: Path) -> None:
    one = ours()
    text = histogram_text(one.result.threads, rows=50, summed=True)
    path = tmp_path / "out"
    path.write_text(text)
    back = imported(path)

    rows = [line.split() for line in text.splitlines() if line[:1].isdigit()]
    assert [int(row[0]) for row in rows] == list(range(50))
    assert all(int(row[3]) == int(row[1]) + int(row[2]) for row in rows)
    assert "# Histogram Overflows: 00002 00000 00002" in text
    assert [t.samples for t in back.result.threads] == [len(LATENCIES_NS), 50]
    assert [t.max_ns for t in back.result.threads] == [1_999_000, 6_000]


def rows_of(threads: Sequence[ThreadResult]) -> list[int]:
    lines = histogram_text(threads).splitlines()
    return [int(line.split()[0]) for line in lines if line[:1].isdigit()]


def test_a_histogram_without_a_limit_has_each_row_up_to_the_longest() -> None:
    assert rows_of([thread([3_000, 5_000, 9_000])]) == list(range(10))


def test_a_histogram_of_very_many_cells_has_the_rows_that_are_not_empty() -> None:
    threads = [thread([3_000, 700_000_000]), thread([4_000, 5_000])]

    assert [us for us in rows_of(threads) if us < 100] == [3, 4, 5]
    assert len(rows_of(threads)) == 4
    assert len(rows_of(threads[:1])) > 690_000


def test_the_last_row_of_a_histogram_is_that_of_the_maximum() -> None:
    one = thread([7_000, 7_000, 1_202_700, 1_202_800, 1_203_034])  # of one bucket

    assert microseconds_of(one) == ({7: 2, 1202: 2, 1203: 1}, 0)
    assert microseconds_of(one, 1203) == ({7: 2, 1202: 2}, 1)
    assert microseconds_of(one, 1000) == ({7: 2}, 3)


def test_the_table_of_cyclictest_is_read_again_with_equal_numbers(
    tmp_path: Path,
) -> None:
    one = ours()
    path = tmp_path / "out"
    path.write_text(table_text(one))
    back = imported(path)

    for mine, theirs in zip(one.result.threads, back.result.threads, strict=True):
        assert theirs.samples == mine.samples
        assert theirs.min_ns == (mine.min_ns or 0) // 1000 * 1000
        assert theirs.max_ns == (mine.max_ns or 0) // 1000 * 1000
