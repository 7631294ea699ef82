"""
Determinism checks: runs computed twice, where their records differ, and that in words.

A board's results follow from its inputs, and nothing of the host reaches the board: no
clock, no entropy, no disk. So every field must be equal, also one that the record gets
later, except those that are named here.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rtscope.host.escape import printable
from rtscope.host.units import plural
from rtscope.present.document import Block, words
from rtscope.record.model import FILE_LOST, RunRecord, record_to_json


@dataclass(frozen=True, slots=True)
class Checks:
    """What came of the checks; one with different results ends the sweep."""

    planned: int = 0
    """How many have ended."""
    equal: int = 0
    failures: tuple[str, ...] = ()
    """Why a check has no two results to compare."""


NO_CHECKS = Checks()


def checks_of(whys: Mapping[str, str]) -> Checks:
    """
    Return the checks of a sweep, of all its starts.

    By the run that was computed twice: why there are no two results; empty if they are
    equal.
    """
    failures = tuple(why for why in whys.values() if why)
    return Checks(len(whys), len(whys) - len(failures), failures)


# --- the determinism checks of a sweep in words ---------------------------------------


def lines_of_checks(checks: Checks) -> Iterator[Block]:
    """Yield how many checks were equal, and why others could not be made."""
    if not checks.planned:
        return
    text = f"{checks.equal} of {plural(checks.planned, 'determinism check')} equal"
    if not checks.failures:
        yield text
        return
    first = printable(checks.failures[0])
    yield words((f"{text}, {len(checks.failures)} failed: {first}", "limit"))


# --- where the records of one virtual run that was computed twice differ --------------

_OF_THE_HOST = frozenset(
    {"started_at", "host_duration_s", "virtual.reused", "virtual.worker"}
)
"""Who computed it, when, and how long it took."""

_CAVEATS_OF_THE_HOST = frozenset({"result_reused", FILE_LOST})
"""That a result was stored, and that a file could not be written here."""

_WITHOUT_PATHS = _OF_THE_HOST | {"virtual.trace"}

_ABSENT = object()
_MAX_TEXT = 60
_BEFORE = 20
"""Characters before the first that differs, of a long text."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A field with its two values, as JSON."""

    place: str
    """Names of fields with dots between them, as in `load.operations.switch`."""
    first: str
    second: str


def differences(first: RunRecord, second: RunRecord) -> Iterator[Difference]:
    """
    Yield what differs though the inputs are equal, in the order of the record.

    That is about the order of time, so the first is nearest to the cause.
    """
    are_whole = _has_whole_paths(first) and _has_whole_paths(second)
    left_out = _OF_THE_HOST if are_whole else _WITHOUT_PATHS
    yield from _between("", _document(first), _document(second), left_out)


def _has_whole_paths(record: RunRecord) -> bool:
    """
    Whether the recorded paths are those that every host would have.

    A host without the memory for a second pass keeps those that were cut, and one with
    a full disk keeps none.
    """
    trace = record.require_virtual().trace
    return trace is not None and "reason" not in trace and not trace.get("truncated")


def _document(record: RunRecord) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(record_to_json(record))
    document["caveats"] = [
        one for one in document["caveats"] if one["id"] not in _CAVEATS_OF_THE_HOST
    ]
    return document


def _between(
    place: str, first: Any, second: Any, left_out: frozenset[str]
) -> Iterator[Difference]:
    if place in left_out:
        return
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        for name in {**first, **second}:
            inner = f"{place}.{name}" if place else name
            pair = first.get(name, _ABSENT), second.get(name, _ABSENT)
            yield from _between(inner, *pair, left_out)
    elif isinstance(first, list) and isinstance(second, list):
        if len(first) != len(second):
            yield Difference(place, _length(first), _length(second))
            return
        for number, pair in enumerate(zip(first, second, strict=True)):
            yield from _between(f"{place}[{number}]", *pair, left_out)
    elif first != second:
        yield Difference(place, *_parts(_text(first), _text(second)))


def _length(items: list[Any]) -> str:
    return "1 item" if len(items) == 1 else f"{len(items)} items"


def _text(value: Any) -> str:
    return "absent" if value is _ABSENT else json.dumps(value)


def _parts(first: str, second: str) -> tuple[str, str]:
    """Return of long texts what is around the first character that differs."""
    if max(len(first), len(second)) <= _MAX_TEXT:
        return first, second
    pairs = enumerate(zip(first, second, strict=False))
    differs = (number for number, (one, other) in pairs if one != other)
    start = max(0, next(differs, min(len(first), len(second))) - _BEFORE)
    return _part(first, start), _part(second, start)


def _part(text: str, start: int) -> str:
    end = start + _MAX_TEXT
    before, after = "..." * (start > 0), "..." * (end < len(text))
    return f"{before}{text[start:end]}{after}"
