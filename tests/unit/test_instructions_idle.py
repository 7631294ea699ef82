"""A CPU that sleeps executes nothing, while its time goes on: it has an idle gap."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.paths import ASLEEP, Step, section, symbols
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Cause, Explanation, Part

TABLE = symbols(
    *("handle_exception", "do_irq", "hrtimer_interrupt", "__hrtimer_run_queues"),
    *("hrtimer_wakeup", "schedule_idle", "__schedule", "__switch_to"),
    *("do_nanosleep", "do_idle", "enqueue_task_fair", "enqueue_task_rt"),
    *("default_idle_call", "tick_nohz_idle_exit", "clockevents_program_min_delta"),
    *("run_ksoftirqd", "hrtimer_run_softirq", "rt_spin_lock", "schedule_rtlock"),
)
AWAY: list[Step] = [(10, "__schedule"), (10, "__switch_to"), (10, "__schedule+")]
TO_SLEEP: list[Step] = [(900, "user"), (20, "do_nanosleep"), *AWAY]
OVERDUE: list[Step] = [
    *((900, "user"), (20, "do_nanosleep"), (10, "clockevents_program_min_delta")),
    *((10, "do_nanosleep+"), *AWAY),
]
IDLE: list[Step] = [(300, "do_idle")]
SLEEP: list[Step] = [(1000, ASLEEP)]
TO_WAKE: list[Step] = [
    *((10, "handle_exception"), (10, "do_irq"), (20, "hrtimer_interrupt")),
    *((10, "__hrtimer_run_queues"), (30, "hrtimer_wakeup")),
]
BACK: list[Step] = [
    *((5, "__hrtimer_run_queues+"), (5, "hrtimer_interrupt+"), (5, "do_irq+")),
    *((5, "handle_exception+"), (10, "schedule_idle"), (10, "__schedule")),
    *((10, "__switch_to"), (10, "__schedule+"), (15, "do_nanosleep+"), (5, "user")),
]
OUT: list[Step] = [
    *((5, "__hrtimer_run_queues+"), (5, "hrtimer_interrupt+"), (5, "do_irq+")),
    (5, "handle_exception+"),
]
ORDINARY = [*TO_WAKE, (9, "enqueue_task_fair"), (5, "hrtimer_wakeup+"), *BACK]
REALTIME = [*TO_WAKE, (9, "enqueue_task_rt"), (5, "hrtimer_wakeup+"), *BACK]


def length(steps: list[Step]) -> int:
    return sum(step[0] for step in steps)


def explained(
    slept: list[Step],
    woken: list[Step],
    *,
    late: int,
    tasks: bool = True,
    left: list[Step] = TO_SLEEP,
) -> Explanation:
    """The thread sleeps, the CPU does `slept`, and the thread is woken."""
    idle, ours = length(left) - 10, length([*left, *slept, *woken]) - 30
    told = [(0, "rtscope"), (idle, "swapper/0"), (ours, "rtscope")] if tasks else []
    return explained_with([*left, *slept, *woken], told, late=late)


def explained_with(
    steps: list[Step], tasks: list[tuple[int, str]], *, late: int
) -> Explanation:
    found = section(steps, TABLE, late=late, tasks=tasks)
    explanation = explain_path(found, TABLE, arch="riscv64")
    assert explanation.residual_ns == 0
    return explanation


def test_a_timer_that_came_late_while_its_cpu_slept_is_an_idle_gap() -> None:
    late = length(ORDINARY) + 700

    found = explained([*IDLE, *SLEEP], ORDINARY, late=late)

    first, second = found.segments[:2]
    assert (first.part, first.cause, first.name) == (
        *(Part.A, Cause.TIMER_SLACK, "do_idle"),
    )
    assert (first.begin_ns, first.end_ns, first.executed_ns) == (0, 700, 0)
    assert first.functions == ()
    assert (second.part, second.cause) == (Part.B, Cause.TIMER_INTERRUPT)
    assert found.dominant is first
    assert found.latency_ns == late


@pytest.mark.parametrize(("late_ns", "executed_ns"), [(1000, 0), (1100, 100)])
def test_what_a_cpu_executed_before_it_slept_on_counts_as_executed(
    late_ns: int, executed_ns: int
) -> None:
    found = explained([*IDLE, *SLEEP], ORDINARY, late=length(ORDINARY) + late_ns)

    first = found.segments[0]
    assert (first.end_ns, first.executed_ns) == (late_ns, executed_ns)


def test_a_real_time_thread_whose_cpu_slept_on_waited_for_that() -> None:
    found = explained([*IDLE, *SLEEP], REALTIME, late=length(REALTIME) + 700)

    first = found.segments[0]
    assert (first.cause, first.name, first.duration_ns, first.executed_ns) == (
        *(Cause.IDLE_EXIT, "do_idle", 700, 0),
    )
    assert found.dominant is first


@pytest.mark.parametrize(
    ("woken", "cause"),
    [(ORDINARY, Cause.TIMER_SLACK), (REALTIME, Cause.IDLE_EXIT)],
)
def test_a_cpu_that_slept_through_the_expiry_waited_for_the_slack_of_the_timer(
    woken: list[Step], cause: Cause
) -> None:
    elsewhere: list[Step] = [(200, "user", 1), (700, "user", 1)]

    found = explained_with([*elsewhere, *woken], [], late=length(woken) + 700)

    first = found.segments[0]
    assert (first.cause, first.name) == (cause, "(asleep)")
    assert (first.end_ns, first.executed_ns) == (700, 0)


def test_what_other_cpus_executed_meanwhile_was_not_executed_here() -> None:
    elsewhere: list[Step] = [(200, ASLEEP), (800, "user", 1)]

    found = explained([*IDLE, *elsewhere], ORDINARY, late=length(ORDINARY) + 700)

    first = found.segments[0]
    assert (first.cause, first.end_ns, first.executed_ns) == (
        *(Cause.TIMER_SLACK, 700, 0),
    )


def test_a_cpu_that_woke_and_slept_again_has_one_idle_gap() -> None:
    again: list[Step] = [*SLEEP, (40, "do_idle+"), (60, ASLEEP)]

    found = explained([*IDLE, *again], ORDINARY, late=length(ORDINARY) + 700)

    first = found.segments[0]
    assert (first.name, first.begin_ns, first.end_ns) == ("do_idle", 0, 700)
    assert found.dominant is first


def test_a_thread_that_another_cpu_woke_tells_nothing_of_its_slack() -> None:
    woken: list[Step] = [*TO_WAKE[:-2], *OUT[1:], *BACK[-6:]]

    found = explained([*IDLE, *SLEEP], woken, late=length(woken) + 700)

    assert found.segments[0].cause is not Cause.TIMER_SLACK
    assert any("did not execute the callback" in note for note in found.notes)


def test_without_names_of_tasks_the_idle_gap_is_the_same() -> None:
    late = length(ORDINARY) + 700

    named, nameless = (
        explained([*IDLE, *SLEEP], ORDINARY, late=late, tasks=tasks)
        for tasks in (True, False)
    )

    assert named.segments[0] == nameless.segments[0]


def test_a_real_time_thread_that_armed_its_timer_late_did_not_sleep_until_then() -> (
    None
):
    found = explained(IDLE, REALTIME, late=length(REALTIME) + 700)

    assert found.segments[0].name == "(user space)"


def test_an_ordinary_thread_that_armed_an_overdue_timer_did_not_sleep_until_then() -> (
    None
):
    late = length(ORDINARY) + 700

    found = explained(IDLE, ORDINARY, late=late, left=OVERDUE)

    assert found.segments[0].name == "(user space)"


def test_a_thread_that_armed_an_overdue_timer_was_late_itself() -> None:
    late = length(REALTIME) + 700

    assert explained(IDLE, REALTIME, late=late).notes == ()
    assert explained(IDLE, REALTIME, late=late, left=OVERDUE).notes == (
        "the thread itself was late: it armed its timer after the expiry",
    )


@given(
    st.lists(
        st.sampled_from(
            [
                *(IDLE, SLEEP, [*TO_WAKE, *OUT], [(90, "user", 1)]),
                *(OVERDUE, TO_SLEEP, ORDINARY),
            ]
        ),
        max_size=6,
    ),
    st.sampled_from([ORDINARY, REALTIME]),
    st.integers(1, 6_000),
)
def test_the_segments_of_any_path_add_up_to_the_latency(
    between: list[list[Step]], woken: list[Step], late: int
) -> None:
    steps = [*TO_SLEEP, *(step for steps in between for step in steps), *woken]
    names = [(0, "rtscope"), (length(TO_SLEEP) - 10, "swapper/0")]
    names.append((length(steps) - 30, "rtscope"))
    found = section(steps, TABLE, late=late, tasks=names)

    explanation = explain_path(found, TABLE, arch="riscv64")

    segments = explanation.segments
    assert all(0 <= s.begin_ns < s.end_ns <= late for s in segments)
    assert all(a.end_ns == b.begin_ns for a, b in pairwise(segments))
    assert all(0 <= (s.executed_ns or 0) <= s.duration_ns for s in segments)
    assert explanation.residual_ns == 0


def test_a_sleep_that_began_before_the_expiry_is_counted_as_it_was() -> None:
    found = explained(IDLE, ORDINARY, late=length(ORDINARY) + 100)

    first = found.segments[0]
    assert (first.cause, first.name) == (Cause.TIMER_SLACK, "do_idle")
    assert (first.end_ns, first.executed_ns) == (100, 100)


def test_a_thread_that_goes_to_sleep_when_its_timer_is_due_was_late_itself() -> None:
    found = explained([], REALTIME, late=length(REALTIME) + 700)

    assert found.segments[0].name == "(user space)"


def test_a_thread_that_left_its_cpu_for_an_unknown_reason_did_not_sleep() -> None:
    left: list[Step] = [(900, "user"), *AWAY]
    found = explained(IDLE, ORDINARY, late=length(ORDINARY) + 700, left=left)

    assert found.segments[0].name == "(user space)"


def test_a_cpu_that_ran_another_program_meanwhile_did_not_sleep() -> None:
    found = explained([(300, "user")], ORDINARY, late=length(ORDINARY) + 700)

    assert found.segments[0].name == "(user space)"
