"""
The explained wake-ups of runs, as every form of their report needs them.

Texts are made harmless here, once: names of functions come from a kernel that may be
anybody's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rtscope import __version__
from rtscope.explain.causes import Causes, CauseSum, causes_of
from rtscope.explain.model import TITLES, Explanation, Part, Stretch
from rtscope.explain.words import doubts, evidence, sentence, where
from rtscope.record import RunRecord
from rtscope.report.escape import printable

SCHEMA = 1
VIRTUAL = "virtual "


@dataclass(frozen=True, slots=True)
class ExplainedRun:
    """One run of a virtual board and its worst wake-ups, worst first."""

    run_id: str
    load: str
    kernel: str
    board: str
    result_digest: str
    explanations: tuple[Explanation, ...]

    @property
    def causes(self) -> Causes:
        """What made this run's worst wake-ups late."""
        return causes_of(self.explanations, load=self.load, kernel=self.kernel)


def explained_run(
    record: RunRecord, explanations: Sequence[Explanation]
) -> ExplainedRun:
    """Set the explanations of a run beside what it measured."""
    virtual = record.extra["virtual"]
    return ExplainedRun(
        run_id=printable(record.run.id),
        load=printable(record.run.load),
        kernel=printable(str(record.run.kernel or virtual["kernel"])),
        board=printable(str(virtual["board"])),
        result_digest=record.result_digest,
        explanations=tuple(explanations),
    )


def merged_causes(runs: Sequence[ExplainedRun]) -> tuple[Causes, ...]:
    """Return the causes per load and kernel, over all of their repetitions."""
    groups: dict[tuple[str, str], list[Explanation]] = {}
    for run in runs:
        groups.setdefault((run.load, run.kernel), []).extend(run.explanations)
    return tuple(
        causes_of(found, load=load, kernel=kernel)
        for (load, kernel), found in groups.items()
    )


def sentence_of(explanation: Explanation) -> str:
    """Return the sentence of a wake-up, fit to be shown."""
    return printable(sentence(explanation, virtual=VIRTUAL))


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


def run_as_dict(run: ExplainedRun) -> dict[str, Any]:
    """Return what `explain.json` says; times in virtual ns."""
    return {
        "schema": SCHEMA,
        "rtscope": __version__,
        "run": run.run_id,
        "load": run.load,
        "kernel": run.kernel,
        "board": run.board,
        "result_digest": run.result_digest,
        "wakeups": [_wakeup(one) for one in run.explanations],
        "causes": [cause_as_dict(one) for one in run.causes.sums],
    }


def cause_as_dict(one: CauseSum) -> dict[str, Any]:
    """Return a cause over several wake-ups for JSON."""
    return {
        "cause": one.cause.value,
        "name": printable(one.name),
        "wakeups": one.wakeups,
        "blamed": one.blamed,
        "sum_ns": one.sum_ns,
        "worst_ns": one.worst_ns,
    }


def _wakeup(explanation: Explanation) -> dict[str, Any]:
    culprit = explanation.culprit
    return {
        "cpu": explanation.cpu,
        "sequence": explanation.sequence,
        "latency_ns": explanation.latency_ns,
        "attributed_share": round(explanation.attributed_share, 6),
        "sentence": sentence_of(explanation),
        "parts": {letter: ns for letter, _, ns in parts_of(explanation)},
        "residual_ns": explanation.residual_ns,
        "culprit": None if culprit is None else explanation.stretches.index(culprit),
        "stretches": [_stretch(one) for one in explanation.stretches],
        "notes": list(doubts_of(explanation)),
    }


def _stretch(stretch: Stretch) -> dict[str, Any]:
    return {
        "part": stretch.part.value,
        "begin_ns": stretch.begin_ns,
        "end_ns": stretch.end_ns,
        "own_ns": stretch.own_ns,
        "cause": stretch.cause.value,
        "name": printable(stretch.name),
        "task": printable(stretch.task),
        "confidence": stretch.confidence.value,
        "callers": [printable(name) for name in stretch.callers],
        "inside": [[printable(name), ns] for name, ns in stretch.inside],
        "evidence": list(evidence_of(stretch)),
    }
