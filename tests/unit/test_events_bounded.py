"""Of a wake-up with too many events those in the middle are left out, and counted."""

import pytest

from fakes.events import Who, text_line, text_switch, text_waking
from rtscope.explain.events.explain import explain_events
from rtscope.explain.events.threadstates import MachineTraits
from rtscope.explain.events.window import WakeupSelector, choose, window_around
from rtscope.explain.model import Cause
from rtscope.record.events.events import Trace, window_of
from rtscope.record.events.text import text_trace

CTL: Who = ("ctl", 77, 19)
LOAD: Who = ("load", 100, 120)


def trace(number: int, *, cpus: int = 1, same: bool = False) -> Trace:
    """A thread waits; each CPU has so many interrupts, 2 us apart or all at once."""
    lines = [text_switch(0, CTL, LOAD), text_waking(100, LOAD, CTL)]
    for at in range(number):
        us = 200 if same else 200 + 2 * at
        for cpu in range(1, cpus + 1):
            by = LOAD if cpu == 1 else ("other", 100 + cpu, 120)
            lines.append(text_line(us, by, "irq_handler_entry: irq=5 name=e", cpu=cpu))
            lines.append(text_line(us, by, "irq_handler_exit: irq=5 ret=ok", cpu=cpu))
    lines.append(text_switch(300 + 2 * number, LOAD, CTL, state="R"))
    return text_trace(memoryview("\n".join(lines).encode()), name="trace.txt")


@pytest.mark.slow
@pytest.mark.parametrize("most", [4, 5, 10, 99, 203, 204, 1000])
@pytest.mark.parametrize("cpus", [1, 2, 3])
def test_each_event_is_in_the_window_or_counted_as_lost(most: int, cpus: int) -> None:
    whole = window_of(trace(100, cpus=cpus), 0, 1 << 60)
    some = window_of(trace(100, cpus=cpus), 0, 1 << 60, most=most)
    left_out = sum(loss.count or 0 for loss in some.losses)

    assert len(whole.events) == 200 * cpus + 4
    assert not whole.losses
    assert len(some.events) + left_out == len(whole.events)
    assert len(some.events) <= max(most, 0)
    assert all(event in whole.events for event in some.events)
    for loss in some.losses:
        inside = [e for e in some.events if e.cpu == loss.cpu]
        assert not [e for e in inside if loss.after_ns < e.at_ns < loss.before_ns]


def test_events_all_at_one_time_are_bounded_too() -> None:
    some = window_of(trace(100, same=True), 0, 1 << 60, most=20)

    assert len(some.events) <= 20
    assert sum(loss.count or 0 for loss in some.losses) == 204 - len(some.events)


def test_the_time_without_events_has_no_known_cause_and_a_count() -> None:
    recorded = trace(1000)
    wakeup = choose(recorded, WakeupSelector(thread="ctl")).wakeup
    window, wakeup = window_around(recorded, wakeup, most=400)
    found = explain_events(window, wakeup, machine=MachineTraits())

    (gap,) = [s for s in found.segments if "missing" in s.name]
    assert gap.cause is Cause.UNKNOWN
    number = 2_004 - len(window.events)
    assert gap.name == (
        f"{number} events are missing: the wake-up has more than 400, and these of its "
        "middle were left out"
    )
    assert (found.residual_ns, found.broken) == (0, ())
    assert found.segments[-1].end_ns == found.latency_ns
