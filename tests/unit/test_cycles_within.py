"""Runs in which the time of a waiting thread came, after something else woke it."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from rtscope.programs.cycles.periods import Basis, begun_of
from rtscope.programs.cycles.threadruns import GAP, NO_SLEEP, WITHIN, Run
from rtscope.verbs.app.cycles import cycles_of

MS, US = 1_000_000, 1000
FIRST_NS = 1_000 * MS


def timed(number: int, *, off_ns: int = 0) -> Run:
    """Return a run of 200 us at the time of a grid of 10 ms."""
    due_ns = FIRST_NS + number * 10 * MS + off_ns
    armed_ns = due_ns - 9 * MS - number * 37 % 11 * 100 * US
    woken_ns, in_ns, out_ns = due_ns + 5 * US, due_ns + 20 * US, due_ns + 220 * US
    return Run(7, 0, armed_ns, due_ns, woken_ns, in_ns, out_ns, 200 * US, 0, 0)


def within(number: int, *, in_us: int = -90, off_ns: int = 0, flags: int = 0) -> Run:
    """Return a run that begins 100 us before such a time, and ends 300 us after it."""
    run = timed(number, off_ns=off_ns)
    in_ns, out_ns = run.due_ns + in_us * US, run.due_ns + 300 * US
    return Run(
        *(7, 0, run.armed_ns, run.due_ns, run.due_ns - 100 * US, in_ns, out_ns),
        *(out_ns - in_ns, 0, WITHIN | flags),
    )


def loop(within_at: Iterable[int] = ()) -> list[Run]:
    return [within(n) if n in within_at else timed(n) for n in range(20)]


def test_a_time_of_the_grid_cuts_a_run_in_two() -> None:
    runs, found = begun_of(loop((4, 9)))

    assert found is not None
    assert (found.basis, found.period_ns, len(found.at)) == (Basis.TIME, 10 * MS, 20)
    assert len(runs) == 22
    before, since = runs[4:6]
    due_ns = FIRST_NS + 40 * MS
    assert (before.due_ns, before.out_ns, before.ran_ns) == (0, due_ns, 90 * US)
    assert (since.due_ns, since.woken_ns, since.in_ns) == (due_ns,) * 3
    assert (since.ran_ns, since.flags) == (300 * US, NO_SLEEP)
    assert 5 in found.at
    assert 4 not in found.at


def test_no_period_is_missed_for_it() -> None:
    made = cycles_of(loop((4, 9)))

    assert made is not None
    assert made.period is not None
    assert (len(made.cycles), made.period.missed) == (20, 0)
    assert made.period.overruns == 0


def test_who_gets_the_cpu_after_its_time_begins_then() -> None:
    runs, found = begun_of(
        [timed(n) if n != 4 else within(4, in_us=50) for n in range(20)]
    )

    assert found is not None
    assert len(runs) == len(found.at) == 20
    assert (runs[4].due_ns, runs[4].flags) == (FIRST_NS + 40 * MS, 0)


@pytest.mark.parametrize("off_ns", [1_500, -200_000, 5 * MS])
def test_a_time_beside_the_grid_was_that_of_a_timeout(off_ns: int) -> None:
    more = within(4, off_ns=off_ns)
    runs, found = begun_of([*loop()[:5], more, *loop()[5:]])

    assert found is not None
    assert len(found.at) == 20
    assert (runs[5].due_ns, runs[5].armed_ns, runs[5].flags) == (0, 0, 0)


def test_timeouts_that_pass_while_something_else_is_done_are_no_cycles() -> None:
    every = [within(n, off_ns=n * n % 7 * 313 * US) for n in range(20)]
    runs, found = begun_of(every)

    assert len(runs) == 20
    assert not any(run.due_ns for run in runs)
    assert found is None or found.basis is not Basis.TIME


def test_events_that_were_lost_before_it_are_so_for_its_first_part() -> None:
    runs, _ = begun_of(
        [timed(n) if n != 4 else within(4, flags=GAP) for n in range(20)]
    )

    assert runs[4].flags == GAP
    assert runs[5].flags == NO_SLEEP


def test_a_time_that_it_waits_for_twice_begins_one_cycle() -> None:
    """It has served another when its time had come, and then goes on at once."""
    runs = loop()
    first = runs[4]
    again_ns = first.out_ns + 15 * US
    runs.insert(
        5,
        replace(
            first,
            armed_ns=first.out_ns,
            woken_ns=again_ns,
            in_ns=again_ns,
            out_ns=again_ns + 300 * US,
            flags=NO_SLEEP,
        ),
    )
    made = cycles_of(runs)

    assert made is not None
    assert made.period is not None
    assert (len(made.cycles), made.period.missed) == (20, 0)
    assert made.cycles[4].response_ns == (220 + 15 + 300) * US
    assert made.cycles[4].waits == 0


# --- who wakes a thread where it waits for its next cycle -----------------------------

EVENT_LOOP, REPLY = 1 * 256, 2 * 256


def served(number: int, *, flags: int, due: bool = False) -> Run:
    """Return a run of 60 us, 4 ms after a time of the grid of 10 ms."""
    at_ns = FIRST_NS + number * 10 * MS + 4 * MS
    times = at_ns, at_ns + 20 * US, at_ns + 80 * US
    armed = (at_ns - MS, at_ns - 5 * US) if due else (0, 0)
    return Run(7, 0, *armed, *times, 60 * US, 0, flags)


@pytest.mark.parametrize("due", [False, True])
def test_who_wakes_it_where_its_timer_does_is_of_no_cycle(*, due: bool) -> None:
    runs = []
    for number in range(20):
        timer = timed(number)
        runs.append(replace(timer, flags=EVENT_LOOP))
        runs.append(served(number, flags=EVENT_LOOP, due=due))
        # what it then waits for is of that, too
        runs.append(replace(served(number, flags=0), woken_ns=runs[-1].out_ns + 9))
    made = cycles_of(runs)

    assert made is not None
    assert made.period is not None
    assert (made.period.period_ns, made.period.missed) == (10 * MS, 0)
    assert (made.response.max_ns, made.between) == (220 * US, 40)
    assert (made.period.overruns, made.period.unsure) == (0, 0)


@pytest.mark.parametrize("flags", [0, REPLY])
def test_another_wait_in_the_middle_of_a_cycle_is_of_it(flags: int) -> None:
    runs = []
    for number in range(20):
        runs.append(replace(timed(number), flags=EVENT_LOOP))
        runs.append(served(number, flags=flags))
    made = cycles_of(runs)

    assert made is not None
    assert made.response.max_ns == 4 * MS + 80 * US
    assert made.between == 0


def test_with_a_given_period_a_cycle_that_another_began_ends_where_it_waits() -> None:
    runs = [served(-1, flags=EVENT_LOOP)]
    for number in range(20):
        first = replace(timed(number), flags=EVENT_LOOP)
        if number % 5 == 4:  # it came just before the time
            first = replace(first, armed_ns=0, due_ns=0, woken_ns=first.due_ns - 9 * US)
        runs += [first, served(number, flags=EVENT_LOOP)]
    made = cycles_of(runs, given_ns=10 * MS)

    assert made is not None
    assert len(made.cycles) == 20
    assert made.response.max_ns < 300 * US
