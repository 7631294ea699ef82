"""
An explanation in words: one sentence, and what casts doubt on it. Pure.

Names of functions come from a kernel that may be anybody's: who prints these texts
makes them harmless first.
"""

from collections.abc import Iterator, Mapping, Sequence

from rtscope.explain.model import Cause, Confidence, Explanation, Stretch
from rtscope.units import format_us

MAIN_SHARE = 0.1
"""A stretch of at least this share of the latency is told in the sentence."""
MAIN_STRETCHES = 3
CALLERS_TOLD = 3
TOLD_OF_ANOTHER = 0.5
"""A CPU that was as much in one function may hold the lock there."""
RESIDUAL_CAVEAT = 0.05
"""More of the latency without a cause than this casts doubt on the explanation."""

NOT_RECORDED = "not recorded"
"""The name of a stretch before the begin of a path."""

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
    main = main_stretches(explanation)
    head = (
        f"CPU {explanation.cpu} woke {format_us(explanation.latency_ns)} {virtual}µs "
        "late"
    )
    if not main:
        return f"{head}, and nothing is known of why."
    if not explanation.is_counted:
        return f"{head}: {_in_pieces(explanation)}."
    told = [_told(stretch, first=stretch is _first_waiting(main)) for stretch in main]
    rest = explanation.latency_ns - sum(s.duration_ns for s in main)
    end = f"; {_rest(explanation, main, rest)}" if rest > 0 else ""
    return f"{head}: {', then '.join(told)}{end}."


def _in_pieces(explanation: Explanation) -> str:
    """Tell the main causes, each with the sum of its pieces: ticks cut tasks up."""
    by_length = sorted(explanation.sums, key=lambda row: -row[1])
    least = MAIN_SHARE * explanation.latency_ns
    chosen = [row for row in by_length[:MAIN_STRETCHES] if row[1] >= least]
    blamed = [row for row in by_length if row[0] is explanation.culprit]
    if blamed and blamed[0] not in chosen:
        chosen = [*chosen[: MAIN_STRETCHES - 1], *blamed]
    chosen.sort(key=lambda row: row[0].begin_ns)
    told = [f"for {format_us(ns)} {_clause(stretch)}" for stretch, ns in chosen]
    names = {(stretch.cause, stretch.name) for stretch, _ in chosen}
    main = [s for s in explanation.stretches if (s.cause, s.name) in names]
    rest = explanation.latency_ns - sum(s.duration_ns for s in main)
    end = f"; {_rest(explanation, main, rest)}" if rest > 0 else ""
    return f"{', '.join(told)}{end}"


def main_stretches(explanation: Explanation) -> tuple[Stretch, ...]:
    """Return the longest stretches in their order, and the culprit in any case."""
    culprit = explanation.culprit
    by_length = sorted(explanation.stretches, key=lambda s: -s.duration_ns)
    least = MAIN_SHARE * explanation.latency_ns
    chosen = [s for s in by_length[:MAIN_STRETCHES] if s.duration_ns >= least]
    if culprit is not None and culprit not in chosen:
        chosen = [*chosen[: MAIN_STRETCHES - 1], culprit]
    return tuple(sorted(chosen, key=lambda s: s.begin_ns))


def where(stretch: Stretch) -> str:
    """Write the function of a stretch with its next callers: `a < b < c`."""
    shown = " < ".join(stretch.callers[:CALLERS_TOLD]) or stretch.name
    return f"{shown} < …" if len(stretch.callers) > CALLERS_TOLD else shown


def evidence(stretch: Stretch) -> tuple[str, ...]:
    """Return all that shows the cause of a stretch, a line for each."""
    task = (f"the task was {stretch.task}",) if stretch.task else ()
    return (
        *stretch.evidence,
        *task,
        *_other_cpu_lines(stretch),
        *_inside_lines(stretch),
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


def _told(stretch: Stretch, *, first: bool) -> str:
    clause = _clause(stretch)
    aside = "; ".join((*_turns(stretch, first=first), *_busiest(stretch)))
    text = f"for {format_us(stretch.duration_ns)} {clause}"
    return f"{text} ({aside})" if aside else text


def _clause(stretch: Stretch) -> str:
    clause = _CLAUSES[stretch.cause]
    if stretch.own_ns is None:
        clause = _FROM_EVENTS.get(stretch.cause, clause)
    known = stretch.cause is not Cause.UNKNOWN
    if known and stretch.confidence is Confidence.GUESSED:
        clause = f"probably {clause}"
    task = f", {stretch.task}," if stretch.task else ""
    return clause.format(where=where(stretch), task=task)


def _first_waiting(main: Sequence[Stretch]) -> Stretch | None:
    return next((s for s in main if _is_waiting(s)), None)


def _is_waiting(stretch: Stretch) -> bool:
    """Tell whether a fifth or more of it were turns of other CPUs."""
    own_ns = stretch.own_ns
    return own_ns is not None and 5 * own_ns <= 4 * stretch.duration_ns


def _turns(stretch: Stretch, *, first: bool) -> Iterator[str]:
    if _is_waiting(stretch):
        executing = f"executing {format_us(stretch.own_ns)} of it"
        yield f"{executing}, the rest were turns of other CPUs" if first else executing


def _busiest(stretch: Stretch) -> Iterator[str]:
    if stretch.cause is not Cause.LOCK or not stretch.other_cpus:
        return
    other = max(stretch.other_cpus, key=lambda m: m.share)
    if other.share >= TOLD_OF_ANOTHER:
        yield (
            f"meanwhile CPU {other.cpu} spent {100 * other.share:.0f} % of its own "
            f"time in {other.name}"
        )


def _rest(explanation: Explanation, main: Sequence[Stretch], rest_ns: int) -> str:
    """Tell what the others were, most first."""
    spent: dict[str, int] = {}
    for stretch in explanation.stretches:
        if stretch not in main:
            cause = str(stretch.cause)
            spent[cause] = spent.get(cause, 0) + stretch.duration_ns
    if explanation.residual_ns > 0:
        spent["unknown"] = spent.get("unknown", 0) + explanation.residual_ns
    named = sorted(spent.items(), key=lambda row: -row[1])
    parts = [f"{cause} {format_us(ns)}" for cause, ns in named[:3]]
    more = " and less" if len(named) > 3 else ""
    return f"the other {format_us(rest_ns)} are {', '.join(parts)}{more}"


def _other_cpu_lines(stretch: Stretch) -> Iterator[str]:
    for other in stretch.other_cpus:
        yield (
            f"meanwhile CPU {other.cpu} executed {format_us(other.own_ns)} µs, "
            f"{100 * other.share:.0f} % of it in {other.name}"
        )


def _inside_lines(stretch: Stretch) -> Iterator[str]:
    if stretch.own_ns and len(stretch.inside) > 1:
        named = ", ".join(
            f"{name} {share(ns, stretch.own_ns)}" for name, ns in stretch.inside[:3]
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
        s.duration_ns for s in explanation.stretches if s.cause is Cause.UNKNOWN
    )
    if unknown > RESIDUAL_CAVEAT * latency:
        yield _unknown(explanation, share(unknown, latency))


def _guessed(explanation: Explanation) -> Iterator[str]:
    guesses: dict[Cause, int] = {}
    for stretch in explanation.stretches:
        known = stretch.cause is not Cause.UNKNOWN
        if known and stretch.confidence is Confidence.GUESSED:
            ns = guesses.get(stretch.cause, 0) + stretch.duration_ns
            guesses[stretch.cause] = ns
    for cause, ns in guesses.items():
        if ns > RESIDUAL_CAVEAT * explanation.latency_ns:
            part = share(ns, explanation.latency_ns)
            yield f"{part} of the latency are a guess: {cause}"


def _unknown(explanation: Explanation, unknown_share: str) -> str:
    unknown = [s for s in explanation.stretches if s.cause is Cause.UNKNOWN]
    if all(stretch.name == NOT_RECORDED for stretch in unknown):
        return (
            f"{unknown_share} of the latency were not recorded: the cause may lie there"
        )
    return f"the cause of {unknown_share} of the latency is not known"
