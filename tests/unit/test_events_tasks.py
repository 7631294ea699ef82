"""From events: which task ran before the thread, and what let it."""

from fakes.events import (
    FIFO_50,
    FIFO_80,
    IDLE,
    IRQ,
    LOADING,
    NICE_0,
    OTHER,
    asleep,
    event,
    explained,
    of,
    ran,
    switch,
    thread,
    woken,
)
from rtscope.explain.model import Cause, Confidence
from rtscope.explain.words import sentence


def test_a_higher_priority_task_is_named_with_both_priorities() -> None:
    hog = (OTHER, "hog", FIFO_80)
    found = explained(
        [
            *asleep(hog, priority=FIFO_50),
            *woken(1_000, pid=OTHER, comm="hog", priority=FIFO_50),
            switch(500_000, hog, thread(FIFO_50)),
        ],
        late_ns=501_000,
    )

    assert found.dominant is not None
    assert found.dominant.cause is Cause.OTHER_TASK
    assert found.dominant.name == "hog (real-time, priority 80)"
    assert found.dominant.evidence == (
        "hog-200 is real-time, priority 80; the thread is real-time, priority 50",
    )
    assert found.dominant.confidence is Confidence.SEEN
    assert of(found, Cause.OTHER_TASK) == 494_000


def test_ticks_do_not_cut_the_culprit_into_pieces_that_others_exceed() -> None:
    hog = (OTHER, "hog", FIFO_80)
    tick = [
        event(200_000, "local_timer_entry", pid=OTHER, flags=IRQ, vector=236),
        event(203_000, "local_timer_exit", pid=OTHER, flags=IRQ, vector=236),
    ]
    found = explained(
        [
            *asleep(hog, priority=FIFO_50),
            *woken(90_000, pid=OTHER, comm="hog", priority=FIFO_50),
            *tick,
            switch(300_000, hog, thread(FIFO_50)),
        ],
        late_ns=301_000,
    )

    assert found.dominant is not None
    assert found.dominant.name == "hog (real-time, priority 80)"
    assert "another task, hog (real-time, priority 80): 202 µs" in sentence(found)
    assert of(found, Cause.OTHER_INTERRUPT) == 3_000


def test_the_fair_server_is_blamed_where_the_scheduler_passed_the_thread_over() -> None:
    """need_resched is set, and soon no more, and the same ordinary task goes on."""
    found = explained(
        [
            *asleep(),
            *woken(1_000),
            event(4_000_000, "local_timer_entry", flags=IRQ, vector=236),
            event(4_005_000, "local_timer_exit", flags=IRQ, vector=236),
            ran(9_000_000),
        ],
        late_ns=9_001_000,
    )

    assert found.dominant is not None
    assert found.dominant.cause is Cause.FAIR_SERVER
    assert found.dominant.name == "load (not real-time, nice 0)"
    assert of(found, Cause.FAIR_SERVER) == 8_989_000
    assert "need_resched was set and cleared" in found.dominant.evidence[0]


def test_throttling_is_told_from_the_fair_server_by_the_timer_that_ends_it() -> None:
    end = "sched_rt_period_timer"
    events = [
        *asleep(),
        *woken(1_000),
        switch(20_000, LOADING, (OTHER, "make", NICE_0)),
        event(8_990_000, "local_timer_entry", pid=OTHER, flags=IRQ, vector=236),
        event(8_991_000, "hrtimer_expire_entry", pid=OTHER, flags=IRQ, function=end),
        event(8_992_000, "hrtimer_expire_exit", pid=OTHER, flags=IRQ),
        event(8_995_000, "local_timer_exit", pid=OTHER, flags=IRQ, vector=236),
        ran(9_000_000, after=(OTHER, "make", NICE_0)),
    ]
    found = explained(events, late_ns=9_001_000)

    assert found.dominant is not None
    assert found.dominant.cause is Cause.THROTTLED
    assert found.dominant.name == "make (not real-time, nice 0)"


def test_a_cpu_that_goes_idle_while_the_thread_is_ready_shows_throttling() -> None:
    idle_ends = ran(40_000_000, after=IDLE)
    found = explained(
        [*asleep(), *woken(1_000), switch(20_000, LOADING, IDLE), idle_ends],
        late_ns=40_001_000,
    )

    assert of(found, Cause.THROTTLED) == 39_980_000


def test_a_thread_that_is_not_real_time_waits_for_its_turn() -> None:
    found = explained(
        [
            *asleep(priority=NICE_0),
            *woken(1_000, priority=NICE_0),
            switch(3_000_000, LOADING, thread(NICE_0)),
        ],
        late_ns=3_001_000,
    )

    assert found.dominant is not None
    assert found.dominant.cause is Cause.NOT_REALTIME
    assert any("not real-time" in note for note in found.notes)
