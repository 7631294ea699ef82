"""From events: a task that runs with the priority of another, which waits for it."""

import pytest

from fakes.events import (
    Who,
    explained_text,
    of,
    text_lent,
    text_line,
    text_switch,
    text_waking,
)
from rtscope.explain.model import Cause, Explanation
from rtscope.explain.words import sentence

CTL: Who = ("ctl", 71, 9)
HIGH: Who = ("high", 72, 4)
MID: Who = ("mid", 73, 40)
IDLE: Who = ("swapper/1", 0, 120)


def low(priority: int = 120) -> Who:
    return ("low", 70, priority)


def held(*lent: str, ends: int = 120) -> Explanation:
    """Explain 205 us behind a task whose priority changes as `lent` tells."""
    return explained_text(
        text_switch(10, IDLE, low(), state="R"),
        *sorted(
            [*lent, text_waking(300, low(), CTL)], key=lambda line: line.split()[3]
        ),
        text_switch(505, low(ends), CTL, state="R+"),
        text_switch(530, CTL, low(ends)),
    )


def test_a_lock_holder_runs_with_the_priority_of_the_thread_that_waits_for_it() -> None:
    found = held(
        text_lent(200, HIGH, low(), 4, cpu=0), text_lent(500, low(), low(4), 120)
    )

    assert found.dominant is not None
    assert found.dominant.cause is Cause.OTHER_TASK
    assert found.dominant.name == (
        "low (real-time, priority 95, by priority inheritance from high)"
    )
    assert of(found, Cause.OTHER_TASK) == 198_000
    assert of(found, Cause.SCHEDULER) == 5_000
    assert "high-72 waits for its lock" in found.dominant.evidence[1]
    assert "low (real-time, priority 95, by priority inheritance" in sentence(found)
    assert found.broken == ()


def test_who_lent_it_is_not_guessed_if_the_holders_own_event_tells_the_change() -> None:
    found = held(text_lent(200, low(), low(), 4), text_lent(500, low(), low(4), 120))

    assert found.dominant is not None
    assert (
        found.dominant.name == "low (real-time, priority 95, by priority inheritance)"
    )


def test_a_chain_of_three_is_told_with_its_middle() -> None:
    found = held(
        text_lent(150, MID, low(), 40, cpu=2),
        text_lent(200, HIGH, MID, 4, cpu=0),
        text_lent(201, HIGH, low(40), 4, cpu=0),
        text_lent(500, low(), low(4), 120),
    )

    assert found.dominant is not None
    assert found.dominant.name.endswith("by priority inheritance from high)")
    told = found.dominant.evidence
    assert any("mid-73 waits for its lock" in line for line in told)
    assert any("high-72 waits for a lock in a chain with mid-73" in x for x in told)


def test_a_priority_that_is_given_back_in_the_middle_of_the_wait_ends_there() -> None:
    found = held(
        text_lent(200, HIGH, low(), 4, cpu=0), text_lent(380, low(), low(4), 120)
    )

    assert of(found, Cause.OTHER_TASK) == 78_000
    assert of(found, Cause.UNKNOWN) == 125_000
    assert found.segments[-1].name.startswith("preemption off in low")


def test_a_priority_that_is_given_back_in_part_still_is_inherited() -> None:
    found = held(
        text_lent(150, MID, low(), 8, cpu=2),
        text_lent(200, HIGH, low(8), 4, cpu=0),
        text_lent(380, low(), low(4), 8),
        text_lent(500, low(), low(8), 120),
    )

    names = [s.name for s in found.segments if s.cause is Cause.OTHER_TASK]
    assert names == [
        "low (real-time, priority 95, by priority inheritance from high)",
        "low (real-time, priority 91, by priority inheritance from mid)",
    ]


def test_a_boost_to_deadline_goes_before_every_real_time_thread() -> None:
    found = held(
        text_lent(200, ("dl", 75, -1), low(), -1, cpu=0),
        text_lent(500, low(), low(-1), 120),
    )

    assert found.dominant is not None
    assert found.dominant.name == (
        "low (SCHED_DEADLINE, by priority inheritance from dl)"
    )


def test_a_boost_that_is_too_low_does_not_explain_the_wait() -> None:
    found = held(
        text_lent(200, MID, low(), 40, cpu=0), text_lent(500, low(), low(40), 120)
    )

    assert of(found, Cause.OTHER_TASK) == 0
    assert of(found, Cause.UNKNOWN) == 198_000


@pytest.mark.parametrize("long_before_us", [0, 100_000])
def test_a_boost_from_before_the_events_around_the_wake_up_is_known(
    long_before_us: int,
) -> None:
    begin = 200_000 - long_before_us
    found = explained_text(
        text_switch(begin - 50, IDLE, low(), state="R"),
        text_lent(begin, HIGH, low(), 4, cpu=0),
        text_waking(202_000, low(), CTL),
        text_line(202_100, low(), "sys_enter: NR 1 (1, 2, 3)"),
        text_lent(202_500, low(), low(4), 120),
        text_switch(202_505, low(), CTL, state="R+"),
    )

    assert found.dominant is not None
    assert found.dominant.name.endswith("by priority inheritance from high)")


def test_a_boost_that_began_before_the_trace_is_known_by_its_end() -> None:
    found = explained_text(
        text_line(10, low(), "sys_enter: NR 1 (1, 2, 3)"),
        text_waking(300, low(), CTL),
        text_lent(500, low(), low(4), 120),
        text_switch(505, low(), CTL, state="R+"),
    )

    assert found.dominant is not None
    assert (
        found.dominant.name == "low (real-time, priority 95, by priority inheritance)"
    )
    assert "who lent it was not recorded" in found.dominant.evidence[1]


def test_a_thread_that_sleeps_for_a_lock_names_who_holds_it() -> None:
    own: Who = ("ctl", 71, 9)
    found = explained_text(
        text_line(
            5,
            IDLE,
            "hrtimer_start: hrtimer=0xaa function=hrtimer_wakeup "
            "expires=500000100000 softexpires=500000100000",
        ),
        text_switch(10, own, IDLE),
        text_line(
            101,
            IDLE,
            "hrtimer_expire_entry: hrtimer=0xaa "
            "function=hrtimer_wakeup now=500000101000",
            flags="d.h..",
        ),
        text_waking(102, IDLE, own),
        text_line(104, IDLE, "hrtimer_expire_exit: hrtimer=0xaa", flags="d.h.."),
        text_switch(110, IDLE, own, state="R"),
        text_lent(120, own, low(), 9),
        text_switch(125, own, low(9), state="D"),
        text_lent(400, low(), low(9), 120),
        text_waking(401, low(), own),
        text_switch(405, low(), own, state="R+"),
        text_line(420, own, "timerlat: x"),
        text_line(421, own, "tracing_mark_write: hit latency threshold (321 > 100)"),
    )

    assert found.dominant is not None
    assert found.dominant.cause is Cause.LOCK
    assert "low" in found.dominant.name
