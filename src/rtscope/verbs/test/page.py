"""The page of a test: the answer, its worst cycle over all CPUs, its responses."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from rtscope.explain.timeline import Timeline
from rtscope.explain.words import caveats_of, where
from rtscope.host.escape import all_printable, printable
from rtscope.host.units import format_us, plural
from rtscope.present.charts.bars import colour_of
from rtscope.present.charts.flame import flame_chart, note_of_timeline
from rtscope.present.document import (
    Block,
    Chart,
    Column,
    Document,
    Folded,
    Item,
    Key,
    Phrase,
    Section,
    Table,
    Words,
)
from rtscope.present.words import as_sentence
from rtscope.programs.outside.file import ProgramRecord
from rtscope.programs.outside.model import OutsideThread
from rtscope.verbs.test.answer import Answer, answer_document, worst_of
from rtscope.verbs.test.baseline import VIRTUAL
from rtscope.verbs.test.cyclechart import NOT_SEEN, marks_of, outside_timeline
from rtscope.verbs.test.file import ProgramTest
from rtscope.verbs.test.judge import SeenStart, budget_of, judged_threads
from rtscope.verbs.test.latencyparts import parts_of
from rtscope.verbs.test.recorded import Recorded
from rtscope.verbs.test.responsecharts import over_time_of, parts_chart, spread_of

MOST_CHARTED = 24
"""Threads with charts of their responses."""


def page_document(
    answer: Answer, record: ProgramRecord | None, recorded: Recorded | None
) -> Document:
    """
    Return the page; `record` is of the start with the worst cycle.

    What was `recorded` of that cycle has all CPUs; without it, the program's part of
    them is drawn.
    """
    return answer_document(
        answer,
        worst=tuple(_cycle(answer, record, recorded)),
        parts=tuple(_latency_parts(answer)),
        more=tuple(_responses(answer)),
    )


# --- the worst cycle ------------------------------------------------------------------


def _cycle(
    answer: Answer, record: ProgramRecord | None, recorded: Recorded | None
) -> Iterator[Block]:
    worst = worst_of(answer)
    if worst is None or (record is None and recorded is None):
        return
    cycle = worst.cycle
    timeline = recorded.timeline if recorded else None
    if timeline is None and record is not None:
        timeline = all_printable(outside_timeline(record, cycle))
    assert timeline is not None
    explanation = recorded.explanation if recorded else None
    drawn = flame_chart(
        timeline,
        explanation,
        name="worst",
        unit=VIRTUAL,
        marks=all_printable(marks_of(cycle)),
    )
    yield Chart(Markup(drawn), _caption(timeline, recorded))
    if recorded is None:
        return
    for caveat in caveats_of(recorded.explanation):
        yield (f"{as_sentence(caveat)}", "limit")
    segments = recorded.explanation.segments
    dominant = recorded.explanation.dominant
    yield Folded(f"All {plural(len(segments), 'segment')}", (_segments(recorded),))
    if dominant is not None and dominant.evidence:
        yield Folded(
            f"Evidence for {dominant.cause}", tuple(map(Item, dominant.evidence))
        )


def _caption(timeline: Timeline, recorded: Recorded | None) -> str:
    began = f"in {VIRTUAL}µs since the cycle was due"
    if recorded is None:
        return f"Who had each CPU, {began}. {NOT_SEEN}"
    left_out = note_of_timeline(timeline, unit=VIRTUAL)
    return (
        f"What each CPU executed, {began}: the task, and below it its calls. Orange "
        f"and bold: what took longest, and its callers. {left_out}"
    ).rstrip()


def _segments(recorded: Recorded) -> Table:
    heads = ("no.", "from (µs)", "length (µs)", "executing (µs)", "cause", "where")
    columns = (
        Column(head, right=number < 4, fit="wraps" if head == "where" else "cut")
        for number, head in enumerate(heads)
    )
    dominant = recorded.explanation.dominant
    rows: list[Sequence[Phrase]] = [
        (
            str(number),
            format_us(one.begin_ns),
            format_us(one.duration_ns),
            format_us(one.executed_ns),
            Words((Key(colour_of(one)), one.cause.value)),
            (where(one), "strong" if one is dominant else ""),
        )
        for number, one in enumerate(recorded.explanation.segments, 1)
    ]
    return Table(tuple(columns), rows, label="Segments of the worst cycle")


# --- all cycles -----------------------------------------------------------------------


def _latency_parts(answer: Answer) -> Iterator[Block]:
    for number, (one, thread) in enumerate(_charted(answer)[:MOST_CHARTED], 1):
        name, samples = printable(thread.name), parts_of(thread).samples
        if samples:
            run = f", {one.name}" if len(answer.tested) > 1 else ""
            yield Chart(
                parts_chart(samples, thread=name, name=f"parts{number}"),
                f"{name}{run}: in all cycles.",
                beside=True,
            )


def _charted(answer: Answer) -> Sequence[tuple[SeenStart, OutsideThread]]:
    return [
        (one, thread)
        for one in answer.tested
        for thread in judged_threads(answer.test, one.outside)
    ]


def _responses(answer: Answer) -> Iterator[Block]:
    every = _charted(answer)
    charts = [
        chart
        for number, (one, thread) in enumerate(every[:MOST_CHARTED], 1)
        for chart in _of_thread(answer.test, one, thread, number, len(answer.tested))
    ]
    if len(every) > MOST_CHARTED:
        left = plural(len(every) - MOST_CHARTED, "more thread")
        charts.append((f"{left}: see the table.", "muted"))
    if charts:
        yield Section("Responses", tuple(charts))


def _of_thread(
    test: ProgramTest, one: SeenStart, thread: OutsideThread, number: int, starts: int
) -> Iterator[Block]:
    limit_ns = budget_of(test, thread.name).response_ns
    name = printable(thread.name)
    run = f", {one.name}" if starts > 1 else ""
    yield Chart(
        spread_of(thread, limit_ns, name=f"spread{number}"),
        f"{name}{run}: cycles by their response, counts on a logarithmic axis.",
        beside=True,
    )
    yield Chart(
        over_time_of(
            thread, limit_ns, began_ns=one.outside.began_ns, name=f"time{number}"
        ),
        f"{name}{run}: the response of each cycle; the circle is the worst.",
        beside=True,
    )
