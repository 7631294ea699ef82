"""The cycles of a thread, as SVG: how long responses and parts of latencies were."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from rtscope.host.units import NS_PER_MS, NS_PER_US, count, format_us
from rtscope.present.charts.axes import LIMIT, PALETTE, WIDTH_PT
from rtscope.present.charts.bars import (
    STROKE,
    drawing,
    fill_of,
    text_at,
    tick_step,
)
from rtscope.present.model.charts import bin_edges
from rtscope.programs.outside.model import OutsideThread, Stage
from rtscope.verbs.test.judge import VIRTUAL

_LEFT, _RIGHT, _TOP, _PLOT = 44, 14, 26, 120
_BOTTOM = _TOP + _PLOT
_WIDE = WIDTH_PT - _LEFT - _RIGHT
_TICK_PT = 34
"""Between two numbers of an axis, at least."""
MOST_DOTS = 1500
"""Of more cycles, the shortest and the longest of each place are drawn."""

_BUDGET = (
    f'stroke="var(--limit, {LIMIT})" stroke-width="1.2" stroke-dasharray="5 2" '
    'fill="none"'
)


Place = Callable[[int, int], tuple[float, float]]
"""From begin and response of a cycle to where it is drawn."""


def spread_of(thread: OutsideThread, limit_ns: int | None, *, name: str) -> Markup:
    """Return how many responses were how long, beside what is allowed."""
    responses = [one.response_ns for one in thread.cycles]
    ends = [*responses, *([limit_ns] if limit_ns else [])]
    edges, logarithmic = bin_edges(min(ends), max(ends))
    counts, _ = np.histogram(responses, bins=edges)
    x = _place_of(edges, _LEFT, logarithmic=logarithmic)
    most = max(2, int(counts.max()))
    parts = [*_count_axis(most)]
    parts += _bars(edges, counts, x, _BOTTOM, partial(_height, most=most))
    parts += _ticked(edges, x, _BOTTOM, logarithmic=logarithmic)
    words = f"response ({VIRTUAL}µs); height: number of cycles"
    parts.append(text_at(WIDTH_PT / 2, _BOTTOM + 29, words, muted=True))
    if limit_ns:
        parts += _upright(x(limit_ns), f"allowed {format_us(limit_ns)}")
    parts.append(_longest(x(max(responses)), max(responses)))
    about = f"{count(len(responses))} responses of {thread.name}, {_range(responses)}"
    title = f"Responses of {thread.name}"
    return _drawn(parts, name=name, about=(title, about))


_ROW, _NAMES = 44, 76
"""Of a part: its height, and what its name takes of the width."""


def parts_chart(
    samples: Mapping[Stage, Sequence[int]], *, thread: str, name: str
) -> Markup:
    """
    Return how many wake-ups had how much of each part, on one axis of time.

    What was always 0 is not drawn.
    """
    samples = {stage: of for stage, of in samples.items() if max(of)}
    every = [ns for of in samples.values() for ns in of if ns] or [1]
    edges, logarithmic = bin_edges(min(every), max(every))
    bottom = 8 + _ROW * len(samples)
    x = _place_of(edges, _NAMES, logarithmic=logarithmic)
    parts: list[str] = []
    for number, (stage, of) in enumerate(samples.items()):
        base = 8 + _ROW * (number + 1)
        parts.append(f'<path d="M{_NAMES} {base}H{WIDTH_PT - _RIGHT}" {STROKE}/>')
        parts.append(text_at(_NAMES - 8, base - 12, stage.value, anchor="end"))
        most = f"{format_us(max(of))}"
        parts.append(text_at(_NAMES - 8, base - 1, most, anchor="end", muted=True))
        counts, _ = np.histogram(np.maximum(of, edges[0]), bins=edges)
        height = partial(_height, most=len(of), room_pt=_ROW - 8)
        parts += _bars(edges, counts, x, base, height, colour=number)
    parts += _ticked(edges, x, bottom, logarithmic=logarithmic)
    words = f"{VIRTUAL}µs; height: number of wake-ups, logarithmic; below a name: most"
    parts.append(text_at(WIDTH_PT / 2, bottom + 29, words, muted=True))
    said = (f"{stage.value} {_range(of)}" for stage, of in samples.items())
    about = f"Parts of the wake-up latency of {thread}", "; ".join(said)
    return Markup(drawing("parts", bottom + 34, parts, name=name, about=about))


def _place_of(
    edges: NDArray[np.float64], left: float, *, logarithmic: bool
) -> Callable[[float], float]:
    """Return from a time to where it is on an axis of these bins."""
    low, high = _scaled([edges[0], edges[-1]], logarithmic=logarithmic)

    def x(ns: float) -> float:
        (at,) = _scaled([ns], logarithmic=logarithmic)
        return left + (WIDTH_PT - left - _RIGHT) * (at - low) / (high - low)

    return x


def _bars(
    edges: NDArray[np.float64],
    counts: NDArray[np.int_],
    x: Callable[[float], float],
    base: float,
    height: Callable[[int], float],
    *,
    colour: int = 0,
) -> Iterator[str]:
    for begin, end, number in zip(edges[:-1], edges[1:], counts, strict=True):
        if number:
            high = height(int(number))
            yield (
                f'<rect x="{x(begin):.1f}" y="{base - high:.1f}" '
                f'width="{max(1.2, x(end) - x(begin)):.2f}" height="{high:.1f}" '
                f"{fill_of(colour)}/>"
            )


def _ticked(
    edges: NDArray[np.float64],
    x: Callable[[float], float],
    bottom: float,
    *,
    logarithmic: bool,
) -> Iterator[str]:
    free = -math.inf
    for ns in _ticks(edges[0], edges[-1], logarithmic=logarithmic):
        yield f'<path d="M{x(ns):.1f} {bottom}v4" {STROKE}/>'
        if x(ns) - free >= _TICK_PT:
            shown = f"{ns / NS_PER_US:,g}"
            yield text_at(x(ns), bottom + 15, shown, muted=True)
            free = x(ns)


def over_time_of(
    thread: OutsideThread, limit_ns: int | None, *, began_ns: int, name: str
) -> Markup:
    """Return the response of each cycle by its begin, the worst marked."""
    cycles, worst = thread.cycles, thread.worst
    end_ns = max(1, cycles[-1].begin_ns - began_ns)
    top_ns = 1.08 * max(worst.response_ns, limit_ns or 0)

    def place(begin_ns: int, response_ns: int) -> tuple[float, float]:
        x = _LEFT + _WIDE * (begin_ns - began_ns) / end_ns
        return x, _BOTTOM - _PLOT * response_ns / top_ns

    every = [(one.begin_ns, one.response_ns) for one in cycles]
    dots = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in _thinned(every, place))
    parts = [*_time_axis(end_ns), *_response_axis(top_ns)]
    parts += _allowed(limit_ns, top_ns)
    parts.append(
        f'<path d="{dots}" stroke="var(--c0, {PALETTE[0]})" stroke-width="2.4" '
        'stroke-linecap="round" fill="none"/>'
    )
    at = place(worst.begin_ns, worst.response_ns)
    parts += _marked(*at, f"cycle {worst.number}")
    words = "virtual ms since judging began; height: response in virtual µs"
    parts.append(text_at(WIDTH_PT / 2, _BOTTOM + 29, words, muted=True))
    responses = [one.response_ns for one in cycles]
    about = f"{_range(responses)}, the longest at cycle {worst.number}"
    title = f"Responses of {thread.name} over time"
    return _drawn(parts, name=name, about=(title, about))


def growth_of(
    worsts_ns: Sequence[int], limit_ns: int | None, *, thread: str, name: str
) -> Markup:
    """Return the worst response of each start of a search, and the worst so far."""
    highest = max(worsts_ns)
    at_worst = worsts_ns.index(highest)
    top_ns = 1.08 * max(1, highest, limit_ns or 0)
    wide = _WIDE / len(worsts_ns)

    def x(at: float) -> float:
        return _LEFT + wide * at

    def y(ns: int) -> float:
        return _BOTTOM - _PLOT * ns / top_ns

    dots = "".join(f"M{x(at + 0.5):.1f} {y(n):.1f}h0" for at, n in enumerate(worsts_ns))
    steps = f"M{_LEFT} {y(worsts_ns[0]):.1f}" + "".join(
        f"H{x(at):.1f}V{y(ns):.1f}" for at, ns in enumerate(accumulate(worsts_ns, max))
    )
    parts = [f'<path d="M{_LEFT} {_BOTTOM}h{_WIDE}" {STROKE}/>']
    every = max(1, -(-len(worsts_ns) // 8))
    for number in range(every, len(worsts_ns) + 1, every):
        shown = f"{number:,}"
        parts.append(text_at(x(number - 0.5), _BOTTOM + 15, shown, muted=True))
    parts += _response_axis(top_ns)
    parts += _allowed(limit_ns, top_ns)
    parts.append(f'<path d="{steps}H{_LEFT + _WIDE}" {STROKE}/>')
    parts.append(
        f'<path d="{dots}" stroke="var(--c0, {PALETTE[0]})" stroke-width="2.4" '
        'stroke-linecap="round" fill="none"/>'
    )
    parts += _marked(x(at_worst + 0.5), y(highest), f"start {at_worst + 1}")
    words = "start; height: its worst response in virtual µs; line: the worst so far"
    parts.append(text_at(WIDTH_PT / 2, _BOTTOM + 29, words, muted=True))
    title = f"Worst response of {thread} by start"
    about = f"{_range(worsts_ns)}, the longest in start {at_worst + 1}"
    return _drawn(parts, name=name, about=(title, about))


def _allowed(limit_ns: int | None, top_ns: float) -> Iterator[str]:
    if limit_ns:
        y = _BOTTOM - _PLOT * limit_ns / top_ns
        yield f'<path d="M{_LEFT} {y:.1f}h{_WIDE}" {_BUDGET}/>'
        said = f"allowed {format_us(limit_ns)}"
        yield text_at(_LEFT + 3, y - 3, said, anchor="start", muted=True)


def _drawn(parts: Sequence[str], *, name: str, about: tuple[str, str]) -> Markup:
    return Markup(drawing("responses", _BOTTOM + 34, parts, name=name, about=about))


def _range(responses: Sequence[int]) -> str:
    low, high = format_us(min(responses)), format_us(max(responses))
    return f"{low} to {high} {VIRTUAL}µs"


def _scaled(values: Sequence[float], *, logarithmic: bool) -> list[float]:
    return [math.log10(max(1, one)) if logarithmic else one for one in values]


def _ticks(low: float, high: float, *, logarithmic: bool) -> Iterator[float]:
    if not logarithmic:
        step = tick_step(int(high - low))
        yield from range(-(-int(low) // step) * step, int(high) + 1, step)
        return
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        for factor in (1, 2, 5):
            if low <= factor * 10**power <= high:
                yield factor * 10**power


def _height(number: int, most: int, room_pt: float = _PLOT - 14) -> float:
    """Return how high a bar is; the axis of counts is logarithmic, from one half on."""
    return room_pt * math.log10(2 * number) / math.log10(2 * most)


def _count_axis(most: int) -> Iterator[str]:
    yield f'<path d="M{_LEFT} {_BOTTOM}h{_WIDE}" {STROKE}/>'
    level = 1
    while level <= most:
        y = _BOTTOM - _height(level, most)
        yield f'<path d="M{_LEFT} {y:.1f}h-4" {STROKE}/>'
        yield text_at(_LEFT - 6, y + 3, f"{level:,}", anchor="end", muted=True)
        level *= 10


def _response_axis(top_ns: float) -> Iterator[str]:
    step = tick_step(int(top_ns))
    for ns in range(0, int(top_ns) + 1, step):
        y = _BOTTOM - _PLOT * ns / top_ns
        yield f'<path d="M{_LEFT} {y:.1f}h-4" {STROKE}/>'
        shown = f"{ns / NS_PER_US:,g}"
        yield text_at(_LEFT - 6, y + 3, shown, anchor="end", muted=True)


def _time_axis(end_ns: int) -> Iterator[str]:
    yield f'<path d="M{_LEFT} {_BOTTOM}h{_WIDE}" {STROKE}/>'
    for ns in range(0, end_ns + 1, tick_step(end_ns)):
        x = _LEFT + _WIDE * ns / end_ns
        yield f'<path d="M{x:.1f} {_BOTTOM}v4" {STROKE}/>'
        yield text_at(x, _BOTTOM + 15, f"{ns / NS_PER_MS:,g}", muted=True)


def _upright(x: float, words: str) -> Iterator[str]:
    yield f'<path d="M{x:.1f} {_TOP}V{_BOTTOM}" {_BUDGET}/>'
    yield text_at(*_beside(x, _TOP + 8), words, anchor=_anchor(x), muted=True)


def _longest(x: float, ns: int) -> str:
    words = f"worst {format_us(ns)}"
    arrow = f'<path d="M{x:.1f} {_TOP - 8}v{_PLOT - 4}" {STROKE} opacity=".6"/>'
    return arrow + text_at(*_beside(x, _TOP - 10), words, anchor=_anchor(x), bold=True)


def _marked(x: float, y: float, words: str) -> Iterator[str]:
    yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="none" {STROKE}/>'
    place = _beside(x, max(10, y - 7))
    yield text_at(*place, words, anchor=_anchor(x), bold=True)


def _beside(x: float, y: float) -> tuple[float, float]:
    return (x - 3 if _anchor(x) == "end" else x + 3), y


def _anchor(x: float) -> str:
    return "end" if x > _LEFT + _WIDE / 2 else "start"


def _thinned(
    every: Sequence[tuple[int, int]], place: Place
) -> Iterator[tuple[float, float]]:
    """Yield the places of all cycles, or of the least and the most of each spot."""
    places = [place(*one) for one in every]
    if len(places) <= MOST_DOTS:
        yield from places
        return
    spots: dict[int, list[tuple[float, float]]] = {}
    for one in places:
        spots.setdefault(int(2 * one[0]), []).append(one)
    for spot in spots.values():
        yield min(spot, key=lambda one: one[1])
        yield max(spot, key=lambda one: one[1])
