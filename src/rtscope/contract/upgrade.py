"""
Lines of contract 1 in the names of contract 2.

Only names differ between the two, so every line that an agent of version 1 wrote, and
every record of schema 1, loads for ever.
"""

from collections.abc import Mapping
from typing import Any

Object = Mapping[str, Any]

TYPES = {
    "load-hello": "load_hello",
    "load-end": "load_end",
    "trace-file": "trace_file",
    "trace-pages": "trace_pages",
}

_TICK_CPU = {"skipped": "missed_periods"}
_THREAD = {
    "skipped": "missed_periods",
    "late": "overruns",
    "beyond": "overflow",
    "interrupted": "interrupted_sleeps",
    "skipped_sum_ns": "missed_periods_sum_ns",
}
_TRACING = {
    "on": "enabled",
    "refused": "reason",
    "longest_pause_ns": "longest_read_gap_ns",
    "missing": "missing_events",
    "around": "counter_deltas",
}
_KEPT = {"cut": "truncated", "missed": "overwritten"}
_COUNTER_DELTAS = {"cut": "truncated", "runs": "schedstat"}
_LOAD_END = {"asked": "stop_requested"}
_TASK = {"effective": "kernel_priority", "unread": "unreadable"}
_TASKS_END = {"missed": "not_read"}


def upgraded_line(line: Object) -> dict[str, Any]:
    """Return a line of either contract in the names of contract 2."""
    kind = TYPES.get(line.get("type", ""), line.get("type"))
    new = {**line, "type": kind}
    match kind:
        case "tick":
            new["cpus"] = _each(line.get("cpus"), _TICK_CPU)
        case "result":
            new = upgraded_result(new)
        case "load_end":
            new = renamed(new, _LOAD_END)
        case "task":
            new = renamed(new, _TASK)
            if isinstance(unreadable := new.get("unreadable"), Mapping):
                new["unreadable"] = renamed(unreadable, _TASK)
        case "tasks_end":
            new = renamed(new, _TASKS_END)
    return new


def upgraded_result(result: Object) -> dict[str, Any]:
    """Return the `result` of a measurement in the names of contract 2."""
    new = {**result, "threads": _each(result.get("threads"), _THREAD)}
    if isinstance(tracing := result.get("tracing"), Mapping):
        tracing = renamed(tracing, _TRACING)
        tracing["kept"] = _each(tracing.get("kept"), _KEPT)
        deltas = tracing.get("counter_deltas", [])
        tracing["counter_deltas"] = _each(deltas, _COUNTER_DELTAS)
        new["tracing"] = tracing
    return new


def renamed(old: Object, names: Mapping[str, str]) -> dict[str, Any]:
    """Return an object with other names for some of its keys."""
    return {names.get(key, key): value for key, value in old.items()}


def _each(rows: object, names: Mapping[str, str]) -> Any:
    # What is no list of objects is left for the contract to refuse, by name.
    if not isinstance(rows, list):
        return rows
    return [renamed(row, names) if isinstance(row, Mapping) else row for row in rows]
