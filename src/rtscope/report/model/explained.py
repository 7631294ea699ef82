"""
What a report says of runs that were explained: the culprit, the tail, and the bound.

It is read from beside the records, and so may be missing, or of some of them only.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rtscope.record.explanation import Explained, Wakeup, missing
from rtscope.record.model import RunRecord
from rtscope.report.model.tail import Blamed, Tail, tail_of
from rtscope.report.words import us, virtual_word


@dataclass(frozen=True, slots=True)
class ExplainedBeside:
    """A run whose explanation lies beside its record."""

    run: str
    load: str
    culprit: str
    """What is blamed for the worst wake-up; empty if nothing is known."""
    sentence: str
    """How the worst wake-up became so late, in one sentence."""
    sentences: tuple[str, ...]
    """One line each: who is to blame, and what the sections seen could combine to."""
    bound_ns: int | None
    observed_ns: int
    missing: tuple[str, ...]
    """What the explanation lacks to complete a verdict."""
    tail: Tail | None
    virtual: str


def explained_beside(
    records: Sequence[RunRecord], explained: Mapping[str, Explained]
) -> tuple[ExplainedBeside, ...]:
    """Return what is known beside each record that was explained, in their order."""
    return tuple(
        _beside(record, explained[record.result_digest])
        for record in records
        if record.result_digest in explained
    )


def _beside(record: RunRecord, one: Explained) -> ExplainedBeside:
    worst, bound = one.worst, one.worst_bound
    virtual = virtual_word([record])
    known = [
        Blamed(w.latency_ns, w.blamed.cause)
        for w in one.wakeups
        if w.blamed is not None
    ]
    threads = record.result.threads
    lacks = tuple(dict.fromkeys(missing(one, record)))
    return ExplainedBeside(
        run=record.run.id,
        load=record.run.load,
        culprit=_culprit(worst),
        sentence=worst.sentence if worst else "",
        sentences=tuple(_sentences(record, one, lacks, virtual=virtual)),
        bound_ns=bound.bound_ns if bound else None,
        observed_ns=record.max_ns or 0,
        missing=lacks,
        tail=tail_of(threads, known),
        virtual=virtual,
    )


def _culprit(worst: Wakeup | None) -> str:
    blamed = worst.blamed if worst else None
    if blamed is None:
        return ""
    where = f" in {blamed.name}" if blamed.name else ""
    return f"{blamed.cause}{where}"


def _sentences(
    record: RunRecord, one: Explained, lacks: Sequence[str], *, virtual: str
) -> Iterator[str]:
    worst, name = one.worst, record.run.id
    blamed = worst.blamed if worst else None
    if worst is not None and blamed is not None:
        yield (
            f"{name}: the wake-up {us(worst.latency_ns, virtual)} late is blamed on "
            f"{_culprit(worst)} ({us(blamed.end_ns - blamed.begin_ns, virtual)})."
        )
    bound = one.worst_bound
    if bound is None:
        return
    observed_ns = record.max_ns or 0
    yield f"{name}: {_could(bound.bound_ns, virtual)}; the latest seen was " + (
        f"{us(observed_ns, virtual)}.{_limits(lacks)}"
    )


def _could(bound_ns: int | None, virtual: str) -> str:
    if bound_ns is None:
        return "the sections seen combine to no bound"
    return f"the sections seen could combine to {us(bound_ns, virtual)} (no proof)"


def _limits(lacks: Sequence[str]) -> str:
    return f" But {'; '.join(lacks)}." if lacks else ""
