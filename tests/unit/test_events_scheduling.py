"""From events: why a thread that was ready did not run, and how sure that is."""

from dataclasses import replace

import pytest

from fakes.events import (
    ASKED,
    DUE,
    FIFO_50,
    FIFO_80,
    FIFO_99,
    IDLE,
    IRQ,
    LOAD,
    LOADING,
    NICE_0,
    OTHER,
    asleep,
    event,
    explained,
    ran,
    switch,
    thread,
    told,
    woken,
)
from rtscope.explain.events.histories import priority_words
from rtscope.explain.events.threadstates import MachineTraits
from rtscope.explain.model import Cause, Confidence, Explanation, Part, Segment
from rtscope.record.events.events import Event, Flag, Loss

READY_NS = 6_000
"""When the interrupt that woke the thread has ended."""
SOFT = Flag.SOFTIRQ


def waited(*events: Event, machine: MachineTraits | None = None) -> Segment:
    """Return the cause of a wait of 394 us behind an ordinary task."""
    found = explained(
        [*asleep(), *woken(1_000), *events, ran(400_000)],
        late_ns=401_000,
        machine=machine,
    )
    return next(s for s in found.segments if s.end_ns == 400_000)


def behind(
    task: tuple[int, str, int], *, priority: int = FIFO_50, late_ns: int = 400_000
) -> Explanation:
    """Explain a wait behind a task of a priority."""
    pid, comm, _ = task
    way = woken(1_000, pid=pid, comm=comm, priority=priority)
    ends = switch(late_ns, task, thread(priority))
    return explained(
        [*asleep(task, priority=priority), *way, ends], late_ns=late_ns + 1_000
    )


# --- priorities -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("priority", "words"),
    [
        (None, "of unknown priority"),
        (-1, "SCHED_DEADLINE"),
        (0, "real-time, priority 99"),
        (98, "real-time, priority 1"),
        (99, "real-time, priority 0"),
        (100, "not real-time, nice -20"),
        (139, "not real-time, nice 19"),
    ],
)
def test_priorities_of_events_are_written_as_people_set_them(
    priority: int | None, words: str
) -> None:
    assert priority_words(priority) == words


@pytest.mark.parametrize(
    ("other", "ours", "cause", "name"),
    [
        (FIFO_80, FIFO_50, Cause.OTHER_TASK, "hog (real-time, priority 80)"),
        (FIFO_50, FIFO_50, Cause.OTHER_TASK, "hog (real-time, priority 50)"),
        (-1, FIFO_99, Cause.OTHER_TASK, "hog (SCHED_DEADLINE)"),
        (FIFO_80, 100, Cause.NOT_REALTIME, "hog (real-time, priority 80)"),
        (NICE_0, NICE_0, Cause.NOT_REALTIME, "hog (not real-time, nice 0)"),
        (
            130,
            99,
            Cause.UNKNOWN,
            "preemption off in hog, or the hypervisor or hardware",
        ),
    ],
)
def test_a_task_delays_others_of_its_own_priority_and_below(
    other: int, ours: int, cause: Cause, name: str
) -> None:
    found = behind((OTHER, "hog", other), priority=ours)

    assert found.segments[2].begin_ns == READY_NS
    assert told(found)[2][3:] == (cause, name)


def test_a_thread_that_is_not_real_time_shares_its_cpu() -> None:
    found = behind((OTHER, "hog", NICE_0), priority=NICE_0)

    assert found.segments[2].evidence == (
        "hog-200 ran: the thread is not real-time, nice 0, and shares the CPU fairly",
    )
    assert found.notes == (
        "the thread is not real-time, nice 0: any other thread may delay it",
    )


def test_a_task_of_unknown_priority_is_no_cause() -> None:
    sleep = event(-180_000, "sched_migrate_task", pid=OTHER, comm="hog")
    way = woken(1_000, pid=OTHER, comm="hog")
    ends = event(401_000, "x", pid=OTHER, comm="hog")
    found = explained([sleep, *way, ends], late_ns=400_000)

    assert told(found)[2][2:] == (
        *(394_000, Cause.UNKNOWN),
        "hog ran, its priority is not in the trace",
    )


# --- limits of real time ----------------------------------------------------------

SWITCHED = "the scheduler switched to a lower priority task"
FAIR = "this kernel has a fair server, which runs tasks that are not real-time"
ENDS = "sched_rt_period_timer, which ends throttling, expired then"


def timer(at_ns: int, function: str = "sched_rt_period_timer") -> Event:
    return event(at_ns, "hrtimer_expire_entry", pid=OTHER, flags=IRQ, function=function)


@pytest.mark.parametrize(
    ("release", "extra", "cause", "why", "sure"),
    [
        ((6, 12), [], Cause.FAIR_SERVER, FAIR, Confidence.INFERRED),
        ((7, 0), [], Cause.FAIR_SERVER, FAIR, Confidence.INFERRED),
        (
            *((6, 11), [], Cause.THROTTLED),
            *("this kernel throttles real-time threads", Confidence.INFERRED),
        ),
        (
            *(None, [], Cause.THROTTLED),
            "real-time throttling, or since Linux 6.12 the fair server, which does the "
            "same: the trace does not name its kernel",
            Confidence.INFERRED,
        ),
        ((6, 12), [timer(450_000)], Cause.THROTTLED, ENDS, Confidence.INFERRED),
        (
            *((6, 12), [timer(450_000, "sched_rt_period_timer/0x0")]),
            *(Cause.THROTTLED, ENDS, Confidence.INFERRED),
        ),
        (
            (6, 12),
            [timer(450_000, "tick")],
            Cause.FAIR_SERVER,
            FAIR,
            Confidence.INFERRED,
        ),
        ((6, 12), [timer(1_400_000)], Cause.FAIR_SERVER, FAIR, Confidence.INFERRED),
        ((6, 12), [timer(1_399_999)], Cause.THROTTLED, ENDS, Confidence.INFERRED),
        ((6, 12), [timer(-10)], Cause.FAIR_SERVER, FAIR, Confidence.INFERRED),
    ],
)
def test_throttling_and_the_fair_server_are_told_apart(
    release: tuple[int, int] | None,
    extra: list[Event],
    cause: Cause,
    why: str,
    sure: Confidence,
) -> None:
    make = (OTHER, "make", NICE_0)
    machine = MachineTraits(guest=False, preemptible=True, release=release)
    found = explained(
        [
            *(*asleep(), *woken(1_000), switch(20_000, LOADING, make)),
            *(*extra, ran(400_000, after=make)),
        ],
        late_ns=401_000,
        machine=machine,
    )
    limited = next(s for s in found.segments if s.begin_ns == 20_000)

    assert (limited.cause, limited.confidence) == (cause, sure)
    assert limited.evidence[:2] == (
        f"the thread was ready (real-time, priority 99); 17500 ns later {SWITCHED}",
        why,
    )


def test_a_cpu_that_idles_while_the_thread_is_ready_throttles_it() -> None:
    found = explained(
        [
            *asleep(),
            *woken(1_000),
            switch(20_000, LOADING, IDLE),
            ran(400_000, after=IDLE),
        ],
        late_ns=401_000,
    )
    idle = next(s for s in found.segments if s.begin_ns == 20_000)

    assert (idle.cause, idle.name) == (Cause.THROTTLED, "the idle task")
    assert idle.evidence[1] == "the CPU was idle instead: only throttling does that"


def test_a_task_that_was_chosen_before_the_thread_was_queued_was_rightly_chosen() -> (
    None
):
    """It was woken by sched_waking; sched_wakeup put it into the queue later."""
    way = woken(1_000)
    queued = replace(way[3], at_ns=DUE + 30_000)
    make = (OTHER, "make", NICE_0)
    found = explained(
        [
            *(*asleep(), *way[:3], *way[4:], switch(20_000, LOADING, make), queued),
            ran(400_000, after=make),
        ],
        late_ns=401_000,
    )

    assert Cause.FAIR_SERVER not in {s.cause for s in found.segments}


@pytest.mark.parametrize(
    ("after_ns", "flags", "name", "passed"),
    [
        (300_000, Flag(0), "cpu_frequency", True),
        (300_000, ASKED, "cpu_frequency", False),
        (300_000, None, "cpu_frequency", False),
        (400_001, Flag(0), "cpu_frequency", False),
    ],
)
def test_need_resched_that_is_cleared_without_a_switch_shows_the_fair_server(
    after_ns: int, flags: Flag | None, name: str, passed: bool
) -> None:
    later = replace(event(after_ns, name), flags=flags)
    found = waited(event(10_000, "cpu_idle_miss", flags=ASKED), later)

    assert (found.cause is Cause.FAIR_SERVER) is passed
    if passed:
        assert found.evidence[0] == (
            "the thread was ready (real-time, priority 99); need_resched was set and "
            "cleared by +300.000 us (cpu_frequency): the scheduler let a lower "
            "priority task continue"
        )


# --- preemption off ---------------------------------------------------------------

LEFT = MachineTraits(guest=False, preemptible=False, release=(6, 12))
LEFT_GUEST = MachineTraits(guest=True, preemptible=False, release=(6, 12))
CONTINUES = "this kernel does not preempt its own code: a system call continues"


def tick(
    at_ns: int, flags: Flag = IRQ | ASKED, *, depth: int = 0, pid: int = LOAD
) -> Event:
    return event(
        at_ns, "local_timer_entry", pid=pid, flags=flags, depth=depth, vector=236
    )


def tick_ends(at_ns: int, *, pid: int = LOAD) -> Event:
    return event(at_ns, "local_timer_exit", pid=pid, flags=IRQ | ASKED, vector=236)


def test_preemption_is_off_from_preempt_disable_to_preempt_enable() -> None:
    off = event(-50_000, "preempt_disable", caller="exit_mmap")
    on = event(399_999, "preempt_enable", caller="exit_mmap")
    found = waited(off, replace(on, flags=ASKED))

    assert (found.cause, found.confidence) == (Cause.PREEMPTION_OFF, Confidence.SEEN)
    assert found.name == "load (not real-time, nice 0)"
    assert found.evidence == ("preempt_disable by exit_mmap, in load-100",)


@pytest.mark.parametrize(
    ("events", "off"),
    [
        ([event(-9, "preempt_disable", caller="f")], True),
        ([event(-9, "preempt_disable")], True),
        (
            [
                event(-9, "preempt_disable", caller="f"),
                event(-8, "preempt_enable", caller="f"),
            ],
            False,
        ),
        ([event(400_001, "preempt_disable", caller="f")], False),
        (
            [
                event(-9, "preempt_disable", caller="f"),
                event(-8, "preempt_enable", caller="f"),
                event(-7, "preempt_disable", caller="f"),
            ],
            True,
        ),
    ],
)
def test_preemption_that_is_on_again_is_no_cause(
    events: list[Event], off: bool
) -> None:
    found = waited(*events)

    assert (found.cause is Cause.PREEMPTION_OFF) is off
    if off:
        name = events[-1].text("caller") or "an unknown function"
        assert found.evidence == (f"preempt_disable by {name}, in load-100",)


def test_an_interrupt_shows_that_the_task_it_found_had_preemption_off() -> None:
    found = explained(
        [
            *(*asleep(), *woken(1_000), tick(100_000, depth=2)),
            *(tick_ends(103_000), ran(400_000)),
        ],
        late_ns=401_000,
    )
    off = [s for s in found.segments if s.cause is Cause.PREEMPTION_OFF]

    assert [(s.begin_ns, s.end_ns) for s in off] == [
        (READY_NS, 100_000),
        (103_000, 400_000),
    ]
    for one in off:
        assert one.confidence is Confidence.SEEN
        assert one.evidence[0] == (
            "load-100 had preemption off when local_timer interrupted it at "
            "+100.000 us (depth 2)"
        )


def test_need_resched_that_an_interrupt_finds_set_shows_preemption_off() -> None:
    found = waited(tick(100_000), tick_ends(103_000))

    assert found.begin_ns == 103_000
    assert (found.cause, found.confidence) == (
        Cause.PREEMPTION_OFF,
        Confidence.INFERRED,
    )
    assert found.evidence == (
        "need_resched was set when local_timer came at +100.000 us, and load-100 "
        "continued after it",
    )


@pytest.mark.parametrize(
    ("entry", "cause"),
    [
        (tick(100_000, IRQ), Cause.FAIR_SERVER),  # need_resched was cleared
        (replace(tick(100_000), flags=None), Cause.UNKNOWN),
        (tick(100_000, depth=1, pid=OTHER), Cause.UNKNOWN),
    ],
)
def test_an_interrupt_of_another_task_or_without_flags_shows_nothing(
    entry: Event, cause: Cause
) -> None:
    ends = replace(tick_ends(103_000, pid=entry.pid), flags=entry.flags)

    assert waited(entry, ends).cause is cause


@pytest.mark.parametrize(
    "events",
    [
        (tick(100_000, IRQ), replace(tick_ends(103_000), flags=IRQ)),
        (event(100_000, "sys_enter", flags=Flag(0)),),
    ],
)
def test_need_resched_that_is_always_clear_shows_nothing(
    events: tuple[Event, ...],
) -> None:
    way = [replace(e, flags=(e.flags or Flag(0)) & ~ASKED) for e in woken(1_000)]
    found = explained([*asleep(), *way, *events, ran(400_000)], late_ns=401_000)
    last = next(s for s in found.segments if s.end_ns == 400_000)

    assert last.cause is Cause.UNKNOWN
    assert last.name.startswith("preemption off in load, or the hypervisor")


def test_need_resched_that_stays_set_shows_preemption_off() -> None:
    asked = (
        event(50_000 + n, name, flags=ASKED)
        for n, name in enumerate(("a", "b", "c", "b"))
    )
    found = waited(*asked)

    assert found.cause is Cause.PREEMPTION_OFF
    assert (
        found.evidence
        == (
            "need_resched was set, and load-100 continued (b, c)",
            "last events of load-100: hrtimer_expire_exit, local_timer_exit",
        )
        or found.evidence[0] == "need_resched was set, and load-100 continued (b, c)"
    )


@pytest.mark.parametrize(
    ("machine", "cause", "confidence", "evidence"),
    [
        (LEFT, Cause.NOT_PREEMPTED, Confidence.INFERRED, (CONTINUES,)),
        (
            *(LEFT_GUEST, Cause.NOT_PREEMPTED, Confidence.GUESSED),
            (
                CONTINUES,
                "guessed: in a guest, a delay by the hypervisor looks the same",
            ),
        ),
        (
            *(MachineTraits(), Cause.UNKNOWN, Confidence.GUESSED),
            ("no event of this time shows which",),
        ),
    ],
)
def test_a_kernel_that_is_not_preemptible_continues_its_own_code(
    machine: MachineTraits,
    cause: Cause,
    confidence: Confidence,
    evidence: tuple[str, ...],
) -> None:
    found = waited(machine=machine)

    assert (found.part, found.cause, found.confidence) == (Part.C, cause, confidence)
    assert found.evidence[: len(evidence)] == evidence
    assert found.evidence[-1].startswith("last events of load-100: ")


@pytest.mark.parametrize(
    ("late_ns", "cause"),
    [(56_000, Cause.SCHEDULER), (56_001, Cause.UNKNOWN)],
)
def test_50_us_to_the_switch_are_the_schedulers_own_and_more_are_not(
    late_ns: int, cause: Cause
) -> None:
    found = explained([*asleep(), *woken(1_000), ran(late_ns)], late_ns=late_ns + 1_000)

    assert told(found)[2][2:4] == (late_ns - READY_NS, cause)


@pytest.mark.parametrize(
    "shows",
    [
        (),
        (event(100_000, "sys_enter", flags=ASKED),),
        (tick(100_000), tick_ends(103_000)),
        (event(-50_000, "preempt_disable", caller="exit_mmap"),),
    ],
    ids=["preemption model", "need_resched", "interrupt", "preempt_disable"],
)
def test_the_stack_that_the_timer_found_shows_where_the_task_was(
    shows: tuple[Event, ...],
) -> None:
    functions = "a < asm_sysvec_x < f1 < f2 < f3 < f4 < f5 < f6 < f7"
    stack = event(2_000, "kernel_stack", flags=IRQ, stack=functions)
    found = waited(stack, *shows, machine=LEFT)
    apart = replace(stack, at_ns=DUE + 900, flags=Flag(0))
    other = waited(apart, *shows, machine=LEFT)

    shown = "the timer interrupt found it in f1 < f2 < f3 < f4 < f5 < f6 < f7"
    off = [event.name for event in shows] == ["preempt_disable"]
    assert found.cause is (Cause.PREEMPTION_OFF if off else Cause.NOT_PREEMPTED)
    assert shown in found.evidence
    assert shown not in other.evidence


# --- interrupts and softirqs ------------------------------------------------------


def test_other_interrupts_and_softirqs_have_parts_of_their_own() -> None:
    found = explained(
        [
            *(*asleep(), *woken(1_000), tick(50_000), tick_ends(60_000)),
            event(70_000, "softirq_entry", flags=SOFT, vec=3),
            event(80_000, "timer_expire_entry", flags=SOFT, function="poll"),
            event(95_000, "timer_expire_exit", flags=SOFT),
            event(100_000, "softirq_exit", flags=SOFT, vec=3),
            ran(110_000),
        ],
        late_ns=111_000,
    )

    assert [one for one in told(found) if one[0] in (Part.B, Part.C)] == [
        (Part.B, 1_000, 5_000, Cause.TIMER_INTERRUPT, "local_timer"),
        (Part.B, 50_000, 10_000, Cause.OTHER_INTERRUPT, "local_timer"),
        (Part.C, 70_000, 10_000, Cause.SOFTIRQ, "NET_RX"),
        (Part.C, 80_000, 15_000, Cause.SOFTIRQ, "NET_RX: poll"),
        (Part.C, 95_000, 5_000, Cause.SOFTIRQ, "NET_RX"),
    ]


def test_a_callback_after_the_threads_own_is_anothers() -> None:
    way = woken(1_000)
    later = (
        event(4_100, "hrtimer_expire_entry", flags=IRQ, function="tick"),
        event(5_600, "hrtimer_expire_exit", flags=IRQ),
    )
    found = explained([*asleep(), *way, *later, ran(7_000)], late_ns=8_000)

    one = next(s for s in found.segments if s.cause is Cause.TIMER_CALLBACK)
    assert (one.part, one.begin_ns, one.end_ns, one.name) == (
        *(Part.B, 4_100, 5_600),
        "tick",
    )
    assert one.evidence == ("1 expired one after another",)


def test_lost_events_are_told_with_their_number_and_reason() -> None:
    def lost(count: int | None) -> str:
        loss = Loss(0, DUE + READY_NS, DUE + 350_000, count, "the ring was full")
        late = event(350_000, "cpu_frequency")
        found = explained(
            [*asleep(), *woken(1_000), late, ran(400_000)],
            late_ns=401_000,
            losses=[loss],
        )
        return next(s.name for s in found.segments if s.end_ns == 350_000)

    assert lost(12) == "12 events are missing: the ring was full"
    assert lost(None) == "events are missing: the ring was full"
