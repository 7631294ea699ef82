"""From events: who carried an event to the thread that waits, and what took time."""

from dataclasses import replace

import pytest

from fakes.carried import (
    HOG,
    IDLE_1,
    METAL,
    SENDER,
    WORKER,
    Task,
    answered,
    answers,
    begins,
    by,
    hears,
    of_fields,
    parts,
    wakes,
)
from fakes.events import DUE, LOADING, THREAD, switch, thread, window
from rtscope.explain.carrying import UNKNOWN_WAY
from rtscope.explain.events.eventway import explain_gap
from rtscope.explain.events.threadstates import State, TracedWakeup
from rtscope.explain.model import Cause, Confidence, Explanation, Part, Since
from rtscope.explain.words import sentence
from rtscope.record.events.events import Event, Flag

IN_SOFTIRQ = Flag.SOFTIRQ | Flag.IRQS_OFF
IN_INTERRUPT = Flag.HARDIRQ | Flag.IRQS_OFF
KSOFTIRQD: Task = (16, "ksoftirqd/1", 120)
FUTEX = "__x64_sys_futex"
DEVICE: dict[str, int | str] = {"irq": 24, "name": "eth0"}


def told(at_ns: int, by_whom: Task = SENDER, **words: str) -> list[Event]:
    """Return the call that wakes the thread, and the answer: 7 us in all."""
    call = wakes(at_ns, by_whom, thread(), to=0, call=words.get("call", ""))
    return [*call, *hears(at_ns + 3_000), answers(at_ns + 5_000)]


SIMPLE = [*begins(), *told(3_000, call=FUTEX)]


def test_an_event_is_sent_told_by_an_interrupt_and_received() -> None:
    found = answered(SIMPLE, late_ns=9_000)

    assert parts(found) == [
        ("A", 4_000, "SENDING", "the system call futex"),
        ("A", 2_000, "UNKNOWN", "interrupts off in load, or hardware"),
        ("B", 500, "EVENT_INTERRUPT", "reschedule"),
        ("D", 1_500, "SCHEDULER", "from load to the thread"),
        ("E", 1_000, "RETURN", "rtscope/0"),
    ]
    assert not found.notes
    assert not found.broken
    assert found.titles[Part.A] == "the event's way"
    assert "had the event 9.00 µs after it was sent" in sentence(found)


def test_an_interrupt_is_on_its_way_while_its_cpu_had_interrupts_on() -> None:
    enabled = by(LOADING, 5_900, "sys_enter", 0, Flag(0))
    found = answered([*SIMPLE, enabled], late_ns=9_000)
    of_guest = answered(SIMPLE, late_ns=9_000, machine=replace(METAL, guest=True))

    way, guessed = found.segments[1], of_guest.segments[1]
    assert (way.cause, way.name) == (Cause.ON_ITS_WAY, "CPU 1")
    assert way.confidence is Confidence.INFERRED
    assert guessed.cause is Cause.ON_ITS_WAY
    assert guessed.confidence is Confidence.GUESSED
    assert not any("stack" in line for line in guessed.evidence)


def test_an_interrupt_that_comes_before_the_one_that_was_sent_is_an_earlier_one() -> (
    None
):
    tick = [
        of_fields(by(LOADING, at_ns, name, 0, IN_INTERRUPT), vector=236)
        for at_ns, name in ((4_500, "local_timer_entry"), (5_500, "local_timer_exit"))
    ]

    found = answered([*SIMPLE, *tick], late_ns=9_000)

    assert ("A", 1_000, "EARLIER_INTERRUPT", "local_timer") in parts(found)
    assert ("B", 500, "EVENT_INTERRUPT", "reschedule") in parts(found)


def test_in_a_guest_a_long_way_of_an_interrupt_is_the_hosts() -> None:
    call = wakes(3_000, SENDER, thread(), to=0)
    late = [*begins(), *call, *hears(60_000), answers(62_000)]

    found = answered(late, late_ns=63_000, machine=replace(METAL, guest=True))

    assert found.segments[1].cause is Cause.HARDWARE


def test_a_sender_that_a_task_preempted_names_it_and_itself() -> None:
    found = answered(
        [
            *begins(),
            switch(1_000, SENDER, HOG, state="R", cpu=1),
            switch(501_000, HOG, SENDER, cpu=1),
            *told(503_000),
        ],
        late_ns=509_000,
    )

    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.part) == (Cause.OTHER_TASK, Part.A)
    assert found.dominant.name == "hog (real-time, priority 99)"
    assert found.dominant.duration_ns == 500_000
    assert found.dominant.holder == "rtscope-ev/1 on CPU 1 was to carry the event"
    assert not found.broken
    assert parts(found)[0] == ("A", 1_000, "SENDING", "its call")


def queued(at_ns: int, *, work: int = 7) -> Event:
    """Return the event of the sender that queues work."""
    event = by(SENDER, at_ns, "workqueue_queue_work")
    return of_fields(event, work=work, function="flush_to_ldisc")


def works(at_ns: int, *, work: int = 7) -> list[Event]:
    """Return the work that wakes the thread, and the answer."""
    of: dict[str, int | str] = {"work": work, "function": "flush_to_ldisc"}
    begin = of_fields(by(WORKER, at_ns, "workqueue_execute_start"), **of)
    end = of_fields(by(WORKER, at_ns + 4_000, "workqueue_execute_end"), **of)
    return [begin, *told(at_ns + 1_000, WORKER), end]


def test_a_worker_that_carries_the_event_and_comes_late_names_who_kept_it() -> None:
    found = answered(
        [
            *begins(),
            *(queued(1_500), *wakes(2_000, SENDER, WORKER)),
            switch(5_000, SENDER, HOG, state="S", cpu=1),
            switch(305_000, HOG, WORKER, state="S", cpu=1),
            *works(306_000),
        ],
        late_ns=313_000,
    )

    assert parts(found)[:4] == [
        ("A", 4_000, "SENDING", "its call"),
        ("A", 1_000, "NOT_REALTIME", "rtscope-ev/1 (real-time, priority 98)"),
        ("A", 300_000, "NOT_REALTIME", "hog (real-time, priority 99)"),
        ("A", 3_000, "CARRIER", "flush_to_ldisc"),
    ]
    assert found.segments[3].task == "kworker/1:2"
    assert found.segments[2].holder == "kworker/1:2 on CPU 1 was to carry the event"
    assert found.dominant is found.segments[2]
    assert not found.notes


def test_a_worker_that_was_awake_has_the_event_from_where_it_was_queued() -> None:
    busy = [
        switch(-180_000, thread(), LOADING, state="S"),
        switch(-50_000, IDLE_1, WORKER, cpu=1),
        switch(-2_000, WORKER, SENDER, state="R", cpu=1),
    ]
    behind = [switch(5_000, SENDER, WORKER, state="S", cpu=1), *works(40_000)]

    found = answered([*busy, queued(1_500), *behind], late_ns=46_000)
    unknown = answered([*busy, *behind], late_ns=46_000)

    assert parts(found)[:3] == [
        ("A", 1_500, "SENDING", "its call"),
        ("A", 3_500, "NOT_REALTIME", "rtscope-ev/1 (real-time, priority 98)"),
        ("A", 37_000, "CARRIER", "flush_to_ldisc"),
    ]
    assert not found.notes
    assert unknown.segments[0].cause is not Cause.SENDING
    assert unknown.notes == (UNKNOWN_WAY,)


def test_a_worker_that_has_done_its_work_is_in_none() -> None:
    begin, *_, end = works(6_000)
    found = answered(
        [
            *(*begins(), queued(1_500), *wakes(2_000, SENDER, WORKER)),
            *(switch(5_000, SENDER, WORKER, state="S", cpu=1), begin, end),
            *told(20_000, WORKER),
        ],
        late_ns=26_000,
    )

    assert parts(found)[2] == ("A", 16_000, "CARRIER", "its own code")


def test_work_of_another_event_hands_this_one_to_nobody() -> None:
    found = answered(
        [
            *(*begins(), queued(1_500, work=8), *wakes(2_000, SENDER, WORKER)),
            *(switch(5_000, SENDER, WORKER, state="S", cpu=1), *works(6_000)),
        ],
        late_ns=14_000,
    )

    assert parts(found)[0] == ("A", 4_000, "SENDING", "its call")


def test_a_more_urgent_task_of_the_threads_cpu_is_named() -> None:
    found = answered(
        [
            *begins(49, beside=HOG),
            *(e for e in wakes(3_000, SENDER, thread(49), to=0) if "ipi" not in e.name),
            answers(703_000, 49, after=HOG),
        ],
        late_ns=705_000,
    )

    assert parts(found) == [
        ("A", 5_000, "SENDING", "its call"),
        ("D", 698_000, "OTHER_TASK", "hog (real-time, priority 99)"),
        ("E", 2_000, "RETURN", "rtscope/0"),
    ]


def test_an_interrupt_that_nobody_sent_for_the_thread_is_none_of_the_event() -> None:
    call = [e for e in wakes(3_000, SENDER, thread(49), to=0) if "ipi" not in e.name]
    events = [*begins(49, beside=HOG), *call, *hears(400_000, HOG)]

    found = answered([*events, answers(703_000, 49, after=HOG)], late_ns=705_000)

    assert found.dominant is not None
    assert found.dominant.cause is Cause.OTHER_TASK
    assert Cause.OTHER_INTERRUPT in {one.cause for one in found.segments}
    assert Cause.EVENT_INTERRUPT not in {one.cause for one in found.segments}


def test_a_thread_that_was_throttled_says_so() -> None:
    poller: Task = (812, "poller", 49)
    found = answered(
        [
            switch(-990_000, thread(9), poller, state="S"),
            switch(-100_000, poller, LOADING, state="R"),
            switch(-2_000, IDLE_1, SENDER, cpu=1),
            *wakes(3_000, SENDER, thread(9), to=0),
            *hears(6_000),
            switch(49_900_000, LOADING, thread(9), state="R+"),
        ],
        late_ns=49_902_000,
        machine=replace(METAL, release=(6, 6)),
    )

    assert found.dominant is not None
    assert found.dominant.cause is Cause.THROTTLED
    assert "because real-time threads were throttled" in sentence(found)


# --- softirqs and interrupts ----------------------------------------------------------


def raised(
    at_ns: int, whose: Task = SENDER, flags: Flag = Flag.IRQS_OFF, cpu: int = 1
) -> Event:
    """Return the event that raises NET_RX."""
    return of_fields(by(whose, at_ns, "softirq_raise", cpu, flags), vec=3)


def in_softirq(at_ns: int, whose: Task) -> list[Event]:
    """Return NET_RX, which wakes the thread, and the answer."""
    enter = of_fields(by(whose, at_ns, "softirq_entry", flags=IN_SOFTIRQ), vec=3)
    call = wakes(at_ns + 2_000, whose, thread(), to=0, flags=IN_SOFTIRQ)
    leave = of_fields(by(whose, at_ns + 5_000, "softirq_exit", flags=IN_SOFTIRQ), vec=3)
    return [enter, *call, leave, *hears(at_ns + 5_000), answers(at_ns + 7_000)]


def test_a_softirq_that_the_sender_runs_itself_is_its_sending() -> None:
    found = answered(
        [*begins(), raised(1_000), *in_softirq(1_500, SENDER)], late_ns=9_000
    )

    assert parts(found)[0] == ("A", 4_500, "SENDING", "its call")
    assert not found.notes


def test_a_softirq_that_is_left_to_ksoftirqd_waits_for_its_cpu() -> None:
    found = answered(
        [
            *(*begins(), raised(1_000), *wakes(2_000, SENDER, KSOFTIRQD)),
            switch(5_000, SENDER, HOG, state="S", cpu=1),
            switch(90_000, HOG, KSOFTIRQD, state="S", cpu=1),
            *in_softirq(91_000, KSOFTIRQD),
        ],
        late_ns=99_000,
    )

    assert parts(found)[2:4] == [
        ("A", 85_000, "NOT_REALTIME", "hog (real-time, priority 99)"),
        ("A", 4_000, "CARRIER", "softirq NET_RX"),
    ]
    assert found.segments[3].task == "ksoftirqd/1"
    assert not found.notes


def test_what_led_to_the_interrupt_of_a_device_is_unknown() -> None:
    entry = by(LOADING, 20_000, "irq_handler_entry", flags=IN_INTERRUPT)
    end = by(LOADING, 22_000, "irq_handler_exit", flags=IN_INTERRUPT)
    found = answered(
        [
            *begins(),
            switch(5_000, SENDER, LOADING, state="S", cpu=1),
            *(of_fields(entry, **DEVICE), raised(21_000, LOADING, IN_INTERRUPT)),
            *(of_fields(end, **DEVICE), *in_softirq(30_000, LOADING)),
        ],
        late_ns=38_000,
    )

    assert parts(found)[:4] == [
        ("A", 20_000, "UNKNOWN", "what led to eth0 (irq 24) is not in the trace"),
        ("A", 2_000, "EVENT_INTERRUPT", "eth0 (irq 24)"),
        ("A", 8_000, "PREEMPTION_OFF", "load"),
        ("A", 3_000, "EVENT_INTERRUPT", "softirq NET_RX"),
    ]
    assert found.notes == (UNKNOWN_WAY,)


def test_an_interrupt_that_the_sender_sent_to_another_cpu_carries_the_event() -> None:
    to_2 = of_fields(by(SENDER, 2_000, "ipi_send_cpu"), cpu=2)
    idle: Task = (0, "swapper/2", 120)

    def on_2(at_ns: int, name: str, flags: Flag = IN_INTERRUPT, **of: int) -> Event:
        return of_fields(by(idle, at_ns, name, 2, flags), **of)

    found = answered(
        [
            *(*begins(), to_2, on_2(-9_000, "cpu_idle", Flag(0), state=1)),
            on_2(6_000, "call_function_single_entry", vector=251),
            raised(7_000, idle, IN_INTERRUPT, 2),
            on_2(8_000, "call_function_single_exit", vector=251),
            on_2(9_000, "softirq_entry", IN_SOFTIRQ, vec=3),
            *wakes(10_000, idle, thread(), cpu=2, to=0, flags=IN_SOFTIRQ),
            *(*hears(13_000), answers(15_000)),
        ],
        late_ns=16_000,
    )

    assert parts(found)[:3] == [
        ("A", 2_000, "SENDING", "its call"),
        ("A", 4_000, "IDLE_EXIT", "idle state 1"),
        ("A", 2_000, "EVENT_INTERRUPT", "call_function_single"),
    ]
    assert "when the interrupt was sent" in found.segments[1].evidence[0]
    assert not found.notes


# --- what the events do not show ------------------------------------------------------


def test_a_thread_that_was_awake_was_held_up_by_what_ran_meanwhile() -> None:
    tick = [
        of_fields(by(thread(), at_ns, name, 0, IN_INTERRUPT), vector=236)
        for at_ns, name in ((2_000, "local_timer_entry"), (9_000, "local_timer_exit"))
    ]
    awake = [switch(-10_000, LOADING, thread()), switch(-2_000, IDLE_1, SENDER, cpu=1)]

    found = answered([*awake, *tick], late_ns=10_000)

    assert parts(found) == [
        ("E", 2_000, "RETURN", "rtscope/0"),
        ("B", 7_000, "OTHER_INTERRUPT", "local_timer"),
        ("E", 1_000, "RETURN", "rtscope/0"),
    ]
    assert not found.notes


def test_who_woke_the_thread_is_not_guessed_where_that_was_lost() -> None:
    events = [e for e in SIMPLE if e.name not in ("sched_waking", "sched_wakeup")]

    found = answered(events, late_ns=9_000)

    assert parts(found) == [
        ("A", 8_000, "UNKNOWN", "who woke the thread is not in the trace"),
        ("E", 1_000, "RETURN", "rtscope/0"),
    ]
    assert found.notes == (UNKNOWN_WAY,)


def test_of_several_sleeps_the_last_that_leads_to_the_sender_counts() -> None:
    found = answered(
        [
            *(*begins(), *told(3_000)),
            switch(9_000, thread(), LOADING, state="S"),
            *told(30_000, call=FUTEX),
        ],
        late_ns=36_000,
    )

    assert parts(found)[0] == ("A", 31_000, "SENDING", "the system call futex")


def test_a_sleep_that_another_thread_ended_is_a_wait_of_the_thread_itself() -> None:
    other: Task = (600, "other", 120)
    found = answered(
        [
            *(*begins(), *told(3_000)),
            switch(10_000, thread(), LOADING, state="S"),
            *wakes(50_000, other, thread(), cpu=2, to=0),
            *(*hears(53_000), answers(54_000)),
        ],
        late_ns=55_000,
    )

    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.name) == (Cause.BLOCKED, "other-600")
    assert parts(found)[0][2] == "SENDING"


def test_a_sender_that_did_not_run_when_it_read_the_clock_withdraws_the_answer() -> (
    None
):
    found = answered(
        [
            switch(-180_000, thread(), LOADING, state="S"),
            switch(-2_000, SENDER, IDLE_1, state="S", cpu=1),
            *wakes(2_000, IDLE_1, SENDER),
            *(switch(2_500, IDLE_1, SENDER, cpu=1), *told(5_000)),
        ],
        late_ns=11_000,
    )

    assert found.is_withdrawn
    assert "rtscope-ev/1 is sleeping in the trace at the time" in sentence(found)


@pytest.mark.parametrize("lost", range(len(SIMPLE)))
def test_whatever_event_is_lost_the_parts_add_up(lost: int) -> None:
    events = [event for at, event in enumerate(SIMPLE) if at != lost]

    assert answered(events, late_ns=9_000).segments


def test_an_event_of_the_sender_shows_it_run_though_its_switch_was_lost() -> None:
    events = [e for e in SIMPLE if e.numbers.get("next_pid") != SENDER[0]]
    before = switch(-9_000, SENDER, IDLE_1, state="R", cpu=1)

    found: Explanation = answered([before, *events], late_ns=9_000)

    assert not found.broken
    assert "SENDING" in {name for _, _, name, _ in parts(found)}


def test_a_gap_of_a_loop_that_never_sleeps_has_its_causes() -> None:
    tick = [
        of_fields(by(thread(), at_ns, name, 0, IN_INTERRUPT), vector=236)
        for at_ns, name in ((2_000, "local_timer_entry"), (9_000, "local_timer_exit"))
    ]
    taken = [
        switch(20_000, thread(), LOADING, state="R"),
        switch(90_000, LOADING, thread()),
    ]
    around = window([*tick, *taken])
    wakeup = TracedWakeup(
        THREAD, "rtscope/0", 0, DUE, DUE + 95_000, asleep=State.RUNNING
    )

    found = explain_gap(around, wakeup, machine=replace(METAL, release=(6, 6)))

    assert found.since is Since.GAP
    assert found.residual_ns == 0
    assert parts(found) == [
        ("E", 2_000, "RETURN", "rtscope/0"),
        ("B", 7_000, "OTHER_INTERRUPT", "local_timer"),
        ("E", 11_000, "RETURN", "rtscope/0"),
        ("D", 70_000, "THROTTLED", "load (not real-time, nice 0)"),
        ("E", 5_000, "RETURN", "rtscope/0"),
    ]
    assert "had a gap of 95.0 µs" in sentence(found)
