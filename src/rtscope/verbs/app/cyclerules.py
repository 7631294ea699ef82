"""The findings about cycles, and what could not be seen of them."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from rtscope.contract import CyclesEnd
from rtscope.host.units import format_duration
from rtscope.verbs.app.cycles import Period, ThreadCycles
from rtscope.verbs.app.model import RANK, Examined, Finding, Unseen

_IDS = ("RA16", "RA17")


def with_cycles(
    examined: Examined, end: CyclesEnd, threads: Mapping[int, ThreadCycles]
) -> Examined:
    """Add what the cycles of the judged threads show, and what could not be seen."""
    findings = [
        *examined.findings,
        *(
            Finding(
                "RA17",
                words,
                tid=one.line.tid,
                thread=one.name,
                count=late_count(period),
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
        findings=tuple(findings),
        unseen=(*examined.unseen, *_unseen(examined, end, threads)),
    )


def late_count(period: Period) -> int:
    """Return how many periods had no cycle, or one that did not end in time."""
    return period.missed + period.overruns


def late_words(period: Period) -> str:
    """Return how cycles missed their times; empty if they did not."""
    words = [
        f"{number:,} {what}"
        for number, what in (
            (period.missed, "periods without a cycle"),
            (period.late_starts, "began a period late or more"),
            (period.overruns, "ended after the next was due"),
        )
        if number
    ]
    if words:
        words.append(f"the period is {format_duration(period.period_ns)}")
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
