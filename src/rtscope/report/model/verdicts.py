"""The verdict on a deadline in words: one for all, then a sentence for each load."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rtscope.record.model import RunRecord
from rtscope.report.escape import printable
from rtscope.report.words import capital, duration, micro, us, virtual_word
from rtscope.stats import verdict as stats
from rtscope.stats.verdict import Claim, Finding, judge

Tone = Literal["bad", "open", "good"]

MEANINGS = {
    stats.Verdict.INVALID: "there is no valid measurement to judge",
    stats.Verdict.NO: "the deadline was missed",
    stats.Verdict.NOT_SHOWN: "no miss was seen, and that is not enough",
    stats.Verdict.HELD_IN_TEST: "no miss was seen, on this machine and in this test",
    stats.Verdict.HELD_AND_EXPLAINED: "no miss was seen, and the sections seen could "
    "not combine to one",
}

_TONES: dict[stats.Verdict, Tone] = {
    stats.Verdict.INVALID: "bad",
    stats.Verdict.NO: "bad",
    stats.Verdict.NOT_SHOWN: "open",
    stats.Verdict.HELD_IN_TEST: "good",
    stats.Verdict.HELD_AND_EXPLAINED: "good",
}


@dataclass(frozen=True, slots=True)
class LoadVerdict:
    """The verdict on one load."""

    name: str
    word: str
    tone: Tone
    sentence: str
    run_next: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on all loads: that of the one that decides, and each by itself."""

    word: str
    tone: Tone
    question: str
    meaning: str
    loads: tuple[LoadVerdict, ...]
    exit_status: int


def verdict_of(
    records: Sequence[RunRecord],
    *,
    deadline_ns: int,
    claim: Claim | None,
    min_boots: int,
    bounds_ns: Mapping[str, int] | None = None,
) -> Verdict:
    """Judge the records and put the verdict into words, the deciding load first."""
    judged = judge(
        records,
        deadline_ns=deadline_ns,
        claim=claim,
        min_boots=min_boots,
        bounds_ns=bounds_ns,
    )
    order = list(stats.Verdict)
    virtual = virtual_word(records)
    question = f"Is every wake-up within {us(deadline_ns, virtual)}"
    if claim is not None:
        question += f", with fewer than {claim} that {_are(claim)} not"
    return Verdict(
        word=judged.verdict.value,
        tone=_TONES[judged.verdict],
        question=f"{question}?",
        meaning=MEANINGS[judged.verdict],
        loads=_advice_once(
            LoadVerdict(
                name=_name(f, judged.findings),
                word=f.verdict.value,
                tone=_TONES[f.verdict],
                sentence=_sentence(micro(printable(f.sentence), virtual)),
                run_next=_sentence(micro(printable(f.run_next), virtual)),
            )
            for f in sorted(judged.findings, key=lambda f: order.index(f.verdict))
        ),
        exit_status=judged.exit_status,
    )


def _name(finding: Finding, findings: Sequence[Finding]) -> str:
    """Name the load, and whatever else is not the same in all findings."""
    parts = [finding.load]
    for said in (
        lambda f: f.target,
        lambda f: f.kernel,
        lambda f: f"{f.policy} every {duration(f.interval_ns)}",
    ):
        if len({said(f) for f in findings}) > 1:
            parts.append(said(finding))
    return printable(" · ".join(parts))


def _advice_once(loads: Iterable[LoadVerdict]) -> tuple[LoadVerdict, ...]:
    """Leave an advice out where the next load has the same."""
    listed = list(loads)
    following = [load.run_next for load in listed[1:]] + [""]
    return tuple(
        replace(load, run_next="" if load.run_next == after else load.run_next)
        for load, after in zip(listed, following, strict=True)
    )


def _are(claim: Claim) -> str:
    return "is" if claim.events == 1 else "are"


def _sentence(sentence: str) -> str:
    done = capital(sentence)
    return f"{done}." if done and not done.endswith((".", "…")) else done
