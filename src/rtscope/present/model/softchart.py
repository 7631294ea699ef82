"""The chart of a soft deadline: its value function over what was measured."""

import numpy as np

from rtscope.present.model.charts import Chart, Floats, bin_edges, in_bins
from rtscope.present.model.rows import Row
from rtscope.present.model.softvalue import ValueOverLatency, curve_between
from rtscope.present.words import us
from rtscope.stats.distribution import with_skipped
from rtscope.stats.utility import Utility


def soft_chart(row: Row, utility: Utility, *, deadline_ns: int | None) -> Chart | None:
    """Return the chart of a row; None where no latency was measured."""
    if row.summary is None or not any(t.histogram for t in row.threads):
        return None
    seen = with_skipped(row.threads)
    step = max((t.foreign.step_ns for t in row.threads if t.foreign), default=1)
    first = min(int(seen.low_ns[0]), utility.points[0][0])
    last = max(seen.max_ns, utility.points[-1][0])
    edges, logarithmic = bin_edges(first, last, step_ns=step)
    latencies = np.asarray(seen.low_ns, dtype=np.float64)
    counts = np.asarray(seen.count, dtype=np.float64)
    worth = utility.values_at(seen.low_ns)

    def of(counted: Floats) -> tuple[float, ...]:
        binned = in_bins(latencies, counted, edges)
        binned[-1] += seen.beyond
        return tuple(binned.tolist())

    return Chart(
        name=f"{row.anchor}-value",
        title=f"{row.name}: value to the soft deadline",
        description=f"The value of a wake-up over its latency, {utility.words}; "
        f"below it the histogram of {row.name}, counts on a logarithmic axis, to the "
        f"maximum of {us(seen.max_ns, row.virtual)}.",
        content=ValueOverLatency(
            edges_ns=tuple(edges.tolist()),
            counts=of(counts),
            logarithmic=logarithmic,
            max_ns=seen.max_ns,
            curve=curve_between(utility, float(edges[0]), float(edges[-1])),
            lost=of(np.where(worth < 1, counts, 0.0)),
        ),
        samples=row.summary.samples or 0,
        deadline_ns=deadline_ns,
        virtual=row.virtual,
        measured=row.measured,
    )
