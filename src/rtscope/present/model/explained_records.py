"""
The explanations that lie beside the records of a report, in a few sentences each.

They may be attached to some of the records only, or to none.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rtscope.explain.bound import KnownCause, WorstWakeups, tail_of
from rtscope.explain.model import Cause
from rtscope.present.words import us, virtual_word
from rtscope.record.explanation import Explained, Wakeup, missing
from rtscope.record.model import RunRecord


@dataclass(frozen=True, slots=True)
class ExplainedRecord:
    """A record with an attached explanation."""

    run: str
    load: str
    dominant_cause: str
    """The dominant cause of the worst wake-up; empty if unknown."""
    sentence: str
    """The explanation of the worst wake-up, in one sentence."""
    sentences: tuple[str, ...]
    """One line each: the dominant cause, and the bound from critical sections."""
    bound_ns: int | None
    observed_ns: int
    missing: tuple[str, ...]
    """The gaps that keep the explanation from completing a verdict."""
    tail: WorstWakeups | None
    virtual: str


def explained_records(
    records: Sequence[RunRecord], explained: Mapping[str, Explained]
) -> tuple[ExplainedRecord, ...]:
    """Return the explanation of each record that has one, in their order."""
    return tuple(
        _explained_record(record, explained[record.result_digest])
        for record in records
        if record.result_digest in explained
    )


def _explained_record(record: RunRecord, one: Explained) -> ExplainedRecord:
    worst, bound = one.worst, one.worst_bound
    virtual = virtual_word([record])
    known = [
        KnownCause(
            w.latency_ns,
            w.dominant.cause if w.dominant else Cause.UNKNOWN,
            w.blamed_ns,
        )
        for w in one.wakeups
        if w.dominant is not None or w.is_withdrawn
    ]
    lacks = tuple(dict.fromkeys(missing(one, record)))
    return ExplainedRecord(
        run=record.run.id,
        load=record.run.load,
        dominant_cause=_dominant_cause(worst),
        sentence=worst.sentence if worst else "",
        sentences=tuple(_sentences(record, one, lacks, virtual=virtual)),
        bound_ns=bound.bound_ns if bound else None,
        observed_ns=record.max_ns or 0,
        missing=lacks,
        tail=tail_of(record.result.threads, known),
        virtual=virtual,
    )


def _dominant_cause(worst: Wakeup | None) -> str:
    dominant = worst.dominant if worst else None
    return dominant.title if dominant else ""


def _sentences(
    record: RunRecord, one: Explained, lacks: Sequence[str], *, virtual: str
) -> Iterator[str]:
    worst, name = one.worst, record.run.id
    dominant = worst.dominant if worst else None
    if worst is not None and dominant is not None:
        yield (
            f"{name}: dominant cause of the worst wake-up "
            f"({us(worst.latency_ns, virtual)}): {_dominant_cause(worst)}, "
            f"{us(dominant.end_ns - dominant.begin_ns, virtual)}."
        )
    elif worst is not None and worst.is_withdrawn:
        yield (
            f"{name}: the explanation of the worst wake-up "
            f"({us(worst.latency_ns, virtual)}) is withdrawn: an invariant is broken."
        )
    bound = one.worst_bound
    if bound is None:
        return
    could = "latency bound from observed critical sections"
    if bound.bound_ns is None:
        could = f"no {could}"
    else:
        could += f": {us(bound.bound_ns, virtual)} (no proof)"
    observed = f"longest latency observed: {us(record.max_ns or 0, virtual)}"
    limits = f" Limits: {'; '.join(lacks)}." if lacks else ""
    yield f"{name}: {could}; {observed}.{limits}"
