"""
Read what stress-ng --cyclic prints: extremes, average, percentiles, distribution.

Source: stress-cyclic.c of stress-ng 0.15, and its published outputs. It keeps the first
10,000 latencies; its percentiles are kept as its own words, in no figure of a report.
The distribution (--cyclic-dist) has at most 100 buckets.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from rtscope.record.caveats.catalogue import make
from rtscope.record.foreign.model import UNKNOWN, ForeignRun, ForeignThread
from rtscope.record.foreign.source import Source

NAME = "stress-ng-cyclic"

LINE = re.compile(r"stress-ng:\s*\w+:\s*\[\d+\]\s*(?:stress-ng-)?cyclic:")
NEEDS = "the lines 'cyclic: min: … ns, max: … ns' and 'cyclic: … samples'"

MEASURES = "from the end of a sleep of stress-ng to its thread"

_LINE = re.compile(
    r".{0,200}?stress-ng:\s*\w+:\s*\[(\d{1,9})\]\s*(?:stress-ng-)?cyclic:\s*(.{0,200})$"
)
_SCHED = re.compile(r"sched SCHED_(\w+): (\d{1,12}) ns delay, (\d{1,12}) samples")
_MEAN = re.compile(r"mean: (\d{1,18})(?:\.(\d{1,9}))? ns")
_EXTREMES = re.compile(r"min: (\d{1,18}) ns, max: (\d{1,18}) ns")
_PERCENTILE = re.compile(r"(\d{1,3}\.\d{1,4})%:\s*(\d{1,18}) ns")
_WIDTH = re.compile(r"latency distribution \((?:% of )?(\d{1,12}) ns intervals\)")
_BUCKET = re.compile(r"(\d{1,15})\s+(\d{1,15})\s*$")


def recognises(head: str) -> bool:
    """Whether stress-ng --cyclic printed this."""
    return bool(re.search(r"^.{0,200}\bcyclic:\s*min: \d+ ns, max: \d+ ns", head, re.M))


@dataclass(slots=True)
class _Cyclic:
    """The lines of one instance."""

    sched: re.Match[str] | None = None
    mean_ns: int | None = None
    extremes: tuple[int, int] | None = None
    percentiles: list[str] = field(default_factory=list)
    width_ns: int = 0
    buckets: dict[int, int] = field(default_factory=dict)


def read(source: Source, *, unit_ns: int | None = None) -> list[ForeignRun]:
    """Return the run of the file; RecordError if an instance has no extremes."""
    instances: dict[int, _Cyclic] = {}
    for line in source.lines():
        if match := _LINE.match(line):
            _take(instances.setdefault(int(match[1]), _Cyclic()), match[2])
    whole = {pid: one for pid, one in instances.items() if one.extremes is not None}
    if not whole:
        raise source.damaged("no minimum and maximum of stress-ng --cyclic in it")
    threads = tuple(_threads(whole))
    policies = {one.sched[1].lower() for one in whole.values() if one.sched}
    told = {
        f"percentiles of stress-ng, {pid}": ", ".join(one.percentiles)[:400]
        for pid, one in whole.items()
        if one.percentiles
    }
    return [
        ForeignRun(
            tool="stress-ng --cyclic",
            format=NAME,
            verified=False,
            measures=MEASURES,
            threads=threads,
            policy=policies.pop() if len(policies) == 1 else UNKNOWN,
            metadata=told,
            caveats=(make("import_other_quantity", MEASURES),),
        )
    ]


def _take(one: _Cyclic, text: str) -> None:
    """Take what a line says."""
    if match := _SCHED.search(text):
        one.sched = match
    elif match := _MEAN.search(text):
        one.mean_ns = int(match[1])
    elif match := _EXTREMES.search(text):
        one.extremes = int(match[1]), int(match[2])
    elif match := _PERCENTILE.search(text):
        one.percentiles.append(f"{match[1]} %: {int(match[2]):,} ns")
    elif match := _WIDTH.search(text):
        one.width_ns = int(match[1])
    elif one.width_ns and (match := _BUCKET.match(text)) and int(match[2]):
        one.buckets[int(match[1])] = int(match[2])


def _threads(instances: dict[int, _Cyclic]) -> Iterator[ForeignThread]:
    for pid, one in sorted(instances.items()):
        assert one.extremes is not None
        samples = None if one.sched is None else int(one.sched[3])
        counted = sum(one.buckets.values())
        kept = bool(one.buckets) and samples is not None and counted <= samples
        yield ForeignThread(
            samples=samples,
            min_ns=one.extremes[0],
            max_ns=one.extremes[1],
            mean_ns=one.mean_ns,
            step_ns=one.width_ns if kept else 1,
            end_ns=max(one.buckets) + one.width_ns if kept else 0,
            buckets=dict(sorted(one.buckets.items())) if kept else {},
            overflow=(samples or 0) - (counted if kept else 0),
            tid=pid,
            interval_ns=0 if one.sched is None else int(one.sched[2]),
        )
