"""
Explained wake-ups as a trace for Perfetto: parts, causes, all CPUs. Pure.

The few messages of its schema that are needed are written here by hand; the numbers
are those of perfetto_trace.proto, which never change, and a test reads the result with
Perfetto's own schema. Timestamps of a virtual board are its virtual time. Where the
whole board slept although the timer was due, the time before is set back by that: the
two do not overlap.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rtscope.exectrace.file import TraceSection
from rtscope.exectrace.symbols import SymbolTable
from rtscope.explain.events.spans import Doing, Span, spans_of
from rtscope.explain.events.threadstates import TracedWakeup
from rtscope.explain.instructions.calls import Frame, plain, runs_of
from rtscope.explain.model import TITLES, Explanation
from rtscope.ftrace.events import Window

_PACKET = 1
_TIMESTAMP, _SEQUENCE, _EVENT, _DESCRIPTOR = 8, 10, 11, 60
_UUID, _NAME, _PARENT = 1, 2, 5
_TYPE, _TRACK, _EVENT_NAME = 9, 11, 23
BEGIN, END, INSTANT = 1, 2, 3
_ONE_SEQUENCE = 1
_VARINT, _BYTES = 0, 2


def whole(packets: Iterable[bytes]) -> bytes:
    """Return the file that holds the packets."""
    return b"".join(_field(_PACKET, packet) for packet in packets)


def tracks(title: str, uuid: int, names: Sequence[str]) -> Iterator[bytes]:
    """
    Describe the tracks of a wake-up: a group, its parts, and one for each name.

    Their identities follow each other from `uuid` on, in this order.
    """
    yield _descriptor(
        _number(_UUID, uuid) + _field(_NAME, title.encode("utf-8", "replace"))
    )
    for at, name in enumerate(("parts and causes", *names), 1):
        track = _number(_UUID, uuid + at) + _field(_NAME, name.encode())
        yield _descriptor(track + _number(_PARENT, uuid))


def parts(explanation: Explanation, due_ns: int, *, track: int) -> Iterator[bytes]:
    """Return the parts of a wake-up as slices, and the causes inside of them."""
    yield event(due_ns, track, INSTANT, "timer expiry")
    for segment in explanation.segments:
        part = f"{segment.part.value} {TITLES[segment.part]}"
        begin, end = due_ns + segment.begin_ns, due_ns + segment.end_ns
        yield event(begin, track, BEGIN, part)
        yield event(begin, track, BEGIN, f"{segment.cause}: {segment.name}")
        yield event(end, track, END)
        yield event(end, track, END)


def _descriptor(track: bytes) -> bytes:
    return _field(_DESCRIPTOR, track) + _number(_SEQUENCE, _ONE_SEQUENCE)


def event(at_ns: int, track: int, kind: int, name: str = "") -> bytes:
    """Return a slice's begin or end, or an instant, on a track."""
    content = _number(_TYPE, kind) + _number(_TRACK, track)
    if name:
        content += _field(_EVENT_NAME, name.encode("utf-8", "replace"))
    return (
        _number(_TIMESTAMP, max(0, at_ns))
        + _field(_EVENT, content)
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


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """A wake-up with the path that explains it."""

    title: str
    section: TraceSection
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
        packets += tracks(recording.title, uuid, [f"CPU {cpu}" for cpu in cpus])
        explanation = recording.explanation
        packets += parts(explanation, _due_ns(recording), track=uuid + 1)
        for at, cpu in enumerate(cpus):
            packets += _calls(recording, cpu, track=uuid + 2 + at)
        uuid += 2 + len(cpus)
    return whole(packets)


def _due_ns(recording: Recording) -> int:
    end_ns = recording.section.last << recording.shift
    return end_ns - recording.explanation.latency_ns


def _calls(recording: Recording, cpu: int, *, track: int) -> Iterator[bytes]:
    runs = runs_of(recording.section, recording.symbols, arch=recording.arch, cpu=cpu)
    slept_ns = recording.explanation.slept_ns
    slept = recording.explanation.segments[0].end_ns if slept_ns else 0
    woke_ns = _due_ns(recording) + slept
    open_calls: list[Frame] = []
    for run in runs:
        now = run.begin << recording.shift
        now -= slept_ns if now < woke_ns else 0
        chain = list(run.frame.chain())[::-1]
        same = _common(open_calls, chain)
        for _ in open_calls[same:]:
            yield event(now, track, END)
        for frame in chain[same:]:
            yield event(now, track, BEGIN, plain(frame.name))
        open_calls = chain
    for _ in open_calls:
        yield event(runs[-1].end << recording.shift, track, END)


def _common(ours: list[Frame], theirs: list[Frame]) -> int:
    """Return how many calls two stacks have in common, from the outermost."""
    pairs = zip(ours, theirs, strict=False)
    return next(
        (at for at, (a, b) in enumerate(pairs) if a is not b),
        min(len(ours), len(theirs)),
    )


@dataclass(frozen=True, slots=True)
class ExplainedWindow:
    """A wake-up with the events that explain it."""

    title: str
    window: Window
    wakeup: TracedWakeup
    explanation: Explanation


def perfetto_of_events(explained: Iterable[ExplainedWindow]) -> bytes:
    """Return a file that ui.perfetto.dev opens: one group of tracks per wake-up."""
    packets: list[bytes] = []
    uuid = 1
    for one in explained:
        cpus = sorted({e.cpu for e in one.window.events})
        packets += tracks(one.title, uuid, [f"CPU {cpu}" for cpu in cpus])
        packets += parts(one.explanation, one.wakeup.expiry_ns, track=uuid + 1)
        for at, cpu in enumerate(cpus):
            packets += _slices(spans_of(one.window, cpu), uuid + 2 + at)
        uuid += 2 + len(cpus)
    return whole(packets)


def _slices(spans: Iterable[Span], track: int) -> Iterator[bytes]:
    """Return nested slices: the task, and over it interrupts and callbacks."""
    open_names: list[str] = []
    last_ns = 0
    for span in spans:
        names = _names(span)
        same = 0
        while same < min(len(names), len(open_names)):
            if names[same] != open_names[same]:
                break
            same += 1
        for _ in open_names[same:]:
            yield event(span.begin_ns, track, END)
        for name in names[same:]:
            yield event(span.begin_ns, track, BEGIN, name)
        open_names, last_ns = names, span.end_ns
    for _ in open_names:
        yield event(last_ns, track, END)


def _names(span: Span) -> list[str]:
    if span.doing is Doing.LOST:
        return ["events are missing"]
    below = span.task.label if span.frames or span.task.pid else span.name
    return [below, *(f"{frame.doing} {frame.name}" for frame in span.frames)]
