"""
What the charts share: colours and type of a paper's figure, axes, keys and labels.

Each colour here is replaced by a variable of the page in an SVG (`VARIABLES`).
Latencies here are in microseconds.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from rtscope.host.units import NS_PER_US, format_us
from rtscope.present.model.charts import Chart
from rtscope.present.model.overtime import CpuCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.transforms import Affine2DBase

INK = "#1c2127"
MUTED = "#5c6672"
GRID = "#dde1e5"
PAPER = "#fffffe"
FILL = "#c8d2dc"
LIMIT = "#a1002e"

# Okabe and Ito's palette, told apart in every form of colour blindness; its yellow,
# too pale for a line on white, comes last and darker.
PALETTE = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#7f7f80",
    "#b5a800",
)

VARIABLES = {
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--rule",
    PAPER: "--paper",
    FILL: "--fill",
    LIMIT: "--limit",
    **{colour: f"--c{i}" for i, colour in enumerate(PALETTE)},
}

WIDTH_PT = 390
"""As wide as a phone, so that a chart's text is readable there at its own size."""

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": PAPER,
    "axes.axisbelow": True,
    "axes.labelsize": 9.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.unicode_minus": True,
    "figure.facecolor": PAPER,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.minor.size": 2,
    "ytick.minor.size": 2,
    "path.simplify": True,
    "svg.fonttype": "none",
    "svg.hashsalt": "rtscope",
}

TICK_LEFT, TICK_DOWN = 0, 3
"""Markers of matplotlib (matplotlib.markers)."""

TOP_PT, BOTTOM_PT, RIGHT_PT = 36.0, 40.0, 14.0
"""Around the axes: title and key, numbers and label below, half of a short number."""

LABEL_PT = 28.0
"""Beside the axes: a label without its numbers."""

CHARACTER_PT, DIGIT_PT = 6.4, 5.8
"""A wide one of STYLE's type, for labels of rows; one of a number."""

SMALL_PT = 8.5
TITLE_PT = 10.5
NEAR_LEFT = 0.25
"""Of the axes' width: a label that ended there would begin beside them."""
KEY_HEIGHT_PT = 9


def new_figure(
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


def number_pt(highest_us: float) -> float:
    """Return the room for the longest number of an axis that ends there."""
    return DIGIT_PT * len(f"{highest_us:,.0f}")


def in_us(values_ns: Sequence[float]) -> list[float]:
    """Return times in microseconds."""
    return [value / NS_PER_US for value in values_ns]


def latency_axis(
    ax: "Axes", low: float, high: float, *, logarithmic: bool, chart: Chart
) -> None:
    """Make x the latency of a chart, from low to high microseconds."""
    ax.set_xlabel(f"{chart.measured.word} ({chart.virtual}µs)")
    if logarithmic:
        ax.set_xscale("log")
        plain_log_ticks(ax, "x", low, high)
    ax.set_xlim(low, high)
    ax.grid(axis="x")


def log_steps(decades: float) -> tuple[float, ...]:
    """Return the multiples of powers of ten that an axis of so many decades names."""
    if decades > 2.5:
        return (1.0,)
    if decades > 0.9:
        return (1.0, 2.0, 5.0)
    return (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)


def plain_log_ticks(ax: "Axes", which: str, low: float, high: float) -> None:
    """Write 1, 10, 1,000 and not powers; within few decades more between them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis: Axis = ax.xaxis if which == "x" else ax.yaxis
    decades = math.log10(high / low)
    steps = log_steps(decades)
    axis.set_major_locator(LogLocator(subs=steps, numticks=20))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _plain(value)))
    axis.set_minor_locator(NullLocator())
    _minor_ticks(ax, which, low, high)


def _minor_ticks(ax: "Axes", which: str, low: float, high: float) -> None:
    """Draw them as one line: as ticks of the axis they cost half of a chart's time."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = (
        step * 10.0**power for power in range(first, last) for step in range(2, 10)
    )
    places = [place for place in every if low <= place <= high]
    at_edge, along_x = [0.0] * len(places), which == "x"
    ax.plot(
        places if along_x else at_edge,
        at_edge if along_x else places,
        transform=ax.get_xaxis_transform() if along_x else ax.get_yaxis_transform(),
        ls="",
        marker=TICK_DOWN if along_x else TICK_LEFT,
        ms=2,
        mew=0.6,
        color=MUTED,
        clip_on=False,
        scalex=False,
        scaley=False,
    )


def count_axis(ax: "Axes") -> None:
    """Label a logarithmic axis of counts with 1, 10, 100, 1 k, 1 M."""
    _label_decades(ax, _count)


def share_axis(ax: "Axes") -> None:
    """Label a logarithmic axis of shares with 1 in 10, 1 in 1 k, 1 in 1 M."""
    _label_decades(ax, _share)


def _label_decades(ax: "Axes", write: Callable[[float], str]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    ax.yaxis.set_major_locator(LogLocator(subs=(1.0,), numticks=9))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.grid(axis="y")


def mark_maximum(ax: "Axes", max_ns: int) -> None:
    """Point at the furthest sample, which may be a single one in a million."""
    at = ax.transAxes.inverted().transform(
        ax.transData.transform((max_ns / NS_PER_US, 1.1))
    )[0]
    side = "left" if at < NEAR_LEFT else "right"
    ax.annotate(
        f"max {format_us(max_ns)}",
        (max_ns / NS_PER_US, 1.1),
        (0, 24),
        textcoords="offset points",
        ha=side,
        va="bottom",
        fontsize=9,
        fontweight="bold",
        arrowprops={
            "arrowstyle": "-|>",
            "lw": 0.8,
            "color": INK,
            "shrinkA": 0,
            "shrinkB": 0,
            "relpos": (0 if side == "left" else 1, 0),
        },
    )


def mark_deadline(ax: "Axes", deadline_ns: int | None, *, top: float = 1) -> None:
    """
    Draw the deadline, if it lies within the axis; else name its side.

    Its label ends at `top`, a fraction of the axes' height, below other labels.
    """
    if deadline_ns is None:
        return
    low, high = ax.get_xlim()
    deadline = deadline_ns / NS_PER_US
    text = f"deadline {format_us(deadline_ns)} µs"
    if deadline > high:
        text += " →"
    elif deadline < low:
        text = f"← {text}"
    else:
        ax.axvline(deadline, color=LIMIT, lw=1.2, ls=(0, (5, 2)))
    near_right = deadline > math.sqrt(low * high) if low > 0 else True
    ax.annotate(
        text,
        (min(max(deadline, low), high), top),
        (-3 if near_right else 3, -2),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="right" if near_right else "left",
        va="top",
        fontsize=SMALL_PT,
        color=LIMIT,
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1},
    )


def _wide_pt(text: str) -> float:
    """Return how wide a title is in the size of titles, with matplotlib's own font."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=TITLE_PT, weight="bold")
    return float(text_to_path.get_text_width_height_descent(text, font, False)[0])


def title(ax: "Axes", text: str, cpus: Sequence[CpuCurve]) -> None:
    """
    Write the title, and under it which colour is which CPU.

    A long one is written smaller, and one that is longer still is cut.
    """
    room_pt, size_pt = WIDTH_PT * (1 - ax.get_position().x0) - 6, TITLE_PT
    wide_pt = _wide_pt(text)
    if wide_pt > room_pt:
        size_pt = max(SMALL_PT, TITLE_PT * room_pt / wide_pt)
        while len(text) > 2 and _wide_pt(text) * size_pt / TITLE_PT > room_pt:
            text = f"{text[:-2]}…"
    ax.set_title(text, pad=19, fontsize=size_pt)
    if not cpus:
        return
    _key_text(ax, 0, "CPU")
    for place, curve in enumerate(cpus):
        x = 27 + 34 * place
        _key_line(ax, x, colour=PALETTE[curve.colour], style="-")
        _key_text(ax, x + 15, curve.label)


def line_key(ax: "Axes", names: Sequence[tuple[str, str, object]]) -> None:
    """Name each (name, colour, line style) in one row above the axes."""
    x = 0.0
    for name, colour, style in names:
        _key_line(ax, x, colour=colour, style=style)
        _key_text(ax, x + 16, name)
        x += 30 + 5.4 * len(name)


def mark_key(ax: "Axes", *, with_p999: bool) -> None:
    """Name the marks of a comparison."""
    names = [("|", "min", 6.0), ("o", "average", 5.0)]
    names += [("|", "p99.9", 9.0)] if with_p999 else []
    names += [("D", "max", 5.0)]
    x = 4.0
    for marker, name, size in names:
        filling = PAPER if marker == "o" else MUTED
        _key_artist(ax, [x], marker=marker, ms=size, mfc=filling, ls="", color=MUTED)
        _key_text(ax, x + 7, name)
        x += 26 + 5.6 * len(name)


def _key_line(ax: "Axes", x_pt: float, *, colour: str, style: object) -> None:
    _key_artist(ax, [x_pt, x_pt + 11], lw=1.8, ls=style, color=colour)


def _key_artist(ax: "Axes", xs_pt: list[float], **style: Any) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.transforms import Affine2D, ScaledTranslation

    figure = ax.get_figure(root=True)
    assert figure is not None
    points_from_corner = (
        Affine2D().scale(1 / 72)
        + figure.dpi_scale_trans
        + ScaledTranslation(0, 1, cast("Affine2DBase", ax.transAxes))
    )
    line = Line2D(xs_pt, [KEY_HEIGHT_PT] * len(xs_pt), **style)
    line.set_transform(points_from_corner)
    line.set_clip_on(False)
    line.set_in_layout(False)
    ax.add_artist(line)
    line.set_clip_path(None)


def _key_text(ax: "Axes", x_pt: float, text: str) -> None:
    ax.annotate(
        text,
        (0, 1),
        (x_pt, KEY_HEIGHT_PT),
        xycoords="axes fraction",
        textcoords="offset points",
        va="center",
        fontsize=SMALL_PT,
        color=MUTED,
        annotation_clip=False,
    )


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:g}"


def _count(value: float) -> str:
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g}"


def _share(value: float) -> str:
    if value > 1:  # room for labels, no share
        return ""
    return "all" if value == 1 else f"1 in {_count(round(1 / value))}"


def shade_unresolved(ax: "Axes", samples: int) -> None:
    """Shade, down to the axis, the shares that so many samples do not resolve: 3/N."""
    floor = min(1.0, 3 / max(samples, 1))
    ax.axhspan(ax.get_ylim()[0], floor, color=GRID, lw=0, zorder=0)
    ax.annotate(
        "below 3/N: not resolved",
        (0, 0),
        (4, 4),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=8.5,
        color=MUTED,
    )
