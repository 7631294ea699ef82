"""
The timeline of a wake-up, as markup of a page: CPUs one above the other, calls nested.

It is made of boxes and not of an SVG, so that names stay legible when it is widened;
the style sheet widens it by the zoom that the reader chose. No script.
"""

from collections.abc import Collection, Iterator, Sequence
from html import escape

from rtscope.explain.model import Explanation, Segment
from rtscope.explain.timeline import Slice, Timeline, Track
from rtscope.host.units import NS_PER_US, format_us
from rtscope.present.charts.bars import colour_of, tick_step

ZOOMS = (1, 4, 16, 64)
_TICKS = 8
_NAMED_SHARE = 0.02
"""Of the width at the largest zoom: narrower boxes have no room for a name."""


Mark = tuple[int, str]
"""A time that has a name, in ns since the timer was due."""


def flame_chart(
    timeline: Timeline,
    explanation: Explanation | None,
    *,
    name: str,
    unit: str = "virtual ",
    marks: Sequence[Mark] = (),
) -> str:
    """
    Return the markup; `name` keeps its identifiers apart in a page.

    Without an explanation it has no row of causes. The `marks`, in their order, are
    lines through all rows, each with its name at the top.
    """
    drawn = _Scale(timeline)
    dominant = explanation.dominant if explanation else None
    blamed = {dominant.name, *dominant.callers} if dominant else set()
    causes = explanation.segments if explanation else ()
    rows = [
        *(_marks(drawn, marks) if marks else ()),
        *(
            [_row("causes", 1, (_cause(drawn, one) for one in causes))]
            if causes
            else ()
        ),
        *(_track(drawn, one, blamed) for one in timeline.tracks),
        _row("", 1, _ticks(drawn), kind="ticks"),
    ]
    return (
        f'<div class="flame">{zoom_choice(name)}<div class="scroll" tabindex="0" '
        f'role="region" aria-label="Timeline of {escape(name)} in {unit}µs">'
        f'<div class="wide">{"".join(rows)}</div></div></div>'
    )


def note_of_timeline(timeline: Timeline, *, unit: str) -> str:
    """Say how much is not drawn; empty if all is."""
    if not timeline.left_out:
        return ""
    longest = format_us(timeline.longest_left_out_ns)
    return (
        f"{timeline.left_out:,} more calls are not drawn; the longest took {longest} "
        f"{unit}µs."
    )


class _Scale:
    """From ns since the timer was due to shares of the width."""

    def __init__(self, timeline: Timeline) -> None:
        self.begin_ns, self.end_ns = timeline.begin_ns, timeline.end_ns
        self.span_ns = timeline.end_ns - timeline.begin_ns

    def percent(self, ns: int) -> str:
        return f"{100 * ns / self.span_ns:.3f}".rstrip("0").rstrip(".") + "%"

    def is_late(self, at_ns: int) -> bool:
        """Tell whether there is no room for words behind a time."""
        return 5 * (at_ns - self.begin_ns) > 3 * self.span_ns

    def box(
        self, begin_ns: int, end_ns: int, label: str, *, level: int = 0, kind: str = ""
    ) -> str:
        length_ns = end_ns - begin_ns
        is_named = ZOOMS[-1] * length_ns >= _NAMED_SHARE * self.span_ns
        words = escape(label)
        return (
            f'<i{f" class={kind}" if kind else ""} style="left:'
            f"{self.percent(begin_ns - self.begin_ns)};width:{self.percent(length_ns)}"
            f'{f";--l:{level}" if level else ""}" title="{words}, '
            f'{format_us(length_ns)} µs from {format_us(begin_ns)} on">'
            f"{words if is_named else ''}</i>"
        )


def _row(title: str, levels: int, boxes: Iterator[str], *, kind: str = "") -> str:
    label = f"<b>{escape(title)}</b>" if title else ""
    return (
        f'<div class="row {kind}" style="--rows:{levels}">{label}{"".join(boxes)}</div>'
    )


def _track(drawn: _Scale, track: Track, blamed: Collection[str]) -> str:
    levels = 1 + max(one.level for one in track.slices)
    boxes = (_slice(drawn, one, blamed) for one in track.slices)
    return _row(f"CPU {track.cpu}", levels, boxes)


def _slice(drawn: _Scale, one: Slice, blamed: Collection[str]) -> str:
    kind = "blamed" if one.name in blamed else "odd" if one.level % 2 else ""
    return drawn.box(one.begin_ns, one.end_ns, one.name, level=one.level, kind=kind)


def _cause(drawn: _Scale, one: Segment) -> str:
    label = f"{one.part.value} {one.cause}: {one.name}"
    kind = f"key{colour_of(one)}"
    return drawn.box(one.begin_ns, one.end_ns, label, kind=kind)


def _marks(drawn: _Scale, marks: Sequence[Mark]) -> Iterator[str]:
    """Yield the lines, and the row with a name on a level of its own for each."""
    places = [(drawn.percent(at_ns - drawn.begin_ns), at_ns) for at_ns, _ in marks]
    yield from (f'<u style="left:{left}"></u>' for left, _ in places)
    names = (
        f"<span{' class=before' if drawn.is_late(at_ns) else ''} "
        f'style="left:{left};--l:{level}">{escape(name)}</span>'
        for level, ((left, at_ns), (_, name)) in enumerate(
            zip(places, marks, strict=True)
        )
    )
    yield _row("", len(marks), names, kind="marks")


def _ticks(drawn: _Scale) -> Iterator[str]:
    step = tick_step(drawn.span_ns, most=_TICKS)
    first = -(-drawn.begin_ns // step) * step
    for at_ns in range(first, drawn.end_ns, step):
        left = drawn.percent(at_ns - drawn.begin_ns)
        yield f'<span style="left:{left}">{at_ns / NS_PER_US:,g}</span>'


def zoom_choice(name: str) -> str:
    """Let the reader choose a width: radio buttons, which the style sheet obeys."""
    return "".join(
        f'<input type="radio" name="{name}-zoom" id="{name}-zoom{zoom}" '
        f'class="zoom{zoom}"{" checked" if zoom == 1 else ""}>'
        f'<label for="{name}-zoom{zoom}">{zoom}&times;</label>'
        for zoom in ZOOMS
    )
