"""
From the dominant causes of a record to the remedies that are known for them. Pure.

`remedies.toml` names them; each is a check of the audit, a row of the price list, or a
parameter that the kernel's documentation has for this. `sweep.remedydesign` makes the
sweep that tries them.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass as checked_dataclass

from rtscope.record.explanation import Explained, Segment
from rtscope.record.model import Run, RunRecord
from rtscope.stats.runcaveats import why_left_out
from rtscope.verbs.sweep.file import Table

REAL_TIME = "-rt"
"""How the name of a kernel with PREEMPT_RT ends."""

NOT_RECORDED = "no path to it was recorded; measure without --no-record"
WITHDRAWN = "its explanation contradicts the recording"
NO_CAUSE = "its explanation names no dominant cause"
NO_REMEDY = "no remedy is known for this cause in this function"

_STRICT = ConfigDict(extra="forbid")


@checked_dataclass(frozen=True, slots=True, config=_STRICT)
class Against:
    """Causes that a remedy may help against, in functions that match."""

    causes: tuple[str, ...]
    functions: str = ""


@checked_dataclass(frozen=True, slots=True, config=_STRICT)
class Remedy:
    """A row of `remedies.toml`, which explains the keys."""

    name: str
    source: Annotated[
        str, Field(pattern=r"^(price list|audit: [a-z0-9_]+|Documentation/[a-z/.-]+)$")
    ]
    against: tuple[Against, ...]
    ordinary: bool = False
    twin: bool = False
    arch: tuple[str, ...] = ()
    spare_cpu: bool = False
    all_cpus: bool = False
    undoes: str = ""
    once: bool = False
    target: Table = Field(default_factory=dict)
    kernel: Table = Field(default_factory=dict)
    run: Table = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorstWakeup:
    """The worst wake-up of a load on a kernel, over all its runs."""

    run: Run
    """The run with this wake-up."""
    worst_ns: int
    cause: Segment | None
    why: str = ""
    """Why no cause is known."""
    preempt_rt: bool = False
    """Whether the kernel has PREEMPT_RT."""

    @property
    def load(self) -> str:
        """The load of its run."""
        return self.run.load

    @property
    def kernel(self) -> str:
        """The kernel that was asked for; empty: the first of the board."""
        return self.run.kernel or ""


@cache
def known_remedies() -> tuple[Remedy, ...]:
    """Return all remedies that are known."""
    adapter = TypeAdapter(tuple[Remedy, ...])
    return adapter.validate_python(tuple(_document()["remedy"]))


@cache
def causes_without() -> Mapping[str, str]:
    """Return the causes that no remedy is known for, each with the reason."""
    return TypeAdapter(dict[str, str]).validate_python(_document()["without"])


@cache
def _document() -> Mapping[str, Any]:
    file = resources.files("rtscope.verbs.sweep").joinpath("remedies.toml")
    return tomllib.loads(file.read_text("utf-8"))


def worst_records(records: Sequence[RunRecord]) -> tuple[RunRecord, ...]:
    """
    Return, of each load on each kernel, the run with the worst wake-up.

    Of the runs that count, if one does.
    """
    worst: dict[tuple[str, str], tuple[tuple[bool, int], RunRecord]] = {}
    for record in records:
        if record.max_ns is None:
            continue
        key = (record.run.load, record.run.kernel or "")
        rank = (not why_left_out(record), record.max_ns)
        if key not in worst or rank > worst[key][0]:
            worst[key] = rank, record
    return tuple(record for _, record in worst.values())


def worst_wakeups(
    records: Sequence[RunRecord], explained: Mapping[str, Explained]
) -> tuple[WorstWakeup, ...]:
    """Return the worst wake-up of each load on each kernel, the longest first."""
    wakeups = [
        _worst_wakeup(record, explained.get(record.result_digest))
        for record in worst_records(records)
    ]
    return tuple(sorted(wakeups, key=lambda one: (-one.worst_ns, one.load, one.kernel)))


def _worst_wakeup(record: RunRecord, explained: Explained | None) -> WorstWakeup:
    latest = explained.worst if explained else None
    why, cause = "", None
    if latest is None:
        why = NOT_RECORDED
    elif latest.is_withdrawn:
        why = WITHDRAWN
    elif latest.dominant is None:
        why = NO_CAUSE
    else:
        cause = latest.dominant
    return WorstWakeup(record.run, record.max_ns or 0, cause, why, _is_rt(record))


def _is_rt(record: RunRecord) -> bool:
    """Whether the kernel that ran has PREEMPT_RT; by its name if it did not say."""
    fact = record.facts_before.get("preempt_rt")
    if fact is not None and isinstance(fact.value, bool):
        return fact.value
    return (record.run.kernel or "").endswith(REAL_TIME)


def remedies_for_cause(wakeup: WorstWakeup, *, arch: str) -> tuple[Remedy, ...]:
    """Return the remedies that may help against a cause, and that the kernel knows."""
    return tuple(
        one
        for one in known_remedies()
        if not (one.ordinary and wakeup.preempt_rt)
        and (not one.arch or arch in one.arch)
        and any(_matches(row, wakeup.cause) for row in one.against)
    )


def _matches(row: Against, cause: Segment | None) -> bool:
    if cause is None or cause.cause not in row.causes:
        return False
    words = (
        *(cause.name, cause.task, *cause.callers),
        *(name for name, _ in cause.functions),
    )
    return any(re.search(row.functions, word) for word in words)
