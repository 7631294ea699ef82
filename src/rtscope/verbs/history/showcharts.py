"""Latencies over time as SVG: each night's worst, and histograms behind each other."""

import math
from collections.abc import Callable, Iterator, Sequence, Set
from datetime import datetime

import numpy as np
from markupsafe import Markup

from rtscope.host.units import NS_PER_US, format_us, plural
from rtscope.present.charts.axes import (
    LIMIT,
    MUTED,
    PALETTE,
    PAPER,
    WIDTH_PT,
    log_steps,
)
from rtscope.present.charts.bars import STROKE, drawing, fill_of, text_at
from rtscope.present.model.charts import bin_edges
from rtscope.verbs.history.histograms import unpacked
from rtscope.verbs.history.timeline import HIGH, MEDIAN, Point

LEFT, RIGHT, TOP, PLOT = 46, 14, 24, 170
GONE = "\N{MULTIPLICATION SIGN}"
"""Marks a night that does not count."""

MOST_ROWS = 40
"""Histograms behind each other; of more nights, neighbours are added."""
FEW_DECADES = 0.4
HALVES = tuple(half / 2 for half in range(2, 20))
"""Multiples of powers of ten that an axis of so few decades names."""

ROW, TALL = 7, 34
"""Between two histograms, and the height of one."""

_DASHED = f'stroke="var(--limit, {LIMIT})" stroke-dasharray="4 2" stroke-width="1"'
_KERNEL = f'stroke="var(--muted, {MUTED})" stroke-dasharray="1.5 2" stroke-width="1"'


def over_nights(
    points: Sequence[Point],
    *,
    changes: Sequence[Point],
    usual: Set[str],
    deadline_ns: int | None,
    name: str,
    title: str,
) -> Markup:
    """
    Return maximum, 99.9th percentile and median of each night, on a logarithmic axis.

    Dotted: what was measured changed, as the kernel. A triangle: a change point. A
    caveat that is not usual makes a dot hollow.
    """
    counting = [point for point in points if point.counts]
    values = [one for point in counting for one in _values(point)]
    ends = [*values, *([deadline_ns] if deadline_ns else [])]
    low, high = math.log10(max(1, min(ends) * 0.8)), math.log10(max(2, max(ends) * 1.3))
    times = [_seconds(point) for point in points]
    first, span = times[0], max(1.0, times[-1] - times[0])

    def x(point: Point) -> float:
        at = (_seconds(point) - first) / span if len(points) > 1 else 0.5
        return LEFT + 6 + (WIDTH_PT - LEFT - RIGHT - 12) * at

    def y(ns: float) -> float:
        return TOP + PLOT * (1 - (math.log10(max(1, ns)) - low) / (high - low))

    parts = [*_latency_axis(low, high, y), *_days(points, x)]
    parts += _marks(points, changes, x)
    if deadline_ns:
        parts.append(
            f'<path d="M{LEFT} {y(deadline_ns):.1f}H{WIDTH_PT - RIGHT}" {_DASHED}/>'
        )
        said = f"deadline {format_us(deadline_ns)}"
        parts.append(
            text_at(LEFT + 3, y(deadline_ns) - 3, said, anchor="start", muted=True)
        )
    parts += _line(counting, MEDIAN, x, y, colour=2, dash="1.5 2")
    parts += _line(counting, HIGH, x, y, colour=1, dash="")
    for point in counting:
        hollow = not usual >= {*point.caveats}
        parts.append(_dot(x(point), y(point.night.max_ns), hollow=hollow))
    missing = [point for point in points if not point.counts]
    parts += [text_at(x(point), TOP + PLOT - 3, GONE) for point in missing]
    maxima = [point.night.max_ns for point in counting]
    about = (
        f"{plural(len(points), 'night')}: maxima from {format_us(min(maxima))} to "
        f"{format_us(max(maxima))} µs"
    )
    return Markup(
        drawing("nights", TOP + PLOT + 34, parts, name=name, about=(title, about))
    )


def _marks(
    points: Sequence[Point], changes: Sequence[Point], x: Callable[[Point], float]
) -> Iterator[str]:
    for point in points:
        if point.changed:
            yield f'<path d="M{x(point):.1f} {TOP}v{PLOT}" {_KERNEL}/>'
    for point in changes:
        at = x(point)
        yield f'<path d="M{at:.1f} {TOP}v{PLOT}" {_DASHED} fill="none"/>'
        tip = f'd="M{at - 4:.1f} {TOP - 8}h8l-4 7z"'
        yield f'<path {tip} fill="var(--limit, {LIMIT})"/>'


def _values(point: Point) -> Iterator[float]:
    yield point.night.max_ns
    yield from filter(None, (point.typical(HIGH), point.typical(MEDIAN)))


def _seconds(point: Point) -> float:
    try:
        return datetime.fromisoformat(point.night.started).timestamp()
    except ValueError:
        return 0.0


def _dot(x: float, y: float, *, hollow: bool) -> str:
    ink = f"var(--c0, {PALETTE[0]})"
    inside = f"var(--paper, {PAPER})" if hollow else ink
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.4" fill="{inside}" stroke="{ink}" '
        'stroke-width="1.1"/>'
    )


def _line(
    points: Sequence[Point],
    column: str,
    x: Callable[[Point], float],
    y: Callable[[float], float],
    *,
    colour: int,
    dash: str,
) -> Iterator[str]:
    known = [
        (point, ns) for point in points if (ns := point.typical(column)) is not None
    ]
    if known:
        path = "L".join(f"{x(point):.1f} {y(ns):.1f}" for point, ns in known)
        yield (
            f'<path d="M{path}" fill="none" '
            f'stroke="var(--c{colour}, {PALETTE[colour]})" stroke-width="1.3" '
            f'stroke-dasharray="{dash}" stroke-linejoin="round"/>'
        )


def _latency_axis(
    low: float, high: float, y: Callable[[float], float]
) -> Iterator[str]:
    yield f'<path d="M{LEFT} {TOP}v{PLOT}H{WIDTH_PT - RIGHT}" fill="none" {STROKE}/>'
    for ns in ticks_ns(10**low, 10**high):
        shown = f"{ns / NS_PER_US:,g}"
        yield f'<path d="M{LEFT} {y(ns):.1f}h-4" {STROKE}/>'
        yield text_at(LEFT - 6, y(ns) + 3, shown, anchor="end", muted=True)


def ticks_ns(low_ns: float, high_ns: float) -> Iterator[float]:
    """Yield the latencies that a logarithmic axis names."""
    low, high = math.log10(low_ns), math.log10(high_ns)
    steps = HALVES if high - low <= FEW_DECADES else log_steps(high - low)
    for power in range(math.floor(low), math.ceil(high) + 1):
        for factor in steps:
            if low_ns <= (ns := factor * 10.0**power) <= high_ns:
                yield ns


def _days(points: Sequence[Point], x: Callable[[Point], float]) -> Iterator[str]:
    free = -math.inf
    for point in points:
        at = min(max(x(point), LEFT + 14), WIDTH_PT - 28)
        if at - free >= 62:
            yield f'<path d="M{x(point):.1f} {TOP + PLOT}v4" {STROKE}/>'
            yield text_at(at, TOP + PLOT + 15, point.day, muted=True)
            free = at
    words = "night; height: latency (µs), logarithmic"
    yield text_at(WIDTH_PT / 2, TOP + PLOT + 29, words, muted=True)


def stacked(points: Sequence[Point], *, name: str, title: str) -> Markup | None:
    """Return the histograms of nights behind each other, the newest in front."""
    counting = [point for point in points if point.counts]
    size = -(-len(counting) // MOST_ROWS)
    groups = [counting[at : at + size] for at in range(0, len(counting), size or 1)]
    rows = [(group, _counts(group)) for group in groups]
    rows = [(group, counts) for group, counts in rows if counts]
    if not rows:
        return None
    every = [ns for _, counts in rows for ns, _ in counts]
    edges, _ = bin_edges(min(every), max(every))
    low, high = math.log(edges[0]), math.log(edges[-1])
    most = max(sum(number for _, number in counts) for _, counts in rows)
    bottom = TALL + 12 + ROW * len(rows)

    def x(ns: float) -> float:
        at = (math.log(max(1.0, ns)) - low) / max(high - low, 1e-9)
        return LEFT + 22 + (WIDTH_PT - LEFT - RIGHT - 22) * at

    parts: list[str] = []
    for number, (group, counts) in enumerate(rows):
        base = bottom - ROW * (len(rows) - 1 - number)
        parts += _ridge(counts, edges, x, base, most)
        if number % 4 == 0 or (number == len(rows) - 1 and number % 4 > 1):
            parts.append(
                text_at(LEFT + 18, base + 3, group[0].day, anchor="end", muted=True)
            )
    for ns in ticks_ns(edges[0], edges[-1]):
        parts.append(f'<path d="M{x(ns):.1f} {bottom}v4" {STROKE}/>')
        parts.append(text_at(x(ns), bottom + 15, f"{ns / NS_PER_US:,g}", muted=True))
    words = "latency (µs); height: number of wake-ups, logarithmic"
    parts.append(text_at(WIDTH_PT / 2, bottom + 29, words, muted=True))
    about = f"{plural(len(rows), 'histogram')} of {plural(len(counting), 'night')}"
    return Markup(
        drawing("stacked", bottom + 34, parts, name=name, about=(title, about))
    )


def _counts(group: Sequence[Point]) -> Sequence[tuple[int, int]]:
    blobs = [run["histogram"] for point in group for run in point.night.runs]
    return [pair for blob in blobs if blob is not None for pair in unpacked(blob)]


def _ridge(
    counts: Sequence[tuple[int, int]],
    edges: np.typing.NDArray[np.float64],
    x: Callable[[float], float],
    base: float,
    most: int,
) -> Iterator[str]:
    latencies, numbers = zip(*counts, strict=True)
    heights, _ = np.histogram(latencies, bins=edges, weights=numbers)
    path = f"M{x(edges[0]):.1f} {base}"
    for begin, end, number in zip(edges[:-1], edges[1:], heights, strict=True):
        high = TALL * math.log10(2 * number) / math.log10(2 * most) if number else 0
        path += f"H{x(begin):.1f}V{base - high:.1f}H{x(end):.1f}"
    yield (
        f'<path d="{path}V{base}z" fill="var(--paper, {PAPER})" '
        f'stroke="var(--c0, {PALETTE[0]})" stroke-width=".7"/>'
    )
    at = x(max(latencies))
    yield f'<circle cx="{at:.1f}" cy="{base - 2:.1f}" r="1.7" {fill_of(1)}/>'
