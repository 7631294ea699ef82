"""Who made the measured thread wait, who ended that, and what that task ran."""

import pytest

from fakes.paths import ASLEEP, Step, Task, section, symbols
from fakes.wakeuppaths import NAMES
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Cause, Explanation
from rtscope.explain.words import sentence

TABLE = symbols(
    *(*NAMES, "my_driver", "get_signal", "do_signal_stop", "do_freezer_trap"),
    *("ptrace_stop", "prepare_signal", "cgroup_freeze_task", "ptrace_request"),
    *("__ptrace_unlink", "try_to_wake_up", "enqueue_task_rt", "enqueue_task_fair"),
    *("native_smp_send_reschedule", "resched_curr", "wait_for_completion"),
    *("do_notify_parent", "my_complete", "my_device", "process_one_work"),
    *("wq_barrier_func", "work_ahead", "kworker_fn", "usleep_range_state"),
    *("schedule_hrtimeout_range", "rt_spin_lock", "rt_mutex_slowunlock", "my_holder"),
)
FIRST_NS = 100
"""The thread leaves its CPU that long after the begin of its path."""


def on(cpu: int, *names: str) -> list[Step]:
    """Return steps of 10 ns of a CPU."""
    return [(10, name, cpu) for name in names]


def wakes(cpu: int, *, kind: str = "enqueue_task_rt") -> list[Step]:
    """Return a call that puts a thread into a queue of CPU 0."""
    asks = [] if cpu == 0 else ["resched_curr", "native_smp_send_reschedule"]
    return on(cpu, "try_to_wake_up", kind, *asks)


def waited(
    *inside: str,
    away: list[Step],
    tasks: tuple[Task, ...],
    before: list[Step] | None = None,
    late_ns: int = 0,
    prio: int = 49,
) -> Explanation:
    """Explain a thread that leaves its CPU in calls, innermost last, until later."""
    leaves: list[Step] = [
        *(before or []),
        *((80, "user"), *((10, name) for name in inside)),
        *((20, "__schedule"), (20, "__switch_to")),
    ]
    back: list[Step] = [
        *((40, "__schedule"), (20, "__switch_to"), (10, "__schedule+")),
        *((5, f"{name}+") for name in reversed(inside)),
        (9, "user"),
    ]
    left_ns = sum(step[0] for step in leaves)
    back_ns = left_ns + sum(step[0] for step in away) + 60
    steps = [*leaves, *away, *back]
    path = section(
        steps,
        TABLE,
        late=late_ns or sum(step[0] for step in steps) - 20,
        tasks=(
            *((0, "rtscope", 0, prio), *tasks),
            *((left_ns, "swapper/0", 0, 120), (back_ns, "rtscope", 0, prio)),
        ),
        block_ns=40_000,
    )
    return explain_path(path, TABLE, arch="x86_64")


def said(found: Explanation, cause: Cause) -> str:
    """Return the sentence of an explanation of this cause."""
    assert found.dominant is not None
    assert found.dominant.cause is cause
    return sentence(found)


STOPS = {
    Cause.STOPPED: ("do_signal_stop", "prepare_signal", "prepare_signal", "a signal"),
    Cause.FROZEN: (
        *("do_freezer_trap", "cgroup_freeze_task", "cgroup_freeze_task"),
        "froze threads",
    ),
    Cause.TRACED: ("ptrace_stop", "ptrace_request", "__ptrace_unlink", "called ptrace"),
}


@pytest.mark.parametrize("cause", STOPS)
def test_who_stopped_the_thread_and_let_it_go_on_is_in_the_sentence(
    cause: Cause,
) -> None:
    inside, begun, ended, did = STOPS[cause]
    found = waited(
        *("get_signal", inside),
        before=[(30, "user", 1), *on(1, begun, "user")],
        away=[
            (50, "do_idle"),
            (5000, ASLEEP),
            *on(1, ended),
            *wakes(1),
            (9, "user", 1),
        ],
        tasks=((0, "warden", 1, 120),),
    )

    told = said(found, cause)

    assert "warden on CPU 1" in told
    assert did in told
    assert "let it go on" in told
    assert told.count("warden") == 1


def test_of_several_who_sent_signals_none_is_said_to_have_stopped_the_thread() -> None:
    sent = on(1, "prepare_signal", "user")
    found = waited(
        *("get_signal", "do_signal_stop"),
        before=[(30, "user", 1), *sent, (200, "user", 1), *sent],
        away=[
            *((50, "do_idle"), (5000, ASLEEP), *on(1, "prepare_signal"), *wakes(1)),
            (9, "user", 1),
        ],
        tasks=((0, "first", 1, 120), (60, "other ones", 1, 120), (500, "killer", 1)),
    )

    told = said(found, Cause.STOPPED)

    assert "first" not in told
    assert "other ones" not in told
    assert "killer on CPU 1 let it go on" in told


def test_a_task_that_ends_tells_its_parent_and_stops_nobody() -> None:
    found = waited(
        *("get_signal", "do_signal_stop"),
        before=[(30, "user", 1), *on(1, "do_notify_parent", "prepare_signal", "user")],
        away=[
            *((50, "do_idle"), (5000, ASLEEP), *on(1, "prepare_signal"), *wakes(1)),
            (9, "user", 1),
        ],
        tasks=((0, "leaver", 1, 120), (500, "killer", 1, 120)),
    )

    assert "leaver" not in said(found, Cause.STOPPED)


def work(cpu: int) -> list[Step]:
    """Return a worker with a work item ahead of the barrier that somebody awaits."""
    return [
        *((20, "process_one_work", cpu), (4000, "work_ahead", cpu)),
        *((20, "process_one_work+", cpu), *on(cpu, "wq_barrier_func", "my_complete")),
        *wakes(cpu),
    ]


@pytest.mark.parametrize("cpu", [0, 1])
def test_the_work_item_ahead_in_the_queue_is_named(cpu: int) -> None:
    tasks: tuple[Task, ...] = ((0, "worker", 1, 120),) if cpu else ()
    here = [] if cpu else [(10, "__schedule"), (20, "__switch_to"), (5, "kworker_fn")]
    if not cpu:
        tasks = ((250, "worker", 0, 120),)
    found = waited(
        *("my_driver", "wait_for_completion"),
        away=[(50, "do_idle"), *here, *work(cpu), (9, "user", cpu)],
        tasks=tasks,
    )

    told = said(found, Cause.BLOCKED)

    assert f"worker on CPU {cpu} ended the wait, and ran work_ahead (4.00 µs)" in told
    assert "wq_barrier_func" not in told


def test_a_wait_that_an_interrupt_ended_is_for_that_and_names_its_handler() -> None:
    found = waited(
        *("my_driver", "wait_for_completion"),
        away=[
            *((50, "do_idle"), (5000, ASLEEP)),
            *on(1, "handle_exception", "do_irq", "my_device", "my_complete"),
            *(*wakes(1), (9, "user", 1)),
        ],
        tasks=((0, "somebody", 1, 120),),
    )

    told = said(found, Cause.AWAITED_INTERRUPT)

    assert "my_device on CPU 1 ended the wait" in told
    assert "in my_driver" in told
    assert "somebody" not in told


def test_a_wake_up_behind_which_another_task_ran_proves_nothing() -> None:
    found = waited(
        *("my_driver", "wait_for_completion"),
        away=[
            *((50, "do_idle"), (3000, ASLEEP), *wakes(1), (9, "user", 1)),
            *((10, "__schedule"), (20, "__switch_to"), (2000, "user")),
        ],
        tasks=((0, "helper", 1, 120), (3350, "rival", 0, 9)),
    )

    assert "ended the wait" not in said(found, Cause.BLOCKED)


def test_one_that_wakes_a_thread_of_another_kind_did_not_end_the_wait() -> None:
    found = waited(
        *("my_driver", "wait_for_completion"),
        away=[
            *((50, "do_idle"), (3000, ASLEEP)),
            *(*wakes(1, kind="enqueue_task_fair"), (9, "user", 1)),
        ],
        tasks=((0, "helper", 1, 120),),
    )

    assert "ended the wait" not in said(found, Cause.BLOCKED)


def test_a_sleep_in_a_driver_is_the_threads_own_and_no_earlier_wake_up() -> None:
    found = waited(
        *("my_driver", "usleep_range_state", "schedule_hrtimeout_range"),
        away=[
            *((50, "do_idle"), (5000, ASLEEP)),
            *((10, "handle_exception"), (10, "do_irq"), (20, "hrtimer_interrupt")),
            *((10, "__hrtimer_run_queues"), (30, "hrtimer_wakeup"), *wakes(0)),
            (5, "do_irq+"),
        ],
        tasks=(),
    )

    told = said(found, Cause.OWN_SLEEP)

    assert "slept for a time, in my_driver" in told
    assert found.broken == ()


def test_the_holder_that_ran_on_the_threads_own_cpu_is_named_with_its_place() -> None:
    found = waited(
        *("my_driver", "rt_spin_lock"),
        away=[
            *((10, "__schedule"), (20, "__switch_to"), (4000, "my_holder")),
            *((10, "rt_mutex_slowunlock"), *wakes(0)),
        ],
        tasks=((190, "holder", 0, 120),),
    )

    told = said(found, Cause.LOCK)

    assert "its holder holder ran here, in my_holder" in told
