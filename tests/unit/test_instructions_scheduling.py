"""Another thread ran before the measured one: why is told by what the scheduler did."""

from fakes.paths import Step, section, symbols
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.instructions.roles import Role
from rtscope.explain.instructions.scheduling import CompetingTasks, Decision
from rtscope.explain.model import Cause, Explanation, Part

TABLE = symbols(
    *("handle_exception", "do_irq", "hrtimer_interrupt", "__hrtimer_run_queues"),
    *("hrtimer_wakeup", "preempt_schedule_irq", "__schedule", "__switch_to"),
    *("finish_task_switch", "do_nanosleep", "do_page_fault", "dl_task_timer"),
    *("resched_curr", "enqueue_task_rt", "pick_task_rt", "pick_next_task_fair"),
    *("fair_server_pick_task", "pick_task_fair", "sched_rt_period_timer"),
    *("enqueue_task_fair", "rt_spin_lock", "schedule_rtlock", "schedule"),
    *("exit_to_user_mode_loop", "do_idle", "my_thread", "my_work", "my_delay"),
    "ktime_get",
)
ENTRY: list[Step] = [
    *((10, "handle_exception"), (10, "do_irq"), (20, "hrtimer_interrupt")),
    (10, "__hrtimer_run_queues"),
]
EXIT: list[Step] = [
    *((5, "__hrtimer_run_queues+"), (5, "hrtimer_interrupt+"), (5, "do_irq+")),
]
AWAKE: list[Step] = [
    *((30, "hrtimer_wakeup"), (9, "enqueue_task_rt"), (9, "resched_curr")),
    *((5, "enqueue_task_rt+"), (5, "hrtimer_wakeup+")),
]
WOKEN = [*ENTRY, *AWAKE, *EXIT]
NOT_TOLD = [*ENTRY, *(step for step in AWAKE if "resched" not in step[1]), *EXIT]
"""The interrupt that wakes the thread, and does not have the running one give way."""

SERVED: list[Step] = [(10, "fair_server_pick_task"), (10, "pick_task_fair")]
ORDINARY: list[Step] = [(10, "pick_next_task_fair")]
REALTIME: list[Step] = [(10, "pick_task_rt")]
AGAIN: list[Step] = [
    *ENTRY,
    *((10, "sched_rt_period_timer"), (10, "resched_curr")),
    *EXIT,
]
"""Real-time threads get time again."""

THREAD: list[Step] = [(15, "do_nanosleep+"), (5, "user")]


def switch(*chosen: Step) -> list[Step]:
    return [
        *((10, "preempt_schedule_irq"), (10, "__schedule"), *chosen),
        *((10, "__schedule+"), (20, "__switch_to"), (10, "__schedule+")),
    ]


def explained(
    after: list[Step], *, tasks: tuple[tuple[int, str], ...] = (), before: str = "user"
) -> Explanation:
    """Explain a wake-up that was due when these steps began; tasks since then.

    Without tasks none were recorded.
    """
    found = section(
        [(50, before), *after],
        TABLE,
        late=length(after),
        tasks=[(0, "hog"), *((50 + at, name) for at, name in tasks)] if tasks else (),
    )
    explanation = explain_path(found, TABLE, arch="riscv64")
    assert explanation.residual_ns == 0
    return explanation


def length(steps: list[Step]) -> int:
    return sum(step[0] for step in steps)


def causes_of(found: Explanation) -> list[tuple[Cause, int]]:
    """What another task's program did, by cause."""
    return [
        (s.cause, s.duration_ns) for s in found.segments if s.name == "(user space)"
    ]


def test_the_fair_server_preempts_a_thread_that_was_already_switched_to() -> None:
    first = [*WOKEN, *switch(*REALTIME)]
    turn: list[Step] = [
        *((9, "finish_task_switch"), *ENTRY, (10, "dl_task_timer"), *EXIT),
        *switch(*SERVED),
        (900, "user"),
    ]
    back: list[Step] = [*ENTRY, *EXIT, *switch(*REALTIME), (9, "finish_task_switch+")]
    ours, other = length(first) - 10, length([*first, *turn]) - 910
    again = length([*first, *turn, *back]) - 19

    found = explained(
        [*first, *turn, *back, *THREAD],
        tasks=((ours, "rtscope"), (other, "hog"), (again, "rtscope")),
    )

    dominant = found.dominant
    assert dominant is not None
    assert (dominant.part, dominant.cause) == (Part.E, Cause.FAIR_SERVER)
    assert (dominant.name, dominant.task) == ("(user space)", "hog")
    assert dominant.evidence[-1] == (
        "the scheduler had already switched to the thread, and preempted it again"
    )


def test_the_switch_to_another_task_and_back_is_the_schedulers_time() -> None:
    first = [*WOKEN, *switch(*REALTIME)]
    turn: list[Step] = [*switch(*SERVED), (900, "user")]
    back = switch(*REALTIME)
    ours, other = length(first) - 10, length([*first, *turn]) - 910
    again = length([*first, *turn, *back]) - 10

    found = explained(
        [*first, *turn, *back, *THREAD],
        tasks=((ours, "rtscope"), (other, "hog"), (again, "rtscope")),
    )

    at_e = [(s.cause, s.duration_ns, s.task) for s in found.segments]
    assert at_e[-5:] == [
        # Its own way out: it calls the scheduler, and leaves in __switch_to.
        (Cause.RETURN, 10 + 10 + 10 + 20 + 10 + 20, ""),
        (Cause.SCHEDULER, 10, ""),
        (Cause.FAIR_SERVER, 900, "hog"),
        (Cause.SCHEDULER, 10 + 10 + 10 + 10 + 20, ""),
        (Cause.RETURN, 10 + 15 + 5, ""),
    ]


def test_a_task_that_the_scheduler_chooses_again_needs_no_switch_to_delay() -> None:
    again: list[Step] = [
        *((10, "preempt_schedule_irq"), (10, "__schedule"), *SERVED),
        *((10, "__schedule+"), (5, "preempt_schedule_irq+"), (5, "handle_exception+")),
    ]
    work: list[Step] = [(400, "my_work+")]
    steps = [*WOKEN, *again, *work, *switch(*REALTIME), *THREAD]

    at = length(steps) - 30
    found = explained(steps, tasks=((at, "rtscope"),), before="my_work")

    (late,) = (s for s in found.segments if s.name == "my_work")
    assert (late.part, late.cause) == (Part.D, Cause.FAIR_SERVER)
    assert late.duration_ns == 400
    assert found.parts_ns[Part.C] < 60
    assert found.broken == ()


def test_a_real_time_task_after_the_fair_servers_turn_is_no_part_of_it() -> None:
    served: list[Step] = [*switch(*SERVED), (300, "user"), *ENTRY, *EXIT]
    urgent: list[Step] = [*switch(*REALTIME), (900, "user"), *ENTRY, *EXIT]

    found = explained([*WOKEN, *served, *urgent, *switch(*REALTIME), *THREAD])

    assert causes_of(found)[:2] == [(Cause.FAIR_SERVER, 300), (Cause.OTHER_TASK, 900)]


def test_a_fair_server_that_finds_no_task_lets_the_next_class_choose() -> None:
    asked: list[Step] = [*SERVED, (5, "__schedule+"), *REALTIME]

    found = explained(
        [*WOKEN, *switch(*asked), (900, "user"), *switch(*REALTIME), *THREAD]
    )

    assert causes_of(found)[0] == (Cause.OTHER_TASK, 900)


def test_a_task_is_named_after_what_it_did_and_not_after_its_delays() -> None:
    clock: list[Step] = [(5, "ktime_get"), (5, "my_delay+")]
    work: list[Step] = [(5, "my_thread+"), (5, "my_work"), (5, "my_delay"), *clock * 50]

    found = explained([*WOKEN, *switch(*REALTIME), *work, *switch(*REALTIME), *THREAD])

    (other,) = (one for one in found.segments if one.cause is Cause.OTHER_TASK)
    assert other.name == "my_work"
    assert other.callers[:2] == ("my_delay", "my_work")


def test_who_lets_an_ordinary_task_go_first_is_no_longer_real_time() -> None:
    turn: list[Step] = [*switch(*ORDINARY), (900, "user"), *ENTRY, *EXIT]

    found = explained([*WOKEN, *turn, *switch(*REALTIME), *THREAD])

    assert causes_of(found)[0] == (Cause.NOT_REALTIME, 900)


def test_an_ordinary_task_chosen_before_the_thread_was_woken_accuses_nobody() -> None:
    another = [
        *((step[0], step[1].replace("_rt", "_fair")) for step in WOKEN),
        *switch(*ORDINARY),
    ]
    turn: list[Step] = [(900, "user"), *WOKEN]

    found = explained([*another, *turn, *switch(*REALTIME), *THREAD])

    assert causes_of(found)[0] == (Cause.OTHER_TASK, 900)


def left_and_back(leaves: list[Step]) -> Explanation:
    """The thread was switched to and left so; then an ordinary task was chosen."""
    first = [*WOKEN, *switch(*REALTIME), (9, "do_nanosleep+")]
    away: list[Step] = [
        *(*leaves, (10, "__schedule"), *ORDINARY, (10, "__schedule+")),
        *((20, "__switch_to"), (10, "__schedule+"), (900, "user")),
    ]
    back = [*switch(*REALTIME), leaves[-1]]
    ours, other = length(first) - 19, length([*first, *away]) - 910
    again = length([*first, *away, *back]) - leaves[-1][0] - 10
    return explained(
        [*first, *away, *back, *THREAD],
        tasks=((ours, "rtscope"), (other, "hog"), (again, "rtscope")),
    )


def test_a_thread_that_waits_for_a_lock_is_delayed_by_no_task_that_runs_then() -> None:
    found = left_and_back([(10, "rt_spin_lock"), (10, "schedule_rtlock")])

    assert causes_of(found) == []
    assert found.dominant is not None
    assert found.dominant.cause is Cause.LOCK
    assert found.dominant.duration_ns >= 900
    assert found.broken == ()


def test_a_thread_that_an_ordinary_task_displaced_is_no_longer_real_time() -> None:
    found = left_and_back([(10, "exit_to_user_mode_loop"), (10, "schedule")])

    assert causes_of(found)[0] == (Cause.NOT_REALTIME, 900)


def test_a_thread_that_an_ordinary_task_preempted_is_no_longer_real_time() -> None:
    found = left_and_back([(10, "preempt_schedule_irq")])

    assert causes_of(found)[0] == (Cause.NOT_REALTIME, 900)


def on_another_cpu(steps: list[Step]) -> list[Step]:
    return [(step[0], step[1], 1) for step in steps]


def test_throttling_may_end_by_the_timer_of_another_cpu() -> None:
    throttled: list[Step] = [*switch(*ORDINARY), (300, "user"), *on_another_cpu(AGAIN)]

    found = explained([*WOKEN, *throttled, *ENTRY, *EXIT, *switch(*REALTIME), *THREAD])

    cause, duration_ns = causes_of(found)[0]
    assert (cause, duration_ns) == (Cause.THROTTLED, 300 + length(AGAIN))


def test_a_timer_of_another_cpu_that_lets_none_go_on_ended_no_throttling() -> None:
    nothing = [step for step in AGAIN if step[1] != "resched_curr"]
    turn: list[Step] = [*switch(*ORDINARY), (300, "user"), *on_another_cpu(nothing)]

    found = explained([*WOKEN, *turn, *ENTRY, *EXIT, *switch(*REALTIME), *THREAD])

    assert causes_of(found)[0][0] is Cause.NOT_REALTIME


def test_what_ran_until_real_time_threads_were_throttled_was_not_throttling() -> None:
    urgent: list[Step] = [(700, "user"), *ENTRY, *EXIT]
    throttled: list[Step] = [*switch(*ORDINARY), (300, "user"), *AGAIN]

    found = explained([*NOT_TOLD, *urgent, *throttled, *switch(*REALTIME), *THREAD])

    assert causes_of(found)[:2] == [(Cause.OTHER_TASK, 700), (Cause.THROTTLED, 300)]


def test_a_rival_that_preempts_a_page_fault_is_no_part_of_it() -> None:
    first = [*WOKEN, *switch(*REALTIME)]
    fault: list[Step] = [
        *((5, "user"), (10, "handle_exception"), (50, "do_page_fault")),
        *(*ENTRY, (10, "dl_task_timer"), *EXIT, *switch(*SERVED), (900, "user")),
    ]
    back: list[Step] = [*switch(*REALTIME), (20, "do_page_fault+")]
    ours, other = length(first) - 10, length([*first, *fault]) - 910
    again = length([*first, *fault, *back]) - 30

    found = explained(
        [*first, *fault, *back, *THREAD],
        tasks=((ours, "rtscope"), (other, "hog"), (again, "rtscope")),
    )

    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.task) == (Cause.FAIR_SERVER, "hog")


def test_what_a_class_without_a_known_chooser_ran_is_not_put_down_to_throttling() -> (
    None
):
    competing = CompetingTasks(
        is_ordinary=False,
        goes_on=False,
        decisions=(Decision(2, Role.OTHER), Decision(6, Role.PICK_FAIR)),
        unthrottled=(8,),
        queued=1,
    )

    assert competing.cause(3) is Cause.OTHER_TASK
    assert competing.cause(7) is Cause.THROTTLED
