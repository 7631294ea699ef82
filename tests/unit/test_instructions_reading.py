"""A latency ends where the clock was read, and not at the mark behind it."""

import pytest

from fakes.paths import Step, section, symbols
from fakes.wakeuppaths import NAMES, PREEMPT, THREAD, TIMER
from rtscope.explain.activity import Recording, activity_of
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Explanation, Part

CALL = "__arm64_sys_clock_gettime"
TABLE = symbols(*NAMES, CALL, "ktime_get_ts64", "get_random_u16")
SLEEPER: list[Step] = [(15, "do_nanosleep+"), (5, "user")]
WAKEUP: list[Step] = [*TIMER, *PREEMPT, *SLEEPER]
READING: list[Step] = [(10, CALL), (8, "ktime_get_ts64")]
BEFORE: list[Step] = [(100, "user")]


def length(steps: list[Step]) -> int:
    return sum(step[0] for step in steps)


def explained(after: list[Step], *, late: int) -> Explanation:
    found = section([*BEFORE, *after], TABLE, late=late)
    return explain_path(found, TABLE, arch="aarch64")


@pytest.mark.parametrize("way_back_ns", [20, 7_000])
def test_the_way_back_of_the_call_that_read_the_clock_is_not_of_the_wakeup(
    way_back_ns: int,
) -> None:
    way_back: list[Step] = [(way_back_ns, "get_random_u16"), (4, CALL + "+")]
    late = length([*WAKEUP, *READING])

    told = explained([*WAKEUP, *READING, *way_back, (6, "user")], late=late)

    assert told.unread_ns == way_back_ns + 10
    assert (told.residual_ns, told.broken) == (0, ())
    assert told.segments[0].begin_ns == 0
    assert told.segments[-1].end_ns == late
    assert told.parts_ns[Part.B] == length(TIMER)
    assert not any("get_random_u16" in one.callers for one in told.segments)


def test_a_program_that_reads_the_clock_itself_marks_it_at_once() -> None:
    after = [*TIMER, *PREEMPT, *THREAD]

    told = explained(after, late=length(after))

    assert (told.unread_ns, told.segments[-1].end_ns) == (0, length(after))


def test_a_clock_that_an_interrupt_reads_in_the_call_is_not_the_program_s() -> None:
    late = length([*WAKEUP, *READING])
    interrupt: list[Step] = [
        *((5, CALL + "+"), (10, "handle_exception"), (10, "do_irq")),
        *((300, "ktime_get_ts64"), (5, "do_irq+"), (5, CALL + "+")),
    ]

    told = explained([*WAKEUP, *READING, *interrupt, (6, "user")], late=late)

    assert told.unread_ns == length(interrupt) + 6


def test_a_clock_read_before_the_thread_slept_is_of_another_wakeup() -> None:
    after = [*TIMER, *PREEMPT, *THREAD]
    late = length(after)
    found = section([*READING, *BEFORE, *after], TABLE, late=late)

    assert explain_path(found, TABLE, arch="aarch64").unread_ns == 0


def test_a_timeline_begins_where_the_explanation_does() -> None:
    late = length([*WAKEUP, *READING])
    steps = [*BEFORE, *WAKEUP, *READING, (7_000, "get_random_u16"), (6, "user")]
    found = section(steps, TABLE, late=late)
    told = explain_path(found, TABLE, arch="aarch64")

    due_ns, _ = activity_of(Recording("one", found, told, TABLE, "aarch64"))

    assert due_ns == length(BEFORE)
