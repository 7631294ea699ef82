"""Handlers of probes and tracers are named; what they probe keeps its callers."""

import numpy as np
import pytest

from fakes.paths import SIZE, TEXT, Step, section
from fakes.wakeuppaths import NAMES, PREEMPT, THREAD
from rtscope.explain.instructions.calls import runs_of
from rtscope.explain.instructions.contexts import BPF, INIT
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Cause, Explanation
from rtscope.explain.words import sentence
from rtscope.record.instructions.section import blocks_of
from rtscope.record.instructions.symbols import SymbolTable, parse_symbols

MORE = (
    *("kprobe_ftrace_handler", "my_probe", "exc_int3", "asm_exc_int3", "my_section"),
    *("kprobe_int3_handler", "aggr_pre_handler", "opt_pre_handler", "ftrace_caller"),
    *("optimized_callback", "arch_rethook_trampoline", "rethook_trampoline_handler"),
    *("fprobe_handler", "ftrace_ops_list_func", "bpf_trace_run2", "klp_ftrace_handler"),
    *("my_patched", "bpf_prog_0123456789abcdef_count", "__traceiter_sched_switch"),
    *("my_tracer", "my_helper", "kretprobe_rethook_handler"),
    *("do_one_initcall", "do_init_module", "do_mod_ctors", "async_run_entry_fn"),
    *("process_one_work", "really_probe", "try_to_wake_up"),
    *("my_watch [quay]", "my_help [quay]"),
)
TRAMPOLINES = ("tramp one", "tramp two")
NAMED = (*NAMES, *MORE)
PLACES = (*NAMED, *TRAMPOLINES)
STARTS = np.array([TEXT + SIZE * i for i in range(len(PLACES))], np.uint64)
KNOWN = SymbolTable(STARTS, (*NAMED, None, None), {})
"""What the kernel says of them: the trampolines have no symbols."""
WRITTEN = SymbolTable(STARTS, PLACES, {})

ENTRY: list[Step] = [(10, "handle_exception"), (10, "do_irq")]


def explained(steps: list[Step], *, off: bool = False) -> Explanation:
    late = sum(step[0] for step in steps) + 200
    flags = ((0, 1), (90, 0)) if off else ((0, 1),)
    before: list[Step] = [(100, "user")]
    path = section(
        [*before, *steps, *PREEMPT, *THREAD][:],
        WRITTEN,
        late=late - 200 + 90,
        flags=flags,
    )
    return explain_path(path, KNOWN, arch="x86_64")


def woken(handler: list[Step], back: list[Step]) -> list[Step]:
    """Return a timer's interrupt, with a tracer at its callback."""
    return [
        *ENTRY,
        *((20, "hrtimer_interrupt"), (10, "__hrtimer_run_queues")),
        *((4, "hrtimer_wakeup"), *handler, *back, (26, "hrtimer_wakeup+")),
        *((5, "__hrtimer_run_queues+"), (5, "hrtimer_interrupt+"), (5, "do_irq+")),
    ]


TRAMP: list[Step] = [(8, "tramp one")]
BACK: list[Step] = [(6, "tramp one+")]
HANDLERS: dict[str, tuple[list[Step], list[Step], str]] = {
    "kprobe by ftrace": (
        [*TRAMP, (20, "kprobe_ftrace_handler"), (900, "my_probe")],
        [(5, "kprobe_ftrace_handler+"), *BACK],
        "my_probe",
    ),
    "callback of ftrace": ([*TRAMP, (900, "my_tracer")], BACK, "my_tracer"),
    "a helper of it": (
        [*TRAMP, (5, "my_tracer"), (900, "my_helper"), (5, "my_tracer+")],
        BACK,
        "my_tracer",
    ),
    "fprobe": (
        [*TRAMP, (20, "fprobe_handler"), (900, "my_probe"), (5, "fprobe_handler+")],
        BACK,
        "my_probe",
    ),
    "several tracers": (
        [
            *((8, "ftrace_caller"), (20, "ftrace_ops_list_func"), (900, "my_tracer")),
            (5, "ftrace_ops_list_func+"),
        ],
        [(6, "ftrace_caller+")],
        "my_tracer",
    ),
    "BPF with a symbol": (
        [(20, "bpf_trace_run2"), (900, "bpf_prog_0123456789abcdef_count")],
        [(6, "bpf_trace_run2+")],
        "bpf_prog_0123456789abcdef_count",
    ),
    "BPF without one": (
        [(20, "bpf_trace_run2"), (900, "tramp two")],
        [(6, "bpf_trace_run2+")],
        BPF,
    ),
    "callback of a tracepoint": (
        [(20, "__traceiter_sched_switch"), (900, "my_tracer")],
        [(6, "__traceiter_sched_switch+")],
        "my_tracer",
    ),
}


@pytest.mark.parametrize("how", HANDLERS)
def test_the_handler_of_a_probe_is_named_and_not_the_way_to_it(how: str) -> None:
    handler, back, name = HANDLERS[how]
    found = explained(woken(handler, back))

    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.name) == (Cause.PROBE, name)
    assert f"A probe's handler, {name} < hrtimer_wakeup" in sentence(found)
    assert not found.notes  # the callback that woke the thread was seen


BREAKPOINT: list[Step] = [(20, "asm_exc_int3"), (10, "exc_int3")]


@pytest.mark.parametrize(
    ("way", "back"),
    [
        (
            [*BREAKPOINT, (10, "kprobe_int3_handler"), (5, "aggr_pre_handler")],
            [(5, "kprobe_int3_handler+"), (5, "exc_int3+"), (5, "asm_exc_int3+")],
        ),
        (
            [(20, "tramp two"), (10, "optimized_callback"), (5, "opt_pre_handler")],
            [(5, "optimized_callback+"), (5, "tramp two+")],
        ),
        (
            [
                *((20, "arch_rethook_trampoline"), (5, "rethook_trampoline_handler")),
                (5, "kretprobe_rethook_handler"),
            ],
            [(5, "rethook_trampoline_handler+"), (5, "arch_rethook_trampoline+")],
        ),
    ],
    ids=["breakpoint", "jump", "return"],
)
def test_a_probe_in_a_section_with_interrupts_off_has_its_own_time(
    way: list[Step], back: list[Step]
) -> None:
    steps: list[Step] = [(30, "my_section"), *way, (900, "my_probe"), *back]
    steps += [(20, "my_section+"), *woken([], [])]
    found = explained(steps, off=True)

    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.name) == (Cause.PROBE, "my_probe")
    assert found.dominant.callers[:2] == ("my_probe", "my_section")


LOADS: list[Step] = [(9, "do_init_module"), (9, "do_one_initcall")]
LOADED: list[Step] = [(5, "do_one_initcall+"), (5, "do_init_module+")]
FREED: dict[str, tuple[list[Step], tuple[str, ...]]] = {
    "the function": (
        [*LOADS, (900, "tramp two"), *LOADED],
        (INIT, "do_one_initcall", "do_init_module"),
    ),
    "a function that it calls, freed too": (
        [*LOADS, (20, "tramp one"), (900, "tramp two"), (20, "tramp one+"), *LOADED],
        (INIT, INIT, "do_one_initcall"),
    ),
    "a probe function of its driver": (
        [
            *(*LOADS, (20, "tramp one"), (9, "really_probe"), (900, "tramp two")),
            *((9, "really_probe+"), (9, "tramp one+"), *LOADED),
        ],
        (INIT, "really_probe", INIT, "do_one_initcall"),
    ),
    "a constructor": (
        [
            *((9, "do_init_module"), (9, "do_mod_ctors"), (900, "tramp two")),
            *((5, "do_mod_ctors+"), (5, "do_init_module+")),
        ],
        (INIT, "do_mod_ctors", "do_init_module"),
    ),
    "what it left to a worker": (
        [
            *((9, "process_one_work"), (9, "async_run_entry_fn"), (900, "tramp two")),
            *((5, "async_run_entry_fn+"), (5, "process_one_work+")),
        ],
        (INIT, "async_run_entry_fn", "process_one_work"),
    ),
    "what a function that stays does for it": (
        [*LOADS, (20, "tramp two"), (900, "my_helper"), (20, "tramp two+"), *LOADED],
        ("my_helper", INIT, "do_one_initcall"),
    ),
    "in pieces": (
        [
            *(*LOADS, (300, "tramp two"), (20, "my_helper"), (300, "tramp two+")),
            *((20, "my_helper"), (300, "tramp two+"), *LOADED),
        ],
        (INIT, "do_one_initcall", "do_init_module"),
    ),
}


@pytest.mark.parametrize("what", FREED)
def test_init_code_that_was_freed_is_named_after_its_caller(what: str) -> None:
    steps, callers = FREED[what]
    found = explained([*steps, *woken([], [])], off=True)

    assert found.dominant is not None
    assert found.dominant.callers[: len(callers)] == callers
    assert INIT in sentence(found)


@pytest.mark.parametrize("caller", ["my_section", "process_one_work", "my_probe"])
def test_code_without_a_symbol_that_initialises_nothing_has_no_name(
    caller: str,
) -> None:
    steps: list[Step] = [(20, caller), (900, "tramp two"), (20, f"{caller}+")]
    found = explained([*steps, *woken([], [])], off=True)

    assert found.dominant is not None
    assert found.dominant.callers[:2] == ("(no symbol)", caller)


def test_an_interrupt_of_an_init_function_is_no_init_code() -> None:
    irq: list[Step] = [*ENTRY, (20, "my_section"), (900, "tramp two")]
    back: list[Step] = [(5, "my_section+"), (5, "do_irq+")]
    found = explained([*LOADS, (20, "tramp one"), *irq, *back], off=True)

    assert found.dominant is not None
    assert found.dominant.callers[0] != INIT


def test_a_function_that_a_patch_replaces_keeps_the_callers_of_the_first() -> None:
    steps = [
        *((10, "my_section"), (4, "free_pages"), (8, "tramp one")),
        *((20, "klp_ftrace_handler"), (6, "tramp one+"), (900, "my_patched")),
        *((20, "my_section+"), (10, "free_pages")),
    ]
    path = section(steps, WRITTEN, late=50)
    runs = runs_of(blocks_of(path, 0), KNOWN, arch="x86_64")
    patched = next(run for run in runs if run.frame.name == "my_patched")

    assert [one.name for one in patched.frame.chain()][-2:] == [
        "free_pages",
        "my_section",
    ]
    assert runs[-2].frame.name == "my_section"


def test_two_trampolines_inside_each_other_are_two() -> None:
    steps = [
        *((4, "my_section"), (8, "tramp one"), (9, "my_tracer"), (4, "my_helper")),
        *((8, "tramp two"), (9, "my_probe"), (5, "tramp two+"), (9, "my_helper+")),
        *((9, "my_tracer+"), (5, "tramp one+"), (9, "my_section+")),
    ]
    path = section(steps, WRITTEN, late=50)
    runs = runs_of(blocks_of(path, 0), KNOWN, arch="x86_64")

    assert [run.frame.depth for run in runs] == [1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1]


@pytest.mark.parametrize(
    ("address", "name"),
    [
        (0xFFFFFFFFC0100FF0, "my_exit [mine]"),  # it ends with its page
        (0xFFFFFFFFC0101000, None),
        (0xFFFFFFFFC0103000, None),  # where the section of its init was
        (0xFFFFFFFFC0105010, "ftrace_trampoline [__builtin__ftrace]"),
        (0xFFFFFFFFC0106010, None),
        (0xFFFFFFFFC0109010, "last [other]"),
    ],
)
def test_the_last_function_of_a_module_has_no_memory_behind_its_page(
    address: int, name: str | None
) -> None:
    table = parse_symbols(
        "ffffffffc0100000 t my_work\t[mine]\n"
        "ffffffffc0100100 t my_exit\t[mine]\n"
        "ffffffffc0105000 t ftrace_trampoline\t[__builtin__ftrace]\n"
        "ffffffffc0109000 t last\t[other]\n"
    )

    assert table.names_of(np.array([address], np.uint64)) == [name]


@pytest.mark.parametrize(
    "handler",
    [
        [(900, "my_watch [quay]")],
        [(5, "my_watch [quay]"), (900, "my_help [quay]"), (5, "my_watch [quay]+")],
    ],
)
def test_the_only_handler_of_a_tracepoint_is_called_by_the_kernel_itself(
    handler: list[Step],
) -> None:
    steps = [(30, "try_to_wake_up"), *handler]
    found = explained(woken(steps, [(20, "try_to_wake_up+")]))

    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.name) == (
        Cause.PROBE,
        "my_watch [quay]",
    )
    said = "a probe's handler, my_watch [quay] < try_to_wake_up < hrtimer_wakeup"
    assert said in sentence(found)


def test_a_timer_of_a_module_is_no_probe() -> None:
    timer: list[Step] = [(900, "my_watch [quay]")]
    steps = [*ENTRY, (20, "hrtimer_interrupt"), (10, "__hrtimer_run_queues"), *timer]
    back: list[Step] = [
        *((5, "__hrtimer_run_queues+"), (5, "hrtimer_interrupt+"), (5, "do_irq+"))
    ]
    found = explained([*steps, *back, *woken([], [])])

    assert found.dominant is not None
    assert found.dominant.cause is not Cause.PROBE
