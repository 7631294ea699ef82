"""The value function of a soft deadline, over the latencies of a row."""

from dataclasses import dataclass

import numpy as np

from rtscope.stats.utility import Utility

POINTS_BETWEEN = 24
"""Of a straight line, which a logarithmic axis bends."""


@dataclass(frozen=True, slots=True)
class ValueOverLatency:
    """Latencies per bin, missed periods among them, and what one of each is worth."""

    edges_ns: tuple[float, ...]
    counts: tuple[float, ...]
    logarithmic: bool
    max_ns: int
    curve: tuple[tuple[float, float], ...]
    """Points (latency in ns, value), from the first edge to the last."""
    lost: tuple[float, ...]
    """Per bin, how many of its activations were worth less than 1."""


def curve_between(
    utility: Utility, first_ns: float, last_ns: float
) -> tuple[tuple[float, float], ...]:
    """Return the curve from one latency to another, close enough for any axis."""
    points = [(first_ns, utility.points[0][1])]
    for (start, more), (end, less) in zip(
        utility.points, utility.points[1:], strict=False
    ):
        share = np.linspace(0, 1, POINTS_BETWEEN)
        points += [
            (float(start + s * (end - start)), float(more + s * (less - more)))
            for s in share
        ]
    points.append((last_ns, utility.points[-1][1]))
    return tuple(points)
