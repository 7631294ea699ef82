"""From events: the way of a wake-up is cut into its parts, to the nanosecond."""

from dataclasses import replace

import pytest

from fakes.events import (
    ASKED,
    AWAKE,
    DUE,
    IDLE,
    IRQ,
    LOADING,
    NICE_0,
    OTHER,
    THREAD,
    asleep,
    event,
    explained,
    ran,
    switch,
    thread,
    told,
    woken,
)
from rtscope.explain.events.threadstates import MachineTraits
from rtscope.explain.model import Cause, Part
from rtscope.explain.words import sentence
from rtscope.record.events.events import Event, Flag


def test_a_prompt_wake_up_is_cut_into_its_five_parts() -> None:
    found = explained([*asleep(), *woken(1_000), ran(7_000)], late_ns=8_000)

    assert told(found) == [
        (Part.A, 0, 1_000, Cause.UNKNOWN, "interrupts off in load, or hardware"),
        (Part.B, 1_000, 5_000, Cause.TIMER_INTERRUPT, "local_timer"),
        (Part.D, 6_000, 1_000, Cause.SCHEDULER, "from load to the thread"),
        (Part.E, 7_000, 1_000, Cause.RETURN, "rtscope/0"),
    ]
    assert found.residual_ns == 0


def test_a_stopped_thread_is_told_as_such_and_not_as_late() -> None:
    found = explained(
        [
            *asleep(),
            switch(-100_000, LOADING, thread()),
            switch(-90_000, thread(), LOADING, state="T"),
            Event(
                DUE + 30_000_000,
                0,
                "sched_waking",
                OTHER,
                "bash",
                Flag(0),
                1,
                {"pid": THREAD, "comm": "rtscope/0", "prio": 0, "target_cpu": 0},
            ),
            ran(30_010_000),
        ],
        late_ns=30_012_000,
    )

    assert told(found)[0] == (
        *(Part.A, 0, 30_000_000),
        *(Cause.STOPPED, "SIGSTOP"),
    )
    assert found.segments[0].evidence == (
        "the thread was switched out in state T",
        "woken by bash-200",
    )
    assert "The thread itself was stopped" in sentence(found)


def test_leaving_idle_tells_the_state() -> None:
    found = explained(
        [
            *asleep(IDLE),
            event(-170_000, "cpu_idle", pid=0, flags=Flag.IRQS_OFF, depth=1, state=3),
            *woken(120_000, pid=0, comm="swapper/0", depth=1),
            event(126_000, "cpu_idle", pid=0, flags=ASKED, depth=1, state=AWAKE),
            ran(128_000, after=IDLE),
        ],
        late_ns=129_000,
    )

    assert told(found)[0] == (Part.A, 0, 120_000, Cause.IDLE_EXIT, "idle state 3")
    assert told(found)[2] == (
        *(Part.D, 125_000, 3_000),
        *(Cause.SCHEDULER, "from idle to the thread"),
    )


def test_a_page_fault_on_the_way_back_is_named() -> None:
    fault = event(
        8_000, "page_fault_user", pid=THREAD, flags=Flag.IRQS_OFF, address=0xABC
    )
    found = explained([*asleep(), *woken(1_000), ran(7_000), fault], late_ns=90_000)

    assert found.dominant is not None
    assert found.dominant.cause is Cause.PAGE_FAULT
    assert found.dominant.duration_ns == 82_000
    assert "page_fault_user at +8.000 us, address 0xabc" in found.dominant.evidence


def test_a_way_back_that_is_too_long_is_not_told_as_usual() -> None:
    found = explained([*asleep(), *woken(1_000), ran(7_000)], late_ns=800_000)

    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.part) == (Cause.UNKNOWN, Part.E)


@pytest.mark.parametrize(
    ("high_resolution", "cause"),
    [(False, Cause.TICK), (True, Cause.HARDWARE), (None, Cause.HARDWARE)],
)
def test_a_timer_waits_for_the_tick_where_high_resolution_timers_are_off(
    high_resolution: bool | None, cause: Cause
) -> None:
    machine = MachineTraits(guest=True, high_resolution=high_resolution)
    found = explained(
        [*asleep(), *woken(3_400_000), ran(3_407_000)],
        late_ns=3_408_000,
        machine=machine,
    )

    first = found.segments[0]
    assert (first.part, first.begin_ns, first.cause) == (Part.A, 0, cause)
    if cause is Cause.TICK:
        assert first.end_ns == 3_400_000
        assert first.evidence[-1].startswith("remedy: boot without highres=off")
        assert found.dominant is first
        assert (found.broken, found.residual_ns) == ((), 0)


def test_timer_slack_is_told_of_a_thread_that_was_not_real_time() -> None:
    events = [*asleep(priority=NICE_0), *woken(51_000, priority=NICE_0)]
    slack = replace(events[0], fields={**events[0].fields, "expires": DUE + 50_000})
    found = explained(
        [slack, *events[1:], switch(57_000, LOADING, thread(NICE_0))], late_ns=58_000
    )

    assert told(found)[0][:4] == (Part.A, 0, 50_000, Cause.TIMER_SLACK)


@pytest.mark.parametrize(
    ("slack_ns", "cause"), [(999, Cause.UNKNOWN), (1_000, Cause.TIMER_SLACK)]
)
def test_slack_of_less_than_a_microsecond_is_none(slack_ns: int, cause: Cause) -> None:
    events = [*asleep(priority=NICE_0), *woken(51_000, priority=NICE_0)]
    armed = {**events[0].fields, "expires": DUE + slack_ns}
    found = explained(
        [
            replace(events[0], fields=armed),
            *events[1:],
            switch(57_000, LOADING, thread(NICE_0)),
        ],
        late_ns=58_000,
    )

    assert found.segments[0].cause is cause


def test_a_timer_that_wakes_another_thread_after_ours_is_told_from_it() -> None:
    other = [
        event(
            4_100,
            "hrtimer_expire_entry",
            flags=IRQ,
            hrtimer=2,
            function="hrtimer_wakeup",
        ),
        event(4_500, "hrtimer_expire_exit", flags=IRQ, hrtimer=2),
    ]
    found = explained([*asleep(), *woken(1_000), *other, ran(8_000)], late_ns=9_000)

    assert [(s.begin_ns, s.end_ns, s.cause) for s in found.segments[1:4]] == [
        (1_000, 4_100, Cause.TIMER_INTERRUPT),
        (4_100, 4_500, Cause.TIMER_CALLBACK),
        (4_500, 6_000, Cause.TIMER_INTERRUPT),
    ]


def test_a_timer_that_expires_in_a_softirq_is_no_real_time_timer() -> None:
    soft = [
        replace(e, flags=Flag.SOFTIRQ)
        for e in woken(200_000)
        if e.name.startswith("sched_wak")
    ]
    found = explained(
        [
            *asleep(),
            event(150_000, "softirq_entry", flags=Flag.SOFTIRQ, vec=8),
            *soft,
            event(205_000, "softirq_exit", flags=Flag.SOFTIRQ, vec=8),
            ran(207_000),
        ],
        late_ns=208_000,
    )

    assert found.segments[0].cause is Cause.LATE_TIMER


@pytest.mark.parametrize(("cpu", "is_told"), [(0, False), (1, True)])
def test_a_timer_that_expires_on_another_cpu_is_told(cpu: int, is_told: bool) -> None:
    timer = [replace(one, cpu=cpu) for one in woken(1_000)]

    found = explained([*asleep(), *timer, ran(9_000)], late_ns=10_000)

    note = "the timer expired on CPU 1: until the thread was woken, that CPU delayed it"
    assert any(note in one for one in found.notes) is is_told
    assert any("kernel.timer_migration=0" in one for one in found.notes) is is_told
