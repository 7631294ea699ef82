"""
Records of schema 1 in the names of schema 2.

Only names and places differ between the two: every value is taken over as it is. The
`result_digest` is computed over names of its own, so it stays the same.
"""

from collections.abc import Mapping
from typing import Any

from rtscope.contract.upgrade import renamed, upgraded_line

_RECORD = {"started": "started_at", "host_seconds": "host_duration_s"}
_FACT = {"why": "reason"}
_CAVEATS = {"skipped": "missed_periods", "beyond": "overflow"}
_EXTRA = {"untraced": "untraced_runs", "tuned": "tuning"}
_VIRTUAL = {
    "turn_instructions": "quantum_instructions",
    "qemu": "qemu_version",
    "counts": "plugin_counters",
    "leaves_out": "not_modelled",
    "disk": "disk_filesystem",
    "parts": "part_digests",
    "modules": "module_addresses",
    "inputs": "input_digests",
}
_COUNTERS = {"slice": "quantum", "turns_ended": "quanta_ended"}
_TRACE = {"why": "reason", "cut": "truncated", "left_out": "omitted"}
_TUNING = {"why": "reason"}
_THREAD = {
    "skipped": "missed_periods",
    "late": "overruns",
    "beyond": "overflow",
    "interrupted": "interrupted_sleeps",
    "skipped_sum_ns": "missed_periods_sum_ns",
}


def upgraded_record(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of schema 1 as one of schema 2; what is damaged stays so."""
    new = renamed(document, _RECORD) | {"schema": 2}
    for facts in ("facts_before", "facts_after"):
        new[facts] = {
            name: _renamed_if(fact, _FACT) for name, fact in _items(new.get(facts))
        }
    new["ticks"] = _lines(new.get("ticks"))
    if isinstance(new.get("result"), Mapping):
        new["result"] = upgraded_line(new["result"])
    if isinstance(load := new.get("load"), Mapping):
        end = load.get("end")
        new["load"] = {
            **load,
            "end": upgraded_line(end) if isinstance(end, Mapping) else end,
        }
    new["caveats"] = [_caveat(caveat) for caveat in new.get("caveats") or ()]
    extra = renamed(dict(_items(new.pop("extra", None))), _EXTRA)
    if isinstance(virtual := extra.get("virtual"), Mapping):
        extra["virtual"] = _virtual(virtual)
    if isinstance(runs := extra.get("untraced_runs"), list):
        extra["untraced_runs"] = [
            [_renamed_if(thread, _THREAD) for thread in run]
            if isinstance(run, list)
            else run
            for run in runs
        ]
    if isinstance(tuning := extra.get("tuning"), Mapping):
        extra["tuning"] = {key: _rows(rows) for key, rows in tuning.items()}
    kept = ("virtual", "untraced_runs", "tuning")
    return new | {key: extra[key] for key in kept if key in extra}


def _virtual(old: Mapping[str, Any]) -> dict[str, Any]:
    new = renamed(old, _VIRTUAL)
    for key, names in (("plugin_counters", _COUNTERS), ("trace", _TRACE)):
        if isinstance(inner := new.get(key), Mapping):
            new[key] = renamed(inner, names)
    return new


def _rows(rows: object) -> object:
    return (
        [_renamed_if(row, _TUNING) for row in rows] if isinstance(rows, list) else rows
    )


def _lines(lines: object) -> object:
    if not isinstance(lines, list):
        return lines
    return [upgraded_line(x) if isinstance(x, Mapping) else x for x in lines]


def _caveat(caveat: object) -> object:
    if not isinstance(caveat, Mapping):
        return caveat
    name = str(caveat.get("id"))
    return {**caveat, "id": _CAVEATS.get(name, name)}


def _renamed_if(value: object, names: Mapping[str, str]) -> object:
    return renamed(value, names) if isinstance(value, Mapping) else value


def _items(value: object) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, Mapping) else []
