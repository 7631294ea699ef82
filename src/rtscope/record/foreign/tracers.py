"""
Read the trace of the kernel's tracers osnoise, hwlat and timerlat, as text.

Source: trace_osnoise.c, trace_hwlat.c and trace_output.c of Linux 6.12, and traces of
Debian's 6.12 with PREEMPT_RT. osnoise writes a line for each period of a CPU, with its
longest single noise; hwlat one for each window with a gap above its threshold; timerlat
the latency of each activation, to the interrupt and to the thread. The buffer keeps the
last lines only: what was before them is unknown.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from rtscope.host.units import NS_PER_MS, NS_PER_S, NS_PER_US
from rtscope.record.caveats.catalogue import Caveat, make
from rtscope.record.foreign.model import (
    MAX_BUCKETS,
    NO_END_NS,
    ForeignRun,
    ForeignThread,
    ForeignTimes,
    Longest,
    Spacing,
)
from rtscope.record.foreign.rtla import MEASURES, silent_cpu
from rtscope.record.foreign.source import Source

NAME = "kernel-tracer"

_OSNOISE = re.compile(
    r"\d{1,18}\s+(?P<noise>\d{1,18})\s+\d{1,3}\.\d{5}\s+(?P<single>\d{1,18})"
    r"(?:\s+\d{1,10}){5}\s*$"
)
_HWLAT = re.compile(
    r"#\d{1,10}\s+inner/outer\(us\):\s*(?P<inner>\d{1,18})/(?P<outer>\d{1,18})"
    r"\s+ts:\s*\d{1,12}\.\d{1,9}"
)
_TIMERLAT = re.compile(
    r"#\d{1,12}\s+context\s+(?P<context>irq|thread|user-ret)\s+timer_latency"
    r"\s+(?P<ns>\d{1,18}) ns"
)
_EVENT = re.compile(
    r"\s*\S.{0,40}?-\d{1,8}\s+(?:\([\s\d-]{1,12}\)\s+)?\[(?P<cpu>\d{1,5})\]"
    r"\s+(?:\S{3,9}\s+)?(?P<s>\d{1,12})\.(?P<us>\d{6}):\s+(?P<rest>\S.{0,200})$"
)
_ENTRIES = re.compile(r"#\s*entries-in-buffer/entries-written:\s*(\d{1,18})/(\d{1,18})")
_LOST = re.compile(r"CPU:\s*\d{1,5} \[LOST (\d{1,18}) EVENTS\]")

LINE = re.compile(
    r"# tracer: (?:osnoise|hwlat|timerlat)\b"
    r"|\s*\S[^\[\]]{0,20}-\d{1,8}\s+\[\d{1,5}\]\s+\S{1,9}\s+\d{1,12}\.\d{6}:\s+"
    r"(?:#\d{1,12}\s+(?:context\s|inner/outer)|\d{1,18}\s+\d{1,18}\s+\d{1,3}\.\d{5}\s)"
)
NEEDS = "a line of the tracer osnoise, hwlat or timerlat"

KINDS = {
    "osnoise": "the longest single noise in each period of a busy loop",
    "hwlat": "the longest gap in a window of a kernel loop with interrupts off",
    "irq": MEASURES["irq"],
    "thread": MEASURES["thread"],
    "user-ret": MEASURES["user"],
}
"""What is measured, by the tracer, of timerlat by the context."""


HWLAT_WINDOW_NS = NS_PER_S
"""The distance of two windows unless it was changed, which the trace does not say."""


def recognises(head: str) -> bool:
    """Whether this is the trace of one of these tracers."""
    if re.search(r"^# tracer: (?:osnoise|hwlat|timerlat)\s*$", head, re.MULTILINE):
        return True
    return any(_parsed(line) is not None for line in head.splitlines())


@dataclass(slots=True)
class _Cpu:
    """The values of one CPU, in the unit of the tracer."""

    counts: Counter[int] = field(default_factory=Counter)
    longest: Longest = field(default_factory=Longest)
    spacing: Spacing = field(default_factory=Spacing)
    last_ns: int = 0


@dataclass(slots=True)
class _Trace:
    """What was read so far."""

    kinds: dict[str, dict[int, _Cpu]] = field(default_factory=dict)
    first_ns: int = 2**63
    last_ns: int = 0
    lost: int = 0
    """Lines that the buffer no longer had, as far as the trace says it."""
    backwards: bool = False
    """Whether the time of a CPU goes back: a second trace begins."""


def read(source: Source, *, unit_ns: int | None = None) -> list[ForeignRun]:
    """Return a run of each kind; RecordError if the tracer wrote no line."""
    trace, filled = _Trace(), 0
    for number, line in enumerate(source.lines(), 1):
        if match := _ENTRIES.match(line):
            trace.lost += max(int(match[2]) - int(match[1]), 0)
        elif match := _LOST.search(line):
            trace.lost += int(match[1])
        elif (event := _parsed(line)) is not None:
            kind, cpu, at_ns, value = event
            kept = trace.kinds.setdefault(kind, {}).setdefault(cpu, _Cpu())
            filled += value not in kept.counts
            kept.counts[value] += 1
            trace.backwards |= at_ns + NS_PER_MS < kept.last_ns
            kept.last_ns = at_ns
            kept.longest.add(value, at_ns)
            kept.spacing.add(at_ns)
            trace.first_ns = min(trace.first_ns, at_ns)
            trace.last_ns = max(trace.last_ns, at_ns)
            if filled > MAX_BUCKETS:
                raise source.damaged(f"line {number}: over {MAX_BUCKETS:,} values")
    if not trace.kinds:
        raise source.damaged(
            "no line of the tracer in it: nothing was above tracing_thresh, or the "
            "trace was read before the end of a period; read it again later"
        )
    return [_run(trace, kind) for kind in KINDS if kind in trace.kinds]


def _parsed(line: str) -> tuple[str, int, int, int] | None:
    """Return kind, CPU, time in ns and value of a line; None if it is another's."""
    event = _EVENT.match(line)
    if event is None:
        return None
    at_ns = int(event["s"]) * NS_PER_S + int(event["us"]) * NS_PER_US
    cpu, rest = int(event["cpu"]), event["rest"]
    if match := _TIMERLAT.match(rest):
        return match["context"], cpu, at_ns, int(match["ns"])
    if match := _HWLAT.match(rest):
        return "hwlat", cpu, at_ns, max(int(match["inner"]), int(match["outer"]))
    if match := _OSNOISE.match(rest):
        return "osnoise", cpu, at_ns, int(match["single"])
    return None


def _run(trace: _Trace, kind: str) -> ForeignRun:
    tracer = kind if kind in ("osnoise", "hwlat") else "timerlat"
    return ForeignRun(
        tool=f"the tracer {tracer}",
        format=NAME,
        verified=True,
        measures=KINDS[kind],
        threads=tuple(_threads(trace, kind)),
        duration_ns=trace.last_ns - trace.first_ns,
        variant="" if tracer == kind else kind,
        caveats=tuple(_doubts(trace, kind)),
    )


def _threads(trace: _Trace, kind: str) -> Iterator[ForeignThread]:
    step_ns = 1 if kind not in ("osnoise", "hwlat") else NS_PER_US
    for cpu, kept in sorted(trace.kinds[kind].items()):
        if kind == "osnoise" and not any(kept.counts):
            yield silent_cpu(cpu, NS_PER_US)
            continue
        longest = kept.longest.listed(step_ns, since=trace.first_ns)
        yield ForeignThread(
            samples=kept.counts.total(),
            min_ns=min(kept.counts) * step_ns,
            max_ns=max(kept.counts) * step_ns,
            step_ns=step_ns,
            end_ns=NO_END_NS,
            buckets={value * step_ns: n for value, n in sorted(kept.counts.items())},
            cpu=cpu,
            times=ForeignTimes(
                worst=longest,
                step_ns=_step_ns(kind, kept),
                from_start=not trace.lost,
            ),
        )


def _step_ns(kind: str, kept: _Cpu) -> int:
    """Return the distance of two lines; hwlat has none for a window without a gap."""
    return (
        HWLAT_WINDOW_NS if kind == "hwlat" else max(kept.spacing.median_ns, NS_PER_US)
    )


def _doubts(trace: _Trace, kind: str) -> Iterator[Caveat]:
    if kind not in ("thread", "user-ret"):
        yield make("import_other_quantity", KINDS[kind])
    if trace.backwards:
        yield make("import_contradicts", "times go back: it is more than one trace")
    if trace.lost:
        yield make("import_trace_lost", f"{trace.lost:,} lines")
