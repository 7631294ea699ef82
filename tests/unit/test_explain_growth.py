"""Twice as many events take twice as many steps to explain, not four times as many."""

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import pytest

from fakes.events import (
    ASKED,
    FIFO_50,
    FIFO_80,
    IDLE,
    IRQ,
    KNOWN,
    LOADING,
    OTHER,
    THREAD,
    asleep,
    event,
    explained,
    ran,
    switch,
    thread,
    woken,
)
from rtscope.explain.events.eventlists import EventList, is_behind
from rtscope.explain.model import Broken, Covered, Invariant
from rtscope.record.events.events import Event, Flag

APART_NS = 1_500
HIGH = (OTHER, "high", FIFO_80)


def interrupts(
    number: int, *, depth: int = 0, pid: int = LOADING[0], flags: Flag = IRQ | ASKED
) -> Iterator[Event]:
    for at in range(10_000, 10_000 + number * APART_NS, APART_NS):
        for after, name in ((0, "irq_handler_entry"), (300, "irq_handler_exit")):
            one: dict[str, int | str] = {"irq": 5, "name": "eth0"}
            yield Event(
                *(1_000_000 + at + after, 0, name, pid, "load", flags, depth, one)
            )


def kept(number: int, *, depth: int = 0) -> list[Event]:
    """A task keeps the CPU of a ready thread."""
    end = 20_000 + number * APART_NS
    return [*asleep(), *woken(1_000), *interrupts(number, depth=depth), ran(end)]


def early(number: int) -> list[Event]:
    """Other interrupts come before the one of the timer."""
    end = 20_000 + number * APART_NS
    return [
        *asleep(),
        *interrupts(number, flags=IRQ),
        *woken(end - 10_000),
        ran(end),
    ]


def back(number: int) -> list[Event]:
    """The thread runs, and interrupts come before its own code."""
    return [*asleep(), *woken(1_000), ran(7_000), *interrupts(number, pid=THREAD)]


def preempted(number: int) -> list[Event]:
    """A more urgent task takes the CPU from the thread again and again."""
    events = [
        *asleep(priority=FIFO_50),
        *woken(1_000, priority=FIFO_50),
        switch(8_000, LOADING, thread(FIFO_50)),
    ]
    for at in range(10_000, 10_000 + number * APART_NS, APART_NS):
        events.append(switch(at, thread(FIFO_50), HIGH))
        events.append(switch(at + 700, HIGH, thread(FIFO_50), state="S"))
    return events


def throttled(number: int) -> list[Event]:
    """The CPU is idle beside a ready thread, and leaves idle for interrupts."""
    end = 20_000 + number * APART_NS
    return [
        *asleep(priority=FIFO_50),
        *woken(1_000, priority=FIFO_50),
        switch(8_000, LOADING, IDLE),
        *interrupts(number, pid=0),
        switch(end, IDLE, thread(FIFO_50)),
    ]


def lent(number: int) -> list[Event]:
    """A task is lent a priority, and loses it again."""
    events = kept(number)
    for at in range(10_500, 10_500 + number * APART_NS, APART_NS):
        old, new = (120, FIFO_80) if at // APART_NS % 2 else (FIFO_80, 120)
        fields = {"pid": LOADING[0], "oldprio": old, "newprio": new}
        events.append(
            Event(1_000_000 + at, 0, "sched_pi_setprio", 9, "lends", Flag(0), 0, fields)
        )
    return events


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        *(kept, early, back, preempted, throttled, lent),
        lambda number: kept(number, depth=1),
    ],
)
def test_steps_grow_with_the_events(kind: Callable[[int], Sequence[Event]]) -> None:
    few, many = (steps_for(kind(number)) for number in (150, 300))

    assert many < 2.5 * few


def steps_for(events: Sequence[Event]) -> int:
    """Return how many lines of Python an explanation executes."""
    steps = 0

    def count(_frame: FrameType, what: str, _value: object) -> Any:
        nonlocal steps
        steps += what == "line"
        return count

    late_ns = 60_000 + 300 * APART_NS
    before = sys.gettrace()
    sys.settrace(count)
    try:
        explained(events, late_ns=late_ns, known=KNOWN | {"sched_pi_setprio"})
    finally:
        sys.settrace(before)
    return steps


def test_a_list_answers_as_a_walk_through_all_events() -> None:
    rng = random.Random(38)
    events = sorted(
        (
            event(rng.randrange(50), rng.choice("abc"), pid=rng.randrange(3))
            for _ in range(60)
        ),
        key=lambda one: one.at_ns,
    )
    whole = EventList(events)
    for name in "abcd":
        for pid in range(4):
            some = whole.named(name).of_task(pid)
            walked = [e for e in events if (e.name, e.pid) == (name, pid)]
            assert list(some) == walked
            for at in range(1_000_000 - 1, 1_000_052):
                early_ones = [e for e in walked if e.at_ns < at]
                not_later = [e for e in walked if e.at_ns <= at]
                rest = [e for e in walked if e.at_ns >= at]
                assert some.last_before(at) is (early_ones[-1] if early_ones else None)
                assert some.last_until(at) is (not_later[-1] if not_later else None)
                assert some.first_from(at) is (rest[0] if rest else None)


def test_of_two_events_at_one_time_the_order_of_the_trace_decides() -> None:
    whole = EventList([event(5, "on"), event(5, "off"), event(5, "on"), event(9, "x")])
    on, off = whole.named("on"), whole.named("off")

    assert is_behind(on, 2, off, 1)
    assert not is_behind(on, 1, off, 1)
    assert is_behind(off, 1, on, 1)
    assert not is_behind(on, 0, off, 0)
    assert on.first_behind_place(off.places[0]) == 1
    assert whole.named("x").first_behind_place(3) is None


def test_times_that_broken_invariants_cover_count_once() -> None:
    rng = random.Random(38)
    for _ in range(200):
        pairs = [
            (rng.randrange(40), rng.randrange(40)) for _ in range(rng.randrange(6))
        ]
        broken = [Broken(Invariant.TIME, begin, end, {}) for begin, end in pairs]
        begin, end = rng.randrange(40), rng.randrange(40)
        inside = {ns for b, e in pairs for ns in range(b, e)} & set(range(begin, end))
        assert Covered(broken).between(begin, end) == len(inside)
