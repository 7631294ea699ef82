"""An executor of callbacks: it waits on a condition until a time, and for others."""

from collections.abc import Iterable

import pytest

from fakes.programrecords import FUTEX, Written, file_of
from rtscope.programs.cycles.periods import Basis
from rtscope.programs.outside.cycles import outside_of
from rtscope.programs.outside.file import parse_program_record
from rtscope.programs.outside.model import OutsideThread

LOOP, OTHER = 11, 90
CONDITION, ANOTHER = 0x5000, 0x7000


def served(written: Written, at_us: float, until_us: float, word: int) -> None:
    """Run from a wake-up until it waits again."""
    written.runs(LOOP, at_us + 5, first_us=at_us + 6)
    written.returns(LOOP, at_us + 6, FUTEX)
    written.call(LOOP, until_us, FUTEX, first=word)
    written.leaves(LOOP, until_us + 2)


def executor(
    within: Iterable[int], *, from_us: float = -20, to_us: float = 60, cycles: int = 8
) -> OutsideThread:
    """Return a loop of 1 ms; the times of some cycles come within another wake-up."""
    written = Written()
    written.thread(LOOP, "executor")
    served(written, 500, 530, CONDITION)
    for number in range(cycles):
        due_us = 10_000 + 1_000 * number
        if number in within:
            written.wake(LOOP, due_us + from_us, by=OTHER)
            served(written, due_us + from_us, due_us + to_us, CONDITION)
        else:
            written.wake(LOOP, due_us, due_us=due_us)
            served(written, due_us, due_us + 46, CONDITION)
        other_us = due_us + 300 + number * 37 % 100
        written.wake(LOOP, other_us, by=OTHER)
        served(written, other_us, other_us + 30, CONDITION)
    record = parse_program_record(file_of(written.records))
    (thread,) = outside_of(record).threads
    return thread


def test_what_others_want_is_no_part_of_a_cycle() -> None:
    thread = executor(())

    assert (thread.period_ns, thread.basis) == (1_000_000, Basis.TIME)
    assert (len(thread.cycles), thread.missed) == (8, 0)
    assert {cycle.response_ns for cycle in thread.cycles} == {46_000}
    assert not any(cycle.waits for cycle in thread.cycles)


@pytest.mark.parametrize("within", [(4,), (2, 3, 5), (7,)])
def test_a_time_that_comes_while_another_is_served_begins_a_cycle(
    within: tuple[int, ...],
) -> None:
    thread = executor(within)

    assert (len(thread.cycles), thread.missed) == (8, 0)
    for number, cycle in enumerate(thread.cycles):
        assert cycle.begin_ns == 10_000_000 + 1_000_000 * number
        is_within = number in within
        assert cycle.response_ns == (60_000 if is_within else 46_000)
        assert cycle.slept != is_within
        assert cycle.on_cpu_ns == (62_000 if is_within else 43_000)


def test_a_time_that_comes_as_it_goes_to_sleep_has_woken_it() -> None:
    written = Written()
    written.thread(LOOP, "executor")
    served(written, 500, 530, CONDITION)
    for number in range(8):
        due_us = 10_000 + 1_000 * number
        other_us = due_us - 100 if number == 4 else due_us - 700 + number * 37 % 100
        written.wake(LOOP, other_us, by=OTHER)
        served(written, other_us, other_us + 101, CONDITION)
        written.wake(LOOP, due_us + 4, due_us=due_us)
        served(written, due_us + 4, due_us + 46, CONDITION)
    record = parse_program_record(file_of(written.records))
    (thread,) = outside_of(record).threads

    assert (len(thread.cycles), thread.missed) == (8, 0)
    assert all(cycle.slept for cycle in thread.cycles)


def test_a_wake_up_that_ends_before_the_time_serves_no_cycle() -> None:
    thread = executor((4,), from_us=-100, to_us=-30)

    assert (len(thread.cycles), thread.missed) == (7, 1)


def test_a_wait_within_a_cycle_is_one_if_it_is_for_something_else() -> None:
    written = Written()
    written.thread(LOOP, "loop")
    served(written, 500, 530, CONDITION)
    for number in range(8):
        due_us = 10_000 + 1_000 * number
        written.wake(LOOP, due_us, due_us=due_us)
        served(written, due_us, due_us + 46, ANOTHER)
        written.wake(LOOP, due_us + 90, by=OTHER)
        served(written, due_us + 90, due_us + 120, CONDITION)
    record = parse_program_record(file_of(written.records))
    (thread,) = outside_of(record).threads

    assert {cycle.response_ns for cycle in thread.cycles} == {120_000}
    assert {len(cycle.waits) for cycle in thread.cycles} == {1}
