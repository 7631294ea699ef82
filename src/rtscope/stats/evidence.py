"""
What a set of runs of one load has to say about a deadline, before it is put in words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rtscope.caveats.catalogue import Caveat, Effect, gravest_first, kind_of
from rtscope.record.model import RunRecord
from rtscope.stats.determinism import caveats_among, distinct
from rtscope.stats.exposure import needed_exposure_ns
from rtscope.stats.lint import clock_coarse
from rtscope.stats.misses import Misses, misses_of
from rtscope.stats.summary import observed_ns
from rtscope.units import format_duration


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
class Evidence:
    """What the sentences of a finding are made of."""

    load: str
    deadline_ns: int
    claim: Claim | None
    min_boots: int
    boots: int
    bound_ns: int | None
    """What the sections seen could combine to; None if it is not known of all runs."""
    observed_ns: int
    worst_ns: int | None
    misses: tuple[Misses, ...]
    invalid: tuple[Caveat, ...]
    caps: tuple[Caveat, ...]

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
        """The rule; see `rtscope.stats.verdict`."""
        if self.invalid or self.worst_ns is None:
            return Verdict.INVALID
        if self.total:
            return Verdict.NO
        if self.caps or self.more_ns or self.boots < self.min_boots:
            return Verdict.NOT_SHOWN
        if self.bound_ns is not None and self.bound_ns <= self.deadline_ns:
            return Verdict.HELD_AND_EXPLAINED
        return Verdict.HELD_IN_TEST


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
        observed_ns=sum(observed_ns(r.result.threads) for r in records),
        worst_ns=max(maxima) if len(maxima) == len(records) else None,
        misses=tuple(misses_of(r, deadline_ns) for r in records),
        invalid=by_effect[Effect.INVALID],
        caps=by_effect[Effect.CAP],
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
