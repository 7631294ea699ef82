"""
The verdict on a deadline: what a set of runs shows, and what it does not.

Runs are combined only under the same conditions (`stats.conditions`): machine, kernel,
settings, threads and load. The exposure is wall-clock time: all CPUs of a run are
watched together, and the claim is about the machine. Every CPU must support it by
itself: the one that was watched least decides.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rtscope.caveats.catalogue import Caveat, Effect, gravest_first, kind_of
from rtscope.errors import MeasurementError
from rtscope.record.model import RunRecord
from rtscope.stats.conditions import conditions_of, differences
from rtscope.stats.determinism import caveats_among, distinct
from rtscope.stats.episodes import Misses, misses_of
from rtscope.stats.exposure import (
    MIN_WAKEUPS,
    Watched,
    needed_exposure_ns,
    rate_limits_per_hour,
    supported_interval_ns,
    watched,
)
from rtscope.stats.lint import clock_coarse
from rtscope.units import (
    NS_PER_MIN,
    NS_PER_S,
    format_duration,
    format_number,
    format_us,
)


class Verdict(StrEnum):
    """What may be said about a deadline, the one that decides a set of loads first."""

    INVALID = "INVALID"
    NO = "NO"
    NOT_SHOWN = "NOT SHOWN"
    HELD_IN_TEST = "HELD IN TEST"
    HELD_AND_EXPLAINED = "HELD AND EXPLAINED"


@dataclass(frozen=True, slots=True)
class Claim:
    """Fewer than `events` misses per `per_ns` of wall-clock time."""

    events: int
    per_ns: int

    @property
    def interval_ns(self) -> float:
        """The time per miss that must be supported."""
        return self.per_ns / self.events

    def __str__(self) -> str:
        count = "one" if self.events == 1 else str(self.events)
        return f"{count} per {format_duration(self.per_ns)}"


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on one load (with one target, kernel and way of measuring)."""

    load: str
    target: str
    kernel: str
    policy: str
    interval_ns: int
    cpus: tuple[int, ...] | None
    """None if the threads were not pinned."""
    differences: tuple[str, ...]
    """Conditions that differ between the findings on this load, in words."""
    runs: int
    boots: int
    verdict: Verdict
    misses: int
    ambiguous: int
    """Misses that may have been in time: they lie in the deadline's own bucket."""
    episodes: int
    episodes_exact: bool
    observed_ns: int
    """How long the CPU was watched that was watched least."""
    fewest_wakeups: int
    """Wake-ups of the CPU that has the fewest."""
    supported_interval_ns: int
    """The runs support fewer than one miss (episode) per this time, at 95 %."""
    rate_per_hour: tuple[float, float]
    """Limits of the rate of episodes, each one-sided at 95 %."""
    more_ns: int
    """How much longer to watch, without a miss, to support the claim; 0 without one."""
    worst_ns: int | None
    reasons: tuple[Caveat, ...]
    """The caveats that made it INVALID or limited it, gravest first."""
    sentence: str
    run_next: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on all loads: that of the load that decides."""

    deadline_ns: int
    claim: Claim | None
    findings: tuple[Finding, ...]
    verdict: Verdict
    exit_status: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the sentences of a finding are made of."""

    load: str
    deadline_ns: int
    claim: Claim | None
    min_boots: int
    boots: int
    bound_ns: int | None
    """From observed critical sections; None if a run has none."""
    interval_ns: int
    watched: Watched
    worst_ns: int | None
    misses: tuple[Misses, ...]
    invalid: tuple[Caveat, ...]
    limits: tuple[Caveat, ...]

    @property
    def observed_ns(self) -> int:
        """Time that each CPU was watched at least."""
        return self.watched.least_ns

    @property
    def too_few(self) -> bool:
        """Whether a CPU has too few wake-ups for anything to be held."""
        return self.watched.fewest_wakeups < MIN_WAKEUPS

    @property
    def total(self) -> int:
        """All misses of all runs."""
        return sum(m.total for m in self.misses)

    @property
    def episodes(self) -> int:
        """All episodes of all runs."""
        return sum(m.episodes for m in self.misses)

    @property
    def more_ns(self) -> int:
        """How much longer to watch, without a further miss, to support the claim."""
        if self.claim is None:
            return 0
        needed_ns = needed_exposure_ns(self.claim.interval_ns, self.episodes)
        return max(needed_ns - self.observed_ns, 0)

    @property
    def verdict(self) -> Verdict:
        """What may be said: the first of these that is true."""
        if self.invalid or self.worst_ns is None:
            return Verdict.INVALID
        if self.total:
            return Verdict.NO
        if self.limits or self.more_ns or self.too_few or self.boots < self.min_boots:
            return Verdict.NOT_SHOWN
        if self.bound_ns is not None and self.bound_ns <= self.deadline_ns:
            return Verdict.HELD_AND_EXPLAINED
        return Verdict.HELD_IN_TEST


def judge(
    records: Sequence[RunRecord],
    *,
    deadline_ns: int,
    claim: Claim | None = None,
    min_boots: int = 1,
    bounds_ns: Mapping[str, int] | None = None,
) -> Judgement:
    """
    Judge runs against a deadline, each load by itself.

    `bounds_ns` gives, by the result's digest, the latency bound from the critical
    sections observed in a run. A load that held, with such a bound within the deadline
    for each run, is HELD AND EXPLAINED. INVALID goes before NO: a miss in an
    invalid run may be an artefact. Raises MeasurementError if there are no runs.
    """
    if not records:
        raise MeasurementError("no runs to check")
    groups = _alike(records)
    findings = tuple(
        _finding(
            runs,
            gather(
                runs,
                deadline_ns=deadline_ns,
                claim=claim,
                min_boots=min_boots,
                bounds_ns=bounds_ns or {},
            ),
            differing,
        )
        for runs, differing in zip(groups, _differences(groups), strict=True)
    )
    order = list(Verdict)
    verdict = min((f.verdict for f in findings), key=order.index)
    asked = claim is not None or any(
        f.boots < min_boots or f.fewest_wakeups < MIN_WAKEUPS for f in findings
    )
    return Judgement(
        deadline_ns=deadline_ns,
        claim=claim,
        findings=findings,
        verdict=verdict,
        exit_status=_exit_status(verdict, asked=asked),
    )


def _alike(records: Sequence[RunRecord]) -> list[list[RunRecord]]:
    """Divide records into groups of equal conditions, in the order of the first."""
    groups: dict[tuple[object, ...], list[RunRecord]] = {}
    for record in records:
        conditions = conditions_of(record)
        groups.setdefault(tuple(conditions.items()), []).append(record)
    return list(groups.values())


def _differences(groups: Sequence[Sequence[RunRecord]]) -> list[tuple[str, ...]]:
    """Return, for each group, what tells it from the others of its load."""
    found: list[tuple[str, ...]] = []
    for runs in groups:
        load = runs[0].run.load
        alike = [other for other in groups if other[0].run.load == load]
        said = differences([conditions_of(other[0]) for other in alike])
        found.append(said[next(i for i, other in enumerate(alike) if other is runs)])
    return found


def _exit_status(verdict: Verdict, *, asked: bool) -> int:
    """Without a claim, a deadline that was not missed is nothing to fail about."""
    if verdict is Verdict.NOT_SHOWN:
        return 4 if asked else 0
    return {Verdict.NO: 1, Verdict.INVALID: 3}.get(verdict, 0)


def _kernel(record: RunRecord) -> str:
    release = record.facts_before.get("kernel_release")
    return record.run.kernel or str(release.value if release else "") or "unknown"


def _finding(
    records: Sequence[RunRecord], e: Evidence, differing: tuple[str, ...]
) -> Finding:
    run = records[0].run
    cpus = tuple(t.cpu for t in records[0].result.threads if t.cpu is not None)
    sentence, run_next = put_in_words(e)
    return Finding(
        load=run.load,
        target=run.target,
        kernel=_kernel(records[0]),
        policy=run.policy,
        interval_ns=run.interval_ns,
        cpus=cpus or None,
        differences=differing,
        runs=len(distinct(records)),
        boots=e.boots,
        verdict=e.verdict,
        misses=e.total,
        ambiguous=sum(m.ambiguous for m in e.misses),
        episodes=e.episodes,
        episodes_exact=all(m.episodes_exact for m in e.misses),
        observed_ns=e.observed_ns,
        fewest_wakeups=e.watched.fewest_wakeups,
        supported_interval_ns=supported_interval_ns(e.episodes, e.observed_ns),
        rate_per_hour=rate_limits_per_hour(e.episodes, e.observed_ns),
        more_ns=e.more_ns,
        worst_ns=e.worst_ns,
        reasons=e.invalid or e.limits,
        sentence=sentence,
        run_next=run_next,
    )


def gather(
    records: Sequence[RunRecord],
    *,
    deadline_ns: int,
    claim: Claim | None,
    min_boots: int,
    bounds_ns: Mapping[str, int],
) -> Evidence:
    """
    Collect the evidence of runs that were measured under the same conditions.

    `bounds_ns` is by the digest of the result.

    Exact repetitions of a virtual run count once.
    """
    caveats = gravest_first(
        caveat
        for record, raised in zip(records, caveats_among(records), strict=True)
        for caveat in (*raised, *clock_coarse(record, deadline_ns))
    )
    records = distinct(records)
    by_effect = {
        effect: tuple(c for c in caveats if kind_of(c).effect is effect)
        for effect in Effect
    }
    maxima = [ns for r in records if (ns := r.max_ns) is not None]
    return Evidence(
        load=records[0].run.load,
        deadline_ns=deadline_ns,
        claim=claim,
        min_boots=min_boots,
        boots=_boots(records),
        bound_ns=_bound(records, bounds_ns),
        interval_ns=records[0].run.interval_ns,
        watched=watched([r.result.threads for r in records]),
        worst_ns=max(maxima) if len(maxima) == len(records) else None,
        misses=tuple(misses_of(r, deadline_ns) for r in records),
        invalid=by_effect[Effect.INVALID],
        limits=by_effect[Effect.LIMIT],
    )


def _bound(records: Sequence[RunRecord], bounds_ns: Mapping[str, int]) -> int | None:
    """Return the highest bound; None if a run has none."""
    known = [bounds_ns.get(record.result_digest) for record in records]
    return None if None in known else max(ns for ns in known if ns is not None)


def _boots(records: Sequence[RunRecord]) -> int:
    """Count boots that are known to differ; runs without a boot id may share one."""
    known = {
        fact.value
        for r in records
        if (fact := r.facts_before.get("boot_id")) is not None
    }
    return max(len(known - {None}), 1)


def put_in_words(evidence: Evidence) -> tuple[str, str]:
    """Return the sentence on a load, and what to run or do next ("" for nothing)."""
    return _SAYS[evidence.verdict](evidence)


def _say_invalid(e: Evidence) -> tuple[str, str]:
    if not e.invalid:
        return f"no valid measurement under {e.load}: a run has no samples", (
            "measure again"
        )
    first = e.invalid[0]
    detail = f" ({first.detail})" if first.detail else ""
    others = f"; and {len(e.invalid) - 1} more" if len(e.invalid) > 1 else ""
    return (
        f"no valid measurement under {e.load}: {kind_of(first).message}{detail}"
        f"{others}",
        kind_of(first).remedy,
    )


def _say_no(e: Evidence) -> tuple[str, str]:
    about = "" if all(m.episodes_exact for m in e.misses) else "about "
    low, high = rate_limits_per_hour(e.episodes, e.observed_ns)
    skipped = sum(m.missed_periods for m in e.misses)
    of_them = f" ({skipped} of them missed periods)" if skipped else ""
    return (
        f"{_counted(e.total, 'miss', 'misses')} of "
        f"{format_duration(e.deadline_ns)}{of_them} in "
        f"{format_duration(e.observed_ns)} under {e.load} "
        f"({about}{_counted(e.episodes, 'episode', 'episodes')}, worst "
        f"{format_us(e.worst_ns)} us): at least {format_number(low)} and at "
        f"most {format_number(high)} episodes per hour (each limit 95 %)",
        "rtscope explain shows the delays of the worst wake-ups (a machine needs "
        "rtscope run --explain)",
    )


def _say_not_shown(e: Evidence) -> tuple[str, str]:
    reasons, todo = [], []
    if e.claim is not None and e.more_ns:
        more = format_duration(_whole_minutes(e.more_ns))
        reasons.append(f"for {e.claim} run another {more}")
        minutes = _whole_minutes(e.more_ns) // NS_PER_MIN
        todo.append(f"rtscope run --load {e.load} --duration {minutes}m")
    if e.too_few:
        fewest = e.watched.fewest_wakeups
        reasons.append(
            f"only {_counted(fewest, 'wake-up', 'wake-ups')} of a CPU, of at least "
            f"{MIN_WAKEUPS:,} that a verdict needs"
        )
        if not e.more_ns:
            lacking_ns = (MIN_WAKEUPS - fewest) * e.interval_ns
            seconds = math.ceil(lacking_ns / NS_PER_S) + 1
            todo.append(f"rtscope run --load {e.load} --duration {seconds}s")
    if e.boots < e.min_boots:
        reasons.append(
            f"only {e.boots} of the {e.min_boots} requested boots were measured"
        )
        todo.append("reboot and run again")
    for limit in e.limits:
        reasons.append(f"no more can be shown: {kind_of(limit).message}")
        todo.append(kind_of(limit).remedy)
    return "; ".join((_no_miss(e), *reasons)), "; ".join(dict.fromkeys(todo))


def _say_held(e: Evidence) -> tuple[str, str]:
    if e.claim is None:
        return _no_miss(e), (
            "add a claim such as --claim 1/1h to get the run time that it needs"
        )
    return f"{_no_miss(e)}, which supports the claim of fewer than {e.claim}", ""


def _say_explained(e: Evidence) -> tuple[str, str]:
    sentence, run_next = _say_held(e)
    return (
        f"{sentence}; latency bound from observed critical sections: "
        f"{format_us(e.bound_ns)} us, which is no proof",
        run_next,
    )


_SAYS: Mapping[Verdict, Callable[[Evidence], tuple[str, str]]] = {
    Verdict.INVALID: _say_invalid,
    Verdict.NO: _say_no,
    Verdict.NOT_SHOWN: _say_not_shown,
    Verdict.HELD_IN_TEST: _say_held,
    Verdict.HELD_AND_EXPLAINED: _say_explained,
}


def _no_miss(e: Evidence) -> str:
    supported_ns = supported_interval_ns(0, e.observed_ns)
    return (
        f"no miss of {format_duration(e.deadline_ns)} in "
        f"{_watched(e)} under {e.load}: supports fewer than one "
        f"miss per {format_duration(supported_ns)} (95 %)"
    )


def _watched(e: Evidence) -> str:
    """Say how long; and that it is the CPU's watched least, if another was longer."""
    least = format_duration(e.watched.least_ns)
    longest = format_duration(e.watched.longest_ns)
    return least if least == longest else f"{least} (one CPU, others up to {longest})"


def _counted(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"


def _whole_minutes(ns: int) -> int:
    """Round up, so that following the advice is enough."""
    return math.ceil(ns / NS_PER_MIN) * NS_PER_MIN
