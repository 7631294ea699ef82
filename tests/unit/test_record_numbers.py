"""A record with impossible numbers is refused or reported; nothing crashes."""

import json

import pytest

from fakes.measurements import record, thread
from fakes.printed import render_text
from rtscope.host.errors import RecordError
from rtscope.present.model.build import build_model
from rtscope.record.model import record_from_json, record_to_json

THREAD = record_to_json(record([thread([5_000, 7_000, 6_000] * 20)]))


@pytest.mark.parametrize(
    "changed",
    [
        {"histogram": [[2**63 - 1, 1]]},
        {"histogram": [[2**34, 1]]},
        {"histogram": [[5_000, 2**63 - 1]]},
        {"samples": 2**63 - 1},
        {"overflow": 2**63 - 1},
        {"missed_periods": 2**63 - 1},
    ],
    ids=str,
)
def test_a_number_that_no_run_can_have_is_refused(changed: dict[str, object]) -> None:
    with pytest.raises(RecordError, match="damaged record"):
        record_from_json(_with(changed), name="x")


@pytest.mark.parametrize(
    "changed",
    [
        {"histogram": [[2**34 - 2**23, 2**45]]},
        {"overflow": 2**45, "missed_periods": 2**45, "overruns": 2**45},
        {"max_ns": 0},
        {"max_ns": 2**63 - 1},
        {"interval_ns": 2**63 - 1},
        {"start_ns": 2**63 - 1},
        {"end_ns": 2**63 - 1},
    ],
    ids=str,
)
def test_a_number_that_contradicts_others_gives_a_report(
    changed: dict[str, object],
) -> None:
    found = record_from_json(_with(changed), name="x")

    assert "INVALID" in render_text(build_model([found]))


def _with(changed: dict[str, object]) -> bytes:
    document = json.loads(THREAD)
    document["result"]["threads"][0].update(changed)
    return json.dumps(document).encode()
