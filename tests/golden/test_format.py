"""Files of every schema version and architecture load for ever, with their numbers."""

import json
from pathlib import Path
from typing import Any

import pytest

from rtscope.contract import (
    AgentResult,
    Growth,
    Hello,
    Line,
    Started,
    WorstSoFar,
    dump_line,
    parse_line,
)
from rtscope.contract import result_digest as digest_of
from rtscope.measure.growth import GrowthSum
from rtscope.record.model import RunRecord, record_from_json, record_to_json
from rtscope.stats.integrity import check_thread

FORMAT = Path(__file__).parent.parent.parent / "format"
EXPECTED = "expected.json"

STREAMS = sorted(FORMAT.glob("v*/*.jsonl"))
TELLING = sorted(FORMAT.glob("v*/growth/*.jsonl"))
RECORDS = sorted(FORMAT.glob("v*/record*.json"))


def name_of(path: Path) -> str:
    return path.relative_to(FORMAT).as_posix()


def lines_of(path: Path) -> list[Line]:
    return [parse_line(line) for line in path.read_bytes().splitlines()]


def record_of(path: Path) -> RunRecord:
    return record_from_json(path.read_bytes(), name=name_of(path))


def result_of(path: Path) -> AgentResult:
    if path.suffix == ".json":
        return record_of(path).result
    last = lines_of(path)[-1]
    assert isinstance(last, AgentResult)
    return last


def numbers_of(result: AgentResult) -> dict[str, Any]:
    """What must come out of a file in ten years as it does today."""
    return {
        "result_digest": digest_of(result.threads),
        "threads": [
            {
                "cpu": t.cpu,
                "samples": t.samples,
                "skipped": t.missed_periods,
                "late": t.overruns,
                "min_ns": t.min_ns,
                "max_ns": t.max_ns,
                "sum_ns": str(t.sum_ns),
                "sum_sq_ns2": str(t.sum_sq_ns2),
                "skipped_sum_ns": str(t.missed_periods_sum_ns),
                "buckets": len(t.histogram),
                "in_buckets": sum(count for _, count in t.histogram),
            }
            for t in result.threads
        ],
    }


@pytest.mark.parametrize("version", ["v2"])
def test_every_architecture_has_a_stream_of_each_version(version: str) -> None:
    names = {path.stem for path in STREAMS if path.parent.name == version}

    assert names == {"x86_64", "aarch64", "armv7l", "riscv64"}


@pytest.mark.parametrize("path", [*STREAMS, *RECORDS], ids=name_of)
def test_a_file_gives_the_numbers_written_beside_it(path: Path, rewrite: bool) -> None:
    beside = path.parent / EXPECTED
    expected = json.loads(beside.read_text("utf-8")) if beside.exists() else {}
    found = numbers_of(result_of(path))

    if rewrite and path.name not in expected:
        # Only for a new file: what an old one means is settled.
        expected[path.name] = found
        text = json.dumps(expected, indent=1, sort_keys=True) + "\n"
        beside.write_text(text, encoding="utf-8")

    assert found == expected[path.name]


@pytest.mark.parametrize("path", STREAMS, ids=name_of)
def test_a_stream_begins_with_hello_and_ends_with_one_result(path: Path) -> None:
    first, *_, last = lines = lines_of(path)

    assert isinstance(first, Hello)
    assert first.arch == path.stem
    assert isinstance(last, AgentResult)
    assert sum(isinstance(line, AgentResult) for line in lines) == 1


@pytest.mark.parametrize("path", STREAMS, ids=name_of)
def test_a_line_survives_writing_and_reading(path: Path) -> None:
    for line in lines_of(path):
        assert parse_line(dump_line(line)) == line


@pytest.mark.parametrize("path", [*STREAMS, *RECORDS], ids=name_of)
def test_the_figures_of_a_file_fit_each_other(path: Path) -> None:
    for thread in result_of(path).threads:
        assert list(check_thread(thread)) == []


@pytest.mark.parametrize("path", RECORDS, ids=name_of)
def test_a_record_carries_its_own_digest_and_survives_writing(path: Path) -> None:
    record = record_of(path)

    assert record.result_digest == digest_of(record.result.threads)
    assert record_from_json(record_to_json(record), name="again") == record


@pytest.mark.parametrize("path", TELLING, ids=name_of)
def test_what_is_told_each_second_adds_up_to_the_result(path: Path) -> None:
    grown, result = GrowthSum(), result_of(path)
    for line in lines_of(path):
        if isinstance(line, Started | Growth | WorstSoFar):
            grown.take(line)
    rebuilt = grown.result()

    assert rebuilt is not None
    assert grown.contradiction(result) == ""
    for made, whole in zip(rebuilt.threads, result.threads, strict=True):
        assert made.histogram == whole.histogram
        assert (made.samples, made.max_ns) == (whole.samples, whole.max_ns)
        assert made.worst == whole.worst[:1]
        assert made.end_ns == whole.end_ns
        assert list(check_thread(made)) == []
