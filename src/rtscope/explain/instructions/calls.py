"""
From executed blocks to calls: the functions of a CPU, each with its callers. Pure.

A path has no calls in it, only addresses of blocks. A block at the begin of a function
is a call; one in its middle is a return to it, if it is among the callers. A jump to
the begin of another function (a tail call) looks like a call whose caller never comes
back; the next return pops both.

The role of a function follows from its name, of Linux 6.1 to 7.x on x86-64, arm64 and
riscv64. Functions without a role are named too; the parts of a wake-up are found by
those with one.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rtscope.exectrace.file import RecordKind, TraceSection
from rtscope.exectrace.symbols import KERNEL_HALF, USER, SymbolTable

# GCC's clones of a function: the name ends at the dot.
_CLONE = re.compile(r"\.(?:isra|constprop|part|cold|llvm)\b.*")
# x86: jumps that guard against speculation, and the last steps of an interrupt's exit.
_STEPS_BETWEEN = (
    *("__x86_indirect_", "__x86_return_thunk", "its_return_thunk", "srso_"),
    *("retbleed_", "entry_untrain_ret", "early_xen_iret_patch"),
    *("native_irq_return_iret", "common_interrupt_return"),
)
CALLED_FROM_IDLE = frozenset(
    {"flush_smp_call_function_queue", "__flush_smp_call_function_queue"}
)
"""What looks for the calls of other CPUs without an interrupt."""
# What the kernel does between two callbacks of timers.
_OF_TIMERS = (
    *("_raw_spin", "timerqueue_", "rb_", "__remove_hrtimer"),
    *("enqueue_hrtimer", "__hrtimer_"),
)
FIRMWARE = "(firmware)"
NAMELESS = "(no symbol)"
# Where QEMU's virt machine for RISC-V has OpenSBI; the kernel begins at 2 MiB.
_RISCV_FIRMWARE = (np.uint64(0x8000_0000), np.uint64(0x8020_0000))
MAX_DEPTH = 256
# Where the kernel lets a new thread begin: no call, though at the begin of a function.
_FIRST_OF_A_THREAD = "ret_from_"


class Role(Enum):
    """What a function is, of the few that matter here."""

    INTERRUPT = auto()
    """Entry of a hardware interrupt."""
    TRAP = auto()
    """Entry of an interrupt, a fault or a system call: its callees show which."""
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


@lru_cache(maxsize=1 << 16)
def is_between(name: str) -> bool:
    """Tell whether a name is of a step from one function to another, and of none."""
    return name.startswith(_STEPS_BETWEEN)


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A call that has not returned yet."""

    name: str
    caller: "Frame | None"
    depth: int

    def chain(self) -> Iterator["Frame"]:
        """Yield this frame and its callers, innermost first."""
        frame: Frame | None = self
        while frame is not None:
            yield frame
            frame = frame.caller

    def is_in(self, role: Role) -> bool:
        """Tell whether it is a call of this role, or in one."""
        return any(role_of(frame.name) is role for frame in self.chain())


@dataclass(frozen=True, slots=True)
class Run:
    """What a CPU executed in one function, without a call or return between."""

    frame: Frame
    begin: int
    """Instruction count of the board."""
    end: int
    """Where the next run of this CPU begins: other CPUs may have run in between."""
    own: int
    """Instructions of this CPU."""


def runs_of(
    section: TraceSection, symbols: SymbolTable, *, arch: str, cpu: int
) -> list[Run]:
    """Return what one CPU did in a section, in order."""
    at, names, starts, own = _blocks(section, symbols, arch=arch, cpu=cpu)
    runs: list[Run] = []
    frame = _callers_of_first(names, starts)
    begin, spent = 0, 0
    last_name, last_frame = None, None
    for i, name in enumerate(names):
        if name == last_name and not starts[i]:
            spent += own[i]
            continue
        if last_frame is not None:
            runs.append(Run(last_frame, begin, at[i], spent))
        frame = _entered(frame, name, is_start=starts[i])
        begin, spent, last_name, last_frame = at[i], own[i], name, frame
    if last_frame is not None:
        runs.append(Run(last_frame, begin, max(section.last, begin), spent))
    return runs


def _callers_of_first(names: Sequence[str], starts: Sequence[bool]) -> Frame | None:
    """
    Return the first function with its callers, as far as it returned to them.

    They were called before the path begins, and so are known from their ends only.
    Nothing of it holds behind the first switch to another thread.
    """
    known: list[str] = []
    frame: Frame | None = None
    for name, is_start in zip(names, starts, strict=True):
        if frame is not None and role_of(frame.name) is Role.SWITCH:
            break
        entered = _entered(frame, name, is_start=is_start)
        is_called = is_start or (name == FIRMWARE and frame is not None)
        if not is_called and (frame is None or entered not in frame.chain()):
            known.append(name)
        frame = entered
    stack: Frame | None = None
    for name in reversed(known[:MAX_DEPTH]):
        stack = Frame(name, stack, 1 if stack is None else 1 + stack.depth)
    return stack


def _entered(frame: Frame | None, name: str, *, is_start: bool) -> Frame:
    """Return the frame after a block of `name`, which a call or a return led to."""
    if frame is None or _has_switched(frame, name, is_start=is_start):
        # Behind the switch lies another thread's stack, of which nothing is known.
        return Frame(name, None, 1)
    if is_start or name == FIRMWARE:
        if name == FIRMWARE and frame.name == FIRMWARE:
            return frame
        return Frame(name, frame if frame.depth < MAX_DEPTH else None, 1 + frame.depth)
    for caller in frame.chain():
        if caller.name == name:
            return caller
    return Frame(name, None, 1)


def _has_switched(frame: Frame, name: str, *, is_start: bool) -> bool:
    """Tell a new thread's first block from what the switch itself calls."""
    if role_of(frame.name) is not Role.SWITCH:
        return False
    return not is_start or name.startswith(_FIRST_OF_A_THREAD)


def main_frame(runs: Sequence[Run], *, share: float) -> Frame | None:
    """
    Return the innermost call in which at least this share was executed.

    More than a half, or it may be one of several; None if there is no such call.
    """
    spent: dict[Frame, int] = {}
    for run in runs:
        for frame in run.frame.chain():
            spent[frame] = spent.get(frame, 0) + run.own
    least = share * sum(run.own for run in runs)
    inside = [frame for frame, own in spent.items() if own >= least]
    return max(inside, key=lambda frame: frame.depth, default=None)


def spent_in(runs: Sequence[Run]) -> list[tuple[str, int]]:
    """Return own instructions by function, most first."""
    spent: dict[str, int] = {}
    for run in runs:
        spent[run.frame.name] = spent.get(run.frame.name, 0) + run.own
    return sorted(spent.items(), key=lambda row: -row[1])


def is_call_while_idle(run: Run) -> bool:
    """
    Tell whether an idle CPU did what another one asked it to by an interrupt.

    An idle CPU that watches for work is not interrupted: it finds the calls itself.
    """
    return run.frame.is_in(Role.IDLE) and any(
        plain(frame.name) in CALLED_FROM_IDLE for frame in run.frame.chain()
    )


def callback_of(run: Run) -> str | None:
    """Return the timer's function in which a run is; None outside of all."""
    inner = None
    for frame in run.frame.chain():
        if plain(frame.name) == "__hrtimer_run_queues":
            return inner if inner and not inner.startswith(_OF_TIMERS) else None
        inner = frame.name
    return None


def _blocks(
    section: TraceSection, symbols: SymbolTable, *, arch: str, cpu: int
) -> tuple[list[int], list[str], list[bool], list[int]]:
    blocks = np.flatnonzero(section.kinds == RecordKind.BLOCK)
    at = section.at[blocks]
    end = max(section.last, int(at[-1])) if len(at) else 0
    lengths = np.append(at[1:], end) - at
    mine = section.cpus[blocks] == cpu
    values = section.values[blocks][mine]
    addresses, which = np.unique(values, return_inverse=True)
    names = _names(addresses, symbols, arch=arch)
    is_start = np.isin(addresses, symbols.starts)
    called = [names[i] for i in which.tolist()]
    starts = is_start[which].tolist() if len(addresses) else []
    for i in range(1, len(called)):
        if is_between(called[i]):
            called[i], starts[i] = called[i - 1], False
    return at[mine].tolist(), called, starts, lengths[mine].tolist()


def _names(
    addresses: NDArray[np.uint64], symbols: SymbolTable, *, arch: str
) -> list[str]:
    low, high = _RISCV_FIRMWARE
    firmware = (addresses >= low) & (addresses < high) & (arch == "riscv64")
    return [
        known
        or (FIRMWARE if is_firmware else USER if address < KERNEL_HALF else NAMELESS)
        for known, is_firmware, address in zip(
            symbols.names_of(addresses),
            firmware.tolist(),
            addresses.tolist(),
            strict=True,
        )
    ]
