"""
The sweep that tries remedies: which fit a record, as levels beside its campaign. Pure.

A remedy is tried under the loads and on the kernels whose worst wake-up has a cause
that it may help against, and under no other; the base has the runs that these were
seen in. What the campaign has already, or cannot be had there, is named with why.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

from rtscope.host.errors import UsageError
from rtscope.host.units import exact_duration
from rtscope.machine.cpulist import format_cpulist
from rtscope.measure.campaign.file import from_dict
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.campaign.values import REALTIME_POLICIES
from rtscope.record.directory.journal import REMEDY
from rtscope.record.model import Run
from rtscope.verbs.sweep.design import MAX_SEEDS, changed, key_of
from rtscope.verbs.sweep.file import Axis, Diagnosis, Level, Sweep, Table
from rtscope.verbs.sweep.remedies import (
    NO_REMEDY,
    REAL_TIME,
    Remedy,
    WorstWakeup,
    causes_without,
    remedies_for_cause,
)

HAS_IT = "the original has it"
NOT_HERE = "not possible here: "
OTHER_CAMPAIGN = "its run is none of the campaign's"


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """What was measured, and on which board."""

    campaign: Campaign
    base: Mapping[str, Any]
    """The tables of the campaign."""
    source: str
    kernels: Collection[str]
    """All that the board can boot, by name."""
    cpus: int
    """How many the board has."""
    arch: str
    append: tuple[str, ...] = ()
    """Parameters of the kernel, of the board and of the campaign."""
    tuned: frozenset[str] = frozenset()
    """Checks of the audit whose remedies the campaign applies."""


@dataclass(frozen=True, slots=True)
class RemedySettings:
    """The settings of a remedy against one worst wake-up."""

    name: str
    target: Table = field(default_factory=dict)
    kernel: Table = field(default_factory=dict)
    run: Table = field(default_factory=dict)

    @property
    def level(self) -> Level:
        """What it changes, under all loads and on all kernels."""
        return Level(
            self.name,
            target=dict(self.target),
            kernel=dict(self.kernel),
            run=dict(self.run),
        )

    @property
    def identity(self) -> str:
        """Equal for equal settings."""
        return json.dumps([self.name, self.target, self.kernel, self.run])


@dataclass(slots=True)
class _Case:
    """A worst wake-up, the levels tried against it, and why others are not."""

    wakeup: WorstWakeup
    table: int | None
    """The number of its [[run]]; None: it has none."""
    settings: list[RemedySettings] = field(default_factory=list)
    levels: list[str] = field(default_factory=list)
    not_tried: dict[str, str] = field(default_factory=dict)


def sweep_of_remedies(original: Original, wakeups: Sequence[WorstWakeup]) -> Sweep:
    """
    Return the sweep that tries each remedy alone beside the original campaign.

    A sweep without axes: there is nothing to try.
    """
    cases = [_case(wakeup, original) for wakeup in wakeups]
    base = _base(original, [case for case in cases if case.settings])
    levels = tuple(_levels(original, base, cases))
    return Sweep(
        name="remedies",
        design="one",
        base=base,
        axes=(Axis(REMEDY, levels),) if levels else (),
        source=original.source,
        diagnoses=tuple(map(_diagnosis, cases)),
    )


def _case(wakeup: WorstWakeup, original: Original) -> _Case:
    case = _Case(wakeup, _table_of(wakeup.run, original.campaign))
    if case.table is None:
        return case
    for remedy in remedies_for_cause(wakeup, arch=original.arch):
        name = remedy.name.format(apart=_apart(wakeup, original) or "LIST")
        why = _why_not(remedy, wakeup, original)
        if why:
            case.not_tried[name] = why
        else:
            case.settings.append(_settings_of(remedy, wakeup, original))
    return case


def _diagnosis(case: _Case) -> Diagnosis:
    wakeup, cause = case.wakeup, case.wakeup.cause
    why = wakeup.why
    if not why and case.table is None:
        why = OTHER_CAMPAIGN
    if not why and cause and not case.levels and not case.not_tried:
        why = causes_without().get(cause.cause, NO_REMEDY)
    return Diagnosis(
        load=wakeup.load,
        kernel=wakeup.kernel,
        worst_ns=wakeup.worst_ns,
        cause=cause.title if cause else "",
        remedies=tuple(case.levels),
        why=why,
        not_tried=dict(case.not_tried),
        key=key_of(wakeup.run),
    )


def _table_of(run: Run, campaign: Campaign) -> int | None:
    """Return the number of the [[run]] that a run is of."""
    names = [PurePath(name).name for name in campaign.kernels]
    if run.kernel and names and PurePath(run.kernel).name not in names:
        return None
    for number, table in enumerate(campaign.runs):
        if (
            run.load in table.loads
            and (run.policy, run.priority) in table.policies
            and run.interval_ns in table.intervals_ns
            and run.duration_ns in table.durations_ns
            and (run.cpus, run.variant) == (table.cpus, table.variant)
        ):
            return number
    return None


def without(diagnosis: Diagnosis, impossible: Mapping[str, str]) -> Diagnosis:
    """Return a diagnosis without remedies that turned out to be impossible, and why."""
    gone = {name: impossible[name] for name in diagnosis.remedies if name in impossible}
    if not gone:
        return diagnosis
    return replace(
        diagnosis,
        remedies=tuple(name for name in diagnosis.remedies if name not in gone),
        not_tried={**diagnosis.not_tried, **gone},
    )


# --- what fits ------------------------------------------------------------------------


def _apart(wakeup: WorstWakeup, original: Original) -> str:
    """Return the measured CPUs without the one that boots; empty if that is all."""
    measured = wakeup.run.cpus or range(original.cpus)
    return format_cpulist([cpu for cpu in measured if cpu])


def _why_not(remedy: Remedy, wakeup: WorstWakeup, original: Original) -> str:
    """Return why a remedy is not tried for a wake-up; empty if it is."""
    settings = _settings_of(remedy, wakeup, original)
    if _has(settings, wakeup, original) or _has_twin(remedy, wakeup, original):
        return HAS_IT
    why = (
        _why_not_this_kernel(remedy, wakeup, original)
        or _why_not_these_cpus(remedy, wakeup, original)
        or _why_not_these_parameters(remedy, settings, original)
    )
    return f"{NOT_HERE}{why}" if why else ""


def _settings_of(
    remedy: Remedy, wakeup: WorstWakeup, original: Original
) -> RemedySettings:
    apart = _apart(wakeup, original)
    kernel, run = dict(remedy.kernel), dict(remedy.run)
    if "append" in kernel:
        kernel["append"] = str(kernel["append"]).format(apart=apart)
    if remedy.twin:
        kernel["names"] = [f"{wakeup.kernel}{REAL_TIME}"]
    if remedy.all_cpus and wakeup.run.cpus is None:
        run["cpus"] = format_cpulist(range(original.cpus))
    name = remedy.name.format(apart=apart)
    return RemedySettings(name, dict(remedy.target), kernel, run)


def _has_twin(remedy: Remedy, wakeup: WorstWakeup, original: Original) -> bool:
    twin = f"{wakeup.kernel}{REAL_TIME}"
    return remedy.twin and twin in original.campaign.kernels


def _has(settings: RemedySettings, wakeup: WorstWakeup, original: Original) -> bool:
    """Whether the campaign has these settings already."""
    if tuned := settings.target.get("tuned"):
        return tuned in original.tuned
    if settings.target:
        there = original.campaign
        return all(getattr(there, key) == is_ for key, is_ in settings.target.items())
    if "append" in settings.kernel:
        word = str(settings.kernel["append"])
        return _last(word, original.append) == word
    policy = settings.run.get("policy")
    return policy is not None and any(
        wakeup.load in table.loads and policy in table.policy_names
        for table in original.campaign.runs
    )


def _last(word: str, parameters: Sequence[str]) -> str:
    """Return the last of the parameters that has the name of a word, or is it."""
    name = word.partition("=")[0]
    alike = [one for one in parameters if one.partition("=")[0] == name]
    return alike[-1] if alike else ""


def _why_not_this_kernel(
    remedy: Remedy, wakeup: WorstWakeup, original: Original
) -> str:
    if not remedy.twin:
        return ""
    if len(original.campaign.kernels) > 1:
        return f"the record has several kernels; measure {wakeup.kernel} alone"
    if f"{wakeup.kernel}{REAL_TIME}" not in original.kernels:
        kernel = wakeup.kernel or "the kernel"
        return f"no kernel with PREEMPT_RT is beside {kernel}"
    return ""


def _why_not_these_cpus(remedy: Remedy, wakeup: WorstWakeup, original: Original) -> str:
    run = wakeup.run
    if remedy.spare_cpu and len(run.cpus or range(original.cpus)) >= original.cpus:
        return "every CPU is measured; leave one over, for example with --cpus 1"
    if "{apart}" in remedy.name and not _apart(wakeup, original):
        return "CPU 0 alone is measured, which boots the board"
    if remedy.all_cpus and run.cpus is None and run.policy == "deadline":
        return "it names CPUs, and no thread of policy deadline is pinned to one"
    return ""


def _why_not_these_parameters(
    remedy: Remedy, settings: RemedySettings, original: Original
) -> str:
    if remedy.undoes and not _last(remedy.undoes, original.append):
        return f"the original has no parameter {remedy.undoes}"
    other = _last(str(settings.kernel.get("append", "")), original.append)
    if remedy.once and other:
        return f"the original has {other}, and the kernel takes one of them"
    return ""


# --- the base -------------------------------------------------------------------------


def _base(original: Original, cases: Sequence[_Case]) -> dict[str, Any]:
    """Return the campaign with the runs that remedies are compared with alone."""
    base = {name: _without_checks(table) for name, table in original.base.items()}
    if not cases:
        return base
    base["run"] = _tables(original, cases)
    if len(original.campaign.kernels) > 1:
        names = _names_of_kernels(
            original.campaign, {one.wakeup.kernel for one in cases}
        )
        base["kernel"] = {**base["kernel"], "names": names}
    campaign = dict(base.get("campaign", {}))
    loads = {load for table in base["run"] for load in table["load"]}
    if "custom" not in loads:
        campaign.pop("command", None)
    if all(table["policy"] != "deadline" for table in base["run"]):
        campaign.pop("deadline_runtime", None)
    seeds = original.campaign.run_seeds
    if len(seeds) > MAX_SEEDS:
        worst = [one.wakeup.run.seed for one in cases]
        first = list(dict.fromkeys((*worst, *seeds)))[:MAX_SEEDS]
        campaign["seeds"] = [seed for seed in seeds if seed in first]
    base["campaign"] = campaign
    return base


def _without_checks(table: Any) -> Any:
    """Leave out what asks for more than a measurement."""
    if not isinstance(table, Mapping):
        return table
    return {key: value for key, value in table.items() if key != "require_identical"}


def _tables(original: Original, cases: Sequence[_Case]) -> list[dict[str, Any]]:
    """Return a [[run]] for each setting of the worst runs, with their loads."""
    loads_by_key: dict[tuple[int, str, int, int, int], set[str]] = {}
    for case in cases:
        run = case.wakeup.run
        where = (case.table or 0, run.policy, run.priority)
        key = (*where, run.interval_ns, run.duration_ns)
        loads_by_key.setdefault(key, set()).add(run.load)
    tables = []
    for number, policy, priority, interval_ns, duration_ns in sorted(loads_by_key):
        key = (number, policy, priority, interval_ns, duration_ns)
        loads = [
            one
            for one in original.campaign.runs[number].loads
            if one in loads_by_key[key]
        ]
        table = {
            **original.base["run"][number],
            "load": loads,
            "policy": policy,
            "interval": exact_duration(interval_ns),
            "duration": exact_duration(duration_ns),
        }
        table.pop("repetitions", None)  # of a board they are equal
        table.pop("priority", None)
        if policy in REALTIME_POLICIES:
            table["priority"] = priority
        tables.append(table)
    return tables


def _names_of_kernels(campaign: Campaign, labels: Collection[str]) -> list[str]:
    """Return kernels by their labels; all of them if labels are parts of paths."""
    names = [name for name in campaign.kernels if PurePath(name).name in labels]
    return names if len(names) == len(labels) else list(campaign.kernels)


# --- the levels -----------------------------------------------------------------------


def _levels(
    original: Original, base: Mapping[str, Any], cases: Sequence[_Case]
) -> Iterator[Level]:
    """Yield the levels of each remedy, with the loads and kernels that each is for."""
    names: set[str] = set()
    several = len(_words(base.get("kernel", {}).get("names"))) > 1
    for settings, parts in _parts(cases):
        for part in parts:
            kernels = list(dict.fromkeys(case.wakeup.kernel for case in part))
            level = settings.level
            level.run["load"] = list(dict.fromkeys(case.wakeup.load for case in part))
            if several and "names" not in level.kernel:
                level.kernel["names"] = _names_of_kernels(
                    original.campaign, set(kernels)
                )
            where = f" on {', '.join(kernels)}" if len(parts) > 1 else ""
            level = replace(level, name=_free(f"{settings.name}{where}", names))
            why = _why_no_level(original, base, level)
            for case in part:
                if why:
                    case.not_tried[settings.name] = why
                else:
                    case.levels.append(level.name)
            if not why:
                names.add(level.name)
                yield level


def _parts(
    cases: Sequence[_Case],
) -> Iterator[tuple[RemedySettings, list[list[_Case]]]]:
    """
    Yield the settings of each remedy with its cases, as many parts as it needs levels.

    A level is measured under all its loads on all its kernels, so the kernels of a part
    have the same loads.
    """
    by_identity: dict[str, tuple[RemedySettings, list[_Case]]] = {}
    for case in cases:
        for one in case.settings:
            by_identity.setdefault(one.identity, (one, []))[1].append(case)
    for settings, of_it in by_identity.values():
        loads: dict[str, set[str]] = {}
        for case in of_it:
            loads.setdefault(case.wakeup.kernel, set()).add(case.wakeup.load)
        parts: dict[frozenset[str], list[_Case]] = {}
        for case in of_it:
            alike = frozenset(loads[case.wakeup.kernel])
            parts.setdefault(alike, []).append(case)
        yield settings, list(parts.values())


def _free(name: str, taken: Collection[str]) -> str:
    """Return a name that a sweep file takes, and that no other level has."""
    plain = re.sub(r"[^\w .,:=+/@()-]", "-", name)[:70]
    number = 1
    while (one := plain if number == 1 else f"{plain} ({number})") in taken:
        number += 1
    return one


def _why_no_level(original: Original, base: Mapping[str, Any], level: Level) -> str:
    """Return why the campaign of a level is none, or that of the base; else empty."""
    source = original.source
    try:
        made = from_dict(changed(base, level), source=source)
    except UsageError as error:
        return f"{NOT_HERE}{str(error).removeprefix(f'{source}: ')}"
    plain = from_dict(dict(base), source=source)
    return (
        HAS_IT if replace(made, runs=plain.runs) == plain and _same(made, plain) else ""
    )


def _same(made: Campaign, plain: Campaign) -> bool:
    """Whether all runs of a campaign are runs of another one."""

    def runs(campaign: Campaign) -> set[tuple[object, ...]]:
        return {
            (load, run.policies, run.intervals_ns, run.durations_ns, run.cpus)
            for run in campaign.runs
            for load in run.loads
        }

    return runs(made) <= runs(plain)


def _words(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []
