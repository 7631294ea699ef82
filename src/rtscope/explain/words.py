"""
An explanation in words: its main causes, its evidence and its caveats. Pure.

Names of functions come from a kernel that may be anybody's: who prints these texts
makes them harmless first.
"""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources

from rtscope.explain.invariants import first_of_each, text_of
from rtscope.explain.model import (
    COMPETING_TASKS,
    Cause,
    Confidence,
    Explanation,
    OtherCpuActivity,
    Segment,
)
from rtscope.host.units import format_share, format_us

MAIN_SHARE = 0.1
"""A segment of at least this share of the latency is named in the sentence."""
MAIN_SEGMENTS = 3
CALLERS_SHOWN = 3
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
    main = main_segments(explanation)
    latency = _us(explanation.latency_ns, virtual=virtual)
    head = of or f"CPU {explanation.cpu} woke {latency} late"
    if explanation.is_withdrawn:
        why = text_of(first_of_each(explanation.broken)[0])
        return f"{head}. The explanation is withdrawn: {why}."
    if not main:
        return f"{head}; the cause is unknown."
    if explanation.is_counted:
        first = next(filter(_is_waiting, main), None)
        segments = explanation.segments
        of_tasks = _tasks_ns(segments, main)
        parts = [
            _segment_text(s, of_tasks.get(s.counted_as), explain_rest=s is first)
            for s in _first_of_each_task(main)
        ]
        main = tuple(s for s in segments if s in main or s.counted_as in of_tasks)
    else:
        sums = _main_sums(explanation)
        parts = [_clause_of_length(segment, ns) for segment, ns in sums]
        causes = {segment.counted_as for segment, _ in sums}
        main = tuple(s for s in explanation.segments if s.counted_as in causes)
    text = "; ".join(parts)
    return f"{head}. {text[0].upper()}{text[1:]}.{_rest(explanation, main)}"


def _tasks_ns(
    segments: Sequence[Segment], main: Sequence[Segment]
) -> Mapping[CauseKey, int]:
    """Return how long each task of the main segments ran: interrupts cut it up."""
    tasks = {s.counted_as for s in main if s.cause in COMPETING_TASKS}
    spent: Counter[CauseKey] = Counter()
    for segment in segments:
        if segment.counted_as in tasks:
            spent[segment.counted_as] += segment.duration_ns
    return spent


def _first_of_each_task(main: Sequence[Segment]) -> Iterator[Segment]:
    causes: set[CauseKey] = set()
    for segment in main:
        if segment.cause not in COMPETING_TASKS or segment.counted_as not in causes:
            yield segment
        causes.add(segment.counted_as)


def _main_sums(explanation: Explanation) -> list[tuple[Segment, int]]:
    """
    Return the main causes, each with the sum of its pieces.

    Events cut what goes on: a tick, a task or a lock is many segments. A board's path
    has one for each, but for the tasks that interrupts cut up.
    """
    longest: dict[CauseKey, Segment] = {}
    spent: Counter[CauseKey] = Counter()
    for segment in explanation.segments:
        key = segment.counted_as
        spent[key] += segment.duration_ns
        best = longest.setdefault(key, segment)
        longest[key] = max(best, segment, key=lambda one: one.duration_ns)
    by_length = [(longest[key], ns) for key, ns in spent.most_common()]
    least = MAIN_SHARE * explanation.latency_ns
    chosen = [row for row in by_length[:MAIN_SEGMENTS] if row[1] >= least]
    dominant = [row for row in by_length if row[0] is explanation.dominant]
    if dominant and dominant[0] not in chosen:
        chosen = [*chosen[: MAIN_SEGMENTS - 1], *dominant]
    return sorted(chosen, key=lambda row: row[0].begin_ns)


def main_segments(explanation: Explanation) -> tuple[Segment, ...]:
    """Return the longest segments in their order, and the dominant one."""
    dominant = explanation.dominant
    by_length = sorted(explanation.segments, key=lambda s: -s.duration_ns)
    least = MAIN_SHARE * explanation.latency_ns
    chosen = [s for s in by_length[:MAIN_SEGMENTS] if s.duration_ns >= least]
    if dominant is not None and dominant not in chosen:
        chosen = [*chosen[: MAIN_SEGMENTS - 1], dominant]
    return tuple(sorted(chosen, key=lambda s: s.begin_ns))


def where(segment: Segment) -> str:
    """Write the function of a segment with its next callers: `a < b < c`."""
    callers, name = segment.callers, segment.name
    named = callers[callers.index(name) :] if name in callers else callers
    calls = " < ".join(named[:CALLERS_SHOWN]) or name
    return f"{calls} < …" if len(named) > CALLERS_SHOWN else calls


def evidence(segment: Segment) -> tuple[str, ...]:
    """Return all that shows the cause of a segment, a line for each."""
    task = (f"the task was {_task_text(segment)}",) if segment.task else ()
    return (
        *segment.evidence,
        *task,
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


def _segment_text(segment: Segment, sum_ns: int | None, *, explain_rest: bool) -> str:
    aside = "; ".join(
        (*_executed(segment, explain_rest=explain_rest), *_busiest(segment))
    )
    text = _clause_of_length(segment, sum_ns or segment.duration_ns)
    return f"{text} ({aside})" if aside else text


def _clause_of_length(segment: Segment, ns: int) -> str:
    name, clauses = segment.cause.name, _clauses()
    clause = clauses["from-instructions"][name]
    if segment.executed_ns is None:
        clause = clauses["from-events"].get(name, clause)
    known = segment.cause is not Cause.UNKNOWN
    if known and segment.confidence is Confidence.GUESSED:
        clause = f"probably {clause}"
    task = f" ({_task_text(segment)})" if segment.task else ""
    place = f"{where(segment)}{_or_who_jumped(segment)}"
    return f"{clause.format(where=place, task=task)}: {_us(ns)}"


@cache
def _clauses() -> Mapping[str, Mapping[str, str]]:
    file = resources.files("rtscope.explain").joinpath("clauses.toml")
    return tomllib.loads(file.read_text("utf-8"))


def _is_waiting(segment: Segment) -> bool:
    """Tell whether the CPU executed nothing in a fifth of it or more."""
    executed_ns = segment.executed_ns
    return executed_ns is not None and 5 * executed_ns <= 4 * segment.duration_ns


def _executed(segment: Segment, *, explain_rest: bool) -> Iterator[str]:
    if _is_waiting(segment):
        executed = f"{_us(segment.executed_ns)} executed here"
        yield f"{executed}, the rest: this CPU paused" if explain_rest else executed


def _busiest(segment: Segment) -> Iterator[str]:
    """Tell what was awaited, if one CPU alone did one thing for much of the time."""
    others = [
        one
        for one in segment.other_cpus
        if not one.waits and one.share >= SHARE_OF_ANOTHER
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
    calls = " < ".join(other.callers[:CALLERS_SHOWN]) or other.name
    more = " < …" if len(other.callers) > CALLERS_SHOWN else ""
    task = f" ({_task_text(other)})" if other.task else ""
    return f"{calls}{more}{_or_who_jumped(other)}{task}"


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
    for segment in explanation.segments:
        if segment not in main:
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
