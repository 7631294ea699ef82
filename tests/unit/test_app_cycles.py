"""Cycles from runs whose numbers are known: period, misses, drift, percentiles."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from rtscope.programs.cycles.periods import Basis
from rtscope.programs.cycles.threadruns import (
    BETWEEN,
    CUT,
    GAP,
    NO_SLEEP,
    RELATIVE,
    Run,
)
from rtscope.stats.summary import buckets_of, summarize_samples
from rtscope.verbs.app.cycles import ThreadCycles, cycles_of, without
from rtscope.verbs.app.cycletables import cycle_words

MS = 1_000_000
TID = 7


def run(
    due_ns: int, *, latency: int = 20, ran: int = 100, flags: int = 0, armed: int = 0
) -> Run:
    in_ns = due_ns + latency
    out_ns = in_ns + ran
    return Run(
        TID, 0, armed or due_ns - MS, due_ns, due_ns + 10, in_ns, out_ns, ran, 0, flags
    )


def woken(at_ns: int, *, ran: int = 50) -> Run:
    return Run(TID, 0, 0, 0, at_ns, at_ns + 5, at_ns + 5 + ran, ran, 0, 0)


def cycles(runs: Sequence[Run]) -> ThreadCycles:
    found = cycles_of(runs)
    assert found is not None
    return found


def grid(*periods: int) -> list[Run]:
    return [run(number * MS) for number in periods]


def test_a_grid_is_a_period_that_nothing_misses() -> None:
    found = cycles(grid(*range(1, 101)))

    assert found.period is not None
    assert found.period.period_ns == MS
    assert found.period.absolute
    assert found.period.exact_share == 1.0
    assert found.period.missed == found.period.overruns == found.period.late_starts == 0
    assert found.period.drift_ns_per_s == 0.0
    assert found.latency is not None
    assert found.latency.min_ns == found.latency.max_ns == 20
    assert found.execution.max_ns == 100
    assert found.response.max_ns == 120


def test_a_period_that_was_left_out_is_missed() -> None:
    found = cycles(grid(1, 2, 3, 4, 7, 8, 9, 10))

    assert found.period is not None
    assert found.period.missed == 2


def test_periods_that_began_within_a_cycle_were_skipped_or_made_up_for() -> None:
    """A loop that sleeps only where there is time left makes up for them at once."""
    late = run(4 * MS, ran=2 * MS + MS // 2)

    found = cycles([*grid(1, 2, 3), late, *grid(7, 8, 11, 12, 13)])

    assert found.period is not None
    # of two within the late cycle, and of two in which it slept
    assert (found.period.missed, found.period.passed) == (4, 2)
    assert found.period.overruns == 1


def test_where_events_were_lost_nothing_is_missed() -> None:
    runs = [*grid(1, 2, 3, 4), run(7 * MS, flags=GAP), *grid(8, 9, 10)]

    found = cycles(runs)

    assert found.period is not None
    assert found.period.missed == 0
    assert found.period.exact_share == 1.0


def test_a_cycle_without_all_events_is_in_no_number_and_not_missed() -> None:
    cut = Run(TID, 0, 4 * MS, 5 * MS, 5 * MS + 9, 0, 6 * MS - 1, 0, 0, CUT)

    found = cycles([*grid(1, 2, 3, 4), cut, *grid(6, 7, 8)])

    assert found.period is not None
    assert found.period.missed == 0
    assert found.cut == 1
    assert found.cut_longest_ns == MS - 1
    assert found.latency is not None
    assert found.latency.samples == len(found.cycles) == 7
    assert found.response.max_ns == 120


def test_a_cut_cycle_that_ends_too_late_is_an_overrun() -> None:
    cut = Run(TID, 0, 4 * MS, 5 * MS, 5 * MS + 9, 0, 6 * MS + 1, 0, 0, CUT)

    found = cycles([*grid(1, 2, 3, 4), cut, *grid(6, 7, 8)])

    assert found.period is not None
    assert found.period.overruns == 1


def test_a_cycle_that_lasts_longer_than_its_period_is_counted() -> None:
    late = run(3 * MS, ran=MS + 500)
    next_one = run(4 * MS, latency=MS, flags=NO_SLEEP)

    found = cycles([*grid(1, 2), late, next_one, *grid(5, 6, 7)])

    assert found.period is not None
    assert found.period.overruns == 2
    assert found.period.late_starts == 1
    assert found.period.missed == 0
    assert found.worst.begin_ns == 3 * MS


def test_a_sleep_for_an_interval_drifts_by_the_cycle() -> None:
    # It asks for 1 ms when it has run for 0.1 ms: each period is 1.1 ms.
    step = MS + MS // 10
    runs = [run(n * step, flags=RELATIVE, armed=n * step - MS) for n in range(1, 12)]

    period = cycles(runs).period

    assert period is not None
    assert not period.absolute
    assert period.period_ns == step
    assert period.drift_ns_per_s == pytest.approx(1e9 / 11)


def test_a_cycle_as_long_as_its_sleep_makes_the_interval_twice_as_long() -> None:
    # usleep(2000) beside work of 2 ms
    step = 4 * MS
    runs = [
        run(n * step, flags=RELATIVE, armed=n * step - 2 * MS) for n in range(1, 12)
    ]

    assert "100 % longer than the interval" in cycle_words(cycles(runs))


def test_sleeps_that_ask_for_more_than_they_last_have_no_drift() -> None:
    """As in tokio: it asks for whole milliseconds, and others wake it, too."""
    runs = [run(n * MS, flags=RELATIVE, armed=n * MS - MS - 300) for n in range(1, 12)]

    period = cycles(runs).period

    assert period is not None
    assert not period.absolute
    assert period.drift_ns_per_s is None


def test_other_waits_are_a_part_of_the_cycle() -> None:
    runs = []
    for number in range(1, 9):
        runs += [run(number * MS), woken(number * MS + 400)]

    found = cycles(runs)

    assert len(found.cycles) == 8
    assert found.cycles[0].waits == 1
    assert found.cycles[0].response_ns == 455
    assert found.cycles[0].ran_ns == 150


def test_wake_ups_without_a_steady_timer_are_cycles_each() -> None:
    runs = [woken(at) for at in (100, 5000, 5600, 90_000, 91_000)]

    found = cycles(runs)

    assert found.period is None
    assert len(found.cycles) == 5
    assert found.latency is not None
    assert found.latency.max_ns == 5


def test_a_timeout_that_expires_now_and_then_is_no_period() -> None:
    runs = [run(at * MS) for at in (1, 4, 5, 19, 23, 42, 43)]

    assert cycles(runs).period is None


# --- which runs begin a cycle: loops as programs have them --------------------------

WORK = [30_000 + 7_919 * n % 90_000 for n in range(200)]
"""ns of work in the cycles of a loop, which vary."""


def relative(
    sleep_ns: int, work: Sequence[int] = WORK, *, flag: int = RELATIVE
) -> list[Run]:
    """Work, then ask for an interval: usleep, nanosleep, Rust's and Python's sleep."""
    runs, now = [], 1_000 * MS
    for ns in work:
        due = now + sleep_ns
        runs.append(
            Run(TID, 0, now + 900, due, due + 50, due + 90, due + 90 + ns, ns, 0, flag)
        )
        now = due + 90 + ns
    return runs


@pytest.mark.parametrize("flag", [RELATIVE, 0])
def test_a_sleep_for_an_interval_has_no_time_to_miss(flag: int) -> None:
    found = cycles(relative(MS, flag=flag))

    assert found.period is not None
    assert found.period.basis is Basis.INTERVAL
    assert found.sleeps_for_intervals
    assert found.period.missed is None
    assert found.period.overruns is None
    assert found.period.late_starts is None
    assert found.period.drift_ns_per_s is not None
    assert found.period.drift_ns_per_s > 0
    assert len(found.cycles) == len(WORK)
    assert found.response.max_ns == 90 + max(WORK)


@pytest.mark.parametrize(("number", "few"), [(1, True), (4, True), (5, False)])
def test_too_few_cycles_are_of_no_basis(number: int, *, few: bool) -> None:
    # poll(due - now()) asks for an interval as well: only its spread tells them apart
    found = cycles(relative(2 * MS, [n * n * 90_000 for n in range(number)]))

    assert len(found.cycles) == number
    assert found.period is None
    assert (found.too_few, found.sleeps_for_intervals) == (few, not few)
    words = cycle_words(found)
    assert words.endswith("too few to find a period") is few
    assert ("nothing is due" in words) is not few


def seldom(usual_ns: int, late_ns: int, number: int = 200) -> list[int]:
    """Return the same again and again, as a virtual board has it, but for some."""
    return [late_ns if n % 17 == 5 else usual_ns for n in range(number)]


@pytest.mark.parametrize("work_ns", [0, 40_000])
def test_a_rest_that_is_asked_for_later_now_and_then_misses_nothing(
    work_ns: int,
) -> None:
    # time.sleep(due - time.monotonic()): the clock is read twice
    runs = []
    for number, slip_ns in enumerate(seldom(1_000, 8_000), 1):
        due = number * MS + slip_ns
        begin = due - 900_000 + number % 7 * work_ns
        runs.append(Run(TID, 0, begin, due, due + 50, due + 90, due + 990, 900, 0, 0))
    found = cycles(runs)

    assert found.period is not None
    assert found.period.basis is Basis.TIME
    assert (found.period.missed, len(found.cycles)) == (0, 200)


def test_a_rest_that_differs_by_some_ns_each_time_has_the_period_of_the_loop() -> None:
    # as seen of ppoll(NULL, 0, due - now()) beside other work: 28 % exact
    rng = random.Random(3)
    due = [n * MS + rng.choice((0, 0, 0, 0, 1, 10, 10, 31)) for n in range(1, 400)]
    runs = [run(at, armed=at - 600_000 - rng.randrange(300_000)) for at in due]
    found = cycles(runs)

    assert found.period is not None
    assert (found.period.period_ns, found.period.basis) == (MS, Basis.TIME)
    assert (found.period.missed, len(found.cycles)) == (0, 399)


def test_two_timers_that_are_as_far_apart_each_time_are_not_a_period_apart() -> None:
    runs = [run(n * 10 * MS + off) for n in range(1, 40) for off in (0, 4 * MS - 5_000)]
    found = cycles(runs)

    assert found.period is not None
    assert (found.period.period_ns, found.period.basis) == (10 * MS, Basis.TIME)
    assert found.period.missed == 0


def test_three_timers_of_one_period_are_not_as_far_apart_as_the_first_two() -> None:
    found = cycles(
        [run(n * 10 * MS + k * 3 * MS) for n in range(1, 60) for k in (0, 1, 2)]
    )

    assert found.period is not None
    assert (found.period.period_ns, found.period.missed) == (10 * MS, 0)


@pytest.mark.parametrize("rows", [(120, 100), (3, 100, 2), (40,) * 5, (9,) * 30])
def test_a_loop_that_begins_anew_from_then_on_has_the_cycles_of_all(
    rows: tuple[int, ...],
) -> None:
    # if (now > next) next = now: no cycle lasts until the recording ends
    rng = random.Random(5)
    runs: list[Run] = []
    due = 0
    for number in rows:
        due += rng.randrange(MS)
        for _ in range(number):
            due += 2 * MS
            runs.append(run(due, armed=runs[-1].in_ns + 50 if runs else due - MS))
    found = cycles(runs)

    assert found.period is not None
    assert (found.period.period_ns, found.period.basis) == (2 * MS, Basis.TIME)
    assert (len(found.cycles), found.period.overruns) == (sum(rows), 0)
    assert found.response.max_ns == 120


def test_a_time_near_the_grid_stands_for_no_period_that_has_one() -> None:
    at = [*range(MS, 100 * MS, MS), 50 * MS + 9_000, 150 * MS + 400_000]
    found = cycles([run(due, armed=due - MS + 120) for due in sorted(at)])

    assert found.period is not None
    assert (found.period.missed, len(found.cycles)) == (0, 99)


def test_sleeps_between_work_of_any_length_are_cycles_each() -> None:
    found = cycles(relative(2 * MS, [n * n * 1_000 for n in range(100)]))

    assert len(found.cycles) == 100
    assert found.response.max_ns == 90 + 99 * 99 * 1_000
    assert found.sleeps_for_intervals
    assert found.period is None or found.period.missed is None


def test_a_lock_between_sleeps_of_any_work_ends_no_cycle() -> None:
    runs = relative(2 * MS, [n * n * 1_000 for n in range(100)])
    with_locks = [*runs[:50], woken(runs[49].out_ns + 10_000), *runs[50:]]

    found = cycles(with_locks)

    assert len(found.cycles) == 100
    assert found.cycles[49].waits == 1


def asked_anew(numbers: Iterable[int]) -> list[Run]:
    """Runs of a loop that asks for the rest of each of these periods."""
    # poll(next - now), Go's tickers, time.sleep(next - time.monotonic())
    runs, armed = [], 0
    for at, (number, ns) in enumerate(zip(numbers, WORK, strict=True), 1):
        due = number * MS + at % 3 * 400
        times = (armed or due - MS, due, due + 50, due + 90, due + ns)
        runs.append(Run(TID, 0, *times, ns, 0, RELATIVE))
        armed = due + ns
    return runs


def test_the_pace_of_wake_ups_that_are_late_in_turn_is_their_mean() -> None:
    # as seen of a ticker of Go: most intervals are longer, as many are shorter
    offsets = [0, 290_000, 580_000]
    period = cycles([woken(n * 5 * MS + offsets[n % 3]) for n in range(1, 200)]).period

    assert period is not None
    assert period.basis is Basis.WAKEUPS
    assert abs(period.period_ns - 5 * MS) < 50_000
    assert period.missed == 0


def test_sleeps_beside_a_lock_at_a_steady_pace_are_the_cycles() -> None:
    """The pace is that of the thread that has the lock, two sleeps of 5 ms apart."""
    sleep = 5 * MS
    runs = []
    for began in range(0, 40 * 12 * MS, 12 * MS):
        runs.append(woken(began))
        for due in (began + sleep + 60_000, began + 2 * sleep + 120_000):
            runs.append(run(due, flags=RELATIVE, armed=due - sleep))

    found = cycles(runs)

    assert found.sleeps_for_intervals
    assert found.period is None
    assert len(found.cycles) == 80


def test_the_rest_of_a_period_is_asked_for_anew_and_is_a_time() -> None:
    period = cycles(asked_anew(range(1, len(WORK) + 1))).period

    assert period is not None
    assert period.basis is Basis.TIME
    assert period.missed == 0


def test_a_period_that_is_asked_for_anew_and_left_out_is_missed() -> None:
    left_out = [n + (n > 100) * 2 for n in range(1, len(WORK) + 1)]
    period = cycles(asked_anew(left_out)).period

    assert period is not None
    assert period.missed == 2


def two_waits(second_ns: int, *, flag: int, first: int = 0) -> list[Run]:
    """A grid of 5 ms, and in each cycle a wait with a timeout."""
    runs, armed = [], 0
    for number in range(1, 201):
        due = number * 5 * MS
        late = 60_000 + number * 977 % 40_000
        begin, end = due + late, due + late + 9_000
        if number > first:
            runs.append(
                Run(TID, 0, armed or due - MS, due, begin - 9, begin, end, 9_000, 0, 0)
            )
        wait = end + second_ns
        runs.append(
            Run(TID, 0, end - 50, wait, wait + 50, wait + 80, wait + 180, 100, 0, flag)
        )
        armed = wait + 170
    return runs


@pytest.mark.parametrize("flag", [RELATIVE, 0])
@pytest.mark.parametrize("second_ns", [200_000, 1_700_000, 4_000_000])
@pytest.mark.parametrize("first", [0, 1])
def test_a_second_timed_wait_in_each_cycle_hides_no_period(
    flag: int, second_ns: int, first: int
) -> None:
    found = cycles(two_waits(second_ns, flag=flag, first=first))

    assert found.period is not None
    assert found.period.period_ns == 5 * MS
    assert found.period.basis is Basis.TIME
    assert found.period.missed == found.period.overruns == 0
    assert len(found.cycles) == 200 - first
    assert {one.waits for one in found.cycles} == {1}


def test_of_two_sleeps_for_intervals_the_longer_one_begins_the_cycle() -> None:
    runs, now = [], 0
    for ns in WORK:
        for sleep in (200_000, 20 * MS):
            due = now + sleep
            runs.append(
                Run(
                    TID,
                    0,
                    now + 900,
                    due,
                    due + 50,
                    due + 90,
                    due + ns,
                    ns,
                    0,
                    RELATIVE,
                )
            )
            now = due + ns

    found = cycles(runs)

    assert found.period is not None
    assert found.period.basis is Basis.INTERVAL
    assert found.period.period_ns == pytest.approx(20.3 * MS, rel=0.01)


def test_two_timers_of_one_thread_are_not_one_cycle() -> None:
    # epoll_wait on timerfds of 5 and 7 ms, each set anew when it is read
    dues = sorted(
        {(n * 5 * MS, 5) for n in range(1, 300)}
        | {(n * 7 * MS + 1_000, 7) for n in range(1, 210)}
    )
    runs = [
        Run(
            TID,
            0,
            due - every * MS + 40_000,
            due,
            due + 20_000,
            due + 30_000,
            due + 90_000,
            60_000,
            0,
            0,
        )
        for due, every in dues
    ]

    found = cycles(runs)

    assert found.period is not None
    assert found.period.period_ns == 5 * MS
    assert found.period.missed == found.period.overruns == 0
    assert found.response.max_ns < MS
    assert found.between == 209


def paced(
    every: Sequence[int], *, cycles: int = 200, jitter_ns: int = 60_000
) -> list[Run]:
    """Woken by a semaphore, socket or audio server, at times of `every` in a cycle."""
    runs = []
    for number in range(1, cycles + 1):
        for at in every:
            when = number * 10 * MS + at + number * 7_919 % jitter_ns
            runs.append(
                Run(TID, 0, 0, 0, when, when + 30_000, when + 90_000, 60_000, 0, 0)
            )
    return runs


@pytest.mark.parametrize(
    "every", [(0,), (0, MS), (0, 300_000, 700_000), (0, 2 * MS, 3 * MS, 4 * MS)]
)
def test_wake_ups_at_a_steady_pace_are_a_period(every: tuple[int, ...]) -> None:
    found = cycles(paced(every))

    assert found.period is not None
    assert found.period.basis is Basis.WAKEUPS
    assert found.period.period_ns == pytest.approx(10 * MS, rel=0.01)
    assert found.period.missed == found.period.overruns == 0
    assert {one.waits for one in found.cycles} == {len(every) - 1}
    assert found.response.max_ns == every[-1] + 90_000


def test_a_wake_up_that_does_not_come_is_a_missed_period() -> None:
    runs = paced((0,))
    del runs[50:52]

    period = cycles(runs).period

    assert period is not None
    assert period.missed == 2


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_wake_ups_at_any_time_have_no_period(power: float) -> None:
    gaps = [((n * 7_919 % 1_000) / 1_000) ** power for n in range(400)]
    times = [sum(gaps[:n]) for n in range(1, 400)]
    runs = [woken(round(at * 10 * MS)) for at in times]

    assert cycles(runs).period is None


def test_the_period_that_is_given_makes_cycles_of_any_wake_ups() -> None:
    # a lock is waited for in one cycle of three
    every = [(0, 400_000) if n % 3 else (0,) for n in range(200)]
    runs = [
        woken(n * 10 * MS + at + n * 7_919 % 900_000)
        for n, some in enumerate(every)
        for at in some
    ]
    del runs[100:104]

    found = cycles_of(runs, given_ns=10 * MS)

    assert found is not None
    assert found.period is not None
    assert found.period.basis is Basis.GIVEN
    assert found.period.period_ns == 10 * MS
    assert found.period.missed in (2, 3)
    assert len(found.cycles) in (197, 198)


def test_an_interrupted_sleep_is_no_part_of_the_cycle_before() -> None:
    runs = grid(*range(1, 20))
    handler = replace(woken(5 * MS + 900_000), flags=BETWEEN)

    found = cycles([*runs[:5], handler, *runs[5:]])

    assert found.response.max_ns == 120
    assert found.between == 1


def test_what_went_on_at_once_was_not_woken() -> None:
    late = [
        replace(
            one,
            in_ns=one.due_ns + 100 * MS,
            out_ns=one.due_ns + 101 * MS,
            flags=NO_SLEEP,
        )
        for one in grid(*range(1, 20))
    ]

    found = cycles(late)

    assert found.latency is None
    assert found.response.min_ns == 101 * MS
    assert found.period is not None
    assert found.period.late_starts == found.period.overruns == 19


def test_a_time_before_the_recording_is_in_no_time_but_is_late() -> None:
    late = [
        replace(
            one,
            in_ns=one.due_ns + 100 * MS,
            out_ns=one.due_ns + 101 * MS,
            flags=NO_SLEEP,
        )
        for one in grid(*range(1, 20))
    ]

    found = cycles_of(late, from_ns=15 * MS)

    assert found is not None
    assert found.before == 14
    assert len(found.cycles) == 5
    assert found.period is not None
    assert found.period.late_starts == 19


def test_a_cycle_that_its_events_contradict_is_in_no_number() -> None:
    merged = replace(run(5 * MS), out_ns=7 * MS - 100, ran_ns=500)
    found = cycles([*grid(1, 2, 3, 4), merged, *grid(7, 8, 9, 10)])
    assert found.period is not None
    assert (found.period.missed, found.period.overruns) == (1, 1)

    left = without(found, found.worst)

    assert left is not None
    assert left.period is not None
    assert left.withdrawn == 1
    assert len(left.cycles) == 8
    assert left.response.max_ns == 120
    assert (left.period.missed, left.period.overruns) == (0, 0)
    assert without(replace(left, cycles=left.cycles[:1]), left.cycles[0]) is None


def test_a_thread_that_did_not_wake_up_has_no_cycles() -> None:
    assert cycles_of([]) is None


@pytest.mark.parametrize(
    ("samples", "pct", "known"),
    [(4, 50, False), (5, 50, True), (298, 99, False), (299, 99, True)],
)
def test_a_percentile_needs_samples(samples: int, pct: float, known: bool) -> None:
    spread = summarize_samples(list(range(1, samples + 1)))

    assert (spread.ranks.percentile_ns(pct) is not None) is known


def test_a_percentile_is_a_sample() -> None:
    spread = summarize_samples(list(range(1000, 0, -1)))

    assert spread.ranks.percentile_ns(99) == 990
    assert spread.ranks.percentile_ns(50) == 500
    assert spread.mean_ns == 500.5


def test_buckets_hold_every_sample_within_a_thousandth() -> None:
    samples = [0, 1, 1023, 1024, 2047, 2048, 2049, 123_456_789]

    buckets = list(buckets_of(summarize_samples(samples)))

    assert sum(number for _, _, number in buckets) == len(samples)
    for low, high, _ in buckets:
        assert high - low <= max(1, low // 1024)
    assert (2048, 2050, 2) in buckets


def served(*, rounded: bool) -> list[Run]:
    """Return the runs of a server: a message comes between its timers, at any time."""
    runs = []
    for number in range(1, 101):
        due_ns = number * MS + (number**2 * 7919 % 90_000 if rounded else 0)
        armed_ns = due_ns - MS + number**2 * 6151 % 700_000
        runs.append(run(due_ns, armed=armed_ns))
        runs.append(woken(number * MS + 300_000 + number * 233_331 % 600_000))
    return runs


def test_a_message_at_the_end_of_a_period_makes_no_cycle_of_a_server_longer() -> None:
    runs = served(rounded=False)
    runs[51] = woken(27 * MS - 20, ran=50)
    period = cycles(runs).period

    assert period is not None
    assert period.absolute
    assert period.period_ns == MS
    assert (period.missed, period.overruns, period.unsure) == (0, 0, 1)


def test_a_server_whose_own_cycle_is_too_long_has_an_overrun() -> None:
    runs = served(rounded=False)
    runs[50:52] = [run(26 * MS, ran=MS + 50)]
    period = cycles(runs).period

    assert period is not None
    assert (period.overruns, period.unsure) == (1, 0)


def test_timeouts_that_messages_end_as_well_begin_no_cycle() -> None:
    runs = served(rounded=True)
    # the message came when the time did, and the wait had a timeout of 0
    runs[50] = woken(26 * MS + 50)
    found = cycles(runs)

    assert found.period is None
    assert len(found.cycles) == len(runs)
    assert found.response.max_ns < MS / 2


@pytest.mark.parametrize("flag", [0, RELATIVE])
def test_a_loop_that_descriptors_wake_has_no_cycle_of_its_timer(flag: int) -> None:
    """As of a server: a timer of a second, and a request whenever somebody asks."""
    asked = [
        woken(second * 1_000 * MS + number * 90 * MS + number**2 * 7_919, ran=50_000)
        for second in range(1, 9)
        for number in range(1, 11)
    ]
    timers = [
        run(n * 1_000 * MS, armed=(n - 1) * 1_000 * MS + 950 * MS, flags=flag)
        for n in range(1, 10)
    ]
    found = cycles(sorted([*asked, *timers], key=lambda one: one.begin_ns))

    assert found.period is None
    assert len(found.cycles) == len(asked) + len(timers)
    assert found.response.max_ns < MS


@pytest.mark.parametrize("parts", [3, 6])
def test_a_server_that_answers_in_parts_has_no_cycle_of_its_timeout(parts: int) -> None:
    """Most of its waits are short, of one request: accept, read, close."""
    asked = [
        woken(n * 17 * MS + n**2 * 7_919 % MS + part * 100_000, ran=20_000)
        for n in range(1, 400)
        for part in range(parts)
    ]
    timers = []
    for n in range(1, 13):
        due_ns = n * 500 * MS + n**2 * 7_919 % 90_000
        timers.append(run(due_ns, armed=due_ns - 9 * MS))
    found = cycles(sorted([*asked, *timers], key=lambda one: one.begin_ns))

    assert found.period is None
    assert found.response.max_ns < MS


def test_a_wait_for_a_lock_within_a_cycle_is_a_part_of_it() -> None:
    runs = [
        one
        for number in range(1, 101)
        for one in (run(number * MS), woken(number * MS + 200_000))
    ]
    runs[51] = woken(26 * MS + 200_000, ran=900_000)
    period = cycles(runs).period

    assert period is not None
    assert (period.overruns, period.unsure) == (1, 0)
