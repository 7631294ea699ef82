"""
Bars that are drawn by hand, as SVG: the path of a wake-up, and the tail of a run.

The path of a wake-up is one bar from the expiry to the thread's own code. Colours are
its parts; the filled height of a segment is the share of it in which this CPU executed,
in the pale rest it paused. The tail has bars by cause, grey for what was not recorded.
"""

from collections.abc import Iterable, Iterator
from html import escape

from rtscope.explain.bound import WorstWakeups, sentence_of_tail
from rtscope.explain.model import Cause, Explanation, Part, Segment
from rtscope.host.units import NS_PER_US, format_us
from rtscope.present.charts.axes import INK, MUTED, PALETTE, PAPER
from rtscope.present.charts.axes import WIDTH_PT as WIDTH

UNKNOWN_COLOUR = 6

_TICKS = 5
STROKE = f'stroke="var(--muted, {MUTED})" stroke-width=".7"'


def drawing(
    kind: str, height: float, parts: Iterable[str], *, name: str, about: tuple[str, str]
) -> str:
    """Return an `<svg>` element, with `about`: its title, and its description."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart {kind}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-labelledby="{name}-title {name}-desc" '
        'font-family="system-ui, Helvetica, Arial, sans-serif" font-size="9.5">'
        f'<title id="{name}-title">{escape(about[0])}</title>'
        f'<desc id="{name}-desc">{escape(about[1])}</desc>{"".join(parts)}</svg>'
    )


def fill_of(colour: int) -> str:
    """Return the attribute that fills with a colour of the palette."""
    return f'fill="var(--c{colour}, {PALETTE[colour]})"'


def text_at(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "middle",
    muted: bool = False,
    bold: bool = False,
) -> str:
    """Return a text of a drawing."""
    ink = f"var(--muted, {MUTED})" if muted else f"var(--ink, {INK})"
    weight = ' font-weight="700"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
        f'fill="{ink}"{weight}>{escape(text)}</text>'
    )


def tick_step(span_ns: int, *, most: int = _TICKS) -> int:
    """Return a round distance of ticks, with which an axis has no more than `most`."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if factor * step * most >= span_ns:
                return factor * step
        step *= 10


# --- the path of a wake-up ------------------------------------------------------------

COLOUR_OF = {part: number for number, part in enumerate(Part)}

_MARGIN = 8
_BAR_TOP, _BAR_HEIGHT = 20, 46
_AXIS = _BAR_TOP + _BAR_HEIGHT + 18
_LETTER_WIDTH, _NUMBER_WIDTH = 9, 11
_PALE = 0.38


def path_bar(
    explanation: Explanation, *, name: str, description: str, unit: str = "virtual "
) -> str:
    """Return an `<svg>` element; `name` keeps its identifiers apart in a page."""
    title = (
        f"Path since {explanation.since}: {format_us(explanation.latency_ns)} "
        f"{unit}µs on CPU {explanation.cpu}"
    )
    parts = (
        *_letters(explanation),
        *_segments(explanation),
        *_axis(explanation, unit),
    )
    return drawing("way", _AXIS + 34, parts, name=name, about=(title, description))


def colour_of(segment: Segment) -> int:
    """Return the number of a segment's colour in the palette."""
    if segment.cause is Cause.UNKNOWN:
        return UNKNOWN_COLOUR
    return COLOUR_OF[segment.part]


def _x(ns: int, latency_ns: int) -> float:
    return _MARGIN + (WIDTH - 2 * _MARGIN) * ns / max(1, latency_ns)


def _segments(explanation: Explanation) -> Iterator[str]:
    for number, segment in enumerate(explanation.segments, 1):
        left = _x(segment.begin_ns, explanation.latency_ns)
        width = _x(segment.end_ns, explanation.latency_ns) - left
        fill = fill_of(colour_of(segment))
        # On a path it is known but of what slept, or was not recorded.
        unknown_ns = 0 if explanation.is_counted else segment.duration_ns
        executed_ns = unknown_ns if segment.executed_ns is None else segment.executed_ns
        height = _BAR_HEIGHT * min(1.0, executed_ns / segment.duration_ns)
        yield _segment(left, _BAR_TOP, width, _BAR_HEIGHT, f'{fill} opacity="{_PALE}"')
        yield _segment(left, _BAR_TOP + _BAR_HEIGHT - height, width, height, fill)
        if number > 1:
            yield (
                f'<path d="M{left:.1f} {_BAR_TOP}v{_BAR_HEIGHT}" '
                f'stroke="var(--paper, {PAPER})" stroke-width=".8"/>'
            )
        if width >= _NUMBER_WIDTH:
            yield text_at(left + width / 2, _AXIS - 6, str(number))


def _letters(explanation: Explanation) -> Iterator[str]:
    """Write the letter of a part above each group of its segments."""
    groups: list[list[Segment]] = []
    for segment in explanation.segments:
        if groups and groups[-1][-1].part is segment.part:
            groups[-1].append(segment)
        else:
            groups.append([segment])
    for group in groups:
        left = _x(group[0].begin_ns, explanation.latency_ns)
        right = _x(group[-1].end_ns, explanation.latency_ns)
        if right - left >= _LETTER_WIDTH:
            letter = group[0].part.value
            yield text_at((left + right) / 2, _BAR_TOP - 6, letter, bold=True)


def _axis(explanation: Explanation, unit: str) -> Iterator[str]:
    latency_ns = explanation.latency_ns
    yield f'<path d="M{_MARGIN} {_AXIS}H{WIDTH - _MARGIN}" {STROKE}/>'
    step = tick_step(latency_ns)
    for at in range(0, latency_ns + 1, step):
        x = _x(at, latency_ns)
        yield f'<path d="M{x:.1f} {_AXIS}v4" {STROKE}/>'
        anchor = "middle" if at else "start"
        label = f"{at / NS_PER_US:,g}"
        yield text_at(x, _AXIS + 14, label, anchor=anchor, muted=True)
    yield text_at(
        WIDTH / 2, _AXIS + 28, f"{unit}µs since {explanation.since}", muted=True
    )


def _segment(x: float, y: float, width: float, height: float, fill: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.2f}" height="{height:.1f}" '
        f"{fill}/>"
    )


# --- the tail -------------------------------------------------------------------------

_LEFT, _RIGHT, _TOP, _PLOT = 34, 8, 8, 120
_ROW = 14
_COLOURS = (0, 1, 2, 3, 4)
NOT_RECORDED = "not recorded: cause unknown"


def tail_bars(tail: WorstWakeups, *, name: str, virtual: str) -> str:
    """Return an `<svg>` element; `name` keeps its identifiers apart in a page."""
    height = _TOP + _PLOT + 40 + _ROW * (len(tail.causes) + bool(tail.unknown))
    about = "Worst wake-ups by cause", sentence_of_tail(tail, virtual=virtual)
    parts = (*_axes(tail, virtual), *_bars(tail), *_legend(tail))
    return drawing("tail", height, parts, name=name, about=about)


def _highest(tail: WorstWakeups) -> int:
    return max((sum(b.known) + b.unknown for b in tail.bins), default=0) or 1


def _tail_x(tail: WorstWakeups, ns: float) -> float:
    low, high = tail.bins[0].low_ns, tail.bins[-1].high_ns
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * (ns - low) / max(1, high - low)


def _bars(tail: WorstWakeups) -> Iterator[str]:
    scale = _PLOT / _highest(tail)
    for one in tail.bins:
        left, right = _tail_x(tail, one.low_ns), _tail_x(tail, one.high_ns)
        y = float(_TOP + _PLOT)
        parts = [*zip(one.known, _COLOURS, strict=False), (one.unknown, UNKNOWN_COLOUR)]
        for count, colour in parts:
            if count:
                y -= count * scale
                yield _rect(left + 0.4, y, right - left - 0.8, count * scale, colour)


def _axes(tail: WorstWakeups, virtual: str) -> Iterator[str]:
    bottom, highest = _TOP + _PLOT, _highest(tail)
    yield f'<path d="M{_LEFT} {_TOP}V{bottom}H{WIDTH - _RIGHT}" fill="none" {STROKE}/>'
    for count in sorted({0, highest // 2, highest}):
        y = bottom - _PLOT * count / highest
        yield f'<path d="M{_LEFT} {y:.1f}h-4" {STROKE}/>'
        yield text_at(_LEFT - 6, y + 3, f"{count:,}", anchor="end", muted=True)
    step = tick_step(tail.bins[-1].high_ns - tail.bins[0].low_ns)
    first = -(-tail.bins[0].low_ns // step) * step
    for at in range(first, tail.bins[-1].high_ns + 1, step):
        x = _tail_x(tail, at)
        yield f'<path d="M{x:.1f} {bottom}v4" {STROKE}/>'
        yield text_at(x, bottom + 14, f"{at / NS_PER_US:,g}", muted=True)
    words = f"{virtual}µs latency; height: number of wake-ups"
    yield text_at(WIDTH / 2, bottom + 28, words, muted=True)


def _legend(tail: WorstWakeups) -> Iterator[str]:
    rows = [
        (f"{one.cause}: {one.wakeups:,}", colour)
        for one, colour in zip(tail.causes, _COLOURS, strict=False)
    ]
    if tail.unknown:
        rows.append((f"{NOT_RECORDED}: {tail.unknown:,}", UNKNOWN_COLOUR))
    for number, (words, colour) in enumerate(rows):
        y = _TOP + _PLOT + 40 + _ROW * number
        yield _rect(_LEFT, y, 9, 9, colour)
        yield text_at(_LEFT + 14, y + 8, words, anchor="start")


def _rect(x: float, y: float, width: float, height: float, colour: int) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f"{fill_of(colour)}/>"
    )
