"""
Text of ftrace as a trace: every line is stamped once, few are taken apart.

Lines of `trace`, `trace_pipe` and `trace-cmd report` have two forms, each with
variants: time in seconds after the CPU in brackets, and the latency format, where the
CPU stands before the flags, and times may be relative. Most events print `name=value`;
trace-cmd prints those of the scheduler differently. A file without any event is
refused.
"""

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from rtscope.host.errors import RecordError
from rtscope.record.events.events import Event, Flag, Loss, Rows
from rtscope.record.events.forms import UNKNOWN_PID, ftrace_text

_FLAGS = rb"[.dDbX?][^\s\d:]{2}[^\s:]{1,6}"
LINE = re.compile(
    rb"^[ \t]*(?P<comm>\S.{0,40}?)-(?P<pid>\d{1,10})[ \t]+(?:\([ \d-]{1,9}\)[ \t]+)?"
    rb"(?:\[(?P<cpu>\d{1,5})\]|(?P<cpu2>\d{1,5})(?=[.dDbX?]))[ \t]*"
    rb"(?:(?P<flags>" + _FLAGS + rb")[ \t]+)?"
    rb"(?:(?P<s>\d{1,10})[.,](?P<frac>\d{1,9})|(?P<us>\d{1,12})us[ +!#*@$]*)"
    rb"[ \t]*:[ \t]+"
    rb"(?:(?P<name>[A-Za-z_]\w*):|(?P<timerlat>#\d+[ \t]+context)|(?P<stack><stack)|)",
    re.MULTILINE,
)
LOST = re.compile(
    rb"^[ \t]*CPU:(?P<cpu>\d{1,5}) \[(?:LOST (?P<lost>\d{1,12}) EVENTS|"
    rb"(?:(?P<dropped>\d{1,12}) )?EVENTS DROPPED)\]",
    re.MULTILINE,
)
_RT_FLAGS = 7
"""With need-resched-lazy before, preempt-lazy-depth and migrate-disable after."""
_NEED_RESCHED = b"NnBb"
_HARDIRQ = b"HhZ"
_SOFTIRQ = b"Hs"
_NMI = b"Zz"


_UNITS = tuple(10 ** (9 - digits) for digits in range(10))
_PAIR = re.compile(r"(\w+)=(.*?)(?=,? \[?\w+=| ==> |\]?$)")
_SWITCH_PAIRS = re.compile(
    r"prev_comm=(?P<prev_comm>.*) prev_pid=(?P<prev_pid>\d+) "
    r"prev_prio=(?P<prev_prio>-?\d+) prev_state=(?P<prev_state>\S+) ==> "
    r"next_comm=(?P<next_comm>.*) next_pid=(?P<next_pid>\d+) "
    r"next_prio=(?P<next_prio>-?\d+)"
)
_COMM_PAIR = re.compile(r"comm=(?P<comm>.*) (?=pid=-?\d)")
"""A name may have spaces, brackets and equals signs in it."""
_SWITCH = re.compile(
    r"(?P<prev_comm>.*):(?P<prev_pid>\d+) \[(?P<prev_prio>-?\d+)\] "
    r"(?P<prev_state>\S+) ==> "
    r"(?P<next_comm>.*):(?P<next_pid>\d+) \[(?P<next_prio>-?\d+)\]"
)
_WAKEUP = re.compile(
    r"(?P<comm>.*):(?P<pid>\d+) \[(?P<prio>-?\d+)\](?: success=\d+)?"
    r"(?: CPU:(?P<target_cpu>\d+))?"
)
_ARGUMENT = re.compile(r"(\w+): 0x([0-9a-f]{1,16})\b")
"""trace-cmd writes those of a system call so."""
_TIMERLAT = re.compile(
    r"#(?P<seqnum>\d+)\s+context\s+(?P<context>\w+)\s+timer_latency\s+"
    r"(?P<timer_latency>\d+)\s*ns"
)
_LENGTH = r"start +(?P<start>\d{1,10}\.\d{9}) duration +(?P<duration>\d+) ns"
_NOISES = {
    "irq_noise": re.compile(rf"(?P<desc>.*):(?P<vector>\d+) {_LENGTH}"),
    "softirq_noise": re.compile(rf"(?P<name>.*):(?P<vector>\d+) {_LENGTH}"),
    "thread_noise": re.compile(rf"(?P<comm>.*):(?P<pid>\d+) {_LENGTH}"),
    "nmi_noise": re.compile(_LENGTH),
}
_STAMP = re.compile(r"(\d{1,10})\.(\d{9})")
_CALL = re.compile(r"(?P<function>[A-Za-z_][\w.]*)(?: <-(?P<parent>[\w.]+))?$")
_DECIMAL = re.compile(r"-?[0-9]{1,19}")
_HEX = re.compile(r"0x[0-9a-f]{1,16}")
_CALLER = re.compile(r"\+0x[0-9a-f]+(/0x[0-9a-f]+)?$|/0x[0-9a-f]+$")
_FUNCTIONS = ("function", "func", "caller", "parent")
_STATES = {"0": "R", "1": "S", "2": "D", "4": "T", "8": "t"}
"""trace-cmd writes a state that it does not know as a number."""
MAX_KINDS = 20_000
_CLOCK = re.compile(rb"^#?[ \t]{0,8}clock: (\w{1,20})", re.MULTILINE)
_KERNEL = re.compile(
    rb"^#? ?(?:\w+ latency trace v[\d.]+ on|os release :) *(\S{1,80})|"
    rb"^#? ?latency: .{1,80}\(M:(\S{1,30})",
    re.MULTILINE,
)
_HEAD_BYTES = 16_384
_ADDRESS = re.compile(r"[0-9a-f]{8,16}")
_BODY = re.compile(rb"[^\n]{0,4000}\n?")
"""Longer than any line of the kernel."""
_STACK = re.compile(rb"(?:[ \t]*=> [^\n]*\n?){0,128}")


def stamp_of(
    seconds: bytes | None, fraction: bytes | None, us: bytes | None
) -> tuple[int, int]:
    """Return the time of a line in ns, and how fine it is."""
    if us is not None:
        return 1000 * int(us), 1000
    digits = fraction or b""
    unit = _UNITS[len(digits)]
    return int(seconds or 0) * 1_000_000_000 + int(digits or 0) * unit, unit


def name_of(name: bytes | None, timerlat: bytes | None, stack: bytes | None) -> str:
    """Return the name of the event of a line, as trace.dat would have it."""
    if name is None:
        if timerlat is not None:
            return "timerlat"
        return "kernel_stack" if stack is not None else "function"
    return "print" if name == b"tracing_mark_write" else name.decode()


def flags_of(text: bytes | None) -> tuple[Flag | None, int | None]:
    """Return flags and preemption depth of the column `d.h2.`; None without it."""
    if text is None or len(text) < 4:
        return None, None
    # PREEMPT_RT before Linux 6.13 has a column for need-resched-lazy of its own.
    at = 3 if len(text) >= _RT_FLAGS else 2
    flags = Flag(0)
    if text[0:1] in (b"d", b"D"):
        flags |= Flag.IRQS_OFF
    if text[1] in _NEED_RESCHED:
        flags |= Flag.NEED_RESCHED
    if text[at] in _HARDIRQ:
        flags |= Flag.HARDIRQ
    if text[at] in _SOFTIRQ:
        flags |= Flag.SOFTIRQ
    if text[at] in _NMI:
        flags |= Flag.NMI
    depth = text[at + 1 : at + 2]
    return flags, int(depth, 16) if depth and depth in b"0123456789abcdef" else 0


def fields_of(name: str, body: str) -> Mapping[str, int | str]:
    """Return the fields in the text after an event's name."""
    if name == "timerlat":
        return _matched(_TIMERLAT, body)
    if name == "print":
        return {"buf": body.partition("tracing_mark_write: ")[2] or body}
    if name in ("function", *_NOISES):
        return _matched(_NOISES.get(name, _CALL), body)
    if name == "kernel_stack":
        return {"stack": _stack_of(body)}
    if name.startswith("ipi_") and body.startswith("("):
        return {"reason": body.strip("() ")}
    fields = _of_scheduler(name, body) if name.startswith("sched_") else None
    if fields is not None:
        return fields
    if name.startswith("sys_enter_") and "=" not in body:
        return {key: int(text, 16) for key, text in _ARGUMENT.findall(body)}
    return _pairs(body)


def _of_scheduler(name: str, body: str) -> Mapping[str, int | str] | None:
    """Return the fields of an event of the scheduler; None of those without a name."""
    if name == "sched_switch":
        fields = _matched(_SWITCH_PAIRS, body) or _matched(_SWITCH, body)
        return fields or None
    if name.startswith("sched_wak") and "pid=" not in body:
        return _matched(_WAKEUP, body)
    comm = _COMM_PAIR.match(body)
    if comm is None:
        return None
    return {"comm": comm["comm"].strip(), **_pairs(body[comm.end() :])}


def _pairs(body: str) -> Mapping[str, int | str]:
    """Return what is printed as `name=value`."""
    fields = {key: _value(text.strip()) for key, text in _PAIR.findall(body)}
    for key in _FUNCTIONS:
        if isinstance(fields.get(key), str):
            fields[key] = _CALLER.sub("", str(fields[key]))
    return fields


def _matched(pattern: re.Pattern[str], body: str) -> Mapping[str, int | str]:
    match = pattern.search(body)
    if match is None:
        return {}
    fields = {
        key: _value(text) for key, text in match.groupdict().items() if text is not None
    }
    if "prev_state" in fields:
        state = str(fields["prev_state"])
        fields["prev_state"] = _STATES.get(state, state)
    return fields


def _value(text: str) -> int | str:
    if _DECIMAL.fullmatch(text):
        return int(text)
    if _STAMP.fullmatch(text):
        return int(text.replace(".", ""))  # seconds, with all their ns
    return int(text, 16) if _HEX.fullmatch(text) else text


def _stack_of(body: str) -> str:
    """Return the functions of a stack, innermost first."""
    lines = (line.strip() for line in body.split("\n"))
    names = (line[2:].split() for line in lines if line.startswith("=>"))
    return " < ".join(_CALLER.sub("", words[0]) for words in names if words)


@dataclass(frozen=True, slots=True, eq=False)
class TextTrace:
    """A file of lines; see `events.Trace`."""

    name: str
    data: memoryview
    rows: Sequence[Rows]
    names: Sequence[str]
    losses: Sequence[Loss]
    resolution_ns: int
    clock: str = ""
    told: tuple[str, ...] = ()
    """How the file differs from text of ftrace, in words."""
    kernel: str = ""

    def events(self, rows: Rows, chosen: NDArray[np.int64]) -> list[Event]:
        """Decode the chosen rows of a CPU."""
        return [self._event(rows, int(at)) for at in chosen]

    def numbers(
        self, rows: Rows, chosen: NDArray[np.int64], field: str
    ) -> NDArray[np.int64]:
        """Return a field that is a number of the chosen rows, all of one kind."""
        values = (self._number(rows, int(at), field) for at in chosen)
        return np.fromiter(values, np.int64, len(chosen))

    def _number(self, rows: Rows, at: int, field: str) -> int:
        """Look for `field=`; only where that is not there, take the line apart."""
        begin = int(rows.places[at]) + int(rows.sizes[at])
        printed = _pattern_of(field).match(self.data, begin)
        if printed is not None:
            return _as_int64(_number_of(printed[1]))
        return _as_int64(self._event(rows, at).fields.get(field, -1))

    def _event(self, rows: Rows, at: int) -> Event:
        match = LINE.match(self.data, int(rows.places[at]))
        assert match is not None, "the index has lines of events only"
        name = self.names[int(rows.kinds[at])]
        head = match.start("timerlat") if match["timerlat"] else match.end()
        whole = _BODY.match(self.data, head)
        body = whole[0] if whole is not None else b""
        if name == "kernel_stack" and whole is not None:
            stack = _STACK.match(self.data, whole.end())
            body += stack[0] if stack is not None else b""
        text = body.decode("utf-8", "replace").strip()
        comm = match["comm"].decode("utf-8", "replace").strip()
        flags, depth = flags_of(match["flags"])
        pid = int(match["pid"])
        pid = -1 if pid == UNKNOWN_PID else pid
        return Event(
            at_ns=int(rows.at_ns[at]),
            cpu=rows.cpu,
            name=name,
            pid=pid,
            comm={"<...>": "", "<idle>": "swapper"}.get(comm, comm),
            flags=flags,
            preempt_depth=depth,
            fields=fields_of(name, text),
        )


@cache
def _pattern_of(field: str) -> re.Pattern[bytes]:
    number = rb"=(-?\d{1,20}|0x[0-9a-f]{1,16})(?=[\s,]|\Z)"
    return re.compile(rb"[^\n]*?[ ,]" + field.encode() + number)


def _number_of(text: bytes) -> int:
    return int(text, 16) if text.startswith(b"0x") else int(text)


def _as_int64(value: int | str) -> int:
    """Return a number, or an address that was printed without 0x, of 64 bits."""
    if isinstance(value, str):
        value = int(value, 16) if _ADDRESS.fullmatch(value) else -1
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


@dataclass(slots=True)
class _Cpu:
    """The rows of a CPU while they are read."""

    at_ns: "array[int]" = field(default_factory=lambda: array("q"))
    kinds: "array[int]" = field(default_factory=lambda: array("H"))
    places: "array[int]" = field(default_factory=lambda: array("q"))
    ends: "array[int]" = field(default_factory=lambda: array("q"))
    """Of what was matched; the text of the event goes on from there."""
    lost: list[tuple[int, int | None]] = field(default_factory=list)
    """The row before which events were lost, and how many."""


def text_trace(data: memoryview, *, name: str) -> TextTrace:
    """Index text of ftrace; raise RecordError if it has no event."""
    text = ftrace_text(data, name=name)
    data = memoryview(text.content)
    cpus: dict[int, _Cpu] = {}
    kinds: dict[str, int] = {}
    known: dict[tuple[bytes | None, bool, bool], int] = {}
    units: set[int] = set()
    # Millions of lines come through here: groups by position, nothing twice.
    for match in LINE.finditer(data):
        _, _, first, second, _, seconds, fraction, us, title, lat, stack = (
            match.groups()
        )
        at_ns, unit = stamp_of(seconds, fraction, us)
        cpu = int(first or second)
        units.add(unit)
        key = title, lat is None, stack is None
        kind = known.get(key)
        if kind is None:
            event = name_of(title, lat, stack)
            kind = known[key] = kinds.setdefault(event, min(len(kinds), MAX_KINDS))
        rows = cpus.get(cpu)
        if rows is None:
            rows = cpus[cpu] = _Cpu()
        rows.at_ns.append(at_ns)
        rows.kinds.append(kind)
        rows.places.append(match.start())
        rows.ends.append(match.end())
    if len(kinds) > MAX_KINDS:
        raise RecordError(f"{name}: more kinds of events than a kernel has")
    if not cpus:
        raise RecordError(f"{name}: no line of it is an event of ftrace")
    for match in LOST.finditer(data):
        _note_loss(cpus, match)
    clock, head = _CLOCK.search(data), bytes(data[:_HEAD_BYTES])
    return TextTrace(
        name=name,
        data=data,
        rows=[_rows(cpu, rows) for cpu, rows in sorted(cpus.items())],
        names=list(kinds),
        losses=sorted(_losses(cpus), key=lambda one: one.after_ns),
        resolution_ns=min(units),
        clock=clock[1].decode() if clock else "",
        told=text.told,
        kernel=" ".join(
            one.decode("utf-8", "replace")
            for pair in _KERNEL.findall(head)
            for one in pair
        ),
    )


def _note_loss(cpus: dict[int, _Cpu], match: re.Match[bytes]) -> None:
    """Find the first event of that CPU after the line that reports a loss."""
    rows = cpus.get(int(match["cpu"]))
    if rows is None:
        return
    at = int(np.searchsorted(np.frombuffer(rows.places, np.int64), match.start()))
    count = match["lost"] or match["dropped"]
    rows.lost.append((at, int(count) if count else None))


def _rows(cpu: int, rows: _Cpu) -> Rows:
    at_ns = np.array(rows.at_ns, np.int64)
    places = np.array(rows.places, np.int64)
    # Files of several CPUs, one after another, or a clock that is not the same on all.
    order = np.argsort(at_ns, kind="stable")
    return Rows(
        cpu,
        at_ns[order],
        np.array(rows.kinds, np.uint16)[order],
        places[order],
        (np.array(rows.ends, np.int64) - places).astype(np.int32)[order],
    )


def _losses(cpus: dict[int, _Cpu]) -> Iterator[Loss]:
    for cpu, rows in cpus.items():
        for at, count in rows.lost:
            before = rows.at_ns[at] if at < len(rows.at_ns) else 1 << 62
            after = rows.at_ns[at - 1] if at else min(before, 0)
            yield Loss(cpu, after, before, count, "the trace reports it")
