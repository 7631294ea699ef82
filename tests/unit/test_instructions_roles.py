"""What functions mean by their names, and what a run belongs to by its callers."""

from dataclasses import replace

import pytest

from fakes.paths import Step, section, symbols
from fakes.wakeuppaths import NAMES, TABLE
from rtscope.explain.instructions.calls import (
    MAX_DEPTH,
    Frame,
    Run,
    main_frame,
    plain,
    role_of,
    runs_of,
    spent_in,
)
from rtscope.explain.instructions.contexts import callback_of, contexts_of
from rtscope.explain.instructions.explain import called
from rtscope.explain.instructions.roles import Role
from rtscope.explain.instructions.scheduling import gives_way, sleeps_in_fault
from rtscope.explain.instructions.stretches import is_between
from rtscope.record.instructions.section import TraceSection, blocks_of


def chained(*names: str) -> Frame:
    """Return a call with its callers, the outermost first."""
    frame: Frame | None = None
    for depth, name in enumerate(names, 1):
        frame = Frame(name, frame, depth)
    assert frame is not None
    return frame


def run(*names: str, own: int = 1) -> Run:
    return Run(chained(*names), 0, own, own)


# --- names ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("do_irq", Role.INTERRUPT),
        ("el1h_64_irq", Role.INTERRUPT),
        ("asm_common_interrupt", Role.INTERRUPT),
        ("asm_sysvec_apic_timer_interrupt", Role.INTERRUPT),
        ("sysvec_apic_timer_interrupt", Role.DISPATCH),
        ("__sysvec_apic_timer_interrupt", Role.DISPATCH),
        ("xsysvec_x", Role.OTHER),
        ("handle_exception", Role.TRAP),
        ("handle_softirqs", Role.SOFTIRQ),
        ("__schedule", Role.SCHEDULE),
        ("__schedule.isra.0", Role.SCHEDULE),
        ("__schedule.constprop.3", Role.SCHEDULE),
        ("__schedule.part.0", Role.SCHEDULE),
        ("__schedule.cold", Role.SCHEDULE),
        ("__schedule.llvm.123", Role.SCHEDULE),
        ("__schedule.other", Role.OTHER),
        ("__schedule.colder", Role.OTHER),
        ("preempt_schedule", Role.PREEMPT),
        ("__switch_to_asm", Role.SWITCH),
        ("cpu_switch_to", Role.SWITCH),
        ("default_idle_call", Role.IDLE),
        ("hrtimer_interrupt", Role.TIMER),
        ("enqueue_task_dl", Role.ENQUEUE),
        ("free_pages", Role.OTHER),
    ],
)
def test_a_function_has_its_role_whatever_the_compiler_added(
    name: str, role: Role
) -> None:
    assert role_of(name) is role
    assert role_of(plain(name)) is role


@pytest.mark.parametrize(
    ("name", "between"),
    [
        ("__x86_indirect_thunk_rax", True),
        ("__x86_return_thunk", True),
        ("its_return_thunk", True),
        ("srso_alias_return_thunk", True),
        ("retbleed_return_thunk", True),
        ("entry_untrain_ret", True),
        ("early_xen_iret_patch", True),
        ("native_irq_return_iret", True),
        ("common_interrupt_return", True),
        ("common_interrupt", False),
        ("x86_return", False),
    ],
)
def test_steps_from_one_function_to_another_are_no_functions(
    name: str, between: bool
) -> None:
    assert is_between(name) is between


def test_a_call_knows_the_roles_of_its_callers() -> None:
    frame = chained("do_idle", "do_irq", "zap", "hrtimer_interrupt")

    assert frame.role is Role.TIMER
    assert frame.within == {Role.IDLE, Role.INTERRUPT, Role.OTHER, Role.TIMER}
    assert [f.name for f in frame.chain()] == [
        *("hrtimer_interrupt", "zap", "do_irq", "do_idle")
    ]


# --- what a run belongs to --------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "role", "by"),
    [
        (("free_pages", "zap"), Role.OTHER, None),
        (("zap", "do_irq", "usb_irq"), Role.INTERRUPT, "do_irq"),
        (("zap", "do_irq", "handle_softirqs", "x"), Role.SOFTIRQ, "handle_softirqs"),
        (("zap", "do_irq", "handle_softirqs", "do_irq"), Role.INTERRUPT, "do_irq"),
        (("zap", "handle_exception", "do_irq"), Role.INTERRUPT, "handle_exception"),
        (("zap", "__schedule", "x"), Role.SCHEDULE, "__schedule"),
        (("schedule", "__schedule", "__switch_to"), Role.SCHEDULE, "__schedule"),
        (
            ("do_irq", "preempt_schedule_irq", "__schedule"),
            *(Role.SCHEDULE, "preempt_schedule_irq"),
        ),
        (("__switch_to",), Role.SCHEDULE, "__switch_to"),
    ],
)
def test_a_run_belongs_to_the_innermost_of_its_callers_with_a_meaning(
    names: tuple[str, ...], role: Role, by: str | None
) -> None:
    (found,) = contexts_of([run(*names)])

    assert found.role is role
    assert (found.frame.name if found.frame else None) == by


def test_a_trap_without_an_interrupt_is_none_and_neither_is_a_refused_preemption() -> (
    None
):
    fault, refused = (
        run("zap", "handle_exception", "do_page_fault"),
        run("zap", "preempt_schedule"),
    )

    assert [c.role for c in contexts_of([fault, refused])] == [Role.OTHER, Role.OTHER]


# --- where it was executed --------------------------------------------------------


def test_the_main_call_is_the_innermost_with_its_share() -> None:
    outer = chained("zap")
    a, b = Frame("a", outer, 2), Frame("b", outer, 2)
    runs = [Run(a, 0, 60, 60), Run(b, 60, 90, 30), Run(outer, 90, 100, 10)]

    def main(share: float) -> str | None:
        found = main_frame(runs, share=share)
        return found.name if found else None

    assert [main(s) for s in (0.6, 0.61, 0.9, 1.0)] == ["a", "zap", "zap", "zap"]
    assert main_frame([Run(chained("x"), 0, 1, 1), *runs], share=1.0) is None
    assert main_frame([], share=0.9) is None
    assert spent_in([*runs, Run(b, 0, 40, 40)]) == [("b", 70), ("a", 60), ("zap", 10)]


QUEUES = "__hrtimer_run_queues"


@pytest.mark.parametrize(
    ("names", "callback"),
    [
        ((QUEUES, "tick", "zap"), "tick"),
        ((QUEUES,), None),
        ((f"{QUEUES}.constprop.0", "tick"), "tick"),
        (("zap", "tick"), None),
        *(
            ((QUEUES, name, "zap"), None)
            for name in (
                *("_raw_spin_lock", "timerqueue_del", "rb_erase", "enqueue_hrtimer"),
                *("__remove_hrtimer", "__hrtimer_get_next_event"),
            )
        ),
    ],
)
def test_a_callback_is_what_the_queues_of_timers_call_but_not_their_own_steps(
    names: tuple[str, ...], callback: str | None
) -> None:
    assert callback_of(run("do_irq", *names)) == callback


@pytest.mark.parametrize(
    ("names", "fault", "way"),
    [
        (("zap", "do_page_fault", "schedule", "__schedule"), True, False),
        (("do_page_fault", "preempt_schedule", "__schedule"), False, True),
        (("do_page_fault", "do_irq", "preempt_schedule_irq"), False, True),
        (("do_page_fault", "do_irq", "__schedule"), False, True),
        (("do_nanosleep", "schedule", "__schedule"), False, False),
        (("futex_wait", "schedule", "__schedule"), False, False),
        (("exit_to_user_mode_loop", "schedule", "__schedule"), False, True),
        (("do_notify_resume", "__schedule"), False, True),
        (("work_resched", "__schedule"), False, True),
        (("entry_SYSCALL_64", "__schedule"), False, True),
        (("__schedule",), False, False),
    ],
)
def test_how_a_thread_left_its_cpu_tells_whether_it_had_to(
    names: tuple[str, ...], fault: bool, way: bool
) -> None:
    left = run(*names)

    assert sleeps_in_fault(left) is fault
    assert gives_way(left) is way


@pytest.mark.parametrize(
    ("length", "text"),
    [(1, "callers: 0"), (6, "callers: 0 < 1 < 2 < 3 < 4 < 5")],
)
def test_six_callers_and_the_outermost_are_shown(length: int, text: str) -> None:
    names = [str(n) for n in range(length)]

    assert called(names) == text
    assert called([*names, *"abcdefgh"]).endswith(" < … < h")


# --- runs -------------------------------------------------------------------------


def runs(steps: list[Step], arch: str = "riscv64", cpu: int = 0) -> list[Run]:
    return runs_of(blocks_of(section(steps, TABLE, late=5), cpu), TABLE, arch=arch)


def test_runs_of_one_cpu_follow_each_other_and_count_its_own_instructions() -> None:
    steps: list[Step] = [
        *((10, "zap"), (7, "free_pages", 1), (5, "zap+"), (3, "free_pages")),
        *((9, "zap", 1), (2, "free_pages+"), (4, "zap+")),
    ]
    found = runs(steps)

    assert [(r.frame.name, r.begin_ns, r.end_ns, r.executed_ns) for r in found] == [
        ("zap", 0, 22, 15),
        ("free_pages", 22, 36, 5),
        ("zap", 36, 40, 4),
    ]
    assert [
        (r.frame.name, r.begin_ns, r.end_ns, r.executed_ns) for r in runs(steps, cpu=1)
    ] == [
        ("free_pages", 10, 25, 7),
        ("zap", 25, 40, 9),
    ]
    assert runs(steps, cpu=2) == []


def test_a_recursion_without_an_end_keeps_the_innermost_calls() -> None:
    deep: list[Step] = [(1, "zap"), (1, "free_pages")] * MAX_DEPTH
    found = runs(deep)

    assert max(sum(1 for _ in r.frame.chain()) for r in found) == MAX_DEPTH
    assert len(found) == 2 * MAX_DEPTH


FIRMWARE_AT = 0x8000_0000


def in_firmware(steps: list[Step], at: int, address: int) -> TraceSection:
    """Put a block of the firmware in the place of a step."""
    found = section(steps, TABLE, late=5)
    values = found.values.copy()
    values[at + 1] = address  # behind the record of the interrupt flag
    return replace(found, values=values)


@pytest.mark.parametrize(
    ("address", "arch", "name"),
    [
        (FIRMWARE_AT, "riscv64", "(firmware)"),
        (FIRMWARE_AT + 0x1F_FFFF, "riscv64", "(firmware)"),
        (FIRMWARE_AT + 0x20_0000, "riscv64", "(user space)"),
        (FIRMWARE_AT - 1, "riscv64", "(user space)"),
        (FIRMWARE_AT, "x86_64", "(user space)"),
        (0xFFFF_0000_0000_0000, "riscv64", "(no symbol) page ffff000000000"),
    ],
)
def test_an_address_without_a_symbol_is_the_firmware_a_program_or_nameless(
    address: int, arch: str, name: str
) -> None:
    path = in_firmware([(10, "zap"), (10, "zap"), (10, "zap+")], 1, address)
    found = runs_of(blocks_of(path, 0), TABLE, arch=arch)

    assert [r.frame.name for r in found] == ["zap", name, "zap"]
    if name == "(firmware)":  # it is called, and returns to its caller
        assert found[1].frame.caller is found[0].frame
        assert found[2].frame is found[0].frame


@pytest.mark.parametrize("label", ["end_repeat_nmi", "nmi_restore", "first_nmi"])
def test_a_path_that_begins_in_an_nmi_shows_its_entry_by_a_label_in_it(
    label: str,
) -> None:
    table = symbols(*NAMES, "asm_exc_nmi", label, "my_nmi")
    path = section([(900, "my_nmi+"), (10, f"{label}+"), (5, "zap+")], table, late=50)
    found = runs_of(blocks_of(path, 0), table, arch="x86_64")

    assert [run.frame.name for run in found] == ["my_nmi", "asm_exc_nmi", "zap"]
    assert found[1].frame.role is Role.INTERRUPT
    assert found[0].frame.caller is found[1].frame
