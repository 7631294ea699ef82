"""The parts of all wake-ups, as reports and comparisons show them: table and chart."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rtscope.contract import ThreadResult
from rtscope.host.units import count, format_us, plural
from rtscope.present.document import Block, Section, table
from rtscope.present.model.charts import (
    Chart,
    Layer,
    Overlay,
    bin_edges,
    binned,
    tail_curve,
)
from rtscope.present.model.rows import MEASURED, Row
from rtscope.present.words import NOTHING
from rtscope.stats.figures import figure
from rtscope.stats.summary import Summary
from rtscope.stats.wakeparts import PartsSeen, kinds_of, parts_seen

HEADING = "Parts of all wake-ups"
_HIGH = ("p99", "p99_9")
"""The percentiles that a part is shown with, by figure."""


def parts_section(named: Sequence[tuple[str, Row]]) -> Section | None:
    """Return the table of these rows, by name; None if no run has parts."""
    seen = [(name, row, parts_seen(row.counted)) for name, row in named]
    blocks = tuple(
        _blocks([(name, row, one) for name, row, one in seen if one is not None])
    )
    return Section(HEADING, blocks) if blocks else None


def _blocks(seen: Sequence[tuple[str, Row, PartsSeen]]) -> Iterator[Block]:
    if not seen:
        return
    rows = [cells for name, _, one in seen for cells in _rows(name, one)]
    if rows:
        high = (figure(key).heading for key in _HIGH)
        heads = ("wake-ups", "average", *high, "most")
        yield table(("load", "part"), heads, rows)
        for by_tracer in (False, True):
            alike = [one for one in seen if one[2].by_tracer is by_tracer]
            if alike:
                yield _explained(alike), "muted"
    for name, _, one in seen:
        if one.withdrawn:
            yield (f"{name}: no parts: {one.withdrawn}.", "limit")
        elif one.unknown:
            yield (
                f"{name}: the parts of {plural(one.unknown, 'wake-up')} are not known: "
                "the thread did not sleep, or two CPUs' clocks disagree.",
                "limit",
            )


def _explained(seen: Sequence[tuple[str, Row, PartsSeen]]) -> str:
    """Tell where the parts of some rows end, and who measured them."""
    records = [record for _, row, _ in seen for record in row.counted]
    ends = "; ".join(f"{kind.title}: to {kind.until}" for kind in kinds_of(records))
    unit = f"{seen[0][1].virtual.capitalize()}µs. {ends[0].upper()}{ends[1:]}."
    if seen[0][2].by_tracer:
        return f"{unit} Measured by the kernel's tracer timerlat, of its own thread."
    checked = sum(one.checked for _, _, one in seen)
    return (
        f"{unit} The parts of a wake-up add up to its latency: checked for "
        f"{count(checked)} of them one by one, and for all of them together."
    )


def _rows(name: str, seen: PartsSeen) -> Iterator[list[str]]:
    for part in seen.parts:
        of = part.summary
        yield [
            name,
            part.kind.title,
            count(of.samples or 0),
            format_us(of.mean_ns),
            *(_high(of, key) for key in _HIGH),
            format_us(of.max_ns),
        ]


def _high(summary: Summary, key: str) -> str:
    ns = figure(key).of_summary(summary)
    return NOTHING if ns is None else format_us(ns)


def parts_chart(row: Row) -> Chart | None:
    """Return the histograms of the parts of a row; None if there are none."""
    seen = parts_seen(row.counted)
    if seen is None or not seen.parts:
        return None
    summaries = [part.summary for part in seen.parts]
    edges, logarithmic = bin_edges(
        min(one.min_ns for one in summaries), max(one.max_ns for one in summaries)
    )
    layers = tuple(
        Layer(
            label=part.kind.title,
            colour=number,
            counts=tuple(
                np.sum([binned(t, edges) for t in part.threads], axis=0).tolist()
            ),
            tail=tail_curve(part.threads),
            samples=of.samples or 0,
            max_ns=of.max_ns,
        )
        for number, (part, of) in enumerate(zip(seen.parts, summaries, strict=True))
    )
    return Chart(
        name=f"{row.anchor}-parts",
        title=f"{row.name}: {HEADING.lower()}",
        description="Histograms of the parts of all wake-ups under "
        f"{row.name}, axes logarithmic for a wide range.",
        content=Overlay(tuple(edges.tolist()), layers, logarithmic, tails=False),
        samples=min(layer.samples for layer in layers),
        virtual=row.virtual,
        measured=replace(MEASURED, word="part of a wake-up"),
    )


def parts_row(row: Row) -> Mapping[str, Any]:
    """Return the parts for a JSON document, in ns; empty if no run has any."""
    seen = parts_seen(row.counted)
    if seen is None:
        return {}
    return {
        "wakeup_parts": {
            "withdrawn": seen.withdrawn,
            "checked": seen.checked,
            "unknown": seen.unknown,
            "parts": [
                {
                    "part": part.kind.key,
                    "count": of.samples,
                    "min_ns": of.min_ns,
                    "mean_ns": of.mean_ns,
                    "p99_ns": of.ranks.percentile_ns(99),
                    "max_ns": of.max_ns,
                    "histogram": _merged(part.threads),
                }
                for part in seen.parts
                for of in (part.summary,)
            ],
        }
    }


def _merged(threads: Sequence[ThreadResult]) -> list[tuple[int, int]]:
    """Return the buckets of all threads, (low_ns, count), ascending."""
    counts: Counter[int] = Counter()
    for thread in threads:
        counts.update(dict(thread.histogram))
    return sorted(counts.items())
