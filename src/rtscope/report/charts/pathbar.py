"""
The way of a wake-up as a picture: one bar from the expiry to the thread's own code.

Colours are the parts; the filled height of a stretch is the share of it in which this
CPU executed, the pale rest were turns of the board's other CPUs, or it slept.
"""

from collections.abc import Iterator
from html import escape

from rtscope.explain.model import Cause, Explanation, Part, Stretch
from rtscope.report.charts.palette import MUTED, PALETTE, PAPER
from rtscope.report.charts.palette import WIDTH_PT as WIDTH
from rtscope.units import NS_PER_US, format_us

COLOUR_OF = {part: number for number, part in enumerate(Part)}
UNKNOWN_COLOUR = 6

_MARGIN = 8
_BAR_TOP, _BAR_HEIGHT = 20, 46
_AXIS = _BAR_TOP + _BAR_HEIGHT + 18
_HEIGHT = _AXIS + 34
_LETTER_WIDTH, _NUMBER_WIDTH = 9, 11
_TICKS = 5
_PALE = 0.38


def colour_of(stretch: Stretch) -> int:
    """Return the number of a stretch's colour in the palette."""
    if stretch.cause is Cause.UNKNOWN:
        return UNKNOWN_COLOUR
    return COLOUR_OF[stretch.part]


def way_picture(
    explanation: Explanation, *, name: str, description: str, unit: str = "virtual "
) -> str:
    """Return an `<svg>` element; `name` keeps its identifiers apart in a page."""
    title = (
        f"From the expiry to the thread: {format_us(explanation.latency_ns)} {unit}"
        f"µs on CPU {explanation.cpu}"
    )
    inside = "".join(
        (
            *_letters(explanation),
            *_bars(explanation),
            *_axis(explanation.latency_ns, unit),
        )
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart way" '
        f'viewBox="0 0 {WIDTH} {_HEIGHT}" role="img" '
        f'aria-labelledby="{name}-title {name}-desc" '
        'font-family="system-ui, Helvetica, Arial, sans-serif" font-size="9.5">'
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-desc">{escape(description)}</desc>{inside}</svg>'
    )


def _x(ns: int, latency_ns: int) -> float:
    return _MARGIN + (WIDTH - 2 * _MARGIN) * ns / max(1, latency_ns)


def _bars(explanation: Explanation) -> Iterator[str]:
    for number, stretch in enumerate(explanation.stretches, 1):
        left = _x(stretch.begin_ns, explanation.latency_ns)
        width = _x(stretch.end_ns, explanation.latency_ns) - left
        fill = _variable(colour_of(stretch))
        # On a path it is known but of what slept, or was not recorded.
        unknown_ns = 0 if explanation.is_counted else stretch.duration_ns
        own_ns = unknown_ns if stretch.own_ns is None else stretch.own_ns
        height = _BAR_HEIGHT * min(1.0, own_ns / stretch.duration_ns)
        yield _rect(left, _BAR_TOP, width, _BAR_HEIGHT, f'{fill} opacity="{_PALE}"')
        yield _rect(left, _BAR_TOP + _BAR_HEIGHT - height, width, height, fill)
        if number > 1:
            yield (
                f'<path d="M{left:.1f} {_BAR_TOP}v{_BAR_HEIGHT}" '
                f'stroke="var(--paper, {PAPER})" stroke-width=".8"/>'
            )
        if width >= _NUMBER_WIDTH:
            yield _text(left + width / 2, _AXIS - 6, str(number))


def _letters(explanation: Explanation) -> Iterator[str]:
    """Write the letter of a part above each group of its stretches."""
    groups: list[list[Stretch]] = []
    for stretch in explanation.stretches:
        if groups and groups[-1][-1].part is stretch.part:
            groups[-1].append(stretch)
        else:
            groups.append([stretch])
    for group in groups:
        left = _x(group[0].begin_ns, explanation.latency_ns)
        right = _x(group[-1].end_ns, explanation.latency_ns)
        if right - left >= _LETTER_WIDTH:
            letter = group[0].part.value
            yield _text((left + right) / 2, _BAR_TOP - 6, letter, bold=True)


def _axis(latency_ns: int, unit: str) -> Iterator[str]:
    stroke = f'stroke="var(--muted, {MUTED})" stroke-width=".7"'
    yield f'<path d="M{_MARGIN} {_AXIS}H{WIDTH - _MARGIN}" {stroke}/>'
    step = _step(latency_ns)
    for at in range(0, latency_ns + 1, step):
        x = _x(at, latency_ns)
        yield f'<path d="M{x:.1f} {_AXIS}v4" {stroke}/>'
        label = f"{at / NS_PER_US:,g}"
        yield _text(x, _AXIS + 14, label, muted=True, start=at == 0)
    yield _text(WIDTH / 2, _AXIS + 28, f"{unit}µs since the timer was due", muted=True)


def _step(latency_ns: int) -> int:
    """Return a round distance of ticks, at most five of them on the axis."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if factor * step * _TICKS >= latency_ns:
                return factor * step
        step *= 10


def _variable(colour: int) -> str:
    return f'fill="var(--c{colour}, {PALETTE[colour]})"'


def _rect(x: float, y: float, width: float, height: float, fill: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.2f}" height="{height:.1f}" '
        f"{fill}/>"
    )


def _text(
    x: float,
    y: float,
    text: str,
    *,
    bold: bool = False,
    muted: bool = False,
    start: bool = False,
) -> str:
    ink = f"var(--muted, {MUTED})" if muted else "var(--ink, #1c2127)"
    anchor = "start" if start else "middle"
    weight = ' font-weight="700"' if bold else ""
    x = _MARGIN if start else x
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
        f'fill="{ink}"{weight}>{escape(text)}</text>'
    )
