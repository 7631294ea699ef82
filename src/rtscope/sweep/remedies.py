"""
From the dominant causes of a record to a sweep of the remedies that are known. Pure.

Each remedy is a level of its own beside the original campaign, for the loads and
kernels whose worst wake-up has a cause that it may help against. `remedies.toml` names
them; each is a check of the audit or a row of the price list.
"""

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass as checked_dataclass

from rtscope.campaign.model import Campaign
from rtscope.cpulist import format_cpulist
from rtscope.record.explanation import Explained, Segment
from rtscope.record.model import RunRecord
from rtscope.sweep.file import Axis, Diagnosis, Level, Sweep, Table

AXIS = "remedy"
REAL_TIME = "-rt"
"""How the name of a kernel with PREEMPT_RT ends."""

NOT_RECORDED = "no path to it was recorded; measure without --no-record"
WITHDRAWN = "its explanation contradicts the recording"
NO_CAUSE = "its explanation names no dominant cause"
NO_REMEDY = "no remedy is known for this cause"


@checked_dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class Remedy:
    """A row of `remedies.toml`, which explains the keys."""

    name: str
    source: Annotated[str, Field(pattern=r"^(price list|audit: [a-z0-9_]+)$")]
    causes: tuple[str, ...]
    functions: str = ""
    only: Literal["", "ordinary", "spare CPU"] = ""
    twin: bool = False
    all_cpus: bool = False
    target: Table = Field(default_factory=dict)
    kernel: Table = Field(default_factory=dict)
    run: Table = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Patient:
    """The worst wake-up of a load on a kernel, over all seeds."""

    load: str
    kernel: str
    worst_ns: int
    cause: Segment | None
    why: str = ""
    """Why no cause is known."""


@cache
def known_remedies() -> tuple[Remedy, ...]:
    """Return all remedies that are known."""
    text = resources.files("rtscope.sweep").joinpath("remedies.toml").read_text("utf-8")
    adapter = TypeAdapter(tuple[Remedy, ...])
    return adapter.validate_python(tuple(tomllib.loads(text)["remedy"]))


def worst_records(records: Sequence[RunRecord]) -> tuple[RunRecord, ...]:
    """Return, of each load on each kernel, the run with the worst wake-up."""
    worst: dict[tuple[str, str], RunRecord] = {}
    for record in records:
        if record.max_ns is None:
            continue
        key = (record.run.load, record.run.kernel or "")
        if key not in worst or record.max_ns > (worst[key].max_ns or 0):
            worst[key] = record
    return tuple(worst.values())


def patients_of(
    records: Sequence[RunRecord], explained: Mapping[str, Explained]
) -> tuple[Patient, ...]:
    """Return the worst wake-up of each load on each kernel, the longest first."""
    found = [
        _patient(record, explained.get(record.result_digest))
        for record in worst_records(records)
    ]
    return tuple(sorted(found, key=lambda one: (-one.worst_ns, one.load, one.kernel)))


def _patient(record: RunRecord, explained: Explained | None) -> Patient:
    run, latest = record.run, explained.worst if explained else None
    why, cause = "", None
    if latest is None:
        why = NOT_RECORDED
    elif latest.is_withdrawn:
        why = WITHDRAWN
    elif latest.dominant is None:
        why = NO_CAUSE
    else:
        cause = latest.dominant
    return Patient(run.load, run.kernel or "", record.max_ns or 0, cause, why)


def sweep_of_remedies(
    campaign: Campaign,
    base: Mapping[str, Any],
    patients: Sequence[Patient],
    *,
    source: str,
    kernels: Collection[str],
    cpus: int,
) -> Sweep:
    """
    Return the sweep that tries each remedy alone beside the original campaign.

    `base` are the tables of `campaign`, `kernels` those of the board, which has `cpus`
    CPUs. A sweep without axes: no remedy is known.
    """
    spare = all(run.cpus and len(run.cpus) < cpus for run in campaign.runs)
    tried: dict[str, tuple[Remedy, list[Patient]]] = {}
    diagnoses = []
    for patient in patients:
        fitting = [
            one
            for one in known_remedies()
            if _helps(one, patient)
            and (one.only != "spare CPU" or spare)
            and (not one.twin or _twin(campaign, patient, kernels))
        ]
        for one in fitting:
            tried.setdefault(one.name, (one, []))[1].append(patient)
        no_remedy = "" if fitting or patient.why else NO_REMEDY
        diagnoses.append(
            Diagnosis(
                load=patient.load,
                kernel=patient.kernel,
                worst_ns=patient.worst_ns,
                cause=patient.cause.title if patient.cause else "",
                remedies=tuple(one.name for one in fitting),
                why=patient.why or no_remedy,
            )
        )
    levels = tuple(
        _level(one, campaign, sick, cpus=cpus) for one, sick in tried.values()
    )
    return Sweep(
        name="remedies",
        design="one",
        base={name: _without_checks(table) for name, table in base.items()},
        axes=(Axis(AXIS, levels),) if levels else (),
        source=source,
        diagnoses=tuple(diagnoses),
    )


def _without_checks(table: Any) -> Any:
    """Leave out what asks for more than a measurement."""
    if not isinstance(table, Mapping):
        return table
    return {key: value for key, value in table.items() if key != "require_identical"}


def _helps(remedy: Remedy, patient: Patient) -> bool:
    cause = patient.cause
    if cause is None or cause.cause not in remedy.causes:
        return False
    if remedy.only == "ordinary" and patient.kernel.endswith(REAL_TIME):
        return False
    words = (
        *(cause.name, cause.task, *cause.callers),
        *(name for name, _ in cause.functions),
    )
    return any(re.search(remedy.functions, word) for word in words)


def _twin(campaign: Campaign, patient: Patient, kernels: Collection[str]) -> str:
    """Return the kernel with PREEMPT_RT beside an ordinary one; empty without one."""
    twin = f"{patient.kernel}{REAL_TIME}"
    return twin if twin in kernels and len(campaign.kernels) < 2 else ""


def _level(
    remedy: Remedy, campaign: Campaign, patients: Sequence[Patient], *, cpus: int
) -> Level:
    """Return what a remedy changes, for the loads and kernels that it may help."""
    run, kernel = dict(remedy.run), dict(remedy.kernel)
    if len(campaign.runs) == 1:
        run["load"] = list(dict.fromkeys(one.load for one in patients))
    if remedy.all_cpus and not any(table.cpus for table in campaign.runs):
        run["cpus"] = format_cpulist(range(cpus))
    if remedy.twin:
        kernel["names"] = [f"{patients[0].kernel}{REAL_TIME}"]
    elif len(campaign.kernels) > 1:
        sick = {one.kernel for one in patients}
        kernel["names"] = [name for name in campaign.kernels if name in sick]
        if not kernel["names"]:
            del kernel["names"]  # images, which runs name by their labels
    return Level(remedy.name, target=dict(remedy.target), kernel=kernel, run=run)
