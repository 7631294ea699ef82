"""
The verdict on a deadline: what a set of runs shows, and what it does not.

Runs are judged together only if they had the same target, kernel, load, policy,
interval and CPUs; loads are never pooled. The exposure is wall-clock time: all CPUs of
a run are watched together, and the claim is about the machine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rtscope.caveats.catalogue import Caveat
from rtscope.errors import MeasurementError
from rtscope.record.model import RunRecord
from rtscope.stats.evidence import Claim, Evidence, Verdict, gather
from rtscope.stats.exposure import rate_limits_per_hour, supported_interval_ns
from rtscope.stats.wording import put_in_words

__all__ = ["Claim", "Finding", "Judgement", "Verdict", "judge"]


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
    runs: int
    boots: int
    verdict: Verdict
    misses: int
    ambiguous: int
    """Misses that may have been in time: they lie in the deadline's own bucket."""
    episodes: int
    episodes_exact: bool
    observed_ns: int
    supported_interval_ns: int
    """The runs support fewer than one miss (episode) per this time, at 95 %."""
    rate_per_hour: tuple[float, float]
    """Limits of the rate of episodes, each one-sided at 95 %."""
    more_ns: int
    """How much longer to watch, without a miss, to support the claim; 0 without one."""
    worst_ns: int | None
    reasons: tuple[Caveat, ...]
    """The caveats that made it INVALID or capped it, gravest first."""
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

    `bounds_ns` gives, by the result's digest, what the sections that were seen in a
    run could combine to; a load that held, and of which every run has such a bound
    within the deadline, is HELD AND EXPLAINED. INVALID goes before NO: a miss in an
    invalid run may be an artefact. Raises MeasurementError if there are no runs.
    """
    if not records:
        raise MeasurementError("no runs to judge")
    groups: dict[tuple[object, ...], list[RunRecord]] = {}
    for record in records:
        groups.setdefault(_conditions(record), []).append(record)
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
        )
        for runs in groups.values()
    )
    order = list(Verdict)
    verdict = min((f.verdict for f in findings), key=order.index)
    asked = claim is not None or any(f.boots < min_boots for f in findings)
    return Judgement(
        deadline_ns=deadline_ns,
        claim=claim,
        findings=findings,
        verdict=verdict,
        exit_status=_exit_status(verdict, asked=asked),
    )


def _exit_status(verdict: Verdict, *, asked: bool) -> int:
    """Without a claim, a deadline that was not missed is nothing to fail about."""
    if verdict is Verdict.NOT_SHOWN:
        return 4 if asked else 0
    return {Verdict.NO: 1, Verdict.INVALID: 3}.get(verdict, 0)


def _conditions(record: RunRecord) -> tuple[object, ...]:
    run, facts = record.run, record.facts_before
    machine = ("machine_model", "cpu_model", "kernel_release", "kernel_version")
    return (
        run.target,
        run.kernel,
        run.load,
        run.policy,
        run.priority,
        run.interval_ns,
        tuple(t.cpu for t in record.result.threads),
        *(facts[name].value if name in facts else None for name in machine),
    )


def _kernel(record: RunRecord) -> str:
    release = record.facts_before.get("kernel_release")
    return record.run.kernel or str(release.value if release else "") or "unknown"


def _finding(records: Sequence[RunRecord], e: Evidence) -> Finding:
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
        runs=len(records),
        boots=e.boots,
        verdict=e.verdict,
        misses=e.total,
        ambiguous=sum(m.ambiguous for m in e.misses),
        episodes=e.episodes,
        episodes_exact=all(m.episodes_exact for m in e.misses),
        observed_ns=e.observed_ns,
        supported_interval_ns=supported_interval_ns(e.episodes, e.observed_ns),
        rate_per_hour=rate_limits_per_hour(e.episodes, e.observed_ns),
        more_ns=e.more_ns,
        worst_ns=e.worst_ns,
        reasons=e.invalid or e.caps,
        sentence=sentence,
        run_next=run_next,
    )
