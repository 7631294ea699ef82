"""
Read a plain column or table of latencies, counts or time stamps, of any program.

What a column means is certain by its heading, or asked for. A cycle time, or the time
since the row before, becomes a latency by taking the interval off; what is below zero
counts as 0. Memory is bounded: with very many different values they are cut to a
larger step.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from rtscope.host.errors import RecordError
from rtscope.host.files.plaintext import plain_file
from rtscope.host.units import NS_PER_MS, NS_PER_S, NS_PER_US, exact_duration
from rtscope.record.caveats.catalogue import Caveat, make
from rtscope.record.foreign.model import (
    MAX_TIMED,
    NO_END_NS,
    Asked,
    ForeignRun,
    ForeignThread,
    ForeignTimes,
    Longest,
    Spacing,
)
from rtscope.record.foreign.source import Source
from rtscope.record.foreign.table import (
    MISSING,
    UNIT_NS,
    Column,
    Layout,
    layout_of,
    rows_of,
)

NAME = "table"

LINE = re.compile(r"(?!)")
"""None is a sign of this format: what stands before a column may be another one."""
NEEDS = "rows of numbers"

MAX_VALUES = 500_000
"""Different values of all CPUs; with more they are cut to ten times the step."""

MAX_CPUS = 4096

_LATENCY = re.compile(
    r"latenc|jitter|delay|late(?:ness)?\b|response|wake.?up|deviation|overshoot"
    r"|verz(?:ö|oe)gerung",
    re.IGNORECASE,
)
_CYCLE = re.compile(
    r"cycle.?time|period|interval|delta|diff|\bdt\b|zyklus", re.IGNORECASE
)
_TIME = re.compile(
    r"^(?:time|timestamp|time.?stamp|ts|t|date|datetime|clock|elapsed|stamp|zeit|sec"
    r"|nsec|seconds)(?:$|[\W_\d])",
    re.IGNORECASE,
)
_COUNT = re.compile(
    r"^(?:counts?|frequency|freq|hits|occurrences?|samples?|number|n|events)\b"
    r"|count$|anzahl",
    re.IGNORECASE,
)
_PLACE = re.compile(
    r"^(?:cpu|core|thread|index|idx|#|no|nr|id|seq|sequence|iteration|iter|cycle|loop"
    r"|row|run|sample)(?:$|[\s_]?(?:id|no|nr|number|count|num)?$)",
    re.IGNORECASE,
)
_CPU = re.compile(r"^(?:cpu|core)(?:[\s_]?(?:id|no|nr|num))?$", re.IGNORECASE)

_NAMED_UNITS = {1: "ns", NS_PER_US: "us", NS_PER_MS: "ms", NS_PER_S: "s"}


@dataclass(frozen=True, slots=True)
class _Plan:
    """Which column is what."""

    layout: Layout
    value: Column | None
    """None: time stamps alone."""
    unit_ns: int
    time: Column | None
    time_ns: int
    """The unit of the times; 0: dates, or not known."""
    count: Column | None
    cpu: Column | None
    less_interval: bool
    """Whether a value is a whole cycle, of which the interval is taken off."""


def recognises(head: str) -> bool:
    """Whether these lines are a table with a number in it."""
    return layout_of(head.splitlines()) is not None


def read(
    source: Source, *, unit_ns: int | None = None, asked: Asked | None = None
) -> list[ForeignRun]:
    """Return the run of the file; RecordError says what to type if it is unclear."""
    asked = asked or Asked()
    head = next(source.heads(), [])
    layout = layout_of(head)
    if layout is None:
        raise source.damaged(
            "no table of numbers: rows must have the same columns, apart by commas, "
            "semicolons, tabs or spaces"
        )
    if layout.comma == "unclear":
        raise source.damaged(
            "each number with a comma may have thousands or decimals, as 1,234: write "
            "it with a point, or without a comma"
        )
    plan = _plan(source, layout, asked, unit_ns)
    reading = _Reading(plan)
    for number, cells in rows_of(plain_file(source.path).lines(), layout):
        reading.take(number, cells)
    return [_run(source, reading, asked)]


# --- what is which -------------------------------------------------------------------


def _plan(source: Source, layout: Layout, asked: Asked, unit_ns: int | None) -> _Plan:
    named = [_asked_for(source, layout, t) for t in (asked.column, asked.count_column)]
    value, count = (column for column, _ in named)
    time, time_ns = _asked_for(source, layout, asked.time_column)
    rest = [c for c in layout.columns if c.numeric and c not in (value, time, count)]
    if time is None and not asked.time_column:
        times = [c for c in layout.columns if c.heading and _TIME.search(c.heading)]
        times = [c for c in times if c not in (value, count)]
        time = times[0] if len(times) == 1 else None
    if count is None and value is None:
        counts = [c for c in rest if c.heading and _COUNT.search(c.heading)]
        count = counts[0] if len(counts) == 1 and len(rest) == 2 else None
    cpus = [c for c in rest if c.heading and _CPU.search(c.heading)]
    less_interval = False
    if value is None:
        free = [c for c in rest if c not in (time, count)]
        stamps = bool(asked.time_column) and not any(map(_is_named, free))
        value = None if stamps else _value_column(source, layout, free)
    if value is not None and not asked.column:
        less_interval = _is_cycle(value)
    if value is None and time is None:
        raise _unclear(source, layout, "no column is a latency by its heading")
    cell_ns = named[0][1] or None
    found_ns = unit_ns or cell_ns or (value.unit_ns if value else None)
    if value is not None and not found_ns:
        raise source.damaged(
            f"no unit of column {value.name!a}: its heading and cells name none; add "
            "--unit us (or ns, ms, s)"
        )
    if time is not None and not time_ns:
        time_ns = time.unit_ns or 0
    if value is None and time is not None and not time_ns and time.numeric:
        raise source.damaged(
            f"no unit of the time stamps in column {time.name!a}: add "
            f"--time-column {time.name}:ns (or us, ms, s)"
        )
    return _Plan(
        layout=layout,
        value=value,
        unit_ns=found_ns or 1,
        time=time,
        time_ns=time_ns,
        count=count,
        cpu=cpus[0] if len(cpus) == 1 else None,
        less_interval=less_interval or value is None,
    )


def _is_named(column: Column) -> bool:
    """Whether the heading says that the column is a latency or a cycle time."""
    return bool(_LATENCY.search(column.heading) or _CYCLE.search(column.heading))


def _is_cycle(column: Column) -> bool:
    return bool(_CYCLE.search(column.heading)) and not _LATENCY.search(column.heading)


def _asked_for(source: Source, layout: Layout, text: str) -> tuple[Column | None, int]:
    """Return the column of an option, and its unit in ns if it has one: NAME:UNIT."""
    if not text:
        return None, 0
    name, colon, unit = text.rpartition(":")
    unit_ns = UNIT_NS.get(unit.lower(), 0) if colon else 0
    if not unit_ns:
        name = text
    for column in layout.columns:
        if name == column.heading or name == str(column.number):
            return column, unit_ns
    raise _unclear(source, layout, f"no column {name!a}")


def _value_column(
    source: Source, layout: Layout, rest: Sequence[Column]
) -> Column | None:
    """Return the one column that can be the latency; RecordError if several can."""
    for pattern in (_LATENCY, _CYCLE):
        alike = [c for c in rest if c.heading and pattern.search(c.heading)]
        if len(alike) > 1:
            raise _unclear(source, layout, "several columns may be the latency")
        if alike:
            return alike[0]
    if len(layout.columns) > 1:
        rest = [c for c in rest if c.heading and not _PLACE.search(c.heading)]
        if not rest and any(c.numeric and not c.heading for c in layout.columns):
            raise _unclear(source, layout, "several columns without a heading")
    if len(rest) > 1:
        raise _unclear(source, layout, "several columns may be the latency")
    return rest[0] if rest else None


def _unclear(source: Source, layout: Layout, why: str) -> RecordError:
    """Return the refusal that lists the columns and the command to type."""
    listed = "; ".join(
        f"{c.number}"
        + (f" {c.heading!a}" if c.heading else "")
        + f", first {c.first!a}"
        for c in layout.columns[:20]
    )
    numeric = [c for c in layout.columns if c.numeric]
    likely = next((c for c in numeric if _LATENCY.search(c.heading)), numeric[-1])
    unit = "" if likely.unit_ns else " --unit us"
    command = f"rtscope import {shlex.quote(str(source.path))} --column "
    return source.damaged(
        f"{why}: its columns are {listed}; name the column of latencies, e.g. "
        f"{command}{shlex.quote(likely.name)}{unit}"
    )


# --- rows ----------------------------------------------------------------------------


@dataclass(slots=True)
class _Cpu:
    """The values of one CPU so far, in steps."""

    counts: Counter[int] = field(default_factory=Counter)
    longest: Longest = field(default_factory=Longest)
    spacing: Spacing = field(default_factory=Spacing)
    last_ns: int | None = None
    """The time stamp before."""


class _Reading:
    """What the rows read so far have."""

    def __init__(self, plan: _Plan) -> None:
        self.plan = plan
        self.cpus: dict[int | None, _Cpu] = {}
        self.step_ns: int = max(plan.unit_ns // 10**plan.layout.decimals, 1)
        if plan.value is None or plan.less_interval:
            self.step_ns = max((plan.time_ns or plan.unit_ns) // 10**9, 1)
        self.negative = self.missing = self.not_understood = self.backwards = 0
        self.first_wrong = 0
        self.first_ns: int | None = None
        self.last_ns = 0
        self.rows = 0
        self._values = 0

    def take(self, number: int, cells: Sequence[str]) -> None:
        """Take a row; a row that is not understood is counted."""
        plan = self.plan
        if len(cells) < len(plan.layout.columns):
            self._wrong(number)
            return
        at_ns = None if plan.time is None else self._time(cells[plan.time.number - 1])
        cpu = self._cpu(cells)
        if plan.value is None:
            self._stamp(number, cpu, at_ns)
            return
        cell = cells[plan.value.number - 1].strip()
        value = plan.layout.number(cell)
        if value is None or not abs(value) < 1e15:
            if cell.lower() in MISSING:
                self.missing += 1
            else:
                self._wrong(number)
            return
        times = self._count(number, cells)
        if times:
            self._add(cpu, round(value * plan.unit_ns), at_ns, times)

    def _wrong(self, number: int) -> None:
        self.not_understood += 1
        self.first_wrong = self.first_wrong or number

    def _count(self, number: int, cells: Sequence[str]) -> int:
        """Return how often a value was seen: 1 without a column of counts."""
        if self.plan.count is None:
            return 1
        count = self.plan.layout.number(cells[self.plan.count.number - 1])
        if count is None or count < 0 or count != int(count) or count > 1e15:
            self._wrong(number)
            return 0
        return int(count)

    def _cpu(self, cells: Sequence[str]) -> _Cpu:
        key = None
        if self.plan.cpu is not None:
            text = cells[self.plan.cpu.number - 1].strip()
            key = int(text) if re.fullmatch(r"\d{1,4}", text) else None
        return self.cpus.setdefault(key, _Cpu())

    def _time(self, cell: str) -> int | None:
        """Return a time stamp in ns; None if it is none, or its unit is unknown."""
        plan = self.plan
        assert plan.time is not None
        at_ns = None
        if plan.time_ns:
            at_ns = _exact_ns(cell, plan.time_ns, plan.layout)
        elif not plan.time.numeric:
            at_ns = _date_ns(cell)
        if at_ns is None:
            return None
        if self.first_ns is None:
            self.first_ns = at_ns
        self.backwards += at_ns < self.last_ns
        self.last_ns = at_ns
        return at_ns

    def _stamp(self, number: int, cpu: _Cpu, at_ns: int | None) -> None:
        if at_ns is None:
            self._wrong(number)
            return
        if cpu.last_ns is not None:
            self._add(cpu, at_ns - cpu.last_ns, at_ns, 1)
        cpu.last_ns = at_ns

    def _add(self, cpu: _Cpu, value_ns: int, at_ns: int | None, times: int) -> None:
        self.rows += times
        if value_ns < 0:
            self.negative += times
            value_ns = 0
        value = value_ns // self.step_ns
        if value not in cpu.counts:
            self._values += 1
            if self._values > MAX_VALUES:
                self._coarser()
                value = value_ns // self.step_ns
        cpu.counts[value] += times
        if at_ns is not None:
            cpu.longest.add(value_ns, at_ns)
            cpu.spacing.add(at_ns)

    def _coarser(self) -> None:
        """Cut all values to a larger step, until they are half as many."""
        while self._values > MAX_VALUES // 2:
            self.step_ns *= 10
            for cpu in self.cpus.values():
                cut: Counter[int] = Counter()
                for value, times in cpu.counts.items():
                    cut[value // 10] += times
                cpu.counts = cut
            self._values = sum(len(cpu.counts) for cpu in self.cpus.values())


def _exact_ns(cell: str, unit_ns: int, layout: Layout) -> int | None:
    """Return a time in ns; a float would lose those of a clock since 1970."""
    match = re.fullmatch(r"\s*(\d{1,19})(?:[.,](\d{1,12}))?\s*", cell)
    if match is None:
        value = layout.number(cell)
        return (
            None if value is None or not abs(value) < 1e12 else round(value * unit_ns)
        )
    decimals = (match[2] or "")[:12].ljust(12, "0")
    return int(match[1]) * unit_ns + int(decimals) * unit_ns // 10**12


def _date_ns(cell: str) -> int | None:
    """Return a date with a time in ns since 1970; None if it is none."""
    text, _, rest = cell.strip().strip('"').partition(".")
    decimals = re.match(r"\d{1,9}", rest)
    zone = rest[decimals.end() :] if decimals else ""
    try:
        at = datetime.fromisoformat(text.replace("/", "-") + zone)
    except ValueError:
        return None
    whole = int((at.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds())
    return whole * NS_PER_S + int((decimals[0] if decimals else "0").ljust(9, "0"))


# --- the run -------------------------------------------------------------------------


def _run(source: Source, reading: _Reading, asked: Asked) -> ForeignRun:
    plan = reading.plan
    wrong = reading.not_understood + reading.missing
    if not reading.rows or reading.not_understood > reading.rows:
        raise source.damaged(
            f"{reading.rows:,} rows have a number where it is expected, {wrong:,} have "
            f"none (the first is line {reading.first_wrong})"
        )
    interval_ns, found = asked.interval_ns, False
    if plan.less_interval and not interval_ns:
        interval_ns, found = _median_ns(reading), True
    since = reading.first_ns or 0
    threads = tuple(
        _thread(reading, cpu, kept, since, interval_ns if plan.less_interval else 0)
        for cpu, kept in sorted(
            reading.cpus.items(), key=lambda item: -1 if item[0] is None else item[0]
        )
        if kept.counts
    )
    name = "time stamps" if plan.value is None else f"column {plan.value.name}"
    measures = name
    if plan.less_interval:
        measures += f" less the interval of {exact_duration(interval_ns)}"
    return ForeignRun(
        tool="a table",
        format=NAME,
        verified=True,
        measures=measures,
        threads=threads,
        duration_ns=max(reading.last_ns - since, 0),
        metadata={
            "unit": _NAMED_UNITS.get(plan.unit_ns, f"{plan.unit_ns} ns"),
            **({"time column": plan.time.name} if plan.time else {}),
            **({"count column": plan.count.name} if plan.count else {}),
        },
        caveats=tuple(_doubts(reading, measures, interval_ns if found else 0)),
    )


def _median_ns(reading: _Reading) -> int:
    """Return the median of all values: the interval, where most rows are in time."""
    together: Counter[int] = Counter()
    for cpu in reading.cpus.values():
        together.update(cpu.counts)
    middle, before = together.total() // 2, 0
    for value, times in sorted(together.items()):
        before += times
        if before > middle:
            return value * reading.step_ns
    return 0


def _thread(
    reading: _Reading, cpu: int | None, kept: _Cpu, since: int, less_ns: int
) -> ForeignThread:
    step_ns = reading.step_ns
    buckets: Counter[int] = Counter()
    for value, times in kept.counts.items():
        late_ns = max(value * step_ns - less_ns, 0)
        buckets[late_ns // step_ns * step_ns] += times
    worst = tuple(
        (at_ns, max(ns - less_ns, 0) // step_ns * step_ns)
        for at_ns, ns in kept.longest.listed(1, since=since)
    )
    # With each row among the longest it may be a list of late ones alone.
    step = kept.spacing.median_ns if buckets.total() > MAX_TIMED else 1
    return ForeignThread(
        samples=buckets.total(),
        min_ns=min(buckets),
        max_ns=max(buckets),
        step_ns=step_ns,
        end_ns=NO_END_NS,
        buckets=dict(sorted(buckets.items())),
        cpu=cpu if cpu is not None and cpu < MAX_CPUS else None,
        interval_ns=less_ns,
        times=ForeignTimes(worst=worst, step_ns=step) if worst else None,
    )


def _doubts(reading: _Reading, measures: str, found_ns: int) -> Iterator[Caveat]:
    plan = reading.plan
    yield make("import_other_quantity", measures)
    left_out = []
    if reading.missing:
        left_out.append(f"rows without a value: {reading.missing:,}")
    if reading.not_understood:
        left_out.append(
            f"rows not understood: {reading.not_understood:,}, the first in line "
            f"{reading.first_wrong}"
        )
    if left_out:
        yield make("import_rows_left_out", "; ".join(left_out))
    if reading.negative:
        yield make("import_below_zero", f"{reading.negative:,} of {reading.rows:,}")
    if plan.less_interval:
        median = f"{exact_duration(found_ns)}, the median" if found_ns else ""
        yield make("import_interval_taken_off", median)
    if plan.time is not None and not plan.time_ns and plan.time.numeric:
        name = plan.time.name
        yield make("import_times_unknown", f"--time-column {name}:s, if it is seconds")
    if reading.backwards:
        yield make(
            "import_contradicts", f"{reading.backwards:,} time stamps go backwards"
        )
