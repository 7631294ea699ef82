"""A thread that somebody moves, or gives another policy, while it waits."""

import pytest

from fakes.paths import Step, Task, section, symbols
from fakes.wakeuppaths import NAMES
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Cause, Explanation
from rtscope.explain.words import sentence

TABLE = symbols(
    *(*NAMES, "try_to_wake_up", "enqueue_task_rt", "enqueue_task_fair"),
    *("move_queued_task", "my_mover", "resched_curr", "native_smp_send_reschedule"),
    *("__sched_setscheduler", "pick_task_fair"),
)
SLEEPS: list[Step] = [
    *((80, "user"), (10, "do_nanosleep"), (20, "__schedule"), (20, "__switch_to")),
    (300, "do_idle"),
]
BACK: list[Step] = [
    *((40, "__schedule"), (20, "__switch_to"), (10, "__schedule+")),
    *((15, "do_nanosleep+"), (9, "user")),
]


def timer(kind: str) -> list[Step]:
    return [
        *((10, "handle_exception"), (10, "do_irq"), (20, "hrtimer_interrupt")),
        *((10, "__hrtimer_run_queues"), (30, "hrtimer_wakeup"), (9, "try_to_wake_up")),
        *((9, kind), (5, "hrtimer_wakeup+"), (5, "hrtimer_interrupt+"), (5, "do_irq+")),
    ]


def there(call: str) -> list[Step]:
    """Return what another CPU does to a thread: it queues that here."""
    return [
        *((10, "my_mover", 1), (10, call, 1), (10, "enqueue_task_rt", 1)),
        *((5, "resched_curr", 1), (5, "native_smp_send_reschedule", 1)),
        (10, "my_mover+", 1),
    ]


def explained(away: list[Step], tasks: tuple[Task, ...]) -> Explanation:
    steps = [*SLEEPS, *away, *BACK]
    total = sum(step[0] for step in steps)
    path = section(
        steps,
        TABLE,
        late=total - 430,
        tasks=(
            *((0, "rtscope", 0, 49), (130, "swapper/0", 0, 120), *tasks),
            (total - 24 - 10, "rtscope", 0, 49),
        ),
        block_ns=40_000,
    )
    return explain_path(path, TABLE, arch="riscv64")


def moved(*, slept_ns: int = 30_000, rival: str | None = "usurper") -> Explanation:
    away: list[Step] = [
        *(*timer("enqueue_task_rt"), (20, "do_idle+"), (slept_ns, "user", 1)),
        *(*there("move_queued_task"), (5, "do_idle+")),
    ]
    return explained(away, () if rival is None else ((0, rival, 1, 39),))


def test_who_ran_where_the_thread_was_moved_to_and_who_moved_it_are_named() -> None:
    found = moved()

    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.task) == (Cause.OTHER_TASK, "usurper")
    assert found.broken == ()
    told = sentence(found)
    assert "Another task (usurper, real-time, priority 60) in (user space): 30" in told
    assert "queued until usurper on CPU 1 moved it here" in told
    assert not any("not runnable" in one for one in found.dominant.evidence)


@pytest.mark.parametrize(
    ("slept_ns", "rival"), [(4000, "usurper"), (30_000, "swapper/1"), (30_000, None)]
)
def test_a_thread_that_may_have_been_here_is_not_said_to_have_been_elsewhere(
    slept_ns: int, rival: str | None
) -> None:
    assert "moved it here" not in sentence(moved(slept_ns=slept_ns, rival=rival))


@pytest.mark.parametrize(
    ("others", "told"),
    [
        (((0, "swapper/1", 1, 120), (0, "usurper", 2, 39)), "on CPU 2, where"),
        (((0, "usurper", 1, 39), (0, "swapper/2", 2, 120)), "on CPU 1, where"),
        (((0, "usurper", 1, 39), (0, "rival", 2, 39)), ""),
        (((0, "usurper", 1, 39),), ""),
    ],
)
def test_of_several_cpus_it_was_on_the_one_that_did_not_idle(
    others: tuple[Task, ...], told: str
) -> None:
    away: list[Step] = [
        *(*timer("enqueue_task_rt"), (20, "do_idle+"), (15_000, "user", 2)),
        *((15_000, "user", 1), *there("move_queued_task"), (5, "do_idle+")),
    ]
    said = sentence(explained(away, others))

    assert ("moved it here" in said) == bool(told)
    assert told in said


def test_a_thread_that_became_ordinary_was_woken_as_such_and_runnable() -> None:
    away: list[Step] = [
        *(*timer("enqueue_task_fair"), (10, "handle_exception+"), (10, "__schedule")),
        *((10, "pick_task_fair"), (20, "__switch_to"), (20_000, "user")),
        *there("__sched_setscheduler"),
        (5, "user"),
    ]
    left = sum(step[0] for step in [*SLEEPS, *away[:-8]])
    found = explained(away, ((0, "root", 1, 120), (left, "chewer", 0, 120)))

    assert found.dominant is not None
    assert found.dominant.cause is Cause.NOT_REALTIME
    assert found.dominant.task == "chewer"
    assert not found.is_withdrawn
    who = "root on CPU 1 changed the policy of a thread 20"
    assert any(note.startswith(who) for note in found.notes)
