"""A board that sleeps executes nothing: such time is not counted back into the past."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fakes.paths import Step, section, symbols
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
    explanation = explain_path(found, TABLE, arch="riscv64", shift=0)
    assert explanation.residual_ns == 0
    return explanation


def test_the_slack_in_which_a_whole_board_slept_is_not_what_was_done_before() -> None:
    late = length(ORDINARY) + 700

    found = explained(IDLE, ORDINARY, late=late)

    first, second = found.segments[:2]
    assert (first.part, first.cause, first.name) == (
        *(Part.A, Cause.TIMER_SLACK),
        "(asleep)",
    )
    assert (first.begin_ns, first.end_ns, first.executed_ns) == (0, 700, None)
    assert (second.part, second.cause) == (Part.B, Cause.TIMER_INTERRUPT)
    assert found.dominant is first
    assert found.latency_ns == late


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


def test_what_the_board_executed_while_the_thread_slept_is_evidence() -> None:
    elsewhere: list[Step] = [(200, "user", 1), (50, "do_idle+")]

    found = explained([*IDLE, *elsewhere], ORDINARY, late=length(ORDINARY) + 700)

    first = found.segments[0]
    assert (first.name, first.end_ns) == ("(asleep)", 700)
    assert first.evidence == (
        "system idle: the board executed 560 ns since the thread went to sleep; for "
        "the rest of this time all its CPUs slept",
    )


def test_the_sleep_ends_where_the_thread_is_woken_and_not_where_another_was() -> None:
    other: list[Step] = [*TO_WAKE, (5, "hrtimer_wakeup+"), *OUT]
    wait: list[Step] = [(10, "default_idle_call"), (200, "do_idle+")]

    found = explained(
        [*IDLE, *other, *wait], ORDINARY, late=length(ORDINARY) + length(other) + 600
    )

    first = found.segments[0]
    assert (first.name, first.end_ns) == ("(asleep)", length(other) + 600)


def test_an_interrupt_on_the_way_out_of_idle_did_not_end_the_sleep() -> None:
    tick: list[Step] = [*TO_WAKE[:-1], *OUT]
    out: list[Step] = [(20, "tick_nohz_idle_exit"), *tick]
    woken = [*ORDINARY[:-6], *out, *ORDINARY[-6:]]

    found = explained(
        [*IDLE, (10, "default_idle_call")], woken, late=length(woken) + 700
    )

    first = found.segments[0]
    assert (first.name, first.end_ns) == ("(asleep)", 700)


def test_a_thread_that_waits_for_a_lock_when_it_is_awake_slept_before() -> None:
    """As on PREEMPT_RT: the softirq that woke it has a lock of its timers still."""
    to_softirq: list[Step] = [*TO_WAKE[:-2], *OUT[1:], (10, "schedule_idle"), *AWAY]
    wakes: list[Step] = [
        *((10, "run_ksoftirqd"), (10, "hrtimer_run_softirq"), (30, "hrtimer_wakeup")),
        *((9, "enqueue_task_fair"), (5, "hrtimer_wakeup+"), *AWAY),
    ]
    locked: list[Step] = [
        *((10, "do_nanosleep+"), (10, "rt_spin_lock"), (10, "schedule_rtlock"), *AWAY),
    ]
    frees: list[Step] = [(15, "run_ksoftirqd+"), *AWAY]
    ours: list[Step] = [(10, "rt_spin_lock+"), (15, "do_nanosleep+"), (5, "user")]
    woken = [*to_softirq, *wakes, *locked, *frees, *ours]
    parts = (TO_SLEEP, IDLE, to_softirq, wakes, locked, frees)
    ends = [sum(map(length, parts[: n + 1])) - 10 for n in range(len(parts))]
    names = ("swapper/0", "swapper/0", "ksoftirqd/0", "rtscope", "ksoftirqd/0")

    found = explained_with(
        [*TO_SLEEP, *IDLE, *woken],
        [(0, "rtscope"), *zip(ends, (*names, "rtscope"), strict=True)],
        late=length(woken) + 700,
    )

    first = found.segments[0]
    assert (first.cause, first.name, first.end_ns) == (
        *(Cause.TIMER_SLACK, "(asleep)"),
        700,
    )


def test_a_thread_that_another_cpu_woke_tells_nothing_of_a_sleep() -> None:
    woken: list[Step] = [*TO_WAKE[:-2], *OUT[1:], *BACK[-6:]]

    found = explained(IDLE, woken, late=length(woken) + 700)

    assert found.segments[0].name != "(asleep)"


@given(
    st.lists(
        st.sampled_from(
            [IDLE, [*TO_WAKE, *OUT], [(90, "user", 1)], OVERDUE, TO_SLEEP, ORDINARY]
        ),
        max_size=6,
    ),
    st.sampled_from([ORDINARY, REALTIME]),
    st.integers(1, 6_000),
    st.integers(0, 2),
)
def test_the_stretches_of_any_way_add_up_to_the_latency(
    between: list[list[Step]], woken: list[Step], late: int, shift: int
) -> None:
    steps = [*TO_SLEEP, *(step for steps in between for step in steps), *woken]
    names = [(0, "rtscope"), (length(TO_SLEEP) - 10, "swapper/0")]
    names.append((length(steps) - 30, "rtscope"))
    found = section(steps, TABLE, late=late, tasks=names)

    explanation = explain_path(found, TABLE, arch="riscv64", shift=shift)

    segments = explanation.segments
    assert all(0 <= s.begin_ns < s.end_ns <= late for s in segments)
    assert all(a.end_ns == b.begin_ns for a, b in pairwise(segments))
    slept = bool(segments) and segments[0].name == "(asleep)"
    assert explanation.residual_ns == (0 if slept else late % (1 << shift))


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


def test_without_names_of_tasks_nothing_tells_of_a_sleep() -> None:
    late = length(ORDINARY) + 700

    found = explained(IDLE, ORDINARY, late=late, tasks=False)

    assert found.segments[0].name != "(asleep)"
