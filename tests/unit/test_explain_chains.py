"""A chain of calls is cut so that it says where time went, and why."""

import pytest

from rtscope.explain.instructions.calls import shortened

SYSTEM_CALL = ("x64_sys_call", "do_syscall_64", "entry_SYSCALL_64_after_hwframe")
THREAD = ("kthread", "ret_from_fork", "ret_from_fork_asm")
WORKER = ("process_one_work", "worker_thread", *THREAD)
WRITE = ("vfs_write", "ksys_write", "__x64_sys_write", *SYSTEM_CALL)


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        # Of a worker that takes a CPU offline, as Linux 6.12 does.
        (
            (
                "free_pcppages_bulk",
                "drain_pages_zone",
                "page_alloc_cpu_dead",
                "cpuhp_invoke_callback",
                "__cpuhp_invoke_callback_range",
                "_cpu_down",
                "__cpu_down_maps_locked",
                "work_for_cpu_fn",
                *WORKER,
            ),
            "free_pcppages_bulk < drain_pages_zone < page_alloc_cpu_dead < … < "
            "__cpu_down_maps_locked",
        ),
        # Of a system call.
        (
            (
                "free_unref_page",
                "free_pages",
                "zap_pte_range",
                "unmap_vmas",
                "do_munmap",
                "__x64_sys_munmap",
                *SYSTEM_CALL,
            ),
            "free_unref_page < free_pages < zap_pte_range < … < __x64_sys_munmap",
        ),
        # Of a file: the call that it is for, and none of those on the way.
        (
            (
                "show_regs",
                "show_stack",
                "sched_show_task",
                "show_state_filter",
                "__handle_sysrq",
                "write_sysrq_trigger",
                "proc_reg_write",
                *WRITE,
            ),
            "show_regs < show_stack < sched_show_task < … < write_sysrq_trigger",
        ),
        # Of the entry of a file itself there is nothing else.
        (
            ("copy", "copy_folio", "generic_perform_write", *WRITE),
            "copy < copy_folio < generic_perform_write < … < __x64_sys_write",
        ),
        # Of an interrupt: nothing of the task that it interrupted.
        (
            (
                "dma_unmap",
                "ring_clean",
                "card_poll",
                "card_interrupt",
                "__handle_irq_event_percpu",
                "handle_edge_irq",
                "asm_common_interrupt",
                "zap_pte_range",
                "__x64_sys_munmap",
                *SYSTEM_CALL,
            ),
            "dma_unmap < ring_clean < card_poll < card_interrupt",
        ),
        # Of a page fault of a program.
        (
            (
                "clear_page",
                "prep_new_page",
                "get_page",
                "alloc_pages",
                "do_fault",
                "handle_mm_fault",
                "exc_page_fault",
                "asm_exc_page_fault",
                "(user space)",
            ),
            "clear_page < prep_new_page < get_page < … < exc_page_fault",
        ),
        # Of a kernel thread, whose function is the outermost of its own.
        (
            ("walk", "scan", "shrink_node", "balance_pgdat", "kswapd", *THREAD),
            "walk < scan < shrink_node < … < kswapd",
        ),
        # Of a softirq's callback.
        (
            (
                "put_page",
                "free_node",
                "free_tree",
                "drop_tree",
                "rcu_do_batch",
                "rcu_core",
                "handle_softirqs",
                "run_ksoftirqd",
                "smpboot_thread_fn",
            ),
            "put_page < free_node < free_tree < drop_tree",
        ),
        # Nothing is hidden but entries.
        (
            ("audit_reset", "audit_run", "audit_main", *THREAD),
            "audit_reset < audit_run < audit_main < …",
        ),
        (
            ("audit_reset", "audit_run", "audit_main"),
            "audit_reset < audit_run < audit_main",
        ),
        (("a", "b", "c", "d [mod]", *THREAD), "a < b < c < d [mod]"),
        (("a", "b", "c", "d", "e"), "a < b < c < … < e"),
        (("a",), "a"),
        ((), ""),
        (SYSTEM_CALL, "x64_sys_call < do_syscall_64 < entry_SYSCALL_64_after_hwframe"),
    ],
)
def test_a_chain_ends_with_the_call_that_all_others_serve(
    calls: tuple[str, ...], told: str
) -> None:
    assert shortened(calls) == told


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        (("show_trace", "show_regs", "show_regs"), "show_trace < show_regs"),
        (("a", "a", "a", "b"), "a < b"),
        (("walk",) * 40 + ("walk_all",), "walk < walk_all"),
        (("a", "b", "a", "b"), "a < b < a < b"),
        (
            ("free", "free", "drop", "drop", "put", "put", "exit", "exit_all"),
            "free < drop < put < … < exit_all",
        ),
        (("a", "b", "c", "c", "c"), "a < b < c"),
    ],
)
def test_a_name_that_follows_itself_stands_there_once(
    calls: tuple[str, ...], told: str
) -> None:
    assert shortened(calls) == told


def test_a_chain_has_at_most_one_name_more_than_was_asked_for() -> None:
    calls = [f"call_{at}" for at in range(200)]

    for shown in (1, 3, 6):
        told = shortened(calls, shown=shown).split(" < ")
        assert told == [*calls[:shown], "…", "call_199"]


def test_calls_of_arm64_and_riscv64_end_at_their_entries_too() -> None:
    inner = ("a", "b", "c", "d", "mine")
    arm64 = ("invoke_syscall", "el0_svc_common.constprop.0", "do_el0_svc", "el0_svc")
    riscv64 = ("do_trap_ecall_u", "handle_exception")

    assert shortened([*inner, *arm64]) == "a < b < c < … < mine"
    assert shortened([*inner, *riscv64]) == "a < b < c < … < mine"
