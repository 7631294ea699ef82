"""Why the measured thread itself could not run, and who kept it from that."""

import pytest

from fakes.paths import ASLEEP, Step, section, symbols
from fakes.wakeuppaths import NAMES, PREEMPT, SWITCH, THREAD, TIMER
from rtscope.explain.instructions.absences import Wait, wait_of
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import COMPETING_TASKS, Cause, Confidence, Explanation, Part
from rtscope.explain.words import evidence, sentence

HELD = {
    "stopped": (Cause.STOPPED, "do_signal_stop", "prepare_signal"),
    "frozen": (Cause.FROZEN, "do_freezer_trap", "cgroup_freeze_task"),
    "traced": (Cause.TRACED, "ptrace_stop", "__ptrace_unlink"),
    "waits": (Cause.DESCRIPTOR, "pipe_read", "__wake_up_common"),
    "locked": (Cause.LOCK, "rt_spin_lock", "rt_mutex_slowunlock"),
}
FUNCTIONS = [name for _, *names in HELD.values() for name in names]
TABLE = symbols(*NAMES, "get_signal", *FUNCTIONS)


def held_back(inside: str, ended_by: str, *, late_ns: int) -> Explanation:
    """Explain a thread that is away from 100 ns after the begin of its path on."""
    leaves: list[Step] = [(80, "user"), (10, "get_signal"), (10, inside), *SWITCH]
    away: list[Step] = [(50, "do_idle"), (5000, ASLEEP), (30, "user", 1)]
    freed: list[Step] = [(20, ended_by, 1), (30, "user", 1)]
    back: list[Step] = [*SWITCH, (5, f"{inside}+"), (5, "get_signal+"), (9, "user")]
    left_ns, arrived_ns = 160, 170 + 50 + 5000 + 30 + 50 + 60
    tasks = (
        *((0, "rtscope"), (0, "sh", 1)),
        *((left_ns, "swapper/0"), (5215, "killer", 1), (arrived_ns, "rtscope")),
    )
    steps = [*leaves, *away, *freed, *back]
    path = section(steps, TABLE, late=late_ns, tasks=tasks, block_ns=1024)
    return explain_path(path, TABLE, arch="x86_64")


@pytest.mark.parametrize("how", HELD)
def test_a_thread_that_is_held_back_is_delayed_by_that_and_by_no_task(how: str) -> None:
    cause, inside, ended_by = HELD[how]

    found = held_back(inside, ended_by, late_ns=5000)

    dominant = found.dominant
    assert dominant is not None
    assert (dominant.part, dominant.cause) == (Part.A, cause)
    assert dominant.duration_ns > 4500
    assert dominant.name == ("get_signal" if how == "locked" else inside)
    assert "made runnable again by killer on CPU 1" in evidence(dominant)
    assert dominant.confidence is Confidence.SEEN
    assert "swapper" not in sentence(found)
    assert found.residual_ns == 0
    assert found.broken == ()


def test_a_thread_that_is_stopped_behind_its_wake_up_is_delayed_by_that() -> None:
    cause, inside, ended_by = HELD["stopped"]

    found = held_back(inside, ended_by, late_ns=5350)

    dominant = found.dominant
    assert dominant is not None
    assert (dominant.cause, dominant.name) == (cause, inside)


def test_without_a_sign_of_its_end_a_stop_goes_on_until_the_thread_runs() -> None:
    found = held_back("do_signal_stop", "zap", late_ns=5000)

    dominant = found.dominant
    assert dominant is not None
    assert dominant.cause is Cause.STOPPED
    assert dominant.confidence is Confidence.INFERRED
    assert not any("made runnable" in line for line in evidence(dominant))
    behind = [(one.part, one.cause) for one in found.segments[1:]]
    assert behind == [(Part.E, Cause.RETURN)]


@pytest.mark.parametrize("waker", ["", "futex_wake"])
def test_a_wait_that_its_timeout_ended_is_a_sleep_until_a_timer(waker: str) -> None:
    table = symbols(*NAMES, "futex_wait", "futex_wake", "__wake_up_common")
    # A queue of somebody else's is woken meanwhile, which ends no wait of a futex.
    beside: list[Step] = [(20, waker or "__wake_up_common", 1), (30, "user", 1)]
    leaves: list[Step] = [(80, "user"), (20, "futex_wait"), *SWITCH, (50, "do_idle")]
    steps = [*leaves, (5000, ASLEEP), *beside, *TIMER, *PREEMPT, *THREAD]
    behind_ns = sum(step[0] for step in (*TIMER, *PREEMPT, *THREAD))
    arrived_ns = 210 + 5050 + sum(step[0] for step in TIMER) + 80
    tasks = (
        *((0, "rtscope"), (0, "sh", 1), (160, "swapper/0")),
        (arrived_ns, "rtscope"),
    )
    path = section(steps, table, late=5000 + behind_ns, tasks=tasks, block_ns=1024)

    found = explain_path(path, table, arch="x86_64")

    causes = {one.cause for one in found.segments}
    assert (Cause.DESCRIPTOR in causes) == bool(waker)


@pytest.mark.parametrize(
    ("calls", "wait"),
    [
        ("__switch_to __schedule schedule do_nanosleep do_syscall_64", Wait.TIMER),
        ("__schedule schedule do_signal_stop get_signal", Wait.STOPPED),
        ("__schedule preempt_schedule_irq do_nanosleep", Wait.CPU),
        ("__schedule schedule exit_to_user_mode_loop", Wait.CPU),
        ("__schedule schedule my_driver_read do_syscall_64", Wait.THREAD),
        ("my_driver_read do_syscall_64", Wait.UNKNOWN),
        ("__schedule schedule do_sched_yield do_syscall_64", Wait.CPU),
        ("__switch_to_asm __schedule __cond_resched save my_thread", Wait.CPU),
        ("__schedule preempt_schedule_common __cond_resched mutex_lock", Wait.CPU),
        ("__schedule _cond_resched down_read my_driver_read", Wait.CPU),
        ("__schedule __cond_resched_lock unmap_page_range", Wait.CPU),
        ("__schedule __cond_resched handle_mm_fault exc_page_fault", Wait.CPU),
        ("__schedule irqentry_exit_cond_resched do_nanosleep", Wait.CPU),
        ("schedule_timeout wait_for_completion __synchronize_srcu", Wait.GRACE_PERIOD),
        ("schedule_timeout wait_for_completion flush_work my_flush", Wait.THREAD),
        ("__schedule schedule my_driver_read pipe_read", Wait.DESCRIPTOR),
        ("schedule rwsem_down_read_slowpath lock_mm do_user_addr_fault", Wait.PAGE),
        ("", Wait.UNKNOWN),
    ],
)
def test_the_innermost_call_with_a_meaning_shows_what_a_thread_waits_for(
    calls: str, wait: Wait
) -> None:
    assert wait_of(calls.split()) is wait


def test_a_sleep_for_a_timer_that_was_already_due_is_part_of_the_return() -> None:
    again: list[Step] = [(5, "user"), (10, "do_nanosleep"), *SWITCH, (50, "do_idle")]
    steps = [(100, "user"), *TIMER, *PREEMPT, *again, *TIMER, *PREEMPT, *THREAD]
    first, left = 100 + 95 + 70, 100 + 95 + 80 + 15 + 60
    tasks = ((0, "sh"), (first, "rtscope"), (left, "sh"), (left + 225, "rtscope"))
    path = section(steps, TABLE, late=sum(s[0] for s in steps) - 265, tasks=tasks)

    found = explain_path(path, TABLE, arch="riscv64")

    assert {s.cause for s in found.segments} >= {Cause.RETURN}
    assert not any(s.cause is Cause.OTHER_TASK for s in found.segments)


def test_a_path_that_begins_in_the_scheduler_shows_the_wait_by_its_return() -> None:
    away: list[Step] = [(50, "do_idle"), (5000, ASLEEP), (30, "user", 1)]
    freed: list[Step] = [(20, "__ptrace_unlink", 1), (30, "user", 1)]
    back: list[Step] = [*SWITCH, (5, "ptrace_stop+"), (5, "get_signal+"), (9, "user")]
    tasks = (
        *((0, "rtscope"), (0, "sh", 1), (60, "swapper/0")),
        *((5115, "killer", 1), (5260, "rtscope")),
    )
    steps = [*SWITCH, *away, *freed, *back]
    path = section(steps, TABLE, late=5000, tasks=tasks, block_ns=1024)

    found = explain_path(path, TABLE, arch="x86_64")

    assert found.dominant is not None
    assert found.dominant.cause is Cause.TRACED
    assert found.broken == ()


def test_a_thread_that_is_preempted_before_it_leaves_the_scheduler_is_runnable() -> (
    None
):
    steps = [(100, "user"), *TIMER, *PREEMPT, *SWITCH, (3000, "user")]
    steps += [*TIMER, *PREEMPT, *THREAD]
    tasks = ((0, "sh"), (265, "rtscope"), (335, "sh"), (3510, "rtscope"))
    path = section(steps, TABLE, late=sum(s[0] for s in steps) - 90, tasks=tasks)

    found = explain_path(path, TABLE, arch="riscv64")

    assert found.dominant is not None
    assert found.dominant.cause in COMPETING_TASKS
    assert found.broken == ()


def test_a_path_that_begins_behind_the_expiry_blames_who_ran_in_it() -> None:
    steps = [(3000, "user"), *PREEMPT, *THREAD]
    tasks = ((0, "sh"), (3070, "rtscope"))
    path = section(steps, TABLE, late=5000, tasks=tasks)

    found = explain_path(path, TABLE, arch="riscv64")

    assert Cause.OTHER_TASK in {segment.cause for segment in found.segments}
    assert found.broken == ()
