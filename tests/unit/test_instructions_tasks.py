"""That another task ran before the thread is seen, and told with its name and cause."""

from fakes.paths import Step, section
from fakes.wakeuppaths import (
    ENTRY,
    PREEMPT,
    SWITCH,
    TABLE,
    THREAD,
    TIMER,
    among_rivals,
    explained,
)
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Cause, Invariant, Part
from rtscope.explain.words import sentence


def test_another_task_that_runs_first() -> None:
    found = explained(
        [(50, "user")], [*TIMER, *PREEMPT, (900, "user"), *SWITCH, *THREAD]
    )

    dominant = found.dominant
    assert dominant is not None
    assert (dominant.part, dominant.cause) == (Part.D, Cause.OTHER_TASK)
    assert dominant.duration_ns == 900


def test_a_program_that_goes_on_after_the_interrupt_has_a_higher_priority() -> None:
    found = explained(
        [(50, "user")],
        [*TIMER, (2, "handle_exception+"), (900, "user"), *SWITCH, *THREAD],
    )

    dominant = found.dominant
    assert dominant is not None
    assert (dominant.part, dominant.cause) == (Part.C, Cause.OTHER_TASK)
    assert dominant.duration_ns == 900


def timer(*woken: Step) -> list[Step]:
    return [*TIMER[:5], *woken, *TIMER[5:]]


def test_a_kernel_thread_that_was_not_told_to_give_way_has_a_higher_priority() -> None:
    busy: list[Step] = [(2, "handle_exception+"), (700, "zap+")]
    told = timer((9, "enqueue_task_rt"), (9, "resched_curr"))
    untold = timer((9, "enqueue_task_rt"))

    irqs_off = among_rivals([(50, "zap")], [*told, *busy, *SWITCH, *THREAD]).dominant
    rival = among_rivals([(50, "zap")], [*untold, *busy, *SWITCH, *THREAD]).dominant

    assert irqs_off is not None
    assert rival is not None
    assert (irqs_off.cause, irqs_off.name) == (Cause.PREEMPTION_OFF, "zap")
    assert (rival.cause, rival.name) == (Cause.OTHER_TASK, "zap")


def test_a_thread_that_was_queued_as_an_ordinary_one_is_not_real_time() -> None:
    woken = timer((9, "enqueue_task_fair"))

    found = among_rivals([(50, "user")], [*woken, (900, "user"), *SWITCH, *THREAD])

    assert found.dominant is not None
    assert found.dominant.cause is Cause.NOT_REALTIME


def test_the_fair_server_is_told_from_a_task_of_higher_priority() -> None:
    woken = timer((9, "enqueue_task_rt"), (9, "resched_curr"))
    chosen: list[Step] = [
        *((10, "preempt_schedule_irq"), (10, "__schedule")),
        *((10, "fair_server_pick_task"), (10, "__schedule+"), (900, "user")),
    ]

    found = among_rivals([(50, "user")], [*woken, *chosen, *SWITCH, *THREAD])

    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.duration_ns) == (
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

    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.duration_ns) == (Cause.THROTTLED, 900)


def test_the_task_that_ran_instead_is_named() -> None:
    after = [*TIMER, (900, "user"), *SWITCH, *THREAD]
    path = section(
        [(50, "user"), *after],
        TABLE,
        late=sum(step[0] for step in after),
        tasks=((0, "hog"), (50 + 95 + 900 + 60, "rtscope")),
    )

    found = explain_path(path, TABLE, arch="riscv64")

    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.task) == (Cause.OTHER_TASK, "hog")
    assert "Another task (hog) in (user space): 0.900 µs" in sentence(found)


def test_a_path_without_the_wake_up_does_not_blame_the_delivery() -> None:
    steps: list[Step] = [(900, "user"), *PREEMPT, *THREAD]

    found = explain_path(section(steps, TABLE, late=1000), TABLE, arch="x")

    assert found.segments[0].cause is Cause.OTHER_TASK
    assert any("did not execute the callback" in note for note in found.notes)
    # Nothing shows that the thread was runnable: nobody is blamed for certain.
    assert [one.invariant for one in found.broken] == [Invariant.RUNNABLE]
    assert found.dominant is None
