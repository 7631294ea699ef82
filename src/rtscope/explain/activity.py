"""
What every CPU did around a wake-up: what was open at each time; for Perfetto. Pure.

On a virtual board that is the task and its calls; on a machine the task, and over it
the interrupts and callbacks that the kernel's events tell of.

The few messages of its schema that are needed are written here by hand; the numbers
are those of perfetto_trace.proto, which never change, and a test reads the result with
Perfetto's own schema. Timestamps of a virtual board are its virtual time. Where the
whole board slept although the timer was due, the time before is set back by that: the
two do not overlap.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from rtscope.explain.events.histories import Histories, histories_of
from rtscope.explain.events.spans import Doing, Span, spans_of
from rtscope.explain.events.threadstates import TracedWakeup
from rtscope.explain.instructions.absences import tasks_of
from rtscope.explain.instructions.calls import plain, runs_of
from rtscope.explain.model import Explanation
from rtscope.record.events.events import Window
from rtscope.record.instructions.section import (
    TraceSection,
    blocks_of,
    cpus_of,
    task_switches,
)
from rtscope.record.instructions.symbols import SymbolTable

Open = tuple[object, str]
"""What makes something open the same as before, and its name."""
States = Iterator[tuple[int, Sequence[Open]]]
"""From each time on, what is open on a CPU, outermost first; at the end nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """A wake-up with the path that explains it."""

    title: str
    section: TraceSection
    explanation: Explanation
    symbols: SymbolTable
    arch: str


@dataclass(frozen=True, slots=True)
class ExplainedWindow:
    """A wake-up with the events that explain it."""

    title: str
    window: Window
    wakeup: TracedWakeup
    explanation: Explanation


def activity_of(one: Recording | ExplainedWindow) -> tuple[int, Mapping[int, States]]:
    """Return when the timer was due, in ns of the recording, and what each CPU did."""
    if isinstance(one, Recording):
        cpus = cpus_of(one.section.cpus)
        explanation = one.explanation
        read_ns = one.section.last_ns - explanation.unread_ns
        due_ns = read_ns - explanation.latency_ns
        return due_ns, {cpu: _calls(one, cpu) for cpu in cpus}
    cpus = sorted({event.cpu for event in one.window.events})
    facts = histories_of(one.window)
    return one.wakeup.expiry_ns, {cpu: _tasks(one.window, cpu, facts) for cpu in cpus}


def common(before: Sequence[Open], after: Sequence[Open]) -> int:
    """Return how many of what was open, from the outermost on, still is."""
    pairs = zip(before, after, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _calls(recording: Recording, cpu: int) -> States:
    end_ns = 0
    section, symbols, arch = recording.section, recording.symbols, recording.arch
    runs = runs_of(blocks_of(section, cpu), symbols, arch=arch)
    names = tasks_of(cpu, task_switches(section), runs).names or [""] * len(runs)
    for run, task in zip(runs, names, strict=True):
        below: list[Open] = [(task, task)] if task else []
        calls = [(f, plain(f.name)) for f in run.frame.chain()]
        yield run.begin_ns, [*below, *calls[::-1]]
        end_ns = run.end_ns
    yield end_ns, ()


def _tasks(window: Window, cpu: int, facts: Histories) -> States:
    """Return the task of a CPU, and over it interrupts and callbacks."""
    end_ns = 0
    for span in spans_of(window, cpu, facts):
        yield span.begin_ns, [(name, name) for name in _names(span)]
        end_ns = span.end_ns
    yield end_ns, ()


def _names(span: Span) -> list[str]:
    if span.doing is Doing.LOST:
        return ["events are missing"]
    below = span.task.label if span.frames or span.task.pid else span.name
    return [below, *(f"{frame.doing} {frame.name}" for frame in span.frames)]


# --- explained wake-ups as a trace for Perfetto: parts, causes, all CPUs --------------

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
    yield event(due_ns, track, INSTANT, explanation.since)
    for segment in explanation.segments:
        part = f"{segment.part.value} {explanation.titles[segment.part]}"
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


def nested(states: States, track: int) -> Iterator[bytes]:
    """
    Return nested slices on a track; the last state may have nothing open.

    A slice goes on as long as it and all around it are the same.
    """
    opened: Sequence[Open] = ()
    for at_ns, calls in states:
        same = common(opened, calls)
        for _ in opened[same:]:
            yield event(at_ns, track, END)
        for _, name in calls[same:]:
            yield event(at_ns, track, BEGIN, name)
        opened = calls


def perfetto_trace(wakeups: Iterable[Recording | ExplainedWindow]) -> bytes:
    """Return a file that ui.perfetto.dev opens: one group of tracks per wake-up."""
    packets: list[bytes] = []
    uuid = 1
    for one in wakeups:
        due_ns, activity = activity_of(one)
        packets += tracks(one.title, uuid, [f"CPU {cpu}" for cpu in activity])
        packets += parts(one.explanation, due_ns, track=uuid + 1)
        for track, states in enumerate(activity.values(), uuid + 2):
            packets += nested(states, track)
        uuid += 2 + len(activity)
    return whole(packets)
