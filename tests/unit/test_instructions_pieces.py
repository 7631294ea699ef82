"""A path of very many calls and pieces is told in fewer, with the same times."""

from collections import Counter
from unittest.mock import patch

import pytest

from fakes.paths import Step, section, symbols
from fakes.wakeuppaths import ENTRY, NAMES, SWITCH, THREAD, TIMER
from rtscope.explain.instructions import stretches, titles
from rtscope.explain.instructions.calls import runs_of
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Cause, Explanation
from rtscope.record.instructions.section import blocks_of

TABLE = symbols(
    *NAMES,
    *("scan", "helper", "inner", "ktime_get", "ftrace_caller", "function_trace_call"),
    *("_raw_spin_trylock", "usb_work", "my_poll"),
)
TRACED: list[Step] = [
    *((20, "scan+"), (30, "ftrace_caller"), (25, "function_trace_call")),
    (10, "ftrace_caller+"),
]
INTERRUPTED: list[Step] = [*ENTRY, (30, "usb_irq"), (5, "do_irq+"), (40, "scan+")]
SOFTIRQ: list[Step] = [(20, "handle_softirqs"), (60, "my_poll"), (30, "scan+")]


def explained(turns: list[Step], before: list[Step] | None = None) -> Explanation:
    before = [(50, "zap"), (50, "scan")] if before is None else before
    steps = [*before, *TIMER, *turns, (20, "scan+"), *SWITCH, *THREAD]
    due = sum(step[0] for step in before)
    late = sum(step[0] for step in steps) - due
    path = section(steps, TABLE, late=late, counts=[(due, 0)])
    found = explain_path(path, TABLE, arch="riscv64", preemptible=False)
    assert found.residual_ns == 0
    return found


def times(found: Explanation) -> Counter[tuple[str, Cause]]:
    spent: Counter[tuple[str, Cause]] = Counter()
    for one in found.segments:
        spent[one.part, one.cause] += one.duration_ns
    return spent


@pytest.mark.parametrize(
    "turns",
    [
        TRACED * 6,
        INTERRUPTED * 5,
        [*TRACED, *INTERRUPTED] * 3,
        SOFTIRQ * 5,
        [*TRACED * 5, *SOFTIRQ * 2, *INTERRUPTED * 2],
        [*TRACED * 2, *SOFTIRQ, *INTERRUPTED] * 2,
    ],
)
def test_a_path_of_many_pieces_is_told_in_fewer_and_no_time_is_lost(
    turns: list[Step],
) -> None:
    whole = explained(turns)
    with patch.multiple(titles, MOST_PIECES=8, GRAINS=3):
        fewer = explained(turns)

    assert times(fewer) == times(whole)
    assert len(fewer.segments) <= len(whole.segments)
    if turns[0] == TRACED[0]:  # an interrupt is a part of its own
        assert len(fewer.segments) < len(whole.segments)
    ends = [one.end_ns for one in fewer.segments]
    assert [one.begin_ns for one in fewer.segments[1:]] == ends[:-1]
    assert (fewer.broken, whole.broken) == ((), ())
    assert len(fewer.notes) == 1 + len(whole.notes)


def test_the_ordinary_path_is_told_piece_by_piece() -> None:
    assert explained(TRACED * 3).notes == ()


def names_of(steps: list[Step], *, most: int) -> list[tuple[str, int]]:
    """Return the functions and times of the runs of a path of too many calls."""
    blocks = blocks_of(section(steps, TABLE, late=5), 0)
    with patch.object(stretches, "MOST_STRETCHES", most):
        runs = runs_of(blocks, TABLE, arch="x86_64")
    assert sum(run.end_ns - run.begin_ns for run in runs) == sum(s[0] for s in steps)
    return [(run.frame.name, run.executed_ns) for run in runs]


CALL: list[Step] = [(20, "helper"), (30, "scan+")]


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        ([(10, "scan"), *CALL * 9], [("scan", 460)]),
        # One inside the other: the innermost first.
        (
            [(10, "scan"), (20, "helper"), (5, "inner"), (5, "helper+"), (30, "scan+")],
            [("scan", 70)],
        ),
        # A long call stays.
        (
            [(10, "scan"), *CALL, (300, "helper"), (30, "scan+")],
            [("scan", 60), ("helper", 300), ("scan", 30)],
        ),
        # Steps of a wake-up, probes, clocks and attempts stay.
        *(
            (
                [(10, "scan"), *CALL, (20, name), (30, "scan+")],
                [("scan", 60), (name, 20), ("scan", 30)],
            )
            for name in (
                *("__schedule", "do_page_fault", "ftrace_caller", "ktime_get"),
                *("_raw_spin_trylock", "_raw_spin_lock", "hrtimer_wakeup"),
            )
        ),
        # Of a tracer its handler is part.
        (
            [(10, "scan"), *CALL, *TRACED[1:], (30, "scan+")],
            [("scan", 60), ("ftrace_caller", 65), ("scan", 30)],
        ),
    ],
)
def test_short_calls_are_part_of_their_callers_if_there_are_very_many(
    steps: list[Step], left: list[tuple[str, int]]
) -> None:
    assert names_of(steps, most=1) == left


def test_a_path_that_is_not_too_long_keeps_its_calls() -> None:
    steps: list[Step] = [(10, "scan"), *CALL]

    assert len(names_of(steps, most=3)) == 3


def test_what_was_merged_is_told() -> None:
    with patch.object(stretches, "MOST_STRETCHES", 20):
        found = explained(CALL * 12)

    assert any("are part of the functions that called them" in n for n in found.notes)
    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.name) == (Cause.NOT_PREEMPTED, "scan")
