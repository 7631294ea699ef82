"""
Draw the charts: matplotlib figures from plain numbers, and how they leave as files.

Figures are made without pyplot and without its state. Every colour is one of the
named ones below, so that `svg.embed` can hand it over to the page. Latencies are
drawn in microseconds.
"""

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rtscope.host.units import NS_PER_US, format_us
from rtscope.present.charts.axes import (
    CHARACTER_PT,
    FILL,
    INK,
    PALETTE,
    PAPER,
    RIGHT_PT,
    SMALL_PT,
    STYLE,
    VARIABLES,
    count_axis,
    in_us,
    latency_axis,
    line_key,
    mark_deadline,
    mark_key,
    mark_maximum,
    new_figure,
    number_pt,
    shade_unresolved,
    share_axis,
    title,
)
from rtscope.present.charts.overtime import draw_late, draw_maxima
from rtscope.present.charts.svg import embed
from rtscope.present.charts.value import draw_value
from rtscope.present.model.charts import (
    Chart,
    Histogram,
    Layer,
    Overlay,
    RangeGroup,
    RangeMark,
    TailCurve,
)
from rtscope.present.model.overtime import LateOverTime, MaximaOverTime
from rtscope.present.model.softvalue import ValueOverLatency

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PNG_DPI = 200

STYLES: Sequence[object] = ("-", (0, (5, 1.6)))
"""Distinguishable without colour too."""

LABEL_STEP = 0.08
"""Share of the height for the label of each curve."""

COUNTS_PT, SHARES_PT = 52.0, 74.0
"""Beside the axes: `100 k`, `1 in 100 M`."""


def headroom(curves: int) -> float:
    """Return how far above the highest the axis ends: the labels need room."""
    return max(60.0, 10 ** (0.6 * curves))


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
        return draw_maxima(chart, chart.content)
    if isinstance(chart.content, LateOverTime):
        return draw_late(chart, chart.content)
    if isinstance(chart.content, ValueOverLatency):
        return draw_value(chart, chart.content)
    if isinstance(chart.content, Overlay):
        return _draw_overlay(chart, chart.content)
    tails = tuple(t for t in chart.content if isinstance(t, TailCurve))
    if tails:
        return _draw_tail(chart, tails)
    groups = tuple(g for g in chart.content if isinstance(g, RangeGroup))
    return _draw_comparison(chart, groups)


def _right_of(highest_us: float) -> float:
    """Return the room for half of the last number of such an axis."""
    return max(RIGHT_PT, number_pt(highest_us) / 2 + 2)


def _left_of(labels: Iterable[str]) -> float:
    """Return the room that labels of rows take, in points."""
    return 12 + CHARACTER_PT * max(map(len, labels))


def _draw_histogram(chart: Chart, content: Histogram) -> "Figure":
    edges = in_us(content.edges_ns)
    figure = new_figure(265, left_pt=COUNTS_PT, right_pt=_right_of(edges[-1]))
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
    latency_axis(ax, edges[0], edges[-1], logarithmic=content.logarithmic, chart=chart)
    count_axis(ax)
    ax.set_ylabel("samples per bin")
    mark_maximum(ax, content.max_ns)
    mark_deadline(ax, chart.deadline_ns)
    title(ax, chart.title, content.cpus)
    return figure


def _draw_tail(chart: Chart, tails: tuple[TailCurve, ...]) -> "Figure":
    observed, corrected = tails[0], tails[1:]
    last = max(tail.x_ns[-1] for tail in tails) / NS_PER_US
    figure = new_figure(265, left_pt=SHARES_PT, right_pt=_right_of(last * 1.15))
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
        chart=chart,
    )
    ax.set_ylim(min(tail.probability[-1] for tail in tails) / 3, 1.6)
    shade_unresolved(ax, chart.samples)
    share_axis(ax)
    ax.set_ylabel(f"share with at least this {chart.measured.size}")
    mark_deadline(ax, chart.deadline_ns)
    title(ax, chart.title, ())
    names = [("observed", INK, "-")]
    names += [("with missed periods", PALETTE[1], "--") for _ in corrected]
    line_key(ax, names)
    return figure


def _steps(ax: "Axes", tail: TailCurve, **style: Any) -> None:
    ax.plot(in_us(tail.x_ns), tail.probability, drawstyle="steps-pre", **style)


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
    figure = new_figure(height_pt, left_pt=left_pt, right_pt=_right_of(end))
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
    latency_axis(ax, low / 1.3, end, logarithmic=True, chart=chart)
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
    figure = new_figure(265, left_pt=left_pt, right_pt=right_pt)
    ax = figure.subplots()
    if content.tails:
        _draw_tails(ax, content, chart.measured.size)
    else:
        _draw_counts(ax, content)
    edges = content.edges_ns
    latency_axis(
        ax,
        edges[0] / NS_PER_US,
        edges[-1] / NS_PER_US,
        logarithmic=content.logarithmic,
        chart=chart,
    )
    for place, layer in enumerate(content.layers):
        _name_end(
            ax, layer, place, start=edges[0], end=edges[-1], log=content.logarithmic
        )
    mark_deadline(ax, chart.deadline_ns, top=1 - LABEL_STEP * len(content.layers))
    title(ax, chart.title, ())
    return figure


def _draw_counts(ax: "Axes", content: Overlay) -> None:
    # Half a sample: on a logarithmic axis a single one then still has a height.
    floor = 0.5
    edges = in_us(content.edges_ns)
    for place, layer in enumerate(content.layers):
        heights = [max(count, floor) for count in layer.counts]
        colour = PALETTE[layer.colour]
        ax.stairs(heights, edges, baseline=floor, fill=True, color=colour, alpha=0.16)
        style = STYLES[place % len(STYLES)]
        ax.stairs(heights, edges, baseline=None, color=colour, lw=1.2, ls=style)
    ax.set_yscale("log")
    highest = max(max(layer.counts) for layer in content.layers)
    ax.set_ylim(floor, highest * headroom(len(content.layers)))
    count_axis(ax)
    ax.set_ylabel("samples per bin")


def _draw_tails(ax: "Axes", content: Overlay, size: str) -> None:
    for place, layer in enumerate(content.layers):
        style = STYLES[place % len(STYLES)]
        _steps(ax, layer.tail, color=PALETTE[layer.colour], lw=1.5, ls=style)
    ax.set_yscale("log")
    lowest = min(layer.tail.probability[-1] for layer in content.layers)
    ax.set_ylim(lowest / 3, headroom(len(content.layers)))
    fewest = min(layer.samples for layer in content.layers)
    shade_unresolved(ax, fewest)
    share_axis(ax)
    ax.set_ylabel(f"share with at least this {size}")


def _name_end(
    ax: "Axes", layer: Layer, place: int, *, start: float, end: float, log: bool
) -> None:
    """Write name and maximum above the end of a curve, and a line down to it."""
    at = layer.max_ns / NS_PER_US
    middle = (start * end) ** 0.5 if log else (start + end) / 2
    right = layer.max_ns > middle
    row = 0.985 - LABEL_STEP * place
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
