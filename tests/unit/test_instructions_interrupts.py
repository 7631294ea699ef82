"""Interrupts, callbacks of timers and softirqs in a wake-up's way are named."""

import pytest

from fakes.paths import Step, section, symbols
from fakes.wakeuppaths import (
    COMPETING_TASKS,
    ENTRY,
    NAMES,
    PREEMPT,
    SWITCH,
    THREAD,
    TIMER,
    among_rivals,
    explained,
)
from rtscope.explain.instructions.calls import runs_of
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Cause, Part, Segment
from rtscope.record.instructions.section import blocks_of


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


# --- NMIs -------------------------------------------------------------------------

NMI: list[Step] = [
    *((20, "asm_exc_nmi"), (10, "exc_nmi"), (5, "default_do_nmi"), (5, "nmi_handle")),
    *((900, "my_nmi"), (5, "nmi_handle+"), (5, "exc_nmi+"), (5, "asm_exc_nmi+")),
]
HALTED: list[Step] = [(30, "do_idle"), (10, "pv_native_safe_halt")]
RT = symbols(
    *NAMES,
    *("asm_exc_nmi", "exc_nmi", "default_do_nmi", "nmi_handle", "my_nmi"),
    *("pv_native_safe_halt", "rt_spin_lock", "smpboot_thread_fn", "my_tasklet"),
    *("tasklet_action_common", "sysvec_apic_timer_interrupt", "enqueue_task_rt"),
)


def on_rt(steps: list[Step], due: int, flags: tuple[tuple[int, int], ...]) -> Segment:
    """Return the dominant segment of a wake-up on PREEMPT_RT."""
    late = sum(step[0] for step in steps) - due
    found = explain_path(section(steps, RT, late=late, flags=flags), RT, arch="x86_64")
    assert found.residual_ns == 0
    assert found.dominant is not None
    return found.dominant


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (HALTED, [(5, "pv_native_safe_halt+")]),  # of an idle CPU
        ([(40, "user")], []),  # of a program
        ([(10, "free_pages"), (30, "zap")], [(5, "zap+")]),  # of the kernel
        ([*HALTED, *ENTRY, (5, "hrtimer_interrupt")], [(5, "hrtimer_interrupt+")]),
        ([*HALTED, (20, "__schedule")], [(5, "__schedule+")]),  # in the idle loop
    ],
)
def test_an_nmi_is_an_interrupt_whatever_it_interrupts(
    before: list[Step], after: list[Step]
) -> None:
    steps = [*before, *NMI, *after, *TIMER, *SWITCH, *THREAD]

    found = on_rt(steps, 35, ((0, 1), (40, 0), (995, 1)))

    causes = (Cause.EARLIER_INTERRUPT, Cause.OTHER_INTERRUPT)
    assert found.cause in causes
    assert found.name == "my_nmi"


def test_an_nmi_in_the_timers_interrupt_is_another() -> None:
    timer: list[Step] = [*TIMER[:3], *NMI, (5, "hrtimer_interrupt+"), *TIMER[3:]]

    found = on_rt([*HALTED, *timer, *SWITCH, *THREAD], 35, ((0, 1), (40, 0)))

    assert (found.cause, found.name) == (Cause.OTHER_INTERRUPT, "my_nmi")


# --- softirqs ---------------------------------------------------------------------

TASKLET: list[Step] = [
    *((10, "smpboot_thread_fn"), (10, "run_ksoftirqd"), (10, "handle_softirqs")),
    *((10, "tasklet_action_common"), (30, "my_tasklet")),
]


@pytest.mark.parametrize("off_ns", [45, 60, 69])
def test_a_softirq_that_has_interrupts_off_is_blamed_for_that(off_ns: int) -> None:
    """Of PREEMPT_RT a thread runs it, which alone delays no real-time one."""
    steps = [*TASKLET, (900, "my_tasklet+"), *TIMER, *PREEMPT, *THREAD]

    found = on_rt(steps, 70, ((0, 1), (off_ns, 0), (965, 1)))

    assert (found.cause, found.name) == (Cause.INTERRUPTS_OFF, "my_tasklet")


AT_EXIT: list[Step] = [
    *TIMER,
    *((5, "irq_exit_rcu"), (30, "handle_softirqs"), (10, "tasklet_action")),
    *((200, "my_tasklet"), (300, "zap"), (400, "my_tasklet+"), (5, "do_irq+")),
]
"""A softirq that the timer's interrupt runs before it ends: 190 to 1090 in all."""


def behind_wake_up(*flags: tuple[int, int]) -> Segment:
    """Return the dominant segment of a wake-up that a softirq delays at the end."""
    steps = [(50, "user"), *AT_EXIT, *PREEMPT, *THREAD]
    late = sum(step[0] for step in steps) - 50
    path = section(steps, COMPETING_TASKS, late=late, flags=((0, 1), *flags))
    found = explain_path(path, COMPETING_TASKS, arch="riscv64")
    assert found.residual_ns == 0
    assert found.dominant is not None
    return found.dominant


@pytest.mark.parametrize(
    "flags",
    [
        ((190, 0), (1090, 1)),  # from its begin to its end
        ((260, 0), (1080, 1)),
        ((260, 0), (330, 1), (390, 0), (1090, 1)),  # for short before that
        ((190, 0), (900, 1)),  # and on again before the end
        ((190, 0), (1090, 1), (1095, 0)),
    ],
)
def test_a_softirq_behind_the_wake_up_is_blamed_for_interrupts_off_throughout(
    flags: tuple[tuple[int, int], ...],
) -> None:
    found = behind_wake_up(*flags)

    assert (found.cause, found.name) == (Cause.INTERRUPTS_OFF, "my_tasklet")


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ((190, 0), (250, 1)),  # for a short time
        ((190, 0), (480, 1), (500, 0), (790, 1), (800, 0), (1090, 1)),  # three times
        ((400, 0), (690, 1)),  # in a call of it, which is a third
        ((50, 0), (185, 1)),  # before it: by the interrupt
    ],
)
def test_a_softirq_that_turns_interrupts_off_for_a_part_of_it_stays_one(
    flags: tuple[tuple[int, int], ...],
) -> None:
    found = behind_wake_up(*flags)

    assert (found.cause, found.name) == (Cause.SOFTIRQ, "my_tasklet")


def test_a_thread_of_softirqs_delays_on_preempt_rt_with_preemption_off_only() -> None:
    steps = [*TASKLET, *TIMER, (900, "my_tasklet+"), *PREEMPT, *THREAD]

    found = on_rt(steps, 65, ((0, 1),))

    assert (found.cause, found.name) == (Cause.PREEMPTION_OFF, "my_tasklet")


def test_what_an_nmi_interrupts_goes_on_with_its_callers() -> None:
    """Its entry has labels inside, of which a function's symbol is not the first."""
    names = (*RT.names, "first_nmi", "end_repeat_nmi", "nmi_restore", "__switch_to_asm")
    table = symbols(*(name for name in names if name))
    entry: list[Step] = [(5, "asm_exc_nmi"), (5, "first_nmi"), (5, "end_repeat_nmi")]
    leave: list[Step] = [(5, "end_repeat_nmi+"), (5, "nmi_restore")]
    steps: list[Step] = [
        *(
            (10, "zap"),
            (10, "__schedule"),
            (10, "__switch_to_asm"),
            (10, "__switch_to"),
        ),
        *entry,
        *((9, "exc_nmi"), (900, "my_nmi"), (9, "exc_nmi+")),
        *leave,
        (10, "__switch_to+"),
    ]
    path = section(steps, table, late=50)
    runs = runs_of(blocks_of(path, 0), table, arch="x86_64")

    assert [one.name for one in runs[-1].frame.chain()] == [
        *("__switch_to", "__switch_to_asm", "__schedule", "zap"),
    ]
    nmi = next(run for run in runs if run.frame.name == "my_nmi")
    assert [one.name for one in nmi.frame.chain()][:4] == [
        *("my_nmi", "exc_nmi", "asm_exc_nmi", "__switch_to"),
    ]
