"""
The explained wake-ups of runs, as every form of their report needs them.

Names of functions come from a kernel that may be anybody's: they are made printable
here, once, before any text uses them.

The worst wake-ups of a run are counted by cause. A board records the paths of its K
worst wake-ups; the histogram counts all. Those of the tail that were not recorded are
counted apart, and never spread over the known causes. The latency bound from observed
critical sections is never called a proof.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rtscope.contract import ThreadResult
from rtscope.explain.bound import TITLES as SECTION_TITLES
from rtscope.explain.bound import Section
from rtscope.explain.causes import (
    WITHDRAWN,
    Causes,
    causes_of,
    differences,
    paragraph,
    title_of,
)
from rtscope.explain.model import Cause, Explanation
from rtscope.explain.words import caveats_of, evidence, sentence
from rtscope.host.escape import all_printable
from rtscope.host.units import format_us, plural
from rtscope.host.version import __version__
from rtscope.record import explanation as written
from rtscope.record.explanation import CpuBound, Interrupt, LongestSection, TailCause
from rtscope.record.model import RunRecord
from rtscope.stats.distribution import Distribution, distribution_of
from rtscope.stats.summary import BEYOND_LOW_NS

VIRTUAL = "virtual "
CALLERS_SHOWN = 3
NO_PROOF = (
    "the longest critical sections observed, as if they lined up: no proof, because a "
    "longer one may not have been executed"
)

ONE_OF = 1000
"""The tail is the worst of so many wake-ups: 0.1 %."""
BINS = 24
CAUSES_SHOWN = 5
"""More causes are too many colours: the rest are one."""
OTHERS = "other causes"


BoundRow = tuple[str, str, str]
"""Title, length in µs, place."""


@dataclass(frozen=True, slots=True)
class KnownCause:
    """A wake-up whose cause is known."""

    latency_ns: int
    cause: str
    blamed_ns: int
    """How long the cause took, of the latency."""


@dataclass(frozen=True, slots=True)
class Bin:
    """A range [low, high) of latencies."""

    low_ns: int
    high_ns: int
    known: tuple[int, ...]
    """Wake-ups by cause, in the order of the tail's causes."""
    unknown: int


@dataclass(frozen=True, slots=True)
class WorstWakeups:
    """The worst wake-ups of a run: at most 0.1 % of them, or the last bucket."""

    samples: int
    """All wake-ups of the run."""
    from_ns: int
    wakeups: int
    causes: tuple[TailCause, ...]
    """Most first; the last may be all others."""
    bins: tuple[Bin, ...]
    recorded: int
    """Of how many the cause is known."""
    unknown: int
    """Of how many it is not."""


@dataclass(frozen=True, slots=True)
class OpeningRow:
    """The worst wake-up under a load with a kernel, and what it is blamed on."""

    run_number: int
    """Of its run, from 1 on."""
    load: str
    kernel: str
    latency_ns: int
    cause: str
    cause_ns: int
    """How long the cause took, of the latency; 0 if it is unknown or withdrawn."""


@dataclass(frozen=True, slots=True)
class ExplainedRun:
    """One run, or a trace, and its worst wake-ups, worst first."""

    run_id: str
    load: str
    kernel: str
    board: str
    """The virtual board, or else the target that was measured."""
    result_digest: str
    """Empty for a trace that has no record."""
    explanations: tuple[Explanation, ...]
    virtual: bool = True
    bounds: tuple[CpuBound, ...] = ()
    """Of each measured CPU, if its sections were recorded."""
    observed_ns: Mapping[int, int] = field(default_factory=dict)
    """The longest latency of each CPU."""
    tail: WorstWakeups | None = None

    unit: str = field(init=False)
    """The word before the unit of a time: `virtual `, or nothing."""
    place: str = field(init=False)
    """Where it was measured, in words."""
    causes: Causes = field(init=False)
    """The causes of this run's worst wake-ups."""
    document: written.Explained = field(init=False)
    """The contents of `explain.json`, with the words of each wake-up."""

    def __post_init__(self) -> None:
        """Sum up the causes and find the words, once for all that print them."""
        place = f"virtual board {self.board}" if self.virtual else self.board
        causes = causes_of(self.explanations, load=self.load, kernel=self.kernel)
        object.__setattr__(self, "unit", VIRTUAL if self.virtual else "")
        object.__setattr__(self, "place", place)
        object.__setattr__(self, "causes", causes)
        object.__setattr__(self, "document", _document(self))


def explained_run(
    record: RunRecord,
    explanations: Sequence[Explanation],
    *,
    bounds: Sequence[CpuBound] = (),
) -> ExplainedRun:
    """Return the explanations of a run and its bounds, with the tail measured."""
    explanations, bounds = all_printable((tuple(explanations), tuple(bounds)))
    virtual, record = record.virtual, all_printable(record)
    threads = record.result.threads
    kernel = virtual.kernel if virtual else record.release
    return ExplainedRun(
        run_id=record.run.id,
        load=record.run.load,
        kernel=record.run.kernel or kernel or "an unknown kernel",
        board=virtual.board if virtual else record.run.target,
        result_digest=record.result_digest,
        explanations=explanations,
        virtual=virtual is not None,
        bounds=bounds,
        observed_ns={t.cpu: t.max_ns or 0 for t in threads if t.cpu is not None},
        tail=tail_of(
            threads,
            [_known_cause(e) for e in explanations if e.dominant or e.is_withdrawn],
        ),
    )


def explained_trace(
    name: str,
    explanations: Sequence[Explanation],
    *,
    bounds: Sequence[CpuBound] = (),
) -> ExplainedRun:
    """Return the explanations of a trace that has no record, under its name."""
    return ExplainedRun(
        run_id=all_printable(name),
        load="an unknown load",
        kernel="an unknown kernel",
        board="an unknown machine",
        result_digest="",
        explanations=all_printable(tuple(explanations)),
        virtual=False,
        bounds=all_printable(tuple(bounds)),
        observed_ns={one.cpu: one.latency_ns for one in explanations},
    )


def _known_cause(explanation: Explanation) -> KnownCause:
    dominant = explanation.dominant
    cause = Cause.UNKNOWN if dominant is None else dominant.cause
    return KnownCause(explanation.latency_ns, str(cause), explanation.dominant_ns)


def merged_causes(
    runs: Sequence[ExplainedRun],
) -> tuple[Sequence[Causes], Sequence[str]]:
    """Return the causes per load and kernel, and how those of two kernels differ."""
    unit = unit_of(runs)
    groups: dict[tuple[str, str], list[Explanation]] = {}
    for run in runs:
        groups.setdefault((run.load, run.kernel), []).extend(run.explanations)
    causes = [
        causes_of(found, load=load, kernel=kernel)
        for (load, kernel), found in groups.items()
    ]
    return causes, [paragraph(one, virtual=unit) for one in differences(causes)]


def opening_rows(runs: Sequence[ExplainedRun]) -> Sequence[OpeningRow]:
    """Return the worst wake-up of each load and kernel, in the order of the runs."""
    worst: dict[tuple[str, str], OpeningRow] = {}
    for number, run in enumerate(runs, 1):
        for one in run.explanations[:1]:
            known = worst.get((run.load, run.kernel))
            if known is None or one.latency_ns > known.latency_ns:
                worst[run.load, run.kernel] = _opening_row(number, run, one)
    return tuple(worst.values())


def _opening_row(number: int, run: ExplainedRun, one: Explanation) -> OpeningRow:
    cause = WITHDRAWN if one.is_withdrawn else Cause.UNKNOWN.value
    if one.dominant is not None:
        key = one.dominant.counted_as
        cause = next(title_of(s) for s in run.causes.sums if (s.cause, s.name) == key)
    return OpeningRow(
        number, run.load, run.kernel, one.latency_ns, cause, one.dominant_ns
    )


def unit_of(runs: Sequence[ExplainedRun]) -> str:
    """Return the word before the unit of times of several runs."""
    return VIRTUAL if all(run.virtual for run in runs) else ""


# --- the tail -------------------------------------------------------------------------


def tail_of(
    threads: Sequence[ThreadResult], known: Sequence[KnownCause]
) -> WorstWakeups | None:
    """Count the known causes among the worst wake-ups; None without any."""
    found = distribution_of(threads)
    total = found.total
    if not total:
        return None
    from_ns = _from(found, total)
    inside = [one for one in known if one.latency_ns >= from_ns]
    causes = _causes(inside)
    wakeups = int(found.count[found.low_ns >= from_ns].sum()) + found.beyond
    return WorstWakeups(
        samples=total,
        from_ns=from_ns,
        wakeups=wakeups,
        causes=causes,
        bins=_bins(found, from_ns, inside, [one.cause for one in causes]),
        recorded=len(inside),
        unknown=max(0, wakeups - len(inside)),
    )


def sentence_of_tail(tail: WorstWakeups, *, virtual: str) -> str:
    """Name the causes of the tail, and count the wake-ups of unknown cause."""
    causes = ", ".join(f"{one.cause} {_how_long(one)}" for one in tail.causes)
    return (
        f"Worst {plural(tail.wakeups, 'wake-up')} of {tail.samples:,}, from "
        f"{format_us(tail.from_ns)} {virtual}µs: {tail.recorded:,} recorded, "
        f"{tail.unknown:,} not recorded."
        f"{f' Dominant causes of those recorded: {causes}.' if causes else ''}"
    )


def _how_long(one: TailCause) -> str:
    longest = format_us(one.worst_ns)
    if one.wakeups == 1:
        return f"once ({longest} µs)"
    return f"{one.wakeups:,} times (longest {longest}, sum {format_us(one.sum_ns)} µs)"


def _from(found: Distribution, total: int) -> int:
    """Return the low edge of the lowest bucket that is wholly in the latest 0.1 %."""
    from_above = np.cumsum(found.count[::-1]) + found.beyond
    inside = int(np.searchsorted(from_above, total / ONE_OF, side="right"))
    return int(found.low_ns[::-1][max(0, inside - 1)])


def _causes(inside: Sequence[KnownCause]) -> tuple[TailCause, ...]:
    by_cause: dict[str, list[int]] = {}
    for one in inside:
        by_cause.setdefault(one.cause, []).append(one.blamed_ns)
    rows = sorted(
        by_cause.items(), key=lambda row: (-len(row[1]), -max(row[1]), row[0])
    )
    shown = rows if len(rows) <= CAUSES_SHOWN else rows[: CAUSES_SHOWN - 1]
    rest = [ns for _, latencies in rows[len(shown) :] for ns in latencies]
    listed = [*shown, *([(OTHERS, rest)] if rest else [])]
    return tuple(
        TailCause(cause=cause, wakeups=len(ns), sum_ns=sum(ns), worst_ns=max(ns))
        for cause, ns in listed
    )


def _bins(
    found: Distribution,
    from_ns: int,
    inside: Sequence[KnownCause],
    names: Sequence[str],
) -> tuple[Bin, ...]:
    """
    Count the wake-ups by latency and cause, each once.

    All are counted at the begin of their bucket, also those whose latency is known:
    what a bucket has besides them was not recorded.
    """
    width = max(1, -(-(found.max_ns + 1 - from_ns) // BINS))
    # In a last bucket, that of the longest: what is in none.
    low_ns = np.append(found.low_ns, np.int64(BEYOND_LOW_NS))
    count = np.append(found.count, found.beyond)
    at_ns = np.array([one.latency_ns for one in inside], dtype=np.int64)
    placed_ns = low_ns[np.searchsorted(low_ns, at_ns, side="right") - 1].tolist()
    causes = [one.cause if one.cause in names else OTHERS for one in inside]
    bins = []
    for begin_ns in range(from_ns, found.max_ns + 1, width):
        end_ns = begin_ns + width
        of_cause = [
            sum(
                begin_ns <= ns < end_ns and cause == name
                for ns, cause in zip(placed_ns, causes, strict=True)
            )
            for name in names
        ]
        counted = int(count[(low_ns >= begin_ns) & (low_ns < end_ns)].sum())
        bins.append(
            Bin(begin_ns, end_ns, tuple(of_cause), max(0, counted - sum(of_cause)))
        )
    return tuple(bins)


# --- the bound ------------------------------------------------------------------------


def bound_sentence(run: ExplainedRun) -> str:
    """Compare the bound with the worst wake-up; empty without bounds."""
    worst, virtual = run.document.worst_bound, run.unit
    if worst is None:
        return ""
    seen = format_us(max(run.observed_ns.values(), default=0))
    if worst.bound_ns is None:
        return (
            f"No bound for CPU {worst.cpu}: interrupts fill every window (worst "
            f"wake-up observed: {seen} {virtual}µs)."
        )
    text = (
        f"Latency bound from observed critical sections: {format_us(worst.bound_ns)} "
        f"{virtual}µs on CPU {worst.cpu}; worst wake-up observed: {seen} {virtual}µs."
    )
    return " ".join((text, *caveats_of_bounds(run.document.bounds)))


def caveats_of_bounds(bounds: Sequence[CpuBound]) -> tuple[str, ...]:
    """Return why a bound may be too small: lost events, or a wake-up above it."""
    lost = dict.fromkeys(what for one in bounds for what in one.not_recorded)
    outside = [
        one.cpu
        for one in bounds
        if one.bound_ns is not None and one.observed_max_ns > one.bound_ns
    ]
    found = [f"Not recorded: {what}." for what in lost]
    if outside:
        cpus = ", ".join(map(str, outside))
        found.append(
            f"CPU {cpus} exceeded its bound: something is outside of the model, such "
            "as a thread with at least the priority of the measuring one."
        )
    return tuple(found)


def bound_rows(bound: CpuBound) -> tuple[BoundRow, ...]:
    """Return the parts of a bound, in the order in which it adds up."""
    known = {one.section: one for one in bound.sections}
    rows = [_section_row(known[kind]) for kind in Section if kind in known]
    counted = [
        _interrupt_row(one) for one in bound.interrupts if one.max_in_window_ns > 0
    ]
    return (*rows, *counted)


def _section_row(one: LongestSection) -> BoundRow:
    shown = " < ".join(one.callers[:CALLERS_SHOWN]) or (
        f"most in {one.dominant_function}" if one.dominant_function else one.name
    )
    aside = (
        f"; {format_us(one.executed_ns)} µs executed here"
        if one.executed_ns is not None
        else ""
    )
    note = f"; {one.note}" if one.note else ""
    title = f"{one.section}  {SECTION_TITLES[Section(one.section)]}"
    return title, format_us(one.duration_ns), f"{shown}{aside}{note}"


def _interrupt_row(one: Interrupt) -> BoundRow:
    closest = (
        ""
        if one.min_interarrival_ns is None
        else f", at least {format_us(one.min_interarrival_ns)} µs apart"
    )
    return (
        f"IRQ  {one.vector}",
        format_us(one.max_in_window_ns),
        f"{one.arrivals:,} observed, longest {format_us(one.longest_ns)} µs{closest}",
    )


# --- explain.json ---------------------------------------------------------------------


def _document(run: ExplainedRun) -> written.Explained:
    """Return the contents of `explain.json`; times in ns, virtual ones of a board."""
    tail = run.tail
    return written.Explained(
        schema=written.SCHEMA,
        rtscope=__version__,
        run=run.run_id,
        load=run.load,
        kernel=run.kernel,
        board=run.board if run.virtual else None,
        target=None if run.virtual else run.board,
        result_digest=run.result_digest,
        wakeups=tuple(_wakeup(one, run.unit) for one in run.explanations),
        causes=run.causes.sums,
        tail=None
        if tail is None
        else written.Tail(
            from_ns=tail.from_ns,
            wakeups=tail.wakeups,
            recorded=tail.recorded,
            not_recorded=tail.unknown,
            causes=tail.causes,
        ),
        bounds=tuple(
            replace(one, observed_max_ns=run.observed_ns.get(one.cpu, 0))
            for one in run.bounds
        ),
    )


def _wakeup(explanation: Explanation, unit: str) -> written.Wakeup:
    dominant = explanation.dominant
    return written.Wakeup(
        cpu=explanation.cpu,
        sequence=explanation.sequence,
        latency_ns=explanation.latency_ns,
        attributed_share=round(explanation.attributed_share, 6),
        sentence=sentence(explanation, virtual=unit),
        parts={part.value: ns for part, ns in explanation.parts_ns.items()},
        residual_ns=explanation.residual_ns,
        dominant_segment=(
            None if dominant is None else explanation.segments.index(dominant)
        ),
        dominant_ns=explanation.dominant_ns,
        notes=caveats_of(explanation),
        broken_invariants=tuple(
            written.BrokenInvariant(
                invariant=one.invariant.name.lower(),
                begin_ns=one.begin_ns,
                end_ns=one.end_ns,
                values=one.values,
            )
            for one in explanation.broken
        ),
        segments=tuple(
            written.Segment(
                part=segment.part.value,
                begin_ns=segment.begin_ns,
                end_ns=segment.end_ns,
                executed_ns=segment.executed_ns,
                cause=segment.cause.value,
                name=segment.name,
                task=segment.task,
                confidence=segment.confidence.value,
                callers=segment.callers,
                functions=segment.functions,
                evidence=evidence(segment),
            )
            for segment in explanation.segments
        ),
    )
