"""
What the functions of a kernel tell about what a CPU is doing. Pure.

The names are those of Linux 6.1 to 7.x on x86-64, arm64 and riscv64. A function that is
not here is named all the same; only the parts are told apart by those that are.
"""

import re
from collections.abc import Mapping
from enum import Enum, auto
from functools import lru_cache


class Role(Enum):
    """What a function is, of the few that matter here."""

    INTERRUPT = auto()
    """Entry of a hardware interrupt."""
    TRAP = auto()
    """Entry of an interrupt, a fault or a system call: what it calls tells which."""
    SOFTIRQ = auto()
    SCHEDULE = auto()
    PREEMPT = auto()
    """Calls the scheduler because another thread is to run."""
    SWITCH = auto()
    IDLE = auto()
    TIMER = auto()
    """Runs the timers that expire in hard interrupt context."""
    SOFT_TIMER = auto()
    """Runs the others: those of threads that are not real-time, on PREEMPT_RT."""
    UNTHROTTLE = auto()
    """Gives the real-time threads of a CPU their time for the next period."""
    ENQUEUE = auto()
    """Puts a real-time thread among those that want to run."""
    ENQUEUE_FAIR = auto()
    """The same for a thread that is not real-time."""
    RESCHEDULE = auto()
    """Says that the running thread has to give way."""
    FAIR_SERVER = auto()
    """Chooses an ordinary thread before all real-time ones, since Linux 6.8."""
    PICK_REALTIME = auto()
    """Chooses among the real-time threads."""
    PICK_FAIR = auto()
    """The same among those that are not real-time."""
    WAKE = auto()
    """A sleeping thread's timer has expired."""
    SLEEP = auto()
    """Lets a thread sleep until a timer expires."""
    OVERDUE = auto()
    """Has a timer expire at once that was due when it was armed."""
    LOCK = auto()
    FAULT = auto()
    SYSCALL = auto()
    DISPATCH = auto()
    """Leads from the entry of an interrupt to its handler, and back."""
    OTHER = auto()


_NAMES: Mapping[Role, str] = {
    Role.INTERRUPT: """
        do_irq generic_handle_arch_irq el1h_64_irq el0t_64_irq
        asm_common_interrupt
    """,
    Role.TRAP: "handle_exception vectors",
    Role.SOFTIRQ: "handle_softirqs __do_softirq run_ksoftirqd",
    Role.SCHEDULE: "__schedule schedule_idle",
    Role.PREEMPT: """
        preempt_schedule_irq preempt_schedule preempt_schedule_common
        preempt_schedule_notrace preempt_schedule_thunk
        preempt_schedule_notrace_thunk arm64_preempt_schedule_irq
    """,
    Role.SWITCH: "__switch_to __switch_to_asm cpu_switch_to",
    Role.IDLE: """
        do_idle default_idle_call default_idle arch_cpu_idle cpuidle_enter
        cpuidle_idle_call cpu_do_idle wait_for_interrupt cpu_startup_entry
        pv_native_safe_halt acpi_idle_enter cpuidle_enter_state
        tick_nohz_idle_enter tick_nohz_idle_exit tick_nohz_idle_stop_tick
    """,
    Role.TIMER: "hrtimer_interrupt",
    Role.SOFT_TIMER: "hrtimer_run_softirq",
    Role.UNTHROTTLE: "sched_rt_period_timer do_sched_rt_period_timer",
    Role.ENQUEUE: "enqueue_task_rt enqueue_task_dl",
    Role.ENQUEUE_FAIR: "enqueue_task_fair",
    Role.RESCHEDULE: "resched_curr __resched_curr",
    Role.FAIR_SERVER: "fair_server_pick_task fair_server_pick",
    Role.PICK_REALTIME: "pick_task_rt pick_next_task_rt _pick_next_task_rt",
    Role.PICK_FAIR: "pick_task_fair pick_next_task_fair __pick_next_task_fair",
    Role.WAKE: "hrtimer_wakeup",
    Role.SLEEP: "do_nanosleep",
    # Linux 7 does not let a thread sleep for such a timer at all.
    Role.OVERDUE: "clockevents_program_min_delta",
    Role.LOCK: """
        native_queued_spin_lock_slowpath queued_spin_lock_slowpath
        queued_read_lock_slowpath queued_write_lock_slowpath osq_lock
        _raw_spin_lock _raw_spin_lock_irqsave _raw_spin_lock_irq
        _raw_spin_lock_bh
    """,
    Role.FAULT: """
        do_page_fault do_mem_abort exc_page_fault asm_exc_page_fault
        do_user_addr_fault handle_mm_fault __handle_mm_fault
    """,
    Role.SYSCALL: "do_trap_ecall_u entry_SYSCALL_64 do_syscall_64 el0_svc",
    Role.DISPATCH: """
        handle_riscv_irq riscv_intc_irq handle_arch_irq call_on_irq_stack
        generic_handle_domain_irq generic_handle_irq handle_irq_desc
        handle_percpu_devid_irq handle_percpu_devid_fasteoi_ipi
        handle_fasteoi_irq handle_edge_irq handle_level_irq handle_irq_event
        handle_irq_event_percpu __handle_irq_event_percpu __common_interrupt
        common_interrupt el1_interrupt el0_interrupt do_interrupt_handler
        gic_handle_irq __gic_handle_irq_from_irqson el1h_64_irq_handler
        el0t_64_irq_handler __el0_irq_handler_common irq_enter_rcu irq_exit_rcu
        irq_enter irq_exit irqentry_enter irqentry_exit plic_handle_irq
        __irq_resolve_mapping sbi_ipi_handle ipi_mux_process handle_IPI do_handle_IPI
        ipi_handler __rcu_read_lock __rcu_read_unlock radix_tree_lookup
        __radix_tree_lookup ret_from_exception riscv_intc_irq_eoi
        riscv_v_context_nesting_start riscv_v_context_nesting_end
        enter_from_kernel_mode exit_to_kernel_mode
        error_entry error_return sync_regs __irq_exit_rcu
        __flush_smp_call_function_queue
        flush_smp_call_function_queue generic_smp_call_function_single_interrupt
        generic_smp_call_function_interrupt csd_do_func irq_work_run
        irq_work_run_list irq_work_single
        tasklet_action tasklet_hi_action tasklet_action_common
        run_timer_softirq run_timer_base __run_timer_base __run_timers
        expire_timers call_timer_fn
    """,
}
_ROLES: Mapping[str, Role] = {
    name: role for role, names in _NAMES.items() for name in names.split()
}

# GCC's clones of a function: what follows the dot is not of its name.
_CLONE = re.compile(r"\.(?:isra|constprop|part|cold|llvm)\b.*")


@lru_cache(maxsize=1 << 16)
def plain(name: str) -> str:
    """Return a function's name without what the compiler added."""
    return _CLONE.sub("", name)


@lru_cache(maxsize=1 << 16)
def role_of(name: str) -> Role:
    """Return what a function is."""
    word = plain(name)
    if word in _ROLES:
        return _ROLES[word]
    if word.startswith("asm_sysvec_"):
        return Role.INTERRUPT
    if word.startswith(("sysvec_", "__sysvec_")):
        return Role.DISPATCH
    return Role.OTHER


# x86: jumps that guard against speculation, and the last steps of an interrupt's exit.
_STEPS_BETWEEN = (
    *("__x86_indirect_", "__x86_return_thunk", "its_return_thunk", "srso_"),
    *("retbleed_", "entry_untrain_ret", "early_xen_iret_patch"),
    *("native_irq_return_iret", "common_interrupt_return"),
)


@lru_cache(maxsize=1 << 16)
def is_between(name: str) -> bool:
    """Tell whether a name is of a step from one function to another, and of none."""
    return name.startswith(_STEPS_BETWEEN)
