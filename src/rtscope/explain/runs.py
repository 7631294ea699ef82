"""
The explained wake-ups of runs, as every form of their report needs them.

Names of functions come from a kernel that may be anybody's: they are made printable
here, once, before any text uses them.

The K worst wake-ups are not the run: a cause that is missing here may have made others
late, only never as late. The latency bound from observed critical sections is never
called a proof.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rtscope.explain.bound import WorstWakeups, caveats_of_bounds, known_cause, tail_of
from rtscope.explain.model import HELD_BACK, Cause, Explanation, Segment
from rtscope.explain.words import caveats_of, evidence, sentence
from rtscope.host.errors import UsageError
from rtscope.host.escape import all_printable
from rtscope.host.units import format_us
from rtscope.host.version import __version__
from rtscope.record import explanation as written
from rtscope.record.explanation import CauseSum, CpuBound
from rtscope.record.model import TIMER, RunRecord

VIRTUAL = "virtual "
NO_PROOF = (
    "the longest critical sections observed, as if they lined up: no proof, because a "
    "longer one may not have been executed"
)

_CAUSES_LISTED = 3
WITHDRAWN = "withdrawn: an invariant is broken"
"""The name of the cause of wake-ups whose explanations prove nothing."""
_NAMED = frozenset(
    {
        Cause.UNKNOWN,
        Cause.HARDWARE,
        *HELD_BACK,
        Cause.NOT_REALTIME,
        Cause.THROTTLED,
        Cause.FAIR_SERVER,
        Cause.OTHER_TASK,
        Cause.IN_PLACE_OF_HOLDER,
        Cause.IDLE_EXIT,
    }
)
"""The name of these is no function."""


@dataclass(frozen=True, slots=True)
class Causes:
    """The causes of one load on one kernel."""

    load: str
    kernel: str
    wakeups: int
    """How many of the worst were explained: those whose paths were kept."""
    worst_ns: int
    attributed_share: float
    """The least of them, 0 to 1."""
    sums: tuple[CauseSum, ...]
    """Most often dominant first, then by their sum."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Dominant causes of one of two kernels only, under the same load."""

    first: Causes
    second: Causes
    gone: tuple[CauseSum, ...]
    new: tuple[CauseSum, ...]
    common: tuple[tuple[CauseSum, CauseSum], ...]


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
            [known_cause(e) for e in explanations if e.dominant or e.is_withdrawn],
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


def merged_causes(
    runs: Sequence[ExplainedRun],
) -> tuple[Sequence[Causes], Sequence[str]]:
    """Return the causes per load and kernel, and how those of two kernels differ."""
    unit = unit_of(runs)
    groups: dict[tuple[str, str], list[Explanation]] = {}
    for run in runs:
        groups.setdefault((run.load, run.kernel), []).extend(run.explanations)
    causes = [
        causes_of(explanations, load=load, kernel=kernel)
        for (load, kernel), explanations in groups.items()
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


# --- causes of several ---


def causes_of(explanations: Sequence[Explanation], *, load: str, kernel: str) -> Causes:
    """Sum up the causes of a run's worst wake-ups, or of those of its repetitions."""
    kept = [one for one in explanations if one.segments]
    known = [one for one in kept if not one.is_withdrawn]
    times_ns: dict[tuple[Cause, str], list[int]] = {}
    dominant_in: Counter[tuple[Cause, str]] = Counter()
    for explanation in known:
        for key, ns in _sums(explanation.segments).items():
            times_ns.setdefault(key, []).append(ns)
        if explanation.dominant is not None:
            dominant_in[explanation.dominant.counted_as] += 1
    sums = [
        CauseSum(*key, len(ns), dominant_in[key], sum(ns), max(ns))
        for key, ns in times_ns.items()
    ]
    if withdrawn := [one.latency_ns for one in kept if one.is_withdrawn]:
        number = len(withdrawn)
        sums.append(
            CauseSum(
                *(Cause.UNKNOWN, WITHDRAWN, number, number),
                *(sum(withdrawn), max(withdrawn)),
            )
        )
    return Causes(
        load=load,
        kernel=kernel,
        wakeups=len(kept),
        worst_ns=max((e.latency_ns for e in explanations), default=0),
        attributed_share=min((e.attributed_share for e in kept), default=0.0),
        sums=tuple(sorted(sums, key=lambda s: (-s.dominant_in, -s.sum_ns, s.name))),
    )


def title_of(one: CauseSum) -> str:
    """Return a cause with its function, if there is one."""
    before = ": " if one.cause in _NAMED else " in "
    return f"{one.cause}{before}{one.name}" if one.name else str(one.cause)


def differences(causes: Sequence[Causes]) -> tuple[Difference, ...]:
    """Compare the first two kernels of each load."""
    pairs = []
    for load in dict.fromkeys(one.load for one in causes):
        of_load = [one for one in causes if one.load == load]
        if len(of_load) > 1:
            pairs.append(difference(of_load[0], of_load[1]))
    return tuple(pairs)


def difference(first: Causes, second: Causes) -> Difference:
    """Return the dominant causes that only one of two kernels has, and the common."""
    ours = {(s.cause, s.name): s for s in first.sums if s.dominant_in}
    theirs = {(s.cause, s.name): s for s in second.sums if s.dominant_in}
    return Difference(
        first,
        second,
        gone=tuple(s for key, s in ours.items() if key not in theirs),
        new=tuple(s for key, s in theirs.items() if key not in ours),
        common=tuple((s, theirs[key]) for key, s in ours.items() if key in theirs),
    )


def paragraph(difference: Difference, *, virtual: str = "") -> str:
    """Describe how the causes of two kernels differ; times are microseconds."""
    first, second = difference.first, difference.second
    sentences = [
        f"Load {first.load}: the worst wake-up was {format_us(first.worst_ns)} "
        f"{virtual}µs late with {first.kernel} ({first.wakeups} explained) and "
        f"{format_us(second.worst_ns)} {virtual}µs late with {second.kernel} "
        f"({second.wakeups} explained)."
    ]
    if difference.gone:
        gone = _listed(difference.gone)
        sentences.append(f"Dominant cause with {first.kernel} only: {gone}.")
    if difference.new:
        new = _listed(difference.new)
        sentences.append(f"Dominant cause with {second.kernel} only: {new}.")
    if difference.common:
        sentences.append(f"Dominant cause with both: {_both(difference.common)}.")
    return " ".join(sentences)


def _sums(segments: Iterable[Segment]) -> dict[tuple[Cause, str], int]:
    sums: Counter[tuple[Cause, str]] = Counter()
    for segment in segments:
        sums[segment.counted_as] += segment.duration_ns
    return sums


def _listed(sums: Sequence[CauseSum]) -> str:
    parts = [
        f"{title_of(s)} ({_times(s.dominant_in)}, longest {format_us(s.worst_ns)} µs)"
        for s in sums[:_CAUSES_LISTED]
    ]
    return ", ".join(parts) + _more(len(sums))


def _both(common: Sequence[tuple[CauseSum, CauseSum]]) -> str:
    parts = [
        f"{title_of(a)} ({_times(a.dominant_in)} and {_times(b.dominant_in)}, "
        f"longest {format_us(a.worst_ns)} µs and {format_us(b.worst_ns)} µs)"
        for a, b in common[:_CAUSES_LISTED]
    ]
    return ", ".join(parts) + _more(len(common))


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _more(number: int) -> str:
    return f" and {number - _CAUSES_LISTED} more" if number > _CAUSES_LISTED else ""


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


# --- explain.json ---------------------------------------------------------------------


def _document(run: ExplainedRun) -> written.Explained:
    """Return the contents of `explain.json`; times in ns, virtual ones of a board."""
    tail = run.tail
    whole = written.Explained(
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
    return written.fitted(whole)


def _wakeup(explanation: Explanation, unit: str) -> written.Wakeup:
    dominant = explanation.dominant
    return written.Wakeup(
        cpu=explanation.cpu,
        sequence=explanation.sequence,
        latency_ns=explanation.latency_ns,
        attributed_share=round(explanation.attributed_share, 6),
        sentence=sentence(explanation, virtual=unit, of=explanation.head),
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


def require_timers(record: RunRecord) -> None:
    """Raise UsageError for wake-ups that no timer began."""
    if record.run.event != TIMER:
        raise UsageError(
            f"{record.run.id}: woken by the event {record.run.event}: --bound is for "
            "wake-ups by timers only; measure without --event, or leave --bound out"
        )
