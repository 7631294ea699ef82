"""What threads did, seen from outside: the findings and cycles of `app check`."""

from collections.abc import Mapping

import pytest

from fakes.programrecords import (
    CLOCK_NANOSLEEP,
    FUTEX,
    READ,
    Written,
    file_of,
)
from rtscope.contract import EventCount
from rtscope.programs.cycles.periods import Basis
from rtscope.programs.outside.cycles import outside_of
from rtscope.programs.outside.file import Kind, parse_program_record
from rtscope.programs.outside.model import Outside
from rtscope.programs.outside.wakeups import Reader
from rtscope.verbs.app.outsidecycles import thread_cycles
from rtscope.verbs.app.outsidethreads import Around, ThreadSeen, seen_thread

LOOP, LOW, MID = 11, 12, 13
URGENT, LESS, LEAST = 2, 60, 120
WRITE, EPOLL_WAIT, NANOSLEEP, MUNMAP = 1, 232, 35, 11
REALTIME, MONOTONIC, BOOTTIME = 0, 1, 7
REALTIME_ALARM, BOOTTIME_ALARM, TAI = 8, 9, 11
END_US = 100_000
LOCK, WAKE = 0x5000, 1
CONTENDED = 2


def loop(cycles: int = 8) -> Written:
    written = Written()
    written.thread(LOOP, "loop")
    for number in range(cycles):
        written.cycle(LOOP, 10_000 + 1_000 * number)
    return written


def read(written: Written) -> tuple[Reader, Outside]:
    reader = Reader(parse_program_record(file_of(written.records)))
    return reader, outside_of(reader.record, reader=reader, functions=["malloc"])


def seen(
    written: Written,
    tid: int = LOOP,
    *,
    descriptors: Mapping[int, bool] | None = None,
    priorities: Mapping[int, int] | None = None,
) -> ThreadSeen:
    reader, outside = read(written)
    own = {one.tid: one for one in reader.threads}
    entries = {
        of: [
            one
            for one in reader.record.entries
            if one.tid == of and one.kind in (Kind.IN, Kind.OUT)
        ]
        for of in own
    }
    around = Around(
        span=(outside.began_ns, END_US * 1000),
        functions=["malloc"],
        priorities=priorities or {},
        nonblocking=(descriptors or {}).get,
        own=own,
        entries=entries,
    )
    cycles = {one.tid: one for one in outside.threads}
    return seen_thread(own[tid], cycles.get(tid), around)


def counts(of: ThreadSeen) -> Mapping[str, int]:
    events: Mapping[str, EventCount] = of.watched.events
    return {name: one.count for name, one in events.items()}


def asleep(written: Written, at: float, *, by: int = 0, state: int = 1) -> None:
    """Sleep for 50 us in a call, until a thread ends that."""
    written.put(Kind.OUT, at, LOOP, value=state)
    written.wake(LOOP, at + 40, by=by)
    written.runs(LOOP, at + 50, first_us=at + 51)


def ends_cycle(written: Written, at: float, due_us: float) -> None:
    written.call(LOOP, at, CLOCK_NANOSLEEP, asked_us=due_us)
    written.leaves(LOOP, at + 2)


def begins_cycle(written: Written, due_us: float) -> float:
    written.wake(LOOP, due_us + 1, due_us=due_us)
    written.runs(LOOP, due_us + 4, first_us=due_us + 5)
    written.returns(LOOP, due_us + 5, CLOCK_NANOSLEEP)
    return due_us + 5


def test_its_cycles_are_those_of_a_test() -> None:
    _, outside = read(loop())
    (of_test,) = outside.threads
    cycles = thread_cycles(of_test)

    assert [one.response_ns for one in cycles.cycles] == [
        one.response_ns for one in of_test.cycles
    ]
    assert [one.latency_ns for one in cycles.cycles] == [5_000] * 8
    assert cycles.period is not None
    assert (cycles.period.period_ns, cycles.period.basis) == (1_000_000, Basis.TIME)
    assert (cycles.period.missed, cycles.period.overruns) == (0, 0)
    assert (cycles.cut, cycles.cut_longest_ns) == (0, 0)


def test_skipped_periods_and_long_cycles_are_told_apart() -> None:
    written = loop(6)
    written.cycle(LOOP, 18_000, work=600_000)  # 16 and 17 ms are left out; 1.2 ms
    written.cycle(LOOP, 20_000)
    _, outside = read(written)
    (of_test,) = outside.threads
    period = thread_cycles(of_test).period

    assert period is not None
    assert (period.missed, period.overruns) == (3, 1)
    assert of_test.missed == 4


def test_a_cycle_that_never_ends_is_at_least_as_long_as_it_was_seen() -> None:
    written = loop()
    begins_cycle(written, 18_000)
    written.put(Kind.NAME, 30_000, LOOP, value=0x706F6F6C)
    reader = Reader(parse_program_record(file_of(written.records)))
    outside = outside_of(reader.record, reader=reader, duration_ns=25_000_000)
    (of_test,) = outside.threads
    cycles = thread_cycles(of_test)

    assert cycles.cut == 1
    assert cycles.cut_longest_ns == outside.ended_ns - 18_000_000


def test_faults_and_allocations_are_those_of_whole_cycles() -> None:
    written = loop(4)
    for due in (14_000, 15_000):
        inside = ((Kind.FAULT, 7 << 16), (Kind.USED, 8 << 16), (Kind.DONE, 0))
        written.cycle(LOOP, due, inside=inside)
    begins_cycle(written, 16_000)
    written.put(Kind.FAULT, 16_010, LOOP)
    of = seen(written)

    assert counts(of) == {"minor_fault": 2, "malloc": 2}
    assert sorted((one.event, one.place) for one in of.events) == [
        *[("malloc", 8)] * 2,
        *[("minor_fault", 7)] * 2,
    ]


def test_who_is_less_urgent_and_preempts_sets_a_thread_aside() -> None:
    written = loop(4)
    for tid in (MID, LOW):
        at = begins_cycle(written, 10_000 + 1_000 * (tid - 7))
        written.put(Kind.OUT, at + 5, LOOP, detail=1, value=tid << 32)
        written.runs(LOOP, at + 25)
        ends_cycle(written, at + 50, 11_000 + 1_000 * (tid - 7))
    written.records.sort(key=lambda one: int.from_bytes(one[:6], "little"))
    events = seen(written, priorities={MID: 1, LOW: LEAST}).watched.events

    assert events["preempted"].count == events["set_aside"].count == 1
    assert events["preempted"].times is not None
    assert events["preempted"].times.total_ns == 20_000


def test_a_move_to_another_cpu_is_seen() -> None:
    written = loop(4)
    written.wake(LOOP, 14_001, due_us=14_000)
    written.put(Kind.IN, 14_004, LOOP, cpu=1, detail=URGENT)
    written.put(Kind.FIRST, 14_005, LOOP, cpu=1)
    ends_cycle(written, 14_010, 15_000)

    assert counts(seen(written))["migration"] == 1


@pytest.mark.parametrize(
    ("number", "first", "known", "found"),
    [
        (WRITE, 3, {3: False}, "may block"),
        (WRITE, 3, {3: True}, "harmless"),
        (WRITE, 3, {}, "unknown"),
        (MUNMAP, 3, {}, "memory"),
        (CLOCK_NANOSLEEP, 1, {}, "none"),
    ],
)
def test_a_call_that_does_not_sleep_is_judged_by_what_is_known(
    number: int, first: int, known: Mapping[int, bool], found: str
) -> None:
    written = loop(4)
    at = begins_cycle(written, 14_000)
    written.call(LOOP, at + 1, number, first=first, rest=(1, 1))
    written.returns(LOOP, at + 3, number)
    ends_cycle(written, at + 20, 15_000)
    of = seen(written, descriptors=known)
    rows = [one for one in of.watched.calls if one.times.count]

    assert sum(one.undecided for one in of.watched.calls) == (found == "unknown")
    assert sum(one.harmless for one in of.watched.calls) == (found == "harmless")
    assert [one.memory for one in rows] == {"may block": [False], "memory": [True]}.get(
        found, []
    )
    assert [one.times.worst_ns for one in rows] == [2_000] * len(rows)


def test_a_call_that_sleeps_says_how_long_and_who_ended_it() -> None:
    written = loop(4)
    written.thread(LOW, "low")
    at = begins_cycle(written, 14_000)
    written.call(LOOP, at + 1, READ, first=9, rest=(1, 1))
    asleep(written, at + 2, by=LOW, state=2)
    written.returns(LOOP, at + 52, READ)
    ends_cycle(written, at + 60, 15_000)
    of = seen(written, priorities={LOW: LEAST})
    (row,) = of.watched.calls

    assert (row.name, row.key, row.times.worst_ns) == ("read", "9", 51_000)
    assert (row.slept.count, row.slept.worst_ns) == (1, 50_000)
    assert row.held == row.slept == of.watched.kernel_waits
    assert row.slept.worst_in == "low"
    (waker,) = of.watched.wakers
    assert (waker.by.name, waker.by.priority, waker.count) == ("low", LEAST, 1)


def test_an_urgent_waker_and_an_interrupt_are_no_finding() -> None:
    written = loop(4)
    written.thread(LOW, "low")
    at = begins_cycle(written, 14_000)
    written.call(LOOP, at + 1, READ, first=9, rest=(1, 1))
    asleep(written, at + 2, by=LOW)
    written.returns(LOOP, at + 52, READ)
    ends_cycle(written, at + 60, 15_000)

    assert seen(written, priorities={LOW: 1}).watched.wakers == ()
    assert seen(written, priorities={}).watched.wakers == ()


def test_who_had_the_cpu_of_the_owner_of_a_lock_inverts_priorities() -> None:
    written = loop(4)
    written.thread(LOW, "low")
    written.thread(MID, "mid", own=False)
    written.put(Kind.IN, 14_000, LOW, cpu=1, detail=LESS)
    at = begins_cycle(written, 14_000)
    written.call(LOOP, at + 1, FUTEX, first=LOCK, rest=(0, CONTENDED))
    written.put(Kind.OUT, at + 2, LOOP, value=1)
    written.put(Kind.OUT, at + 10, LOW, cpu=1, detail=1, value=MID << 32)
    written.put(Kind.IN, at + 30, LOW, cpu=1, detail=LESS)
    written.wake(LOOP, at + 40, by=LOW)
    written.runs(LOOP, at + 50, first_us=at + 51)
    written.returns(LOOP, at + 52, FUTEX)
    written.call(LOOP, at + 53, FUTEX, first=LOCK, rest=(WAKE, 1))
    written.returns(LOOP, at + 54, FUTEX)
    ends_cycle(written, at + 60, 15_000)
    of = seen(written, priorities={MID: 50})
    (word,) = of.watched.words
    (inversion,) = of.watched.inversions

    assert (word.word, word.value, word.wakes) == (f"{LOCK:x}", CONTENDED, 1)
    assert word.times.worst_ns == 48_000
    assert word.waker is not None
    assert word.waker.name == "low"
    assert (inversion.owner.name, inversion.by.name) == ("low", "mid")
    assert (inversion.word, inversion.times.total_ns) == (f"{LOCK:x}", 20_000)
    assert seen(written, priorities={MID: 1}).watched.inversions == ()


@pytest.mark.parametrize(
    ("told", "clock", "relative"),
    [
        (1_000, MONOTONIC, 4),
        *((None, clock, 0) for clock in (MONOTONIC, BOOTTIME, BOOTTIME_ALARM)),
        *((None, clock, 4) for clock in (REALTIME, REALTIME_ALARM, TAI)),
    ],
)
def test_sleeps_that_are_not_to_a_time_of_a_steady_clock_are_counted(
    told: float | None, clock: int, relative: int
) -> None:
    written = Written()
    written.thread(LOOP, "naps")
    written.runs(LOOP, 500, first_us=501)
    for number in range(4):
        at = 1_000 + 1_000 * number
        asked = None if told else at + 1_000
        written.call(
            LOOP, at, CLOCK_NANOSLEEP, asked_us=asked, for_us=told, first=clock
        )
        written.leaves(LOOP, at + 2)
        written.wake(LOOP, at + 900, due_us=at + 899)
        written.runs(LOOP, at + 903, first_us=at + 904)
        written.returns(LOOP, at + 904, CLOCK_NANOSLEEP)

    assert counts(seen(written)).get("relative_sleep", 0) == relative
