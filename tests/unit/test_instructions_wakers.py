"""Another CPU made the thread runnable: what ran here before it, and why."""

from itertools import product

import pytest

from fakes.paths import ASLEEP, Step, section, symbols
from fakes.wakeuppaths import NAMES, THREAD
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Cause, Explanation, Invariant, Part, Segment

TABLE = symbols(
    *(*NAMES, "my_work", "enqueue_task_rt", "enqueue_task_fair", "resched_curr"),
    *("native_smp_send_reschedule", "native_send_call_func_single_ipi"),
    *("sched_ttwu_pending", "fair_server_pick_task", "pick_task_fair", "pick_task_rt"),
    *("prepare_signal", "do_signal_stop", "get_signal", "my_sender"),
)
WORK: list[Step] = [(1000, "my_work")]
"""Until the timer is due."""
ENTRY: list[Step] = [(10, "handle_exception"), (10, "do_irq"), (8, "ipi_handler")]
EXIT: list[Step] = [(5, "ipi_handler+"), (5, "do_irq+")]
SERVED: list[Step] = [(10, "fair_server_pick_task"), (10, "pick_task_fair")]
ORDINARY: list[Step] = [(10, "pick_task_fair")]
REALTIME: list[Step] = [(10, "pick_task_rt")]
QUEUED: list[Step] = [(9, "enqueue_task_rt", 1)]
QUEUED_FAIR: list[Step] = [(9, "enqueue_task_fair", 1)]
ASKS: list[Step] = [(9, "resched_curr", 1), (9, "native_smp_send_reschedule", 1)]
"""The steps of the other CPU by which it puts the thread into a queue of this one."""
CALLS: list[Step] = [(9, "native_send_call_func_single_ipi", 1)]
"""It has this CPU put the thread into its queue."""
PENDING: list[Step] = [
    *((8, "sched_ttwu_pending"), (9, "enqueue_task_rt"), (9, "resched_curr")),
    (5, "sched_ttwu_pending+"),
]
STOPPED: list[Step] = [(5, "do_signal_stop+"), (5, "get_signal+"), (9, "user")]
"""Where a thread that was stopped goes on."""


def wakes(*steps: Step) -> list[Step]:
    """Return the timer's interrupt on the other CPU."""
    return [
        *((10, "handle_exception", 1), (10, "do_irq", 1), (20, "hrtimer_interrupt", 1)),
        *((10, "__hrtimer_run_queues", 1), (30, "hrtimer_wakeup", 1), *steps),
        *((5, "hrtimer_wakeup+", 1), (5, "hrtimer_interrupt+", 1), (5, "do_irq+", 1)),
    ]


def continues(*steps: Step) -> list[Step]:
    """Return a signal that another CPU sends to the stopped thread."""
    sent: list[Step] = [(20, "my_sender", 1), (30, "prepare_signal", 1)]
    return [*sent, *steps, (5, "prepare_signal+", 1), (20, "my_sender+", 1)]


def again(*chosen: Step) -> list[Step]:
    """Return a call of the scheduler that chooses the task that runs."""
    return [
        *((10, "preempt_schedule_irq"), (10, "__schedule"), *chosen),
        *((10, "__schedule+"), (5, "preempt_schedule_irq+"), (5, "handle_exception+")),
    ]


def length(steps: list[Step]) -> int:
    return sum(step[0] for step in steps)


def switch() -> list[Step]:
    return [
        *((10, "preempt_schedule_irq"), (10, "__schedule"), *REALTIME),
        *((10, "__schedule+"), (20, "__switch_to"), (10, "__schedule+")),
    ]


def explained(
    steps: list[Step],
    *,
    prio: int = 19,
    back: list[Step] = THREAD,
    task: tuple[str, int] = ("worker/0", 120),
    flags: tuple[tuple[int, int], ...] = ((0, 1),),
) -> Explanation:
    """Explain a wake-up that was due when the first step, of 1000 ns, had ended."""
    steps = [*steps, *switch(), *back]
    ended = length(steps)
    late = ended - 1000
    tasks = (
        *((0, task[0], 0, task[1]), (0, "sender", 1, 120)),
        (ended - length(back) - 10, "rtscope", 0, prio),
    )
    path = section(steps, TABLE, late=late, tasks=tasks, flags=flags, block_ns=40_000)
    found = explain_path(path, TABLE, arch="x86_64")
    assert found.residual_ns == 0
    return found


def work_of(found: Explanation, *, ns: int) -> Segment:
    """Return what the other task here executed at last, of this length."""
    (late,) = (s for s in found.segments if s.duration_ns == ns)
    assert late.name == "my_work"
    assert found.broken == ()
    return late


@pytest.mark.parametrize(
    ("there", "here"), [([*QUEUED, *ASKS], []), (CALLS, PENDING)], ids=["there", "here"]
)
def test_a_task_chosen_again_delays_a_thread_that_another_cpu_woke(
    there: list[Step], here: list[Step]
) -> None:
    asked = [*wakes(*there), (20, "my_work+"), *ENTRY, *here, *EXIT]
    steps = [*WORK, *asked, *again(*SERVED), (400, "my_work+")]

    late = work_of(explained(steps), ns=400)

    assert (late.part, late.cause) == (Part.D, Cause.FAIR_SERVER)
    assert late.task == "worker/0"


def test_a_choice_before_another_cpu_woke_the_thread_says_nothing_of_it() -> None:
    before = [*ENTRY, *EXIT, *again(*SERVED)]
    asked = [*wakes(*CALLS), (20, "my_work+"), *ENTRY, *EXIT, *again(*SERVED)]
    late_call: list[Step] = [(5, "my_work+"), *ENTRY, *PENDING, *EXIT]
    steps = [*WORK, *before, *asked, *late_call, (400, "my_work+")]

    late = work_of(explained(steps), ns=400)

    assert (late.part, late.cause) == (Part.C, Cause.PREEMPTION_OFF)


def test_an_ordinary_thread_that_another_cpu_woke_is_delayed_by_being_so() -> None:
    asked = [*wakes(*QUEUED_FAIR, *ASKS), (20, "my_work+"), *ENTRY, *EXIT]
    steps = [*WORK, *asked, *again(*ORDINARY), (400, "my_work+")]

    late = work_of(explained(steps, prio=120), ns=400)

    assert (late.part, late.cause) == (Part.D, Cause.NOT_REALTIME)


@pytest.mark.parametrize(
    ("chosen", "cause"),
    [(SERVED, Cause.FAIR_SERVER), ([], Cause.PREEMPTION_OFF)],
    ids=["again", "not asked"],
)
def test_a_task_chosen_again_delays_a_thread_that_was_stopped(
    chosen: list[Step], cause: Cause
) -> None:
    asked = [*continues(*QUEUED, *ASKS), (20, "my_work+"), *ENTRY, *EXIT]
    scheduler = again(*chosen) if chosen else []
    steps = [*WORK, *asked, *scheduler, (400, "my_work+")]

    found = explained(steps, back=STOPPED)

    assert found.segments[0].cause is Cause.STOPPED
    late = work_of(found, ns=400)
    assert late.cause is cause


@pytest.mark.parametrize(
    ("way", "code"), list(product(("timer", "signal"), ("user", "my_work")))
)
def test_a_task_that_need_not_give_way_to_a_thread_is_what_it_waits_for(
    way: str, code: str
) -> None:
    by_timer = way == "timer"
    woken = wakes(*QUEUED) if by_timer else continues(*QUEUED)
    on: Step = (12_000, "user" if code == "user" else f"{code}+")
    steps = [(1000, code), *woken, on, *ENTRY, *EXIT, on]

    found = explained(steps, back=THREAD if by_timer else STOPPED, task=("fifo_hog", 9))

    assert found.segments[0].cause is (
        Cause.TIMER_ELSEWHERE if by_timer else Cause.STOPPED
    )
    late = [one for one in found.segments if one.duration_ns >= 12_000]
    assert [(one.cause, one.task) for one in late] == [
        (Cause.OTHER_TASK, "fifo_hog")
    ] * 2
    assert found.broken == ()


@pytest.mark.parametrize(
    ("there", "here"), [([*QUEUED, *ASKS], []), (CALLS, PENDING)], ids=["there", "here"]
)
def test_interrupts_that_are_off_when_another_cpu_wakes_a_stopped_thread_delay_it(
    there: list[Step], here: list[Step]
) -> None:
    sent, off = continues(*there), (700, "free_pages+")
    before: list[Step] = [(1000, "free_pages"), *sent, off]
    on_ns = length(before)
    steps = [*before, *ENTRY, *here, *EXIT]

    found = explained(steps, back=STOPPED, flags=((0, 0), (on_ns, 1)))

    assert [(one.cause, one.end_ns) for one in found.segments[:2]] == [
        (Cause.STOPPED, 20 + 30),
        (Cause.INTERRUPTS_OFF, on_ns - 1000),
    ]
    assert found.broken == ()


def test_a_program_that_continues_behind_the_interrupt_has_preemption_on() -> None:
    woken = continues(*QUEUED, *ASKS)
    steps: list[Step] = [(1000, "user"), *woken, (20, "user"), *ENTRY, *EXIT]

    found = explained([*steps, (12_000, "user")], back=STOPPED, task=("fifo_hog", 9))

    (late,) = (one for one in found.segments if one.duration_ns >= 12_000)
    assert (late.cause, late.task) == (Cause.OTHER_TASK, "fifo_hog")
    assert found.broken == ()


def test_a_thread_known_as_real_time_is_not_delayed_by_being_ordinary() -> None:
    asked = [*wakes(*QUEUED, *ASKS), (20, "my_work+"), *ENTRY, *EXIT]
    steps = [*WORK, *asked, *again(*ORDINARY), (400, "my_work+")]

    found = explained(steps)

    assert not any(one.cause is Cause.NOT_REALTIME for one in found.segments)
    assert Invariant.CHOICE in {one.invariant for one in found.broken}


@pytest.mark.parametrize("others", ["enqueue_task_fair", "enqueue_task_rt"])
def test_a_call_that_wakes_many_threads_does_not_show_when_it_woke_ours(
    others: str,
) -> None:
    many: list[Step] = [(500, others, 1), (500, "prepare_signal+", 1)] * 20
    woken = [*continues(*many, *QUEUED, *ASKS), (20, "my_work+")]
    steps: list[Step] = [*WORK, *woken, *ENTRY, *EXIT, (400, "my_work+")]

    found = explained(steps, back=STOPPED)

    assert found.broken == ()
    first = found.segments[0]
    assert first.cause is Cause.STOPPED
    assert first.duration_ns >= 20_000


@pytest.mark.parametrize(
    ("queues", "is_elsewhere"),
    [("enqueue_task_fair", True), ("enqueue_task_rt", False)],
)
def test_a_timer_here_that_wakes_an_ordinary_thread_is_not_a_real_time_ones(
    queues: str, is_elsewhere: bool
) -> None:
    here: list[Step] = [
        *((10, "handle_exception"), (10, "do_irq"), (20, "hrtimer_interrupt")),
        *((10, "__hrtimer_run_queues"), (30, "hrtimer_wakeup"), (9, queues)),
        *((5, "hrtimer_wakeup+"), (5, "hrtimer_interrupt+"), (5, "do_irq+")),
    ]
    first: list[Step] = [*here, (1000 - length(here), "my_work+")]
    asked = [*wakes(*QUEUED, *ASKS), (20, "my_work+"), *ENTRY, *EXIT]

    found = explained([*first, *asked])

    causes = {one.cause for one in found.segments}
    assert (Cause.TIMER_ELSEWHERE in causes) is is_elsewhere
    assert (found.broken == ()) is is_elsewhere


def test_a_cpu_that_sleeps_on_after_it_was_asked_leaves_its_idle_state_then() -> None:
    asleep: list[Step] = [(1000, ASLEEP), *wakes(*QUEUED, *ASKS), (3000, ASLEEP)]

    found = explained([*asleep, *ENTRY, *EXIT], task=("swapper/0", 120))

    asked_ns = 50 + 30 + 9 + 9
    assert [(one.cause, one.end_ns) for one in found.segments[:2]] == [
        (Cause.TIMER_ELSEWHERE, asked_ns),
        (Cause.IDLE_EXIT, length(asleep) - 1000),
    ]
    assert found.broken == ()
