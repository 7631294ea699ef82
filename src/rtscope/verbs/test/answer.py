"""The answer of a test: its sentence, tables and the worst cycle, for people. Pure."""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rtscope.host.units import count, format_us
from rtscope.host.version import __version__
from rtscope.present.document import (
    Block,
    Document,
    Section,
    Weight,
    Words,
    table,
)
from rtscope.present.render.fitted import Room, rows_left_out
from rtscope.present.words import NOTHING, capital, duration, enumeration, us
from rtscope.programs.naming import NamedStack
from rtscope.programs.outside.file import Kind
from rtscope.programs.outside.model import OutsideCycle, OutsideThread
from rtscope.programs.outside.parts import cycle_parts
from rtscope.stats.summary import summarize_samples
from rtscope.verbs.test.baseline import Difference
from rtscope.verbs.test.codeseen import CodeSeen
from rtscope.verbs.test.codetables import code_blocks
from rtscope.verbs.test.file import ProgramTest
from rtscope.verbs.test.functions import FunctionUse, functions_table
from rtscope.verbs.test.grown import growth_table
from rtscope.verbs.test.judge import (
    MEASURES,
    NS,
    VIRTUAL,
    Judged,
    Measure,
    Outcome,
    SeenStart,
    judged_threads,
    outcome_of,
    why_none,
)
from rtscope.verbs.test.latencyparts import parts_blocks
from rtscope.verbs.test.places import done_more, more_words, places_words, where

TONES: Mapping[Outcome, Weight] = {
    Outcome.BROKEN: "bad",
    Outcome.NOT_SEEN: "open",
    Outcome.KEPT: "good",
}
MOST_GROWN = 4
"""Threads with a table of their functions, then and now."""
MOST_PARTS = 5
"""Of what took the time of a cycle, in a sentence."""


@dataclass(frozen=True, slots=True)
class Answer:
    """All that a test found."""

    test: ProgramTest
    tested: tuple[SeenStart, ...]
    judged: tuple[Judged, ...]
    compared: str
    """The baseline that it was compared with, as it is called; empty: with none."""
    exact: bool
    """Whether everything has to be equal to it."""
    differences: tuple[Difference, ...]
    changed: tuple[str, ...]
    """Inputs that are not as in the baseline."""
    cause: str = ""
    """Of the worst cycle, in a sentence; empty: it was not recorded."""
    functions: tuple[FunctionUse, ...] = ()
    """What was executed in that cycle; empty: it was not recorded."""
    code: CodeSeen | None = None
    """What was executed of the program; None: it was not asked for."""

    @property
    def exit_status(self) -> int:
        """1 if a budget is broken or the baseline differs, 3 if one was not seen."""
        if self.outcome is Outcome.BROKEN or self.is_worse:
            return 1
        return self.outcome.exit_status

    @property
    def outcome(self) -> Outcome:
        """The worst outcome; without a budget, whether there is a thread to judge."""
        if self.judged or _longest_response(self.test, self.tested):
            return outcome_of(self.judged)
        return Outcome.NOT_SEEN

    @property
    def is_worse(self) -> bool:
        """Whether it differs from the baseline in a way that counts."""
        return any(self.exact or one.worse for one in self.differences)

    @property
    def is_too_long(self) -> bool:
        """Whether the budget that decides is of a time of a cycle, and broken."""
        one = _deciding(self.judged)
        return (
            one is not None
            and one.outcome is Outcome.BROKEN
            and one.measure.unit == NS
            and one.cycle is not None
        )

    @property
    def sentence(self) -> str:
        """The answer in a line."""
        return f"{self._main}{self._as_before}"

    @property
    def _main(self) -> str:
        deciding = _deciding(self.judged)
        if deciding is None:
            return _figures_only(self.test, self.tested)
        of = f" of thread {deciding.thread.name}" if deciding.thread else ""
        run = f" ({deciding.tested.name})" if len(self.tested) > 1 else ""
        limit = shown(deciding.measure, deciding.limit)
        if deciding.value is None:
            who = of or f" of a thread {deciding.pattern}"
            return f"{deciding.measure.what}{who} not seen: {deciding.why}"
        worst = "worst " if deciding.is_worst_cycle else ""
        value = shown(deciding.measure, deciding.value)
        places = places_of(deciding)
        return (
            f"{worst}{deciding.measure.what} {value}{of}{run}, of {limit} allowed"
            f"{places and f': {places}'}"
        )

    @property
    def _as_before(self) -> str:
        if not self.compared:
            return ""
        if not self.differences:
            return ", same as before" if self.exact else ", no worse than before"
        first = self.differences[0]
        who = f"{first.thread}: " if first.thread else ""
        return f"; not as before: {who}{first.words}"


def places_of(one: Judged) -> str:
    """Say where what broke a budget was; empty if it is kept, or nobody knows."""
    if one.outcome is not Outcome.BROKEN:
        return ""
    return enumeration(places_words(one.places, one.tested.stacks))


def _deciding(judged: Sequence[Judged]) -> Judged | None:
    """Return the budget that decides: the worst outcome, and nearest to its limit."""
    if not judged:
        return None
    order = list(Outcome)

    def rank(one: Judged) -> tuple[int, float]:
        share = 0.0 if one.value is None else one.value / max(one.limit, 1)
        return order.index(one.outcome), -share

    return min(judged, key=rank)


def _figures_only(test: ProgramTest, tested: Sequence[SeenStart]) -> str:
    worst = _longest_response(test, tested)
    if worst is None:
        return why_none(tested[0].outside)
    response = us(worst.cycle.response_ns, VIRTUAL)
    return f"worst response {response} of thread {worst.thread.name}, no budget"


@dataclass(frozen=True, slots=True)
class Worst:
    """The worst cycle that matters most."""

    thread: OutsideThread
    cycle: OutsideCycle
    tested: SeenStart


def _longest_response(test: ProgramTest, tested: Sequence[SeenStart]) -> Worst | None:
    """Return the cycle with the longest response; of equal ones the first."""
    every = (
        Worst(thread, thread.worst, one)
        for one in tested
        for thread in judged_threads(test, one.outside)
    )
    return max(every, key=lambda one: one.cycle.response_ns, default=None)


def shown(measure: Measure, value: int) -> str:
    """Write a value with its unit."""
    if measure.unit == NS:
        return us(value, VIRTUAL)
    return count(value)


# --- what took the time of a cycle ----------------------------------------------------


def cycle_words(
    thread: OutsideThread,
    cycle: OutsideCycle,
    shift: int,
    stacks: Mapping[int, NamedStack] | None = None,
) -> str:
    """
    Say what took the time of a cycle, the longest first.

    `stacks` has those of places by their numbers.
    """
    named = stacks or {}
    parts = cycle_parts(cycle, shift, lambda place: where(named.get(place)))
    said = [f"{us(ns, VIRTUAL)} {what}" for ns, what in parts][:MOST_PARTS]
    begin = "its timer was due" if cycle.timed else "it was woken"
    by = f" by {cycle.waker.name}" if cycle.waker and not cycle.timed else ""
    more = done_more(thread, cycle, waits=False)
    return (
        f"{thread.name}, cycle {cycle.number}, {us(cycle.response_ns, VIRTUAL)} from "
        f"when {begin}{by}: {enumeration(said)}{more_words(more, named)}."
    )


# --- documents ------------------------------------------------------------------------


WIDE = (
    *("thread", "prio", "cycles", "period", "worst", "p99", "average"),
    *("latency", "on CPU", "instr.", "calls", "missed", "faults", "waits"),
)
NARROW = (
    *("thread", "prio", "cycles", "worst", "p99", "latency", "on CPU", "missed"),
    *("faults", "waits"),
)
"""Columns of a page, and of a terminal of 80 columns."""

ON_A_TERMINAL = (
    ("thread", "prio", "cycles", "worst", "p99", "latency", "on CPU"),
    ("thread", "period", "average", "instr.", "calls", "missed", "faults", "waits"),
)
"""Columns of two tables of a terminal, which have all of the wide one."""


def answer_document(
    answer: Answer,
    *,
    worst: Sequence[Block] = (),
    parts: Sequence[Block] = (),
    more: Sequence[Block] = (),
) -> Document:
    """
    Return everything, for a page or a merge request.

    Drawings of a page stand behind the words about the `worst` cycle and about the
    `parts` of latencies, and `more` of them before the budgets.
    """
    return Document(
        f"rtscope test {answer.test.title}",
        tuple(answer_blocks(answer, worst=worst, parts=parts, more=more)),
        made_by=f"rtscope {__version__}",
    )


def brief_blocks(answer: Answer, room: Room) -> Iterator[Block]:
    """Yield what one look at a terminal has room for."""
    yield from headline_blocks(answer)
    yield ""
    for one in answer.tested[: room.rows]:
        if len(answer.tested) > 1:
            yield (one.name, "strong")
        yield from _thread_blocks(answer.test, one, NARROW, most=room.rows)
    yield from rows_left_out(len(answer.tested) - room.rows)
    yield ""
    yield from worst_blocks(answer)
    broken = [one for one in answer.judged if one.outcome is not Outcome.KEPT]
    for judged in broken[: room.sentences]:
        yield _budget_words(judged)
    if answer.differences:
        yield from list(_difference_words(answer))[: room.sentences]


def _budget_words(one: Judged) -> Words:
    found = "" if one.value is None else f" {shown(one.measure, one.value)}"
    limit = shown(one.measure, one.limit)
    rest = f" {one.name}: {one.measure.what}{found}, {limit} allowed"
    why = one.why if one.value is None else places_of(one)
    return Words(
        (
            (one.outcome.value.upper(), TONES[one.outcome]),
            f"{rest}{why and f': {why}'}",
        )
    )


def answer_blocks(
    answer: Answer,
    *,
    worst: Sequence[Block] = (),
    parts: Sequence[Block] = (),
    more: Sequence[Block] = (),
    tables: Sequence[Sequence[str]] = (WIDE,),
) -> Iterator[Block]:
    """
    Yield the answer, the table of threads, broken budgets and the worst cycle.

    `tables` has the columns of threads: of a terminal those of two tables.
    """
    yield from headline_blocks(answer)
    yield ""
    yield from worst_blocks(answer, whole=True)
    yield from worst
    yield ""
    if answer.functions:
        rows = functions_table(answer.functions)
        yield Section("Instructions of the worst cycle", (rows,))
    for one in answer.tested:
        if len(answer.tested) > 1:
            yield (one.name, "strong")
        yield from _thread_blocks(answer.test, one, *tables)
        yield ""
    yield from parts_blocks(answer.test, answer.tested, drawn=parts)
    if answer.code is not None:
        yield from code_blocks(answer.code)
    yield from more
    budgets = [_budget_row(one) for one in answer.judged]
    if budgets:
        heads = ("thread", "budget"), ("found", "allowed")
        made = table(*heads, budgets, last=("",))
        *first, places = made.columns
        columns = (*first, replace(places, fit="folds"))
        yield Section("Budgets", (replace(made, columns=columns),))
    if answer.differences:
        said = (*_difference_words(answer), *_growth_blocks(answer))
        yield Section(f"Compared with {answer.compared}", said)


def headline_blocks(answer: Answer) -> Iterator[Block]:
    """Yield the answer, and where it was tested."""
    tone: Weight = "bad" if answer.exit_status == 1 else TONES[answer.outcome]
    yield Words(((capital(answer.sentence), tone), "."))
    for words in dict.fromkeys(one.identity.words for one in answer.tested):
        yield (f"{capital(words)}.", "muted")


def _thread_blocks(
    test: ProgramTest, one: SeenStart, *tables: Sequence[str], most: int | None = None
) -> Iterator[Block]:
    """Yield the judged threads of a start, times in virtual us, and what is unseen; of
    more than `most` those with the worst responses."""
    judged = judged_threads(test, one.outside)
    shown_ones = judged
    if most is not None and len(judged) > most:
        worst = heapq.nlargest(most, judged, key=_worst_response_ns)
        shown_ones = tuple(thread for thread in judged if thread in worst)
    rows = [_cells(thread, one) for thread in shown_ones]
    for number, columns in enumerate(tables if rows else ()):
        names = sum(name in ("thread", "prio") for name in columns)
        cells = [[row[name] for name in columns] for row in rows]
        if number:
            yield ""
        yield table(columns[:names], columns[names:], cells)
    yield from rows_left_out(len(judged) - len(rows))
    yield from _unseen(one, judged=bool(rows))


def _worst_response_ns(thread: OutsideThread) -> int:
    return max((cycle.response_ns for cycle in thread.cycles), default=-1)


def _cells(thread: OutsideThread, one: SeenStart) -> Mapping[str, str]:
    response = summarize_samples([cycle.response_ns for cycle in thread.cycles])
    values = {measure.name: measure.of(thread) for measure in MEASURES}
    kinds = one.outside.kinds
    faults, waits = values["faults"] or 0, values["blocking"] or 0
    return {
        "thread": thread.name,
        "prio": thread.priority_words,
        "cycles": count(len(thread.cycles)),
        "period": NOTHING if thread.period_ns is None else duration(thread.period_ns),
        "worst": format_us(values["response"]),
        "p99": format_us(response.ranks.percentile_ns(99)),
        "average": format_us(response.mean_ns),
        "latency": format_us(values["latency"]),
        "on CPU": format_us(values["execution"]),
        "instr.": count(values["instructions"] or 0),
        "calls": count(most_calls(thread)) if Kind.CALL in kinds else NOTHING,
        "missed": NOTHING if thread.missed is None else count(thread.missed),
        "faults": count(faults) if Kind.FAULT in kinds else NOTHING,
        "waits": count(waits) if Kind.CALL in kinds else NOTHING,
    }


def most_calls(thread: OutsideThread) -> int:
    """Return how many calls to the kernel a cycle made at most."""
    return max((sum(one.calls.values()) for one in thread.cycles), default=0)


def _unseen(one: SeenStart, *, judged: bool) -> Iterator[Block]:
    for doubt in one.doubts:
        yield (f"{capital(doubt)}.", "limit")
    yield from (f"{capital(note)}." for note in one.notes)
    if one.outside.lost:
        yield (
            f"{one.outside.lost:,} records were lost: the last cycles are missing.",
            "limit",
        )
    if not one.outside.threads:
        yield (_NO_CYCLE, "limit")
    elif not judged:
        yield (_JUDGE_THEM, "limit")


_NO_CYCLE = (
    "No thread had a whole cycle in the time that is judged: it begins when something "
    "wakes a thread, and ends where the thread waits again."
)

_JUDGE_THEM = (
    "Only real-time threads are judged, and those that a test file names: add --policy "
    "fifo --priority 80, have the program ask for it, or give a thread its table, "
    "[thread.NAME]."
)


def worst_of(answer: Answer) -> Worst | None:
    """Return the cycle of the budget that decides, or that with the worst response."""
    deciding = _deciding(answer.judged)
    if deciding is not None and deciding.cycle is not None and deciding.thread:
        return Worst(deciding.thread, deciding.cycle, deciding.tested)
    return _longest_response(answer.test, answer.tested)


def worst_blocks(answer: Answer, *, whole: bool = False) -> Iterator[Block]:
    """
    Yield what took the time of the worst cycle that matters most.

    Its cause, if it was recorded; or what the program did in it. Both if `whole`.
    """
    worst = worst_of(answer)
    if worst is not None and (whole or not answer.cause):
        one = worst.tested
        yield cycle_words(worst.thread, worst.cycle, one.outside.shift, one.stacks)
    if answer.cause:
        yield answer.cause


def _budget_row(one: Judged) -> list[Any]:
    found = NOTHING if one.value is None else shown(one.measure, one.value)
    why = one.why or places_of(one)
    return [
        one.name,
        one.measure.name,
        found,
        shown(one.measure, one.limit),
        Words(((one.outcome.value, TONES[one.outcome]), f" {why}" if why else "")),
    ]


def _difference_words(answer: Answer) -> Iterator[Block]:
    for one in answer.differences:
        who = f" {one.thread}" if one.thread else ""
        yield f"{one.where}{who}: {one.words}."
    if answer.changed:
        yield f"Not as in the baseline: {enumeration(list(answer.changed))}."
    else:
        yield "All inputs that are known are as in the baseline."


def _growth_blocks(answer: Answer) -> Iterator[Block]:
    """Yield the functions of the first cycles that are worse, of each thread once."""
    seen: set[tuple[str, str]] = set()
    for one in answer.differences:
        key = one.where, one.thread
        tables = list(growth_table(one.growth)) if one.growth else []
        if tables and key not in seen and len(seen) < MOST_GROWN:
            seen.add(key)
            yield (f"{one.where} {one.thread}: own instructions", "strong")
            yield from tables
