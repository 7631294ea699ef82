"""A comparison of sets of runs: all of it, and one look at a terminal."""

from collections.abc import Iterator, Sequence
from itertools import chain

from rtscope.host.units import format_us
from rtscope.present.document import (
    Block,
    Column,
    Document,
    Item,
    Notes,
    Phrase,
    Span,
    Table,
    Weight,
    Words,
    table,
)
from rtscope.present.documents.shared import (
    WIDE,
    Form,
    cell_of,
    conclusions,
    sides_table,
)
from rtscope.present.model.comparison import (
    ComparisonReport,
    LoadComparison,
    SetOutcome,
)
from rtscope.present.model.wakeparts import parts_section
from rtscope.present.render.fitted import Room, rows_left_out
from rtscope.present.words import NOTHING, cut, enumeration
from rtscope.stats.figures import columns

LONGEST_LABEL = 20
"""Of a set in the table of a comparison; a longer one gets a letter."""


def comparison_document(
    comparison: ComparisonReport, form: Form, width: int
) -> Document:
    """Return all of a comparison, for a terminal of so many characters or Markdown."""
    blocks = tuple(_comparison(comparison, form, width))
    return Document(comparison.title, blocks, comparison.made_by)


def _comparison(
    comparison: ComparisonReport, form: Form, width: int
) -> Iterator[Block]:
    yield (
        (comparison.summary, "strong") if form is Form.MARKDOWN else comparison.summary
    )
    yield ""
    pair = comparison.pair
    if pair is not None:
        figures = columns("pair", wide=form is Form.MARKDOWN or width >= WIDE)
        yield from sides_table(pair, figures, width=width)
        yield ""
        yield pair.summary
        yield ""
        yield conclusions(pair)
    for load in comparison.loads:
        if (
            form is Form.MARKDOWN
            or pair is None
            or any(side.row.runs > 1 for side in load.sides)
        ):
            yield _sets_table(load)
        else:  # its figures are in the table above
            yield (load.load, "strong")
        yield from map(_outcome, load.outcomes)
        yield from (Item(Words((meter.sentence,))) for meter in load.meters)
        yield ""
    yield (_unit(comparison), "muted")
    yield ""
    parts = parts_section(comparison.named_rows)
    if parts is not None:
        yield parts
    yield Notes(comparison.caveats)


def _unit(comparison: ComparisonReport) -> str:
    return f"Latencies in {comparison.virtual}µs. The unit of comparison is the run."


def _outcome(outcome: SetOutcome) -> Item:
    weight: Weight = "strong" if outcome.different else "open"
    remarks: tuple[Phrase, ...] = tuple((one, "muted") for one in outcome.remarks)
    said = Words(((outcome.word, weight), outcome.rest))
    return Item(said, remarks, "nothing")


def _sets_table(load: LoadComparison) -> Table:
    first, *figures = columns("sets")
    names = [first.heading, "median max", "runs", *(one.heading for one in figures)]
    return Table(
        (
            Column(load.load, fit="folds"),
            *(
                Column(name, True, "wraps" if name == "median max" else "cut")
                for name in names
            ),
        ),
        [
            (
                side.label,
                cell_of(first, side.row),
                format_us(side.median_max_ns),
                str(side.row.runs),
                *(cell_of(one, side.row) for one in figures),
            )
            for side in load.sides
        ],
    )


# --- one look -------------------------------------------------------------------------


def brief_comparison(comparison: ComparisonReport, room: Room) -> Iterator[Block]:
    """Yield what one look at a terminal has room for."""
    yield (comparison.title, "strong")
    yield comparison.summary
    yield ""
    labels = list(dict.fromkeys(s.label for c in comparison.loads for s in c.sides))
    names = _labels(labels)
    rows = list(chain.from_iterable(_set_rows(c, names) for c in comparison.loads))
    heads = ("max", "median max", "runs", "missed")
    last = ("  against the first",)
    yield table(("load", ""), heads, rows[: room.rows], last=last)
    yield from rows_left_out(len(rows) - room.rows)
    yield (_unit(comparison), "muted")
    for label, name in names.items():
        if label != name:
            yield f"{name} = {label}"
    yield ""
    if comparison.pair is not None and room.sentences > 1:
        yield comparison.pair.summary
    loads: dict[str, list[str]] = {}
    for compared in comparison.loads:
        for said in {outcome.word + outcome.rest: 0 for outcome in compared.outcomes}:
            loads.setdefault(said, []).append(compared.load)
    several = len(comparison.loads) > 1
    for sentence in list(loads)[: room.sentences]:
        head = f"{enumeration(loads[sentence])}: " if several else ""
        yield Words(((head, "strong"), sentence))


def _labels(labels: Sequence[str]) -> dict[str, str]:
    if all(len(label) <= LONGEST_LABEL for label in labels):
        return {label: label for label in labels}
    return {label: chr(ord("A") + i % 26) for i, label in enumerate(labels)}


def _set_rows(load: LoadComparison, names: dict[str, str]) -> Iterator[Sequence[Span]]:
    verdicts = ["", *(outcome.word.lower() for outcome in load.outcomes)]
    for number, side in enumerate(load.sides):
        summary = side.row.summary
        missed = summary.missed_periods if summary else None
        yield (
            cut(load.load, LONGEST_LABEL) if number == 0 else "",
            names[side.label],
            format_us(summary.max_ns if summary else None),
            format_us(side.median_max_ns),
            str(side.row.runs),
            NOTHING if missed is None else f"{missed:,}",
            f"  {verdicts[number] if number < len(verdicts) else ''}",
        )
