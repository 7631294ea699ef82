"""
An explanation in words: its main causes, its evidence and its caveats. Pure.

Names of functions come from a kernel that may be anybody's: who prints these texts
makes them harmless first.
"""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from rtscope.explain.instructions.calls import shortened
from rtscope.explain.model import (
    Cause,
    Confidence,
    Explanation,
    OtherCpuActivity,
    Segment,
    Since,
    first_of_each,
    text_of,
)
from rtscope.host.units import format_share, format_us

MAIN_SHARE = 0.1
"""A segment of at least this share of the latency is named in the sentence."""
MAIN_SEGMENTS = 3
PIECES_NAMED = 3
PIECE_SHARE = 0.05
"""Of a sum: a piece of it that has less is not named."""
NEARLY_ALL = 0.9
"""Of a sum: it stands behind the name of a place that has as much."""
SHARE_OF_ANOTHER = 0.5
"""A CPU that was as much in one function may hold the lock there."""
RESIDUAL_CAVEAT = 0.05
"""More of the latency without a cause than this is a caveat."""

NOT_RECORDED = "not recorded"
"""The name of a segment before the begin of a path."""

CauseKey = tuple[Cause, str]
"""What segments of one cause are counted as."""


def sentence(explanation: Explanation, *, virtual: str = "", of: str = "") -> str:
    """
    Write in a few words what made a wake-up late; its times are microseconds.

    `virtual` stands before the unit of a board's latency: "virtual ". `of` says what
    took the time, where that is more than a wake-up.
    """
    latency = _us(explanation.latency_ns, virtual=virtual)
    head = of or _HEADS[explanation.since].format(explanation.cpu, latency)
    if explanation.is_withdrawn:
        why = text_of(first_of_each(explanation.broken)[0])
        return f"{head}. The explanation is withdrawn: {why}."
    sums = _main_sums(explanation)
    if not sums:
        return f"{head}; the cause is unknown."
    waiting = next((one for one in sums if _is_waiting(one.longest)), None)
    parts = [_sum_text(one, explain_rest=one is waiting) for one in sums]
    main = tuple(segment for one in sums for segment in one.segments)
    text = "; ".join(parts)
    return f"{head}. {text[0].upper()}{text[1:]}.{_rest(explanation, main)}"


_HEADS: Mapping[Since, str] = {
    Since.DUE: "CPU {} woke {} late",
    Since.SENT: "CPU {} had the event {} after it was sent",
    Since.GAP: "CPU {} had a gap of {}",
}


@dataclass(frozen=True, slots=True)
class _Sum:
    """All segments of one cause and name; or of one task, with one policy."""

    segments: tuple[Segment, ...]

    @property
    def longest(self) -> Segment:
        return max(self.segments, key=lambda one: one.duration_ns)

    @property
    def ns(self) -> int:
        return sum(one.duration_ns for one in self.segments)

    def pieces(self) -> Counter[str]:
        """Return the time of each of its places; of a segment without any its name."""
        spent: Counter[str] = Counter()
        for one in self.segments:
            pieces = one.pieces or ((one.name, one.executed_ns or one.duration_ns),)
            for name, ns in pieces:
                spent[name or one.name] += ns
        return spent


def _main_sums(explanation: Explanation) -> list[_Sum]:
    """
    Return the main causes, each with all of its pieces, in their order.

    A tick, a task or a lock is many segments: interrupts cut what goes on.
    """
    pieces: dict[tuple[CauseKey, str], list[Segment]] = {}
    for segment in explanation.segments:
        pieces.setdefault((segment.counted_as, segment.policy), []).append(segment)
    sums = [_Sum(tuple(segments)) for segments in pieces.values()]
    by_length = sorted(sums, key=lambda one: -one.ns)
    least = MAIN_SHARE * explanation.latency_ns
    chosen = [one for one in by_length[:MAIN_SEGMENTS] if one.ns >= least]
    dominant = [one for one in by_length if explanation.dominant in one.segments]
    if dominant and dominant[0] not in chosen:
        chosen = [*chosen[: MAIN_SEGMENTS - 1], *dominant]
    return sorted(chosen, key=lambda one: one.longest.begin_ns)


def where(segment: Segment) -> str:
    """Write the function of a segment with its callers, as `shortened` does."""
    callers, name = segment.callers, segment.name
    # A handler that is none of them had but a part of the time that the calls had.
    named = callers[callers.index(name) :] if name in callers else (name,)
    return shortened(named) or name


def evidence(segment: Segment) -> tuple[str, ...]:
    """Return all that shows the cause of a segment, a line for each."""
    task = (f"the task was {_task_text(segment)}",) if segment.task else ()
    return (
        *segment.evidence,
        *task,
        *((segment.holder,) if segment.holder else ()),
        *_other_cpu_lines(segment),
        *_inside_lines(segment),
    )


def caveats_of(explanation: Explanation) -> tuple[str, ...]:
    """Return what limits an explanation: a residual, a cut path, a wrong policy."""
    return (
        *_of_the_invariants(explanation),
        *_of_the_sum(explanation),
        *_guessed(explanation),
        *explanation.notes,
    )


def _us(ns: int | None, *, virtual: str = "") -> str:
    return f"{format_us(ns)} {virtual}µs"


def _sum_text(one: _Sum, *, explain_rest: bool) -> str:
    longest = one.longest
    paused = _executed(one, explain_rest=explain_rest)
    holder = (longest.holder,) if longest.holder else ()
    busiest = () if holder and longest.cause is Cause.BLOCKED else _busiest(longest)
    aside = "; ".join((*paused, *holder, *busiest))
    text = _clause_of_length(one)
    return f"{text} ({aside})" if aside else text


def _clause_of_length(one: _Sum) -> str:
    segment = one.longest
    name, clauses = segment.cause.name, _clauses()
    clause = clauses["from-instructions"][name]
    if segment.executed_ns is None:
        clause = clauses["from-events"].get(name, clause)
    known = segment.cause is not Cause.UNKNOWN
    if known and segment.confidence is Confidence.GUESSED:
        clause = f"probably {clause}"
    task = f" ({_task_text(segment)})" if segment.task else ""
    return f"{clause.format(where=_places(one), task=task)}: {_us(one.ns)}"


def _places(one: _Sum) -> str:
    """
    Write the place of a sum, or the longest of several, each with its own time.

    A sum stands behind the name of one place only if that has nearly all of it.
    """
    segment = one.longest
    place = f"{where(segment)}{_or_who_jumped(segment)}"
    if segment.executed_ns is None:
        return place
    spent = one.pieces()
    if not spent.total():
        return place
    if spent[segment.name] >= NEARLY_ALL * spent.total():
        return place
    (name, ns), least = spent.most_common(1)[0], PIECE_SHARE * spent.total()
    if ns >= NEARLY_ALL * spent.total():
        return name
    long = [row for row in spent.most_common(PIECES_NAMED) if row[1] >= least]
    listed = ", ".join(f"{name} ({_us(ns)})" for name, ns in long or [(name, ns)])
    is_all = sum(ns for _, ns in long) + least >= spent.total()
    return listed if is_all else f"{listed} and more"


@cache
def _clauses() -> Mapping[str, Mapping[str, str]]:
    file = resources.files("rtscope.explain").joinpath("clauses.toml")
    return tomllib.loads(file.read_text("utf-8"))


def _is_waiting(one: Segment) -> bool:
    """Tell whether the CPU executed nothing in a fifth of it or more."""
    executed_ns = one.executed_ns
    return executed_ns is not None and 5 * executed_ns <= 4 * one.duration_ns


def _executed(one: _Sum, *, explain_rest: bool) -> Iterator[str]:
    if _is_waiting(one.longest):
        executed_ns = sum(segment.executed_ns or 0 for segment in one.segments)
        executed = f"{_us(executed_ns)} executed here"
        yield f"{executed}, the rest: this CPU paused" if explain_rest else executed


def _busiest(segment: Segment) -> Iterator[str]:
    """Tell what was awaited, if one CPU alone did one thing for much of the time."""
    others = [
        one
        for one in segment.other_cpus
        if not one.waits and one.share >= SHARE_OF_ANOTHER and not one.is_idle
    ]
    if segment.cause is Cause.TIMER_ELSEWHERE:
        others = [one for one in others if f"CPU {one.cpu}" == segment.name]
    others.sort(key=_did_one_thing_ns, reverse=True)
    if not others or _may_be_another(segment, others):
        return
    other = others[0]
    percent = f"{100 * other.share:.0f} %"
    yield f"CPU {other.cpu} spent {percent} of its time in {_of_other(other)}"


def _did_one_thing_ns(other: OtherCpuActivity) -> float:
    return other.share * other.executed_ns


def _may_be_another(segment: Segment, others: Sequence[OtherCpuActivity]) -> bool:
    """
    Tell whether the second of them may be what was awaited as well as the first.

    A grace period waits for all; what else is awaited is on one CPU.
    """
    if len(others) == 1 or segment.cause is Cause.GRACE_PERIOD:
        return False
    first, second = map(_did_one_thing_ns, others[:2])
    return 2 * second >= first


def _of_other(other: OtherCpuActivity) -> str:
    calls = shortened(other.callers) or other.name
    task = f" ({_task_text(other)})" if other.task else ""
    return f"{calls}{_or_who_jumped(other)}{task}"


def _or_who_jumped(one: Segment | OtherCpuActivity) -> str:
    """Say if a function may be to blame that jumped to the one that is named."""
    if not one.jumped_to:
        return ""
    function = "it" if one.jumped_to == one.name else one.jumped_to
    return f" (or a function that jumped to {function})"


def _task_text(one: Segment | OtherCpuActivity) -> str:
    """Write a task with its policy and priority."""
    return f"{one.task}, {one.policy}" if one.policy else one.task


def _rest(explanation: Explanation, main: Sequence[Segment]) -> str:
    """Write the causes of all but the main segments, longest first."""
    rest_ns = explanation.latency_ns - sum(s.duration_ns for s in main)
    if rest_ns <= 0:
        return ""
    spent: Counter[str] = Counter()
    named = {id(segment) for segment in main}  # they may be thousands
    for segment in explanation.segments:
        if id(segment) not in named:
            spent[segment.cause] += segment.duration_ns
    if explanation.residual_ns > 0:
        spent[Cause.UNKNOWN] += explanation.residual_ns
    parts = [f"{cause} {_us(ns)}" for cause, ns in spent.most_common(3)]
    more = " and shorter ones" if len(spent) > 3 else ""
    return f" Rest ({_us(rest_ns)}): {', '.join(parts)}{more}."


def _other_cpu_lines(segment: Segment) -> Iterator[str]:
    for other in segment.other_cpus:
        yield (
            f"CPU {other.cpu} executed {_us(other.executed_ns)} in this time, "
            f"{100 * other.share:.0f} % of it in {_of_other(other)}"
            f"{f', which called {other.helper}' if other.helper else ''}"
            f"{', itself waiting' if other.waits else ''}"
        )


def _inside_lines(segment: Segment) -> Iterator[str]:
    if segment.executed_ns and len(segment.functions) > 1:
        named = ", ".join(
            f"{name} {format_share(ns, segment.executed_ns)}"
            for name, ns in segment.functions[:3]
        )
        yield f"functions executed most: {named}"


def _of_the_invariants(explanation: Explanation) -> Iterator[str]:
    if not explanation.broken:
        return
    number = Counter(one.invariant for one in explanation.broken)
    for one in first_of_each(explanation.broken):
        at = f"from +{format_us(one.begin_ns)} to +{format_us(one.end_ns)} µs"
        more = number[one.invariant] - 1
        yield f"not proven {at}: {text_of(one)}{f' (and {more} more)' * bool(more)}"


def _of_the_sum(explanation: Explanation) -> Iterator[str]:
    latency, residual = explanation.latency_ns, explanation.residual_ns
    if abs(residual) > RESIDUAL_CAVEAT * latency:
        yield (
            f"{format_share(residual, latency)} of the latency is in no part: the "
            "explanation may miss the cause"
        )
    unknown = sum(
        s.duration_ns for s in explanation.segments if s.cause is Cause.UNKNOWN
    )
    if unknown > RESIDUAL_CAVEAT * latency:
        yield _unknown(explanation, format_share(unknown, latency))


def _guessed(explanation: Explanation) -> Iterator[str]:
    guesses: Counter[Cause] = Counter()
    for segment in explanation.segments:
        known = segment.cause is not Cause.UNKNOWN
        if known and segment.confidence is Confidence.GUESSED:
            guesses[segment.cause] += segment.duration_ns
    for cause, ns in guesses.items():
        if ns > RESIDUAL_CAVEAT * explanation.latency_ns:
            part = format_share(ns, explanation.latency_ns)
            yield f"the cause of {part} of the latency is a guess: {cause}"


def _unknown(explanation: Explanation, unknown_share: str) -> str:
    unknown = [s for s in explanation.segments if s.cause is Cause.UNKNOWN]
    if all(segment.name == NOT_RECORDED for segment in unknown):
        return (
            f"{unknown_share} of the latency was not recorded: the cause may be there"
        )
    return f"the cause of {unknown_share} of the latency is unknown"
