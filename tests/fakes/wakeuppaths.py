"""The steps of a wake-up on a virtual board, and what paths made of them explain."""

from fakes.paths import Step, section, symbols
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Explanation, Part

NAMES = (
    *("handle_exception", "do_irq", "hrtimer_interrupt", "__hrtimer_run_queues"),
    *("hrtimer_wakeup", "tick_nohz_handler", "preempt_schedule_irq", "__schedule"),
    *("__switch_to", "free_pages", "zap", "_raw_spin_lock", "handle_softirqs"),
    *("do_nanosleep", "do_page_fault", "do_idle", "usb_irq", "handle_irq_event"),
    *("hrtimer_run_softirq", "run_ksoftirqd"),
    *("flush_smp_call_function_queue", "remote_call"),
    *("el1h_64_irq", "generic_handle_domain_irq", "ipi_handler"),
)
TABLE = symbols(*NAMES)

ENTRY: list[Step] = [(10, "handle_exception"), (10, "do_irq")]
TIMER: list[Step] = [
    *ENTRY,
    (20, "hrtimer_interrupt"),
    (10, "__hrtimer_run_queues"),
    (30, "hrtimer_wakeup"),
    (5, "__hrtimer_run_queues+"),
    (5, "hrtimer_interrupt+"),
    (5, "do_irq+"),
]
SWITCH: list[Step] = [(40, "__schedule"), (20, "__switch_to"), (10, "__schedule+")]
PREEMPT: list[Step] = [(10, "preempt_schedule_irq"), *SWITCH]
THREAD: list[Step] = [(15, "do_nanosleep+"), (5, "user")]

COMPETING_TASKS = symbols(
    *NAMES,
    *("resched_curr", "enqueue_task_fair", "enqueue_task_rt"),
    *("fair_server_pick_task", "sched_rt_period_timer", "irq_exit_rcu"),
    *("tasklet_action", "my_tasklet", "native_load_tls"),
)
"""The same, and what chooses among tasks or puts them into queues."""


def explained(
    before: list[Step],
    after: list[Step],
    flags: tuple[tuple[int, int], ...] = ((0, 1),),
) -> Explanation:
    """Explain a wake-up that was due between the two."""
    late = sum(step[0] for step in after)
    found = section([*before, *after], TABLE, late=late, flags=flags)
    explanation = explain_path(found, TABLE, arch="riscv64")
    assert explanation.residual_ns == 0
    assert sum(explanation.parts_ns[part] for part in Part) == late
    return explanation


def among_rivals(before: list[Step], after: list[Step]) -> Explanation:
    """Explain one of a kernel that is known to say who has to give way."""
    late = sum(step[0] for step in after)
    found = section([*before, *after], COMPETING_TASKS, late=late)
    return explain_path(found, COMPETING_TASKS, arch="riscv64")
