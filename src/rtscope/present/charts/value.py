"""Draw the value function of a soft deadline over the measured distribution."""

from typing import TYPE_CHECKING

from rtscope.host.units import NS_PER_US
from rtscope.present.charts.axes import (
    FILL,
    INK,
    PALETTE,
    count_axis,
    in_us,
    latency_axis,
    line_key,
    mark_deadline,
    mark_maximum,
    new_figure,
    title,
)
from rtscope.present.model.charts import Chart
from rtscope.present.model.softvalue import ValueOverLatency

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COUNTS_PT, VALUES_PT = 52.0, 46.0
"""Beside the axes: `100 k` with its label, `0.5` with their label."""

FLOOR = 0.5
"""Half a sample: on a logarithmic axis a single one then still has a height."""

CURVE, LOST = INK, PALETTE[1]
HEADROOM = 1.06
"""Above a value of 1, so that its line is whole."""


def draw_value(chart: Chart, content: ValueOverLatency) -> "Figure":
    """Draw the counts of each bin, those of less value in a colour, and the curve."""
    figure = new_figure(265, left_pt=COUNTS_PT, right_pt=VALUES_PT)
    ax = figure.subplots()
    edges = in_us(content.edges_ns)
    for counts, colour in ((content.counts, FILL), (content.lost, LOST)):
        heights = [max(count, FLOOR) for count in counts]
        ax.stairs(heights, edges, baseline=FLOOR, fill=True, color=colour)
    ax.set_yscale("log")
    ax.set_ylim(FLOOR, max(*content.counts, 1) * 4)
    latency_axis(ax, edges[0], edges[-1], logarithmic=content.logarithmic, chart=chart)
    count_axis(ax)
    ax.set_ylabel("activations per bin")
    mark_maximum(ax, content.max_ns)
    values = ax.twinx()
    values.plot(
        [ns / NS_PER_US for ns, _ in content.curve],
        [value for _, value in content.curve],
        color=CURVE,
        lw=1.6,
    )
    values.set_ylim(0, HEADROOM)
    values.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
    values.set_ylabel("value")
    values.spines["right"].set_visible(True)
    mark_deadline(ax, chart.deadline_ns, top=0.9)
    title(ax, chart.title, ())
    names = [("value of an activation", CURVE, "-"), ("worth less than 1", LOST, "-")]
    line_key(ax, names)
    return figure
