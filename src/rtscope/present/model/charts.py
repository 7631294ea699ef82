"""
The charts: what they draw, as plain numbers, binned, thinned, with nothing hidden.

Buckets are gathered into bins for drawing only. Every non-empty bucket lies in a
non-empty bin, so the furthest wake-up stays visible; a maximum stays a maximum when
seconds are gathered. All times in ns.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rtscope.contract import ThreadResult
from rtscope.host.units import plural
from rtscope.present.model.overtime import (
    CpuCurve,
    LateOverTime,
    MaximaOverTime,
    cpu_label,
    maxima_over_time,
)
from rtscope.present.model.rows import (
    MEASURED,
    Measured,
    Row,
    anchor_of,
    measured_by,
)
from rtscope.present.model.softvalue import ValueOverLatency
from rtscope.present.words import enumeration, us
from rtscope.stats.distribution import (
    Distribution,
    ccdf,
    distribution_of,
    with_skipped,
)
from rtscope.stats.figures import figure

BINS_PER_DECADE = 50
"""One bin spans 4.7 %: finer than a line's width in a chart of two decades and more."""

LINEAR_BINS = 100
LOG_AXIS_RATIO = 20
"""Latencies that span more than this are drawn on a logarithmic axis."""

MAX_DRAWN_CPUS = 8
"""As many colours as a reader can distinguish; more CPUs are in the merged curve."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts per bin: bin i spans edges_ns[i] to edges_ns[i + 1]."""

    edges_ns: tuple[float, ...]
    merged: tuple[float, ...]
    cpus: tuple[CpuCurve, ...]
    logarithmic: bool
    max_ns: int


@dataclass(frozen=True, slots=True)
class TailCurve:
    """P(latency ≥ x), as steps: the value holds up to its own x."""

    x_ns: tuple[float, ...]
    probability: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RangeMark:
    """One row of a comparison: a load on one machine, kernel or setting."""

    label: str
    colour: int
    min_ns: float
    avg_ns: float
    p999_ns: float | None
    max_ns: float


@dataclass(frozen=True, slots=True)
class RangeGroup:
    """Rows that are compared with each other, under one heading."""

    label: str
    marks: tuple[RangeMark, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """One side of an overlay, all its CPUs together; `colour` as in `CpuCurve`."""

    label: str
    colour: int
    counts: tuple[float, ...]
    """Per bin of the overlay."""
    tail: TailCurve
    samples: int
    max_ns: int


@dataclass(frozen=True, slots=True)
class Overlay:
    """Sides in one drawing, over the same bins: counts, or tails."""

    edges_ns: tuple[float, ...]
    layers: tuple[Layer, ...]
    logarithmic: bool
    tails: bool
    """Draw the tails instead of the counts."""


Content = (
    Histogram
    | tuple[TailCurve, ...]
    | MaximaOverTime
    | LateOverTime
    | tuple[RangeGroup, ...]
    | Overlay
    | ValueOverLatency
)


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing, not yet made: what to call it, what it shows in words, how tall."""

    name: str
    title: str
    description: str
    content: Content
    samples: int = 0
    deadline_ns: int | None = None
    virtual: str = ""
    """`virtual ` if its times are a virtual board's, to stand before units."""
    measured: Measured = MEASURED
    """What its latencies are."""
    figures: str = ""
    """The figures that a comparison of ranges draws of each row, in words."""


def cpu_colours(threads: Sequence[ThreadResult]) -> Mapping[int | None, int]:
    """Give a colour to each CPU that is drawn: those with the highest maxima."""
    worst: dict[int | None, int] = {}
    for thread in threads:
        worst[thread.cpu] = max(worst.get(thread.cpu, 0), thread.max_ns or 0)
    drawn = sorted(worst, key=lambda cpu: -worst[cpu])[:MAX_DRAWN_CPUS]
    in_order = sorted(drawn, key=lambda cpu: -1 if cpu is None else cpu)
    return {cpu: colour for colour, cpu in enumerate(in_order)}


def charts_of(
    row: Row, colours: Mapping[int | None, int], *, deadline_ns: int | None
) -> tuple[Chart, ...]:
    """Return the charts of a row: its distribution, its tail, its worst run's time."""
    counted = row.summary and row.summary.samples
    if row.summary is None or not counted or not any(t.histogram for t in row.threads):
        return ()
    samples = f"{counted:,} samples"
    tails = [tail_curve(row.threads)]
    if row.summary.missed_periods:
        tails.append(tail_curve(row.threads, counting=with_skipped))
    drawn: list[tuple[str, str, str, Content | None]] = [
        (
            "histogram",
            "distribution",
            f"Histogram of {samples} under {row.name}, counts on a logarithmic axis, "
            "each CPU as a line over all together; from "
            f"{us(row.summary.min_ns, row.virtual)} to the maximum of {row.maximum}.",
            histogram_of(row.threads, colours),
        ),
        (
            "tail",
            "tail of the distribution",
            f"Share of {row.measured.samples} with at least each {row.measured.size}, "
            f"both axes logarithmic, of {samples} under {row.name}; it ends at "
            f"{row.maximum}.",
            tuple(tails),
        ),
    ]
    over_time = maxima_over_time(row.worst_run.ticks, colours)
    if over_time is not None and any(over_time.merged_ns):
        step = plural(over_time.step_s, "second")
        words = (
            f"The longest latency of each CPU in each step of {step} of run "
            f"{row.worst_run.run.id}, and the clock frequency and temperature where "
            "known."
        )
        drawn.append(("time", f"{row.measured.size} over time", words, over_time))
    return tuple(
        Chart(
            name=f"{row.anchor}-{kind}",
            title=f"{row.name}: {title}",
            description=description,
            content=content,
            samples=counted,
            deadline_ns=deadline_ns,
            virtual=row.virtual,
            measured=row.measured,
        )
        for kind, title, description, content in drawn
        if content is not None
    )


def overlay_charts(
    rows: Sequence[Row], colours: Sequence[int], *, deadline_ns: int | None
) -> tuple[Chart, ...]:
    """Return charts of rows of a load, in the same bins; none without samples."""
    summaries = [row.summary for row in rows if row.summary]
    if len(summaries) < len(rows) or any(one.samples is None for one in summaries):
        return ()
    lows = [one.min_ns for one in summaries]
    highs = [one.max_ns for one in summaries]
    edges, logarithmic = bin_edges(min(lows), max(highs))
    layers = tuple(
        Layer(
            label=row.variant,
            colour=colour,
            counts=tuple(
                np.sum([binned(t, edges) for t in row.threads], axis=0).tolist()
            ),
            tail=tail_curve(row.threads),
            samples=sum(t.samples or 0 for t in row.threads),
            max_ns=max_ns,
        )
        for row, colour, max_ns in zip(rows, colours, highs, strict=True)
    )
    first, is_pair = rows[0], len(rows) == 2
    ends = enumeration([f"{row.variant} at {row.maximum}" for row in rows])
    return tuple(
        Chart(
            name=f"{anchor_of('both', first.load)}-{kind}",
            title=f"{first.load}: {words}",
            description=f"{what} of {enumeration([x.variant for x in rows])} under "
            f"{first.load}, axes logarithmic for a wide range; "
            f"the curves end at the maxima: {ends}.",
            content=Overlay(
                tuple(edges.tolist()), layers, logarithmic, tails=kind == "tails"
            ),
            samples=min(layer.samples for layer in layers),
            deadline_ns=deadline_ns,
            virtual=max(row.virtual for row in rows),
            measured=first.measured,
        )
        for kind, words, what in (
            ("counts", f"{'both' if is_pair else 'all'} distributions", "Histograms"),
            (
                "tails",
                "tails of the distributions",
                "Tails (shares of longer wake-ups)",
            ),
        )
    )


def ranges_chart(
    rows: Sequence[Row],
    variants: Sequence[str],
    *,
    title: str,
    of: str,
    deadline_ns: int | None,
    virtual: str,
) -> Chart | None:
    """Return the chart that compares rows, by load; None if nothing was measured."""
    groups: dict[str, list[RangeMark]] = {}
    for row in rows:
        if row.summary is not None:
            mark = RangeMark(
                label=row.variant,
                colour=variants.index(row.variant),
                min_ns=row.summary.min_ns,
                avg_ns=float(row.summary.mean_ns or row.summary.min_ns),
                p999_ns=figure("p99_9").of(row),
                max_ns=row.summary.max_ns,
            )
            groups.setdefault(row.load, []).append(mark)
    if not groups:
        return None
    drawn = [mark for marks in groups.values() for mark in marks]
    p999 = ", 99.9th percentile" * any(mark.p999_ns is not None for mark in drawn)
    figures = f"Minimum, average{p999} and maximum"
    return Chart(
        name="comparison",
        title=title,
        description=f"{figures} of each {of}.",
        figures=figures,
        content=tuple(RangeGroup(load, tuple(marks)) for load, marks in groups.items()),
        deadline_ns=deadline_ns,
        virtual=virtual,
        measured=measured_by([one for row in rows for one in row.records]),
    )


def histogram_of(
    threads: Sequence[ThreadResult], colours: Mapping[int | None, int]
) -> Histogram | None:
    """Gather the buckets of all threads into bins; None if there is no sample."""
    lows = [low for t in threads for low, count in t.histogram if count]
    highest = max((t.max_ns for t in threads if t.max_ns is not None), default=None)
    if highest is None or not lows:
        return None
    first = max(min(lows), 1)
    highest = max(highest, first)  # a record may contradict itself
    steps = (t.foreign.step_ns for t in threads if t.foreign)
    edges, logarithmic = bin_edges(first, highest, step_ns=max(steps, default=1))
    counts: dict[int | None, Floats] = {}
    for thread in threads:
        counts[thread.cpu] = counts.get(thread.cpu, np.zeros(len(edges) - 1)) + binned(
            thread, edges
        )
    return Histogram(
        edges_ns=tuple(edges.tolist()),
        merged=tuple(np.sum(list(counts.values()), axis=0).tolist()),
        cpus=tuple(
            CpuCurve(cpu_label(cpu), colours[cpu], tuple(values.tolist()))
            for cpu, values in counts.items()
            if cpu in colours
        ),
        logarithmic=logarithmic,
        max_ns=highest,
    )


def bin_edges(first_ns: int, last_ns: int, *, step_ns: int = 1) -> tuple[Floats, bool]:
    """
    Return the edges of bins from the first latency to the last; if logarithmic.

    No bin is narrower than a step, which is the width of another tool's buckets.
    """
    # A logarithmic axis has no 0: what took no measurable time is drawn at 1 ns.
    first, last = max(first_ns, 1), max(last_ns, 1)
    if last > LOG_AXIS_RATIO * first:
        edges = _log_edges(first, last)
        return _in_steps(edges, step_ns), True
    return _even_edges(first, last, step_ns), False


def _log_edges(first: int, last: int) -> Floats:
    low = math.floor(math.log10(first) * BINS_PER_DECADE)
    high = math.floor(math.log10(last) * BINS_PER_DECADE) + 1
    return np.asarray(10 ** (np.arange(low, high + 1) / BINS_PER_DECADE))


def _in_steps(edges: Floats, step_ns: int) -> Floats:
    """Move edges to whole steps: no bin then lies within a bucket."""
    return edges if step_ns == 1 else np.unique(np.ceil(edges / step_ns) * step_ns)


def _even_edges(first: int, last: int, step_ns: int) -> Floats:
    # A bucket spans up to 0.1 %: narrower bins would show gaps that are not there.
    width = max(1, math.ceil((last - first + 1) / LINEAR_BINS), math.ceil(last / 500))
    width = -(-width // step_ns) * step_ns
    return np.arange(first, last + 2 * width, width, dtype=np.float64)


def binned(thread: ThreadResult, edges: Floats) -> Floats:
    """Return how many samples of a thread lie in each bin."""
    lows = np.array([low for low, _ in thread.histogram], dtype=float)
    counts = np.array([count for _, count in thread.histogram], dtype=float)
    binned = in_bins(lows, counts, edges)
    if thread.overflow and thread.foreign is None:
        binned[-1] += thread.overflow
    return binned


def in_bins(lows_ns: Floats, counts: Floats, edges: Floats) -> Floats:
    """Return how many of the counts, at these latencies, lie in each bin."""
    lows = np.maximum(lows_ns, 1)
    place = np.clip(np.searchsorted(edges, lows, side="right") - 1, 0, len(edges) - 2)
    binned = np.bincount(place, weights=counts, minlength=len(edges) - 1)
    return np.asarray(binned, dtype=np.float64)


def tail_curve(
    threads: Sequence[ThreadResult],
    *,
    counting: Callable[[Sequence[ThreadResult]], Distribution] = distribution_of,
) -> TailCurve:
    """Return the share of wake-ups with at least each latency."""
    return thinned(*(part.tolist() for part in ccdf(counting(threads))))


def thinned(x_ns: Sequence[float], probability: Sequence[float]) -> TailCurve:
    """
    Keep at most one step per bin of a logarithmic axis, and always the last one.

    Within a bin the last step is kept: the curve is never drawn above the data by
    more than a bin, nor its end moved.
    """
    kept: dict[int, tuple[float, float]] = {}
    for x, p in zip(x_ns, probability, strict=True):
        if p > 0:
            kept[math.floor(math.log10(max(x, 1)) * 2 * BINS_PER_DECADE)] = (x, p)
    return TailCurve(
        x_ns=tuple(x for x, _ in kept.values()),
        probability=tuple(p for _, p in kept.values()),
    )
