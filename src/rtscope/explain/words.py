"""
An explanation in words: one sentence, and what casts doubt on it. Pure.

Names of functions come from a kernel that may be anybody's: who prints these texts
makes them harmless first.
"""

from collections.abc import Iterator, Mapping, Sequence

from rtscope.explain.model import Cause, Confidence, Explanation, Segment
from rtscope.units import format_us

MAIN_SHARE = 0.1
"""A segment of at least this share of the latency is told in the sentence."""
MAIN_SEGMENTS = 3
CALLERS_TOLD = 3
TOLD_OF_ANOTHER = 0.5
"""A CPU that was as much in one function may hold the lock there."""
RESIDUAL_CAVEAT = 0.05
"""More of the latency without a cause than this casts doubt on the explanation."""

NOT_RECORDED = "not recorded"
"""The name of a segment before the begin of a path."""

_CLAUSES: Mapping[Cause, str] = {
    Cause.INTERRUPTS_OFF: "interrupts were off in {where}",
    Cause.EARLIER_INTERRUPT: "an earlier interrupt was in {where}",
    Cause.IDLE_EXIT: "it left idle in {where}",
    Cause.DELIVERY: "no interrupt came, though they were on, while it was in {where}",
    Cause.TIMER_INTERRUPT: "it was in the timer's own interrupt",
    Cause.OTHER_INTERRUPT: "another interrupt was in {where}",
    Cause.TIMER_CALLBACK: "another timer's callback was in {where}",
    Cause.SOFTIRQ: "a softirq was in {where}",
    Cause.PREEMPTION_OFF: "preemption was off in {where}",
    Cause.LOCK: "it waited for a lock in {where}",
    Cause.SCHEDULER: "it was in the scheduler",
    Cause.OTHER_TASK: "another task{task} ran in {where}",
    Cause.NOT_REALTIME: "another task{task} ran in {where}, for the thread is not "
    "real-time",
    Cause.THROTTLED: "real-time threads were throttled, and another task{task} ran in "
    "{where}",
    Cause.FAIR_SERVER: "the fair server let another task{task} run in {where}",
    Cause.TIMER_SLACK: "the timer of a thread that is not real-time might wait while "
    "it was in {where}",
    Cause.STOPPED: "the thread itself was stopped ({where})",
    Cause.PAGE_FAULT: "a page fault was in {where}",
    Cause.RETURN: "it was on the way back to the thread in {where}",
    Cause.LATE_TIMER: "the timer waited for its softirq in {where}",
    Cause.HARDWARE: "hardware or a hypervisor took it",
    Cause.UNKNOWN: "nothing is known ({where})",
}


_FROM_EVENTS: Mapping[Cause, str] = {
    Cause.EARLIER_INTERRUPT: "an earlier interrupt was not yet over: {where}",
    Cause.IDLE_EXIT: "the CPU was leaving {where}",
    Cause.OTHER_INTERRUPT: "another interrupt was handled: {where}",
    Cause.TIMER_CALLBACK: "other timers expired: {where}",
    Cause.SOFTIRQ: "the softirq {where} ran",
    Cause.OTHER_TASK: "another task ran: {where}",
    Cause.NOT_REALTIME: "another task ran, for the thread is not real-time: {where}",
    Cause.THROTTLED: "real-time threads were throttled, and another task ran: {where}",
    Cause.FAIR_SERVER: "the fair server let another task run: {where}",
    Cause.TIMER_SLACK: "the timer of a thread that is not real-time might wait",
    Cause.RETURN: "it was on the way back to the thread",
    Cause.LATE_TIMER: "the timer expired late: {where}",
    Cause.UNKNOWN: "what it was cannot be known: {where}",
}
"""Where names are of tasks and interrupts, and no instruction was counted."""


def sentence(explanation: Explanation, *, virtual: str = "") -> str:
    """
    Say in one sentence what made a wake-up late; its times are microseconds.

    `virtual` stands before the unit of a time that is no board's: "virtual ".
    """
    main = main_segments(explanation)
    head = (
        f"CPU {explanation.cpu} woke {format_us(explanation.latency_ns)} {virtual}µs "
        "late"
    )
    if not main:
        return f"{head}, and nothing is known of why."
    if not explanation.is_counted:
        return f"{head}: {_in_pieces(explanation)}."
    told = [_told(segment, first=segment is _first_waiting(main)) for segment in main]
    rest = explanation.latency_ns - sum(s.duration_ns for s in main)
    end = f"; {_rest(explanation, main, rest)}" if rest > 0 else ""
    return f"{head}: {', then '.join(told)}{end}."


def _in_pieces(explanation: Explanation) -> str:
    """Tell the main causes, each with the sum of its pieces: ticks cut tasks up."""
    by_length = sorted(explanation.sums, key=lambda row: -row[1])
    least = MAIN_SHARE * explanation.latency_ns
    chosen = [row for row in by_length[:MAIN_SEGMENTS] if row[1] >= least]
    blamed = [row for row in by_length if row[0] is explanation.dominant]
    if blamed and blamed[0] not in chosen:
        chosen = [*chosen[: MAIN_SEGMENTS - 1], *blamed]
    chosen.sort(key=lambda row: row[0].begin_ns)
    told = [f"for {format_us(ns)} {_clause(segment)}" for segment, ns in chosen]
    names = {(segment.cause, segment.name) for segment, _ in chosen}
    main = [s for s in explanation.segments if (s.cause, s.name) in names]
    rest = explanation.latency_ns - sum(s.duration_ns for s in main)
    end = f"; {_rest(explanation, main, rest)}" if rest > 0 else ""
    return f"{', '.join(told)}{end}"


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
    shown = " < ".join(segment.callers[:CALLERS_TOLD]) or segment.name
    return f"{shown} < …" if len(segment.callers) > CALLERS_TOLD else shown


def evidence(segment: Segment) -> tuple[str, ...]:
    """Return all that shows the cause of a segment, a line for each."""
    task = (f"the task was {segment.task}",) if segment.task else ()
    return (
        *segment.evidence,
        *task,
        *_other_cpu_lines(segment),
        *_inside_lines(segment),
    )


def doubts(explanation: Explanation) -> tuple[str, ...]:
    """Return what limits an explanation: a residual, a cut path, a wrong policy."""
    return (
        *_of_the_sum(explanation),
        *_guessed(explanation),
        *explanation.notes,
    )


def share(part_ns: int, whole_ns: int) -> str:
    """Write a share in percent."""
    return f"{100 * part_ns / whole_ns:.1f} %" if whole_ns > 0 else "0.0 %"


def _told(segment: Segment, *, first: bool) -> str:
    clause = _clause(segment)
    aside = "; ".join((*_turns(segment, first=first), *_busiest(segment)))
    text = f"for {format_us(segment.duration_ns)} {clause}"
    return f"{text} ({aside})" if aside else text


def _clause(segment: Segment) -> str:
    clause = _CLAUSES[segment.cause]
    if segment.own_ns is None:
        clause = _FROM_EVENTS.get(segment.cause, clause)
    known = segment.cause is not Cause.UNKNOWN
    if known and segment.confidence is Confidence.GUESSED:
        clause = f"probably {clause}"
    task = f", {segment.task}," if segment.task else ""
    return clause.format(where=where(segment), task=task)


def _first_waiting(main: Sequence[Segment]) -> Segment | None:
    return next((s for s in main if _is_waiting(s)), None)


def _is_waiting(segment: Segment) -> bool:
    """Tell whether a fifth or more of it were turns of other CPUs."""
    own_ns = segment.own_ns
    return own_ns is not None and 5 * own_ns <= 4 * segment.duration_ns


def _turns(segment: Segment, *, first: bool) -> Iterator[str]:
    if _is_waiting(segment):
        executing = f"executing {format_us(segment.own_ns)} of it"
        yield f"{executing}, the rest were turns of other CPUs" if first else executing


def _busiest(segment: Segment) -> Iterator[str]:
    if segment.cause is not Cause.LOCK or not segment.other_cpus:
        return
    other = max(segment.other_cpus, key=lambda m: m.share)
    if other.share >= TOLD_OF_ANOTHER:
        yield (
            f"meanwhile CPU {other.cpu} spent {100 * other.share:.0f} % of its own "
            f"time in {other.name}"
        )


def _rest(explanation: Explanation, main: Sequence[Segment], rest_ns: int) -> str:
    """Tell what the others were, most first."""
    spent: dict[str, int] = {}
    for segment in explanation.segments:
        if segment not in main:
            cause = str(segment.cause)
            spent[cause] = spent.get(cause, 0) + segment.duration_ns
    if explanation.residual_ns > 0:
        spent["unknown"] = spent.get("unknown", 0) + explanation.residual_ns
    named = sorted(spent.items(), key=lambda row: -row[1])
    parts = [f"{cause} {format_us(ns)}" for cause, ns in named[:3]]
    more = " and less" if len(named) > 3 else ""
    return f"the other {format_us(rest_ns)} are {', '.join(parts)}{more}"


def _other_cpu_lines(segment: Segment) -> Iterator[str]:
    for other in segment.other_cpus:
        yield (
            f"meanwhile CPU {other.cpu} executed {format_us(other.own_ns)} µs, "
            f"{100 * other.share:.0f} % of it in {other.name}"
        )


def _inside_lines(segment: Segment) -> Iterator[str]:
    if segment.own_ns and len(segment.inside) > 1:
        named = ", ".join(
            f"{name} {share(ns, segment.own_ns)}" for name, ns in segment.inside[:3]
        )
        yield f"executed most: {named}"


def _of_the_sum(explanation: Explanation) -> Iterator[str]:
    latency, residual = explanation.latency_ns, explanation.residual_ns
    if abs(residual) > RESIDUAL_CAVEAT * latency:
        yield (
            f"{share(residual, latency)} of the latency lie in no part: the "
            "explanation may miss the cause"
        )
    unknown = sum(
        s.duration_ns for s in explanation.segments if s.cause is Cause.UNKNOWN
    )
    if unknown > RESIDUAL_CAVEAT * latency:
        yield _unknown(explanation, share(unknown, latency))


def _guessed(explanation: Explanation) -> Iterator[str]:
    guesses: dict[Cause, int] = {}
    for segment in explanation.segments:
        known = segment.cause is not Cause.UNKNOWN
        if known and segment.confidence is Confidence.GUESSED:
            ns = guesses.get(segment.cause, 0) + segment.duration_ns
            guesses[segment.cause] = ns
    for cause, ns in guesses.items():
        if ns > RESIDUAL_CAVEAT * explanation.latency_ns:
            part = share(ns, explanation.latency_ns)
            yield f"{part} of the latency are a guess: {cause}"


def _unknown(explanation: Explanation, unknown_share: str) -> str:
    unknown = [s for s in explanation.segments if s.cause is Cause.UNKNOWN]
    if all(segment.name == NOT_RECORDED for segment in unknown):
        return (
            f"{unknown_share} of the latency were not recorded: the cause may lie there"
        )
    return f"the cause of {unknown_share} of the latency is not known"
