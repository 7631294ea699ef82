"""
The picture of each wake-up over the time of a run, as markup of a page.

It widens by the zoom that the reader chose, as the timeline of a wake-up does: strokes
are drawn in the picture's own places, times and latencies are text beside it. No
script.
"""

import math
from collections.abc import Iterator
from html import escape

from rtscope.host.units import NS_PER_S, format_us, plural
from rtscope.present.charts.bars import tick_step
from rtscope.present.charts.flame import ZOOMS, zoom_choice
from rtscope.present.model.wakeups import Strokes, WakeupsOverTime

HEIGHT = 1000
"""Of the picture, in its own units; its width is one for each place."""

LINEAR_RATIO = 8
"""Latencies that span more than this are drawn on a logarithmic axis."""

_TICKS = 6


def wakeups_chart(picture: WakeupsOverTime, *, name: str, virtual: str) -> str:
    """Return the markup; `name` keeps its identifiers apart in a page."""
    scale = _Scale(picture)
    drawn = "".join(
        (
            *(_of_cpu(scale, one) for one in picture.cpus),
            _missed(picture),
            _limit(scale, picture),
        )
    )
    about = escape(f"Latency of each wake-up of {picture.run} over time")
    return (
        f'<div class="flame wakeups">{zoom_choice(f"{name}-each")}'
        f'<div class="scale">{"".join(_levels(scale, picture, virtual))}</div>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{about}">'
        f'<div class="wide"><svg viewBox="0 0 {picture.columns} {HEIGHT}" '
        f'preserveAspectRatio="none" role="img" aria-label="{about}">{drawn}</svg>'
        f'<div class="row ticks">{"".join(_times(picture))}</div></div></div>'
        f"{_key(picture)}</div>"
    )


def note_of_wakeups(picture: WakeupsOverTime) -> str:
    """Say what is drawn, in one or two sentences."""
    said = f"{picture.wakeups:,} wake-ups of {picture.run}"
    if picture.most_in_stroke > 1:
        said += (
            "; a stroke reaches from the least to the greatest latency of at most "
            f"{picture.most_in_stroke:,}"
        )
    else:
        said += ", a point for each"
    said += f". Red line: the {picture.limit}, {format_us(picture.limit_ns)} µs"
    if picture.missed_periods:
        missed = plural(picture.missed_periods, "missed period")
        said += f"; red marks below it: {missed}"
    left = plural(picture.cpus_left_out, "CPU")
    return f"{said}." + f" {left} more in the file." * bool(picture.cpus_left_out)


class _Scale:
    """From latencies to heights of the picture."""

    def __init__(self, picture: WakeupsOverTime) -> None:
        self.is_log = picture.high_ns > LINEAR_RATIO * picture.low_ns
        self.low = picture.low_ns / 1.3 if self.is_log else 0.0
        self.high = picture.high_ns * (1.5 if self.is_log else 1.1)

    def height(self, ns: float) -> int:
        """Return the distance from the top."""
        share = ns / self.high
        if self.is_log:
            share = math.log(max(ns, self.low) / self.low) / math.log(
                self.high / self.low
            )
        return round(HEIGHT * (1 - max(0.0, share)))


def _of_cpu(scale: _Scale, one: Strokes) -> str:
    path = "".join(
        f"M{place} {scale.height(least)}V{scale.height(greatest)}"
        for place, least, greatest in zip(
            one.places, one.least_ns, one.greatest_ns, strict=True
        )
    )
    return f'<path class="c{one.colour}" d="{path}"/>'


def _missed(picture: WakeupsOverTime) -> str:
    if not picture.missed:
        return ""
    path = "".join(f"M{place} {HEIGHT - 30}V{HEIGHT}" for place in picture.missed)
    return f'<path class="missed" d="{path}"/>'


def _limit(scale: _Scale, picture: WakeupsOverTime) -> str:
    return (
        f'<path class="limit" d="M0 {scale.height(picture.limit_ns)}'
        f'H{picture.columns}"/>'
    )


def _levels(scale: _Scale, picture: WakeupsOverTime, virtual: str) -> Iterator[str]:
    """Yield the latencies beside the picture."""
    yield f"<b>{virtual}µs</b>"
    if scale.is_log:
        first = math.floor(math.log10(scale.low))
        levels = [10.0**power for power in range(first, first + 12)]
        if sum(scale.low <= level <= scale.high for level in levels) < 3:
            levels = sorted(k * level for level in levels for k in (1, 2, 5))
    else:
        step = tick_step(round(scale.high), most=5)
        levels = [float(n * step) for n in range(6)]
    for ns in levels:
        if scale.low <= ns <= scale.high:
            top = scale.height(ns) / HEIGHT
            yield f'<span style="--y:{top:.3f}">{ns / 1000:,g}</span>'


def _times(picture: WakeupsOverTime) -> Iterator[str]:
    """Yield the times below it: at each zoom as many as have room."""
    seen: set[int] = set()
    for zoom in ZOOMS:
        step = tick_step(picture.span_ns, most=_TICKS * zoom)
        kind = f' class="from{zoom}"' if zoom > 1 else ""
        for at_ns in range(0, picture.span_ns, step):
            if at_ns in seen:
                continue
            seen.add(at_ns)
            left = f"{100 * at_ns / picture.span_ns:.3f}%"
            yield f'<span{kind} style="left:{left}">{at_ns / NS_PER_S:,g} s</span>'


def _key(picture: WakeupsOverTime) -> str:
    names = "".join(
        f'<span class="key key{one.colour}"></span>CPU {escape(one.label)} '
        for one in picture.cpus
    )
    return f'<p class="note">{names}</p>'
