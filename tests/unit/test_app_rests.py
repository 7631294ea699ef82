"""A loop that waits for messages for the rest of its period keeps that period."""

from dataclasses import replace

from rtscope.programs.cycles.periods import Basis
from rtscope.programs.cycles.threadruns import GAP, WITHIN, Run
from rtscope.verbs.app.cycles import cycles_of
from unit.test_app_cycles import MS, cycles, run, woken

POLL = 256
"""It slept in the first of its waits for several things."""

SLIP_NS = (0, 90, 410, 60, 1_300, 250, 700)
"""From the clock that the program reads to the one that the kernel does."""


def rests(*, messages: int = 2, number: int = 100) -> list[Run]:
    """Return runs of `poll(fds, next - now)`, with messages at any time."""
    runs = []
    for period in range(1, number + 1):
        offsets = [
            150_000 + (period**2 * 7_919 + n * 311_111) % 700_000
            for n in range(messages)
        ]
        runs += [woken(period * MS - MS + one) for one in sorted(offsets)]
        last_ns = period * MS - MS + max(offsets, default=100_000) + 60
        due_ns = period * MS + SLIP_NS[period % len(SLIP_NS)]
        runs.append(run(due_ns, armed=last_ns))
    return [replace(one, flags=POLL) for one in runs]


def at_period(runs: list[Run], period: int) -> int:
    return next(i for i, x in enumerate(runs) if x.due_ns // MS == period)


def test_messages_do_not_hide_the_period_and_are_of_no_cycle() -> None:
    found = cycles(rests())

    assert found.period is not None
    assert found.period.basis is Basis.TIME
    assert abs(found.period.period_ns - MS) < 500
    assert (found.period.missed, found.period.overruns) == (0, 0)
    assert len(found.cycles) == 100
    assert found.response.max_ns == 120


def test_a_cycle_within_the_run_of_a_message_is_not_missed() -> None:
    """The time came while it served the message, and it made its cycle at once."""
    runs = rests()
    at = at_period(runs, 50)
    served = woken(50 * MS - 30_000, ran=90_000)
    runs[at] = replace(
        served, due_ns=runs[at].due_ns, armed_ns=runs[at].armed_ns, flags=WITHIN | POLL
    )
    period = cycles(runs).period

    assert period is not None
    assert (period.missed, period.overruns) == (0, 0)


def test_a_period_that_it_skips_is_missed() -> None:
    runs = rests()
    late = at_period(runs, 50)
    runs[late] = replace(runs[late], out_ns=runs[late].out_ns + MS)
    del runs[late + 1 : at_period(runs, 51) + 1]
    period = cycles(runs).period

    assert period is not None
    assert (period.missed, period.passed, period.overruns) == (1, 1, 1)


def test_no_period_is_missed_where_a_message_lost_events_before_it() -> None:
    runs = rests()
    first, last = at_period(runs, 30), at_period(runs, 60)
    lost = replace(runs[last - 1], flags=GAP | POLL)
    period = cycles([*runs[: first + 2], lost, *runs[last:]]).period

    assert period is not None
    assert period.missed == 0


def test_a_timeout_in_whole_milliseconds_that_messages_end_is_no_interval() -> None:
    """Of poll(): mostly the last one, of 1 ms, is over before a message comes."""
    runs = []
    for period in range(1, 101):
        begin_ns = period * 5 * MS
        runs += [woken(begin_ns + n * MS + period**2 * 7_919 % MS) for n in range(4)]
        due_ns = begin_ns + 5 * MS + period**2 * 6_151 % 700_000
        runs.append(run(due_ns, armed=due_ns - MS + 300))
    found = cycles_of(runs)

    assert found is not None
    assert found.period is None
    assert not found.sleeps_for_intervals
    assert len(found.cycles) == len(runs)


def test_a_rest_in_whole_milliseconds_keeps_no_period() -> None:
    """Of epoll_wait(): it ends up to 1 ms late, and the next one is shorter then."""
    runs = []
    due_ns = 0
    for period in range(1, 101):
        due_ns += 10 * MS + 94_000 + period**2 % 97 - (MS if period % 11 == 0 else 0)
        at_ns = due_ns - (period * 7 % 9 + 1) * MS
        runs += [woken(at_ns - n * 400_000) for n in range(period % 3, 0, -1)]
        runs.append(run(due_ns, armed=at_ns + 3_000))
    found = cycles_of([replace(one, flags=POLL) for one in runs])

    assert found is not None
    assert found.period is None
