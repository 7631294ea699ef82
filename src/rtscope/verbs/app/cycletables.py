"""The cycles of a program's threads: in the terminal, and as rows of JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from textwrap import wrap
from typing import Any, Literal

from rtscope.contract import CyclesEnd
from rtscope.explain.model import Explanation
from rtscope.explain.words import sentence
from rtscope.host.escape import printable
from rtscope.host.units import NS_PER_S, count, format_us, plural
from rtscope.present.document import Column, Phrase, Table, Weight
from rtscope.present.words import duration
from rtscope.programs.cycles.periods import Basis
from rtscope.stats.figures import named, percentiles
from rtscope.stats.summary import Summary, buckets_of
from rtscope.verbs.app.cycles import (
    Cycle,
    Period,
    ThreadCycles,
)

MAX_THREADS = 2
WIDE = 100_000
"""Characters of a line in a pipe or with -v: more is none of a real program."""
NAMES = ("wake-up latency", "execution time", "response time")
TOO_FEW = "too few to find a period"
HEAD, CELL = 17, 11
"""Of a table on the terminal: first column, width of another if there is room."""


@dataclass(frozen=True, slots=True)
class JudgedCycles:
    """The cycles of the judged threads, and what is known of their recording."""

    from_ns: int
    end: CyclesEnd
    threads: Mapping[int, ThreadCycles]
    """By TID."""
    names: Mapping[int, str]
    """Of all judged threads, by TID."""
    longest: Mapping[int, str]
    """What made the longest cycle of a thread long, in a sentence."""
    unseen: Mapping[int, str] = field(default_factory=dict)
    """Why the cycles of a thread are not seen, if that is known."""


def cycle_lines(
    cycles: JudgedCycles, *, width: int | None = 100, everything: bool = False
) -> Iterator[Phrase | Table]:
    """
    Write the cycles of each thread: at most 10 lines for each of two, or all.

    Without a width no line is cut.
    """
    if not cycles.end.tracing.enabled:
        return
    shown = len(cycles.names) if everything else MAX_THREADS
    room, most = (WIDE, None) if everything else (width or WIDE, 3)
    for tid in list(cycles.names)[:shown]:
        who = f"thread {tid} {cycles.names[tid]}"
        thread = cycles.threads.get(tid)
        if thread is None:
            why = cycles.unseen.get(tid, "")
            none = f"cycles not seen, because {why}" if why else "no wake-up was seen"
            yield (printable(f"{who}: {none}"), "strong")
            continue
        yield from _wrapped(f"{who}: {cycle_words(thread)}", room, most, "strong")
        yield times_table(thread, "cycles", width=width or 100)
        if said := cycles.longest.get(tid):
            yield from _wrapped(f"  longest cycle: {said}", room, most)
    left = len(cycles.names) - shown
    if left > 0:
        yield (f"and {plural(left, 'more thread')}: see -v", "muted")
    for caveat in caveats(cycles.end):
        yield (f"caveat: {caveat}", "limit")
    if cycles.end.agent_cpu_ns:  # none: from outside of a board
        yield (cost_words(cycles), "muted")


def cost_words(cycles: JudgedCycles) -> str:
    """Say what the recording took, of the machine that it was made on."""
    lasted_ns = cycles.end.to_ns - cycles.from_ns
    share = 100 * cycles.end.agent_cpu_ns / max(1, lasted_ns)
    events = sum(cpu.events for cpu in cycles.end.tracing.cpus)
    return (
        f"recording the cycles took {duration(lasted_ns)}, {share:.2f} % of a "
        f"CPU and {events:,} events of the kernel"
    )


def _wrapped(
    text: str, width: int, lines: int | None, weight: Weight = ""
) -> Iterator[Phrase]:
    indent = "    "
    clean = printable(text, limit=WIDE)
    for one in wrap(clean, width, subsequent_indent=indent, max_lines=lines):
        yield (one, weight)


def caveats(end: CyclesEnd) -> Iterator[str]:
    """Give what limits the cycles that were recorded."""
    if end.losses:
        yield (
            f"the kernel lost events {plural(end.losses, 'time')}: incomplete cycles "
            "are not counted, and missed periods there are unknown"
        )
    if end.left_out:
        yield f"{end.left_out:,} later runs of threads are not counted"
    if end.not_watched:
        yield f"{plural(end.not_watched, 'thread')} beyond 128 were not recorded"


def cycle_words(thread: ThreadCycles) -> str:
    """Describe the period of a thread in a sentence."""
    period = thread.period
    said = [plural(len(thread.cycles), "cycle")]
    if period is not None:
        others = "".join(f", at times {format_us(ns)} µs" for ns in period.others_ns)
        every = f"every {format_us(period.period_ns)} µs{others}"
        said.append(f"{every} {_BASES[period.basis]}")
        if period.missed is not None:
            missed = f"{period.missed:,} missed" if period.missed else "none missed"
            said.append(missed)
        if period.overruns:
            said.append(f"{period.overruns:,} longer than the period")
    elif thread.sleeps_for_intervals:
        said.append("each after a sleep for an interval, between them any time")
    elif thread.too_few:
        said.append(TOO_FEW)
    else:
        said.append("each from a wake-up by something else than a steady timer")
    if thread.sleeps_for_intervals:
        said.append("nothing is due, so nothing is missed")
    if period is not None:
        said += filter(None, [drift_words(period)])
    if at_once := sum(not one.slept for one in thread.cycles):
        said.append(f"{at_once:,} began at once, their time had passed")
    return "; ".join(filter(None, [", ".join(said), *_other_words(thread)]))


_BASES = {
    Basis.TIME: "by a timer set to a time",
    Basis.INTERVAL: "by a timer set to an interval",
    Basis.WAKEUPS: "by wake-ups without a timer of its own",
    Basis.GIVEN: "as you gave it",
}


def _other_words(thread: ThreadCycles) -> Iterator[str]:
    """Say how many cycles and wake-ups are in no number."""
    longest = f", the longest {format_us(thread.cut_longest_ns)} µs"
    known = longest if thread.cut_longest_ns else ""
    for number, what in (
        (thread.cut, f"without all events{known}"),
        (thread.before, "due before the recording began"),
        (thread.withdrawn, "whose events contradict them"),
        (thread.between, "wake-ups for something else"),
    ):
        if number:
            yield f"{number:,} more {what}"


def drift_words(period: Period) -> str:
    """Say by how much its time moves; empty if it does not."""
    if not period.drift_ns_per_s:
        return ""
    later_ns = period.drift_ns_per_s
    share = 100 * later_ns / (NS_PER_S - later_ns)
    return f"{count(share)} % longer than the interval it asks for"


def times_table(
    thread: ThreadCycles, figures: Literal["cycles", "cycles_page"], *, width: int = 100
) -> Table:
    """Return the times of a thread's cycles, with these figures of each."""
    shown = named(figures)
    rows = [
        [name, *(figure.show(figure.of_summary(spread)) for figure in shown.values())]
        for name, spread in spreads(thread)
    ]
    room = 2 + HEAD + (1 + CELL) * len(shown) <= width
    columns = (Column(head, right=True, width=CELL if room else None) for head in shown)
    names = Column("µs", width=HEAD)
    return Table((names, *columns), rows, gap=1, indent=2, label="Times of the cycles")


def spreads(thread: ThreadCycles) -> Iterator[tuple[str, Summary]]:
    """Yield the times of a thread's cycles with their names."""
    times = thread.latency, thread.execution, thread.response
    for name, spread in zip(NAMES, times, strict=True):
        if spread is not None:
            yield name, spread


def cycles_row(cycles: JudgedCycles) -> dict[str, Any]:
    """Return the cycles for a JSON document: stable keys, times in ns."""
    end = cycles.end
    return {
        "recorded": end.tracing.enabled,
        "from_ns": cycles.from_ns,
        "window_ns": end.to_ns - cycles.from_ns,
        "runs": end.runs,
        "runs_cut": end.cut,
        "runs_left_out": end.left_out,
        "losses": end.losses,
        "agent_cpu_ns": end.agent_cpu_ns,
        "threads": [
            _thread_row(cycles, tid, cycles.threads[tid])
            for tid in cycles.names
            if tid in cycles.threads
        ],
        "threads_without_wakeup": [
            tid
            for tid in cycles.names
            if end.tracing.enabled and tid not in cycles.threads
        ],
    }


def _thread_row(cycles: JudgedCycles, tid: int, thread: ThreadCycles) -> dict[str, Any]:
    period = thread.period
    row: dict[str, Any] = {
        "tid": tid,
        "thread": cycles.names[tid],
        "cycles": len(thread.cycles),
        "cycles_cut": thread.cut,
        "cycles_before": thread.before,
        "cycles_withdrawn": thread.withdrawn,
        "cut_longest_ns": thread.cut_longest_ns,
        "wakeups_between": thread.between,
        "sleeps_for_intervals": thread.sleeps_for_intervals,
        "began_at_once": sum(not one.slept for one in thread.cycles),
        "preempted": sum(one.preempted for one in thread.cycles),
        "waits": sum(one.waits for one in thread.cycles),
        "period": None,
        "latency_ns": None if thread.latency is None else spread_row(thread.latency),
        "execution_ns": spread_row(thread.execution),
        "response_ns": spread_row(thread.response),
        "longest": _longest_row(thread.worst, cycles.longest.get(tid, "")),
    }
    if period is not None:
        jitter = period.start_jitter_ns
        row["period"] = {
            "period_ns": period.period_ns,
            "other_periods_ns": list(period.others_ns),
            "basis": period.basis.value,
            "absolute": period.absolute,
            "exact_share": period.exact_share,
            "missed": period.missed,
            "passed": period.passed,
            "late_starts": period.late_starts,
            "overruns": period.overruns,
            "drift_ns_per_s": period.drift_ns_per_s,
            "start_jitter_ns": None if jitter is None else spread_row(jitter),
        }
    return row


def _longest_row(cycle: Cycle, words: str) -> dict[str, Any]:
    return {
        **asdict(cycle),
        "latency_ns": cycle.latency_ns,
        "response_ns": cycle.response_ns,
        "explained": words,
    }


def spread_row(spread: Summary) -> dict[str, Any]:
    """Return the numbers about samples; a percentile that is not known is null."""
    return {
        "samples": spread.samples,
        "min": spread.min_ns,
        "mean": spread.mean_ns,
        "max": spread.max_ns,
        "percentiles": {
            f"{pct:g}": figure.of_summary(spread) for figure, pct in percentiles()
        },
        "buckets": [list(bucket) for bucket in buckets_of(spread)],
    }


def longest_words(thread: ThreadCycles, cycle: Cycle, whole: Explanation) -> str:
    """Say where the time of a cycle went, in the words of `rtscope explain`."""
    begin = "its time" if cycle.timed else "its wake-up"
    spent = f"{format_us(cycle.response_ns)} µs from {begin} to its end"
    worst_ns = max(thread.worst.response_ns, thread.cut_longest_ns)
    if worst_ns > cycle.response_ns:
        spent = (
            f"{format_us(worst_ns)} µs, without a trace that explains it; of those "
            f"with one: {spent}"
        )
    waited_ns = cycle.response_ns - cycle.latency_ns - cycle.ran_ns
    words = [
        f"{format_us(cycle.latency_ns)} µs until it got the CPU",
        f"{format_us(cycle.ran_ns)} µs on it",
    ]
    if waited_ns > 0:
        words.append(f"{format_us(waited_ns)} µs preempted or waiting")
    return sentence(whole, of=f"{spent}: {', '.join(words)}")
