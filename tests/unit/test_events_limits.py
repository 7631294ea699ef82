"""From events: real-time threads that may not run, before a wake-up or behind it."""

import pytest

from fakes.events import (
    Who,
    explained_text,
    of,
    text_line,
    text_switch,
    text_waking,
)
from rtscope.explain.model import Cause, Confidence, Explanation
from rtscope.explain.words import sentence

CTL: Who = ("ctl", 900, 9)
POLLER: Who = ("poller", 812, 49)
BASH: Who = ("bash", 55, 120)
MAKE: Who = ("make", 56, 125)
IDLE: Who = ("swapper/1", 0, 120)


def throttled(*between: str, taker: Who = BASH, last: Who = BASH) -> Explanation:
    """Explain 48.9 ms: the thread is woken 1.1 ms after a poller lost its CPU."""
    return explained_text(
        text_waking(100, POLLER, CTL),
        text_switch(105, POLLER, CTL, state="R"),
        text_switch(125, CTL, POLLER),
        text_switch(949_000, POLLER, taker, state="R"),
        *between,
        text_switch(999_003, last, CTL, state="R+"),
        text_switch(999_030, CTL, POLLER),
        at_us=970_000,
    )


def test_throttling_that_began_before_the_wake_up_is_told() -> None:
    found = throttled(text_waking(950_100, BASH, CTL))

    assert found.dominant is not None
    assert found.dominant.cause is Cause.THROTTLED
    assert found.dominant.confidence is Confidence.INFERRED
    assert found.dominant.name == "bash (not real-time, nice 0)"
    assert of(found, Cause.THROTTLED) == 48_901_000
    told = found.dominant.evidence[0]
    assert "-1,100.000 us the scheduler took the CPU from poller-812" in told
    assert "50.0 ms, about the 50 ms of each second" in told
    assert "because real-time threads were throttled" in sentence(found)
    assert found.broken == ()


def test_ordinary_tasks_that_follow_one_another_are_of_one_throttling() -> None:
    found = throttled(
        text_switch(949_500, BASH, MAKE),
        text_waking(950_100, MAKE, CTL),
        text_switch(960_000, MAKE, BASH),
    )

    assert of(found, Cause.THROTTLED) == 48_901_000
    assert of(found, Cause.UNKNOWN) == 0


def test_a_cpu_that_idles_beside_ready_real_time_threads_is_throttled() -> None:
    found = throttled(text_waking(950_100, IDLE, CTL), taker=IDLE, last=IDLE)

    assert of(found, Cause.THROTTLED) == 48_901_000


def test_a_wake_up_long_after_the_poller_lost_its_cpu_is_throttled_too() -> None:
    found = throttled(text_waking(990_100, BASH, CTL))

    assert of(found, Cause.THROTTLED) == 8_901_000


@pytest.mark.parametrize("state", ["S", "D", "X"])
def test_a_poller_that_went_to_sleep_was_not_throttled(state: str) -> None:
    found = explained_text(
        text_switch(105, IDLE, POLLER, state="R"),
        text_switch(949_000, POLLER, BASH, state=state),
        text_waking(950_100, BASH, CTL),
        text_switch(999_003, BASH, CTL, state="R+"),
    )

    assert of(found, Cause.THROTTLED) == 0
    assert of(found, Cause.UNKNOWN) == 48_901_000
    assert "kept the CPU, and nothing shows why" in found.segments[-1].name


def test_a_poller_that_runs_elsewhere_was_moved_not_throttled() -> None:
    found = throttled(
        text_switch(949_100, ("swapper/3", 0, 120), POLLER, state="R", cpu=3),
        text_waking(950_100, BASH, CTL),
    )

    assert of(found, Cause.THROTTLED) == 0


def test_a_real_time_thread_that_ran_since_then_ends_the_throttling() -> None:
    other: Who = ("irq/30", 30, 49)
    found = throttled(
        text_switch(949_500, BASH, other, state="R"),
        text_switch(949_600, other, BASH),
        text_waking(950_100, BASH, CTL),
    )

    assert of(found, Cause.THROTTLED) == 0


def test_an_ordinary_poller_that_shares_its_cpu_was_not_throttled() -> None:
    found = explained_text(
        text_switch(105, IDLE, MAKE, state="R"),
        text_switch(949_000, MAKE, BASH, state="R"),
        text_waking(950_100, BASH, CTL),
        text_switch(999_003, BASH, CTL, state="R+"),
    )

    assert of(found, Cause.THROTTLED) == 0
    assert found.attributed_share < 0.01


def test_a_short_wait_beside_an_ordinary_task_is_no_throttling() -> None:
    found = throttled(text_waking(998_980, BASH, CTL))

    assert of(found, Cause.THROTTLED) == 0
    assert of(found, Cause.SCHEDULER) == 21_000


def test_the_timer_that_ends_throttling_tells_it_from_the_fair_server() -> None:
    found = throttled(
        text_waking(950_100, BASH, CTL),
        text_line(
            998_990,
            BASH,
            "hrtimer_expire_entry: hrtimer=0xbb "
            "function=sched_rt_period_timer now=500998990000",
            flags="d.h..",
        ),
    )

    assert found.dominant is not None
    assert "sched_rt_period_timer" in found.dominant.evidence[1]


# --- a runtime of its own ---------------------------------------------------------


@pytest.mark.parametrize("taker", [BASH, POLLER, ("other", 57, 0)])
def test_a_deadline_thread_that_used_up_its_runtime_is_told(taker: Who) -> None:
    own: Who = ("ctl", 900, -1)
    found = explained_text(
        text_switch(5, own, taker),
        text_waking(1_000, taker, own),
        text_switch(1_010, taker, own, state="R+"),
        text_switch(3_010, own, taker, state="R"),
        text_switch(10_010, taker, own, state="R+"),
        text_line(10_011, own, "tracing_mark_write: hit latency threshold (9011 > 5)"),
    )

    assert of(found, Cause.CPU_QUOTA) == 7_000_000
    assert of(found, Cause.THROTTLED) == 0
    assert "its runtime (sched_setattr)" in sentence(found)


def test_a_real_time_task_of_lower_priority_shows_the_limit_of_a_group() -> None:
    found = explained_text(
        text_switch(5, CTL, POLLER),
        text_waking(1_000, POLLER, CTL),
        text_switch(1_010, POLLER, CTL, state="R+"),
        text_switch(3_010, CTL, POLLER, state="R"),
        text_switch(10_010, POLLER, CTL, state="R+"),
        text_line(10_011, CTL, "tracing_mark_write: hit latency threshold (9011 > 5)"),
    )

    assert of(found, Cause.THROTTLED) == 7_000_000
    limited = next(s for s in found.segments if s.cause is Cause.THROTTLED)
    assert "cpu.rt_runtime_us" in limited.evidence[1]


def test_a_deadline_thread_that_is_woken_without_runtime_is_told_by_its_timer() -> None:
    own: Who = ("ctl", 900, -1)
    timer = "hrtimer_expire_entry: hrtimer=0xbb function=dl_task_timer now=500004000000"

    def woken(*between: str) -> Explanation:
        return explained_text(
            text_switch(5, own, POLLER),
            text_waking(1_000, POLLER, own),
            *between,
            text_switch(4_010, POLLER, own, state="R+"),
        )

    assert of(woken(text_line(4_000, POLLER, timer, flags="d.h..")), Cause.CPU_QUOTA)
    unknown = woken().segments[-1]
    assert unknown.cause is Cause.UNKNOWN
    assert unknown.name.startswith("the thread's own runtime used up, preemption off")


@pytest.mark.parametrize("function", ["dl_task_timer", "dl_server_timer"])
def test_a_deadline_timer_before_the_switch_shows_the_fair_server(
    function: str,
) -> None:
    timer = f"hrtimer_expire_entry: hrtimer=0xcc function={function} now=500949900000"
    found = explained_text(
        text_switch(105, CTL, POLLER),
        text_waking(949_850, POLLER, ("late", 7, 98)),
        text_line(949_900, POLLER, timer, flags="d.h.."),
        text_line(949_905, POLLER, "hrtimer_expire_exit: hrtimer=0xcc", flags="d.h.."),
        text_switch(950_000, POLLER, BASH, state="R"),
        text_waking(950_100, BASH, CTL),
        text_switch(999_003, BASH, CTL, state="R+"),
    )

    assert of(found, Cause.FAIR_SERVER) == 48_901_000
    assert "run by the fair server" in sentence(found)
