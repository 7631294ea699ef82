"""Errors that are planted in what is read: an invariant has to catch each of them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from fakes.paths import ASLEEP, Step, section, symbols
from fakes.wakeuppaths import NAMES, PREEMPT, SWITCH, TABLE, THREAD, TIMER
from rtscope.explain.instructions.causes import kinds_of
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.instructions.holders import PROMPT_NS
from rtscope.explain.instructions.path import wakeup_path
from rtscope.explain.instructions.proofs import broken_invariants
from rtscope.explain.model import (
    Broken,
    Cause,
    Covered,
    Invariant,
    Part,
    Segment,
    text_of,
)
from rtscope.record.instructions.section import RecordKind, TraceSection, marked_at
from rtscope.record.instructions.symbols import SymbolTable

BEFORE: list[Step] = [(900, "user")] * 30
AFTER: list[Step] = [*TIMER, *PREEMPT, *THREAD]
LATE = sum(step[0] for step in AFTER)
ARRIVED = 27_000 + 95 + 70
TASKS = ((0, "sh"), (ARRIVED, "rtscope"))


def recorded(late_ns: int = LATE, steps: Sequence[Step] = ()) -> TraceSection:
    """Return the records of a wake-up that nothing is wrong with."""
    steps = steps or [*BEFORE, *AFTER]
    return section(steps, TABLE, late=late_ns, tasks=TASKS, block_ns=1024)


def broken(
    path: TraceSection, *, table: SymbolTable = TABLE
) -> Sequence[tuple[Invariant, bool]]:
    """Return what is broken, and whether the explanation is withdrawn for it."""
    found = explain_path(path, table, arch="riscv64")
    return [(one.invariant, found.is_withdrawn) for one in found.broken]


def test_a_wake_up_that_is_read_as_it_was_breaks_no_invariant() -> None:
    found = explain_path(recorded(), TABLE, arch="riscv64")

    assert found.broken == ()
    assert found.attributed_share == 1.0


def test_a_path_that_ends_in_a_switch_need_not_tell_its_task() -> None:
    """The one of a task that carried an event may end anywhere."""
    path = marked_at(recorded(), ARRIVED - 10, cpu=0, latency_ns=155)

    assert Invariant.SWITCHES not in {invariant for invariant, _ in broken(path)}


def test_an_expiry_that_is_shifted_back_is_caught() -> None:
    assert (Invariant.EXPIRY, True) in broken(recorded(LATE + PROMPT_NS + 900))


def test_an_expiry_that_is_shifted_forth_is_caught() -> None:
    assert (Invariant.EXPIRY, True) in broken(recorded(LATE - 60))


def only(path: TraceSection, kept: np.ndarray) -> TraceSection:
    """Drop all other records of a path."""
    return replace(
        path,
        at_ns=path.at_ns[kept],
        cpus=path.cpus[kept],
        kinds=path.kinds[kept],
        values=path.values[kept],
    )


def test_a_dropped_switch_is_caught() -> None:
    path = recorded()
    is_last = (path.kinds == RecordKind.TASK) & (path.at_ns > 0)

    found = broken(only(path, ~is_last))

    assert (Invariant.SWITCHES, True) in found


def test_the_symbols_of_another_kernel_are_caught() -> None:
    other = symbols(*reversed(NAMES))

    assert (Invariant.SWITCHES, True) in broken(recorded(), table=other)


def test_dropped_blocks_are_caught() -> None:
    path = recorded()
    at = np.flatnonzero((path.kinds == RecordKind.BLOCK) & (path.at_ns > 26_000))
    kept = np.ones(len(path.kinds), bool)
    kept[at[1:9]] = False

    found = broken(replace(only(path, kept), latency_ns=LATE, block_ns=100))

    assert Invariant.TIME in {invariant for invariant, _ in found}


def test_the_path_of_another_wake_up_is_caught() -> None:
    path = replace(recorded(), latency_ns=LATE - 1)

    assert (Invariant.MARK, True) in broken(path)


def test_an_earlier_wake_up_inside_of_the_path_is_caught() -> None:
    again: list[Step] = [(5, "user"), (10, "do_nanosleep"), *SWITCH, (50, "do_idle")]
    steps = [*BEFORE, *AFTER, *again, *AFTER]
    left = 27_000 + LATE + 15 + 60
    tasks = (*TASKS, (left, "swapper/0"), (left + 60 + 95 + 70, "rtscope"))
    late = sum(step[0] for step in steps) - 27_000
    path = section(steps, TABLE, late=late, tasks=tasks, block_ns=1024)

    assert (Invariant.ARRIVAL, True) in broken(path)


def test_a_cpu_that_pauses_beside_a_runnable_thread_is_caught() -> None:
    waits: list[Step] = [(50, "do_idle+"), (20_000, ASLEEP), (9, "do_idle+")]
    steps: list[Step] = [(50, "do_idle"), *TIMER, *waits, *PREEMPT, *THREAD]
    at = 50 + 95 + 20_059 + 70
    path = section(
        steps,
        TABLE,
        late=sum(step[0] for step in steps) - 50,
        tasks=((0, "swapper/0"), (at, "rtscope")),
        block_ns=1024,
    )

    assert (Invariant.IDLE, True) in broken(path)


@pytest.mark.parametrize(
    ("segment", "invariant"),
    [
        (Segment(Part.A, -170, 30, Cause.OTHER_TASK, "f", task="sh"), None),
        (Segment(Part.A, -171, 30, Cause.OTHER_TASK, "f", task="sh"), "RUNNABLE"),
        (Segment(Part.D, 50, 60, Cause.OTHER_TASK, "f", task="swapper/0"), "IDLE"),
        (Segment(Part.C, 0, 10_001, Cause.IDLE_EXIT, "f", 0), "IDLE"),
        (Segment(Part.C, 0, 10_000, Cause.IDLE_EXIT, "f", 0), None),
        (Segment(Part.A, 0, 10_001, Cause.DELIVERY, "f", 10_001), "EXPIRY"),
        (Segment(Part.A, 0, 10_000, Cause.DELIVERY, "f", 10_000), None),
    ],
)
def test_a_planted_segment_is_judged_by_what_was_recorded(
    segment: Segment, invariant: str | None
) -> None:
    path = wakeup_path(recorded(), TABLE, arch="riscv64")

    found = broken_invariants(path, kinds_of(path), [segment])

    names = {one.invariant.name for one in found}
    assert names == ({invariant} if invariant else set())


def test_another_task_is_not_blamed_for_time_in_which_the_thread_slept() -> None:
    path = wakeup_path(recorded(LATE + 5_000), TABLE, arch="riscv64")
    blamed = Segment(Part.A, 0, 5_000, Cause.OTHER_TASK, "f", task="sh")

    (found,) = broken_invariants(path, kinds_of(path), [blamed])

    assert (found.invariant, found.begin_ns, found.end_ns) == (
        *(Invariant.RUNNABLE, 0, 5_000),
    )
    assert text_of(found).startswith("sh is blamed for a time")


def test_broken_times_that_overlap_count_once() -> None:
    found = [
        Broken(Invariant.TIME, begin, end, {})
        for begin, end in ((50, 90), (0, 60), (10, 20), (200, 300))
    ]

    assert Covered(found).between(0, 250) == 140
    assert Covered(found).between(70, 80) == 10
    assert Covered(found).between(90, 200) == 0


@pytest.mark.parametrize(
    ("turns", "caught", "clock"),
    [
        *((9, False, "read_tsc"), (1, True, "read_tsc")),
        *((9, False, "free_pages+"), (1, True, "free_pages+")),
    ],
)
def test_a_loop_that_yields_its_turns_is_no_idle_cpu(
    turns: int, caught: bool, clock: str
) -> None:
    # One that reads the clock itself is known as a delay by its name.
    names = ["delay_tsc" if one == "free_pages" else one for one in NAMES]
    table = symbols(*NAMES, "read_tsc") if clock == "read_tsc" else symbols(*names)
    loop = "free_pages" if clock == "read_tsc" else "delay_tsc"
    clock = clock.replace("free_pages", loop)
    waits: list[Step] = []
    for _ in range(turns):
        waits += [(500, clock), (500, f"{loop}+")] * (90 // turns)
        waits.append((36_000 // turns, ASLEEP))
    waits.append((9, f"{loop}+"))
    steps: list[Step] = [(50, loop), *TIMER, *waits, *PREEMPT, *THREAD]
    at = 50 + 95 + sum(step[0] for step in waits) + 70
    path = section(
        steps,
        table,
        late=sum(step[0] for step in steps) - 50,
        tasks=((0, "driver"), (at, "rtscope")),
        block_ns=1024,
    )

    assert ((Invariant.IDLE, True) in broken(path, table=table)) is caught
