"""The page of a test: the answer, its worst cycle over all CPUs, its responses."""

from collections.abc import Iterator, Sequence

from rtscope.explain.outsidetimeline import NOT_SEEN, marks_of, outside_timeline
from rtscope.host.escape import all_printable, printable
from rtscope.host.units import plural
from rtscope.present.charts.cyclepath import cycle_path
from rtscope.present.document import (
    Block,
    Chart,
    Document,
    Section,
)
from rtscope.programs.outside.file import ProgramRecord
from rtscope.programs.outside.model import OutsideThread
from rtscope.verbs.test.answer import Answer, answer_document, worst_of
from rtscope.verbs.test.file import ProgramTest
from rtscope.verbs.test.judge import VIRTUAL, SeenStart, budget_of, judged_threads
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
    if recorded is not None:
        path = recorded.path
        yield from cycle_path(
            *(path.timeline, path.explanation),
            name="worst",
            marks=path.marks,
            unit=VIRTUAL,
        )
    elif record is not None:
        yield from cycle_path(
            *(all_printable(outside_timeline(record, worst.cycle)), None),
            name="worst",
            marks=all_printable(marks_of(worst.cycle)),
            unit=VIRTUAL,
            not_seen=NOT_SEEN,
        )


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
