"""
Is it worse? The newest nights of each series against the nights before.

The question is about time: were the newest nights drawn from the same as the others?
If nothing changed, each choice of so many nights is as likely to be the newest ones as
any other. So p is the share of choices that look at least as bad as the newest ones:
exact, by whole nights, with any distribution. One night against 20 has 21 choices, and
p is at least 1/21.

All figures of all series are one family, whose nights are dealt together: if nothing
changed anywhere, at most alpha of all checks alarm at all. An alarm names no cause:
whatever changed over these nights may be the reason (decision 20).

A virtual board repeats exactly, so equal results need no test. Where a result is new,
the change may do no more than another seed does: then each choice of so many of its
trajectories is as likely to be the new ones. They are tested as nights are, as a family
of their own, which is empty if nothing changed. The tail is left out: all latencies of
a board move together, and many across a limit at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice

from rtscope.stats.comparison.design import FigureOfRuns, two_groups
from rtscope.stats.comparison.effect import Effect, effects_of_runs
from rtscope.verbs.history.histograms import later_than, unpacked
from rtscope.verbs.history.series import Measure, Night, Series, measures_of

ALPHA = 0.05
"""At most this share of all checks of unchanged nights alarms."""

LEAST_OF_BOARD = 1.1
"""
The least ratio that is an alarm of a virtual board.

Each kernel moves all latencies by some per cent, and seeds often less: so small a
change is certain, and none to wake somebody for.
"""


class Word(StrEnum):
    """The outcome for a series."""

    WORSE = "WORSE"
    MISSED = "DEADLINE MISSED"
    NOT_WORSE = "NOT WORSE"
    """No change is shown; the answer says how large one would have been seen."""
    IDENTICAL = "IDENTICAL"
    """A virtual board: a result that it had before, to the last count."""
    CHANGED = "CHANGED"
    """A virtual board: another result, exactly, that is not shown to be worse."""
    TOO_FEW_SEEDS = "TOO FEW SEEDS"
    """A virtual board: another result, exactly, of too few trajectories for a test."""
    TOO_FEW = "TOO FEW NIGHTS"
    NOT_COMPARED = "NOT COMPARED"
    """There are nights before, and they do not compare."""


@dataclass(frozen=True, slots=True)
class Question:
    """A series, and the nights to compare."""

    series: Series
    new: tuple[Night, ...]
    base: tuple[Night, ...]
    """Those that count and are as long."""
    other_lengths: int = 0
    """Nights before that are longer or shorter."""
    differs: tuple[str, ...] = ()
    """Why the nights before of this name do not compare; empty: they do."""
    changed: tuple[str, ...] = ()
    """What changed since the nights before, and may be why: kernel, settings."""
    deadline_ns: int | None = None

    @property
    def units(self) -> tuple[tuple[Night, ...], tuple[Night, ...]]:
        """
        What is dealt: the nights before, and the new ones.

        Of a virtual board its trajectories, each as a night of its own, and of the new
        ones those that are new.
        """
        if not self.series.virtual:
            return self.base, self.new
        known = _trajectories(self.base)
        ours = _trajectories(self.new)
        new = tuple(one for digest, one in ours.items() if digest not in known)
        return tuple(known.values()), new

    @property
    def is_testable(self) -> bool:
        """Whether so many nights, or trajectories, can have a p of at most alpha."""
        return can_show(*map(len, self.units))


def can_show(base: int, new: int) -> bool:
    """Whether a test of so many against so many before can have a p up to alpha."""
    enough = new >= 1 and base > 1
    return enough and two_groups(base, new).smallest_p_of_worse <= ALPHA


def _trajectories(nights: Sequence[Night]) -> dict[str, Night]:
    """Return each run of a virtual board once, by its digest, as a night."""
    found: dict[str, Night] = {}
    for night in nights:
        for run in night.runs:
            found.setdefault(run["digest"], replace(night, runs=(run,)))
    return found


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome for a series."""

    question: Question
    word: Word
    effects: tuple[Effect, ...] = ()
    measures: tuple[Measure, ...] = field(default=())
    tests: int = 0
    """The size of the family."""
    misses: int = 0
    """Of the deadline, in the newest nights."""

    @property
    def worse(self) -> tuple[Effect, ...]:
        """The figures that are worse, the surest first."""
        least = LEAST_OF_BOARD if self.question.series.virtual else 0
        found = [one for one in self.effects if one.is_worse and one.ratio >= least]
        return tuple(sorted(found, key=lambda one: (one.adjusted_p, -one.statistic)))

    @property
    def alarms(self) -> bool:
        """Whether somebody must look at it."""
        return self.word in (Word.WORSE, Word.MISSED)


@dataclass(frozen=True, slots=True)
class Nights:
    """The figures of a series, of the nights before and then of the newest ones."""

    base: int
    new: int
    measures: tuple[Measure, ...]


def judge(questions: Sequence[Question], *, seed: int = 0) -> tuple[Answer, ...]:
    """Answer the questions, as one family."""
    answers: dict[int, Answer] = {}
    for virtual in (False, True):
        some = [one for one in questions if one.series.virtual == virtual]
        answers |= _judged([one for one in some if one.is_testable], seed)
    return tuple(
        answers.get(id(one)) or _answer(one, _untested(one), (), (), 0)
        for one in questions
    )


def _judged(tested: Sequence[Question], seed: int) -> dict[int, Answer]:
    """Test a family; return the answers by the identity of their question."""
    nights = [_nights(question) for question in tested]
    effects = iter(effects_of_nights(nights, seed=seed))
    family = sum(len(one.measures) for one in nights)
    answers: dict[int, Answer] = {}
    for question, one in zip(tested, nights, strict=True):
        found = tuple(islice(effects, len(one.measures)))
        other = Word.CHANGED if question.series.virtual else Word.NOT_WORSE
        answer = _answer(question, other, found, one.measures, family)
        if answer.worse and answer.word is other:
            answer = replace(answer, word=Word.WORSE)
        answers[id(question)] = answer
    return answers


def _nights(question: Question) -> Nights:
    base, new = question.units
    measures = measures_of((*base, *new))
    if question.series.virtual:
        measures = tuple(one for one in measures if one.name != "tail")
    return Nights(len(base), len(new), measures)


def effects_of_nights(series: Sequence[Nights], *, seed: int = 0) -> tuple[Effect, ...]:
    """
    Test all figures of all series together; return an effect for each, in their order.

    Nights of all series are dealt together, the newest of one with the newest of the
    others: a warm night may be bad for all boards.
    """
    if not series:
        return ()
    new, base = max(one.new for one in series), max(one.base for one in series)
    figures = [
        # Counted back from where the newest ones begin.
        FigureOfRuns(
            tuple(range(base - one.base, base + one.new)), each.values, each.name
        )
        for one in series
        for each in one.measures
    ]
    design = two_groups(base, new)
    return effects_of_runs(design, figures, alpha=ALPHA, seed=seed, only_worse=True)


def _untested(question: Question) -> Word:
    if question.series.virtual and question.base:
        return Word.TOO_FEW_SEEDS if question.units[1] else Word.IDENTICAL
    if question.differs or question.other_lengths:
        return Word.NOT_COMPARED
    return Word.TOO_FEW


def _answer(
    question: Question,
    word: Word,
    effects: tuple[Effect, ...],
    measures: tuple[Measure, ...],
    family: int,
) -> Answer:
    misses = sum(_misses(question))
    return Answer(
        question,
        Word.MISSED if misses else word,
        effects,
        measures,
        family,
        misses,
    )


def _misses(question: Question) -> Iterator[int]:
    """Yield the misses of each new run; a wake-up that may be one is one."""
    for night in question.new:
        for run in night.runs:
            limit_ns = question.deadline_ns or run["deadline_ns"]
            if limit_ns is None:
                continue
            if limit_ns == run["deadline_ns"]:
                yield run["misses"] or 0
            elif run["max_ns"] > limit_ns:
                late = later_than(unpacked(run["histogram"]), limit_ns)
                yield max(late, 1) + (run["missed_periods"] or 0)
            else:
                yield run["missed_periods"] or 0
