"""The page of latencies over time: a section for each series."""

from collections.abc import Iterator, Sequence

from rtscope.host.escape import printable
from rtscope.host.units import format_us
from rtscope.host.version import __version__
from rtscope.present.document import (
    Block,
    Chart,
    Column,
    Document,
    Folded,
    Item,
    Section,
    Span,
    Table,
    table,
)
from rtscope.verbs.history.series import unit_words
from rtscope.verbs.history.shifts import Shift
from rtscope.verbs.history.showcharts import GONE, over_nights, stacked
from rtscope.verbs.history.showtext import Shown, remarks_of, usual_words
from rtscope.verbs.history.timeline import HIGH, MEDIAN, Timeline

MOST_SERIES = 60
"""That have charts; a page of more would open slowly."""

CAPTION = (
    "Dots: maximum of each night, hollow with a caveat that not every night has; "
    f"{GONE} does not count. Line: p99.9; dotted line: median. Upright dotted: "
    "something changed, as listed; "
    "\N{BLACK DOWN-POINTING SMALL TRIANGLE} dashed: change point."
)


def show_document(shown: Shown) -> Document:
    """Return the page."""
    drawn = list(zip(shown.lines, shown.shifts, strict=True))
    blocks: list[Block] = [(unit_words(line.virtual for line in shown.lines), "muted")]
    if shown.left_out:
        blocks.append((shown.left_out, "open"))
    changed = [(line, shift) for line, shifts in drawn for shift in shifts]
    if not changed:
        blocks.append("No change point is shown; so few nights may hide one.")
    blocks += [Item(_named(line, shift)) for line, shift in changed]
    if (left := len(drawn) - MOST_SERIES) > 0:
        blocks.append((f"{left:,} more series: choose with --machine.", "open"))
    blocks += [
        Section(printable(line.name), tuple(_series(number, line, shifts)))
        for number, (line, shifts) in enumerate(drawn[:MOST_SERIES])
    ]
    return Document(
        title="Latency over time",
        blocks=tuple(blocks),
        made_by=f"rtscope {__version__}",
        subtitle=(f"{len(shown.lines):,} series",),
    )


def _named(line: Timeline, shift: Shift) -> Span:
    said = printable(f"{line.name}: {shift.sentence}")
    return (said, "alarm") if shift.ratio > 1 else (said, "good")


def _series(number: int, line: Timeline, shifts: Sequence[Shift]) -> Iterator[Block]:
    if line.counting:
        yield Chart(
            over_nights(
                line.points,
                changes=[shift.at for shift in shifts],
                usual=line.usual_caveats,
                deadline_ns=line.deadline_ns,
                name=f"nights{number}",
                title="Each night's worst wake-up",
            ),
            CAPTION,
            beside=True,
        )
        title = "Histograms behind each other"
        ridges = stacked(line.points, name=f"stacked{number}", title=title)
        if ridges is not None:
            caption = "Newest in front; the dot is the maximum."
            yield Chart(ridges, caption, beside=True)
    for shift in shifts:
        yield Item(_named(line, shift))
    if usual := usual_words(line):
        yield printable(usual)
    marked = [
        (point.day, others)
        for point in line.points
        if (others := remarks_of(point, line.usual_caveats))
    ]
    if marked:
        remarks = [[day, printable("; ".join(others))] for day, others in marked]
        # A date stays whole on a phone.
        head = Column("night"), Column("what changed, caveats", fit="wraps")
        yield Table(head, remarks)
    rows = [
        [
            point.day,
            format_us(point.max_ns),
            format_us(point.typical(HIGH)),
            format_us(point.typical(MEDIAN)),
            printable(point.kernel),
        ]
        for point in line.points
    ]
    nights = table(("night",), ("max", "p99.9", "median"), rows, last=("kernel",))
    yield Folded("Every night", (nights,))
