"""A warning of the kernel is told as one, with the function that raised it."""

import pytest

from fakes.paths import Step, section, symbols
from fakes.wakeuppaths import NAMES, PREEMPT, THREAD, TIMER
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Cause, Explanation
from rtscope.explain.words import sentence

TABLE = symbols(
    *(*NAMES, "my_write", "my_check", "__warn", "report_bug", "find_bug", "show_regs"),
    *("handle_bug", "exc_invalid_op", "asm_exc_invalid_op", "__warn_printk", "_printk"),
    *("el1h_64_sync", "el1h_64_sync_handler", "el1_dbg", "do_debug_exception"),
    *("brk_handler", "call_break_hook", "bug_handler", "do_trap_break", "handle_break"),
    *("die", "refcount_warn_saturate", "do_syscall_64", "asm_exc_page_fault"),
    *("dump_stack", "dump_header", "oom_kill_process", "out_of_memory", "charge"),
    *("exc_page_fault", "page_fault_oops", "serial8250_console_write", "vprintk_emit"),
)
X86 = ("asm_exc_invalid_op", "exc_invalid_op", "handle_bug", "report_bug")
ARM64 = (
    *("el1h_64_sync", "el1h_64_sync_handler", "el1_dbg", "do_debug_exception"),
    *("brk_handler", "call_break_hook", "bug_handler", "report_bug"),
)
RISCV = ("handle_exception", "do_trap_break", "handle_break", "report_bug")
ON_EACH = [("x86_64", X86), ("aarch64", ARM64), ("riscv64", RISCV)]


def nested(*calls: str, inside: list[Step]) -> list[Step]:
    """Return calls one in another, 10 ns each before and behind what is inside."""
    return [
        *((10, call) for call in calls),
        *inside,
        *((10, f"{call}+") for call in reversed(calls)),
    ]


def explained(
    steps: list[Step], *, arch: str = "x86_64", off: bool = False
) -> Explanation:
    """Explain a wake-up that is due 500 ns after the steps begin, in `my_write`."""
    before: list[Step] = [(50, "user"), (50, "do_syscall_64"), (400, "my_write")]
    late = sum(one[0] for one in steps)
    after = [*steps, (10, "my_write+"), *TIMER, *PREEMPT, *THREAD]
    late += sum(one[0] for one in after[len(steps) :])
    on_ns = 500 + sum(one[0] for one in steps) + 10
    path = section(
        [*before, *after],
        TABLE,
        late=late,
        flags=((0, 1), (450, 0), (on_ns, 1)) if off else ((0, 1),),
    )
    return explain_path(path, TABLE, arch=arch)


@pytest.mark.parametrize(("arch", "way"), ON_EACH)
def test_a_warning_is_told_with_who_raised_it(arch: str, way: tuple[str, ...]) -> None:
    printed: list[Step] = [(3000, "show_regs"), (10, "__warn+"), (10, "report_bug+")]
    steps = [
        (20, "my_check"),
        *nested(*way[:-1], inside=[(1000, way[-1]), (10, "__warn"), *printed]),
        (20, "my_check+"),
    ]

    found = explained(steps, arch=arch, off=True)

    assert found.dominant is not None
    assert found.dominant.cause is Cause.INTERRUPTS_OFF
    assert found.dominant.name == "a kernel warning in my_check"
    assert "in a kernel warning in my_check < my_write" in sentence(found)
    assert "(printing it took 7" in sentence(found)
    assert any("report_bug" in one for one in found.dominant.evidence)


@pytest.mark.parametrize(("arch", "way"), ON_EACH)
def test_a_bug_ends_in_an_oops(arch: str, way: tuple[str, ...]) -> None:
    inside: list[Step] = [*((10, one) for one in way[-1:]), (10, f"{way[-2]}+")]
    steps = [
        (20, "my_check"),
        *nested(*way[:-1], inside=[*inside, (10, "die"), (3000, "show_regs")]),
    ]

    found = explained(steps, arch=arch, off=True)

    assert found.dominant is not None
    assert found.dominant.name == "a kernel oops in my_check"


def test_an_access_that_faults_is_an_oops_too() -> None:
    way = ("asm_exc_page_fault", "exc_page_fault", "page_fault_oops")

    found = explained(
        [(20, "my_check"), *nested(*way, inside=[(3000, "show_regs")])], off=True
    )

    assert found.dominant is not None
    assert found.dominant.name == "a kernel oops in my_check"


def test_a_check_that_warns_for_its_caller_is_not_who_raised_it() -> None:
    calls = ("my_check", "refcount_warn_saturate", "__warn_printk")
    printed: list[Step] = [(10, "_printk"), (2000, "serial8250_console_write")]

    found = explained(nested(*calls, inside=printed), off=True)

    assert found.dominant is not None
    assert found.dominant.name == "a kernel warning in my_check"
    assert "(printing it took 9" in sentence(found)


def test_a_stack_dump_is_of_who_wanted_it() -> None:
    calls = ("my_check", "dump_stack", "_printk")

    found = explained(nested(*calls, inside=[(2000, "vprintk_emit")]), off=True)

    assert found.dominant is not None
    assert found.dominant.name == "a stack dump in my_check"


def test_several_reports_of_one_call_are_its_own() -> None:
    """As the text of a WARN() is printed before the exception that does the rest."""
    once = nested("__warn_printk", "_printk", inside=[(500, "vprintk_emit")])
    rest = nested(*X86, inside=[(10, "__warn"), (900, "show_regs")])

    found = explained([(20, "my_check"), *once, (5, "my_check+"), *rest], off=True)

    assert found.dominant is not None
    assert found.dominant.name == "a kernel warning in my_check"


def test_a_report_of_no_memory_is_more_than_its_stack_dump() -> None:
    calls = ("charge", "out_of_memory", "oom_kill_process", "dump_header", "dump_stack")

    found = explained(nested(*calls, inside=[(2000, "show_regs")]), off=True)

    assert found.dominant is not None
    assert found.dominant.name == "an out-of-memory report"
    assert "in an out-of-memory report < charge < my_write" in sentence(found)


def test_what_is_long_beside_its_warning_keeps_its_own_name() -> None:
    warned = nested(*X86, inside=[(10, "__warn"), (1000, "show_regs")])

    found = explained([(3000, "my_check"), *warned, (3000, "my_check+")], off=True)

    assert found.dominant is not None
    assert found.dominant.name == "my_write"
    assert "warning" not in sentence(found)


def test_what_only_prints_is_no_warning() -> None:
    printed: list[Step] = [(20, "my_check"), (10, "_printk"), (3000, "vprintk_emit")]

    found = explained(printed, off=True)

    assert found.dominant is not None
    assert found.dominant.name == "my_write"
