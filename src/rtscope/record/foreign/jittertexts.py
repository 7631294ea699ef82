"""
Read what jitterdebugger prints with -v, and the samples that jittersamples writes.

Source: jitterdebugger (045a274): __display_stats, and output_csv of jd_samples_csv.c. A
line of -v is printed again and again: the last one counts. A sample is CPU, time of
CLOCK_MONOTONIC and latency, whose unit the file does not have.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from rtscope.host.units import NS_PER_S, NS_PER_US
from rtscope.record.caveats.catalogue import make
from rtscope.record.foreign.model import (
    MAX_BUCKETS,
    NO_END_NS,
    ForeignRun,
    ForeignThread,
    ForeignTimes,
    Longest,
    Spacing,
)
from rtscope.record.foreign.source import Source

NAME = "jitterdebugger-text"

LINE = re.compile(
    r"T:\s*\d{1,4}\s*\(\s*\d+\)\s*A:\s*\d|\d{1,4};\d{1,12}\.\d{9};\d+\s*$"
)
NEEDS = "a line 'T: 0 (...) A: C: Min: Avg: Max:' of -v, or two rows of samples.csv"

MEASURES = "from the expiry of a timer to the thread in user space"

_LINE = re.compile(
    r"T:\s*(?P<thread>\d{1,4})\s*\(\s*(?P<tid>\d{1,9})\)\s*A:\s*(?P<cpu>\d{1,5})"
    r"\s*C:\s*(?P<samples>\d{1,18})\s*Min:\s*(?P<min>\d{1,18})"
    r"(?:\s*Act:\s*\d{1,18})?\s*Avg:\s*(?P<avg>\d{1,18}(?:\.\d{1,6})?)"
    r"\s*Max:\s*(?P<max>\d{1,18})"
)
_SAMPLE = re.compile(r"(\d{1,5});(\d{1,10})\.(\d{9});(\d{1,18})\s*$")
_ROWS = re.compile(r"(?:\d{1,5};\d{1,10}\.\d{9};\d{1,18}[ \t]*\n){2}")


def recognises(head: str) -> bool:
    """Whether jitterdebugger or jittersamples wrote this."""
    return bool(_LINE.search(head) or _ROWS.match(head))


@dataclass(slots=True)
class _Samples:
    """The samples of one CPU so far, in the unit of the file."""

    counts: Counter[int] = field(default_factory=Counter)
    longest: Longest = field(default_factory=Longest)
    spacing: Spacing = field(default_factory=Spacing)


def read(source: Source, *, unit_ns: int | None = None) -> list[ForeignRun]:
    """Return the run of the file; RecordError if it has no thread, or no unit."""
    summaries: dict[int, re.Match[str]] = {}
    cpus: dict[int, _Samples] = {}
    first_ns, last_ns = 2**63, 0
    not_understood = filled = 0
    for number, line in enumerate(source.lines(), 1):
        if match := _SAMPLE.match(line):
            cpu, value = int(match[1]), int(match[4])
            at_ns = int(match[2]) * NS_PER_S + int(match[3])
            first_ns, last_ns = min(first_ns, at_ns), max(last_ns, at_ns)
            kept = cpus.setdefault(cpu, _Samples())
            filled += value not in kept.counts
            kept.counts[value] += 1
            kept.longest.add(value, at_ns)
            kept.spacing.add(at_ns)
            if filled > MAX_BUCKETS:
                raise source.damaged(f"line {number}: over {MAX_BUCKETS:,} buckets")
        elif match := _LINE.search(line):
            summaries[int(match["thread"])] = match
        elif line.strip():
            not_understood += 1
    metadata = {"lines not understood": str(not_understood)} if not_understood else {}
    if not cpus:
        metadata["unit"] = f"{unit_ns} ns (named)" if unit_ns else "us (assumed)"
        threads = tuple(_summarized(summaries, unit_ns or NS_PER_US))
        return [_run(threads, 0, metadata)]
    if unit_ns is None:
        raise source.damaged(
            "samples of jitterdebugger do not name their unit: add --unit us, or "
            "--unit ns if it was started with -N or resolution_in_ns of its "
            "results.json is 1"
        )
    threads = tuple(_sampled(cpus, unit_ns, since=first_ns))
    return [_run(threads, last_ns - first_ns, metadata)]


def _run(
    threads: tuple[ForeignThread, ...], duration_ns: int, metadata: dict[str, str]
) -> ForeignRun:
    return ForeignRun(
        tool="jitterdebugger",
        format=NAME,
        verified=False,
        measures=MEASURES,
        threads=threads,
        duration_ns=duration_ns,
        policy="fifo",
        metadata=metadata,
        caveats=(make("import_stalls_repeated"),),
    )


def _summarized(
    summaries: dict[int, re.Match[str]], step_ns: int
) -> Iterator[ForeignThread]:
    for _, one in sorted(summaries.items()):
        samples = int(one["samples"])
        yield ForeignThread(
            samples=samples,
            min_ns=int(one["min"]) * step_ns if samples else None,
            max_ns=int(one["max"]) * step_ns if samples else None,
            mean_ns=round(float(one["avg"]) * step_ns) if samples else None,
            step_ns=step_ns,
            overflow=samples,
            cpu=int(one["cpu"]),
            tid=int(one["tid"]),
            missed_periods=0,
        )


def _sampled(
    cpus: dict[int, _Samples], step_ns: int, *, since: int
) -> Iterator[ForeignThread]:
    for cpu, kept in sorted(cpus.items()):
        yield ForeignThread(
            samples=kept.counts.total(),
            min_ns=min(kept.counts) * step_ns,
            max_ns=max(kept.counts) * step_ns,
            step_ns=step_ns,
            end_ns=NO_END_NS,
            buckets={value * step_ns: n for value, n in sorted(kept.counts.items())},
            cpu=cpu,
            missed_periods=0,
            times=ForeignTimes(
                worst=kept.longest.listed(step_ns, since=since),
                step_ns=kept.spacing.median_ns,
            ),
        )
