"""
The explained wake-ups of runs, as every form of their report needs them.

Texts are made harmless here, once: names of functions come from a kernel that may be
anybody's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rtscope import __version__
from rtscope.explain.bound import Bound
from rtscope.explain.causes import Causes, CauseSum, causes_of
from rtscope.explain.model import TITLES, Explanation, Part, Stretch
from rtscope.explain.words import doubts, evidence, sentence, where
from rtscope.record import explanation as document
from rtscope.record.model import RunRecord
from rtscope.report.escape import printable
from rtscope.report.model.bounds import bound_document
from rtscope.report.model.tail import Blamed, Tail, tail_of

VIRTUAL = "virtual "


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
    bounds: tuple[Bound, ...] = ()
    """Of each measured CPU, if its sections were recorded."""
    observed_ns: Mapping[int, int] = field(default_factory=dict)
    """The latest wake-up of each CPU."""
    tail: Tail | None = None

    @property
    def unit(self) -> str:
        """What stands before the unit of a time: `virtual `, or nothing."""
        return VIRTUAL if self.virtual else ""

    @property
    def place(self) -> str:
        """Where it was measured, in words."""
        return f"virtual board {self.board}" if self.virtual else self.board

    @property
    def causes(self) -> Causes:
        """What made this run's worst wake-ups late."""
        return causes_of(self.explanations, load=self.load, kernel=self.kernel)


def explained_run(
    record: RunRecord,
    explanations: Sequence[Explanation],
    *,
    bounds: Sequence[Bound] = (),
) -> ExplainedRun:
    """Set the explanations of a run, and its bounds, beside what it measured."""
    threads = record.result.threads
    virtual = record.virtual
    release = record.facts_before.get("kernel_release")
    kernel = virtual.kernel if virtual else release.value if release else None
    return ExplainedRun(
        run_id=printable(record.run.id),
        load=printable(record.run.load),
        kernel=printable(str(record.run.kernel or kernel or "an unknown kernel")),
        board=printable(virtual.board if virtual else record.run.target),
        result_digest=record.result_digest,
        explanations=tuple(explanations),
        virtual=virtual is not None,
        bounds=tuple(bounds),
        observed_ns={t.cpu: t.max_ns or 0 for t in threads if t.cpu is not None},
        tail=tail_of(threads, [_blamed(one) for one in explanations if one.culprit]),
    )


def explained_trace(
    name: str,
    explanations: Sequence[Explanation],
    *,
    bounds: Sequence[Bound] = (),
) -> ExplainedRun:
    """Set the explanations of a trace that has no record beside its name."""
    return ExplainedRun(
        run_id=printable(name),
        load="an unknown load",
        kernel="an unknown kernel",
        board="an unknown machine",
        result_digest="",
        explanations=tuple(explanations),
        virtual=False,
        bounds=tuple(bounds),
        observed_ns={one.cpu: one.latency_ns for one in explanations},
    )


def _blamed(explanation: Explanation) -> Blamed:
    culprit = explanation.culprit
    assert culprit is not None
    return Blamed(explanation.latency_ns, str(culprit.cause))


def merged_causes(runs: Sequence[ExplainedRun]) -> tuple[Causes, ...]:
    """Return the causes per load and kernel, over all of their repetitions."""
    groups: dict[tuple[str, str], list[Explanation]] = {}
    for run in runs:
        groups.setdefault((run.load, run.kernel), []).extend(run.explanations)
    return tuple(
        causes_of(found, load=load, kernel=kernel)
        for (load, kernel), found in groups.items()
    )


def unit_of(runs: Sequence[ExplainedRun]) -> str:
    """Return what stands before the unit of times of several runs."""
    return VIRTUAL if all(run.virtual for run in runs) else ""


def sentence_of(explanation: Explanation, unit: str = VIRTUAL) -> str:
    """Return the sentence of a wake-up, fit to be shown."""
    return printable(sentence(explanation, virtual=unit))


def doubts_of(explanation: Explanation) -> tuple[str, ...]:
    """Return the doubts about an explanation, fit to be shown."""
    return tuple(map(printable, doubts(explanation)))


def evidence_of(stretch: Stretch) -> tuple[str, ...]:
    """Return the evidence for a stretch, fit to be shown."""
    return tuple(map(printable, evidence(stretch)))


def where_of(stretch: Stretch) -> str:
    """Return where a stretch was, fit to be shown."""
    return printable(where(stretch))


def parts_of(explanation: Explanation) -> tuple[tuple[str, str, int], ...]:
    """Return letter, title and ns of each part; the residual is not among them."""
    return tuple((part.value, TITLES[part], explanation.part_ns(part)) for part in Part)


def document_of(run: ExplainedRun) -> document.Explained:
    """Return what `explain.json` says; times in ns, virtual ones of a board."""
    return document.Explained(
        schema=document.SCHEMA,
        rtscope=__version__,
        run=run.run_id,
        load=run.load,
        kernel=run.kernel,
        board=run.board if run.virtual else None,
        target=None if run.virtual else run.board,
        result_digest=run.result_digest,
        wakeups=tuple(_wakeup(one, run.unit) for one in run.explanations),
        causes=tuple(map(_cause, run.causes.sums)),
        tail=None if run.tail is None else _tail(run.tail),
        bounds=tuple(
            bound_document(one, observed_ns=run.observed_ns.get(one.cpu, 0))
            for one in run.bounds
        ),
    )


def _tail(tail: Tail) -> document.Tail:
    return document.Tail(
        from_ns=tail.from_ns,
        wakeups=tail.wakeups,
        recorded=tail.recorded,
        not_recorded=tail.unknown,
        causes=tail.causes,
    )


def _cause(one: CauseSum) -> document.CauseSum:
    return document.CauseSum(
        cause=one.cause.value,
        name=printable(one.name),
        wakeups=one.wakeups,
        blamed=one.blamed,
        sum_ns=one.sum_ns,
        worst_ns=one.worst_ns,
    )


def _wakeup(explanation: Explanation, unit: str) -> document.Wakeup:
    culprit = explanation.culprit
    return document.Wakeup(
        cpu=explanation.cpu,
        sequence=explanation.sequence,
        latency_ns=explanation.latency_ns,
        attributed_share=round(explanation.attributed_share, 6),
        sentence=sentence_of(explanation, unit),
        parts={letter: ns for letter, _, ns in parts_of(explanation)},
        residual_ns=explanation.residual_ns,
        culprit=None if culprit is None else explanation.stretches.index(culprit),
        stretches=tuple(map(_stretch, explanation.stretches)),
        notes=doubts_of(explanation),
    )


def _stretch(stretch: Stretch) -> document.Stretch:
    return document.Stretch(
        part=stretch.part.value,
        begin_ns=stretch.begin_ns,
        end_ns=stretch.end_ns,
        own_ns=stretch.own_ns,
        cause=stretch.cause.value,
        name=printable(stretch.name),
        task=printable(stretch.task),
        confidence=stretch.confidence.value,
        callers=tuple(map(printable, stretch.callers)),
        inside=tuple((printable(name), ns) for name, ns in stretch.inside),
        evidence=evidence_of(stretch),
    )
