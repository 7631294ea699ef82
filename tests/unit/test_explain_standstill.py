"""A board that sleeps executes nothing: such time is not counted back into the past."""

from fakes.paths import Step, section, symbols
from rtscope.explain.model import Cause, Explanation, Part
from rtscope.explain.path import explain_path

TABLE = symbols(
    *("handle_exception", "do_irq", "hrtimer_interrupt", "__hrtimer_run_queues"),
    *("hrtimer_wakeup", "schedule_idle", "__schedule", "__switch_to"),
    *("do_nanosleep", "do_idle", "enqueue_task_fair", "enqueue_task_rt"),
)
TO_SLEEP: list[Step] = [
    *((900, "user"), (20, "do_nanosleep"), (10, "__schedule")),
    *((10, "__switch_to"), (10, "__schedule+")),
]
IDLE: list[Step] = [(300, "do_idle")]
TO_WAKE: list[Step] = [
    *((10, "handle_exception"), (10, "do_irq"), (20, "hrtimer_interrupt")),
    *((10, "__hrtimer_run_queues"), (30, "hrtimer_wakeup")),
]
BACK: list[Step] = [
    *((5, "__hrtimer_run_queues+"), (5, "hrtimer_interrupt+"), (5, "do_irq+")),
    *((5, "handle_exception+"), (10, "schedule_idle"), (10, "__schedule")),
    *((10, "__switch_to"), (10, "__schedule+"), (15, "do_nanosleep+"), (5, "user")),
]
ORDINARY = [*TO_WAKE, (9, "enqueue_task_fair"), (5, "hrtimer_wakeup+"), *BACK]
REALTIME = [*TO_WAKE, (9, "enqueue_task_rt"), (5, "hrtimer_wakeup+"), *BACK]


def length(steps: list[Step]) -> int:
    return sum(step[0] for step in steps)


def explained(
    slept: list[Step], woken: list[Step], *, late: int, tasks: bool = True
) -> Explanation:
    """The thread sleeps, the CPU does `slept`, and the thread is woken."""
    idle, ours = length(TO_SLEEP) - 10, length([*TO_SLEEP, *slept, *woken]) - 30
    found = section(
        [*TO_SLEEP, *slept, *woken],
        TABLE,
        late=late,
        tasks=[(0, "rtscope"), (idle, "swapper/0"), (ours, "rtscope")] if tasks else [],
    )
    explanation = explain_path(found, TABLE, arch="riscv64", shift=0)
    assert explanation.residual_ns == 0
    return explanation


def test_the_slack_in_which_a_whole_board_slept_is_not_what_was_done_before() -> None:
    late = length(ORDINARY) + 700

    found = explained(IDLE, ORDINARY, late=late)

    first, second = found.stretches[:2]
    assert (first.part, first.cause, first.name) == (
        *(Part.A, Cause.TIMER_SLACK),
        "(asleep)",
    )
    assert (first.begin_ns, first.end_ns, first.own_ns) == (0, 700, None)
    assert (second.part, second.cause) == (Part.B, Cause.TIMER_INTERRUPT)
    assert found.culprit is first
    assert found.latency_ns == late


def test_why_a_board_slept_past_a_real_time_threads_timer_is_not_known() -> None:
    found = explained(IDLE, REALTIME, late=length(REALTIME) + 700)

    assert found.stretches[0].cause is Cause.UNKNOWN


def test_a_sleep_that_began_before_the_expiry_is_counted_as_it_was() -> None:
    found = explained(IDLE, ORDINARY, late=length(ORDINARY) + 100)

    first = found.stretches[0]
    assert (first.cause, first.name) == (Cause.TIMER_SLACK, "do_idle")
    assert (first.end_ns, first.own_ns) == (100, 100)


def test_a_thread_that_goes_to_sleep_when_its_timer_is_due_was_late_itself() -> None:
    found = explained([], REALTIME, late=length(REALTIME) + 700)

    assert found.stretches[0].name == "(user space)"


def test_without_names_of_tasks_nothing_tells_of_a_sleep() -> None:
    late = length(ORDINARY) + 700

    found = explained(IDLE, ORDINARY, late=late, tasks=False)

    assert found.stretches[0].name != "(asleep)"
