"""What the sections of a virtual board could combine to: exact, and never below."""

import json
from pathlib import Path

import pytest
from test_recording import RUN, SHORT, finished
from test_recording import pytestmark as boards

from rtscope.record.directory.records import open_records
from rtscope.record.explanation import EXPLAINED

pytestmark = [*boards, pytest.mark.long]


def test_a_bound_is_above_every_maximum_and_the_same_for_equal_runs(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    finished(*RUN, *SHORT, "--repetitions", "2", "--out", out)
    first, second = json.loads(finished("explain", out, "--bound", "--json").stdout)

    assert first["result_digest"] == second["result_digest"]
    assert first["bounds"] == second["bounds"]
    threads = open_records(out)[0].result.threads
    maxima = {t.cpu: t.max_ns for t in threads}
    assert [one["cpu"] for one in first["bounds"]] == list(maxima)
    for one in first["bounds"]:
        kinds = {section["section"] for section in one["sections"]}
        assert {"POID", "PSD", "ST", "BACK"} <= kinds
        assert one["complete"]
        assert one["bound_ns"] >= one["observed_max_ns"] == maxima[one["cpu"]]
        assert all(section["name"] for section in one["sections"])

    # Once recorded, it is there; and the report tells it.
    beside = out / "runs" / first["run"] / EXPLAINED
    before = beside.read_bytes()
    finished("explain", out)
    assert beside.read_bytes() == before
    report = json.loads(finished("report", out, "--format", "json").stdout)
    assert report["explained"][0]["bound_ns"] == max(
        one["bound_ns"] for one in first["bounds"]
    )
