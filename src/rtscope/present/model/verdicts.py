"""The verdict on a deadline in words: of all loads, and of each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rtscope.host.units import plural
from rtscope.present.model.rows import Row
from rtscope.present.words import capital, duration, micro, us, virtual_word
from rtscope.record.model import RunRecord
from rtscope.stats.runcaveats import parted
from rtscope.stats.utility import SoftValue, Utility, soft_value
from rtscope.stats.verdict import Claim, Finding, Judgement, Verdict, judge

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
        _way,
    ):
        if len({said(f) for f in findings}) > 1:
            parts.append(said(finding))
    parts += finding.differences[:NAMED_DIFFERENCES]
    if (more := len(finding.differences) - NAMED_DIFFERENCES) > 0:
        parts.append(plural(more, "more difference"))
    return " · ".join(parts)


def _way(finding: Finding) -> str:
    if not finding.interval_ns:
        return f"{finding.policy} at an unknown interval"
    return f"{finding.policy} every {duration(finding.interval_ns)}"


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


# --- the value to a soft deadline -----------------------------------------------------

ONE_DIGITS = 6
"""Of a value: one activation in a million shows."""


@dataclass(frozen=True, slots=True)
class SoftRow:
    """The value of one row of the main table."""

    name: str
    anchor: str
    value: SoftValue | None
    """None: no run of it counts, or nothing was measured."""


@dataclass(frozen=True, slots=True)
class Soft:
    """The values of all rows, the least first."""

    utility: Utility
    rows: tuple[SoftRow, ...]
    """The least value first."""

    @property
    def curve(self) -> str:
        """The curve as it is typed."""
        return self.utility.words

    def of(self, anchor: str) -> str:
        """Return what the activations of a row were worth, as a sentence."""
        row = next(one for one in self.rows if one.anchor == anchor)
        if row.value is None:
            return "No run of it counts."
        return f"Delivered: {_worth(row)} of 1 for each{_over_runs(row)}."

    @property
    def sentence(self) -> str:
        """The least value with its interval, and those of the others."""
        known = [row for row in self.rows if row.value is not None]
        unknown = [row.name for row in self.rows if row.value is None]
        beyond = f"; not known: {', '.join(unknown)}" if unknown else ""
        if not known:
            return f"Soft deadline {self.curve}: no run counts{beyond}."
        least = known[0]
        others = "".join(f"; {row.name} {_worth(row)}" for row in known[1:])
        return (
            f"Soft deadline {self.curve}: of a value of 1 for each activation, "
            f"{_worth(least)} was delivered under {least.name}{_over_runs(least)}"
            f"{others}{beyond}."
        )


def soft_of(rows: Sequence[Row], utility: Utility) -> Soft:
    """Return the value of each row, of its runs that count."""
    found = [
        SoftRow(
            row.name,
            row.anchor,
            soft_value([r.result.threads for r in parted(row.counted)[0]], utility),
        )
        for row in rows
    ]
    found.sort(key=lambda one: 2.0 if one.value is None else one.value.mean)
    return Soft(utility, tuple(found))


def _worth(row: SoftRow) -> str:
    assert row.value is not None, "only of rows with a value"
    return f"{row.value.mean:.{ONE_DIGITS}f}".rstrip("0").rstrip(".")


def _over_runs(row: SoftRow) -> str:
    assert row.value is not None, "only of rows with a value"
    if row.value.interval is None:
        few = plural(row.value.runs, "run")
        return f" ({few}: no interval with fewer than three)"
    low, high = row.value.interval
    return (
        f" ({row.value.runs} runs: {low:.{ONE_DIGITS}f} to {high:.{ONE_DIGITS}f} at "
        f"95 %)"
    )
