"""What threads of a program did, from records whose answers are worked out by hand."""

import pytest

from fakes.programrecords import (
    ALL,
    CLOCK_NANOSLEEP,
    EXIT,
    FUTEX,
    HEADER,
    READ,
    RECORD,
    Written,
    file_of,
)
from rtscope.host.errors import ContractError
from rtscope.programs.cycles.periods import Basis
from rtscope.programs.outside.cycles import outside_of
from rtscope.programs.outside.deeds import Deeds
from rtscope.programs.outside.file import Kind, parse_program_record
from rtscope.programs.outside.model import Outside, OutsideThread, Place, Stage
from rtscope.programs.outside.parts import cycle_parts
from rtscope.programs.outside.placed import CpusOfThreads
from rtscope.programs.outside.wakeups import Call, Party, Preemption, Wakeup

LOOP, IO, OTHER = 11, 12, 90


def outside(written: Written, **options: object) -> Outside:
    record = parse_program_record(file_of(written.records))
    return outside_of(record, **options)  # type: ignore[arg-type]


def only(seen: Outside) -> OutsideThread:
    (thread,) = seen.threads
    return thread


def loop(cycles: int = 8) -> Written:
    written = Written()
    written.thread(LOOP, "loop")
    for number in range(cycles):
        written.cycle(LOOP, 10_000 + 1_000 * number)
    return written


def starts(written: Written, name: str) -> None:
    """Write a new thread that reads for the first time."""
    written.thread(LOOP, name)
    written.runs(LOOP, 500, first_us=501)
    written.call(LOOP, 550, READ)
    written.leaves(LOOP, 552)


def test_a_loop_has_each_of_its_cycles() -> None:
    thread = only(outside(loop()))

    assert (thread.name, thread.prio, thread.priority_words) == ("loop", 2, "97")
    assert (thread.period_ns, thread.basis) == (1_000_000, Basis.TIME)
    assert (len(thread.cycles), thread.missed, thread.cut) == (8, 0, 0)
    for number, cycle in enumerate(thread.cycles):
        assert cycle.begin_ns == 10_000_000 + 1_000_000 * number
        assert cycle.latency_ns == 5_000
        assert cycle.response_ns == 5_000 + 20_000
        assert cycle.on_cpu_ns == 1_000 + 20_000 + 2_000
        assert cycle.user_instructions == 10_000
        assert (cycle.waits, cycle.preemptions, cycle.faults) == ((), (), 0)


def test_the_parts_of_each_latency_are_its_whole() -> None:
    written = loop(4)
    written.put(Kind.RELEASE, 14_002, LOOP, detail=1, value=14_000_000, user=0)
    written.put(Kind.WAKE, 14_003, LOOP)
    written.runs(LOOP, 14_010, first_us=14_011)
    written.returns(LOOP, 14_011, CLOCK_NANOSLEEP)
    written.call(LOOP, 14_030, CLOCK_NANOSLEEP, asked_us=15_000)
    written.leaves(LOOP, 14_032)

    *first, last = only(outside(written)).cycles

    for cycle in first:
        assert list((cycle.stages or {}).values()) == [1_000, 3_000, 1_000]
    assert last.stages == {
        Stage.INTERRUPT: 3_000,
        Stage.SCHEDULER: 7_000,
        Stage.RETURN: 1_000,
    }
    assert sum(last.stages.values()) == last.latency_ns


def test_who_is_woken_by_a_thread_has_the_last_two_parts_of_a_latency() -> None:
    written = Written()
    written.thread(IO, "io")
    written.runs(IO, 500, first_us=501)
    for number in range(4):
        at = 1_000 + 1_000 * number
        written.call(IO, at - 100, READ)
        written.leaves(IO, at - 99)
        written.wake(IO, at, by=OTHER)
        written.runs(IO, at + 3, first_us=at + 4)
        written.returns(IO, at + 4, READ)
    written.call(IO, 5_000, READ)
    written.leaves(IO, 5_001)

    for cycle in only(outside(written)).cycles:
        assert cycle.stages == {Stage.SCHEDULER: 3_000, Stage.RETURN: 1_000}


def test_parts_that_two_cpus_saw_out_of_order_are_unknown() -> None:
    written = loop(4)
    written.wake(LOOP, 13_998, due_us=14_000)  # by a CPU that is 2 us behind
    written.runs(LOOP, 14_004, first_us=14_005)
    written.returns(LOOP, 14_005, CLOCK_NANOSLEEP)
    written.call(LOOP, 14_030, CLOCK_NANOSLEEP, asked_us=15_000)
    written.leaves(LOOP, 14_032)

    assert only(outside(written)).cycles[-1].stages is None


def test_a_time_that_could_not_be_read_is_not_taken_for_zero() -> None:
    written = loop(4)
    written.records = [
        one for one in written.records if RECORD.unpack(one)[0] >> 56 != Kind.ASKED
    ]
    thread = only(outside(written))

    assert [one.begin_ns for one in thread.cycles] == [
        one.begin_ns for one in only(outside(loop(4))).cycles
    ]
    assert thread.asked_ns is None


def test_a_time_that_is_asked_for_some_ns_late_is_of_its_period() -> None:
    written = Written()
    written.thread(LOOP, "loop")
    for number in range(12):
        late_us = 0.031 if number in (4, 5, 9) else 0
        written.cycle(LOOP, 10_000 + 1_000 * number + late_us)

    thread = only(outside(written))

    assert (thread.period_ns, thread.basis) == (1_000_000, Basis.TIME)
    assert (len(thread.cycles), thread.missed) == (12, 0)


def test_a_period_that_changes_is_not_missed() -> None:
    written = loop(20)
    for number in range(20):
        written.cycle(LOOP, 31_000 + 2_000 * number)

    thread = only(outside(written))

    assert (len(thread.cycles), thread.missed) == (40, 0)
    assert thread.period_ns == 2_000_000


def test_a_period_in_which_it_was_not_due_is_missed() -> None:
    written = loop(6)
    written.cycle(LOOP, 18_000)  # 16 and 17 ms are left out

    assert only(outside(written)).missed == 2


EPOLL_WAIT = 232


@pytest.mark.parametrize("call", [CLOCK_NANOSLEEP, EPOLL_WAIT])
def test_who_sleeps_for_intervals_misses_nothing_however_steady_they_are(
    call: int,
) -> None:
    written = Written()
    written.thread(LOOP, "naps")
    written.runs(LOOP, 500, first_us=501)
    at = 600.0
    for number in range(12):
        at += 3_000 if number == 8 else 0  # once its work takes longer
        told_us = 1_000 if call == CLOCK_NANOSLEEP else None
        written.call(LOOP, at, call, for_us=told_us)
        written.leaves(LOOP, at + 2)
        # the kernel is a little later or earlier with its timer, its work as much less
        way_us = number % 6 * 0.004
        at += 1_000 + way_us
        written.wake(LOOP, at + 1, due_us=at)
        written.runs(LOOP, at + 4, first_us=at + 5)
        written.returns(LOOP, at + 5, call)
        at += 25 - way_us

    thread = only(outside(written))
    assert (thread.basis, thread.missed) == (Basis.INTERVAL, None)


def test_who_asks_for_the_rest_of_its_period_is_due_then() -> None:
    written = Written()
    written.thread(LOOP, "asks")
    written.runs(LOOP, 500, first_us=501)
    for number in range(12):
        due, late = 2_000 + 1_000 * number, 5 + number * 7 % 5 / 10
        asked = due - 1_000 + late + 20 if number else 1_000
        written.call(LOOP, asked, CLOCK_NANOSLEEP, for_us=due - asked)
        written.leaves(LOOP, asked + 2)
        written.wake(LOOP, due + 1, due_us=due)
        written.runs(LOOP, due + 4, first_us=due + 5)
        written.returns(LOOP, due + 5, CLOCK_NANOSLEEP)

    thread = only(outside(written))
    assert (thread.basis, thread.missed) == (Basis.TIME, 0)


def test_a_preempted_thread_says_by_whom_and_how_long() -> None:
    written = loop(6)
    written.thread(OTHER, "irq/24", own=False)
    written.wake(LOOP, 16_001, due_us=16_000)
    written.runs(LOOP, 16_004, first_us=16_005)
    written.returns(LOOP, 16_005, CLOCK_NANOSLEEP)
    written.user += 1_000
    written.leaves(LOOP, 16_007, by=OTHER, slept=False)
    written.runs(LOOP, 16_057)
    written.user += 1_000
    written.call(LOOP, 16_059, CLOCK_NANOSLEEP, asked_us=17_000)
    written.leaves(LOOP, 16_060)

    cycle = only(outside(written)).cycles[-1]
    (push,) = cycle.preemptions
    assert (push.by.name, push.by.own) == ("irq/24", False)
    assert push.ended_ns - push.began_ns == cycle.preempted_ns == 50_000
    assert cycle.response_ns == 59_000
    assert cycle.on_cpu_ns == 3_000 + 3_000
    assert cycle.user_instructions == 2_000


WAIT, WAKE, WAIT_BITSET, LOCK_PI, PRIVATE, REALTIME = 0, 1, 9, 6, 128, 256
"""Operations of futex."""
CONTENDED, OWNED, SEMAPHORE = 2, 0x8000_0010, 0x8000_0000
"""What a lock of glibc has that is waited for; of musl, and its semaphore."""


def waits_for(
    operation: int, value: int, *, by_prio: int = 120, gives_back: bool = True
) -> Outside:
    """Return a loop with a futex in its last cycle but one, which another ends."""
    written = loop(6)
    written.thread(IO, "io")
    written.runs(IO, 15_500, first_us=15_501, prio=by_prio)
    written.wake(LOOP, 16_001, due_us=16_000)
    written.runs(LOOP, 16_004, first_us=16_005)
    written.returns(LOOP, 16_005, CLOCK_NANOSLEEP)
    written.call(LOOP, 16_010, FUTEX, first=0x5000, rest=(operation, value))
    written.leaves(LOOP, 16_012)
    written.wake(LOOP, 16_300, by=IO)
    written.runs(LOOP, 16_312, first_us=16_313)
    written.returns(LOOP, 16_313, FUTEX)
    if gives_back:
        written.call(LOOP, 16_314, FUTEX, first=0x5000, rest=(WAKE | PRIVATE, 1))
        written.returns(LOOP, 16_315, FUTEX)
    written.call(LOOP, 16_320, CLOCK_NANOSLEEP, asked_us=17_000)
    written.leaves(LOOP, 16_321)
    written.cycle(LOOP, 17_000)
    return outside(written)


def test_a_lock_within_a_cycle_is_a_wait_and_who_ended_it_is_named() -> None:
    seen = waits_for(WAIT | PRIVATE, CONTENDED)

    (thread,) = (one for one in seen.threads if one.name == "loop")
    cycle = thread.cycles[-2]
    (wait,) = cycle.waits
    assert (wait.call, wait.is_lock, wait.lasted_ns) == ("futex", True, 300_000)
    assert wait.ended_by is not None
    assert (wait.ended_by.name, wait.is_inversion) == ("io", True)
    assert cycle.response_ns == 320_000
    assert len(thread.cycles) == 8


@pytest.mark.parametrize(
    ("operation", "value", "by_prio", "is_lock", "is_inversion"),
    [
        (WAIT | PRIVATE, CONTENDED, 120, True, True),
        (WAIT_BITSET | PRIVATE, CONTENDED, 120, True, True),  # Mutex of Rust
        (WAIT_BITSET | PRIVATE | REALTIME, 3, 120, True, True),  # rwlock of glibc
        (WAIT | PRIVATE, SEMAPHORE, 120, False, False),
        (LOCK_PI | PRIVATE, 0, 120, True, True),
        (WAIT | PRIVATE, CONTENDED, 1, True, False),  # more urgent than the loop
        (WAIT_BITSET | PRIVATE | REALTIME, 0, 120, False, False),  # a semaphore
        (WAIT_BITSET | PRIVATE | REALTIME, 24, 120, False, False),  # a condition
        (WAIT_BITSET | REALTIME, IO, 120, False, False),  # a thread that ends
    ],
)
def test_only_a_wait_for_a_lock_is_an_inversion(
    *, operation: int, value: int, by_prio: int, is_lock: bool, is_inversion: bool
) -> None:
    seen = waits_for(operation, value, by_prio=by_prio)

    (thread,) = (one for one in seen.threads if one.name == "loop")
    (wait,) = thread.cycles[-2].waits
    assert (wait.is_lock, wait.is_inversion) == (is_lock, is_inversion)


@pytest.mark.parametrize(
    ("value", "is_lock"),
    [(CONTENDED, False), (OWNED, True)],
)
def test_who_gives_nothing_back_waited_for_a_lock_if_its_word_tells(
    *, value: int, is_lock: bool
) -> None:
    seen = waits_for(WAIT | PRIVATE, value, gives_back=False)

    (thread,) = (one for one in seen.threads if one.name == "loop")
    (wait,) = thread.cycles[-2].waits
    assert (wait.is_lock, wait.is_inversion) == (is_lock, is_lock)


def test_what_a_timer_interrupts_has_ended_no_wait() -> None:
    written = loop(6)
    written.thread(IO, "io")
    written.runs(IO, 15_500, first_us=15_501, prio=120)
    written.wake(LOOP, 16_001, by=IO, due_us=16_000)
    written.runs(LOOP, 16_004, first_us=16_005)
    written.returns(LOOP, 16_005, CLOCK_NANOSLEEP)
    written.call(LOOP, 16_010, FUTEX, first=0x5000, rest=(WAIT | PRIVATE, CONTENDED))
    written.leaves(LOOP, 16_012)
    written.wake(LOOP, 16_301, by=IO, due_us=16_300)  # it waits no longer
    written.runs(LOOP, 16_312, first_us=16_313)
    written.returns(LOOP, 16_313, FUTEX)
    written.call(LOOP, 16_314, FUTEX, first=0x5000, rest=(WAKE | PRIVATE, 1))
    written.returns(LOOP, 16_315, FUTEX)
    written.call(LOOP, 16_320, CLOCK_NANOSLEEP, asked_us=17_000)
    written.leaves(LOOP, 16_321)
    written.cycle(LOOP, 17_000)

    (thread,) = (one for one in outside(written).threads if one.name == "loop")
    cycle = thread.cycles[-2]
    (wait,) = cycle.waits
    assert (cycle.waker, wait.ended_by, wait.is_inversion) == (None, None, False)


def test_a_cycle_that_overran_is_two_and_the_second_begins_when_it_was_due() -> None:
    written = loop(6)
    written.wake(LOOP, 16_001, due_us=16_000)
    written.runs(LOOP, 16_004, first_us=16_005)
    written.returns(LOOP, 16_005, CLOCK_NANOSLEEP)
    written.user += 600_000
    written.call(LOOP, 17_205, CLOCK_NANOSLEEP, asked_us=17_000)
    written.returns(LOOP, 17_206, CLOCK_NANOSLEEP)
    written.user += 10_000
    written.call(LOOP, 17_226, CLOCK_NANOSLEEP, asked_us=18_000)
    written.leaves(LOOP, 17_228)
    written.cycle(LOOP, 18_000)

    thread = only(outside(written))
    assert thread.missed == 1
    *_, overran, late, last = thread.cycles
    assert (overran.response_ns, overran.slept) == (1_205_000, True)
    assert (late.begin_ns, late.latency_ns, late.slept) == (17_000_000, 206_000, False)
    assert late.response_ns == 226_000
    # what both did is shared between them
    assert (overran.user_instructions, late.user_instructions) == (600_000, 10_000)
    assert overran.on_cpu_ns + late.on_cpu_ns == 17_228_000 - 16_004_000
    assert (last.begin_ns, last.response_ns) == (18_000_000, 25_000)


def test_a_cycle_is_late_by_the_one_before_though_it_slept_for_a_moment() -> None:
    written = Written()
    written.thread(LOOP, "loop")
    for n in range(3):
        written.cycle(LOOP, 10_000 + n * 1_000)
    written.cycle(LOOP, 13_000, work=700_000)  # until 14,405: past the next one
    written.wake(LOOP, 14_420, due_us=14_000)
    written.runs(LOOP, 14_421, first_us=14_422)
    written.returns(LOOP, 14_422, CLOCK_NANOSLEEP)
    written.call(LOOP, 14_500, CLOCK_NANOSLEEP, asked_us=15_000)
    written.leaves(LOOP, 14_510)

    thread = only(outside(written))

    over, late = thread.cycles[-2:]
    assert late.slept
    assert late.late_ns == over.done_ns - 14_000_000 > 400_000
    assert late.stages is None
    assert [one.late_ns for one in thread.cycles[:-1]] == [0, 0, 0, 0]
    parts = {words: ns for ns, words in cycle_parts(late, 1, lambda _place: "")}
    assert parts["late already, by the cycle before"] == late.late_ns
    assert parts["until its first own instruction"] == late.latency_ns - late.late_ns


def test_without_a_timer_each_wake_up_by_another_thread_begins_a_cycle() -> None:
    written = Written()
    starts(written, "reader")
    for at in (1_000, 1_700, 3_900, 4_000, 9_000, 9_300):
        written.wake(LOOP, at, by=OTHER)
        written.runs(LOOP, at + 5, first_us=at + 6)
        written.returns(LOOP, at + 6, READ, 8)
        written.call(LOOP, at + 20, READ)
        written.leaves(LOOP, at + 22)

    thread = only(outside(written))
    assert (len(thread.cycles), thread.period_ns, thread.missed) == (6, None, None)
    assert {cycle.latency_ns for cycle in thread.cycles} == {6_000}
    assert not any(cycle.timed for cycle in thread.cycles)


def test_the_birth_of_a_thread_that_others_wake_at_a_pace_is_no_missed_period() -> None:
    written = Written()
    written.thread(IO, "io")
    starts(written, "loop")
    for number in range(8):
        at = 2_600 + 1_000 * number
        written.wake(LOOP, at, by=IO)
        written.runs(LOOP, at + 4, first_us=at + 5)
        written.returns(LOOP, at + 5, READ)
        written.call(LOOP, at + 20, READ)
        written.leaves(LOOP, at + 22)

    thread = only(outside(written))

    assert (thread.basis, thread.period_ns) == (Basis.WAKEUPS, 1_000_000)
    assert (len(thread.cycles), thread.missed) == (8, 0)


def test_without_a_timer_a_lock_within_a_cycle_begins_none() -> None:
    written = Written()
    starts(written, "reader")
    for at in (1_000, 1_700, 3_900, 4_200, 9_000, 9_300):
        written.wake(LOOP, at, by=OTHER)
        written.runs(LOOP, at + 5, first_us=at + 6)
        written.returns(LOOP, at + 6, READ, 8)
        written.call(LOOP, at + 20, FUTEX)
        written.leaves(LOOP, at + 22)
        written.wake(LOOP, at + 52, by=OTHER)
        written.runs(LOOP, at + 55, first_us=at + 56)
        written.returns(LOOP, at + 56, FUTEX)
        written.call(LOOP, at + 60, READ)
        written.leaves(LOOP, at + 62)

    thread = only(outside(written))
    assert [one.begin_ns for one in thread.cycles] == [
        1_000 * at for at in (1_000, 1_700, 3_900, 4_200, 9_000, 9_300)
    ]
    for cycle in thread.cycles:
        assert (cycle.response_ns, cycle.latency_ns) == (60_000, 6_000)
        assert [(one.call, one.lasted_ns) for one in cycle.waits] == [("futex", 33_000)]


def test_both_words_of_a_condition_are_one_wait() -> None:
    written = Written()
    written.thread(LOOP, "worker")
    written.runs(LOOP, 500, first_us=501)
    for number, at in enumerate((1_000, 1_700, 3_900, 4_200, 9_000, 9_300)):
        written.call(LOOP, at - 30, FUTEX, first=0x5000 + 4 * (number % 2))
        written.leaves(LOOP, at - 28)
        written.wake(LOOP, at, by=OTHER)
        written.runs(LOOP, at + 5, first_us=at + 6)
        written.returns(LOOP, at + 6, FUTEX)
        written.call(LOOP, at + 20, FUTEX, first=0x7000)
        written.leaves(LOOP, at + 22)
        written.wake(LOOP, at + 30, by=OTHER)
        written.runs(LOOP, at + 35, first_us=at + 36)
        written.returns(LOOP, at + 36, FUTEX)
    written.call(LOOP, 9_400, FUTEX, first=0x5000)
    written.leaves(LOOP, 9_402)

    thread = only(outside(written))
    assert [len(one.waits) for one in thread.cycles] == [1] * 6
    assert [one.response_ns for one in thread.cycles[:1]] == [670_000]


def test_a_timer_is_due_though_the_thread_sleeps_again_in_the_kernel() -> None:
    written = loop(6)
    written.wake(LOOP, 16_001, due_us=16_000)
    written.runs(LOOP, 16_004)
    written.leaves(LOOP, 16_006)  # for a lock of the kernel, in the same call
    written.wake(LOOP, 16_026, by=OTHER)
    written.runs(LOOP, 16_028, first_us=16_030)
    written.returns(LOOP, 16_030, CLOCK_NANOSLEEP)
    written.call(LOOP, 16_040, CLOCK_NANOSLEEP, asked_us=17_000)
    written.leaves(LOOP, 16_041)

    thread = only(outside(written))
    cycle = thread.cycles[-1]
    assert (cycle.begin_ns, cycle.timed) == (16_000_000, True)
    assert (cycle.latency_ns, cycle.response_ns) == (30_000, 40_000)
    assert (len(thread.cycles), thread.missed) == (7, 0)


def test_a_wake_up_that_another_cpu_wrote_first_is_not_lost() -> None:
    written = loop(6)
    # the timer's CPU was executed before the one that goes to sleep
    written.wake(LOOP, 16_001, due_us=16_000)
    *before, leaves, release, wake = written.records
    written.records = [*before, release, wake, leaves]
    written.runs(LOOP, 16_004, first_us=16_005)
    written.returns(LOOP, 16_005, CLOCK_NANOSLEEP)
    written.call(LOOP, 16_010, CLOCK_NANOSLEEP, asked_us=17_000)
    written.leaves(LOOP, 16_012)

    cycle = only(outside(written)).cycles[-1]
    assert (cycle.begin_ns, cycle.timed, cycle.latency_ns) == (16_000_000, True, 5_000)


def test_a_wake_up_of_a_thread_that_spins_for_a_lock_ends_no_later_sleep() -> None:
    written = loop(6)
    *before, call, arguments, asked, leaves = written.records
    written.records = before
    written.put(Kind.WAKE, 15_023, LOOP, cpu=1, value=IO)
    written.records += [call, arguments, asked, leaves]
    for due_us in (16_000, 17_000):
        written.cycle(LOOP, due_us)

    cycles = only(outside(written)).cycles

    assert [one.begin_ns for one in cycles[-3:]] == [15_000_000, 16_000_000, 17_000_000]
    assert {one.response_ns for one in cycles} == {25_000}


def test_only_the_time_after_the_warm_up_is_judged() -> None:
    thread = only(outside(loop(20), warmup_ns=15_500_000, duration_ns=10_000_000))

    assert [one.begin_ns for one in thread.cycles] == [
        1_000_000 * at for at in range(16, 26)
    ]


def test_a_cycle_that_had_not_ended_is_cut() -> None:
    written = loop(6)
    written.wake(LOOP, 16_001, due_us=16_000)
    written.runs(LOOP, 16_004, first_us=16_005)

    thread = only(outside(written))
    assert (len(thread.cycles), thread.cut) == (6, 1)


def test_the_exit_of_a_thread_ends_no_cycle() -> None:
    written = loop(6)
    written.wake(LOOP, 16_001, due_us=16_000)
    written.runs(LOOP, 16_004, first_us=16_005)
    written.returns(LOOP, 16_005, CLOCK_NANOSLEEP)
    written.call(LOOP, 16_300, EXIT)
    written.put(Kind.EXIT, 16_310, LOOP)
    written.leaves(LOOP, 16_320)

    thread = only(outside(written))
    assert (len(thread.cycles), thread.cut) == (6, 1)
    assert thread.worst.response_ns == 25_000


def test_a_wait_within_the_last_cycle_is_not_its_end() -> None:
    written = loop(6)
    written.wake(LOOP, 16_001, due_us=16_000)
    written.runs(LOOP, 16_004, first_us=16_005)
    written.returns(LOOP, 16_005, CLOCK_NANOSLEEP)
    written.call(LOOP, 16_006, FUTEX)
    written.leaves(LOOP, 16_007)

    thread = only(outside(written))
    assert (len(thread.cycles), thread.cut) == (6, 1)


def test_a_cycle_that_ends_after_the_time_that_is_judged_is_cut() -> None:
    thread = only(outside(loop(8), warmup_ns=10_000_000, duration_ns=3_010_000))

    assert [one.begin_ns for one in thread.cycles] == [
        10_000_000,
        11_000_000,
        12_000_000,
    ]
    assert thread.cut == 1


def test_threads_of_another_start_are_left_out() -> None:
    written = loop()
    written.put(Kind.THREAD, 50_000, 40, detail=40, user=1)

    assert outside(written, process=40).threads == ()
    assert len(outside(written, process=100).threads) == 1


def test_what_this_kernel_does_not_show_is_known() -> None:
    kinds = ALL & ~(1 << Kind.FAULT)
    record = parse_program_record(file_of(loop().records, kinds=kinds))

    assert Kind.FAULT not in outside_of(record).kinds


def test_lost_records_are_counted() -> None:
    written = loop()
    written.put(Kind.LOST, 0, 0, value=12)

    assert outside(written).lost == 12


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"RTSCPROG",
        file_of([])[:-1],
        file_of(loop().records)[:-3],
        HEADER.pack(b"RTSCPROG", 2, 2, b"x86_64", 1, ALL, 2500),
        HEADER.pack(b"RTSCPROG", 1, 0, b"x86_64", 1, ALL, 2500),
        HEADER.pack(b"RTSCPROG", 1, 2, b"x86_64", 60, ALL, 2500),
        file_of(loop().records, cpus=1).replace(b"\x00\x09", b"\x07\x09"),
    ],
)
def test_a_damaged_record_is_refused_or_read(damaged: bytes) -> None:
    try:
        outside_of(parse_program_record(damaged))
    except ContractError as error:
        assert "record" in str(error)  # noqa: PT017


def test_names_of_a_hostile_program_have_no_control_characters() -> None:
    written = loop()
    written.thread(LOOP, "\x1b[31mred")

    assert all(one.isprintable() for one in (t.name for t in outside(written).threads))


def test_a_cycle_is_on_the_cpus_of_its_own_records() -> None:
    written = loop(2)
    written.cycle(LOOP, 12_000)
    # between its wake-up and its end
    written.put(Kind.IN, 12_010, LOOP, cpu=1)
    written.put(Kind.WAKE, 11_010, LOOP, cpu=1)
    record = parse_program_record(file_of(written.records))
    first, *_, last = only(outside_of(record)).cycles
    cpus = CpusOfThreads(record)

    assert cpus.of(LOOP, first) == (0,)
    assert cpus.of(LOOP, last) == (0, 1)
    assert cpus.of(OTHER, last) == ()


def test_the_time_in_calls_is_without_preemptions_and_calls_that_slept() -> None:
    def call(name: str, began: int, ended: int | None, *, slept: bool = False) -> Call:
        return Call(1, name, (0, 0, 0), began, ended, slept=slept, place=began)

    other = Party(9, "other", own=False)
    one = Wakeup(0, 0, None, None, None)
    one.preemptions = [Preemption(other, 120, 150), Preemption(other, 300, 900)]
    one.calls = [
        *(call("write", 100, 200), call("write", 210, 220), call("early", 5, 9)),
        *(call("futex", 250, 280, slept=True), call("exit", 950, None)),
    ]
    did = Deeds([one], 100, 1000)

    assert did.called == {Place("write", 100): 70, Place("write", 210): 10}
    assert did.calls == {"write": 2, "futex": 1, "exit": 1}
