"""
Events as a trace of the Common Trace Format 1.8: for babeltrace2 and Trace Compass.

Pure. A trace is a folder with `metadata`, which describes every kind of event, and a
stream for each CPU. Numbers are 64 bits, names and texts are UTF-8, times are ns of
the trace's own clock.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rtscope.record.events.events import Event, Trace

METADATA = "metadata"
MAGIC = 0xC1FC1FC1
CHUNK = 50_000
"""Events that are decoded at once."""

Layout = tuple[str, tuple[tuple[str, bool], ...]]
"""The name of an event, and its fields: each by name, and whether it is text."""


@dataclass(slots=True)
class CtfTrace:
    """A trace that is written event after event, each CPU's in the order of time."""

    clock: str = "monotonic"
    kinds: dict[Layout, int] = field(default_factory=dict)
    streams: dict[int, list[bytes]] = field(default_factory=dict)
    spans: dict[int, tuple[int, int]] = field(default_factory=dict)
    lost: dict[int, int] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        """Add an event of a CPU."""
        shown = {"comm": event.comm, "pid": event.pid, **event.fields}
        layout = tuple((name, isinstance(value, str)) for name, value in shown.items())
        kind = self.kinds.setdefault((event.name, layout), len(self.kinds))
        body = b"".join(map(_packed, shown.values()))
        head = struct.pack("<IQ", kind, event.at_ns & 0xFFFF_FFFF_FFFF_FFFF)
        self.streams.setdefault(event.cpu, []).append(head + body)
        begin_ns, _ = self.spans.get(event.cpu, (event.at_ns, 0))
        self.spans[event.cpu] = begin_ns, event.at_ns

    def files(self) -> dict[str, bytes]:
        """Return the files of the folder, by name; the metadata are the last."""
        made = {f"cpu{cpu}": self._stream(cpu) for cpu in sorted(self.streams)}
        return {**made, METADATA: self._metadata().encode()}

    def _stream(self, cpu: int) -> bytes:
        content = b"".join(self.streams[cpu])
        bits = 8 * (len(content) + _HEAD_BYTES)
        begin_ns, end_ns = self.spans[cpu]
        lost = self.lost.get(cpu, 0)
        head = struct.pack(_HEAD, MAGIC, 0, begin_ns, end_ns, bits, bits, lost, cpu)
        return head + content

    def _metadata(self) -> str:
        return _METADATA.format(clock=_quoted(self.clock)) + "".join(
            _described(number, *layout) for layout, number in self.kinds.items()
        )


def ctf_of_trace(trace: Trace) -> CtfTrace:
    """Return all events of a trace, with the number of those that were lost."""
    made = CtfTrace(trace.clock or "unknown")
    for rows in trace.rows:
        for first in range(0, len(rows.at_ns), CHUNK):
            last = min(first + CHUNK, len(rows.at_ns))
            for event in trace.events(rows, np.arange(first, last)):
                made.add(event)
    for loss in trace.losses:
        made.lost[loss.cpu] = made.lost.get(loss.cpu, 0) + (loss.count or 0)
    return made


def ctf_of_calls(calls: Iterable[tuple[int, int, int, str]]) -> CtfTrace:
    """
    Return what CPUs of a board executed: CPU, begin, end in ns, and name of each call.

    Each is an event `func_entry` and an event `func_exit`; of two at one time the end
    comes first, but its own beginning, and of two beginnings that of the longer call.
    """
    edges: list[tuple[int, int, int, int, str]] = []
    for cpu, begin_ns, end_ns, name in calls:
        edges.append((cpu, begin_ns, 1, begin_ns - end_ns, name))
        edges.append((cpu, end_ns, 2 * (begin_ns == end_ns), begin_ns - end_ns, name))
    made = CtfTrace("virtual")
    for cpu, at_ns, turn, _, name in sorted(edges):
        kind = "func_entry" if turn == 1 else "func_exit"
        made.add(Event(at_ns, cpu, kind, 0, "", None, None, {"name": name}))
    return made


_HEAD = "<IIQQQQQI"
_HEAD_BYTES = struct.calcsize(_HEAD)


def _packed(value: int | str) -> bytes:
    if isinstance(value, str):
        return value.replace("\0", "").encode("utf-8", "replace") + b"\0"
    return struct.pack("<Q", value & 0xFFFF_FFFF_FFFF_FFFF)


def _described(number: int, name: str, fields: Sequence[tuple[str, bool]]) -> str:
    members = "".join(f"    {line}\n" for line in _members(fields))
    return (
        f'event {{ name = "{_quoted(name)}"; id = {number}; stream_id = 0;\n'
        f"  fields := struct {{\n{members}  }};\n}};\n"
    )


def _members(fields: Sequence[tuple[str, bool]]) -> Iterator[str]:
    """Yield the members; an underscore before a name keeps it from being a keyword."""
    seen: Mapping[str, int] = {}
    for name, is_text in fields:
        word = "".join(c if c.isascii() and c.isalnum() else "_" for c in name)
        number = seen.get(word, 0)
        seen = {**seen, word: number + 1}
        kind = "string" if is_text else "int64_t"
        yield f"{kind} _{word}{f'_{number}' if number else ''};"


def _quoted(text: str) -> str:
    return "".join(c if c.isprintable() and c not in '"\\' else "?" for c in text)


_METADATA = """/* CTF 1.8 */
typealias integer {{ size = 32; align = 8; signed = false; }} := uint32_t;
typealias integer {{ size = 64; align = 8; signed = false; }} := uint64_t;
typealias integer {{ size = 64; align = 8; signed = true; }} := int64_t;
trace {{ major = 1; minor = 8; byte_order = le;
  packet.header := struct {{ uint32_t magic; uint32_t stream_id; }};
}};
env {{ domain = "kernel"; tracer_name = "rtscope"; trace_clock = "{clock}"; }};
clock {{ name = rtscope; description = "{clock}"; freq = 1000000000; offset = 0; }};
typealias integer {{ size = 64; align = 8; signed = false;
  map = clock.rtscope.value; }} := instant_t;
stream {{ id = 0;
  packet.context := struct {{ instant_t timestamp_begin; instant_t timestamp_end;
    uint64_t content_size; uint64_t packet_size; uint64_t events_discarded;
    uint32_t cpu_id; }};
  event.header := struct {{ uint32_t id; instant_t timestamp; }};
}};
"""
