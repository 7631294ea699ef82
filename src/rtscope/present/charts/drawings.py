"""
Draw the charts: matplotlib figures from plain numbers, and how they leave as files.

Figures are made without pyplot and without its state. Every colour is one of the
named ones below, so that `svg.embed` can hand it over to the page. Latencies are
drawn in microseconds.
"""

import io
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rtscope.host.units import NS_PER_US, format_us
from rtscope.present.charts.axes import (
    FILL,
    INK,
    LIMIT,
    PALETTE,
    PAPER,
    SMALL_PT,
    STYLE,
    VARIABLES,
    WIDTH_PT,
    count_axis,
    latency_axis,
    line_key,
    mark_deadline,
    mark_key,
    mark_maximum,
    plain_log_ticks,
    shade_unresolved,
    share_axis,
    title,
)
from rtscope.present.charts.svg import embed
from rtscope.present.model.charts import (
    Chart,
    CpuCurve,
    Histogram,
    Layer,
    MaximaOverTime,
    Overlay,
    RangeGroup,
    RangeMark,
    TailCurve,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PNG_DPI = 200

STYLES: Sequence[object] = ("-", (0, (5, 1.6)))
"""Distinguishable without colour too."""

HEADROOM = 60
"""How far above the highest count the axis ends, so that the labels have room."""

TOP_PT, BOTTOM_PT, RIGHT_PT = 36.0, 40.0, 14.0
"""Around the axes: title and key, numbers and label below, half of a short number."""

COUNTS_PT, SHARES_PT, LABEL_PT, DEGREES_PT = 52.0, 74.0, 28.0, 46.0
"""Beside the axes: `100 k`, `1 in 100 M`, a label without its numbers, degrees."""

CHARACTER_PT, DIGIT_PT = 6.4, 5.8
"""A wide one of STYLE's type, for labels of rows; one of a number."""

LABEL_ROWS = (0.985, 0.905)
DEADLINE_ROWS = (1.0, 0.92, 0.84)
"""Below the labels of none, one or more sides."""


def svg_of(chart: Chart) -> str:
    """Draw a chart as an `<svg>` element, for a page or as a file of its own."""
    return embed(
        _rendered(chart, "svg").decode("utf-8"),
        chart.name,
        title=chart.title,
        description=chart.description,
        colours=VARIABLES,
    )


def png_of(chart: Chart) -> bytes:
    """Draw a chart in the light palette, at 200 dots per inch."""
    return _rendered(chart, "png")


def files_of(charts: Iterable[Chart]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each chart as `NAME.svg` and `NAME.png`."""
    for chart in charts:
        yield f"{chart.name}.svg", svg_of(chart).encode()
        yield f"{chart.name}.png", png_of(chart)


def _rendered(chart: Chart, form: str) -> bytes:
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        figure = _figure_of(chart)
        out = io.BytesIO()
        # The same bytes as from savefig, which draws each figure twice.
        if form == "svg":
            FigureCanvasSVG(figure).print_svg(out, metadata={"Date": None})
        else:
            figure.dpi = PNG_DPI
            FigureCanvasAgg(figure).print_png(out, metadata={"Software": None})
    return out.getvalue()


def _figure_of(chart: Chart) -> "Figure":
    if isinstance(chart.content, Histogram):
        return _draw_histogram(chart, chart.content)
    if isinstance(chart.content, MaximaOverTime):
        return _draw_over_time(chart, chart.content)
    if isinstance(chart.content, Overlay):
        return _draw_overlay(chart, chart.content)
    tails = tuple(t for t in chart.content if isinstance(t, TailCurve))
    if tails:
        return _draw_tail(chart, tails)
    groups = tuple(g for g in chart.content if isinstance(g, RangeGroup))
    return _draw_comparison(chart, groups)


def _new_figure(
    height_pt: float, *, left_pt: float, right_pt: float = RIGHT_PT
) -> "Figure":
    """
    Make a figure whose axes leave this room, known beforehand, for their labels.

    A layout that measures every text takes as long as the drawing itself.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH_PT / 72, height_pt / 72))
    figure.subplots_adjust(
        left=left_pt / WIDTH_PT,
        right=1 - right_pt / WIDTH_PT,
        top=1 - TOP_PT / height_pt,
        bottom=BOTTOM_PT / height_pt,
        hspace=0.12,
    )
    return figure


def _number_pt(highest_us: float) -> float:
    """Return the room for the longest number of an axis that ends there."""
    return DIGIT_PT * len(f"{highest_us:,.0f}")


def _right_of(highest_us: float) -> float:
    """Return the room for half of the last number of such an axis."""
    return max(RIGHT_PT, _number_pt(highest_us) / 2 + 2)


def _left_of(labels: Iterable[str]) -> float:
    """Return the room that labels of rows take, in points."""
    return 12 + CHARACTER_PT * max(map(len, labels))


def _us(values_ns: Sequence[float]) -> list[float]:
    return [value / NS_PER_US for value in values_ns]


def _draw_histogram(chart: Chart, content: Histogram) -> "Figure":
    edges = _us(content.edges_ns)
    figure = _new_figure(265, left_pt=COUNTS_PT, right_pt=_right_of(edges[-1]))
    ax = figure.subplots()
    # Half a sample: on a logarithmic axis a single one then still has a height.
    floor = 0.5
    ax.stairs(
        [max(v, floor) for v in content.merged],
        edges,
        baseline=floor,
        fill=True,
        color=FILL,
    )
    if len(content.cpus) > 1:
        for curve in content.cpus:
            heights = [max(v, floor) for v in curve.values]
            ax.stairs(
                heights, edges, baseline=None, color=PALETTE[curve.colour], lw=0.8
            )
    ax.set_yscale("log")
    ax.set_ylim(floor, max(content.merged) * 4)
    latency_axis(
        ax, edges[0], edges[-1], logarithmic=content.logarithmic, virtual=chart.virtual
    )
    count_axis(ax)
    ax.set_ylabel("samples per bin")
    mark_maximum(ax, content.max_ns)
    mark_deadline(ax, chart.deadline_ns)
    title(ax, chart.title, content.cpus)
    return figure


def _draw_tail(chart: Chart, tails: tuple[TailCurve, ...]) -> "Figure":
    observed, corrected = tails[0], tails[1:]
    last = max(tail.x_ns[-1] for tail in tails) / NS_PER_US
    figure = _new_figure(265, left_pt=SHARES_PT, right_pt=_right_of(last * 1.15))
    ax = figure.subplots()
    for tail in corrected:
        _steps(ax, tail, color=PALETTE[1], lw=1.2, ls=(0, (4, 2)))
    _steps(ax, observed, color=INK, lw=1.3)
    ax.set_yscale("log")
    first = max(observed.x_ns[0] / NS_PER_US, 1e-3)
    latency_axis(
        ax,
        first * 0.9,
        max(last, first * 1.5) * 1.15,
        logarithmic=True,
        virtual=chart.virtual,
    )
    ax.set_ylim(min(tail.probability[-1] for tail in tails) / 3, 1.6)
    shade_unresolved(ax, chart.samples)
    share_axis(ax)
    ax.set_ylabel("share with at least this latency")
    mark_deadline(ax, chart.deadline_ns)
    title(ax, chart.title, ())
    names = [("observed", INK, "-")]
    names += [("with missed periods", PALETTE[1], "--") for _ in corrected]
    line_key(ax, names)
    return figure


def _steps(ax: "Axes", tail: TailCurve, **style: Any) -> None:
    ax.plot(_us(tail.x_ns), tail.probability, drawstyle="steps-pre", **style)


def _draw_over_time(chart: Chart, content: MaximaOverTime) -> "Figure":
    from matplotlib.ticker import MaxNLocator

    below = bool(content.ghz) or bool(content.celsius)
    two_scales = bool(content.ghz) and bool(content.celsius)
    right_pt = DEGREES_PT if two_scales else RIGHT_PT
    highest = max(content.merged_ns, default=0) * 1.25 / NS_PER_US
    left_pt = LABEL_PT + _number_pt(highest)
    figure = _new_figure(345 if below else 265, left_pt=left_pt, right_pt=right_pt)
    ratios = [3, 1.15] if below else [1]
    axes = figure.subplots(
        len(ratios), 1, sharex=True, squeeze=False, height_ratios=ratios
    )
    ax = axes[0][0]
    for curve in content.cpus:
        _dashes(ax, content, curve)
    positive = [v for v in content.merged_ns if v > 0] or [1.0]
    low, high = min(positive) / NS_PER_US, max(positive) / NS_PER_US
    lows = [v for c in content.cpus for v in c.values if v > 0]
    low = min([low, *_us(lows)])
    if high > 8 * low:
        ax.set_yscale("log")
        ax.set_ylim(low / 1.6, high * 2.2)
        plain_log_ticks(ax, "y", low / 1.6, high * 2.2)
    else:
        ax.set_ylim(0, high * 1.25)
    ax.grid(axis="y")
    step = "second" if content.step_s == 1 else f"{content.step_s} s"
    ax.set_ylabel(f"maximum per {step} ({chart.virtual}µs)")
    if content.skipped_s:
        _mark_skipped(ax, content.skipped_s)
    end = content.seconds[-1] + content.step_s
    ax.set_xlim(0, end)
    title(ax, chart.title, content.cpus)
    if below:
        _draw_hardware(axes[1][0], content)
    axes[-1][0].xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes[-1][0].set_xlabel("time into the run (s)")
    return figure


def _dashes(ax: "Axes", content: MaximaOverTime, curve: CpuCurve) -> None:
    """Draw each maximum as a dash over its own step: nothing between is implied."""
    xs: list[float] = []
    ys: list[float] = []
    # So short a dash would vanish in print; a round end makes it a dot.
    for start, value in zip(content.seconds, curve.values, strict=True):
        if value > 0:
            xs += [start, start + content.step_s, math.nan]
            ys += [value / NS_PER_US] * 2 + [math.nan]
    ax.plot(
        xs,
        ys,
        color=PALETTE[curve.colour],
        lw=1.6,
        solid_capstyle="round",
    )


def _mark_skipped(ax: "Axes", seconds: Sequence[float]) -> None:
    ax.plot(
        seconds,
        [0.985] * len(seconds),
        transform=ax.get_xaxis_transform(),
        ls="",
        marker="v",
        ms=4,
        color=LIMIT,
        clip_on=False,
    )
    ax.annotate(
        "▾ missed periods" if len(seconds) > 1 else "▾ missed period",
        (1, 0.94),
        xycoords="axes fraction",
        ha="right",
        va="top",
        fontsize=SMALL_PT,
        color=LIMIT,
    )


def _draw_hardware(ax: "Axes", content: MaximaOverTime) -> None:
    middles = [s + content.step_s / 2 for s in content.seconds]
    for curve in content.ghz:
        ax.plot(middles, curve.values, color=PALETTE[curve.colour], lw=0.9)
    if content.ghz:
        ax.set_ylabel("GHz")
        values = [v for c in content.ghz for v in c.values if not math.isnan(v)]
        ax.set_ylim(0, max(values) * 1.15)
    ax.grid(axis="y")
    if not content.celsius:
        return
    twin = ax.twinx() if content.ghz else ax
    if twin is not ax:
        twin.spines["right"].set_visible(True)
    twin.plot(middles, content.celsius, color=INK, lw=1.0, ls=(0, (1.5, 1.5)))
    known = [v for v in content.celsius if not math.isnan(v)]
    middle, half = (max(known) + min(known)) / 2, (max(known) - min(known)) / 2
    half = max(5.0, half * 1.3)
    twin.set_ylim(middle - half, middle + half)
    twin.set_ylabel("°C (dotted)")


def _draw_comparison(chart: Chart, groups: tuple[RangeGroup, ...]) -> "Figure":
    rows = sum(len(group.marks) for group in groups)
    several = any(len(group.marks) > 1 for group in groups)
    labels = [m.label for g in groups for m in g.marks] if several else ()
    height_pt = 90 + 21 * rows + (18 * len(groups) if several else 0)
    # A row of its own for the deadline's label, which would hide a figure.
    height_pt += 0 if chart.deadline_ns is None else 13
    left_pt = _left_of(labels or [group.label for group in groups])
    marks = [mark for group in groups for mark in group.marks]
    low = min(max(mark.min_ns, 1) for mark in marks) / NS_PER_US
    high = max(low * 2, *(mark.max_ns / NS_PER_US for mark in marks))
    # Room on the right for the number beside the furthest maximum.
    end = high * (high / low) ** 0.2
    figure = _new_figure(height_pt, left_pt=left_pt, right_pt=_right_of(end))
    ax = figure.subplots()
    at = 0.0
    ticks: dict[float, str] = {}
    for group in groups:
        if several:
            _heading(ax, at, group.label)
            at += 0.85
        for mark in group.marks:
            _draw_mark(ax, at, mark)
            ticks[at] = mark.label if several else group.label
            at += 1
    ax.set_ylim(at - 0.4, -0.7 if chart.deadline_ns is None else -1.3)
    ax.set_yticks(list(ticks), list(ticks.values()))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    latency_axis(ax, low / 1.3, end, logarithmic=True, virtual=chart.virtual)
    mark_deadline(ax, chart.deadline_ns)
    title(ax, chart.title, ())
    mark_key(ax, with_p999=any(mark.p999_ns is not None for mark in marks))
    return figure


def _heading(ax: "Axes", at: float, text: str) -> None:
    ax.annotate(
        text,
        (0, at),
        (2, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center",
        fontweight="bold",
    )


def _draw_mark(ax: "Axes", at: float, mark: RangeMark) -> None:
    colour = PALETTE[mark.colour % len(PALETTE)]
    low, avg = max(mark.min_ns, 1) / NS_PER_US, mark.avg_ns / NS_PER_US
    high = mark.max_ns / NS_PER_US
    ax.plot([low, high], [at, at], color=colour, lw=1.1)
    ax.plot([low], [at], ls="", marker="|", ms=6, color=colour)
    ax.plot([avg], [at], ls="", marker="o", ms=5, mfc=PAPER, color=colour)
    if mark.p999_ns is not None:
        ax.plot([mark.p999_ns / NS_PER_US], [at], ls="", marker="|", ms=9, color=colour)
    ax.plot([high], [at], ls="", marker="D", ms=5, color=colour)
    ax.annotate(
        format_us(mark.max_ns),
        (high, at),
        (7, 0),
        textcoords="offset points",
        va="center",
        fontsize=9,
        fontweight="bold",
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.5},
    )


def _draw_overlay(chart: Chart, content: Overlay) -> "Figure":
    """Draw the counts per bin of each side, or its tail."""
    left_pt = SHARES_PT if content.tails else COUNTS_PT
    right_pt = _right_of(content.edges_ns[-1] / NS_PER_US)
    figure = _new_figure(265, left_pt=left_pt, right_pt=right_pt)
    ax = figure.subplots()
    if content.tails:
        _draw_tails(ax, content)
    else:
        _draw_counts(ax, content)
    edges = content.edges_ns
    latency_axis(
        ax,
        edges[0] / NS_PER_US,
        edges[-1] / NS_PER_US,
        logarithmic=content.logarithmic,
        virtual=chart.virtual,
    )
    for place, layer in enumerate(content.layers):
        _name_end(
            ax, layer, place, start=edges[0], end=edges[-1], log=content.logarithmic
        )
    rows = min(len(content.layers), len(LABEL_ROWS))
    mark_deadline(ax, chart.deadline_ns, top=DEADLINE_ROWS[rows])
    title(ax, chart.title, ())
    return figure


def _draw_counts(ax: "Axes", content: Overlay) -> None:
    # Half a sample: on a logarithmic axis a single one then still has a height.
    floor = 0.5
    edges = _us(content.edges_ns)
    for place, layer in enumerate(content.layers):
        heights = [max(count, floor) for count in layer.counts]
        colour = PALETTE[layer.colour]
        ax.stairs(heights, edges, baseline=floor, fill=True, color=colour, alpha=0.16)
        style = STYLES[place % len(STYLES)]
        ax.stairs(heights, edges, baseline=None, color=colour, lw=1.2, ls=style)
    ax.set_yscale("log")
    ax.set_ylim(floor, max(max(layer.counts) for layer in content.layers) * HEADROOM)
    count_axis(ax)
    ax.set_ylabel("samples per bin")


def _draw_tails(ax: "Axes", content: Overlay) -> None:
    for place, layer in enumerate(content.layers):
        style = STYLES[place % len(STYLES)]
        _steps(ax, layer.tail, color=PALETTE[layer.colour], lw=1.5, ls=style)
    ax.set_yscale("log")
    lowest = min(layer.tail.probability[-1] for layer in content.layers)
    ax.set_ylim(lowest / 3, HEADROOM)
    fewest = min(layer.samples for layer in content.layers)
    shade_unresolved(ax, fewest)
    share_axis(ax)
    ax.set_ylabel("share with at least this latency")


def _name_end(
    ax: "Axes", layer: Layer, place: int, *, start: float, end: float, log: bool
) -> None:
    """Write name and maximum above the end of a curve, and a line down to it."""
    at = layer.max_ns / NS_PER_US
    middle = (start * end) ** 0.5 if log else (start + end) / 2
    right = layer.max_ns > middle
    row = LABEL_ROWS[place % len(LABEL_ROWS)]
    colour = PALETTE[layer.colour]
    ax.axvline(at, ymax=row, color=colour, lw=0.8, ls=(0, (1, 1.5)))
    ax.annotate(
        f"{layer.label}  max {format_us(layer.max_ns)}",
        (at, row),
        (-4 if right else 4, 0),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="right" if right else "left",
        va="top",
        fontsize=SMALL_PT,
        fontweight="bold",
        color=colour,
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.8},
    )
