"""Interrupts, callbacks of timers and softirqs in a wake-up's way are named."""

from fakes.paths import Step
from fakes.wakeuppaths import (
    ENTRY,
    PREEMPT,
    SWITCH,
    THREAD,
    TIMER,
    among_rivals,
    explained,
)
from rtscope.explain.model import Cause, Part


def test_an_earlier_interrupt_is_named_by_its_handler() -> None:
    other: list[Step] = [
        *ENTRY,
        (10, "handle_irq_event"),
        (900, "usb_irq"),
        (5, "do_irq+"),
    ]
    found = explained(
        [(50, "user")], [*other, (2, "handle_exception+"), *TIMER, *PREEMPT, *THREAD]
    )

    dominant = found.dominant
    assert dominant is not None
    assert (dominant.part, dominant.cause) == (Part.A, Cause.EARLIER_INTERRUPT)
    assert dominant.name == "usb_irq"


def test_an_interrupt_that_one_entry_brings_with_ours_is_another() -> None:
    before: list[Step] = [
        *((10, "el1h_64_irq"), (5, "generic_handle_domain_irq"), (5, "ipi_handler")),
        *((900, "remote_call"), (5, "generic_handle_domain_irq+"), (5, "el1h_64_irq+")),
    ]
    ours: list[Step] = [
        *((5, "generic_handle_domain_irq"), (20, "hrtimer_interrupt")),
        *((10, "__hrtimer_run_queues"), (30, "hrtimer_wakeup")),
        *((5, "generic_handle_domain_irq+"), (5, "el1h_64_irq+")),
    ]

    found = explained([(50, "zap")], [*before, *ours, *PREEMPT, *THREAD])

    dominant = found.dominant
    assert dominant is not None
    assert (dominant.part, dominant.cause) == (Part.B, Cause.OTHER_INTERRUPT)
    assert dominant.name == "remote_call"


def test_another_timers_callback_is_told_from_ours() -> None:
    timer: list[Step] = [
        *ENTRY,
        (20, "hrtimer_interrupt"),
        (10, "__hrtimer_run_queues"),
        (30, "hrtimer_wakeup"),
        (5, "__hrtimer_run_queues+"),
        (600, "tick_nohz_handler"),
        (5, "__hrtimer_run_queues+"),
        (5, "do_irq+"),
    ]
    found = explained([(50, "user")], [*timer, *PREEMPT, *THREAD])

    dominant = found.dominant
    assert dominant is not None
    assert (dominant.part, dominant.cause) == (Part.B, Cause.TIMER_CALLBACK)
    assert (dominant.name, dominant.duration_ns) == ("tick_nohz_handler", 600)


def test_a_softirq_at_the_end_of_the_interrupt() -> None:
    found = explained(
        [(50, "user")],
        [
            *TIMER,
            (30, "handle_softirqs"),
            (800, "zap"),
            (5, "do_irq+"),
            *PREEMPT,
            *THREAD,
        ],
    )

    dominant = found.dominant
    assert dominant is not None
    assert (dominant.part, dominant.cause) == (Part.C, Cause.SOFTIRQ)
    assert (dominant.name, dominant.duration_ns) == ("zap", 830)


def test_a_call_of_the_scheduler_that_preemption_off_turns_away_is_no_scheduling() -> (
    None
):
    found = explained(
        [(50, "user")],
        [
            *TIMER,
            (30, "handle_softirqs"),
            (400, "zap"),
            (10, "preempt_schedule_irq"),
            (400, "zap+"),
            (5, "do_irq+"),
            *PREEMPT,
            *THREAD,
        ],
    )

    assert [s.duration_ns for s in found.segments if s.cause is Cause.SOFTIRQ] == [840]


def test_an_interrupt_is_named_by_where_most_of_it_went() -> None:
    other: list[Step] = [
        *ENTRY,
        (30, "free_pages"),
        (5, "do_irq+"),
        (10, "handle_irq_event"),
        (900, "usb_irq"),
        (5, "do_irq+"),
    ]
    found = explained(
        [(50, "user")], [*other, (2, "handle_exception+"), *TIMER, *PREEMPT, *THREAD]
    )

    first = found.segments[0]
    assert (first.cause, first.name, first.duration_ns) == (
        Cause.EARLIER_INTERRUPT,
        "usb_irq",
        972,
    )


def test_a_call_that_an_idle_cpu_finds_by_itself_is_an_interrupt_of_another() -> None:
    found = explained(
        [(10, "do_idle"), (5, "flush_smp_call_function_queue"), (5, "remote_call")],
        [
            (300, "remote_call+"),
            (5, "flush_smp_call_function_queue+"),
            *((10, "do_idle+"), *TIMER, *PREEMPT, *THREAD),
        ],
        ((0, 0),),
    )

    dominant = found.dominant
    assert dominant is not None
    assert (dominant.cause, dominant.name) == (Cause.EARLIER_INTERRUPT, "remote_call")


def test_a_timer_in_a_softirq_says_that_the_thread_was_not_real_time() -> None:
    soft: list[Step] = [
        *ENTRY,
        (20, "hrtimer_interrupt"),
        (5, "do_irq+"),
        (2000, "run_ksoftirqd"),
        (10, "handle_softirqs"),
        (10, "hrtimer_run_softirq"),
        (10, "__hrtimer_run_queues"),
        (10, "hrtimer_wakeup"),
    ]
    found = explained([(50, "user")], [*soft, *SWITCH, *THREAD])

    assert any("not real-time" in note for note in found.notes)


def test_a_timer_that_expired_before_ours_was_due_left_nothing_to_a_softirq() -> None:
    interrupt: list[Step] = [*ENTRY, (20, "hrtimer_interrupt"), (5, "do_irq+")]
    soft: list[Step] = [
        *((2000, "run_ksoftirqd"), (10, "handle_softirqs")),
        *((10, "hrtimer_run_softirq"), (10, "__hrtimer_run_queues")),
        (10, "hrtimer_wakeup"),
    ]
    found = explained(
        [(50, "user"), *interrupt],
        [(30, "user"), *interrupt, *soft, *SWITCH, *THREAD],
    )

    assert [(s.end_ns, s.cause) for s in found.segments[:3]] == [
        (30, Cause.DELIVERY),
        (75, Cause.EARLIER_INTERRUPT),
        (2_075, Cause.LATE_TIMER),
    ]


def test_a_softirq_is_named_by_its_handler_and_not_by_what_leads_to_it() -> None:
    burst: list[Step] = [
        *((5, "irq_exit_rcu"), (30, "handle_softirqs"), (10, "tasklet_action")),
        *((400, "my_tasklet"), (400, "zap"), (5, "my_tasklet+"), (5, "do_irq+")),
    ]

    found = among_rivals([(50, "user")], [*TIMER, *burst, *PREEMPT, *THREAD])

    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.name) == (Cause.SOFTIRQ, "my_tasklet")
    assert found.dominant.callers[:3] == (
        *("my_tasklet", "tasklet_action", "handle_softirqs"),
    )
