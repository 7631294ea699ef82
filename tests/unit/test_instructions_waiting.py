"""A CPU, or the measured thread, that waits for another CPU: who is to blame there."""

import pytest

from fakes.paths import Step, Task, section, symbols
from fakes.wakeuppaths import NAMES, PREEMPT, SWITCH, THREAD, TIMER
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Cause, Explanation, Segment
from rtscope.explain.words import evidence, sentence

WAITING = {
    "answer": (Cause.OTHER_CPU, "smp_call_function_single"),
    "everybody": (Cause.OTHER_CPU, "multi_cpu_stop"),
    "spin lock": (Cause.LOCK, "native_queued_spin_lock_slowpath"),
    "rw lock": (Cause.LOCK, "queued_read_lock_slowpath"),
    "mutex": (Cause.LOCK, "mutex_spin_on_owner"),
    "semaphore of PREEMPT_RT": (Cause.LOCK, "__rt_mutex_slowlock_locked"),
    "spin lock of PREEMPT_RT": (Cause.LOCK, "rtlock_slowlock_locked"),
    "memory": (Cause.OTHER_CPU, "my_driver_poll"),
}
TABLE = symbols(
    *dict.fromkeys(
        (
            *(*NAMES, "ktime_get", "my_driver_wants", "my_holder", "my_delay"),
            "delay_tsc",
            *("my_thread", "synchronize_rcu", "do_syscall_64", "wait_for_completion"),
            *("irq_exit_rcu", "restore_regs_and_return_to_kernel", "schedule"),
            *(name for _, name in WAITING.values()),
        )
    )
)
TASKS: tuple[Task, ...] = ((0, "sh"), (0, "hog", 1))
CLOCK: list[Step] = [(5, "ktime_get", 1), (5, "my_delay+", 1)]
HELD: list[Step] = [(5, "my_thread", 1), (5, "my_holder", 1), (5, "my_delay", 1)]


def explained(steps: list[Step], *, tasks: tuple[Task, ...] = ()) -> Explanation:
    """Explain a wake-up that is due 100 ns behind the begin of its path."""
    late = sum(step[0] for step in steps) - 100
    tasks = tasks or (*TASKS, (late + 75, "rtscope"))
    off = ((0, 1), (90, 0))
    path = section(steps, TABLE, late=late, flags=off, tasks=tasks, block_ns=1024)
    found = explain_path(path, TABLE, arch="x86_64")
    assert found.residual_ns == 0
    assert found.broken == ()
    return found


def of_cause(found: Explanation, cause: Cause) -> Segment:
    (segment,) = (one for one in found.segments if one.cause is cause)
    return segment


@pytest.mark.parametrize("how", WAITING)
def test_what_another_cpu_did_is_told_where_this_one_waited_for_it(how: str) -> None:
    cause, loop = WAITING[how]
    wait: list[Step] = [(100, "my_driver_wants"), (10, loop)]
    wait += [*HELD, *CLOCK * 60, (20, f"{loop}+"), (5, "my_driver_wants+")]

    found = explained([*wait, *TIMER, *PREEMPT, *THREAD])

    waited = of_cause(found, cause)
    assert found.dominant is waited
    own = how == "memory"
    assert waited.name == (loop if own else "my_driver_wants")
    (other,) = waited.other_cpus
    assert (other.cpu, other.task) == (1, "hog")
    assert (other.name, other.helper) == ("my_holder", "my_delay")
    assert other.callers == ("my_holder", "my_thread")
    assert "CPU 1 spent 98 % of its time in my_holder < my_thread (hog)" in sentence(
        found
    )


@pytest.mark.parametrize(("begins", "doubt"), [("my_delay", ""), ("my_delay+", "it")])
def test_who_jumped_to_a_helper_of_another_cpu_may_be_missing_and_is_told(
    begins: str, doubt: str
) -> None:
    wait: list[Step] = [(100, "my_driver_wants"), (10, "my_driver_poll")]
    wait += [(5, begins, 1), *CLOCK * 60, (5, "my_thread+", 1)]
    steps = [*wait, (20, "my_driver_poll+"), (5, "my_driver_wants+")]

    found = explained([*steps, *TIMER, *PREEMPT, *THREAD])

    (other,) = of_cause(found, Cause.OTHER_CPU).other_cpus
    assert bool(other.jumped_to) is bool(doubt)
    assert ("or a function that jumped to" in sentence(found)) is bool(doubt)


def test_a_delay_of_the_kernel_that_lets_others_execute_waits_for_none() -> None:
    delay: list[Step] = [(100, "my_driver_wants"), (5, "delay_tsc"), (900, "zap", 1)]

    found = explained(
        [
            *delay,
            (300, "delay_tsc+"),
            (5, "my_driver_wants+"),
            *TIMER,
            *PREEMPT,
            *THREAD,
        ]
    )

    assert not any(one.cause is Cause.OTHER_CPU for one in found.segments)
    assert found.dominant is not None
    assert found.dominant.name == "my_driver_wants"


def test_a_cpu_that_reads_a_clock_in_its_loop_waits_for_no_other() -> None:
    loop: list[Step] = [(5, "ktime_get"), (5, "my_delay+"), (90, "zap", 1)]
    delay: list[Step] = [(100, "my_driver_wants"), (5, "my_delay"), *loop * 10]

    found = explained([*delay, (5, "my_driver_wants+"), *TIMER, *PREEMPT, *THREAD])

    assert not any(one.cause is Cause.OTHER_CPU for one in found.segments)


@pytest.mark.parametrize(
    ("function", "cause"),
    [
        ("synchronize_rcu", Cause.GRACE_PERIOD),
        ("wait_for_completion", Cause.BLOCKED),
        ("schedule", Cause.BLOCKED),
    ],
)
def test_a_thread_that_waits_for_others_is_not_delayed_by_the_idle_task(
    function: str, cause: Cause
) -> None:
    calls: list[Step] = [(80, "user"), (5, "do_syscall_64"), (10, "my_driver_wants")]
    leaves: list[Step] = [*calls, (10, function), *SWITCH]
    away: list[Step] = [(50, "do_idle"), *HELD, *CLOCK * 300]
    back: list[Step] = [*SWITCH, (5, f"{function}+"), (5, "my_driver_wants+")]
    arrived_ns = 105 + 70 + 50 + 15 + 3000 + 60
    tasks = ((0, "rtscope"), (0, "hog", 1), (165, "swapper/0"), (arrived_ns, "rtscope"))

    found = explained([*leaves, *away, *back, (9, "user")], tasks=tasks)

    waited = found.dominant
    assert waited is not None
    assert (waited.cause, waited.name) == (cause, "my_driver_wants")
    (other,) = waited.other_cpus
    assert (other.name, other.task) == ("my_holder", "hog")
    assert any("which called my_delay" in line for line in evidence(waited))


@pytest.mark.parametrize(
    ("prio", "policy"),
    [
        (4, "real-time, priority 95"),
        (120, "not real-time, nice 0"),
        (100, "not real-time, nice -20"),
        ((1 << 32) - 1, "SCHED_DEADLINE"),
    ],
)
def test_a_rival_is_told_with_its_policy_and_priority(prio: int, policy: str) -> None:
    rival: list[Step] = [(100, "my_driver_wants"), (900, "my_driver_wants+")]
    tasks = ((0, "hog", 0, prio), (1170, "rtscope", 0, 9))

    found = explained([*rival, *TIMER, *PREEMPT, *THREAD], tasks=tasks)

    assert found.dominant is not None
    assert (found.dominant.task, found.dominant.policy) == ("hog", policy)
    assert f"the task was hog, {policy}" in evidence(found.dominant)


@pytest.mark.parametrize(
    "entry", ["do_irq", "irq_exit_rcu", "restore_regs_and_return_to_kernel"]
)
def test_a_delay_helper_stays_one_when_it_is_interrupted(entry: str) -> None:
    irq: list[Step] = [(9, "handle_exception", 1), (9, entry, 1), (9, "my_delay+", 1)]
    returned: list[Step] = [(9, entry, 1), (9, "my_delay+", 1)]
    wait: list[Step] = [(100, "my_driver_wants"), (10, "my_driver_poll"), *HELD]
    wait += [*CLOCK * 60, *irq, *CLOCK * 60, *returned, (20, "my_driver_poll+")]

    found = explained([*wait, *TIMER, *PREEMPT, *THREAD])

    (other,) = of_cause(found, Cause.OTHER_CPU).other_cpus
    assert (other.name, other.helper) == ("my_holder", "my_delay")


EVERYBODY = symbols(
    *NAMES,
    *("multi_cpu_stop", "rcu_momentary_eqs", "rcu_preempt_deferred_qs"),
    *("touch_softlockup_watchdog", "my_tables", "my_delay", "resched_curr"),
)
# One turn of the loop in which arm64's Linux 6.12 waits until every CPU has stopped,
# with the times that a virtual board recorded; its callee has interrupts off.
LOOP: list[Step] = [
    *((10, "multi_cpu_stop+"), (14, "touch_softlockup_watchdog")),
    *((2, "multi_cpu_stop+"), (46, "rcu_momentary_eqs")),
    *((28, "rcu_preempt_deferred_qs"), (6, "rcu_momentary_eqs+")),
]
LOOP_OFF_NS = (72, 100)


def stopped(turns: int) -> Explanation:
    """Explain a wait for CPU 1, which waits itself first, and then acts for all."""
    begun: list[Step] = [(100, "multi_cpu_stop")]
    late = 106 * turns + sum(step[0] for step in (*TIMER, *PREEMPT, *THREAD))
    flags = [(0, 1)]
    for turn in range(turns):
        flags += [(100 + 106 * turn + at, i) for i, at in enumerate(LOOP_OFF_NS)]
    here = [*begun, *LOOP * turns, *TIMER, *PREEMPT, *THREAD]
    tasks: tuple[Task, ...] = ((0, "migration/0"), (100 + late - 20, "rtscope"))
    path = section(here, EVERYBODY, late=late, flags=flags, tasks=tasks, block_ns=1024)
    return explain_path(path, EVERYBODY, arch="aarch64")


def test_a_loop_that_waits_for_another_cpu_is_one_wait_with_its_callees() -> None:
    found = stopped(40)

    waited = of_cause(found, Cause.OTHER_CPU)
    assert waited.name == "multi_cpu_stop"
    assert waited.duration_ns == 40 * 106
    assert not any(one.cause is Cause.INTERRUPTS_OFF for one in found.segments)


def test_what_a_cpu_does_for_the_others_is_no_part_of_its_wait_for_them() -> None:
    act: list[Step] = [(2, "multi_cpu_stop+"), (30, "my_tables"), (300, "my_delay")]
    back: list[Step] = [(30, "my_tables+"), *LOOP * 2]
    here = [(100, "multi_cpu_stop"), *LOOP * 2, *act, *back, *TIMER, *PREEMPT, *THREAD]
    late = sum(step[0] for step in here) - 100
    path = section(here, EVERYBODY, late=late, flags=((0, 1), (90, 0)))

    found = explain_path(path, EVERYBODY, arch="aarch64")

    waited = [one for one in found.segments if one.cause is Cause.OTHER_CPU]
    assert [one.duration_ns for one in waited] == [2 * 106 + 2, 2 * 106]
    assert of_cause(found, Cause.INTERRUPTS_OFF).duration_ns == 30 + 300 + 30


OLD_PAGES = {
    "moved": "exc_page_fault migration_entry_wait_on_locked schedule",
    "moved, Linux 6.19": "exc_page_fault softleaf_entry_wait_on_locked schedule",
    "swapped out": "exc_page_fault handle_mm_fault __folio_lock_or_retry "
    "folio_wait_bit_common io_schedule schedule",
    "written to disk": "exc_page_fault do_fault folio_wait_writeback folio_wait_bit "
    "schedule",
    "read from a file": "exc_page_fault filemap_fault folio_wait_bit_common schedule",
    "address space locked": "exc_page_fault do_user_addr_fault down_read "
    "rwsem_down_read_slowpath schedule",
    "address space locked, PREEMPT_RT": "exc_page_fault do_user_addr_fault down_read "
    "rwbase_read_lock schedule",
    "arm64": "do_mem_abort do_page_fault handle_mm_fault folio_wait_bit_common "
    "schedule",
    "riscv64": "handle_exception do_page_fault migration_entry_wait_on_locked schedule",
    "answered by a program": "exc_page_fault handle_mm_fault handle_userfault schedule",
    "huge": "exc_page_fault handle_mm_fault hugetlb_fault __mutex_lock schedule",
}


@pytest.mark.parametrize("page", OLD_PAGES)
def test_a_page_that_was_awaited_before_the_expiry_is_a_page_fault(page: str) -> None:
    """The thread had not come back from the cycle before: no other task delays it."""
    names = OLD_PAGES[page].split()
    table = symbols(*dict.fromkeys((*NAMES, *names)))
    leaves: list[Step] = [(80, "user"), *((5, name) for name in names)]
    away: list[Step] = [*SWITCH, (5000, "zap"), *SWITCH]
    back: list[Step] = [(5, f"{name}+") for name in reversed(names)]
    left = sum(step[0] for step in leaves) + 72
    returned = left + sum(step[0] for step in (*SWITCH, (5000, "zap")))
    tasks: tuple[Task, ...] = ((0, "rtscope"), (left, "mover"), (returned, "rtscope"))
    steps = [*leaves, *away, *back, (9, "user")]
    path = section(steps, table, late=3000, tasks=tasks, block_ns=1 << 20)

    found = explain_path(path, table, arch="x86_64")

    assert found.broken == ()
    assert found.dominant is not None
    assert found.dominant.cause is Cause.PAGE_FAULT
    assert found.dominant.name == names[-2] or names[-2] == "io_schedule"
