"""A title is the first function up the chain that says something."""

import pytest

from fakes.paths import Step, section, symbols
from fakes.wakeuppaths import NAMES, PREEMPT, THREAD, TIMER
from rtscope.explain.instructions.calls import is_primitive, plain, title_index
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Cause, Explanation, Segment
from rtscope.explain.words import where

DRIVER = "my_driver_reset"
INTERRUPTED = (
    *("asm_sysvec_call_function", "asm_exc_nmi", "exc_nmi", "nmi_handle", "my_nmi"),
    *("irq_exit_rcu", "rcu_core_si", "rcu_do_batch", "free_my_object"),
    *("my_demux", "generic_handle_irq", "my_handler", "do_irq", "my_stopped"),
    *("smpboot_thread_fn", "multi_cpu_stop"),
    *("my_soft_timer", "call_timer_fn", "irq_work_single", "my_irq_work", "my_timer"),
)
TABLE = symbols(
    *NAMES,
    *(DRIVER, "delay_tsc", "__const_udelay", "_raw_read_lock", "memcpy", "_printk"),
    *("vprintk_emit", "process_one_work"),
    *INTERRUPTED,
)


def explained(before: list[Step], after: list[Step]) -> Explanation:
    late = sum(step[0] for step in after)
    path = section([*before, *after], TABLE, late=late, flags=((0, 1), (20, 0)))
    return explain_path(path, TABLE, arch="x86_64")


def dominant(before: list[Step], after: list[Step]) -> Segment:
    found = explained(before, [*after, *TIMER, *PREEMPT, *THREAD]).dominant
    assert found is not None
    return found


@pytest.mark.parametrize(
    "name",
    [
        *("delay_tsc", "__const_udelay", "_raw_spin_lock_irqsave", "_raw_write_lock"),
        *("rb_erase", "timerqueue_add", "memcpy", "copy_page", "_printk"),
        *("vprintk_emit", "serial8250_console_write", "irq_exit_rcu", "rcu_do_batch"),
        *("process_one_work", "__hrtimer_run_queues", "nmi_handle", "irq_work_single"),
        *("kthread", "multi_cpu_stop", "__down_common", "flush_work", "rt_write_lock"),
        *("bit_wait", "bit_wait_io", "__wait_on_bit_lock", "out_of_line_wait_on_bit"),
        *("folio_wait_bit_common", "hrtimer_cancel", "hrtimer_cancel_wait_running"),
        *("timer_delete_sync", "cancel_work_sync", "synchronize_irq", "rcu_barrier"),
    ],
)
def test_primitives_are_no_titles(name: str) -> None:
    assert is_primitive(name)


@pytest.mark.parametrize(
    "name", ["free_pages", "vmstat_update", "memcg_charge", "delayed_put_task", ""]
)
def test_functions_that_do_something_of_their_own_are_titles(name: str) -> None:
    assert not is_primitive(name)


def test_a_chain_of_primitives_only_has_its_innermost_as_title() -> None:
    assert title_index(["delay_tsc", "__const_udelay"]) == 0
    assert title_index(["delay_tsc", "zap"]) == 1
    assert title_index(["delay_tsc", "do_irq", "zap"], [False, True, False]) == 0
    assert title_index([]) == 0


@pytest.mark.parametrize(
    "primitives",
    [("delay_tsc", "__const_udelay"), ("memcpy",), ("vprintk_emit", "_printk")],
)
def test_the_driver_is_named_and_not_the_helper_that_it_spends_time_in(
    primitives: tuple[str, ...],
) -> None:
    inwards: list[Step] = [(10, DRIVER), *((5, name) for name in reversed(primitives))]

    found = dominant([(10, "zap"), *inwards], [(900, f"{primitives[0]}+")])

    assert (found.cause, found.name) == (Cause.INTERRUPTS_OFF, DRIVER)
    assert found.callers[: len(primitives)] == primitives
    assert where(found) == f"{DRIVER} < zap"


def test_who_wants_a_read_lock_is_named() -> None:
    found = dominant([(10, "zap"), (10, DRIVER)], [(900, "_raw_read_lock")])

    assert (found.cause, found.name) == (Cause.LOCK, DRIVER)


@pytest.mark.parametrize(
    ("calls", "name"),
    [
        (("asm_sysvec_call_function", "zap"), "zap"),
        (("asm_exc_nmi", "exc_nmi", "nmi_handle", "my_nmi"), "my_nmi"),
        (("asm_sysvec_call_function", "irq_work_single", "my_irq_work"), "my_irq_work"),
        (("do_irq", "my_demux", "generic_handle_irq", "my_handler"), "my_handler"),
    ],
)
def test_an_interrupt_has_its_handler_its_callers_and_its_entry(
    calls: tuple[str, ...], name: str
) -> None:
    found = dominant([(50, "user")], [*((5, one) for one in calls), (900, f"{name}+")])

    assert (found.cause, found.name) == (Cause.EARLIER_INTERRUPT, name)
    assert found.callers == tuple(reversed(calls))


def test_what_a_handler_calls_is_not_its_name_if_no_dispatcher_called_it() -> None:
    calls: list[Step] = [(5, "do_irq"), (5, "my_demux"), (300, "my_handler")]

    found = dominant([(50, "user")], [*calls, (100, "my_demux+")])

    assert found.name == "my_demux"


def test_a_function_that_the_kernel_calls_with_interrupts_off_is_named() -> None:
    steps: list[Step] = [(5, "smpboot_thread_fn"), (55, "multi_cpu_stop")]
    steps += [(900, "my_stopped"), (10, "multi_cpu_stop+"), *TIMER, *PREEMPT, *THREAD]
    late = sum(step[0] for step in steps) - 60
    flags = ((0, 1), (20, 0), (970, 1))
    path = section(steps, TABLE, late=late, flags=flags)

    found = explain_path(path, TABLE, arch="x86_64").dominant

    assert found is not None
    assert (found.cause, found.name) == (Cause.INTERRUPTS_OFF, "my_stopped")


@pytest.mark.parametrize(
    ("calls", "name"),
    [
        (("rcu_core_si", "rcu_do_batch", "free_my_object"), "free_my_object"),
        (
            ("hrtimer_run_softirq", "__hrtimer_run_queues", "my_soft_timer"),
            "my_soft_timer",
        ),
        (("call_timer_fn", "my_timer"), "my_timer"),
    ],
)
def test_a_softirq_has_the_callback_that_it_spent_its_time_in(
    calls: tuple[str, ...], name: str
) -> None:
    inwards: list[Step] = [
        *((5, "do_irq"), (5, "irq_exit_rcu"), (5, "handle_softirqs")),
        *((5, one) for one in calls),
    ]

    found = dominant([(50, "user")], [*inwards, (900, f"{name}+")])

    assert (found.cause, found.name) == (Cause.SOFTIRQ, name)


def test_a_timer_interrupt_in_a_soft_timer_makes_the_thread_no_ordinary_one() -> None:
    soft: list[Step] = [
        *((5, "do_irq"), (5, "handle_softirqs"), (5, "hrtimer_run_softirq")),
        *((5, "__hrtimer_run_queues"), (600, "my_soft_timer")),
    ]
    found = explained([(50, "user")], [*soft, *TIMER, *PREEMPT, *THREAD])

    assert not any("not real-time" in note for note in found.notes)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("f.cold [m]", "f [m]"),
        ("f.isra.0.cold [m]", "f [m]"),
        ("f.llvm.123", "f"),
        ("f [m]", "f [m]"),
    ],
)
def test_a_clone_keeps_its_module(name: str, shown: str) -> None:
    assert plain(name) == shown
