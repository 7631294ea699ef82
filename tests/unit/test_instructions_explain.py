"""A recorded path, taken apart: each kind of delay is found, and the sum closes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.paths import Step, section
from fakes.wakeuppaths import (
    NAMES,
    PREEMPT,
    SWITCH,
    TABLE,
    THREAD,
    TIMER,
    among_rivals,
    explained,
)
from rtscope.explain.instructions.contexts import IrqFlags
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.instructions.proofs import NOT_PREEMPTED
from rtscope.explain.model import Cause, OtherCpuActivity, Part


def test_the_shortest_way_has_interrupt_scheduler_and_return_only() -> None:
    found = explained([(100, "user")], [*TIMER, *PREEMPT, *THREAD])

    assert [(s.part, s.cause, s.duration_ns) for s in found.segments] == [
        (Part.B, Cause.TIMER_INTERRUPT, 95),
        (Part.D, Cause.SCHEDULER, 70),
        (Part.E, Cause.RETURN, 30),
    ]
    assert found.attributed_share == 1.0
    assert found.dominant is not None
    assert found.dominant.cause is Cause.TIMER_INTERRUPT


def test_interrupts_off_are_blamed_on_the_function_and_its_callers() -> None:
    irqs_off: list[Step] = [(300, "free_pages+"), (100, "zap"), (200, "free_pages+")]
    found = explained(
        [(50, "zap"), (50, "free_pages")],
        [*irqs_off, *TIMER, *PREEMPT, *THREAD],
        flags=((0, 1), (70, 0), (700, 1)),
    )

    dominant = found.dominant
    assert dominant is not None
    assert (dominant.part, dominant.cause) == (Part.A, Cause.INTERRUPTS_OFF)
    assert (dominant.name, dominant.duration_ns) == ("free_pages", 600)
    assert dominant.functions == (("free_pages", 500), ("zap", 100))
    assert dominant.evidence[0] == "callers: free_pages < zap"
    assert dominant.evidence[1].startswith("interrupts off since 30 ns before")


def test_preemption_off_is_what_runs_on_between_interrupt_and_scheduler() -> None:
    found = explained(
        [(50, "zap"), (50, "free_pages")],
        [*TIMER, (400, "free_pages+"), (5, "zap+"), *SWITCH, *THREAD],
    )

    dominant = found.dominant
    assert dominant is not None
    assert (dominant.part, dominant.cause) == (Part.C, Cause.PREEMPTION_OFF)
    assert (dominant.name, dominant.duration_ns) == ("free_pages", 405)
    assert dominant.callers == ("free_pages", "zap")


@pytest.mark.parametrize(
    ("preemptible", "count", "cause", "told"),
    [
        (None, None, Cause.PREEMPTION_OFF, ""),
        (True, 0, Cause.PREEMPTION_OFF, ""),
        (False, None, Cause.PREEMPTION_OFF, NOT_PREEMPTED),
        # x86 keeps in its highest bit that no switch is due.
        (
            *(False, 0x8000_0000, Cause.NOT_PREEMPTED),
            "the preemption count was 0x0 when the interrupt came: nobody had turned "
            "preemption off",
        ),
        (
            *(False, 0x8000_0101, Cause.PREEMPTION_OFF),
            "the preemption count was 0x101 when the interrupt came",
        ),
    ],
)
def test_the_preemption_count_tells_whether_anybody_turned_preemption_off(
    preemptible: bool | None, count: int | None, cause: Cause, told: str
) -> None:
    after = [*TIMER, (400, "free_pages+"), (5, "zap+"), *SWITCH, *THREAD]
    steps: list[Step] = [(50, "zap"), (50, "free_pages"), *after]
    late = sum(step[0] for step in steps) - 100
    # An earlier interrupt, whose count says nothing, comes before the expiry.
    counts = [] if count is None else [(20, 0), (65, count)]
    path = section(steps, TABLE, late=late, counts=counts)

    found = explain_path(path, TABLE, arch="riscv64", preemptible=preemptible)

    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.name) == (cause, "free_pages")
    assert [told] == [*found.dominant.evidence[1:], ""][:1]


def test_a_count_from_before_the_expiry_tells_nothing_of_what_came_behind_it() -> None:
    after = [*TIMER, (400, "free_pages+"), (5, "zap+"), *SWITCH, *THREAD]
    steps: list[Step] = [(50, "zap"), (50, "free_pages"), *after]
    late = sum(step[0] for step in steps) - 100
    path = section(steps, TABLE, late=late, counts=[(20, 0)])

    found = explain_path(path, TABLE, arch="riscv64", preemptible=False)

    assert found.dominant is not None
    assert NOT_PREEMPTED in found.dominant.evidence


def test_a_lock_that_another_cpu_holds() -> None:
    waiting: list[Step] = [
        (500, "_raw_spin_lock"),
        (700, "free_pages", 1),
        (500, "_raw_spin_lock+"),
    ]
    found = explained(
        [(50, "zap")],
        [*waiting, *TIMER, *PREEMPT, *THREAD],
        flags=((0, 1), (20, 0)),
    )

    dominant = found.dominant
    assert dominant is not None
    assert (dominant.cause, dominant.name) == (Cause.LOCK, "zap")
    assert dominant.callers[0] == "_raw_spin_lock"
    assert (dominant.duration_ns, dominant.executed_ns) == (1700, 1000)
    assert dominant.other_cpus == (
        OtherCpuActivity(1, "free_pages", 1.0, 700, ("free_pages",)),
    )


def test_interrupts_that_were_on_again_are_no_longer_blamed() -> None:
    found = explained(
        [(50, "zap"), (50, "free_pages")],
        [(300, "free_pages+"), (200, "zap"), *TIMER, *PREEMPT, *THREAD],
        flags=((0, 1), (70, 0), (400, 1)),
    )

    assert [(s.cause, s.name, s.duration_ns) for s in found.segments[:2]] == [
        (Cause.INTERRUPTS_OFF, "free_pages", 300),
        (Cause.DELIVERY, "zap", 200),
    ]


@pytest.mark.parametrize(
    ("took_ns", "cause"), [(200, Cause.DELIVERY), (201, Cause.LOCK)]
)
def test_a_free_lock_takes_no_more_than_200_ns(took_ns: int, cause: Cause) -> None:
    lock: list[Step] = [(took_ns, "_raw_spin_lock")]
    found = explained([(50, "zap")], [*lock, *TIMER, *PREEMPT, *THREAD])

    assert found.segments[0].duration_ns == took_ns
    assert found.segments[0].cause is cause


@pytest.mark.parametrize(
    ("on_again", "cause"), [(250, Cause.INTERRUPTS_OFF), (249, Cause.DELIVERY)]
)
def test_interrupts_are_blamed_that_were_off_for_half_of_the_time(
    on_again: int, cause: Cause
) -> None:
    found = explained(
        [(50, "zap"), (50, "free_pages")],
        [(300, "free_pages+"), *TIMER, *PREEMPT, *THREAD],
        flags=((0, 1), (70, 0), (on_again, 1)),
    )

    assert found.segments[0].duration_ns == 300
    assert found.segments[0].cause is cause


@pytest.mark.parametrize(
    ("begin", "end", "off"),
    [(0, 20, 0), (20, 70, 50), (30, 60, 30), (0, 100, 50), (65, 100, 5), (70, 90, 0)],
)
def test_interrupts_count_as_off_within_the_time_asked_for_only(
    begin: int, end: int, off: int
) -> None:
    flags = IrqFlags([0, 20, 70], [True, False, True])

    assert flags.off_in(begin, end) == off


def test_a_page_fault_on_the_way_back() -> None:
    found = explained(
        [(50, "user")],
        [
            *TIMER,
            *PREEMPT,
            (5, "user"),
            (10, "handle_exception"),
            (700, "do_page_fault"),
            *THREAD,
        ],
    )

    dominant = found.dominant
    assert dominant is not None
    assert (dominant.part, dominant.cause) == (Part.E, Cause.PAGE_FAULT)


def test_leaving_idle() -> None:
    found = explained(
        [(10, "do_idle")], [(300, "do_idle+"), *TIMER, *PREEMPT, *THREAD], ((0, 0),)
    )

    dominant = found.dominant
    assert dominant is not None
    assert (dominant.part, dominant.cause) == (Part.A, Cause.IDLE_EXIT)


def test_what_was_before_the_path_is_unknown_and_lowers_the_share() -> None:
    late = 1000 + 195
    found = section([*TIMER, *PREEMPT, *THREAD], TABLE, late=late)

    explanation = explain_path(found, TABLE, arch="riscv64")

    assert explanation.segments[0].cause is Cause.UNKNOWN
    assert explanation.attributed_share == 195 / late


@given(
    st.lists(
        st.tuples(
            st.integers(1, 500),
            st.sampled_from([*NAMES, *(f"{name}+" for name in NAMES), "user"]),
            st.integers(0, 1),
        ),
        max_size=60,
    ),
    st.integers(0, 20_000),
)
def test_any_path_gives_an_explanation_whose_sum_closes(
    steps: list[tuple[int, str, int]], late: int
) -> None:
    found = section(steps, TABLE, late=late)

    explanation = explain_path(found, TABLE, arch="riscv64")

    covered = sum(s.duration_ns for s in explanation.segments)
    assert covered + explanation.residual_ns == late
    assert 0 <= explanation.attributed_share <= 1
    ends = [s.end_ns for s in explanation.segments]
    begins = [s.begin_ns for s in explanation.segments]
    assert begins[1:] == ends[:-1]
    assert all(s.duration_ns > 0 for s in explanation.segments)


def test_what_the_switch_itself_calls_is_the_schedulers() -> None:
    switch: list[Step] = [
        *((40, "__schedule"), (20, "__switch_to"), (10, "native_load_tls")),
        *((20, "__switch_to+"), (10, "__schedule+")),
    ]

    found = among_rivals([(50, "user")], [*TIMER, *switch, *THREAD])

    assert [s.cause for s in found.segments] == [
        *(Cause.TIMER_INTERRUPT, Cause.SCHEDULER, Cause.RETURN),
    ]


def test_a_cpu_without_a_step_before_the_expiry_slept() -> None:
    steps: list[Step] = [(200, "user", 1), (40, "zap", 1), *TIMER, *PREEMPT, *THREAD]

    found = explain_path(section(steps, TABLE, late=235), TABLE, arch="x")

    first = found.segments[0]
    assert (first.cause, first.name) == (Cause.IDLE_EXIT, "(asleep)")
    assert (first.duration_ns, first.executed_ns) == (40, 0)
    assert found.attributed_share == 1.0


def test_a_page_fault_that_sleeps_lasts_until_the_thread_runs_again() -> None:
    fault: list[Step] = [(5, "user"), (10, "handle_exception"), (50, "do_page_fault")]
    asleep: list[Step] = [*SWITCH, (600, "user"), *SWITCH]
    after = [*TIMER, *PREEMPT, *fault, *asleep, (20, "do_page_fault+"), *THREAD]
    ours, other = 100 + 95 + 10 + 60, 100 + 95 + 80 + 65 + 60
    again = other + 10 + 600 + 60
    path = section(
        [(100, "user"), *after],
        TABLE,
        late=sum(step[0] for step in after),
        tasks=((0, "sh"), (ours, "rtscope"), (other, "sh"), (again, "rtscope")),
    )

    found = explain_path(path, TABLE, arch="riscv64")

    assert found.residual_ns == 0
    dominant = found.dominant
    assert dominant is not None
    assert (dominant.part, dominant.cause) == (Part.E, Cause.PAGE_FAULT)
    # From its handler, through the sleep in it, to the switch back to the thread.
    assert dominant.duration_ns == 50 + 70 + 600 + 60
    assert dominant.callers[0] == "do_page_fault"


def test_a_waking_after_the_switch_to_the_thread_is_anothers() -> None:
    without = [step for step in TIMER if step[1] != "hrtimer_wakeup"]
    after = [(100, "zap+"), *SWITCH, *TIMER, *THREAD]
    found = explained([(500, "zap"), *without], after)

    assert found.notes == (
        "this CPU did not execute the callback that wakes a sleeping thread",
    )
