"""The outcome of `rtscope history check`: sentences, blocks, JSON and JUnit."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from rtscope.host.errors import first_of
from rtscope.host.files.junit import Outcome, TestCase, TestSuite, junit_file
from rtscope.host.units import format_duration, format_number, format_us, plural
from rtscope.present.document import Block, Item, Span, Weight, Words, table
from rtscope.present.words import NOTHING, capital, enumeration, us
from rtscope.stats.comparison.effect import Effect
from rtscope.verbs.history.judge import (
    ALPHA,
    LEAST_OF_BOARD,
    Answer,
    Question,
    Word,
    can_show,
)
from rtscope.verbs.history.series import hottest, level_ns, unit_words
from rtscope.verbs.history.shifts import Shift, level_of
from rtscope.verbs.history.showtext import shift_json

NO_CAUSE = (
    "An alarm shows that something changed over time, not what: to test one change, "
    "measure with and without it in one campaign (rtscope run, [[run]] with a variant)."
)

WARMER = 5.0
"""Degrees Celsius above the usual that are named."""

MOST_CHANGES = 4

_WEIGHTS: dict[Word, Weight] = {
    Word.WORSE: "alarm",
    Word.MISSED: "alarm",
    Word.NOT_WORSE: "good",
    Word.IDENTICAL: "good",
}


@dataclass(frozen=True, slots=True)
class Check:
    """All answers, and what they were asked of."""

    answers: tuple[Answer, ...]
    baseline: str
    shifts: Mapping[str, tuple[Shift, ...]] = field(default_factory=dict)
    """The change points of each series, by its name."""

    def since(self, answer: Answer) -> tuple[Shift, ...]:
        """Return the change points that led to the level of its newest nights."""
        question = answer.question
        known = self.shifts.get(question.series.name, ())
        return level_of(question.new, question.base, known)

    @property
    def alarms(self) -> tuple[Answer, ...]:
        """Those that somebody must look at."""
        return tuple(one for one in self.answers if one.alarms)

    def of(self, *words: Word) -> tuple[Answer, ...]:
        """Return the answers with these words."""
        return tuple(one for one in self.answers if one.word in words)

    @property
    def status(self) -> int:
        """1: worse, or a deadline missed; 4: nothing could be shown; else 0."""
        if self.alarms:
            return 1
        compared = self.of(Word.NOT_WORSE, Word.IDENTICAL, Word.CHANGED)
        lacking = self.of(Word.NOT_COMPARED, Word.TOO_FEW_SEEDS)
        return 0 if compared and not lacking else 4

    @property
    def sentence(self) -> str:
        """The whole in a sentence."""
        count = f"{len(self.answers):,} series"
        if self.alarms:
            names = first_of(4, [one.question.series.name for one in self.alarms])
            return f"worse: {names} ({len(self.alarms)} of {count})"
        told = [
            f"{len(some)} {word.lower()}" for word in Word if (some := self.of(word))
        ]
        return f"{count}: {', '.join(told)}"


def sentence_of(answer: Answer, since: Sequence[Shift] = ()) -> str:
    """
    Return the outcome of a series in a sentence, as a person would write it.

    `since` are the change points that led to the level of its newest nights.
    """
    question = answer.question
    name = question.series.name
    match answer.word:
        case Word.WORSE:
            said = f"{name} {_is_worse(answer)}"
        case Word.MISSED:
            limit = format_duration(_deadline_ns(question))
            said = f"{name} missed its deadline of {limit} {_times(answer.misses)}"
            if answer.worse:
                said += f", and {_is_worse(answer)}"
        case Word.NOT_WORSE:
            said = f"{name} is not shown to be worse; {_visible(answer)}"
        case Word.IDENTICAL:
            said = f"{name} has a result that it had before, to the last count"
        case Word.CHANGED | Word.TOO_FEW_SEEDS:
            said = f"{name} has another result than before: {_exactly(answer)}"
        case Word.NOT_COMPARED:
            said = f"{name} is not compared with its nights before: {_why(question)}"
        case Word.TOO_FEW:
            said = f"{name} has too few nights: {_too_few(question)}"
    beside = answer.alarms or answer.word in (Word.CHANGED, Word.TOO_FEW_SEEDS)
    if not beside:
        return said
    return "; ".join((said, *_since(since), *_beside(question)))


def _since(shifts: Sequence[Shift]) -> Iterator[str]:
    """Yield since when figures are on the level of the newest nights: `since ...`."""
    days: dict[str, list[str]] = {}
    for shift in shifts:
        days.setdefault(shift.at.day, []).append(shift.words)
    for day, figures in days.items():
        yield f"on this level since {day}: {enumeration(figures)}"


def _is_worse(answer: Answer) -> str:
    """Name what is worse, by how much, and how sure that is."""
    parts = [_figure(answer, one) for one in answer.worse]
    p = max(one.adjusted_p for one in answer.worse)
    of = _nights(answer.question)
    return (
        f"is worse than {of}: {', '.join(parts)} (p = {format_number(p, 2)} after "
        f"correction for {answer.tests} tests)"
    )


def _figure(answer: Answer, effect: Effect) -> str:
    words = next(one.words for one in answer.measures if one.name == effect.figure)
    times = f"{format_number(effect.ratio, 3)} times"
    if effect.figure == "tail":
        return f"{words} {times} as many"
    column = "max_ns" if effect.figure == "max" else "mean_with_missed_ns"
    usual, new = (level_ns(nights, column) for nights in answer.question.units)
    virtual = "virtual " if answer.question.series.virtual else ""
    return f"{words} {us(new, virtual)}, before {us(usual, virtual)} ({times})"


def _nights(question: Question) -> str:
    """Name what is compared: `in the 20 nights before`."""
    base, new = map(len, question.units)
    unit = _unit(question)
    if question.series.virtual:
        return f"in {plural(base, unit)} before, in {new} new"
    ours = "" if new == 1 else f" over {plural(new, unit)}"
    return f"in {plural(base, unit)} before{ours}"


def _alarming(answer: Answer, effect: Effect) -> float | None:
    """Return the ratio that is probably an alarm; None: none is."""
    ratio = effect.detectable_ratio
    if ratio is None or not answer.question.series.virtual:
        return ratio
    return max(ratio, LEAST_OF_BOARD)


def _unit(question: Question) -> str:
    """Name what is dealt: of a virtual board each result once."""
    return "different run" if question.series.virtual else "night"


def _visible(answer: Answer) -> str:
    """Say how large an effect would probably have been seen."""
    parts = []
    for measure in answer.measures:
        [effect] = [one for one in answer.effects if one.figure == measure.name]
        ratio = _alarming(answer, effect)
        size = "no change" if ratio is None else f"{format_number(ratio, 3)} times"
        parts.append(f"{measure.words} {size}")
    base, new = map(len, answer.question.units)
    against = f"{new} v {plural(base, _unit(answer.question))}"
    return f"{against} would show (80 %): {', '.join(parts)}"


def _exactly(answer: Answer) -> str:
    question = answer.question
    new, base = question.new[-1].max_ns, question.base[-1].max_ns
    said = f"maximum {us(base, 'virtual ')} before, {us(new, 'virtual ')} now"
    if answer.word is Word.CHANGED:
        return f"{said}, which is not shown to be worse; {_visible(answer)}"
    return f"{said}; too few runs to call it worse or not: {_too_few(question)}"


def _why(question: Question) -> str:
    reasons = list(question.differs[:MOST_CHANGES])
    if left := len(question.differs) - MOST_CHANGES if question.differs else 0:
        reasons += [f"{left} more"] if left > 0 else []
    if question.other_lengths:
        nights = plural(question.other_lengths, "night")
        reasons.append(f"{nights} longer or shorter by more than 10 %")
    return ", ".join(reasons)


def _too_few(question: Question) -> str:
    base, new = map(len, question.units)
    choices = f"{new} new and {base} before"
    if question.series.virtual:  # more nights would be the same results again
        seeds = next(n for n in range(2, 1_000) if can_show(n, n))
        return f"{choices}; {seeds} and {seeds} can show something (--seeds {seeds})"
    more = next((n for n in range(base, 1_000) if can_show(n, new)), 1_000)
    return f"{choices}; {new} new and {more} before can show something"


def _beside(question: Question) -> Iterator[str]:
    """Yield what may be why, and what is known of the worst wake-ups."""
    if question.changed:
        listed = list(question.changed[:MOST_CHANGES])
        if (left := len(question.changed) - MOST_CHANGES) > 0:
            listed.append(f"{left} more")
        yield f"since then: {', '.join(listed)}"
    new, base = hottest(question.new), hottest(question.base)
    if new and base and max(new) - median(base) > WARMER:
        yield f"{max(new):.0f} °C, usual {median(base):.0f} °C"
    causes = [
        max((night.worst for night in nights), key=lambda run: run["max_ns"])["cause"]
        for nights in (question.new, question.base)
        if nights
    ]
    if causes and causes[0]:
        before = causes[1] if len(causes) > 1 else ""
        was = f", before: {before}" if before else ""
        yield f"cause of the worst wake-up: {causes[0]}{was}"


def _deadline_ns(question: Question) -> int:
    known = [run["deadline_ns"] for night in question.new for run in night.runs]
    return question.deadline_ns or min(filter(None, known))


def _times(misses: int) -> str:
    return "once" if misses == 1 else f"{misses:,} times"


# --- for people -----------------------------------------------------------------------


def check_blocks(check: Check, *, everything: bool) -> Iterator[Block]:
    """Yield the answer, the alarms, and a table of all series."""
    tone: Weight = "alarm" if check.alarms else "open" if check.status else "good"
    yield (f"{capital(check.sentence)}.", tone)
    loud = (Word.NOT_COMPARED, Word.CHANGED, Word.TOO_FEW_SEEDS)
    told = check.answers if everything else (*check.alarms, *check.of(*loud))
    for answer in told:
        weight = _WEIGHTS.get(answer.word, "open")
        since = check.since(answer)
        said = f" {sentence_of(answer, since)}."
        yield Item(Words(((answer.word, weight), said)), mark="nothing")
    for answer in check.answers:
        # Of others only what got worse: an alarm may come too late for it.
        since = check.since(answer)
        shown = [one for one in since if answer.alarms or one.ratio > 1]
        for shift in shown:
            yield Item((f"{answer.question.series.name}: {shift.sentence}", "open"))
    yield ""
    head = ("max", "usual", "would show")
    rows = [_row(answer) for answer in check.answers]
    yield table(("series", "nights"), head, rows, last=("",), fit="wraps")
    yield (
        f"{unit_words(one.question.series.virtual for one in check.answers)} Usual: "
        "median of the nights before; in sentences, levels are geometric means. Would "
        "show: the ratio of maxima that is found with 80 %.",
        "muted",
    )
    if check.alarms:
        yield (NO_CAUSE, "muted")


def _row(answer: Answer) -> Sequence[Span]:
    question = answer.question
    figures = [one for one in answer.effects if one.figure == "max"]
    ratio = _alarming(answer, figures[0]) if figures else None
    new, usual = NOTHING, NOTHING
    if question.new:
        new = format_us(max(night.max_ns for night in question.new))
    if question.base:
        before = question.units[0]
        usual = format_us(median(run["max_ns"] for one in before for run in one.runs))
    shown = NOTHING if ratio is None else f"{format_number(ratio, 3)} times"
    word: Span = (answer.word.lower(), _WEIGHTS.get(answer.word, "open"))
    nights = f"{len(question.new)} v {len(question.base)}"
    return question.series.name, nights, new, usual, shown, word


# --- for programs ---------------------------------------------------------------------


def check_json(check: Check) -> dict[str, Any]:
    """
    Return it for programs: latencies in ns.

    `p` is one-sided, `adjusted_p` corrected for all `tests` of the family; `ratio` is
    of the new nights to those before, of geometric means. `detectable_ratio` is found
    with 80 %; null: no finite one. Series that were not tested have no figures.
    `since` are the change points of `history show` that led to the newest nights.
    """
    return {
        "sentence": check.sentence,
        "exit_status": check.status,
        "baseline": check.baseline,
        "alpha": ALPHA,
        "tests": max((one.tests for one in check.answers), default=0),
        "series": [_series(one, check.since(one)) for one in check.answers],
    }


def _series(answer: Answer, since: Sequence[Shift]) -> dict[str, Any]:
    question = answer.question
    return {
        "series": question.series.name,
        "machine": question.series.machine,
        "load": question.series.load,
        "word": answer.word,
        "alarms": answer.alarms,
        "sentence": sentence_of(answer, since),
        "since": [shift_json(one) for one in since],
        "new": [night.directory for night in question.new],
        "before": [night.directory for night in question.base],
        "misses": answer.misses,
        "changed": list(question.changed),
        "not_compared": list(question.differs),
        "other_lengths": question.other_lengths,
        "figures": [
            {
                "figure": one.figure,
                "ratio": one.ratio,
                "p": one.p,
                "adjusted_p": one.adjusted_p,
                "worse": one in answer.worse,
                "detectable_ratio": _alarming(answer, one),
            }
            for one in answer.effects
        ],
    }


def check_junit(check: Check) -> str:
    """Return JUnit XML: a suite for each machine, a case for each series."""
    machines = dict.fromkeys(one.question.series.machine for one in check.answers)
    return junit_file(
        [
            TestSuite(
                name=f"rtscope history {machine}",
                hostname=machine,
                cases=[
                    _case(one, check.since(one))
                    for one in check.answers
                    if one.question.series.machine == machine
                ],
            )
            for machine in machines
        ]
    )


def _case(answer: Answer, since: Sequence[Shift]) -> TestCase:
    series, said = answer.question.series, sentence_of(answer, since)
    levels = {"since": ". ".join(one.sentence for one in since)} if since else {}
    differs = answer.word is Word.NOT_COMPARED
    return TestCase(
        classname=f"{series.machine}.{series.load}",
        name=series.name,
        properties={"outcome": answer.word, "sentence": said, **levels},
        failures=[Outcome(message=said, type=answer.word)] if answer.alarms else (),
        error=Outcome(message=said, type=answer.word) if differs else None,
    )
