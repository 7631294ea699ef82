"""Findings about cycles that are not on time, and what could not be judged of them."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from rtscope.contract import CyclesEnd, WatchCost
from rtscope.host.units import plural
from rtscope.present.words import duration
from rtscope.programs.cycles.periods import Basis
from rtscope.verbs.app.cycles import Period, ThreadCycles
from rtscope.verbs.app.deadlines import UNSEEN, ended_by_yields
from rtscope.verbs.app.model import RANK, Examined, Finding, Observation, Unseen

_IDS = ("RA16", "RA17")
_ID = "RA17"
WAKEUP = "wakeup"
WAKEUP_BESIDE = "wakeup_beside"
"""Of the costs of watching: what it adds to a wake-up, and to one that interrupts."""


def with_cycles(
    examined: Examined, end: CyclesEnd, threads: Mapping[int, ThreadCycles]
) -> Examined:
    """Add what the cycles of the judged threads show, and what could not be seen."""
    findings = [
        *examined.findings,
        *(
            Finding(
                _ID,
                words,
                tid=one.line.tid,
                thread=one.name,
                count=late_count(period),
                variant=_variant(period),
            )
            for one in examined.judged
            if (cycles := threads.get(one.line.tid)) is not None
            and (period := cycles.period) is not None
            and (words := late_words(period))
        ),
    ]
    findings.sort(key=lambda one: (RANK[one.weight], one.id, -(one.count or 0)))
    return replace(
        examined,
        observation=_with_whole_cost(examined.observation, end),
        findings=tuple(findings),
        unseen=(*examined.unseen, *_unseen(examined, end, threads)),
    )


def cycles_by_yield(
    examined: Examined, threads: Mapping[int, ThreadCycles]
) -> set[int]:
    """Return the judged threads that end their cycles by a yield: no times."""
    made = {tid: len(one.cycles) for tid, one in threads.items()}
    return ended_by_yields(examined.judged, examined.observation.watch.threads, made)


def _with_whole_cost(seen: Observation, end: CyclesEnd) -> Observation:
    """
    Take what all watching adds to a wake-up: the recording, and then the rest.

    Each is a difference of two measurements one after the other: what the machine's
    other work does meanwhile changes less than from the first of them to the last.
    """
    costs = dict(seen.watch.end.costs)
    for name, plain_ns, recorded_ns in (
        (WAKEUP, end.wakeup_plain_ns, end.wakeup_recorded_ns),
        (WAKEUP_BESIDE, end.wakeup_beside_plain_ns, end.wakeup_beside_recorded_ns),
    ):
        rest = costs.get(name)
        if rest is None or not rest.counted_ns or not end.wakeup_recorded_ns:
            continue
        known = plain_ns and recorded_ns and rest.plain_ns
        counted_ns = recorded_ns + rest.counted_ns - rest.plain_ns if known else 0
        costs[name] = WatchCost(plain_ns, counted_ns, copied_ns=0)
    return replace(
        seen, watch=replace(seen.watch, end=replace(seen.watch.end, costs=costs))
    )


def _variant(period: Period) -> str:
    """Return as what periods without a cycle are found: a sleeper waits for others."""
    if period.basis is Basis.WAKEUPS and not (period.overruns or period.late_starts):
        return "unwoken"
    return "relative" if period.asks_relative else ""


def late_count(period: Period) -> int:
    """Return how many periods had no cycle, or one that did not end in time."""
    return _left_out(period) + (period.overruns or 0)


def _left_out(period: Period) -> int:
    """Return the periods in which the thread slept."""
    return max(0, (period.missed or 0) - (period.passed or 0))


def late_words(period: Period) -> str:
    """Return how cycles missed their times; empty if they did not."""
    words = []
    if left_out := _left_out(period):
        what = "wake-up" if period.basis is Basis.WAKEUPS else "cycle"
        words.append(f"{plural(left_out, 'period')} without a {what}")
    if period.late_starts:
        words.append(f"{period.late_starts:,} began a period late or more")
    if period.overruns:
        words.append(f"{period.overruns:,} ended after the next was due")
    if period.passed:
        passed = plural(period.passed, "more period")
        words.append(f"{passed} began meanwhile: skipped, or made up without a sleep")
    if words:
        others = "".join(f", at times {duration(ns)}" for ns in period.others_ns)
        words.append(f"the period is {duration(period.period_ns)}{others}")
    return ", ".join(words)


def _unseen(
    examined: Examined, end: CyclesEnd, threads: Mapping[int, ThreadCycles]
) -> Iterator[Unseen]:
    tracing = end.tracing
    if not tracing.enabled:
        yield Unseen(_IDS, "cycles", tracing.reason, tracing.remedy)
        return
    if end.not_watched:
        yield Unseen(
            _IDS, f"{end.not_watched} threads", "the agent records 128 at once", ""
        )
    yielding = cycles_by_yield(examined, threads)
    for one in examined.judged:
        thread = threads.get(one.line.tid)
        what = f"thread {one.line.tid} {one.name}"
        if one.line.tid in yielding:
            yield Unseen((_ID,), what, UNSEEN, "let it sleep to a time instead")
        elif thread is None:
            cause = "a thread made no cycle in this time"
            yield Unseen((_ID,), what, cause, "watch for longer: --duration 1m")
        elif thread.too_few:
            cause = (
                f"{plural(len(thread.cycles), 'cycle')} are too few to find a period"
            )
            remedy = "watch for longer: --duration 1m; or give its period: --period 1s"
            yield Unseen((_ID,), what, cause, remedy)
        elif thread.period is None and not thread.sleeps_for_intervals:
            cause = "no steady period was found in the wake-ups of a thread"
            yield Unseen((_ID,), what, cause, "give its period: --period 5ms")
        elif thread.period is not None and thread.period.unsure:
            cause = (
                f"{plural(thread.period.unsure, 'cycle')} of a thread ended after the "
                "next was due, if other wake-ups are a part of them"
            )
            yield Unseen(
                (_ID,), what, cause, "judge the time of a cycle: --response 5ms"
            )
