"""Errors that are planted in the events of a machine: an invariant catches each."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from fakes.events import DUE, FIFO_50, FIFO_80, IDLE, KNOWN, THREAD, event, switch
from rtscope.explain.events.explain import broken_invariants
from rtscope.explain.events.histories import histories_of
from rtscope.explain.events.threadstates import State, StateInterval, TracedWakeup
from rtscope.explain.model import Cause, Confidence, Invariant, Part, Segment
from rtscope.record.events.events import Event, Window

WAKEUP = TracedWakeup(THREAD, "rtscope/0", 0, DUE, DUE + 90_000)
OURS = (THREAD, "rtscope/0", FIFO_50)
HOG = (300, "hog", FIFO_80)
MEEK = (301, "meek", FIFO_50 + 9)
RUNS = switch(80_000, IDLE, OURS)
"""Tells the priority of the thread."""
WOKEN = event(5_000, "sched_waking", pid=0, comm="swapper/0")


def timer(due_ns: int = 0, at_ns: int = 4_000) -> list[Event]:
    """The thread's timer is started for a time, and expires."""
    started = event(
        -900_000,
        "hrtimer_start",
        pid=THREAD,
        hrtimer=0xF,
        softexpires=DUE + due_ns,
        expires=DUE + due_ns,
    )
    expired = event(
        at_ns,
        "hrtimer_expire_entry",
        hrtimer=0xF,
        now=DUE + at_ns,
        function="hrtimer_wakeup",
    )
    return [started, expired, WOKEN]


def interval(state: State, begin: int, end: int, by: Event | None) -> StateInterval:
    return StateInterval(state, DUE + begin, DUE + end, 0, by)


INTERVALS = (
    interval(State.SLEEPING, 0, 5_000, WOKEN),
    interval(State.RUNNABLE, 5_000, 80_000, switch(80_000, HOG, OURS)),
    interval(State.RUNNING, 80_000, 90_000, None),
)
BLAMED = Segment(Part.D, 6_000, 80_000, Cause.OTHER_TASK, "hog")


def broken(
    events: Sequence[Event],
    segment: Segment = BLAMED,
    intervals: Sequence[StateInterval] = INTERVALS,
) -> list[Invariant]:
    ordered = sorted([*events, RUNS], key=lambda one: one.at_ns)
    window = Window(0, DUE + 200_000, tuple(ordered), (), KNOWN, {}, {})
    facts = histories_of(window)
    found = broken_invariants(window, WAKEUP, intervals, [segment], facts=facts)
    return [one.invariant for one in found]


def test_a_rival_of_higher_priority_breaks_nothing() -> None:
    assert broken([*timer(), switch(-50, IDLE, HOG)]) == []


@pytest.mark.parametrize("shift_ns", [-200_000, -3_000, 3_000, 200_000])
def test_an_expiry_that_is_shifted_is_caught(shift_ns: int) -> None:
    found = broken([*timer(shift_ns), switch(-50, IDLE, HOG)])

    assert found == [Invariant.EXPIRY]


def test_the_idle_task_is_nobodys_rival() -> None:
    assert broken([*timer(), switch(-50, HOG, IDLE)]) == [Invariant.IDLE]


def test_a_task_that_the_thread_would_preempt_is_not_blamed() -> None:
    assert broken([*timer(), switch(-50, IDLE, MEEK)]) == [Invariant.CHOICE]


def test_preemption_off_is_not_believed_for_long_without_an_event() -> None:
    long = replace(BLAMED, cause=Cause.PREEMPTION_OFF, end_ns=12_000_000)
    intervals = (INTERVALS[0], replace(INTERVALS[1], end_ns=DUE + 12_000_000))
    of_meek, of_hog = switch(-50, IDLE, MEEK), switch(-50, IDLE, HOG)
    guess = replace(long, confidence=Confidence.INFERRED)
    short = replace(guess, end_ns=80_000)

    assert broken([*timer(), of_meek], guess, intervals) == [Invariant.KEPT]
    assert broken([*timer(), of_meek], long, intervals) == []
    assert broken([*timer(), of_meek], short) == []
    assert broken([*timer(), of_hog], guess, intervals) == []


def test_nobody_is_blamed_while_the_thread_sleeps() -> None:
    early = replace(BLAMED, begin_ns=1_000)

    assert broken([*timer(), switch(-50, IDLE, HOG)], early) == [Invariant.RUNNABLE]


def test_two_sleeps_for_timers_are_two_wake_ups() -> None:
    again = event(60_000, "sched_waking", pid=0, comm="swapper/0")
    intervals = (*INTERVALS[:1], interval(State.SLEEPING, 50_000, 60_000, again))
    events = [*timer(), *timer(0, 59_000)[1:2], again, switch(-50, IDLE, HOG)]

    assert Invariant.ARRIVAL in broken(events, BLAMED, intervals)
