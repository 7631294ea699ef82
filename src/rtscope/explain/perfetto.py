"""
Explained wake-ups as a trace for Perfetto: parts, and the calls of every CPU. Pure.

The few messages of its schema that are needed are written here by hand; the numbers
are those of perfetto_trace.proto, which never change, and a test reads the result with
Perfetto's own schema. Timestamps are the board's virtual time.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from rtscope.explain.calls import Frame, runs_of
from rtscope.explain.model import TITLES, Explanation
from rtscope.explain.names import plain
from rtscope.symbols import SymbolTable
from rtscope.trace import Section

_PACKET = 1
_TIMESTAMP, _SEQUENCE, _EVENT, _DESCRIPTOR = 8, 10, 11, 60
_UUID, _NAME, _PARENT = 1, 2, 5
_TYPE, _TRACK, _EVENT_NAME = 9, 11, 23
_BEGIN, _END, _INSTANT = 1, 2, 3
_ONE_SEQUENCE = 1
_VARINT, _BYTES = 0, 2


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """A wake-up with the path that explains it."""

    title: str
    section: Section
    explanation: Explanation
    symbols: SymbolTable
    arch: str
    shift: int
    """2^shift ns of virtual time pass with each instruction."""


def perfetto_trace(recordings: Iterable[Recording]) -> bytes:
    """Return a file that ui.perfetto.dev opens: one group of tracks per wake-up."""
    packets: list[bytes] = []
    uuid = 1
    for recording in recordings:
        cpus = np.unique(recording.section.cpus).tolist()
        packets += _tracks(recording.title, uuid, cpus)
        packets += _parts(recording, uuid + 1)
        for at, cpu in enumerate(cpus):
            packets += _calls(recording, cpu, track=uuid + 2 + at)
        uuid += 2 + len(cpus)
    return b"".join(_field(_PACKET, packet) for packet in packets)


def _tracks(title: str, uuid: int, cpus: list[int]) -> Iterator[bytes]:
    names = ["parts and causes", *(f"CPU {cpu}" for cpu in cpus)]
    yield _descriptor(
        _number(_UUID, uuid) + _field(_NAME, title.encode("utf-8", "replace"))
    )
    for at, name in enumerate(names, 1):
        track = _number(_UUID, uuid + at) + _field(_NAME, name.encode())
        yield _descriptor(track + _number(_PARENT, uuid))


def _parts(recording: Recording, track: int) -> Iterator[bytes]:
    shift, explanation = recording.shift, recording.explanation
    due = (recording.section.last << shift) - explanation.latency_ns
    yield _event(due, track, _INSTANT, "the timer is due")
    for stretch in explanation.stretches:
        part = f"{stretch.part.value} {TITLES[stretch.part]}"
        begin, end = due + stretch.begin_ns, due + stretch.end_ns
        yield _event(begin, track, _BEGIN, part)
        yield _event(begin, track, _BEGIN, f"{stretch.cause}: {stretch.name}")
        yield _event(end, track, _END)
        yield _event(end, track, _END)


def _calls(recording: Recording, cpu: int, *, track: int) -> Iterator[bytes]:
    runs = runs_of(recording.section, recording.symbols, arch=recording.arch, cpu=cpu)
    open_calls: list[Frame] = []
    for run in runs:
        now = run.begin << recording.shift
        chain = list(run.frame.chain())[::-1]
        same = _same(open_calls, chain)
        for _ in open_calls[same:]:
            yield _event(now, track, _END)
        for frame in chain[same:]:
            yield _event(now, track, _BEGIN, plain(frame.name))
        open_calls = chain
    for _ in open_calls:
        yield _event(runs[-1].end << recording.shift, track, _END)


def _same(ours: list[Frame], theirs: list[Frame]) -> int:
    """Return how many calls two stacks have in common, from the outermost."""
    pairs = zip(ours, theirs, strict=False)
    return next(
        (at for at, (a, b) in enumerate(pairs) if a is not b),
        min(len(ours), len(theirs)),
    )


def _descriptor(track: bytes) -> bytes:
    return _field(_DESCRIPTOR, track) + _number(_SEQUENCE, _ONE_SEQUENCE)


def _event(at_ns: int, track: int, kind: int, name: str = "") -> bytes:
    event = _number(_TYPE, kind) + _number(_TRACK, track)
    if name:
        event += _field(_EVENT_NAME, name.encode("utf-8", "replace"))
    return (
        _number(_TIMESTAMP, max(0, at_ns))
        + _field(_EVENT, event)
        + _number(_SEQUENCE, _ONE_SEQUENCE)
    )


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value)


def _field(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Write seven bits a byte, the lowest first; all but the last have the top bit."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
