"""
What makes a kernel bad: a figure of its runs, over seeds, against the good one. Pure.

A seed is one trajectory, so a kernel's figure is the median over seeds. Good and bad
must differ by more than a margin; then a kernel between them counts as the one of the
two that its figure is nearer to.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rtscope.host.errors import UsageError
from rtscope.host.units import parse_duration
from rtscope.stats.comparison.design import Exact, typical
from rtscope.verbs.bisect.figures import FIGURES

_SHARE = re.compile(r"([0-9]{1,4}(?:\.[0-9]+)?) ?%")

Values = Mapping[int, float]
"""A figure by seed; latencies in ns."""


@dataclass(frozen=True, slots=True)
class Margin:
    """How far good and bad must lie apart."""

    absolute: float | None = None
    """In ns; None: a share of the good kernel's figure."""
    share: float | None = None
    """1 is the whole figure; both None: what the good kernel's seeds differ by."""

    def of(self, good: Values) -> float:
        """Return the margin in the unit of the figure."""
        if self.absolute is not None:
            return self.absolute
        if self.share is not None:
            return self.share * typical(good)
        return max(good.values()) - min(good.values())


def parse_margin(text: str | None, figure: str) -> Margin:
    """Read `20us` or `10%`; UsageError for anything else, or a time for no latency."""
    if text is None:
        return Margin()
    if share := _SHARE.fullmatch(text.strip()):
        return Margin(share=float(share[1]) / 100)
    if not FIGURES[figure].is_time:
        raise UsageError(f"--margin {text!a}: {figure} needs a share, e.g. 10%")
    try:
        return Margin(absolute=parse_duration(text))
    except UsageError as error:
        raise UsageError(
            f"--margin {text!a}: write a duration or a share, e.g. 20us or 10%"
        ) from error


def threshold_of(good: Values, bad: Values, margin: Margin) -> Exact:
    """Return two measured kernels, which say what each one between them is like."""
    return Exact(typical(good), typical(bad), margin.of(good))


def is_reversed(ends: Exact, figure: str) -> bool:
    """Whether the good kernel is the worse one, by more than the margin."""
    worse = ends.second < ends.first
    if FIGURES[figure].more_is_better:
        worse = ends.second > ends.first
    return ends.differs and worse
