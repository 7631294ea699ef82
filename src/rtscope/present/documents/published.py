"""Records beside a published table: all of it, and one look at a terminal."""

from collections.abc import Iterator, Sequence

from rtscope.host.units import plural
from rtscope.present.document import (
    Block,
    Document,
    Item,
    Notes,
    Span,
    Table,
    Words,
    table,
)
from rtscope.present.documents.shared import Form, bullets, strong_if
from rtscope.present.model.published_comparison import (
    PublishedComparison,
    PublishedRow,
)
from rtscope.present.render.fitted import Room, rows_left_out
from rtscope.present.tables import measured_cells, published_cells
from rtscope.present.words import NOTHING, capital, enumeration, ratio
from rtscope.stats.figures import columns


def published_document(comparison: PublishedComparison, form: Form) -> Document:
    """Return all of a comparison."""
    blocks = tuple(_published(comparison, form))
    return Document(comparison.title, blocks, comparison.made_by)


def _published(comparison: PublishedComparison, form: Form) -> Iterator[Block]:
    yield f"Published: {comparison.table.source}."
    kernels = [f"{name} ({kind.value})" for kind, name in comparison.kernels.items()]
    yield f"Measured: {comparison.machine}, {enumeration(kernels)}."
    yield ""
    yield comparison.summary
    yield ""
    yield _table(comparison.rows, form)
    unit = (
        f"published in µs, measured in {comparison.virtual}µs"
        if comparison.virtual
        else "in µs"
    )
    yield (
        f"Latencies {unit}; {NOTHING} means not published or not measured. "
        "Ratio: mainline maximum over PREEMPT_RT maximum.",
        "muted",
    )
    yield ""
    for row in comparison.rows:
        line = Words(((f"{row.load}: ", "strong"), row.sentence))
        yield Item(line, mark="nothing")
    for said, loads in (
        ("Published but not measured", comparison.not_measured),
        ("Measured but not published", comparison.not_published),
    ):
        if loads:
            yield f"{said}: {enumeration(loads)}."
    yield ""
    for heading, items in (
        ("Conclusions from each sample", comparison.support),
        ("Differences between the two measurements", comparison.differences),
        ("Inconsistencies in the published table", comparison.notes),
    ):
        yield from bullets(heading, map(_sentence, items))
    yield Notes(comparison.caveats)


def _sentence(item: str) -> str:
    return capital(item if item.endswith(".") else f"{item}.")


def _table(rows: Sequence[PublishedRow], form: Form = Form.TERMINAL) -> Table:
    """Return the published figures of each load, and the measured ones below."""
    figures = columns("published")
    names = [
        f"{mark if one is figures[0] or form is Form.MARKDOWN else ''}\n{one.heading}"
        for mark in ("RT", "mainline")
        for one in figures
    ]
    made: list[list[Span]] = []
    for row in rows:
        for name, whose, cells, side in (
            (row.load, "published", published_cells(row.published), row.published),
            ("", "measured", measured_cells(row.measured), row.measured),
        ):
            texts = [
                strong_if(text, figure.strong and text != NOTHING)
                for figure, text in cells
            ]
            made.append([name, whose, *texts, ratio(side.ratio)])
    return table(("\nload", ""), (*names, "\nratio"), made, gap=1)


def brief_published(comparison: PublishedComparison, room: Room) -> Iterator[Block]:
    """Yield what one look at a terminal has room for."""
    yield (comparison.title, "strong")
    yield ""
    yield comparison.summary
    yield ""
    yield _table(comparison.rows[: room.rows])
    yield from rows_left_out(len(comparison.rows) - room.rows)
    unit = f"{comparison.virtual}µs" if comparison.virtual else "µs"
    yield (
        f"Published in µs, measured in {unit}; ratio: mainline over PREEMPT_RT.",
        "muted",
    )
    yield ""
    counted = (
        plural(len(comparison.differences), "difference"),
        plural(len(comparison.notes), "known inconsistency").replace("ys", "ies"),
    )
    yield (
        f"The measurements have {counted[0]} and the published table {counted[1]}: "
        "-v lists them."
    )
    for sentence in comparison.differences[: max(room.sentences - 1, 0)]:
        yield f"{capital(sentence.rstrip('.'))}."
