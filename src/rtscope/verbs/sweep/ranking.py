"""
Which load is worst: all loads of a survey, ranked by their worst wake-up.

A worst wake-up is an observation, not a bound: more seeds or a longer run may change
the order of neighbours. The ranking says which causes the usual loads never show, and
the fewest stressors that together show them.

A load that worked, and is not shown to have worked throughout, is listed apart: with
more of it the worst wake-up may be longer.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rtscope.measure.loads import STRESSOR
from rtscope.record.caveats.catalogue import Counts, Effect, kind_of
from rtscope.record.explanation import Explained
from rtscope.record.model import RunRecord
from rtscope.stats.figures import figure
from rtscope.stats.runcaveats import all_caveats
from rtscope.stats.summary import summarize
from rtscope.verbs.sweep.doubts import Doubt, doubts_of, releases_of

_PREFIX = re.compile(r"^stress-ng: *(?:\w+: *\[\d+\] *)?")
_TELLING = re.compile(
    r"\b(?:disabled|skipping|be skipped|unrecognized|unsupported|cannot|unable|error"
    r"|fail|unexpected signal|finished prematurely"
    r"|not (?:supported|available|permitted|implemented|enabled|allowed|found))\b",
    re.IGNORECASE,
)
"""A line in which stress-ng says why it did not do something."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What the worst wake-up of a run is explained by."""

    title: str
    length_ns: int


@dataclass(frozen=True, slots=True)
class Standing:
    """A load on one kernel, over all its seeds."""

    worst_ns: int
    p999_ns: float | None
    """Of the run with the worst wake-up; None: too few samples."""
    missed: int
    """Periods of all runs."""
    operations: float | None
    """Per virtual second, the mean over seeds; None: stress-ng counted none."""
    run: str
    """The run with the worst wake-up."""
    cause: Cause | None
    """None: not recorded, or its explanation was withdrawn."""


@dataclass(frozen=True, slots=True)
class RankedLoad:
    """A load with its standing on each kernel."""

    name: str
    standings: Mapping[str, Standing]
    """By kernel; without those on which it did not run."""
    failures: Mapping[str, str]
    """By kernel: why it is not shown to have run throughout there."""
    in_part: Mapping[str, Standing] = field(default_factory=dict)
    """By kernel: of those in `failures`, what was seen while it did work."""

    @property
    def unknown(self) -> Mapping[str, str]:
        """By kernel: why nothing at all is known of it there."""
        known = {*self.in_part, *self.standings}
        return {k: why for k, why in self.failures.items() if k not in known}

    @property
    def is_stressor(self) -> bool:
        """Whether it is one of the survey, and not a load of the base."""
        return self.name.startswith(STRESSOR)

    @property
    def label(self) -> str:
        """Its name, as stress-ng or the list of loads has it."""
        return self.name.removeprefix(STRESSOR)


@dataclass(frozen=True, slots=True)
class Ranking:
    """All loads, the worst on the first kernel first."""

    kernels: tuple[str, ...]
    loads: tuple[RankedLoad, ...]
    is_virtual: bool = True
    """Whether latencies are virtual time; False: of a machine."""
    doubts: tuple[Doubt, ...] = ()
    """What limits the runs that are ranked."""
    releases: Mapping[str, str] = field(default_factory=dict)
    """By kernel: the release of Linux that ran, or those that ran."""

    def ranked(self, kernel: str) -> tuple[RankedLoad, ...]:
        """Return the loads that ran on a kernel, the worst first."""
        there = [load for load in self.loads if kernel in load.standings]
        return tuple(
            sorted(there, key=lambda x: (-x.standings[kernel].worst_ns, x.name))
        )

    def ran_in_part(self, kernel: str) -> tuple[RankedLoad, ...]:
        """Return the loads that worked without a rank, the worst first."""
        there = [load for load in self.loads if kernel in load.in_part]
        return tuple(sorted(there, key=lambda x: (-x.in_part[kernel].worst_ns, x.name)))

    @property
    def failed(self) -> tuple[RankedLoad, ...]:
        """The loads of which nothing is known on some kernel."""
        return tuple(load for load in self.loads if load.unknown)

    def usual(self, kernel: str) -> tuple[RankedLoad, ...]:
        """Return the loads of the base that have a rank, the worst first."""
        return tuple(load for load in self.ranked(kernel) if not load.is_stressor)

    def worse_than_usual(self, kernel: str) -> tuple[RankedLoad, ...]:
        """Return the stressors above all loads of the base, if these have ranks."""
        usual = self.usual(kernel)
        if not usual:
            return ()
        most_ns = usual[0].standings[kernel].worst_ns
        return tuple(
            load
            for load in self.ranked(kernel)
            if load.is_stressor and load.standings[kernel].worst_ns > most_ns
        )

    def without_cause(self, kernel: str) -> tuple[RankedLoad, ...]:
        """Return the loads of the base whose cause is not known, if any load's is."""
        if not any(_title(load, kernel) for load in self.ranked(kernel)):
            return ()
        return tuple(load for load in self.usual(kernel) if not _title(load, kernel))

    def new_causes(self, kernel: str) -> Mapping[str, tuple[RankedLoad, ...]]:
        """
        Return the causes that no load of the base has as its dominant one.

        With each, the stressors that show it; the cause of the worst wake-up first.
        None if the base has a load whose cause is not known: it may be one of these.
        """
        usual = {_title(x, kernel) for x in self.usual(kernel)}
        if not usual or self.without_cause(kernel):
            return {}
        causes: dict[str, list[RankedLoad]] = {}
        for load in self.ranked(kernel):
            title = _title(load, kernel)
            if load.is_stressor and title and title not in usual:
                causes.setdefault(title, []).append(load)
        return {title: tuple(loads) for title, loads in causes.items()}

    def fewest(self, kernel: str) -> tuple[RankedLoad, ...]:
        """
        Return few stressors that show what the base misses, the worst first.

        One for each cause of `new_causes` whose worst wake-up is longer than every one
        of the base: the one with the longest.
        """
        worse = {x.name for x in self.worse_than_usual(kernel)}
        return tuple(
            loads[0]
            for loads in self.new_causes(kernel).values()
            if loads[0].name in worse
        )


def _title(load: RankedLoad, kernel: str) -> str:
    cause = load.standings[kernel].cause
    return cause.title if cause else ""


def ranking_of(
    records: Sequence[RunRecord],
    *,
    explained: Mapping[str, Explained],
    failures: Mapping[tuple[str, str], str],
) -> Ranking:
    """
    Rank the loads of a survey.

    `explained` are by the digest of the result, `failures` by load and kernel: of runs
    that have no record. A load that is not shown to have run throughout has no rank
    either, and stands among the failures with what stress-ng said.
    """
    grouped: dict[str, dict[str, list[RunRecord]]] = {}
    refused: dict[str, dict[str, str]] = {}
    for record in records:
        kernel = record.kernel_name
        grouped.setdefault(record.run.load, {}).setdefault(kernel, []).append(record)
    for (load, kernel), why in failures.items():
        refused.setdefault(load, {})[kernel] = _brief(why)
        grouped.setdefault(load, {})
    loads = []
    for name, by_kernel in grouped.items():
        standings: dict[str, Standing] = {}
        in_part: dict[str, Standing] = {}
        whys = dict(refused.get(name, {}))
        for kernel, runs in by_kernel.items():
            sampled = [run for run in runs if run.max_ns is not None]
            if unproved := [why for run in runs if (why := _why_unproved(run))]:
                whys[kernel] = unproved[0]
                if worked := [run for run in sampled if _worked(run)]:
                    in_part[kernel] = _standing(worked, explained)
            elif sampled:
                standings[kernel] = _standing(sampled, explained)
            else:
                whys[kernel] = "no sample"
        loads.append(RankedLoad(name, standings, whys, in_part))
    kernels = tuple(dict.fromkeys(record.kernel_name for record in records))
    first = kernels[0] if kernels else ""
    return Ranking(
        kernels,
        tuple(
            sorted(
                loads,
                key=lambda x: (
                    -x.standings[first].worst_ns if first in x.standings else 1,
                    x.name,
                ),
            )
        ),
        is_virtual=any(record.virtual is not None for record in records),
        doubts=doubts_of(
            (record.run.load, record) for record in records if not _why_unproved(record)
        ),
        releases={
            kernel: ", ".join(
                releases_of(one for one in records if one.kernel_name == kernel)
            )
            for kernel in kernels
        },
    )


_RUN = re.compile(r"^\d+-[^ ]+/[^ ]+: ")
_CONSOLE = "; the end of its console:"


def _brief(why: str) -> str:
    """Return the reason without the run, which the load names, and the console."""
    return _RUN.sub("", why).partition(_CONSOLE)[0]


def _standing(
    runs: Sequence[RunRecord], explained: Mapping[str, Explained]
) -> Standing:
    summaries = [summarize(run.result.threads) for run in runs]
    worst, summary = max(
        zip(runs, summaries, strict=True), key=lambda pair: pair[1].max_ns
    )
    rates = [sum(run.load.throughput.values()) for run in runs if run.load.throughput]
    return Standing(
        worst_ns=summary.max_ns,
        p999_ns=figure("p99_9").of_summary(summary),
        missed=sum(one.missed_periods or 0 for one in summaries),
        operations=sum(rates) / len(rates) if rates else None,
        run=worst.run.id,
        cause=_cause_of(explained.get(worst.result_digest)),
    )


def _cause_of(explained: Explained | None) -> Cause | None:
    worst = explained.worst if explained else None
    dominant = worst.dominant if worst else None
    if worst is None or dominant is None:
        return None
    return Cause(dominant.title, worst.blamed_ns)


def _worked(record: RunRecord) -> bool:
    """Whether the load did something in the measurement, and that is valid."""
    seen = any(window.processes for window in record.load.windows)
    return seen and any(record.load.operations.values()) and _is_sound(record)


def _is_sound(record: RunRecord) -> bool:
    """Whether nothing invalidates the run: its load may have been there in part."""
    return all(kind_of(c).effect is not Effect.INVALID for c in all_caveats(record))


def _why_unproved(record: RunRecord) -> str:
    """Return why the load is not shown to have run, or why the run does not count."""
    doubts = (c for c in all_caveats(record) if kind_of(c).counts is not Counts.YES)
    caveat = next(doubts, None)
    if caveat is None:
        return ""
    if kind_of(caveat).effect is Effect.INVALID:
        return kind_of(caveat).message
    messages = [
        _PREFIX.sub("", line).strip()
        for line in record.load.log_tail.splitlines()
        if _TELLING.search(line)
    ]
    return f"{caveat.detail}: {messages[0]}" if messages else caveat.detail
