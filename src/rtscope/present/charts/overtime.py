"""Draw charts over the time of a run: maxima per second, and the latest wake-ups."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rtscope.host.units import NS_PER_US
from rtscope.present.charts.axes import (
    INK,
    LABEL_PT,
    LIMIT,
    PALETTE,
    RIGHT_PT,
    SMALL_PT,
    in_us,
    new_figure,
    number_pt,
    plain_log_ticks,
    title,
)
from rtscope.present.model.charts import Chart
from rtscope.present.model.overtime import CpuCurve, LateOverTime, MaximaOverTime

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DEGREES_PT = 46.0
"""Beside the axes: degrees."""

LINEAR_RATIO = 8
"""Latencies that span more than this are drawn on a logarithmic axis."""

UNKNOWN_AT = 0.06
"""Where latencies stand that are only known to be long, as a share of the height."""


def draw_maxima(chart: Chart, content: MaximaOverTime) -> "Figure":
    """Draw the maxima of each step, and frequency and temperature below."""
    from matplotlib.ticker import MaxNLocator

    below = bool(content.ghz) or bool(content.celsius)
    two_scales = bool(content.ghz) and bool(content.celsius)
    right_pt = DEGREES_PT if two_scales else RIGHT_PT
    highest = max(content.merged_ns, default=0) * 1.25 / NS_PER_US
    left_pt = LABEL_PT + number_pt(highest)
    figure = new_figure(345 if below else 265, left_pt=left_pt, right_pt=right_pt)
    ratios = [3, 1.15] if below else [1]
    axes = figure.subplots(
        len(ratios), 1, sharex=True, squeeze=False, height_ratios=ratios
    )
    ax = axes[0][0]
    for curve in content.cpus:
        _dashes(ax, content, curve)
    lows = [v for c in content.cpus for v in c.values if v > 0]
    _latencies_up(ax, [*(v for v in content.merged_ns if v > 0), *lows])
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


def draw_late(chart: Chart, content: LateOverTime) -> "Figure":
    """Draw the latest events as stems, and the cycles of the distance they keep."""
    from matplotlib.ticker import MaxNLocator

    highest = max(content.latency_ns, default=0) * 1.25 / NS_PER_US
    figure = new_figure(230, left_pt=LABEL_PT + number_pt(highest), right_pt=RIGHT_PT)
    ax = figure.subplots()
    for at in content.cycles_s:
        ax.axvline(at, color=PALETTE[1], lw=0.7, ls=(0, (1.5, 2)))
    points = list(zip(content.seconds, content.latency_ns, strict=True))
    known = [(at, ns) for at, ns in points if ns]
    unknown = [at for at, ns in points if not ns]
    if known:
        _latencies_up(ax, [ns for _, ns in known])
        ax.set_ylabel(f"latency ({chart.virtual}µs)")
        floor = ax.get_ylim()[0]
        tops = in_us([ns for _, ns in known])
        ax.vlines([at for at, _ in known], floor, tops, color=INK, lw=0.9)
        ax.plot([at for at, _ in known], tops, ls="", marker="o", ms=3.5, color=INK)
        ax.grid(axis="y")
    if unknown:
        height = UNKNOWN_AT if known else 0.5
        ax.plot(
            unknown,
            [height] * len(unknown),
            transform=ax.get_xaxis_transform(),
            ls="",
            marker="o",
            ms=4,
            mfc="none",
            color=INK,
        )
    if not known:
        ax.set_yticks([])
    ax.set_xlim(0, content.end_s)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=8))
    since = "time into the run" if content.from_start else "time since the first one"
    ax.set_xlabel(f"{since} ({chart.virtual}s)")
    title(ax, chart.title, ())
    if content.cycles_s:
        ax.annotate(
            "dotted: the distance found",
            (1, 1),
            (0, 3),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="right",
            fontsize=SMALL_PT,
            color=PALETTE[1],
        )
    return figure


def _latencies_up(ax: "Axes", values_ns: Sequence[float]) -> None:
    """Give room to all latencies; a logarithmic axis where they are far apart."""
    values = in_us(values_ns or [1.0])
    low, high = min(values), max(values)
    if high > LINEAR_RATIO * low:
        ax.set_yscale("log")
        ax.set_ylim(low / 1.6, high * 2.2)
        plain_log_ticks(ax, "y", low / 1.6, high * 2.2)
    else:
        ax.set_ylim(0, high * 1.25)


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
