"""
A trace.dat file as a trace: an index of all its events, of which few are decoded.

The file is mapped, not read: of a trace of hundreds of megabytes only the headers of
events are touched, and the pages of the window that matters. Names of addresses are of
the kallsyms that the file carries.
"""

import mmap
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rtscope.host.errors import RecordError, UsageError
from rtscope.host.files.opening import is_there, open_named
from rtscope.record.events.datfile import (
    MAGIC,
    Extent,
    Field,
    Format,
    Head,
    Order,
    parse_head,
)
from rtscope.record.events.events import Event, Flag, Loss, Rows, Trace
from rtscope.record.events.forms import unpacked_trace
from rtscope.record.events.pages import Decoded, decode_pages
from rtscope.record.events.text import text_trace

_SYMBOL = re.compile(rb"^[ \t]*([0-9a-fA-F]+)[ \t]+[tTwW]\S*[ \t]+(\S+)", re.MULTILINE)
UNKNOWN = "(unknown)"
FOREVER_NS = 1 << 62
"""The end of a loss that has none."""
_FUNCTIONS = frozenset({"function", "func", "handler"})
_OFFSETS = {"caller_offs": "caller", "parent_offs": "parent"}
_MAX_STACK = 128
MAX_TRACE_BYTES = 64 << 30
"""It is mapped, not read; a trace is not longer than a disk of a board."""


@dataclass(frozen=True)
class KernelSymbols:
    """Functions of the kernel that was traced; parsed when first asked for."""

    content: bytes
    """`/proc/kallsyms` as it was read; its addresses may be hidden: all zero."""

    @cached_property
    def _table(self) -> tuple[list[int], list[str]]:
        names: dict[int, str] = {}
        for address, name in _SYMBOL.findall(self.content):
            names.setdefault(int(address, 16), name.decode("ascii", "replace"))
        names.pop(0, None)
        addresses = sorted(names)
        return addresses, [names[address] for address in addresses]

    @cached_property
    def begin(self) -> int | None:
        """The address of `_stext`, which offsets in events count from."""
        addresses, names = self._table
        return addresses[names.index("_stext")] if "_stext" in names else None

    def name(self, address: int) -> str:
        """Return the function an address lies in; the address itself if unknown."""
        addresses, names = self._table
        at = bisect_right(addresses, address) - 1
        return names[at] if at >= 0 else f"{address:#x}"


@dataclass(frozen=True, slots=True, eq=False)
class DatTrace:
    """A trace.dat file; see `events.Trace`."""

    name: str
    head: Head
    data: memoryview
    symbols: KernelSymbols
    rows: Sequence[Rows]
    names: Sequence[str]
    formats: Sequence[Format | None]
    """Of each kind of event; names may come twice, in two systems."""
    losses: Sequence[Loss]
    resolution_ns: int = 1
    told: Sequence[str] = ()

    @property
    def clock(self) -> str:
        """The trace clock that the file names."""
        return self.head.clock

    @property
    def kernel(self) -> str:
        """The kernel that the file names."""
        return self.head.kernel

    def events(self, rows: Rows, chosen: NDArray[np.int64]) -> list[Event]:
        """Decode the chosen rows of a CPU."""
        return [self._event(rows, int(at)) for at in chosen]

    def numbers(
        self, rows: Rows, chosen: NDArray[np.int64], field: str
    ) -> NDArray[np.int64]:
        """Return a field that is a number of the chosen rows, all of one kind."""
        if len(chosen) == 0:
            return np.empty(0, np.int64)
        kind = int(rows.kinds[chosen[0]])
        known = self.formats[kind]
        if known is None or field not in known.fields:
            raise RecordError(
                f"{self.name}: its {self.names[kind]} events have no field {field}"
            )
        layout = known.fields[field]
        fits = rows.sizes[chosen] >= layout.offset + layout.size
        places = np.where(fits, rows.places[chosen] + layout.offset, 0)
        values = _gather(self.data, places, layout, self.head.order)
        return np.where(fits, values, 0)

    def _event(self, rows: Rows, at: int) -> Event:
        place, size = int(rows.places[at]), int(rows.sizes[at])
        payload = bytes(self.data[place : place + size])
        kind = int(rows.kinds[at])
        layout = self.formats[kind]
        fields = {} if layout is None else self._fields(payload, layout)
        pid = _int(fields.pop("common_pid", -1))
        flags = _int(fields.pop("common_flags", 0))
        depth = _int(fields.pop("common_preempt_count", 0)) & 0xF
        fields.pop("common_type", None)
        return Event(
            at_ns=int(rows.at_ns[at]),
            cpu=rows.cpu,
            name=self.names[kind],
            pid=pid,
            comm=self.head.cmdlines.get(pid, "" if pid else "swapper"),
            flags=Flag(flags & 0xFF),
            preempt_depth=depth,
            fields=fields,
        )

    def _fields(self, payload: bytes, layout: Format) -> dict[str, int | str]:
        fields: dict[str, int | str] = {}
        for field in layout.fields.values():
            fields[field.name] = self._value(payload, field)
        for name in _FUNCTIONS & fields.keys():
            fields[name] = self.symbols.name(_int(fields[name]))
        for offset, name in _OFFSETS.items():
            if offset in fields and self.symbols.begin is not None:
                address = self.symbols.begin + _int(fields[offset])
                fields[name] = self.symbols.name(address)
        if layout.flags and "prev_state" in fields:
            fields["prev_state"] = _state(_int(fields["prev_state"]), layout.flags)
        if layout.name == "kernel_stack" and "caller" in layout.fields:
            fields["stack"] = self._stack(payload, layout.fields["caller"])
        return fields

    def _value(self, payload: bytes, field: Field) -> int | str:
        if field.text:
            return _string(payload, field, self.head.order)
        piece = payload[field.offset : field.offset + field.size]
        if field.size > 8:
            return 0  # an array of numbers; none is needed but that of a stack
        return int.from_bytes(piece, self.head.order, signed=field.signed)

    def _stack(self, payload: bytes, field: Field) -> str:
        size = self.head.layout.commit_size  # the kernel's long
        words = payload[field.offset :][: _MAX_STACK * size]
        addresses = [
            int.from_bytes(words[at : at + size], self.head.order)
            for at in range(0, len(words) - size + 1, size)
        ]
        end = (1 << 8 * size) - 1
        return " < ".join(
            self.symbols.name(one) for one in addresses if one not in (0, end)
        )


def dat_trace(data: memoryview, *, name: str) -> DatTrace:
    """Index a trace.dat file; raise RecordError if it is none, or damaged."""
    head = parse_head(data, name=name)
    if head.text_at is not None:
        raise RecordError(
            f"{name}: holds text, not pages; write it out: "
            f"trace-cmd report {name} > trace.txt"
        )
    _refuse_overlap(head.extents, name)
    formats = [None, *head.formats.values()]
    names = [UNKNOWN if one is None else one.name for one in formats]
    numbers = np.zeros(1 << 16, np.uint16)
    for at, one in enumerate(head.formats.values(), 1):
        numbers[one.id & 0xFFFF] = at
    rows: list[Rows] = []
    losses: list[Loss] = []
    for extent in head.extents:
        of_cpu, lost = _rows_of(data, extent, head, numbers)
        losses += lost
        if len(of_cpu.at_ns):
            rows.append(of_cpu)
    if not rows:
        raise RecordError(f"{name}: no event in it")
    losses.sort(key=lambda one: one.after_ns)
    return DatTrace(
        name=name,
        head=head,
        data=data,
        symbols=KernelSymbols(head.kallsyms),
        rows=rows,
        names=names,
        formats=formats,
        losses=tuple(losses),
    )


def _refuse_overlap(extents: Sequence[Extent], name: str) -> None:
    end = 0
    for extent in sorted(extents, key=lambda one: one.offset):
        if extent.size and extent.offset < end:
            raise RecordError(
                f"{name}: damaged: the events of CPU {extent.cpu} lie over another's"
            )
        end = max(end, extent.offset + extent.size)


def _rows_of(
    data: memoryview, extent: Extent, head: Head, numbers: NDArray[np.uint16]
) -> tuple[Rows, list[Loss]]:
    """Index the pages of a CPU; what cannot be read is a loss."""
    content = data[extent.offset : extent.offset + extent.size]
    decoded = decode_pages(content, head.layout, big_endian=head.order == "big")
    good = _in_order(decoded)
    kept = good[decoded.pages]
    places = decoded.places[kept] + extent.offset
    common = Field("common_type", 0, 2, False, False, False, False)
    types = _gather(data, places, common, head.order)
    rows = Rows(
        extent.cpu, decoded.at_ns[kept], numbers[types], places, decoded.sizes[kept]
    )
    pages = decoded.pages[kept]
    losses = list(_losses(extent.cpu, rows, pages, decoded, good))
    if len(content) < extent.size:
        missing = extent.size - len(content)
        why = f"the file ends {missing} bytes before it should"
        last = int(rows.at_ns[-1]) if len(rows.at_ns) else 0
        losses.append(Loss(extent.cpu, last, FOREVER_NS, None, why))
    return rows, losses


def _in_order(decoded: Decoded) -> NDArray[np.bool_]:
    """
    Return which pages can be believed: the time goes on in them, and from one to next.

    Of two that contradict each other, the one that the next page contradicts goes.
    """
    good = np.ones(len(decoded.damaged), np.bool_)
    backward = np.flatnonzero(np.diff(decoded.at_ns) < 0)
    if len(backward) == 0:
        return good
    inside = decoded.pages[backward] == decoded.pages[backward + 1]
    good[decoded.pages[backward[inside]]] = False
    used, first = np.unique(decoded.pages, return_index=True)
    last = np.append(first[1:], len(decoded.at_ns)) - 1
    begins = decoded.at_ns[first].tolist()
    ends = decoded.at_ns[last].tolist()
    kept: list[int] = []
    candidates = [at for at in range(len(used)) if good[used[at]]]
    for at, following in zip(candidates, (*candidates[1:], None), strict=True):
        while kept and begins[at] < ends[kept[-1]]:
            if following is not None:
                too_early = begins[following] >= ends[kept[-1]]
            else:  # nothing comes after: it goes, if it contradicts more than one
                too_early = len(kept) < 2 or begins[at] < ends[kept[-2]]
            if too_early:
                break
            good[used[kept.pop()]] = False
        if kept and begins[at] < ends[kept[-1]]:
            good[used[at]] = False
        else:
            kept.append(at)
    return good


def _losses(
    cpu: int,
    rows: Rows,
    pages: NDArray[np.int64],
    decoded: Decoded,
    good: NDArray[np.bool_],
) -> Iterator[Loss]:
    for page in np.flatnonzero(decoded.missed):
        count = int(decoded.missed_count[page])
        lost = count if count >= 0 else None
        at = int(np.searchsorted(pages, page, "left"))
        yield _loss(cpu, rows, at, lost, "the ring buffer was full, or pages left out")
    for page in np.flatnonzero(decoded.damaged | ~good):
        at = int(np.searchsorted(pages, page, "right"))
        yield _loss(cpu, rows, at, None, "a page of the file is damaged")


def _loss(cpu: int, rows: Rows, at: int, count: int | None, reason: str) -> Loss:
    """Return a loss between two rows."""
    before = int(rows.at_ns[at]) if at < len(rows.at_ns) else FOREVER_NS
    after = int(rows.at_ns[at - 1]) if at else min(before, 0)
    return Loss(cpu, after, before, count, reason)


_SHIFTS = {2: 1, 4: 2}
"""Of the sizes of nearly all numbers; a shift is faster than a division."""


def _gather(
    data: memoryview, places: NDArray[np.int64], field: Field, order: str
) -> NDArray[np.int64]:
    """Return a number at each of many places of a file."""
    size = field.size
    if size in _SHIFTS and not int(np.bitwise_or.reduce(places)) & (size - 1):
        # As nearly all: they are read at once, not byte by byte.
        letter = "i" if field.signed else "u"
        kind = f"{'<' if order == 'little' else '>'}{letter}{size}"
        words = np.frombuffer(data[: len(data) // size * size], kind)
        numbers: NDArray[np.int64] = words[places >> _SHIFTS[size]].astype(np.int64)
        return numbers
    content = np.frombuffer(data, np.uint8)
    values = np.zeros(len(places), np.int64)
    for at in range(min(field.size, 8)):
        shift = 8 * (at if order == "little" else field.size - 1 - at)
        values |= content[places + at].astype(np.int64) << shift
    bits = 8 * field.size
    if field.signed and bits < 64:
        values = np.where(values >> (bits - 1) & 1, values - (1 << bits), values)
    return values


def _string(payload: bytes, field: Field, order: Order) -> str:
    piece = payload[field.offset : field.offset + field.size]
    if field.located or field.relative:
        word = int.from_bytes(piece[:4], order)
        begin = (word & 0xFFFF) + (field.offset + field.size) * field.relative
        piece = payload[begin : begin + (word >> 16)]
    elif field.size == 0:
        piece = payload[field.offset :]
    return piece.partition(b"\0")[0].decode("utf-8", "replace")


def _state(value: int, letters: Mapping[int, str]) -> str:
    """Return a task's state as the kernel prints it: `S`, `D`, `R`, `R+`."""
    known = "|".join(letter for bit, letter in letters.items() if value & bit)
    preempted = value & (max(letters) << 1)
    return (known or "R") + ("+" if preempted else "")


def _int(value: int | str) -> int:
    return value if isinstance(value, int) else 0


def open_trace(path: Path) -> Trace:
    """
    Open a trace.dat file, or text of ftrace.

    Raises UsageError if there is none, RecordError for what cannot be read.
    """
    if not is_there(path):
        raise UsageError(f"{path}: no such file")
    try:
        with open_named(path, kind="trace", limit=MAX_TRACE_BYTES) as file:
            if not file.read(1):
                raise RecordError(f"{path}: empty")
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise RecordError(f"cannot read {path}: {why}") from error
    if data[: len(MAGIC)] != MAGIC:
        data = unpacked_trace(data, name=str(path))
    form = dat_trace if data[: len(MAGIC)] == MAGIC else text_trace
    return form(data, name=str(path))
