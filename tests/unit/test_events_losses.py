"""Explanations where events are missing: what is not known is no cause."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.events import (
    AWAKE,
    DUE,
    FIFO_50,
    FIFO_80,
    IRQ,
    LOAD,
    OTHER,
    THREAD,
    asleep,
    event,
    explained,
    of,
    ran,
    switch,
    thread,
    woken,
)
from rtscope.explain.events.threadstates import MachineTraits, State
from rtscope.explain.model import Cause
from rtscope.explain.words import sentence
from rtscope.record.events.events import Event, Flag, Loss

LOST = Loss(0, DUE - 180_000, DUE + 306_000, 12, "the ring buffer was full")


def test_lost_events_are_no_cause() -> None:
    events = [*asleep(), *woken(301_000)[-1:], ran(307_000)]
    found = explained(events, late_ns=308_000, losses=[LOST])

    assert found.attributed_share < 0.05
    assert found.residual_ns == 0


def test_a_loss_in_the_middle_leaves_the_rest_explained() -> None:
    hog = (OTHER, "hog", FIFO_80)
    loss = Loss(0, DUE + 6_000, DUE + 200_000, 3, "the ring buffer was full")
    found = explained(
        [
            *asleep(hog, priority=FIFO_50),
            *woken(1_000, pid=OTHER, comm="hog", priority=FIFO_50),
            event(200_000, "local_timer_entry", pid=OTHER, flags=IRQ, vector=236),
            event(203_000, "local_timer_exit", pid=OTHER, flags=IRQ, vector=236),
            switch(300_000, hog, thread(FIFO_50)),
        ],
        late_ns=301_000,
        losses=[loss],
    )

    lost = [s for s in found.segments if s.cause is Cause.UNKNOWN and s.begin_ns > 0]
    assert [(s.begin_ns, s.end_ns) for s in lost] == [(6_000, 200_000)]
    assert lost[0].name.startswith("3 events are missing")
    assert of(found, Cause.OTHER_TASK) == 97_000


def test_a_switch_that_was_not_recorded_is_noticed() -> None:
    """Another task has the CPU, and no event says since when."""
    found = explained(
        [
            *asleep(),
            *woken(1_000),
            event(300_000, "hrtimer_start", pid=THREAD, comm="rtscope/0"),
        ],
        late_ns=290_000,
    )

    assert of(found, Cause.UNKNOWN) == 285_000
    assert "without a sched_switch" in found.segments[-1].name


def test_an_interrupt_without_an_end_is_not_taken_for_the_whole_wait() -> None:
    """A trace of the scheduler's events alone: only their flags tell of interrupts."""
    hog = (OTHER, "hog", FIFO_80)
    way = [
        e
        for e in woken(1_000, pid=OTHER, comm="hog", priority=FIFO_50)
        if e.name.startswith("sched_")
    ]
    switched = switch(500_000, hog, thread(FIFO_50))
    found = explained(
        [*asleep(hog, priority=FIFO_50), *way, switched],
        late_ns=501_000,
        known=frozenset({"sched_switch", "sched_waking", "sched_wakeup"}),
    )

    assert of(found, Cause.OTHER_TASK) == 496_500
    assert any("no entries of interrupts" in note for note in found.notes)


def test_an_interrupt_whose_end_was_not_recorded_is_no_cause() -> None:
    hog = (OTHER, "hog", FIFO_80)
    way = woken(1_000, pid=OTHER, comm="hog", priority=FIFO_50)[:-1]
    switched = switch(500_000, hog, thread(FIFO_50))
    found = explained([*asleep(hog, priority=FIFO_50), *way, switched], late_ns=501_000)

    assert of(found, Cause.UNKNOWN) == 496_000 + 1_000
    assert "ended without an event" in found.segments[2].name


def test_without_events_of_the_thread_nothing_is_claimed() -> None:
    found = explained([event(0, "softirq_raise", vec=1)], late_ns=50_000)

    assert found.attributed_share == 0
    assert [s.cause for s in found.segments] == [Cause.UNKNOWN]


NAMES = st.sampled_from(
    [
        *("sched_switch", "sched_waking", "sched_wakeup", "sched_migrate_task"),
        *("local_timer_entry", "local_timer_exit", "softirq_entry", "softirq_exit"),
        *("hrtimer_expire_entry", "hrtimer_expire_exit", "cpu_idle", "irq_disable"),
        *("irq_handler_entry", "irq_handler_exit", "page_fault_user", "kernel_stack"),
    ]
)


FIELDS = st.fixed_dictionaries(
    {
        "pid": st.sampled_from([0, THREAD, LOAD]),
        "prev_pid": st.sampled_from([0, THREAD, LOAD]),
        "next_pid": st.sampled_from([0, THREAD, LOAD]),
        "prev_state": st.sampled_from(["S", "R", "R+", "D", "T", "x"]),
        "prio": st.integers(-1, 140),
        "vector": st.just(1),
        "state": st.sampled_from([0, 3, AWAKE]),
        "vec": st.integers(-5, 50),
    }
)


ANY = st.builds(
    Event,
    at_ns=st.integers(0, 2_500_000),
    cpu=st.integers(0, 1),
    name=NAMES,
    pid=st.sampled_from([-1, 0, THREAD, LOAD]),
    comm=st.just("x"),
    flags=st.one_of(st.none(), st.builds(Flag, st.integers(0, 127))),
    preempt_depth=st.one_of(st.none(), st.integers(0, 15)),
    fields=FIELDS,
)


LOSSES = st.lists(
    st.builds(
        lambda cpu, at, length: Loss(cpu, at, at + length, None, "a test"),
        st.integers(0, 1),
        st.integers(0, 2_500_000),
        st.integers(0, 500_000),
    ),
    max_size=3,
)


@pytest.mark.slow
@settings(max_examples=100)
@given(
    events=st.lists(ANY, max_size=40),
    losses=LOSSES,
    late_ns=st.integers(1, 1_200_000),
    state=st.sampled_from(list(State)),
    guest=st.sampled_from([None, True, False]),
)
def test_the_sum_closes_whatever_the_events(
    events: list[Event],
    losses: list[Loss],
    late_ns: int,
    state: State,
    guest: bool | None,
) -> None:
    found = explained(
        events,
        late_ns=late_ns,
        losses=losses,
        state=state,
        machine=MachineTraits(guest=guest),
    )

    edges = [0, *(s.end_ns for s in found.segments)]
    assert [s.begin_ns for s in found.segments] == edges[:-1]
    assert edges[-1] == late_ns
    assert found.residual_ns == 0
    assert sentence(found)
