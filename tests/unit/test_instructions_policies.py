"""A task that gets another policy or name while it runs has the one of that time."""

from collections.abc import Sequence

import pytest

from fakes.paths import Step, section
from fakes.wakeuppaths import COMPETING_TASKS, ENTRY, SWITCH, THREAD
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Cause, Explanation, Invariant
from rtscope.explain.words import sentence
from rtscope.record.instructions.section import task_switches

DEADLINE, FIFO_90, FIFO_60, NICE = (1 << 32) - 1, 9, 39, 120
OURS = 49
BEFORE: list[Step] = [(500, "user")]
WOKEN: list[Step] = [
    *ENTRY,
    *((20, "hrtimer_interrupt"), (10, "__hrtimer_run_queues")),
    *((10, "hrtimer_wakeup"), (20, "enqueue_task_rt"), (5, "hrtimer_wakeup+")),
    *((5, "__hrtimer_run_queues+"), (5, "hrtimer_interrupt+"), (5, "do_irq+")),
]
RUNS: list[Step] = [(15_000, "user")]
LEFT: list[Step] = [*ENTRY, (10, "preempt_schedule_irq"), *SWITCH]


def explained(
    *changes: tuple[int, int],
    since: int = NICE,
    cpu: int = 0,
    renames: Sequence[tuple[int, int, str]] = (),
) -> Explanation:
    """
    Explain a wake-up beside a program; its changes: (ns since the expiry, prio).

    `renames` are its names: (ns since the expiry, CPU that gives it, name).
    """
    steps = [*BEFORE, *WOKEN, *RUNS * 2, *LEFT, *THREAD]
    late = sum(step[0] for step in steps) - 500
    arrived = late + 500 - 20 - 8
    path = section(
        steps,
        COMPETING_TASKS,
        late=late,
        tasks=((0, "hog", cpu, since), (arrived, "rtscope/0", 0, OURS)),
        changes=[(500 + at, cpu, prio) for at, prio in changes],
        renames=[(500 + at, by, "hog", name) for at, by, name in renames],
        block_ns=20_000,
    )
    return explain_path(path, COMPETING_TASKS, arch="riscv64")


@pytest.mark.parametrize(
    ("prio", "policy"),
    [
        (DEADLINE, "SCHED_DEADLINE"),
        (FIFO_90, "real-time, priority 90"),
        (FIFO_60, "real-time, priority 60"),
        (OURS, "real-time, priority 50"),  # of the same one, none gives way
        (0, "real-time, priority 99"),
    ],
)
def test_a_policy_that_a_program_got_before_the_expiry_is_told(
    prio: int, policy: str
) -> None:
    found = explained((-300, prio))

    assert found.broken == ()
    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.policy) == (Cause.OTHER_TASK, policy)
    assert f"Another task (hog, {policy}) in (user space): 30.0 µs" in sentence(found)


@pytest.mark.parametrize("prio", [NICE, 100, 139, 59, 98])
def test_a_program_that_goes_behind_the_thread_keeps_no_cpu_from_it(prio: int) -> None:
    found = explained(since=prio)

    assert [one.invariant for one in found.broken] == [Invariant.CHOICE]
    assert found.is_withdrawn
    assert "Another task" not in sentence(found)


def test_what_changes_meanwhile_is_two_tasks_in_the_sentence() -> None:
    found = explained((-300, DEADLINE), (15_100, FIFO_90))
    policies = [one.policy for one in found.segments if one.task == "hog"]

    assert [*dict.fromkeys(policies)] == ["SCHED_DEADLINE", "real-time, priority 90"]
    text = sentence(found)
    assert "(hog, SCHED_DEADLINE) in (user space): 15.0 µs" in text
    assert "(hog, real-time, priority 90) in (user space): 15.0 µs" in text


def test_a_policy_that_is_lent_and_given_back_is_that_of_its_time() -> None:
    found = explained((-400, FIFO_90), (-200, NICE), (-100, FIFO_60))

    assert found.dominant is not None
    assert found.dominant.policy == "real-time, priority 60"


def test_a_change_on_another_cpu_is_not_that_of_this_one() -> None:
    steps = [*BEFORE, *WOKEN]
    path = section(
        steps,
        COMPETING_TASKS,
        late=95,
        tasks=((0, "hog", 0, NICE), (0, "other", 1, NICE)),
        changes=[(100, 1, FIFO_90), (200, 2, FIFO_60)],
    )

    assert [(t.cpu, t.name, t.policy, t.changed) for t in task_switches(path)] == [
        (0, "hog", "not real-time, nice 0", False),
        (1, "other", "not real-time, nice 0", False),
        (1, "other", "real-time, priority 90", True),
    ]


def lent(prio: int, own: int) -> int:
    """Return the record of a priority that is not the task's own."""
    return (own - prio) << 16 | prio & 0xFFFF


@pytest.mark.parametrize(
    ("recorded", "policy"),
    [
        (lent(FIFO_90, NICE), "real-time, priority 90, by priority inheritance"),
        (lent(19, 89), "real-time, priority 80, by priority inheritance"),
        (lent(FIFO_90, 10), "real-time, priority 90, by priority inheritance"),
        (lent(0, 139), "real-time, priority 99, by priority inheritance"),
        (lent(-1, NICE), "SCHED_DEADLINE, by priority inheritance"),
        (lent(-1, FIFO_60), "SCHED_DEADLINE, by priority inheritance"),
        (lent(FIFO_90, FIFO_90), "real-time, priority 90"),
        (lent(-1, -1), "SCHED_DEADLINE"),
        (DEADLINE, "SCHED_DEADLINE"),  # of files without the task's own priority
    ],
)
def test_a_priority_that_a_task_inherits_is_not_told_as_its_own(
    recorded: int, policy: str
) -> None:
    for found in (explained(since=recorded), explained((-300, recorded))):
        assert found.broken == ()
        assert f"Another task (hog, {policy}) in (user space): " in sentence(found)


@pytest.mark.parametrize("by", [0, 1])
def test_a_name_that_a_program_got_before_the_expiry_is_in_the_sentence(
    by: int,
) -> None:
    found = explained(since=FIFO_90, renames=[(-100, by, "grinder")])

    assert found.broken == ()
    assert "Another task (grinder, real-time, priority 90)" in sentence(found)
    assert "hog" not in sentence(found)


@pytest.mark.parametrize(("at", "name"), [(200, "grinder"), (29_900, "hog")])
def test_of_two_names_the_longer_one_is_in_the_sentence(at: int, name: str) -> None:
    found = explained(since=FIFO_90, renames=[(at, 0, "grinder")])

    assert found.dominant is not None
    assert f"Another task ({name}, real-time, priority 90)" in sentence(found)
    assert "hog got the name grinder" in found.dominant.evidence


def test_a_name_and_a_priority_change_each_without_the_other() -> None:
    found = explained((-200, FIFO_90), renames=[(-300, 0, "a"), (-100, 0, "grinder")])

    assert "Another task (grinder, real-time, priority 90)" in sentence(found)
