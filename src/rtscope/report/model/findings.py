"""
The findings as sentences, the worst first, and the verdict on a deadline.

Explanations may be attached to some of the records only, or to none.

No sentence claims more than was measured: a ratio of two maxima is named as such, and
as no test.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rtscope.caveats.catalogue import Effect
from rtscope.contract import KernelThread
from rtscope.explain.model import Cause
from rtscope.record.explanation import Explained, Wakeup, missing
from rtscope.record.model import RunRecord
from rtscope.report.model.explanations import KnownCause, WorstWakeups, tail_of
from rtscope.report.model.rows import Row
from rtscope.report.words import (
    capital,
    count,
    duration,
    enumeration,
    micro,
    plural,
    times,
    us,
    virtual_word,
)
from rtscope.stats.exposure import supported_interval_ns
from rtscope.stats.lint import HOG_SHARE
from rtscope.stats.verdict import Claim, Finding, Judgement, Verdict, judge
from rtscope.units import NS_PER_S

Tone = Literal["bad", "open", "good"]

NAMED_DIFFERENCES = 3
"""How many conditions the name of a finding has; the machine's facts have them all."""

MEANINGS: Mapping[Verdict, tuple[Tone, str]] = {
    Verdict.INVALID: ("bad", "no valid measurement"),
    Verdict.NO: ("bad", "the deadline was missed"),
    Verdict.NOT_SHOWN: ("open", "no miss observed, but the evidence is not sufficient"),
    Verdict.HELD_IN_TEST: (
        "good",
        "no miss observed, on this machine and in this test",
    ),
    Verdict.HELD_AND_EXPLAINED: (
        "good",
        "no miss observed, and the latency bound from observed critical sections is "
        "within the deadline",
    ),
}


MISSED: Mapping[Verdict, str] = {
    Verdict.NOT_SHOWN: "the deadline was missed, and the evidence does not decide "
    "about the claim",
    Verdict.HELD_IN_TEST: "the deadline was missed less often than claimed, on this "
    "machine and in this test",
}
"""The meaning of a verdict where a claim allows misses and there were some."""


@dataclass(frozen=True, slots=True)
class Headline:
    """The first thing to read where no deadline was given."""

    maximum: str
    """The number, with its unit."""
    where: str
    support: str
    """The rate of longer latencies that the time measured rules out."""


@dataclass(frozen=True, slots=True)
class LoadVerdict:
    """The verdict on one load."""

    name: str
    word: str
    tone: Tone
    sentence: str
    run_next: str


@dataclass(frozen=True, slots=True)
class VerdictInWords:
    """The verdict on all loads: that of the one that decides, and each by itself."""

    word: str
    tone: Tone
    question: str
    meaning: str
    loads: tuple[LoadVerdict, ...]
    exit_status: int


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


def headline_of(rows: Sequence[Row]) -> Headline:
    """Name the maximum, its place, and the rate that the time measured rules out."""
    row = _worst(rows)
    if row is None or row.summary is None:
        return Headline(
            maximum="no measurement",
            where="because no thread woke up.",
            support="",
        )
    return Headline(
        maximum=row.maximum,
        where=f"was the longest wake-up latency: {_place(row)}.",
        support=_support(row),
    )


def _worst(rows: Sequence[Row]) -> Row | None:
    measured = [row for row in rows if row.summary is not None]
    return max(measured, key=_max_ns, default=None)


def _max_ns(row: Row) -> int:
    return row.summary.max_ns if row.summary else 0


def _place(row: Row) -> str:
    record = row.worst_run
    thread = max(record.result.threads, key=lambda t: t.max_ns or 0)
    place = f"load {row.load}"
    if row.variant:
        place += f", {row.variant}"
    if thread.cpu is not None:
        place += f", CPU {thread.cpu}"
    if thread.worst:
        into_run_ns = thread.worst[0].expiry_ns - record.result.start_ns
        place += f", {max(into_run_ns, 0) / NS_PER_S:,.1f} s into the run"
    if row.runs > 1:
        several = len({r.run.seed for r in row.records}) > 1
        run = f"seed {record.run.seed}" if several else ""
        place += f" ({run or f'repetition {record.run.repetition}'})"
    return place


def _support(row: Row) -> str:
    if row.gravest is Effect.INVALID:
        return "No conclusion: the run is not valid, see the caveats."
    observed_ns = row.seeds.observed_ns if row.seeds else row.observed_ns
    supported = duration(supported_interval_ns(0, observed_ns))
    weaker = " Caveats may weaken this." if row.gravest is Effect.LIMIT else ""
    seeds = len({record.run.seed for record in row.records})
    over = f" over {seeds} seeds" if seeds > 1 else ""
    if row.seeds and row.seeds.trajectories < seeds:
        over += (
            f", of which {row.seeds.trajectories} are independent (others share the "
            "worst wake-ups and add no time)"
        )
    return (
        f"Longest in {duration(observed_ns)}"
        f"{' of virtual time' if row.virtual else ''} under load {row.name}{over}. "
        f"At 95 % confidence, longer ones occur less than once per {supported} "
        f"under this load.{weaker}"
    )


def findings_of(rows: Sequence[Row], *, worse_where: str) -> tuple[str, ...]:
    """Return the findings, the worst first; `worse_where` compares two variants."""
    return tuple(
        sentence
        for found in (
            _determinism(rows),
            _invalid(rows),
            _skipped(rows),
            (worse_where,) if worse_where else (),
            _worst_load(rows),
            _hogs(rows),
            _unmeasured(rows),
            _throughput(rows),
        )
        for sentence in found
    )


def _determinism(rows: Sequence[Row]) -> Iterator[str]:
    broken = [row.name for row in rows if row.contradicted]
    if broken:
        yield (
            f"DETERMINISM FAILURE: equal inputs gave different results under "
            f"{enumeration(broken)}: an input outside the record reached the virtual "
            "board."
        )


def _invalid(rows: Sequence[Row]) -> Iterator[str]:
    names = [row.name for row in rows if row.gravest is Effect.INVALID]
    if names:
        yield f"The numbers of {enumeration(names)} are not valid: see the caveats."


def _skipped(rows: Sequence[Row]) -> Iterator[str]:
    late = {
        r.name: r.summary.missed_periods
        for r in rows
        if r.summary and r.summary.missed_periods
    }
    if late:
        most = max(late, key=late.__getitem__)
        where = f"{', most' if len(late) > 1 else ''} under {most}"
        yield (
            f"{plural(sum(late.values()), 'missed period')}{where}: a thread was a "
            "whole interval late. Averages and percentiles leave missed periods out."
        )


def _worst_load(rows: Sequence[Row]) -> Iterator[str]:
    for variant in dict.fromkeys(row.variant for row in rows):
        same = [row for row in rows if row.variant == variant]
        worst = _worst(same)
        idle = next((row for row in same if row.load == "idle" and row.summary), None)
        if worst is None or idle is None or len(same) < 2:
            continue
        on = f" on {variant}" if variant else ""
        if worst.load == "idle":
            yield f"No load has a higher maximum than the idle machine{on}."
        else:
            yield (
                f"The worst load{on} is {worst.load}: its maximum is "
                f"{times(_max_ns(worst) / max(_max_ns(idle), 1))} that of the idle "
                f"machine ({idle.maximum})."
            )


def _hogs(rows: Sequence[Row]) -> Iterator[str]:
    shares: dict[str, list[tuple[float, int, str]]] = {}
    for row in rows:
        for record in row.counted:
            machine = record.result.machine
            for thread in machine.kernel_threads if machine else ():
                share = kernel_thread_share(thread, record)
                if thread.kind == "irq" and share > HOG_SHARE:
                    found_of = shares.setdefault(thread.name, [])
                    found_of.append((share, thread.cpu, row.load))
    for name, found in sorted(shares.items(), key=lambda item: -max(item[1])[0]):
        share, cpu, load = max(found)
        more = len({load for *_, load in found}) - 1
        others = f", and over {HOG_SHARE:.0%} under {plural(more, 'other load')}"
        yield (
            f"Interrupt thread {name} used {share:.0%} of CPU {cpu} under {load}"
            f"{others if more else ''}: that CPU is not free for real-time work."
        )


def kernel_thread_share(thread: KernelThread, record: RunRecord) -> float:
    """Return the share of one CPU that a thread used during the run."""
    return thread.cpu_time_ns / max(record.result.end_ns - record.result.start_ns, 1)


def _unmeasured(rows: Sequence[Row]) -> Iterator[str]:
    silent = [row.name for row in rows if row.summary is None]
    if silent:
        yield f"Nothing was measured under {enumeration(silent)}."


def _throughput(rows: Sequence[Row]) -> Iterator[str]:
    variants = list(dict.fromkeys(row.variant for row in rows))
    if len(variants) == 2:
        yield from _throughput_change(rows, variants)
    if len(variants) > 1:
        return
    told = [
        f"{row.name} {count(row.bogo_ops_per_s)}"
        for row in rows
        if row.bogo_ops_per_s is not None
    ]
    if told:
        yield (
            "Throughput during the measurement, in bogo operations per second: "
            f"{enumeration(told)}."
        )


def _throughput_change(rows: Sequence[Row], variants: Sequence[str]) -> Iterator[str]:
    rates = {(r.load, r.variant): r.bogo_ops_per_s for r in rows}
    changes = []
    for load in dict.fromkeys(row.load for row in rows):
        before, after = (rates.get((load, variant)) for variant in variants)
        if before and after is not None:
            changes.append(f"{load} {after / before - 1:+.0%}")
    if changes:
        yield (
            f"Throughput of {variants[1]} relative to {variants[0]}: "
            f"{enumeration(changes)}."
        )


def verdict_of(
    records: Sequence[RunRecord],
    *,
    deadline_ns: int,
    claim: Claim | None,
    min_boots: int,
    bounds_ns: Mapping[str, int] | None = None,
) -> VerdictInWords:
    """Judge the records and put the verdict into words, the deciding load first."""
    judged = judge(
        records,
        deadline_ns=deadline_ns,
        claim=claim,
        min_boots=min_boots,
        bounds_ns=bounds_ns,
    )
    order = list(Verdict)
    virtual = virtual_word(records)
    question = f"Is every wake-up within {us(deadline_ns, virtual)}"
    if claim is not None:
        verb = "is" if claim.events == 1 else "are"
        question += f", with fewer than {claim} that {verb} not"
    return VerdictInWords(
        word=judged.verdict.value,
        tone=MEANINGS[judged.verdict][0],
        question=f"{question}?",
        meaning=_meaning(judged),
        loads=_advice_once(
            LoadVerdict(
                name=_name(f, judged.findings),
                word=f.verdict.value,
                tone=MEANINGS[f.verdict][0],
                sentence=_sentence(micro(f.sentence, virtual)),
                run_next=_sentence(micro(f.run_next, virtual)),
            )
            for f in sorted(judged.findings, key=lambda f: order.index(f.verdict))
        ),
        exit_status=judged.exit_status,
    )


def _meaning(judged: Judgement) -> str:
    """Say what the word means; with a claim, misses may be within it."""
    missed = any(
        f.evidence.total for f in judged.findings if f.verdict is judged.verdict
    )
    return (MISSED if missed else {}).get(judged.verdict, MEANINGS[judged.verdict][1])


def _name(finding: Finding, findings: Sequence[Finding]) -> str:
    """Name the load, and the conditions that differ between findings."""
    parts = [finding.load]
    for said in (
        lambda f: f.target,
        lambda f: f.kernel,
        lambda f: f"{f.policy} every {duration(f.interval_ns)}",
    ):
        if len({said(f) for f in findings}) > 1:
            parts.append(said(finding))
    parts += finding.differences[:NAMED_DIFFERENCES]
    if (more := len(finding.differences) - NAMED_DIFFERENCES) > 0:
        parts.append(plural(more, "more difference"))
    return " · ".join(parts)


def _advice_once(loads: Iterable[LoadVerdict]) -> tuple[LoadVerdict, ...]:
    """Leave an advice out where the next load has the same."""
    listed = list(loads)
    following = [load.run_next for load in listed[1:]] + [""]
    return tuple(
        replace(load, run_next="" if load.run_next == after else load.run_next)
        for load, after in zip(listed, following, strict=True)
    )


def _sentence(sentence: str) -> str:
    done = capital(sentence)
    return f"{done}." if done and not done.endswith((".", "…")) else done


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
        if w.dominant is not None or w.broken_invariants
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
    if dominant is None:
        return ""
    where = f" in {dominant.name}" if dominant.name else ""
    return f"{dominant.cause}{where}"


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
    elif worst is not None and worst.broken_invariants:
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
