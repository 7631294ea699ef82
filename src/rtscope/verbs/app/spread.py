"""Histograms of samples, as SVG: both scales are logarithmic, a bar is a bin."""

import math
from collections import Counter
from collections.abc import Iterator
from html import escape

from markupsafe import Markup

from rtscope.host.units import format_us
from rtscope.present.charts.axes import INK, MUTED, PALETTE
from rtscope.stats.figures import columns
from rtscope.stats.summary import Summary, buckets_of

BINS_PER_DECADE = 10
_WIDTH, _LEFT, _RIGHT, _TOP, _PLOT = 460, 34, 10, 14, 96
_BOTTOM = _TOP + _PLOT
_LEAST_DECADES = 2


def spread_chart(spread: Summary, *, name: str, title: str, colour: int = 0) -> Markup:
    """Return an `<svg>` element; `name` keeps its identifiers apart in a page."""
    first, last = _edges(spread)
    parts = [*_axes(spread, first, last), *_bars(spread, first, last, colour)]
    parts += _marks(spread, first, last)
    about = (
        f"{spread.samples:,} samples from {format_us(spread.min_ns)} to "
        f"{format_us(spread.max_ns)} µs"
    )
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart spread" '
        f'viewBox="0 0 {_WIDTH} {_BOTTOM + 34}" role="img" '
        f'aria-labelledby="{name}-title {name}-desc" '
        'font-family="system-ui, Helvetica, Arial, sans-serif" font-size="11">'
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-desc">{escape(about)}</desc>{"".join(parts)}</svg>'
    )


def _bin(ns: int) -> int:
    return math.floor(math.log10(max(1, ns)) * BINS_PER_DECADE + 1e-9)


def _edges(spread: Summary) -> tuple[int, int]:
    """Return the first bin of the axis, and the one after its last: whole decades."""
    first = _bin(spread.min_ns) // BINS_PER_DECADE
    last = _bin(spread.max_ns) // BINS_PER_DECADE + 1
    last = max(last, first + _LEAST_DECADES)
    return first * BINS_PER_DECADE, last * BINS_PER_DECADE


def _x(at_bin: float, first: int, last: int) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (at_bin - first) / (last - first)


def _height(number: int, most: int) -> float:
    """Return how high a bar is; the axis of counts is logarithmic, from one half on."""
    return _PLOT * math.log10(2 * number) / math.log10(2 * max(2, most))


def _counts(spread: Summary) -> Counter[int]:
    counts: Counter[int] = Counter()
    for low_ns, _, number in buckets_of(spread):
        counts[_bin(low_ns)] += number
    return counts


def _bars(spread: Summary, first: int, last: int, colour: int) -> Iterator[str]:
    counts = _counts(spread)
    most = max(counts.values())
    for at, number in sorted(counts.items()):
        left, right = _x(at, first, last), _x(at + 1, first, last)
        height = _height(number, most)
        yield (
            f'<rect x="{left:.1f}" y="{_BOTTOM - height:.1f}" '
            f'width="{right - left - 0.6:.2f}" height="{height:.1f}" '
            f'fill="var(--c{colour}, {PALETTE[colour]})"/>'
        )


def _axes(spread: Summary, first: int, last: int) -> Iterator[str]:
    stroke = f'stroke="var(--muted, {MUTED})" stroke-width=".7"'
    yield f'<path d="M{_LEFT} {_BOTTOM}H{_WIDTH - _RIGHT}" {stroke}/>'
    for decade in range(first, last + 1, BINS_PER_DECADE):
        x = _x(decade, first, last)
        label = f"{10 ** (decade / BINS_PER_DECADE) / 1000:,g}"
        yield f'<path d="M{x:.1f} {_BOTTOM}v4" {stroke}/>'
        anchor = "end" if decade == last else "middle"
        yield _text(x, _BOTTOM + 16, label, muted=True, anchor=anchor)
    yield _text(_WIDTH / 2, _BOTTOM + 31, "µs", muted=True)
    most = max(_counts(spread).values())
    level = 1
    while level <= most:
        y = _BOTTOM - _height(level, most)
        yield f'<path d="M{_LEFT} {y:.1f}h-4" {stroke}/>'
        yield _text(_LEFT - 6, y + 4, f"{level:,}", muted=True, anchor="end")
        level *= 10


def _marks(spread: Summary, first: int, last: int) -> Iterator[str]:
    """Mark the figures that the samples support."""
    free = -math.inf
    for figure in columns("cycles_marks"):
        if (ns := figure.of_summary(spread)) is None:
            continue
        x = _x(math.log10(max(1, ns)) * BINS_PER_DECADE, first, last)
        yield (
            f'<path d="M{x:.1f} {_TOP}V{_BOTTOM}" stroke="var(--ink, {INK})" '
            'stroke-width=".8" stroke-dasharray="3 2"/>'
        )
        if x - free >= 26:
            yield _text(x, _TOP - 4, figure.heading)
            free = x


def _text(
    x: float, y: float, text: str, *, muted: bool = False, anchor: str = "middle"
) -> str:
    ink = f"var(--muted, {MUTED})" if muted else f"var(--ink, {INK})"
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{ink}">'
        f"{escape(text)}</text>"
    )
