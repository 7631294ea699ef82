"""A recorded path, taken apart: each kind of delay is found, and the sum closes."""

from hypothesis import given
from hypothesis import strategies as st

from fakes.paths import Step, section, symbols
from rtscope.explain.calls import FIRMWARE, runs_of
from rtscope.explain.model import Cause, Explanation, Meanwhile, Part
from rtscope.explain.path import explain_path
from rtscope.explain.words import sentence

NAMES = (
    *("handle_exception", "do_irq", "hrtimer_interrupt", "__hrtimer_run_queues"),
    *("hrtimer_wakeup", "tick_nohz_handler", "preempt_schedule_irq", "__schedule"),
    *("__switch_to", "free_pages", "zap", "_raw_spin_lock", "handle_softirqs"),
    *("do_nanosleep", "do_page_fault", "do_idle", "usb_irq", "handle_irq_event"),
    *("hrtimer_run_softirq", "run_ksoftirqd"),
    *("flush_smp_call_function_queue", "remote_call"),
    *("el1h_64_irq", "generic_handle_domain_irq", "ipi_handler"),
)
TABLE = symbols(*NAMES)

ENTRY: list[Step] = [(10, "handle_exception"), (10, "do_irq")]
TIMER: list[Step] = [
    *ENTRY,
    (20, "hrtimer_interrupt"),
    (10, "__hrtimer_run_queues"),
    (30, "hrtimer_wakeup"),
    (5, "__hrtimer_run_queues+"),
    (5, "hrtimer_interrupt+"),
    (5, "do_irq+"),
]
SWITCH: list[Step] = [(40, "__schedule"), (20, "__switch_to"), (10, "__schedule+")]
PREEMPT: list[Step] = [(10, "preempt_schedule_irq"), *SWITCH]
THREAD: list[Step] = [(15, "do_nanosleep+"), (5, "user")]


def explained(
    before: list[Step],
    after: list[Step],
    flags: tuple[tuple[int, int], ...] = ((0, 1),),
) -> Explanation:
    """Explain a wake-up that was due between the two."""
    late = sum(step[0] for step in after)
    found = section([*before, *after], TABLE, late=late, flags=flags)
    explanation = explain_path(found, TABLE, arch="riscv64", shift=0)
    assert explanation.residual_ns == 0
    assert sum(explanation.part_ns(part) for part in Part) == late
    return explanation


def test_the_shortest_way_has_interrupt_scheduler_and_return_only() -> None:
    found = explained([(100, "user")], [*TIMER, *PREEMPT, *THREAD])

    assert [(s.part, s.cause, s.duration_ns) for s in found.stretches] == [
        (Part.B, Cause.TIMER_INTERRUPT, 95),
        (Part.D, Cause.SCHEDULER, 70),
        (Part.E, Cause.RETURN, 30),
    ]
    assert found.attributed_share == 1.0
    assert found.culprit is not None
    assert found.culprit.cause is Cause.TIMER_INTERRUPT


def test_interrupts_off_are_blamed_on_the_function_and_its_callers() -> None:
    masked: list[Step] = [(300, "free_pages+"), (100, "zap"), (200, "free_pages+")]
    found = explained(
        [(50, "zap"), (50, "free_pages")],
        [*masked, *TIMER, *PREEMPT, *THREAD],
        flags=((0, 1), (70, 0), (700, 1)),
    )

    culprit = found.culprit
    assert culprit is not None
    assert (culprit.part, culprit.cause) == (Part.A, Cause.INTERRUPTS_OFF)
    assert (culprit.name, culprit.duration_ns) == ("free_pages", 600)
    assert culprit.inside == (("free_pages", 500), ("zap", 100))
    assert culprit.evidence[0] == "callers: free_pages < zap"
    assert culprit.evidence[1].startswith("interrupts off since 30 ns before")


def test_preemption_off_is_what_runs_on_between_interrupt_and_scheduler() -> None:
    found = explained(
        [(50, "zap"), (50, "free_pages")],
        [*TIMER, (400, "free_pages+"), (5, "zap+"), *SWITCH, *THREAD],
    )

    culprit = found.culprit
    assert culprit is not None
    assert (culprit.part, culprit.cause) == (Part.C, Cause.PREEMPTION_OFF)
    assert (culprit.name, culprit.duration_ns) == ("free_pages", 405)
    assert culprit.callers == ("free_pages", "zap")


def test_a_lock_that_another_cpu_holds() -> None:
    waiting: list[Step] = [
        (500, "_raw_spin_lock"),
        (700, "free_pages", 1),
        (500, "_raw_spin_lock+"),
    ]
    found = explained(
        [(50, "zap")],
        [*waiting, *TIMER, *PREEMPT, *THREAD],
        flags=((0, 1), (20, 0)),
    )

    culprit = found.culprit
    assert culprit is not None
    assert (culprit.cause, culprit.name) == (Cause.LOCK, "zap")
    assert culprit.callers[0] == "_raw_spin_lock"
    assert (culprit.duration_ns, culprit.own_ns) == (1700, 1000)
    assert culprit.meanwhile == (Meanwhile(1, "free_pages", 1.0, 700),)


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

    culprit = found.culprit
    assert culprit is not None
    assert (culprit.part, culprit.cause) == (Part.A, Cause.EARLIER_INTERRUPT)
    assert culprit.name == "usb_irq"


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

    culprit = found.culprit
    assert culprit is not None
    assert (culprit.part, culprit.cause) == (Part.B, Cause.OTHER_INTERRUPT)
    assert culprit.name == "remote_call"


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

    culprit = found.culprit
    assert culprit is not None
    assert (culprit.part, culprit.cause) == (Part.B, Cause.TIMER_CALLBACK)
    assert (culprit.name, culprit.duration_ns) == ("tick_nohz_handler", 600)


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

    culprit = found.culprit
    assert culprit is not None
    assert (culprit.part, culprit.cause) == (Part.C, Cause.SOFTIRQ)
    assert (culprit.name, culprit.duration_ns) == ("zap", 830)


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

    assert [s.duration_ns for s in found.stretches if s.cause is Cause.SOFTIRQ] == [840]


def test_interrupts_that_were_on_again_are_no_longer_blamed() -> None:
    found = explained(
        [(50, "zap"), (50, "free_pages")],
        [(300, "free_pages+"), (200, "zap"), *TIMER, *PREEMPT, *THREAD],
        flags=((0, 1), (70, 0), (400, 1)),
    )

    assert [(s.cause, s.name, s.duration_ns) for s in found.stretches[:2]] == [
        (Cause.INTERRUPTS_OFF, "free_pages", 300),
        (Cause.DELIVERY, "zap", 200),
    ]
    assert "up to two turns of this are an artefact" in found.stretches[1].evidence[-1]


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

    first = found.stretches[0]
    assert (first.cause, first.name, first.duration_ns) == (
        Cause.EARLIER_INTERRUPT,
        "usb_irq",
        972,
    )


def test_another_task_that_runs_first() -> None:
    found = explained(
        [(50, "user")], [*TIMER, *PREEMPT, (900, "user"), *SWITCH, *THREAD]
    )

    culprit = found.culprit
    assert culprit is not None
    assert (culprit.part, culprit.cause) == (Part.D, Cause.OTHER_TASK)
    assert culprit.duration_ns == 900


def test_a_page_fault_on_the_way_back() -> None:
    found = explained(
        [(50, "user")],
        [
            *TIMER,
            *PREEMPT,
            (5, "user"),
            (10, "handle_exception"),
            (700, "do_page_fault"),
            *THREAD,
        ],
    )

    culprit = found.culprit
    assert culprit is not None
    assert (culprit.part, culprit.cause) == (Part.E, Cause.PAGE_FAULT)


def test_leaving_idle() -> None:
    found = explained(
        [(10, "do_idle")], [(300, "do_idle+"), *TIMER, *PREEMPT, *THREAD], ((0, 0),)
    )

    culprit = found.culprit
    assert culprit is not None
    assert (culprit.part, culprit.cause) == (Part.A, Cause.IDLE_EXIT)


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

    culprit = found.culprit
    assert culprit is not None
    assert (culprit.cause, culprit.name) == (Cause.EARLIER_INTERRUPT, "remote_call")


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


def test_what_was_before_the_path_is_unknown_and_lowers_the_share() -> None:
    late = 1000 + 195
    found = section([*TIMER, *PREEMPT, *THREAD], TABLE, late=late)

    explanation = explain_path(found, TABLE, arch="riscv64", shift=0)

    assert explanation.stretches[0].cause is Cause.UNKNOWN
    assert explanation.attributed_share == 195 / late


def test_callers_from_before_the_path_are_known_from_their_ends() -> None:
    path = section(
        [(10, "_raw_spin_lock+"), (10, "zap"), (10, "free_pages+"), (10, "user")],
        TABLE,
        late=5,
    )

    names = [
        [frame.name for frame in run.frame.chain()]
        for run in runs_of(path, TABLE, arch="riscv64", cpu=0)
    ]

    below = ["free_pages", "(user space)"]
    assert names == [
        ["_raw_spin_lock", *below],
        ["zap", "_raw_spin_lock", *below],
        below,
        below[1:],
    ]


def test_a_thunk_is_part_of_the_function_that_jumps_through_it() -> None:
    table = symbols("zap", "__x86_indirect_thunk_rax", "free_pages")
    path = section(
        [
            (10, "zap"),
            (3, "__x86_indirect_thunk_rax"),
            (10, "free_pages"),
            (2, "__x86_indirect_thunk_rax+"),
            (10, "zap+"),
        ],
        table,
        late=5,
    )

    found = runs_of(path, table, arch="x86_64", cpu=0)

    assert [([f.name for f in r.frame.chain()], r.own) for r in found] == [
        (["zap"], 13),
        (["free_pages", "zap"], 12),
        (["zap"], 10),
    ]


def test_what_comes_behind_a_switch_called_nothing_before_it() -> None:
    path = section(
        [(10, "zap+"), (10, "__schedule"), (10, "__switch_to"), (10, "free_pages+")],
        TABLE,
        late=5,
    )

    last = runs_of(path, TABLE, arch="riscv64", cpu=0)

    assert [frame.name for frame in last[0].frame.chain()] == ["zap"]
    assert [frame.name for frame in last[-1].frame.chain()] == ["free_pages"]


def test_firmware_is_a_call_and_its_caller_goes_on_afterwards() -> None:
    path = section([(10, "zap"), (10, "free_pages")], TABLE, late=5)
    path.values[path.kinds == 1] = path.values[path.kinds == 1]

    names = [
        [frame.name for frame in run.frame.chain()]
        for run in runs_of(path, TABLE, arch="riscv64", cpu=0)
    ]

    assert names == [["zap"], ["free_pages", "zap"]]
    assert FIRMWARE not in names[0]


@given(
    st.lists(
        st.tuples(
            st.integers(1, 500),
            st.sampled_from([*NAMES, *(f"{name}+" for name in NAMES), "user"]),
            st.integers(0, 1),
        ),
        max_size=60,
    ),
    st.integers(0, 20_000),
)
def test_any_path_gives_an_explanation_whose_sum_closes(
    steps: list[tuple[int, str, int]], late: int
) -> None:
    found = section(steps, TABLE, late=late)

    explanation = explain_path(found, TABLE, arch="riscv64", shift=0)

    covered = sum(s.duration_ns for s in explanation.stretches)
    assert covered + explanation.residual_ns == late
    assert 0 <= explanation.attributed_share <= 1
    ends = [s.end_ns for s in explanation.stretches]
    begins = [s.begin_ns for s in explanation.stretches]
    assert begins[1:] == ends[:-1]
    assert all(s.duration_ns > 0 for s in explanation.stretches)


def test_a_program_that_goes_on_after_the_interrupt_has_a_higher_priority() -> None:
    found = explained(
        [(50, "user")],
        [*TIMER, (2, "handle_exception+"), (900, "user"), *SWITCH, *THREAD],
    )

    culprit = found.culprit
    assert culprit is not None
    assert (culprit.part, culprit.cause) == (Part.C, Cause.OTHER_TASK)
    assert culprit.duration_ns == 900


RIVALS = symbols(
    *NAMES,
    *("resched_curr", "enqueue_task_fair", "enqueue_task_rt"),
    *("fair_server_pick_task", "sched_rt_period_timer", "irq_exit_rcu"),
    *("tasklet_action", "my_tasklet", "native_load_tls"),
)


def among_rivals(before: list[Step], after: list[Step]) -> Explanation:
    late = sum(step[0] for step in after)
    found = section([*before, *after], RIVALS, late=late)
    return explain_path(found, RIVALS, arch="riscv64", shift=0)


def timer(*woken: Step) -> list[Step]:
    return [*TIMER[:5], *woken, *TIMER[5:]]


def test_a_kernel_thread_that_was_not_told_to_give_way_has_a_higher_priority() -> None:
    busy: list[Step] = [(2, "handle_exception+"), (700, "zap+")]
    told = timer((9, "enqueue_task_rt"), (9, "resched_curr"))
    untold = timer((9, "enqueue_task_rt"))

    masked = among_rivals([(50, "zap")], [*told, *busy, *SWITCH, *THREAD]).culprit
    rival = among_rivals([(50, "zap")], [*untold, *busy, *SWITCH, *THREAD]).culprit

    assert masked is not None
    assert rival is not None
    assert (masked.cause, masked.name) == (Cause.PREEMPTION_OFF, "zap")
    assert (rival.cause, rival.name) == (Cause.OTHER_TASK, "zap")


def test_a_thread_that_was_queued_as_an_ordinary_one_is_not_real_time() -> None:
    woken = timer((9, "enqueue_task_fair"))

    found = among_rivals([(50, "user")], [*woken, (900, "user"), *SWITCH, *THREAD])

    assert found.culprit is not None
    assert found.culprit.cause is Cause.ORDINARY


def test_the_fair_server_is_told_from_a_task_of_higher_priority() -> None:
    woken = timer((9, "enqueue_task_rt"), (9, "resched_curr"))
    chosen: list[Step] = [
        *((10, "preempt_schedule_irq"), (10, "__schedule")),
        *((10, "fair_server_pick_task"), (10, "__schedule+"), (900, "user")),
    ]

    found = among_rivals([(50, "user")], [*woken, *chosen, *SWITCH, *THREAD])

    assert found.culprit is not None
    assert (found.culprit.cause, found.culprit.duration_ns) == (
        Cause.FAIR_SERVER,
        900,
    )


def test_real_time_threads_that_get_time_again_were_throttled() -> None:
    woken = timer((9, "enqueue_task_rt"), (9, "resched_curr"))
    again: list[Step] = [
        *ENTRY,
        *((20, "hrtimer_interrupt"), (10, "__hrtimer_run_queues")),
        *((10, "sched_rt_period_timer"), (10, "resched_curr")),
        *((5, "__hrtimer_run_queues+"), (5, "do_irq+")),
    ]

    found = among_rivals(
        [(50, "user")], [*woken, (900, "user"), *again, *PREEMPT, *THREAD]
    )

    assert found.culprit is not None
    assert (found.culprit.cause, found.culprit.duration_ns) == (Cause.THROTTLED, 900)


def test_a_softirq_is_named_by_its_handler_and_not_by_what_leads_to_it() -> None:
    burst: list[Step] = [
        *((5, "irq_exit_rcu"), (30, "handle_softirqs"), (10, "tasklet_action")),
        *((400, "my_tasklet"), (400, "zap"), (5, "my_tasklet+"), (5, "do_irq+")),
    ]

    found = among_rivals([(50, "user")], [*TIMER, *burst, *PREEMPT, *THREAD])

    assert found.culprit is not None
    assert (found.culprit.cause, found.culprit.name) == (Cause.SOFTIRQ, "my_tasklet")
    assert found.culprit.callers[:3] == (
        *("my_tasklet", "tasklet_action", "handle_softirqs"),
    )


def test_what_the_switch_itself_calls_is_the_schedulers() -> None:
    switch: list[Step] = [
        *((40, "__schedule"), (20, "__switch_to"), (10, "native_load_tls")),
        *((20, "__switch_to+"), (10, "__schedule+")),
    ]

    found = among_rivals([(50, "user")], [*TIMER, *switch, *THREAD])

    assert [s.cause for s in found.stretches] == [
        *(Cause.TIMER_INTERRUPT, Cause.SCHEDULER, Cause.RETURN),
    ]


def test_a_cpu_without_a_step_before_the_expiry_slept() -> None:
    steps: list[Step] = [(200, "user", 1), (40, "zap", 1), *TIMER, *PREEMPT, *THREAD]

    found = explain_path(section(steps, TABLE, late=235), TABLE, arch="x", shift=0)

    first = found.stretches[0]
    assert (first.cause, first.name) == (Cause.IDLE_EXIT, "(asleep)")
    assert (first.duration_ns, first.own_ns) == (40, 0)
    assert found.attributed_share == 1.0


def test_a_page_fault_that_sleeps_lasts_until_the_thread_runs_again() -> None:
    fault: list[Step] = [(5, "user"), (10, "handle_exception"), (50, "do_page_fault")]
    asleep: list[Step] = [*SWITCH, (600, "user"), *SWITCH]
    after = [*TIMER, *PREEMPT, *fault, *asleep, (20, "do_page_fault+"), *THREAD]
    ours, other = 100 + 95 + 10 + 60, 100 + 95 + 80 + 65 + 60
    again = other + 10 + 600 + 60
    path = section(
        [(100, "user"), *after],
        TABLE,
        late=sum(step[0] for step in after),
        tasks=((0, "sh"), (ours, "rtscope"), (other, "sh"), (again, "rtscope")),
    )

    found = explain_path(path, TABLE, arch="riscv64", shift=0)

    assert found.residual_ns == 0
    culprit = found.culprit
    assert culprit is not None
    assert (culprit.part, culprit.cause) == (Part.E, Cause.PAGE_FAULT)
    # From its handler, through the sleep in it, to the switch back to the thread.
    assert culprit.duration_ns == 50 + 70 + 600 + 60
    assert culprit.callers[0] == "do_page_fault"


def test_the_task_that_ran_instead_is_named() -> None:
    after = [*TIMER, (900, "user"), *SWITCH, *THREAD]
    path = section(
        [(50, "user"), *after],
        TABLE,
        late=sum(step[0] for step in after),
        tasks=((0, "hog"), (50 + 95 + 900 + 60, "rtscope")),
    )

    found = explain_path(path, TABLE, arch="riscv64", shift=0)

    assert found.culprit is not None
    assert (found.culprit.cause, found.culprit.task) == (Cause.OTHER_TASK, "hog")
    assert "for 0.900 another task, hog, ran in (user space)" in sentence(found)


def test_a_path_without_the_wake_up_does_not_blame_the_boards_turns() -> None:
    steps: list[Step] = [(900, "user"), *PREEMPT, *THREAD]

    found = explain_path(section(steps, TABLE, late=1000), TABLE, arch="x", shift=0)

    assert found.culprit is not None
    assert found.culprit.cause is Cause.OTHER_TASK
    assert any("was not seen on this CPU" in note for note in found.notes)


def test_a_thread_that_was_woken_just_before_the_counted_expiry_was_woken() -> None:
    steps: list[Step] = [(50, "zap"), *TIMER, (9000, "zap+"), *SWITCH, *THREAD]

    found = explain_path(section(steps, TABLE, late=9080), TABLE, arch="x", shift=0)

    assert found.residual_ns == 0
    assert found.culprit is not None
    assert (found.culprit.part, found.culprit.cause) == (Part.C, Cause.PREEMPTION_OFF)
    assert found.notes == (
        "the thread was woken a little before the expiry, by the count of "
        "instructions, which runs ahead of the time",
    )
