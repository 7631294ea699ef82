"""Explanations from events, on lists of them that are made to the nanosecond."""

from dataclasses import replace

import pytest

from fakes.events import (
    ASKED,
    AWAKE,
    DUE,
    FIFO_50,
    FIFO_80,
    IDLE,
    IRQ,
    KNOWN,
    LOADING,
    NICE_0,
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
from rtscope.explain.model import Cause, Confidence, Explanation, Part
from rtscope.explain.threadway import Machine
from rtscope.explain.words import doubts, sentence
from rtscope.ftrace.events import Event, Flag

BARE = Machine(guest=False, preemptible=True, release=(6, 12))


GUEST = Machine(guest=True, preemptible=True, release=(6, 12))


Told = tuple[Part, int, int, Cause, str]


def told(explanation: Explanation) -> list[Told]:
    return [
        (s.part, s.begin_ns, s.duration_ns, s.cause, s.name)
        for s in explanation.stretches
    ]


def test_a_prompt_wake_up_is_cut_into_its_five_parts() -> None:
    found = explained([*asleep(), *woken(1_000), ran(7_000)], late_ns=8_000)

    assert told(found) == [
        (Part.A, 0, 1_000, Cause.UNKNOWN, "interrupts off in load, or hardware"),
        (Part.B, 1_000, 5_000, Cause.TIMER_INTERRUPT, "local_timer"),
        (Part.D, 6_000, 1_000, Cause.SCHEDULER, "from load to the thread"),
        (Part.E, 7_000, 1_000, Cause.RETURN, "rtscope/0"),
    ]
    assert found.residual_ns == 0


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

    assert found.culprit is not None
    assert found.culprit.cause is Cause.OTHER_TASK
    assert found.culprit.name == "hog (real-time, priority 80)"
    assert found.culprit.evidence == (
        "hog-200 is real-time, priority 80; the thread real-time, priority 50",
    )
    assert found.culprit.confidence is Confidence.SEEN
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

    assert found.culprit is not None
    assert found.culprit.name == "hog (real-time, priority 80)"
    assert "for 202 another task ran: hog (real-time, priority 80)" in sentence(found)
    assert of(found, Cause.OTHER_INTERRUPT) == 3_000


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
        *(Cause.STOPPED, "SIGSTOP, or a debugger"),
    )
    assert found.stretches[0].evidence == (
        "it was switched out in state T",
        "woken again by bash-200",
    )
    assert "the thread itself was stopped" in sentence(found)


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

    assert found.culprit is not None
    assert found.culprit.cause is Cause.FAIR_SERVER
    assert found.culprit.name == "load (not real-time, nice 0)"
    assert of(found, Cause.FAIR_SERVER) == 8_989_000
    assert "need_resched was set, and no longer" in found.culprit.evidence[0]


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

    assert found.culprit is not None
    assert found.culprit.cause is Cause.THROTTLED
    assert found.culprit.name == "make (not real-time, nice 0)"


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

    assert found.culprit is not None
    assert found.culprit.cause is Cause.ORDINARY
    assert any("not real-time" in note for note in found.notes)


def test_preemption_that_was_off_when_the_interrupt_came_is_seen() -> None:
    found = explained(
        [*asleep(), *woken(1_000, depth=1), ran(400_000)], late_ns=401_000
    )

    assert found.culprit is not None
    assert found.culprit.cause is Cause.PREEMPTION_OFF
    assert found.culprit.part is Part.C
    assert found.culprit.confidence is Confidence.SEEN
    assert found.culprit.evidence == (
        "load-100 had preemption off when local_timer interrupted it at +1.000 us "
        "(depth 1)",
    )


def test_where_nothing_tells_preemption_from_hardware_no_cause_is_claimed() -> None:
    found = explained([*asleep(), *woken(1_000), ran(400_000)], late_ns=401_000)

    assert found.culprit is not None
    assert found.culprit.cause is Cause.UNKNOWN
    assert found.attributed_share < 0.05
    assert any("is not known" in doubt for doubt in doubts(found))


def test_a_softirq_is_named_by_its_number() -> None:
    found = explained(
        [
            *asleep(),
            *woken(1_000),
            event(7_000, "softirq_entry", flags=Flag.SOFTIRQ | ASKED, vec=3),
            event(307_000, "softirq_exit", flags=Flag.SOFTIRQ | ASKED, vec=3),
            ran(310_000),
        ],
        late_ns=311_000,
    )

    assert (Part.C, 7_000, 300_000, Cause.SOFTIRQ, "NET_RX") in told(found)


def test_a_storm_of_timers_is_one_cause_with_the_number_of_timers() -> None:
    storm = [
        event(1_000 + at, name, flags=IRQ, function="posix_timer_fn", hrtimer=9)
        for n in range(40)
        for at, name in (
            (500 + 5_000 * n, "hrtimer_expire_entry"),
            (4_000 + 5_000 * n, "hrtimer_expire_exit"),
        )
    ]
    found = explained(
        [*asleep(), *woken(1_000, before=storm), ran(210_000)], late_ns=211_000
    )

    assert found.culprit is not None
    assert found.culprit.cause is Cause.TIMER_CALLBACK
    assert found.culprit.name == "posix_timer_fn"
    assert found.culprit.duration_ns == 198_500
    assert found.culprit.evidence == ("40 expired one after another",)


def test_a_timer_due_inside_an_interrupt_waits_for_what_expires_before_it() -> None:
    """It expires in the interrupt that has begun already: nothing is part A."""
    first = event(-1_000, "hrtimer_expire_entry", flags=IRQ, function="a_long_one")
    last = event(300_000, "hrtimer_expire_exit", flags=IRQ)
    found = explained(
        [
            *asleep(),
            *woken(-2_000, before=[first, last]),
            ran(310_000),
        ],
        late_ns=311_000,
    )

    assert found.part_ns(Part.A) == 0
    assert of(found, Cause.TIMER_CALLBACK) == 300_000


def test_an_earlier_interrupt_keeps_the_timers_away() -> None:
    found = explained(
        [
            *asleep(),
            event(-3_000, "irq_handler_entry", flags=IRQ, irq=5, name="nvme0q1"),
            event(250_000, "irq_handler_exit", flags=IRQ, irq=5, name="nvme0q1"),
            *woken(251_000),
            ran(258_000),
        ],
        late_ns=259_000,
    )

    assert told(found)[0] == (
        *(Part.A, 0, 250_000),
        *(Cause.EARLIER_INTERRUPT, "nvme0q1 (irq 5)"),
    )


def test_where_the_timer_has_an_interrupt_of_its_own_that_is_the_timers() -> None:
    """As on arm64 and RISC-V, where no vectors are told apart."""
    way = woken(1_000)
    timer = {"entry": "irq_handler_entry", "exit": "irq_handler_exit"}
    way[0], way[-1] = (
        replace(e, name=timer[key], fields={"irq": 5, "name": "riscv-timer"})
        for e, key in ((way[0], "entry"), (way[-1], "exit"))
    )
    found = explained([*asleep(), *way, ran(7_000)], late_ns=8_000)

    assert told(found)[1] == (
        *(Part.B, 1_000, 5_000),
        *(Cause.TIMER_INTERRUPT, "riscv-timer (irq 5)"),
    )


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


def test_events_of_interrupts_going_off_and_on_name_the_function() -> None:
    found = explained(
        [
            *asleep(),
            event(-10_000, "irq_disable", flags=Flag.IRQS_OFF, caller="free_pages"),
            event(299_000, "irq_enable", caller="free_pages"),
            *woken(300_000),
            ran(307_000),
        ],
        late_ns=308_000,
        known=KNOWN | {"irq_disable"},
    )

    assert found.culprit is not None
    assert (found.culprit.cause, found.culprit.name) == (
        Cause.INTERRUPTS_OFF,
        "free_pages",
    )
    assert found.culprit.confidence is Confidence.SEEN


def test_a_stack_from_user_space_leaves_only_hardware_or_the_hypervisor() -> None:
    stack = event(
        302_000,
        "kernel_stack",
        flags=IRQ,
        stack="hrtimer_wakeup < hrtimer_interrupt < asm_sysvec_apic_timer_interrupt",
    )
    found = explained(
        [*asleep(), *woken(300_000), stack, ran(307_000)], late_ns=308_000
    )

    assert found.culprit is not None
    assert found.culprit.cause is Cause.HARDWARE
    assert found.culprit.confidence is Confidence.INFERRED


def test_a_stack_that_switches_interrupts_on_names_who_had_them_off() -> None:
    stack = event(
        302_000,
        "kernel_stack",
        flags=IRQ,
        stack="hrtimer_interrupt < asm_sysvec_apic_timer_interrupt < "
        "_raw_spin_unlock_irqrestore < free_pages < exit_mmap",
    )
    found = explained(
        [*asleep(), *woken(300_000), stack, ran(307_000)], late_ns=308_000
    )

    assert found.culprit is not None
    assert found.culprit.cause is Cause.INTERRUPTS_OFF
    assert found.culprit.name == "free_pages"
    assert found.culprit.callers == ("free_pages", "exit_mmap")


@pytest.mark.parametrize(
    ("machine", "depth", "cause"),
    [
        (GUEST, 0, Cause.HARDWARE),
        (GUEST, 1, Cause.UNKNOWN),  # it held a lock, so interrupts may have been off
        (BARE, 0, Cause.UNKNOWN),
    ],
)
def test_a_late_interrupt_without_any_event_is_at_most_a_guess(
    machine: Machine, depth: int, cause: Cause
) -> None:
    found = explained(
        [*asleep(), *woken(300_000, depth=depth), ran(307_000)],
        late_ns=308_000,
        machine=machine,
    )

    assert found.stretches[0].cause is cause
    assert found.stretches[0].confidence is Confidence.GUESSED
    assert found.attributed_share < 0.05
    assert ("probably hardware" in sentence(found)) == (cause is Cause.HARDWARE)


def test_a_page_fault_on_the_way_back_is_named() -> None:
    fault = event(
        8_000, "page_fault_user", pid=THREAD, flags=Flag.IRQS_OFF, address=0xABC
    )
    found = explained([*asleep(), *woken(1_000), ran(7_000), fault], late_ns=90_000)

    assert found.culprit is not None
    assert found.culprit.cause is Cause.PAGE_FAULT
    assert found.culprit.duration_ns == 82_000
    assert "page_fault_user at +8.000 us, address 0xabc" in found.culprit.evidence


@pytest.mark.parametrize(
    ("machine", "cause"), [(GUEST, Cause.HARDWARE), (BARE, Cause.UNKNOWN)]
)
def test_a_pause_inside_the_timers_interrupt_is_not_the_interrupts_own(
    machine: Machine, cause: Cause
) -> None:
    late = [replace(e, at_ns=e.at_ns + 900_000) for e in woken(1_000)[3:]]
    found = explained(
        [*asleep(), *woken(1_000)[:3], *late, ran(907_000)],
        late_ns=908_000,
        machine=machine,
    )

    assert found.culprit is not None
    assert (found.culprit.cause, found.culprit.duration_ns) == (cause, 901_000)
    assert found.culprit.confidence is Confidence.GUESSED
    assert "from sched_waking to sched_wakeup" in found.culprit.evidence[0]
    assert of(found, Cause.TIMER_INTERRUPT) == 4_000


def test_a_way_back_that_is_too_long_is_not_told_as_usual() -> None:
    found = explained([*asleep(), *woken(1_000), ran(7_000)], late_ns=800_000)

    assert found.culprit is not None
    assert (found.culprit.cause, found.culprit.part) == (Cause.UNKNOWN, Part.E)


def test_timer_slack_is_told_of_a_thread_that_was_not_real_time() -> None:
    events = [*asleep(priority=NICE_0), *woken(51_000, priority=NICE_0)]
    slack = replace(events[0], fields={**events[0].fields, "expires": DUE + 50_000})
    found = explained(
        [slack, *events[1:], switch(57_000, LOADING, thread(NICE_0))], late_ns=58_000
    )

    assert told(found)[0][:4] == (Part.A, 0, 50_000, Cause.TIMER_SLACK)


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

    assert found.stretches[0].cause is Cause.LATE_TIMER
