"""
Records of schema 1 in the names of schema 2.

Only names and places differ between the two: every value is taken over as it is. The
`result_digest` is computed over names of its own, so it stays the same.
"""

from collections.abc import Mapping
from typing import Any

from rtscope.contract.upgrade import ANY, LINES, THREAD, TYPES, Names, renamed

_LIFTED = ("virtual", "untraced", "tuned")
"""Keys of `extra`, which schema 2 has at the top."""

_CAVEATS = {"skipped": "missed_periods", "beyond": "overflow"}


def _within(*place: str, line: str) -> Names:
    return {(*place, *inner): names for inner, names in LINES[line].items()}


_NAMES: Names = {
    (): {
        "started": "started_at",
        "host_seconds": "host_duration_s",
        "untraced": "untraced_runs",
        "tuned": "tuning",
    },
    ("facts_before", ANY): {"why": "reason"},
    ("facts_after", ANY): {"why": "reason"},
    **_within("ticks", line="tick"),
    **_within("result", line="result"),
    **_within("load", "end", line="load_end"),
    ("untraced_runs",): THREAD,
    ("tuning", ANY): {"why": "reason"},
    ("virtual",): {
        "turn_instructions": "quantum_instructions",
        "qemu": "qemu_version",
        "counts": "plugin_counters",
        "leaves_out": "not_modelled",
        "disk": "disk_filesystem",
        "parts": "part_digests",
        "modules": "module_addresses",
        "inputs": "input_digests",
    },
    ("virtual", "plugin_counters"): {
        "slice": "quantum",
        "turns_ended": "quanta_ended",
    },
    ("virtual", "trace"): {
        "why": "reason",
        "cut": "truncated",
        "left_out": "omitted",
    },
}


def upgraded_record(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of schema 1 as one of schema 2; what is damaged stays so."""
    top = {key: value for key, value in document.items() if key != "extra"}
    if isinstance(extra := document.get("extra"), Mapping):
        top |= {key: extra[key] for key in _LIFTED if key in extra}
    new: dict[str, Any] = renamed(top, _NAMES)
    _rename_value(_inner(_inner(new, "load"), "end"), "type", TYPES)
    caveats = new.get("caveats")
    for caveat in caveats if isinstance(caveats, list) else ():
        _rename_value(caveat, "id", _CAVEATS)
    return new | {"schema": 2}


def _inner(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else None


def _rename_value(value: object, key: str, names: Mapping[str, str]) -> None:
    if isinstance(value, dict) and isinstance(old := value.get(key), str):
        value[key] = names.get(old, old)
