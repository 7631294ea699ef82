"""Two kernels in one drawing, each named where its curve ends: at its maximum."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rtscope.report.charts.axes import (
    count_axis,
    latency_axis,
    mark_deadline,
    shade_unresolved,
    share_axis,
    title,
)
from rtscope.report.charts.palette import PALETTE, PAPER
from rtscope.report.model.series import Chart, Layer, Overlay
from rtscope.units import NS_PER_US, format_us

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES: Sequence[object] = ("-", (0, (5, 1.6)))
"""Told apart without colour too."""

HEADROOM = 60
"""How far above the highest count the axis ends, so that the labels have room."""

LABEL_ROWS = (0.985, 0.905)


def draw_overlay(chart: Chart, content: Overlay, figure: "Figure") -> "Figure":
    """Draw the counts per bin of each side, or its tail."""
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
        _name(ax, layer, place, start=edges[0], end=edges[-1], log=content.logarithmic)
    mark_deadline(ax, chart.deadline_ns)
    title(ax, chart.title, ())
    return figure


def _draw_counts(ax: "Axes", content: Overlay) -> None:
    # Half a sample: on a logarithmic axis a single one then still has a height.
    floor = 0.5
    edges = [edge / NS_PER_US for edge in content.edges_ns]
    for place, layer in enumerate(content.layers):
        heights = [max(count, floor) for count in layer.counts]
        colour = PALETTE[layer.colour]
        ax.stairs(heights, edges, baseline=floor, fill=True, color=colour, alpha=0.16)
        ax.stairs(
            heights,
            edges,
            baseline=None,
            color=colour,
            lw=1.2,
            ls=STYLES[place % len(STYLES)],
        )
    ax.set_yscale("log")
    ax.set_ylim(floor, max(max(layer.counts) for layer in content.layers) * HEADROOM)
    count_axis(ax)
    ax.set_ylabel("samples per bin")


def _draw_tails(ax: "Axes", content: Overlay) -> None:
    for place, layer in enumerate(content.layers):
        ax.plot(
            [x / NS_PER_US for x in layer.tail.x_ns],
            layer.tail.probability,
            drawstyle="steps-pre",
            color=PALETTE[layer.colour],
            lw=1.5,
            ls=STYLES[place % len(STYLES)],
        )
    ax.set_yscale("log")
    lowest = min(layer.tail.probability[-1] for layer in content.layers)
    ax.set_ylim(lowest / 3, HEADROOM)
    fewest = min(layer.samples for layer in content.layers)
    shade_unresolved(ax, fewest)
    share_axis(ax)
    ax.set_ylabel("wake-ups at least this late")


def _name(
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
        fontsize=8.5,
        fontweight="bold",
        color=colour,
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.8},
    )
