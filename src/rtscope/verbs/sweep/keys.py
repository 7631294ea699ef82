"""
What pairs of runs have in common besides the seed: load, kernel, policy and the like.

A part that has, under a load, one value in the base and one in the cell, such as the
policy, is what the cell changes: its runs are called as those of the base. That is read
from the campaigns, so it does not depend on which runs have a result. A load is never
compared with another one. Pure.
"""

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from rtscope.host.units import format_duration
from rtscope.machine.cpulist import format_cpulist
from rtscope.measure.campaign.model import Campaign
from rtscope.record.model import Run, RunRecord

Key = tuple[str, ...]
"""The values of a run in the order of PARTS."""

PARTS = (
    "loads",
    "kernels",
    "policies",
    "priorities",
    "intervals",
    "durations",
    "CPUs",
    "variants",
)
LOAD = 0


def key_of(run: Run) -> Key:
    """Return the key of a run as it was asked for."""
    return (
        run.load,
        run.kernel or "",
        run.policy,
        str(run.priority),
        str(run.interval_ns),
        str(run.duration_ns),
        _cpus(run.cpus),
        run.variant or "",
    )


def values_of_parts(campaign: Campaign, load: str) -> tuple[frozenset[str], ...]:
    """Return the values that the runs under a load have of each part."""
    runs = [run for run in campaign.runs if load in run.loads]
    # As runs call them; two images of one name have other labels.
    kernels = [PurePath(name).name for name in campaign.kernels] or [""]
    return tuple(
        map(
            frozenset,
            (
                [load for _ in runs],
                [name for name in kernels if runs],
                [name for run in runs for name, _ in run.policies],
                [str(number) for run in runs for _, number in run.policies],
                [str(ns) for run in runs for ns in run.intervals_ns],
                [str(ns) for run in runs for ns in run.durations_ns],
                [_cpus(run.cpus) for run in runs],
                [run.variant or "" for run in runs],
            ),
        )
    )


def by_key(
    records: Sequence[RunRecord], *, base: Campaign, cell: Campaign
) -> dict[Key, dict[int, RunRecord]]:
    """Return runs of a cell by the key that the base has for them, and by seed."""
    records_by_key: dict[Key, dict[int, RunRecord]] = {}
    moved: dict[str, Mapping[int, str]] = {}
    for record in records:
        own = key_of(record.run)
        if own[LOAD] not in moved:
            moved[own[LOAD]] = moved_parts(base, cell, load=own[LOAD])
        to = moved[own[LOAD]]
        key = tuple(to.get(part, value) for part, value in enumerate(own))
        records_by_key.setdefault(key, {})[record.run.seed or 0] = record
    return records_by_key


def moved_parts(base: Campaign, cell: Campaign, *, load: str) -> Mapping[int, str]:
    """Return the base's value of each part that a load has once in both, by place."""
    both = (values_of_parts(base, load), values_of_parts(cell, load))
    return {
        part: next(iter(ours))
        for part, (ours, theirs) in enumerate(zip(*both, strict=True))
        if part != LOAD and len(ours) == len(theirs) == 1
    }


def value_in_words(part: int, value: str) -> str:
    """Return a value as a user writes it."""
    if PARTS[part] in ("intervals", "durations"):
        return format_duration(int(value))
    return value or ("all" if PARTS[part] == "CPUs" else "none named")


def label_of(key: Key, others: Sequence[Key]) -> str:
    """Return the load of a key, with what else tells it from keys of the same load."""
    alike = [other for other in others if other[LOAD] == key[LOAD]] or [key]
    varies = [len({*values}) > 1 for values in zip(*alike, strict=True)]
    load, kernel, policy, priority, interval_ns, duration_ns, cpus, variant = key
    parts = (
        load,
        kernel,
        policy,
        f"priority {priority}",
        format_duration(int(interval_ns)),
        f"for {format_duration(int(duration_ns))}",
        f"CPU {cpus}" if cpus else "all CPUs",
        variant,
    )
    more = [part for part, does in zip(parts, varies, strict=True) if does]
    return " ".join([load, *filter(None, more)])


def _cpus(cpus: Sequence[int] | None) -> str:
    return format_cpulist(cpus) if cpus else ""
