"""
Lines of contract 1 in the names of contract 2.

Only names differ between the two, so every line that an agent of version 1 wrote, and
every record of schema 1, loads for ever.
"""

from collections.abc import Mapping
from typing import Any

Names = Mapping[tuple[str, ...], Mapping[str, str]]
"""The place of an object, in new keys; and new names for its old keys."""

ANY = "*"
"""As the last key of a place: whatever that key is."""

TYPES = {
    "load-hello": "load_hello",
    "load-end": "load_end",
    "trace-file": "trace_file",
    "trace-pages": "trace_pages",
}
THREAD = {
    "skipped": "missed_periods",
    "late": "overruns",
    "beyond": "overflow",
    "interrupted": "interrupted_sleeps",
    "skipped_sum_ns": "missed_periods_sum_ns",
}
_TASK = {"effective": "kernel_priority", "unread": "unreadable"}
LINES: Mapping[str, Names] = {
    "tick": {("cpus",): {"skipped": "missed_periods"}},
    "result": {
        ("threads",): THREAD,
        ("tracing",): {
            "on": "enabled",
            "refused": "reason",
            "longest_pause_ns": "longest_read_gap_ns",
            "missing": "missing_events",
            "around": "counter_deltas",
        },
        ("tracing", "kept"): {"cut": "truncated", "missed": "overwritten"},
        ("tracing", "counter_deltas"): {"cut": "truncated", "runs": "schedstat"},
    },
    "load_end": {(): {"asked": "stop_requested"}},
    "task": {(): _TASK, ("unreadable",): _TASK},
    "tasks_end": {(): {"missed": "not_read"}},
}
"""By the type of a line."""


def upgraded_line(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line of either contract in the names of contract 2."""
    kind = line.get("type")
    if not isinstance(kind, str):
        return dict(line)
    kind = TYPES.get(kind, kind)
    return {**renamed(line, LINES.get(kind, {})), "type": kind}


def renamed(value: Any, names: Names, place: tuple[str, ...] = ()) -> Any:
    """Return a document with other names for some keys of its objects."""
    if isinstance(value, list):
        return [renamed(item, names, place) for item in value]
    if not isinstance(value, Mapping):
        return value
    here = names.get(place) or names.get((*place[:-1], ANY), {})
    today = {here.get(key, key): item for key, item in value.items()}
    return {key: renamed(item, names, (*place, key)) for key, item in today.items()}
