"""The trace for Perfetto, read back by hand and, where it is there, by its schema."""

from collections.abc import Sequence
from typing import Any

import pytest

from fakes.events import (
    DUE,
    IRQ,
    LOADING,
    THREAD,
    asleep,
    event,
    switch,
    thread,
    window,
    woken,
)
from fakes.paths import ASLEEP, Step, section, symbols
from rtscope.explain.activity import ExplainedWindow, Recording, perfetto_trace
from rtscope.explain.events.explain import explain_events
from rtscope.explain.events.threadstates import MachineTraits, TracedWakeup
from rtscope.explain.instructions.explain import explain_path

TABLE = symbols("zap", "free_pages", "do_irq", "hrtimer_interrupt")
STEPS: list[Step] = [
    (100, "zap"),
    (200, "free_pages"),
    (300, "zap", 1),
    (50, "zap+"),
    (50, "free_pages"),
]


def recording(steps: Sequence[Step] = STEPS, *, late: int = 400) -> Recording:
    found = section(steps, TABLE, late=late, flags=((0, 0),))
    return Recording(
        title="001-memory, worst wake-up 1",
        section=found,
        explanation=explain_path(found, TABLE, arch="riscv64"),
        symbols=TABLE,
        arch="riscv64",
    )


def varint(data: bytes, at: int) -> tuple[int, int]:
    value, bits = 0, 0
    while True:
        value |= (data[at] & 0x7F) << bits
        at, bits = at + 1, bits + 7
        if not data[at - 1] & 0x80:
            return value, at


def fields(data: bytes) -> dict[int, Any]:
    """Read a message whose fields come once each, as protobuf writes them."""
    found: dict[int, Any] = {}
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            found[key >> 3], at = data[at : at + value], at + value
        else:
            found[key >> 3] = value
    return found


def packets(data: bytes) -> list[dict[int, Any]]:
    found, at = [], 0
    while at < len(data):
        assert data[at] == 0x0A
        length, at = varint(data, at + 1)
        found.append(fields(data[at : at + length]))
        at += length
    return found


def slices(data: bytes, track: int) -> list[tuple[int, int, str]]:
    """Return begin, end and name of the slices of a track, in the order of begins."""
    found: list[tuple[int, int, str]] = []
    stack: list[tuple[int, int, str]] = []
    for packet in packets(data):
        event = fields(packet[11]) if 11 in packet else {}
        if event.get(11) != track or event[9] == 3:
            continue
        if event[9] == 1:
            stack.append((len(found), packet[8], event[23].decode()))
            found.append((0, 0, ""))
        else:
            at, begin, name = stack.pop()
            found[at] = (begin, packet[8], name)
    assert not stack
    return found


def test_calls_are_nested_slices_at_virtual_time_on_the_track_of_their_cpu() -> None:
    data = perfetto_trace([recording()])

    assert slices(data, 3) == [
        (0, 700, "zap"),
        (100, 600, "free_pages"),
        (650, 700, "free_pages"),
    ]
    assert slices(data, 4) == [(300, 700, "zap")]


def test_callers_from_before_the_path_are_slices_from_its_begin_on() -> None:
    data = perfetto_trace([recording([(10, "free_pages+"), (10, "zap+")], late=4)])

    assert slices(data, 3) == [(0, 20, "zap"), (0, 10, "free_pages")]


def test_tracks_have_names_and_belong_to_their_wake_up() -> None:
    tracks = [fields(p[60]) for p in packets(perfetto_trace([recording()])) if 60 in p]

    assert [(t[1], t[2].decode(), t.get(5)) for t in tracks] == [
        (1, "001-memory, worst wake-up 1", None),
        (2, "parts and causes", 1),
        (3, "CPU 0", 1),
        (4, "CPU 1", 1),
    ]


def test_a_cpu_that_sleeps_stays_in_the_call_in_which_it_does() -> None:
    steps: list[Step] = [(100, "do_irq"), (500, ASLEEP), (50, "do_irq+")]
    data = perfetto_trace([recording([*steps, (50, "zap")], late=400)])

    assert slices(data, 3) == [(0, 700, "do_irq"), (650, 700, "zap")]
    assert min(begin for begin, _, _ in slices(data, 2)) == 300


def test_parts_cover_the_latency_from_the_expiry_on() -> None:
    found = slices(perfetto_trace([recording()]), 2)

    assert found[0][0] == 700 - 400
    assert max(end for _, end, _ in found) == 700
    assert found[0][2] == "A before the interrupt"


def test_two_wake_ups_have_tracks_of_their_own() -> None:
    data = perfetto_trace([recording(), recording()])
    uuids = [fields(p[60])[1] for p in packets(data) if 60 in p]

    assert uuids == [1, 2, 3, 4, 5, 6, 7, 8]


def of_events() -> bytes:
    storm = [
        event(100_000, "local_timer_entry", flags=IRQ, vector=236),
        event(101_000, "hrtimer_expire_entry", flags=IRQ, function="a_timer"),
        event(103_000, "hrtimer_expire_exit", flags=IRQ),
        event(104_000, "local_timer_exit", flags=IRQ, vector=236),
    ]
    milestones = [*asleep(), *woken(1_000), *storm, switch(200_000, LOADING, thread())]
    wakeup = TracedWakeup(THREAD, "rtscope/0", 0, DUE, DUE + 201_000, 1)
    seen = window(milestones)
    found = explain_events(seen, wakeup, machine=MachineTraits())
    return perfetto_trace([ExplainedWindow("001-os, worst", seen, wakeup, found)])


def test_events_are_nested_slices_of_what_the_cpu_did() -> None:
    found = slices(of_events(), 3)

    assert (DUE - 180_000, DUE + 200_000, "load") in found
    assert (DUE + 100_000, DUE + 104_000, "interrupt local_timer") in found
    assert (DUE + 101_000, DUE + 103_000, "callback a_timer") in found
    parts = slices(of_events(), 2)
    assert (parts[0][0], max(end for _, end, _ in parts)) == (DUE, DUE + 201_000)


@pytest.mark.parametrize("content", [perfetto_trace([recording()]), of_events()])
def test_perfettos_own_schema_reads_every_packet(content: bytes) -> None:
    schema = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    unknown = pytest.importorskip("google.protobuf.unknown_fields")
    trace = schema.Trace()
    trace.ParseFromString(content)

    events = [p.track_event for p in trace.packet if p.HasField("track_event")]
    begins = [e for e in events if e.type == schema.TrackEvent.TYPE_SLICE_BEGIN]
    ends = [e for e in events if e.type == schema.TrackEvent.TYPE_SLICE_END]
    assert len(begins) == len(ends)
    assert {e.name for e in begins} & {"free_pages", "interrupt local_timer"}
    messages = [*trace.packet, *events]
    assert not any(len(unknown.UnknownFieldSet(m)) for m in messages)
