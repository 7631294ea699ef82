"""
Reports that tracers and rtla write themselves: a latency and its pieces. Pure.

    # irqsoff latency trace v1.1.5 on 6.1.0      the head of irqsoff, preemptoff, wakeup
    ## CPU 3 hit stop tracing, analyzing it ##   the auto-analysis of rtla timerlat -a

A head has no times of its own; the lines below it may be missing.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from rtscope.host.files.opening import open_named
from rtscope.host.files.plaintext import plain_file
from rtscope.host.files.prefixes import without_prefix
from rtscope.record.events.datfile import MAGIC

OFF_TRACERS = ("irqsoff", "preemptoff", "preemptirqsoff")
_MOST_LINES = 50_000
_HEAD = re.compile(
    r"#? ?(?P<tracer>\w+) latency trace v[\d.]+(?: on (?P<kernel>\S+))?\s*$"
)
_LATENCY = re.compile(
    r"#? ?latency: (?P<us>\d{1,12}) us, #\d+/\d+, CPU#(?P<cpu>\d{1,5})"
    r"(?: \| \(M:(?P<model>\S+))?"
)
_TASK = re.compile(
    r"#? *\| task: (?P<comm>.{1,16})-(?P<pid>\d{1,10}) \(uid:\d+ nice:(?P<nice>-?\d+) "
    r"policy:(?P<policy>\d+) rt_prio:(?P<prio>\d+)\)"
)
_PLACE = re.compile(r"#? *=> (?P<which>started|ended) at: +(?P<place>\S+)")
_FUNCTION = re.compile(
    r" *(?P<comm>\S.{0,15}?)-(?P<pid>\d{1,10}) +(?P<cpu>\d{1,5}|\[\d{1,5}\] )"
    r"(?P<flags>[.dDbX?]\S{3,7}) +(?P<us>\d{1,12})us[ +!#*@$]*: (?P<call>[\w.]+) <-"
)
_STACK = re.compile(r" *=> ([\w.]+)")
_HIT = re.compile(r" *#* ?CPU (?P<cpu>\d{1,5}) hit stop tracing")
_ROW = re.compile(
    r"\s*(?P<label>Previous IRQ interference|IRQ handler delay|IRQ latency|"
    r"Timerlat IRQ duration|Blocking thread|NMI interference|IRQ interference|"
    r"Softirq interference|Thread interference|Thread latency)(?::|\s)\s*"
    r"(?P<how>\(exit from idle\)|up to)?\s*(?:(?P<us>\d{1,9}(?:\.\d+)?) us)?"
)
_PIECE = re.compile(
    r"\s+(?P<name>\S.{0,31}?):(?P<number>\d{1,10})\s*(?:(?P<us>[\d.]+) us)?$"
)
_CALL = re.compile(r"\s+-> ([\w.]+)")


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a latency tracer's text, and what the lines below it show."""

    tracer: str
    kernel: str
    latency_ns: int
    cpu: int
    task: str
    pid: int
    policy: int
    """The kernel's number: 0 other, 1 FIFO, 2 RR, 6 deadline."""
    rt_priority: int
    nice: int
    started: str
    ended: str
    calls: tuple[tuple[int, str], ...] = ()
    """Functions with their ns since the begin."""
    stack: tuple[str, ...] = ()
    switched: bool = False
    """A line below shows the switch to the thread that waited."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of rtla's analysis: what took how long."""

    label: str
    length_ns: int | None
    """None where rtla prints no time."""
    pieces: tuple[tuple[str, int | None], ...] = ()
    """The tasks or interrupts that it lists below, each with its time."""
    from_idle: bool = False


@dataclass(frozen=True, slots=True)
class Analysis:
    """What rtla says of one CPU that was too late."""

    cpu: int
    latency_ns: int
    of_thread: bool
    """The latency of the thread; else that of the timer's interrupt."""
    rows: tuple[Row, ...]
    stack: tuple[str, ...] = ()

    def row(self, label: str) -> Row | None:
        """Return the line of a name."""
        return next((row for row in self.rows if row.label == label), None)


def reports_in(path: Path) -> Sequence[Head | Analysis]:
    """Return the reports in a file of text; nothing if it holds none."""
    with open_named(path, kind="trace") as file:
        if file.read(len(MAGIC)) == MAGIC:
            return ()
    lines = list(islice(plain_file(path).lines(), _MOST_LINES))
    text, _ = without_prefix("\n".join(lines), _is_of_a_report)
    lines = text.split("\n")
    if any(_HIT.match(line) for line in lines):
        return tuple(_analyses(lines))
    head = _head_of(lines)
    return () if head is None else (head,)


def _is_of_a_report(line: str) -> bool:
    return any(p.match(line) for p in (_HEAD, _LATENCY, _TASK, _HIT, _ROW))


def _head_of(lines: Sequence[str]) -> Head | None:
    title = _first(_HEAD, lines)
    latency = _first(_LATENCY, lines)
    if title is None or latency is None:
        return None
    task = _first(_TASK, lines)
    places = {
        match["which"]: match["place"]
        for match in map(_PLACE.match, lines)
        if match is not None
    }
    calls = [match for match in map(_FUNCTION.match, lines) if match is not None]
    began = next((i for i, x in enumerate(lines) if "<stack trace>" in x), len(lines))
    stack = [m[1] for m in map(_STACK.match, lines[began + 1 :]) if m is not None]
    return Head(
        tracer=title["tracer"],
        kernel=title["kernel"] or "",
        latency_ns=1000 * int(latency["us"]),
        cpu=int(latency["cpu"]),
        task="" if task is None else task["comm"],
        pid=-1 if task is None else int(task["pid"]),
        policy=0 if task is None else int(task["policy"]),
        rt_priority=0 if task is None else int(task["prio"]),
        nice=0 if task is None else int(task["nice"]),
        started=_function(places.get("started", "")),
        ended=_function(places.get("ended", "")),
        calls=tuple((1000 * int(m["us"]), m["call"]) for m in calls),
        stack=tuple(stack),
        switched=any(" ==> [" in line for line in lines),
    )


def _first(pattern: re.Pattern[str], lines: Sequence[str]) -> re.Match[str] | None:
    return next((m for m in map(pattern.match, lines[:200]) if m is not None), None)


def _function(place: str) -> str:
    return place.partition("+")[0]


def _analyses(lines: Sequence[str]) -> Iterator[Analysis]:
    at = [number for number, line in enumerate(lines) if _HIT.match(line)]
    for begin, end in zip(at, (*at[1:], len(lines)), strict=True):
        hit = _HIT.match(lines[begin])
        assert hit is not None
        analysis = _analysis(int(hit["cpu"]), lines[begin + 1 : end])
        if analysis is not None:
            yield analysis


def _analysis(cpu: int, lines: Sequence[str]) -> Analysis | None:
    rows: list[Row] = []
    stack: list[str] = []
    for line in lines:
        row, piece, call = _ROW.match(line), _PIECE.match(line), _CALL.match(line)
        if row is not None and not line.rstrip().endswith("trace"):
            idle = row["how"] == "(exit from idle)"
            rows.append(Row(row["label"], _ns(row["us"]), (), idle))
        elif call is not None:
            stack.append(call[1])
        elif piece is not None and rows:
            one = piece["name"].strip(), _ns(piece["us"])
            last = rows[-1]
            pieces = (*last.pieces, one)
            rows[-1] = Row(last.label, last.length_ns, pieces, last.from_idle)
        if rows and rows[-1].label == "Thread latency":
            break
    lengths = {row.label: row.length_ns for row in rows}
    total = lengths.get("Thread latency") or lengths.get("IRQ latency")
    if total is None:
        return None
    of_thread = lengths.get("Thread latency") is not None
    return Analysis(cpu, total, of_thread, tuple(rows), tuple(stack))


def _ns(us: str | None) -> int | None:
    return None if us is None else round(1000 * float(us))
