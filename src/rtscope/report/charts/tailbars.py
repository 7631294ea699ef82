"""The tail of a run as a picture: bars by cause, grey for what was not recorded."""

from collections.abc import Iterator
from html import escape

from rtscope.report.charts.palette import MUTED, PALETTE
from rtscope.report.charts.palette import WIDTH_PT as WIDTH
from rtscope.report.model.tail import Tail, sentence_of_tail
from rtscope.units import NS_PER_US

_LEFT, _RIGHT, _TOP, _PLOT = 34, 8, 8, 120
_ROW = 14
_COLOURS = (0, 1, 2, 3, 4)
UNKNOWN_COLOUR = 6
NOT_RECORDED = "not recorded: cause unknown"


def tail_picture(tail: Tail, *, name: str, virtual: str) -> str:
    """Return an `<svg>` element; `name` keeps its identifiers apart in a page."""
    said = escape(sentence_of_tail(tail, virtual=virtual))
    rows = [
        *[one.cause for one in tail.causes],
        *([NOT_RECORDED] if tail.unknown else []),
    ]
    height = _TOP + _PLOT + 40 + _ROW * len(rows)
    inside = "".join((*_axes(tail, virtual), *_bars(tail), *_legend(tail)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart tail" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-labelledby="{name}-title {name}-desc" '
        'font-family="system-ui, Helvetica, Arial, sans-serif" font-size="9.5">'
        f'<title id="{name}-title">The latest wake-ups by cause</title>'
        f'<desc id="{name}-desc">{said}</desc>'
        f"{inside}</svg>"
    )


def _highest(tail: Tail) -> int:
    return max((sum(b.known) + b.unknown for b in tail.bins), default=0) or 1


def _x(tail: Tail, ns: float) -> float:
    low, high = tail.bins[0].low_ns, tail.bins[-1].high_ns
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * (ns - low) / max(1, high - low)


def _bars(tail: Tail) -> Iterator[str]:
    scale = _PLOT / _highest(tail)
    for one in tail.bins:
        left, right = _x(tail, one.low_ns), _x(tail, one.high_ns)
        y = float(_TOP + _PLOT)
        parts = [*zip(one.known, _COLOURS, strict=False), (one.unknown, UNKNOWN_COLOUR)]
        for count, colour in parts:
            if count:
                y -= count * scale
                yield _rect(left + 0.4, y, right - left - 0.8, count * scale, colour)


def _axes(tail: Tail, virtual: str) -> Iterator[str]:
    bottom, highest = _TOP + _PLOT, _highest(tail)
    stroke = f'stroke="var(--muted, {MUTED})" stroke-width=".7"'
    yield f'<path d="M{_LEFT} {_TOP}V{bottom}H{WIDTH - _RIGHT}" fill="none" {stroke}/>'
    for count in sorted({0, highest // 2, highest}):
        y = bottom - _PLOT * count / highest
        yield f'<path d="M{_LEFT} {y:.1f}h-4" {stroke}/>'
        yield _text(_LEFT - 6, y + 3, f"{count:,}", anchor="end")
    step = _step(tail.bins[-1].high_ns - tail.bins[0].low_ns)
    first = -(-tail.bins[0].low_ns // step) * step
    for at in range(first, tail.bins[-1].high_ns + 1, step):
        x = _x(tail, at)
        yield f'<path d="M{x:.1f} {bottom}v4" {stroke}/>'
        yield _text(x, bottom + 14, f"{at / NS_PER_US:,g}", anchor="middle")
    words = f"{virtual}µs late; height: number of wake-ups"
    yield _text(WIDTH / 2, bottom + 28, words, anchor="middle")


def _legend(tail: Tail) -> Iterator[str]:
    rows = [
        (f"{one.cause}: {one.wakeups:,}", colour)
        for one, colour in zip(tail.causes, _COLOURS, strict=False)
    ]
    if tail.unknown:
        rows.append((f"{NOT_RECORDED}: {tail.unknown:,}", UNKNOWN_COLOUR))
    for number, (words, colour) in enumerate(rows):
        y = _TOP + _PLOT + 40 + _ROW * number
        yield _rect(_LEFT, y, 9, 9, colour)
        yield _text(_LEFT + 14, y + 8, words, ink=True)


def _step(span_ns: int) -> int:
    step = 1
    while True:
        for factor in (1, 2, 5):
            if factor * step * 5 >= span_ns:
                return factor * step
        step *= 10


def _rect(x: float, y: float, width: float, height: float, colour: int) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'fill="var(--c{colour}, {PALETTE[colour]})"/>'
    )


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", ink: bool = False
) -> str:
    fill = "var(--ink, #1c2127)" if ink else f"var(--muted, {MUTED})"
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}">'
        f"{escape(text)}</text>"
    )
