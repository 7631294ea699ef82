"""A thread whose group had used up its CPU time: its quota is blamed, if it shows."""

import pytest

from fakes.paths import ASLEEP, Step, Task, section, symbols
from fakes.wakeuppaths import NAMES, SWITCH, THREAD, TIMER
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Cause, Confidence, Explanation, Part
from rtscope.explain.words import evidence, sentence

TABLE = symbols(
    *(*NAMES, "throttle_cfs_rq", "unthrottle_cfs_rq", "__cfsb_csd_unthrottle"),
    "put_prev_entity",
)
NICE_0, NICE_19, FIFO_1 = 120, 139, 98
ENTRY: list[Step] = [(10, "handle_exception"), (10, "do_irq")]
GIVEN: list[Step] = [
    *ENTRY,
    *((10, "__cfsb_csd_unthrottle"), (30, "unthrottle_cfs_rq"), (5, "do_irq+")),
]
IDLE: list[Step] = [(50, "do_idle"), (30_000, ASLEEP)]
PROGRAM: list[Step] = [(30_000, "user")]


def taken() -> list[Step]:
    """A thread of the group uses up its time, and leaves its CPU."""
    return [
        *((50, "user"), (10, "__schedule"), (10, "put_prev_entity")),
        *((20, "throttle_cfs_rq"), (5, "put_prev_entity+"), (5, "__schedule+")),
        *((20, "__switch_to"), (10, "__schedule+")),
    ]


def length(steps: list[Step]) -> int:
    return sum(step[0] for step in steps)


def explained(
    before: list[Step],
    meanwhile: list[Step],
    *others: tuple[str, int],
    prio: int = NICE_0,
    given: list[Step] = GIVEN,
    last: str = "rtscope",
) -> Explanation:
    """Explain a thread that its timer wakes, and that runs when the time is given."""
    waits = [*TIMER, *meanwhile, *given]
    after, tasks = [*waits], list[Task]()
    for name, of in others:
        after += SWITCH
        tasks.append((length([*before, *after]) - 10, name, 0, of))
        after.append((500, "user"))
    after += SWITCH
    arrived_ns = length([*before, *after]) - 10
    after += THREAD
    steps = [*before, *after]
    first: list[Task] = [(0, last, 0, prio), (length(before) - 10, "swapper/0", 0, 120)]
    ours: Task = (arrived_ns, "rtscope", 0, prio)
    tasks = [*first, *tasks, ours]
    path = section(steps, TABLE, late=length(after), tasks=tasks, block_ns=40_000)
    return explain_path(path, TABLE, arch="riscv64")


def quotas(found: Explanation) -> list[tuple[str, Part, int, Confidence]]:
    return [
        (one.name, one.part, one.duration_ns, one.confidence)
        for one in found.segments
        if one.cause is Cause.CPU_QUOTA
    ]


def test_a_cpu_that_idles_beside_a_woken_thread_is_forbidden_to_it() -> None:
    found = explained(taken(), IDLE, last="hog")

    ((name, part, ns, sure),) = quotas(found)
    assert (name, part, sure) == ("throttle_cfs_rq", Part.D, Confidence.SEEN)
    assert 30_000 < ns < length([*TIMER, *IDLE, *GIVEN])
    assert found.dominant is not None
    assert found.dominant.cause is Cause.CPU_QUOTA
    told = " ".join(evidence(found.dominant))
    assert "callers: throttle_cfs_rq < put_prev_entity < __schedule" in told
    assert "the CPU was idle then" in told
    assert "given back by unthrottle_cfs_rq < __cfsb_csd_unthrottle" in told
    assert "The thread's group had used up its time" in sentence(found)
    assert found.residual_ns == 0
    assert found.broken == ()


def test_a_queue_that_was_taken_before_the_path_is_named_by_what_takes_queues() -> None:
    found = explained([(300, "user"), (10, "do_nanosleep"), *SWITCH], IDLE)

    assert [name for name, *_ in quotas(found)] == ["throttle_cfs_rq"]
    assert found.dominant is not None
    assert any("before the path begins" in one for one in evidence(found.dominant))


def test_a_program_that_ran_meanwhile_leaves_it_to_what_came_next() -> None:
    at_once = explained(taken(), PROGRAM, last="hog")
    softirqs = explained(taken(), PROGRAM, ("ktimers/0", FIFO_1), last="hog")
    another = explained(taken(), PROGRAM, ("other", NICE_19), last="hog")

    for found in (at_once, softirqs):
        ((_, _, ns, sure),) = quotas(found)
        assert ns > 30_000
        assert sure is Confidence.INFERRED
    assert quotas(another) == []


def test_a_thread_whose_cpu_was_taken_away_with_its_time_is_delayed_by_that() -> None:
    preempted: list[Step] = [
        *((50, "user"), *ENTRY, (10, "preempt_schedule_irq"), (10, "__schedule")),
        *((20, "throttle_cfs_rq"), (5, "__schedule+"), (20, "__switch_to")),
        *((10, "__schedule+"), *PROGRAM, *GIVEN, (500, "user"), *SWITCH),
        *((5, "preempt_schedule_irq+"), (5, "do_irq+"), (9, "user")),
    ]
    left_ns, arrived_ns = 135, length(preempted) - 29
    tasks = (
        *((0, "rtscope", 0, NICE_0), (left_ns, "other", 0, NICE_19)),
        (arrived_ns, "rtscope", 0, NICE_0),
    )
    path = section(
        preempted, TABLE, late=length(preempted) - 200, tasks=tasks, block_ns=40_000
    )

    found = explain_path(path, TABLE, arch="riscv64")

    ((name, part, ns, sure),) = quotas(found)
    assert (name, part, sure) == ("throttle_cfs_rq", Part.A, Confidence.SEEN)
    assert ns > 29_000
    assert found.dominant is not None
    assert "the thread had the CPU then" in " ".join(evidence(found.dominant))
    later = [one.cause for one in found.segments if one.task == "other"]
    assert later == [Cause.NOT_REALTIME]
    assert found.broken == ()
    assert found.residual_ns == 0


def test_a_queue_that_is_given_back_twice_was_the_threads_until_the_first_time() -> (
    None
):
    found = explained(taken(), IDLE, given=[*GIVEN, *PROGRAM, *GIVEN], last="hog")

    ((_, _, ns, _),) = quotas(found)
    assert 30_000 < ns < 31_000


@pytest.mark.parametrize(
    ("prio", "given"), [(FIFO_1, GIVEN), (NICE_0, [*ENTRY, (5, "do_irq+")])]
)
def test_a_real_time_thread_has_no_quota_and_none_ends_without_a_sign(
    prio: int, given: list[Step]
) -> None:
    found = explained(taken(), IDLE, prio=prio, given=given, last="hog")

    assert quotas(found) == []


def test_a_quota_behind_a_sleep_whose_end_is_inferred_is_inferred_too() -> None:
    on_cpu_1: list[Step] = [
        *((10, "do_irq", 1), (20, "hrtimer_interrupt", 1), (30, "hrtimer_wakeup", 1)),
        *((5, "hrtimer_interrupt+", 1), (5, "do_irq+", 1)),
    ]
    after = [(50, "do_idle"), (500, ASLEEP), *on_cpu_1, *IDLE, *GIVEN, *SWITCH, *THREAD]
    steps = [*taken(), *after]
    tasks: list[Task] = [
        *((0, "hog", 0, NICE_0), (length(taken()) - 10, "swapper/0", 0, NICE_0)),
        (length(steps) - 30, "rtscope", 0, NICE_0),
    ]
    path = section(steps, TABLE, late=length(after), tasks=tasks, block_ns=40_000)

    found = explain_path(path, TABLE, arch="riscv64")

    assert found.segments[0].cause is Cause.TIMER_ELSEWHERE
    assert found.segments[0].confidence is Confidence.INFERRED
    ((_, part, ns, sure),) = quotas(found)
    assert (part, sure) == (Part.D, Confidence.INFERRED)
    assert ns > 30_000
    assert found.broken == ()
