"""Records of schema 1: each old name has a new one, and damage stays damage."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtscope.host.errors import RecordError
from rtscope.record.model import record_from_json
from rtscope.record.upgrade import upgraded_record

WAKEUP = {"cpu": 0, "seq": 1, "expiry_ns": 5, "wake_ns": 9}
THREAD = {"skipped": 1, "late": 2, "beyond": 3, "interrupted": 4, "skipped_sum_ns": "5"}
NEW_THREAD = {
    "missed_periods": 1,
    "overruns": 2,
    "overflow": 3,
    "interrupted_sleeps": 4,
    "missed_periods_sum_ns": "5",
}
OLD: dict[str, Any] = {
    "schema": 1,
    "started": "2026",
    "host_seconds": 1.5,
    "facts_before": {"guest": {"value": None, "why": "no flag"}},
    "facts_after": {"why": {"value": 1, "why": ""}},
    "ticks": [{"type": "tick", "cpus": [{"cpu": 0, "skipped": 7}]}],
    "result": {
        "type": "result",
        "threads": [THREAD],
        "tracing": {
            "on": False,
            "refused": "it is locked down",
            "longest_pause_ns": 8,
            "missing": ["irq:softirq_raise"],
            "kept": [{**WAKEUP, "cut": True, "missed": False}],
            "around": [{**WAKEUP, "cut": False, "runs": []}],
        },
    },
    "load": {"name": "cpu", "end": {"type": "load-end", "asked": True}},
    "caveats": [{"id": "skipped"}, {"id": "beyond"}, {"id": "guest"}],
    "extra": {
        "virtual": {
            "turn_instructions": 2500,
            "qemu": "10.0",
            "counts": {"slice": 2500, "turns_ended": 9, "marks": 1},
            "leaves_out": ["caches"],
            "disk": "ext4",
            "parts": {"qemu": "a"},
            "modules": {"cut": "0x1"},
            "inputs": {"qemu": "b"},
            "trace": {"why": "--no-record", "cut": 1, "left_out": 0},
        },
        "untraced": [[THREAD], [THREAD]],
        "tuned": {"changed": [], "refused": [{"path": "/p", "why": "denied"}]},
        "invented": 1,
    },
}
NEW = {
    "schema": 2,
    "started_at": "2026",
    "host_duration_s": 1.5,
    "facts_before": {"guest": {"value": None, "reason": "no flag"}},
    "facts_after": {"why": {"value": 1, "reason": ""}},
    "ticks": [{"type": "tick", "cpus": [{"cpu": 0, "missed_periods": 7}]}],
    "result": {
        "type": "result",
        "threads": [NEW_THREAD],
        "tracing": {
            "enabled": False,
            "reason": "it is locked down",
            "longest_read_gap_ns": 8,
            "missing_events": ["irq:softirq_raise"],
            "kept": [{**WAKEUP, "truncated": True, "overwritten": False}],
            "counter_deltas": [{**WAKEUP, "truncated": False, "schedstat": []}],
        },
    },
    "load": {"name": "cpu", "end": {"type": "load_end", "stop_requested": True}},
    "caveats": [{"id": "missed_periods"}, {"id": "overflow"}, {"id": "guest"}],
    "virtual": {
        "quantum_instructions": 2500,
        "qemu_version": "10.0",
        "plugin_counters": {"quantum": 2500, "quanta_ended": 9, "marks": 1},
        "not_modelled": ["caches"],
        "disk_filesystem": "ext4",
        "part_digests": {"qemu": "a"},
        "module_addresses": {"cut": "0x1"},
        "input_digests": {"qemu": "b"},
        "trace": {"reason": "--no-record", "truncated": 1, "omitted": 0},
    },
    "untraced_runs": [[NEW_THREAD], [NEW_THREAD]],
    "tuning": {"changed": [], "refused": [{"path": "/p", "reason": "denied"}]},
}


def test_every_old_name_becomes_a_new_one_at_its_place_only() -> None:
    assert upgraded_record(OLD) == NEW


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*OLD, "type", "id", "end"]), inner)
    ),
    max_leaves=8,
)


@given(st.sampled_from([*OLD, "type"]), JSON)
def test_a_damaged_record_of_schema_1_is_called_damaged(key: str, junk: Any) -> None:
    damaged = {**OLD, key: junk, "schema": 1}

    with pytest.raises(RecordError, match=r"r\.json: damaged record"):
        record_from_json(json.dumps(damaged).encode(), name="r.json")
