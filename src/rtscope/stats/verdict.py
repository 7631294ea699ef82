"""
The verdict on a deadline: what a set of runs shows, and what it does not.

Runs are combined only under the same conditions (`stats.conditions`): machine, kernel,
settings, threads and load. The exposure is wall-clock time: all CPUs of a run are
watched together, and the claim is about the machine. Every CPU must support it by
itself: the one that was watched least decides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rtscope.host.errors import MeasurementError
from rtscope.record.caveats.catalogue import Effect, gravest_first, kind_of
from rtscope.record.model import RunRecord
from rtscope.stats.conditions import conditions_of, differences
from rtscope.stats.determinism import caveats_among, distinct, trajectories
from rtscope.stats.episodes import misses_of
from rtscope.stats.evidence import Claim, Evidence, Verdict, put_in_words
from rtscope.stats.exposure import dispersion_of, watched
from rtscope.stats.runcaveats import clock_coarse, left_out_words, parted
from rtscope.stats.summary import threshold_of

__all__ = ["Claim", "Finding", "Judgement", "Verdict", "judge"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on one load (with one target, kernel and way of measuring)."""

    load: str
    target: str
    kernel: str
    policy: str
    interval_ns: int
    differences: tuple[str, ...]
    """Conditions that differ between the findings on this load, in words."""
    evidence: Evidence
    verdict: Verdict
    sentence: str
    run_next: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on all loads: that of the load that decides."""

    findings: tuple[Finding, ...]
    verdict: Verdict
    exit_status: int


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
    is_required = claim is not None or any(
        f.evidence.boots < min_boots or f.evidence.too_few for f in findings
    )
    return Judgement(findings, verdict, _exit_status(verdict, is_required=is_required))


def _alike(records: Sequence[RunRecord]) -> list[list[RunRecord]]:
    """Divide records into groups of equal conditions, in the order of the first."""
    groups: dict[tuple[object, ...], list[RunRecord]] = {}
    for record in records:
        conditions = conditions_of(record)
        groups.setdefault(tuple(conditions.items()), []).append(record)
    return list(groups.values())


def _differences(groups: Sequence[Sequence[RunRecord]]) -> list[tuple[str, ...]]:
    """Return, for each group, what tells it from the others of its load."""
    by_group: list[tuple[str, ...]] = []
    for runs in groups:
        load = runs[0].run.load
        alike = [other for other in groups if other[0].run.load == load]
        said = differences([conditions_of(other[0]) for other in alike])
        by_group.append(said[next(i for i, other in enumerate(alike) if other is runs)])
    return by_group


def _exit_status(verdict: Verdict, *, is_required: bool) -> int:
    """Without a claim, a deadline that was not missed is nothing to fail about."""
    if verdict is Verdict.NOT_SHOWN and not is_required:
        return 0
    return verdict.exit_status


def _finding(
    records: Sequence[RunRecord], e: Evidence, differing: tuple[str, ...]
) -> Finding:
    run = records[0].run
    sentence, run_next = put_in_words(e)
    return Finding(
        load=run.load,
        target=run.target,
        kernel=records[0].kernel_name,
        policy=run.policy,
        interval_ns=run.interval_ns,
        differences=differing,
        evidence=e,
        verdict=e.verdict,
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
    raised = caveats_among(records)
    caveats = gravest_first(
        caveat
        for record, of_record in zip(records, raised, strict=True)
        for caveat in (*of_record, *clock_coarse(record, deadline_ns))
    )
    given = len(records)
    counting, left_out = parted(records, raised)
    count_ids = {id(record) for record in counting}
    records = distinct(records)
    by_effect = {
        effect: tuple(c for c in caveats if kind_of(c).effect is effect)
        for effect in Effect
    }
    misses = {id(r): misses_of(r, deadline_ns) for r in records}
    # A miss is one in any run; a time without one is none where the load was not there.
    timed = [r for r in records if id(r) in count_ids or misses[id(r)].total] or records
    alike = trajectories(timed)
    longest = [max(runs, key=_least_ns) for runs in alike]
    # Of runs that are alike the one with most episodes: none is hidden by another.
    counted = tuple(
        max((misses[id(r)] for r in runs), key=lambda m: m.episodes) for runs in alike
    )
    lengths_ns = tuple(map(_least_ns, longest))
    maxima = [ns for r in records if (ns := r.max_ns) is not None]
    return Evidence(
        load=records[0].run.load,
        event=records[0].run.event,
        deadline_ns=deadline_ns,
        claim=claim,
        min_boots=min_boots,
        boots=_boots(records),
        bound_ns=_bound(records, bounds_ns),
        interval_ns=records[0].run.interval_ns,
        watched=watched([r.result.threads for r in longest]),
        worst_ns=max(maxima) if len(maxima) == len(records) else None,
        threshold_ns=threshold_of([t for r in records for t in r.result.threads]),
        misses=tuple(misses.values()),
        not_counted=left_out_words(left_out, of=given),
        counted=counted,
        lengths_ns=lengths_ns,
        dispersion=dispersion_of(
            [(ns, m.starts_ns) for ns, m in zip(lengths_ns, counted, strict=True)]
        ),
        invalid=by_effect[Effect.INVALID],
        limits=by_effect[Effect.LIMIT],
    )


def _least_ns(record: RunRecord) -> int:
    return watched([record.result.threads]).least_ns


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
