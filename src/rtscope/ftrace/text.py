"""
Text of ftrace as a trace: every line is stamped once, few are taken apart.

Lines that are no events are counted; a file without any event is refused.
"""

import mmap
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rtscope.errors import RecordError
from rtscope.ftrace.events import Event, Loss, Rows
from rtscope.ftrace.lines import LINE, LOST, flags_of, name_of, stamp_of
from rtscope.ftrace.wording import fields_of

MAX_KINDS = 20_000
_CLOCK = re.compile(rb"^#?[ \t]{0,8}clock: (\w{1,20})", re.MULTILINE)
_ADDRESS = re.compile(r"[0-9a-f]{8,16}")
_BODY = re.compile(rb"[^\n]{0,4000}\n?")
"""Longer than any line of the kernel."""
_STACK = re.compile(rb"(?:[ \t]*=> [^\n]*\n?){0,128}")


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

    def events(self, rows: Rows, chosen: NDArray[np.int64]) -> list[Event]:
        """Decode the chosen rows of a CPU."""
        return [self._event(rows, int(at)) for at in chosen]

    def numbers(
        self, rows: Rows, chosen: NDArray[np.int64], field: str
    ) -> NDArray[np.int64]:
        """Return a field that is a number of the chosen rows, all of one kind."""
        found = (self._number(rows, int(at), field) for at in chosen)
        return np.fromiter(found, np.int64, len(chosen))

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


def open_text(path: Path) -> TextTrace:
    """Open text of ftrace; raise RecordError if it has no event."""
    try:
        with path.open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise RecordError(f"cannot read {path}: {error}") from error
    return text_trace(data, name=str(path))


def text_trace(data: memoryview, *, name: str) -> TextTrace:
    """Index text of ftrace; raise RecordError if it has no event."""
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
        raise RecordError(
            f"{name}: neither a trace.dat file nor text of ftrace: no line has a task, "
            "a CPU in brackets, a time and an event"
        )
    for match in LOST.finditer(data):
        _note_loss(cpus, match)
    clock = _CLOCK.search(data)
    return TextTrace(
        name=name,
        data=data,
        rows=[_rows(cpu, rows) for cpu, rows in sorted(cpus.items())],
        names=list(kinds),
        losses=sorted(_losses(cpus), key=lambda one: one.after_ns),
        resolution_ns=min(units),
        clock=clock[1].decode() if clock else "",
    )


def _note_loss(cpus: dict[int, _Cpu], match: re.Match[bytes]) -> None:
    """Find the first event of that CPU after the line that tells of a loss."""
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
            yield Loss(cpu, after, before, count, "the trace says so itself")
