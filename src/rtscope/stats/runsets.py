"""
The runs that are compared under one load: checked, and each reduced to its figures.

Samples within a run depend on each other, so a run gives one value of each figure:

    mean     log of the average latency, missed periods included
    misses   log(1 + misses of the deadline); only if a deadline is given
    max      log of the maximum
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from rtscope.host.errors import UsageError, first_of
from rtscope.host.units import format_duration
from rtscope.record.caveats.catalogue import Caveat
from rtscope.record.model import RunRecord
from rtscope.stats.conditions import unknown_loads
from rtscope.stats.determinism import caveats_among, contradictions, distinct
from rtscope.stats.episodes import misses_of
from rtscope.stats.meters import METERS, logarithm, meters_of
from rtscope.stats.runcaveats import (
    LeftOut,
    clock_coarse,
    left_out_words,
    was_traced,
    why_left_out,
)
from rtscope.stats.summary import Summary, observed_ns, summarize

MAX_LENGTH_RATIO = 1.1
"""The maximum and the misses grow with the length of a run."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """The place of a run in an order that was drawn at random."""

    block: Hashable
    """Within it any order could have been drawn; no two campaigns share one."""
    slot: Hashable
    """Runs of one slot got their place together."""
    variant: str


@dataclass(frozen=True, slots=True)
class RunFigures:
    """What one run contributes to a comparison."""

    id: str
    started: str
    mean_ns: float
    max_ns: int
    misses: int | None
    digest: str
    drawn: Drawn | None
    """None if the order of the runs was not drawn at random."""
    meters: Mapping[str, float] = field(default_factory=dict)
    """Power, heat, clock and memory, as far as known: `stats/meters.py`."""

    def value(self, figure: str) -> float:
        """Return `mean`, `misses`, `max` or a meter, on its logarithmic scale."""
        if figure in METERS:
            return logarithm(METERS[figure], self.meters[figure])
        if figure == "misses":
            return math.log1p(self.misses or 0)
        # At least 1 ns: a clock in coarse steps can give 0.
        return math.log(max(self.mean_ns if figure == "mean" else self.max_ns, 1))


@dataclass(frozen=True, slots=True)
class Group:
    """The runs of one label."""

    label: str
    runs: tuple[RunFigures, ...]
    left_out: tuple[LeftOut, ...]
    """Runs that do not count: in no figure and no test."""
    repeats: int
    """Copies of a measurement and exact repetitions: in no figure and no test."""
    virtual: bool

    @property
    def not_counted(self) -> str:
        """How many of its runs do not count, and why; empty if all do."""
        given = len(self.runs) + self.repeats + len(self.left_out)
        return left_out_words(self.left_out, of=given, whose=self.label)

    @property
    def digests(self) -> frozenset[str]:
        """The results of the runs."""
        return frozenset(run.digest for run in self.runs)


@dataclass(frozen=True, slots=True)
class RunSets:
    """Groups of comparable runs under one load; the first is the baseline."""

    load: str
    deadline_ns: int | None
    groups: tuple[Group, ...]
    broken: bool
    """Whether equal inputs of a virtual board had different results."""

    @property
    def figures(self) -> tuple[str, ...]:
        """The figures that are compared."""
        return (
            ("mean", "max") if self.deadline_ns is None else ("mean", "misses", "max")
        )


def run_sets(
    groups: Mapping[str, Sequence[RunRecord]], *, deadline_ns: int | None = None
) -> RunSets:
    """
    Check that runs compare, and work out their figures.

    Runs that do not count are left out, with the reason. Raises UsageError for fewer
    than two groups, for runs that differ in load, interval or length, and for a
    measurement of a machine that is in two groups.
    """
    load = _require_comparable(groups)
    sets = tuple(
        _group(label, runs, deadline_ns=deadline_ns) for label, runs in groups.items()
    )
    _require_apart(sets)
    return RunSets(
        load=load,
        deadline_ns=deadline_ns,
        groups=sets,
        broken=bool(contradictions([r for runs in groups.values() for r in runs])),
    )


def _require_comparable(groups: Mapping[str, Sequence[RunRecord]]) -> str:
    records = [record for runs in groups.values() for record in runs]
    if len(groups) < 2 or not all(groups.values()):
        raise UsageError("nothing to compare: name two sets of runs or more")
    if unknown := unknown_loads(records):
        raise UsageError(
            f"unknown load of {first_of(3, unknown)}: two unknown loads are not the "
            "same; name them with rtscope import --load"
        )
    loads = sorted({r.run.load for r in records})
    if len(loads) > 1:
        raise UsageError(f"runs under different loads ({', '.join(loads)}): one a time")
    if len({r.virtual is None for r in records}) > 1:
        raise UsageError(
            "a virtual board's time and a machine's do not compare: one counts "
            "instructions, the other microseconds"
        )
    if len({was_traced(r) for r in records}) > 1:
        raise UsageError(
            "a traced run and one that was not do not compare: tracing makes every "
            "wake-up later; measure both with --explain, or both without"
        )
    events = sorted({r.run.event for r in records})
    if len(events) > 1:
        raise UsageError(
            f"wake-ups by different events ({', '.join(events)}) do not compare: each "
            "takes another way; compare runs of one event"
        )
    intervals = sorted({r.run.interval_ns for r in records})
    if len(intervals) > 1:
        words = ", ".join(_known(ns) for ns in intervals)
        hint = "" if intervals[0] else "; name it with rtscope import --interval"
        raise UsageError(
            f"runs with different intervals ({words}) do not compare{hint}"
        )
    lengths = sorted(observed_ns(r.result.threads) or 0 for r in records)
    if lengths[-1] and not lengths[0]:
        raise UsageError(
            "runs of known and of unknown length do not compare: a longer run has a "
            "larger maximum; name the length with rtscope import --duration"
        )
    if lengths[-1] > MAX_LENGTH_RATIO * lengths[0]:
        raise UsageError(
            f"runs of {format_duration(lengths[0])} to {format_duration(lengths[-1])} "
            "do not compare: a longer run has a larger maximum; measure equally long"
        )
    return loads[0]


def _known(ns: int) -> str:
    return format_duration(ns) if ns else "unknown"


def _require_apart(groups: Sequence[Group]) -> None:
    """Refuse one measurement in two groups; equal virtual results are a finding."""
    holder: dict[str, Group] = {}
    for group in groups:
        for run in group.runs:
            other = holder.setdefault(run.digest, group)
            if other is not group and not group.virtual:
                raise UsageError(
                    f"the same measurement (run {run.id}) is in {other.label} and in "
                    f"{group.label}: it cannot differ from itself; name two sets of "
                    "runs"
                )


def _group(
    label: str, records: Sequence[RunRecord], *, deadline_ns: int | None
) -> Group:
    valid, left_out = [], []
    for record, raised in zip(records, caveats_among(records), strict=True):
        if why := _why_left_out(record, raised, deadline_ns):
            left_out.append(LeftOut(record.run.id, why))
        else:
            valid.append(record)
    counted = distinct(valid)
    return Group(
        label=label,
        runs=tuple(_figures(r, deadline_ns) for r in counted),
        left_out=tuple(left_out),
        repeats=len(valid) - len(counted),
        virtual=all(r.virtual for r in records),
    )


def _why_left_out(
    record: RunRecord, raised: Sequence[Caveat], deadline_ns: int | None
) -> str:
    coarse = () if deadline_ns is None else clock_coarse(record, deadline_ns)
    if why := why_left_out(record, (*raised, *coarse)):
        return why
    if _mean_ns(summarize(record.result.threads)) is None:
        return "its tool prints no average"
    return ""


def _figures(record: RunRecord, deadline_ns: int | None) -> RunFigures:
    summary = summarize(record.result.threads)
    missed = None if deadline_ns is None else misses_of(record, deadline_ns).total
    return RunFigures(
        id=record.run.id,
        started=record.started_at,
        mean_ns=_mean_ns(summary) or 0,
        max_ns=summary.max_ns,
        misses=missed,
        digest=record.result_digest,
        meters=meters_of(record),
        drawn=_drawn(record),
    )


def _mean_ns(summary: Summary) -> float | None:
    """Return the average with missed periods; without them where a tool hides them."""
    with_missed_ns = summary.mean_with_missed_periods_ns
    return summary.mean_ns if with_missed_ns is None else with_missed_ns


def _drawn(record: RunRecord) -> Drawn | None:
    run = record.run
    settings = record.campaign.get("campaign")
    drawn = settings.get("order_seed") if isinstance(settings, Mapping) else None
    if run.block is None or drawn is None:
        return None
    block = (drawn, run.block)
    variant = run.variant or ""
    return Drawn(block, (block, variant, run.repetition), variant)
