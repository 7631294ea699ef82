"""From events: who woke the thread, and what it did itself until its own code ran."""

from dataclasses import replace

import pytest

from fakes.events import (
    DUE,
    FIFO_50,
    FIFO_80,
    IDLE,
    IRQ,
    LOAD,
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
    window,
    woken,
)
from rtscope.explain.events.explain import explain_events
from rtscope.explain.events.threadstates import (
    MachineTraits,
    State,
    TracedWakeup,
)
from rtscope.explain.model import Cause, Confidence, Explanation, Part, Segment
from rtscope.record.events.events import Event, Flag, Loss

BASH = (OTHER, "bash", NICE_0)
SCHEDULER = frozenset({"sched_switch", "sched_waking"})


def waking(at_ns: int, pid: int = OTHER, comm: str = "bash", *, cpu: int = 0) -> Event:
    """Another wakes the thread, in no interrupt."""
    fields: dict[str, int | str] = {
        **{"pid": THREAD, "comm": "rtscope/0"},
        **{"prio": 0, "target_cpu": cpu},
    }
    return Event(DUE + at_ns, 0, "sched_waking", pid, comm, Flag(0), 1, fields)


def fault(
    at_ns: int, name: str = "page_fault_user", address: int | str = 0xABC
) -> Event:
    off = Flag.IRQS_OFF
    one = event(at_ns, name, pid=THREAD, comm="rtscope/0", flags=off)
    return replace(one, fields={"address": address})


def after(found: Explanation, at_ns: int) -> list[Segment]:
    return [s for s in found.segments if s.begin_ns >= at_ns]


# --- who woke it ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pid", "comm", "cause", "name"),
    [
        (OTHER, "bash", Cause.UNKNOWN, "woken by bash-200, not by a timer"),
        (OTHER, "", Cause.UNKNOWN, "woken by <...>-200, not by a timer"),
        (0, "swapper/0", Cause.UNKNOWN, "woken by an interrupt, not by a timer"),
        (17, "ktimers/0", Cause.LATE_TIMER, "ktimers/0"),
        (17, "ksoftirqd/0", Cause.LATE_TIMER, "ksoftirqd/0"),
        (17, "xksoftirqd/0", Cause.UNKNOWN, "woken by xksoftirqd/0-17, not by a timer"),
    ],
)
def test_who_woke_the_thread_is_told_and_a_timers_thread_is_a_timer(
    pid: int, comm: str, cause: Cause, name: str
) -> None:
    waker = (pid, comm, NICE_0)
    found = explained(
        [*asleep(waker), waking(50_000, pid, comm), ran(60_000, after=waker)],
        late_ns=61_000,
    )

    assert told(found)[0] == (Part.A, 0, 50_000, cause, name)


@pytest.mark.parametrize(
    ("flags", "known", "name"),
    [
        (None, SCHEDULER, "the trace has no interrupts, so it does not show the waker"),
        (None, SCHEDULER | {"x_entry"}, "woken by bash-200, not by a timer"),
        (Flag(0), SCHEDULER, "woken by bash-200, not by a timer"),
    ],
)
def test_without_flags_and_interrupts_the_task_that_ran_is_not_taken_for_the_waker(
    flags: Flag | None, known: frozenset[str], name: str
) -> None:
    way = [*asleep(BASH), waking(50_000), ran(60_000, after=BASH)]
    found = explained(
        [replace(e, flags=flags) for e in way], late_ns=61_000, known=known
    )

    assert told(found)[0] == (Part.A, 0, 50_000, Cause.UNKNOWN, name)
    assert bool(found.notes) is ("x_entry" not in known)


def test_a_thread_that_nothing_woke_has_no_cause() -> None:
    found = explained(asleep(), late_ns=50_000)

    assert told(found) == [
        (Part.A, 0, 50_000, Cause.UNKNOWN, "no event that woke the thread")
    ]


def test_a_new_thread_is_woken_too() -> None:
    new = replace(waking(50_000), name="sched_wakeup_new")
    found = explained([*asleep(BASH), new, ran(60_000, after=BASH)], late_ns=61_000)

    assert told(found)[0][4] == "woken by bash-200, not by a timer"


# --- what it did ------------------------------------------------------------------


def test_a_thread_that_still_ran_when_its_timer_was_due_is_told_as_such() -> None:
    found = explained(
        [
            switch(-300_000, LOADING, thread()),
            switch(40_000, thread(), LOADING, state="S"),
            *woken(50_000),
            ran(60_000),
        ],
        late_ns=61_000,
        state=State.UNKNOWN,
    )

    first = found.segments[0]
    assert told(found)[0] == (
        *(Part.A, 0, 40_000),
        *(Cause.RETURN, "rtscope/0 itself still ran"),
    )
    assert first.confidence is Confidence.SEEN


def test_a_thread_that_sleeps_again_before_its_own_code_has_no_cause() -> None:
    again = switch(10_000, thread(), LOADING, state="S")
    found = explained(
        [*asleep(), *woken(1_000), ran(7_000), again, *woken(500_000), ran(510_000)],
        late_ns=512_000,
    )

    assert told(found)[4] == (
        *(Part.E, 10_000, 491_500),
        *(Cause.UNKNOWN, "the thread slept again before its own code"),
    )


@pytest.mark.parametrize(
    ("state", "cause", "name"),
    [("T", Cause.STOPPED, "SIGSTOP"), ("t", Cause.TRACED, "a debugger")],
)
def test_a_thread_that_is_stopped_after_its_wake_up_waits_in_part_d(
    state: str, cause: Cause, name: str
) -> None:
    stop = switch(10_000, thread(), BASH, state=state)
    found = explained(
        [
            *(*asleep(), *woken(1_000), ran(7_000), stop),
            *(waking(500_000), ran(510_000, after=BASH)),
        ],
        late_ns=512_000,
    )

    assert told(found)[4] == (
        *(Part.D, 10_000, 490_000),
        *(cause, name),
    )


@pytest.mark.parametrize(
    ("faults", "cause", "name"),
    [
        ([], Cause.UNKNOWN, "the thread waited in the kernel (state D)"),
        ([fault(8_000)], Cause.PAGE_FAULT, "rtscope/0"),
        ([fault(10_000)], Cause.PAGE_FAULT, "rtscope/0"),  # as it was switched out
        ([fault(-500)], Cause.UNKNOWN, "the thread waited in the kernel (state D)"),
        (
            [replace(fault(8_000), pid=OTHER)],
            *(Cause.UNKNOWN, "the thread waited in the kernel (state D)"),
        ),
        # the kernel serves none with preemption off: perf copied beyond a stack's end
        (
            [replace(fault(8_000, "page_fault_kernel"), preempt_depth=2)],
            *(Cause.UNKNOWN, "the thread waited in the kernel (state D)"),
        ),
    ],
)
def test_a_wait_in_the_kernel_is_a_page_faults_if_one_came_before(
    faults: list[Event], cause: Cause, name: str
) -> None:
    waits = switch(10_000, thread(), BASH, state="D")
    found = explained(
        [
            *(*asleep(), *woken(1_000), ran(7_000), *faults, waits),
            *(waking(500_000), ran(510_000, after=BASH)),
        ],
        late_ns=512_000,
    )

    waited = next(s for s in found.segments if s.end_ns == 500_000)
    assert (waited.part, waited.cause, waited.name) == (Part.E, cause, name)
    if cause is Cause.PAGE_FAULT:
        assert waited.evidence[-1] == (
            "page_fault_user, then the thread waited in state D"
        )
        assert waited.confidence is Confidence.INFERRED


@pytest.mark.parametrize(
    ("flags", "waker"),
    [
        (Flag(0), "bash-200"),
        (Flag.HARDIRQ | Flag.IRQS_OFF, "an interrupt"),
        (Flag.SOFTIRQ, "an interrupt"),
    ],
)
def test_the_task_that_an_interrupt_met_did_not_end_a_wait(
    flags: Flag, waker: str
) -> None:
    found = explained(
        [
            *(*asleep(), *woken(1_000), ran(7_000)),
            switch(10_000, thread(), BASH, state="S"),
            *(replace(waking(500_000), flags=flags), ran(510_000, after=BASH)),
        ],
        late_ns=512_000,
        to_the_end=True,
    )

    waited = next(s for s in found.segments if s.end_ns == 500_000)
    assert (waited.cause, waited.name) == (Cause.BLOCKED, waker)


def test_a_page_fault_of_a_cycle_takes_not_all_that_follows_it() -> None:
    """The thread goes on with its own work, and no event says when it did."""
    found = explained(
        [*asleep(), *woken(1_000), ran(7_000), fault(15_000)],
        late_ns=900_000,
        to_the_end=True,
    )

    assert told(found)[-1] == (Part.E, 7_000, 893_000, Cause.OWN_CODE, "rtscope/0")
    assert found.segments[-1].evidence == (
        "page_fault_user at +15.000 us, address 0xabc",
    )


def test_interrupts_softirqs_and_faults_on_the_way_back_are_told_apart() -> None:
    def step(at_ns: int, name: str, flags: Flag, **fields: int) -> Event:
        return event(at_ns, name, pid=THREAD, comm="x", flags=flags, **fields)

    found = explained(
        [
            *(*asleep(), *woken(1_000), ran(7_000)),
            step(8_000, "local_timer_entry", IRQ, vector=236),
            event(8_500, "hrtimer_expire_entry", pid=THREAD, flags=IRQ, function="f"),
            step(9_000, "hrtimer_expire_exit", IRQ),
            step(10_000, "local_timer_exit", IRQ, vector=236),
            step(11_000, "softirq_entry", Flag.SOFTIRQ, vec=1),
            step(13_000, "softirq_exit", Flag.SOFTIRQ, vec=1),
            *(fault(15_000), fault(16_000, address="y")),
            *(fault(17_000 + n) for n in range(3)),
        ],
        late_ns=20_000,
    )

    assert told(found)[3:] == [
        (Part.E, 7_000, 1_000, Cause.RETURN, "rtscope/0"),
        (Part.B, 8_000, 500, Cause.OTHER_INTERRUPT, "local_timer"),
        (Part.B, 8_500, 500, Cause.OTHER_INTERRUPT, "f"),
        (Part.B, 9_000, 1_000, Cause.OTHER_INTERRUPT, "local_timer"),
        (Part.E, 10_000, 1_000, Cause.RETURN, "rtscope/0"),
        (Part.E, 11_000, 2_000, Cause.SOFTIRQ, "TIMER"),
        (Part.E, 13_000, 2_000, Cause.RETURN, "rtscope/0"),
        (Part.E, 15_000, 5_000, Cause.PAGE_FAULT, "rtscope/0"),
    ]
    assert found.segments[-1].evidence == (
        "page_fault_user at +15.000 us, address 0xabc",
        "page_fault_user at +16.000 us, address y",
        "page_fault_user at +17.000 us, address 0xabc",
        "page_fault_user at +17.001 us, address 0xabc",
    )


def test_a_fault_of_the_first_instruction_leaves_no_time_before_it() -> None:
    found = explained(
        [*asleep(), *woken(1_000), ran(7_000), fault(7_000)], late_ns=20_000
    )

    assert told(found)[3:] == [(Part.E, 7_000, 13_000, Cause.PAGE_FAULT, "rtscope/0")]


def test_a_fault_after_its_own_code_began_is_none_of_the_way_back() -> None:
    found = explained(
        [*asleep(), *woken(1_000), ran(7_000), fault(20_000), fault(21_000)],
        late_ns=20_000,
    )

    assert told(found)[3:] == [(Part.E, 7_000, 13_000, Cause.RETURN, "rtscope/0")]


def test_events_that_were_lost_on_the_way_back_have_no_cause() -> None:
    loss = Loss(0, DUE + 7_000, DUE + 40_000, 3, "the ring buffer was full")
    later = event(40_000, "x", pid=THREAD, comm="rtscope/0")
    found = explained(
        [*asleep(), *woken(1_000), ran(7_000), later], late_ns=50_000, losses=[loss]
    )

    assert told(found)[3:] == [
        (Part.E, 7_000, 33_000, Cause.UNKNOWN, "events were lost, or the trace ends"),
        (Part.E, 40_000, 10_000, Cause.RETURN, "rtscope/0"),
    ]


def test_a_thread_that_is_preempted_on_its_way_waits_for_who_preempted_it() -> None:
    hog = (OTHER, "hog", FIFO_80)
    found = explained(
        [
            *asleep(priority=FIFO_50),
            *woken(1_000, priority=FIFO_50),
            switch(7_000, LOADING, thread(FIFO_50)),
            switch(10_000, thread(FIFO_50), hog),
            switch(60_000, hog, thread(FIFO_50)),
        ],
        late_ns=61_000,
    )

    assert told(found)[4] == (
        *(Part.D, 10_000, 50_000),
        *(Cause.OTHER_TASK, "hog (real-time, priority 80)"),
    )


def test_a_lower_task_that_is_chosen_instead_shows_a_limit_of_real_time() -> None:
    low = (OTHER, "low", NICE_0)
    found = explained(
        [
            *(*asleep(), *woken(1_000), ran(7_000)),
            *(switch(10_000, thread(), low), ran(60_000, after=low)),
        ],
        late_ns=61_000,
    )

    assert told(found)[4][3:] == (Cause.FAIR_SERVER, "low (not real-time, nice 0)")
    assert found.segments[4].evidence[0] == (
        "the thread was ready (real-time, priority 99); 0 ns later the scheduler "
        "switched to a lower priority task"
    )


# --- slack ------------------------------------------------------------------------


def armed(*, soft: int, hard: int, at_ns: int = -190_000, pid: int = THREAD) -> Event:
    one = event(at_ns, "hrtimer_start", pid=pid, comm="rtscope/0")
    return replace(one, fields={"softexpires": soft, "expires": hard})


@pytest.mark.parametrize(
    ("timer", "slack_ns"),
    [
        (armed(soft=DUE, hard=DUE + 50_000), 50_000),
        (armed(soft=DUE + 1, hard=DUE + 50_001), 50_000),
        (armed(soft=DUE + 2, hard=DUE + 50_002), 0),
        (armed(soft=DUE - 2, hard=DUE + 50_000), 0),
        (armed(soft=DUE, hard=DUE + 70_000), 51_000),  # it expired before that
        (armed(soft=DUE, hard=DUE - 50_000), 0),
        (armed(soft=DUE, hard=DUE + 50_000, pid=OTHER), 0),
        (armed(soft=DUE, hard=DUE + 50_000, at_ns=1), 0),
        (armed(soft=DUE, hard=DUE + 50_000, at_ns=0), 50_000),
    ],
)
def test_slack_is_that_of_the_threads_own_timer(timer: Event, slack_ns: int) -> None:
    # It was not real-time when it went to sleep.
    sleep = asleep(priority=NICE_0)[1]
    found = explained(
        [
            *(timer, sleep, *woken(51_000, priority=NICE_0)),
            switch(57_000, LOADING, thread(NICE_0)),
        ],
        late_ns=58_000,
    )

    told_ns = sum(s.duration_ns for s in found.segments if s.cause is Cause.TIMER_SLACK)
    assert told_ns == slack_ns


# --- what limits an explanation ---------------------------------------------------

PROMPT = [*asleep(), *woken(1_000), ran(7_000)]
WAKEUP = TracedWakeup(
    *(THREAD, "rtscope/0", 0, DUE, DUE + 8_000), asleep=State.SLEEPING
)


@pytest.mark.parametrize(
    ("wakeup", "changes", "notes"),
    [
        (WAKEUP, {}, []),
        (
            *(replace(WAKEUP, programmed=False), {}),
            [
                "the expiry of the timer is unknown: the path begins where the thread "
                "was woken"
            ],
        ),
        (
            *(replace(WAKEUP, to_the_switch=True), {}),
            ["the path ends at the switch to the thread: its own code has no event"],
        ),
        (
            *(WAKEUP, {"resolution_ns": 1_000}),
            [
                "the resolution of the trace is 1000 ns: shorter segments cannot be "
                "distinguished"
            ],
        ),
        (
            *(WAKEUP, {"known": frozenset({"sched_switch", "x_entry"})}),
            ["the trace has no sched_waking events"],
        ),
        (
            *(WAKEUP, {"known": frozenset({"x_entry"})}),
            ["the trace has no sched_switch and no sched_waking events"],
        ),
        (
            *(WAKEUP, {"known": SCHEDULER}),
            [
                "the trace has no entries of interrupts: they are seen only from the "
                "first event inside"
            ],
        ),
    ],
)
def test_what_the_trace_does_not_show_is_noted(
    wakeup: TracedWakeup, changes: dict[str, object], notes: list[str]
) -> None:
    seen = replace(window(PROMPT), **changes)  # type: ignore[arg-type]
    found = explain_events(seen, wakeup, machine=MachineTraits())

    assert list(found.notes) == notes


def test_a_thread_that_migrated_is_noted_with_its_cpus() -> None:
    moved = event(56_000, "sched_migrate_task", pid=OTHER, comm="bash")
    other = replace(moved, at_ns=DUE + 55_000, fields={"pid": 9, "dest_cpu": 3})
    found = explained(
        [
            *(*asleep(BASH), waking(50_000, cpu=1), other),
            *(replace(moved, fields={"pid": THREAD, "dest_cpu": 0}),),
            ran(60_000, after=BASH),
        ],
        late_ns=61_000,
    )

    assert found.notes == ("the thread migrated: it waited on CPUs 0, 1",)
    assert told(found)[1:3] == [
        (Part.D, 50_000, 6_000, Cause.UNKNOWN, "the trace has no events of this time"),
        (Part.D, 56_000, 4_000, Cause.SCHEDULER, "from bash to the thread"),
    ]


@pytest.mark.parametrize(("measured_on", "cpu"), [(0, 0), (1, 1), (None, 0)])
def test_a_wake_up_is_of_the_cpu_it_was_measured_on_or_of_the_last(
    measured_on: int | None, cpu: int
) -> None:
    wakeup = replace(WAKEUP, cpu=measured_on)

    assert explain_events(window(PROMPT), wakeup, machine=MachineTraits()).cpu == cpu


def test_a_cpu_that_no_event_names_is_unknown() -> None:
    ready = replace(WAKEUP, cpu=None, asleep=State.RUNNABLE)
    found = explain_events(window([]), ready, machine=MachineTraits())

    assert told(found) == [(Part.D, 0, 8_000, Cause.UNKNOWN, "its CPU is unknown")]
    assert found.cpu == 0


def test_a_blocked_thread_that_is_never_woken_is_told_by_its_state() -> None:
    blocked = replace(WAKEUP, asleep=State.BLOCKED)
    unknown = replace(WAKEUP, asleep=State.UNKNOWN)

    for wakeup, part, name in (
        (blocked, Part.E, "the thread waited in the kernel (state D)"),
        (unknown, Part.A, "no event of the thread in the trace"),
    ):
        found = explain_events(window([]), wakeup, machine=MachineTraits())
        assert told(found) == [(part, 0, 8_000, Cause.UNKNOWN, name)]


def test_an_idle_cpu_that_another_wakes_leaves_idle_for_the_thread() -> None:
    found = explained(
        [*asleep(IDLE), waking(50_000, 0, "swapper/0"), ran(60_000, after=IDLE)],
        late_ns=61_000,
    )

    assert told(found)[1] == (
        *(Part.D, 50_000, 10_000),
        *(Cause.SCHEDULER, "from idle to the thread"),
    )


def test_without_any_interrupt_a_wait_behind_another_task_has_no_cause() -> None:
    found = explained(
        [*asleep(), waking(1_000, LOAD, "load"), ran(400_000)],
        late_ns=401_000,
    )

    waited = next(s for s in found.segments if s.end_ns == 400_000)
    assert (waited.part, waited.cause) == (Part.C, Cause.UNKNOWN)


def test_a_cpu_that_another_wakes_from_an_idle_state_leaves_this_state() -> None:
    idle = event(-100_000, "cpu_idle", pid=0, comm="swapper/0", state=2)
    found = explained(
        [*asleep(IDLE), idle, waking(50_000, 0, "swapper/0"), ran(60_000, after=IDLE)],
        late_ns=61_000,
    )

    assert told(found)[1] == (
        *(Part.D, 50_000, 10_000),
        *(Cause.IDLE_EXIT, "idle state 2"),
    )


def test_a_thread_that_comes_from_nowhere_was_not_ready_all_the_time() -> None:
    """It was created, or its wake-up is not in the trace: nobody knows since when."""
    found = explained(
        [switch(-500_000, LOADING, BASH), switch(400_000, BASH, thread(FIFO_50))],
        late_ns=401_000,
        state=State.UNKNOWN,
    )

    assert told(found)[0] == (
        *(Part.A, 0, 400_000),
        *(Cause.UNKNOWN, "no event of the thread in the trace"),
    )


def test_a_timer_that_was_started_when_it_was_due_already_is_told() -> None:
    start = event(
        100_000,
        "hrtimer_start",
        pid=THREAD,
        comm="rtscope/0",
        hrtimer=1,
        expires=DUE,
        softexpires=DUE,
        function="hrtimer_wakeup",
    )
    sleeps = switch(101_000, thread(), LOADING, state="S")
    found = explained(
        [
            switch(-9_000, LOADING, thread()),
            start,
            sleeps,
            *woken(110_000),
            ran(130_000),
        ],
        late_ns=131_000,
        state=State.SLEEPING,
    )

    assert any("started its timer 100.000 us after it was" in x for x in found.notes)
