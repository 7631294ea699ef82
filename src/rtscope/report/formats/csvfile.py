"""
The main table as CSV: one line for each row, in the units that the headings name.

Numbers are plain (no thousands apart), a cell is empty where there is no number, and no
cell is taken for a formula.
"""

import csv
import io

from rtscope.report.escape import for_csv
from rtscope.report.model.build import Model
from rtscope.report.model.rows import Row
from rtscope.report.words import percentile_ns

HEADINGS = (
    "load",
    "target",
    "kernel",
    "settings",
    "max_us",
    "samples",
    "skipped",
    "caveats",
    "p99.9_us",
    "p99.999_us",
    "min_us",
    "avg_us",
    "stdev_us",
    "bogo_ops_per_s",
    "runs",
    "cpus",
    "observed_s",
)


def render_csv(model: Model) -> str:
    """Return the table with a line of headings."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADINGS)
    for row in model.rows:
        writer.writerow(for_csv(cell) for cell in _cells(row))
    return out.getvalue()


def _cells(row: Row) -> list[str]:
    summary, rate = row.summary, row.total_throughput
    figures = ["", "0", ""]
    latencies = [""] * 5
    if summary is not None:
        figures = [_us(summary.max_ns), str(summary.samples), str(summary.skipped)]
        latencies = [
            _us(percentile_ns(summary, 99.9)),
            _us(percentile_ns(summary, 99.999)),
            _us(summary.min_ns),
            _us(summary.mean_ns),
            _us(summary.stdev_ns),
        ]
    return [
        row.load,
        row.target,
        row.kernel,
        row.settings,
        *figures,
        str(row.caveats),
        *latencies,
        "" if rate is None else f"{rate:.2f}",
        str(row.runs),
        str(row.cpus),
        f"{row.observed_ns / 1e9:.3f}",
    ]


def _us(ns: float | None) -> str:
    return "" if ns is None else f"{ns / 1000:.3f}"
