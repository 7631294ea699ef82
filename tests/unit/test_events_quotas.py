"""From events: a thread that a quota keeps from its CPU, told from one that waits."""

import pytest

from fakes.events import (
    AWAKE,
    FIFO_50,
    IDLE,
    IRQ,
    LOADING,
    NICE_0,
    OTHER,
    asleep,
    event,
    explained,
    switch,
    thread,
    woken,
)
from rtscope.explain.events.histories import priority_words
from rtscope.explain.model import Cause, Confidence, Part, Segment
from rtscope.record.events.events import Event

DEADLINE = -1
GROUPS = "cpu.max of its control group"


def idled(priority: int, *events: Event) -> Segment:
    """Return the longest segment of a wait of 400 us beside an idle CPU."""
    way = woken(1_000, pid=0, comm="swapper/0", priority=priority)
    ends = switch(400_000, IDLE, thread(priority))
    found = explained(
        [*asleep(IDLE, priority=priority), *way, *events, ends], late_ns=401_000
    )
    assert found.broken == ()
    return max(found.segments, key=lambda one: one.duration_ns)


def timer(at_ns: int, name: str, task: tuple[int, str, int] = IDLE) -> Event:
    pid, comm, _ = task
    what = "hrtimer_expire_entry"
    return event(at_ns, what, pid=pid, comm=comm, flags=IRQ, function=name)


def idle_again(at_ns: int, state: int = 1) -> Event:
    return event(at_ns, "cpu_idle", pid=0, comm="swapper/0", state=state, cpu_id=0)


@pytest.mark.parametrize(
    ("priority", "quota"),
    [(NICE_0, GROUPS), (DEADLINE, "its runtime (sched_setattr)")],
)
def test_a_cpu_that_idles_on_beside_a_ready_thread_is_forbidden_to_it(
    priority: int, quota: str
) -> None:
    ticks = timer(200_000, "tick_nohz_handler")
    renewed = timer(390_000, "sched_cfs_period_timer")
    found = idled(priority, idle_again(9_000), ticks, renewed)

    assert (found.part, found.cause, found.name) == (Part.D, Cause.CPU_QUOTA, quota)
    assert found.confidence is Confidence.INFERRED
    assert found.evidence == (
        f"the thread was ready ({priority_words(priority)}), and the CPU idle: only "
        f"{quota} does that",
        "sched_cfs_period_timer, which ends throttled time, expired at +390.000 us",
    )


@pytest.mark.parametrize(
    ("priority", "events"),
    [
        (NICE_0, [idle_again(9_000, state=AWAKE)]),
        (NICE_0, [idle_again(2_000)]),
        (FIFO_50, [idle_again(9_000)]),
    ],
    ids=["it only left its idle state late", "before it was queued", "real-time"],
)
def test_an_idle_cpu_without_a_sign_of_a_quota_proves_none(
    priority: int, events: list[Event]
) -> None:
    assert idled(priority, *events).cause is not Cause.CPU_QUOTA


def test_a_ready_thread_that_the_idle_task_displaced_has_a_quota() -> None:
    way = woken(1_000, priority=NICE_0)
    found = explained(
        [
            *(*asleep(priority=NICE_0), *way, switch(20_000, LOADING, IDLE)),
            switch(400_000, IDLE, thread(NICE_0)),
        ],
        late_ns=401_000,
    )

    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.name) == (Cause.CPU_QUOTA, GROUPS)
    assert found.dominant.duration_ns == 380_000


def test_a_task_that_ran_until_quotas_were_renewed_may_have_run_because_of_one() -> (
    None
):
    way = woken(1_000, pid=OTHER, comm="hog", priority=NICE_0)
    hog = (OTHER, "hog", NICE_0)
    renewed = timer(390_000, "sched_cfs_slack_timer", hog)
    ends = switch(400_000, hog, thread(NICE_0))
    found = explained(
        [*asleep(hog, priority=NICE_0), *way, renewed, ends], late_ns=401_000
    )

    told = [one for one in found.segments if one.cause is Cause.NOT_REALTIME]
    assert told[-1].evidence[1:] == (
        "sched_cfs_slack_timer, which ends throttled time, expired at +390.000 us: a "
        "CPU quota may be why",
    )
