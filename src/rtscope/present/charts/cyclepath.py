"""A cycle of a program over all CPUs: the flame chart, its segments, the evidence."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from rtscope.explain.model import Explanation
from rtscope.explain.timeline import Timeline
from rtscope.explain.words import caveats_of, where
from rtscope.host.units import format_us, plural
from rtscope.present.charts.bars import colour_of
from rtscope.present.charts.flame import Mark, flame_chart, note_of_timeline
from rtscope.present.document import (
    Block,
    Chart,
    Column,
    Folded,
    Item,
    Key,
    Phrase,
    Table,
    Words,
)
from rtscope.present.words import as_sentence


def cycle_path(
    timeline: Timeline,
    path: Explanation | None,
    *,
    name: str,
    marks: Sequence[Mark],
    unit: str,
    not_seen: str = "",
    label: str = "Segments of the worst cycle",
) -> Iterator[Block]:
    """
    Yield the chart, and of a path its segments; times in ns since the cycle was due.

    `name` is its own in a page, `unit` stands before the unit of its times. Without a
    path the chart is of the program alone, and `not_seen` says what it lacks.
    """
    drawn = flame_chart(timeline, path, name=name, unit=unit, marks=marks)
    began = f"in {unit}µs since the cycle was due"
    if path is None:
        yield Chart(Markup(drawn), f"Who had each CPU, {began}. {not_seen}")
        return
    left_out = note_of_timeline(timeline, unit=unit)
    caption = (
        f"What each CPU executed, {began}: the task, and below it its calls. Orange "
        f"and bold: what took longest, and its callers. {left_out}"
    )
    yield Chart(Markup(drawn), caption.rstrip())
    for caveat in caveats_of(path):
        yield (f"{as_sentence(caveat)}", "limit")
    number = plural(len(path.segments), "segment")
    yield Folded(f"All {number}", (_segments(path, label),))
    dominant = path.dominant
    if dominant is not None and dominant.evidence:
        yield Folded(
            f"Evidence for {dominant.cause}", tuple(map(Item, dominant.evidence))
        )


def _segments(path: Explanation, label: str) -> Table:
    heads = ("no.", "from (µs)", "length (µs)", "executing (µs)", "cause", "where")
    columns = (
        Column(head, right=number < 4, fit="wraps" if head == "where" else "cut")
        for number, head in enumerate(heads)
    )
    rows: list[Sequence[Phrase]] = [
        (
            str(number),
            format_us(one.begin_ns),
            format_us(one.duration_ns),
            format_us(one.executed_ns),
            Words((Key(colour_of(one)), one.cause.value)),
            (where(one), "strong" if one is path.dominant else ""),
        )
        for number, one in enumerate(path.segments, 1)
    ]
    return Table(tuple(columns), rows, label=label)
