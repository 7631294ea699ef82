"""
Table 5-1 of StarFive from records of a virtual board, beside StarFive's own.

    python lab/starfivetable.py 6.12 6.12-15s

Prints the tables of lab/jh7110-table-5-1.md for one pair of kernels: each
figure over all seeds, and averages as ratios to the idle row of the same kernel, since
a virtual board has no microseconds of hardware. The directories hold the runs of both
kernels; runs with equal inputs are the same run and count once.
"""

import argparse
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from rtscope.record.directory.records import open_records
from rtscope.record.model import RunRecord
from rtscope.record.published import KernelKind, get_published
from rtscope.stats.summary import Summary, summarize

LOADS = ("idle", "cpu", "os", "memory", "storage")
PUBLISHED = ("starfive-visionfive2", "starfive-jh7110-devkit")

Cells = Mapping[tuple[str, KernelKind], Sequence[RunRecord]]


def by_cell(directories: Sequence[Path]) -> Cells:
    """Sort the runs by load and kind of kernel, each trajectory once."""
    cells: dict[tuple[str, KernelKind], dict[str, RunRecord]] = defaultdict(dict)
    for directory in directories:
        for record in open_records(directory):
            kernel = record.require_virtual().kernel
            # jh7110-6.1-rt-nolazy is a real-time kernel too.
            kind = KernelKind.RT if "-rt" in kernel else KernelKind.MAINLINE
            cells[record.run.load, kind][record.result_digest] = record
    return {cell: tuple(runs.values()) for cell, runs in cells.items()}


def summary_of(records: Sequence[RunRecord]) -> Summary:
    """Summarize all threads of all seeds."""
    return summarize([thread for r in records for thread in r.result.threads])


def print_figures(cells: Cells) -> None:
    """Print minimum to maximum, in virtual us, and the seeds' own maxima."""
    print(
        "| load | kernel | samples | missed | min | avg | stdev | p99.9 below | max "
        "| maxima of the seeds |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---|"
    )
    for load in LOADS:
        for kind in KernelKind:
            records = cells[load, kind]
            found = summary_of(records)
            maxima = sorted(r.max_ns for r in records if r.max_ns is not None)
            high_ns = found.ranks.percentile_ns(99.9)
            print(
                f"| {load} | {records[0].require_virtual().kernel} "
                f"| {found.samples:,} | {found.missed_periods:,} "
                f"| {us(found.min_ns)} | {us(found.mean_ns)} | {us(found.stdev_ns)} "
                f"| {us(high_ns)} "
                f"| **{us(found.max_ns)}** | {', '.join(map(us, maxima))} |"
            )


def print_ratios(cells: Cells) -> None:
    """Print averages and maxima as ratios, beside the published ones."""
    tables = [get_published(name).rows for name in PUBLISHED]
    for kind in KernelKind:
        idle = summary_of(cells["idle", kind])
        print(
            f"\n| {cells['idle', kind][0].require_virtual().kernel} | "
            "avg to idle's | VisionFive 2 | DevKit "
            "| max to idle's | VisionFive 2 | DevKit |\n"
            "|---|---:|---:|---:|---:|---:|---:|"
        )
        for load in LOADS[1:]:
            found = summary_of(cells[load, kind])
            average = [
                (t[load, kind].avg_ns or 0) / (t["idle", kind].avg_ns or 1)
                for t in tables
            ]
            maximum = [t[load, kind].max_ns / t["idle", kind].max_ns for t in tables]
            if found.mean_ns is None or idle.mean_ns is None:
                raise SystemExit(f"{load}: a record without an average")
            ratios = [found.mean_ns / idle.mean_ns, *average]
            ratios += [found.max_ns / idle.max_ns, *maximum]
            print(f"| {load} | " + " | ".join(f"{r:.3g}" for r in ratios) + " |")


def print_throughput(cells: Cells) -> None:
    """Print stress-ng's operations per virtual second, the mean over seeds."""
    print("\n| operations/s | RT | ordinary | |\n|---|---:|---:|---:|")
    for load in LOADS[1:]:
        rt, mainline = (
            statistics.fmean(sum(r.load.throughput.values()) for r in cells[load, kind])
            for kind in KernelKind
        )
        print(f"| {load} | {rt:,.0f} | {mainline:,.0f} | {mainline / rt - 1:+.0%} |")


def us(ns: float | None) -> str:
    """Write ns as us with three digits."""
    if ns is None:
        return "-"
    value = ns / 1e3
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> None:
    """Print the tables of one pair of kernels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, nargs="+")
    cells = by_cell(parser.parse_args().directory)
    print_figures(cells)
    print_ratios(cells)
    print_throughput(cells)


if __name__ == "__main__":
    main()
