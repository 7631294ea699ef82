"""A thread that changes its period: what is due when, and what it misses."""

from collections.abc import Sequence

import pytest

from rtscope.programs.cycles.paces import IN_A_ROW, Pace, period_at
from rtscope.programs.cycles.threadruns import GAP, Run
from rtscope.verbs.app.cycles import ThreadCycles, cycles_of
from rtscope.verbs.app.cycletables import cycle_words
from rtscope.verbs.app.lateness import late_words

MS = 1_000_000
US = 1_000


def loop(*paces: tuple[int, int], work_ns: int = 80 * US) -> list[Run]:
    """Return the runs of a loop that sleeps to times, so often after each period."""
    runs: list[Run] = []
    due = armed = 10 * MS
    for period_ns, times in paces:
        for _ in range(times):
            due += period_ns
            begin = max(due + 5 * US, runs[-1].out_ns if runs else 0)
            runs.append(
                Run(7, 0, armed, due, due, begin, begin + work_ns, work_ns, 0, 0)
            )
            armed = begin + work_ns
    return runs


def judged(runs: Sequence[Run]) -> ThreadCycles:
    found = cycles_of(runs)
    assert found is not None
    assert found.period is not None
    return found


@pytest.mark.parametrize(
    "paces",
    [
        ((MS, 1000), (2 * MS, 500), (MS, 1000)),
        ((2 * MS, 1000), (MS, 500)),
        ((MS, 500), (2 * MS, 1000)),
        ((MS, 1000), (MS * 3 // 2, 600)),
        ((10 * MS, 100), (MS, 90)),
    ],
)
def test_a_period_that_changes_is_not_missed(paces: Sequence[tuple[int, int]]) -> None:
    found = judged(loop(*paces))

    assert found.period is not None
    assert len(found.cycles) == sum(times for _, times in paces)
    assert found.period.missed == found.period.overruns == 0
    assert found.response.max_ns == 85 * US
    assert found.period.exact_share == 1.0
    most = max(paces, key=lambda one: one[1])[0]
    assert found.period.period_ns == most
    assert found.period.others_ns == (next(ns for ns, _ in paces if ns != most),)


def test_the_answer_has_both_periods() -> None:
    found = judged(loop((MS, 100), (2 * MS, 50)))

    assert "every 1,000 µs, at times 2,000 µs by a timer" in cycle_words(found)


def test_each_cycle_is_judged_by_the_period_that_it_has() -> None:
    slow = loop((2 * MS, 100), (MS, 60))
    # 1.2 ms are too long where the period is 1 ms, and not where it is 2 ms
    for at in (50, 130):
        one = slow[at]
        slow[at] = Run(7, 0, one.armed_ns, one.due_ns, one.due_ns, one.in_ns,
                       one.due_ns + MS * 6 // 5, MS, 0, 0)  # fmt: skip

    found = judged(slow)

    assert found.period is not None
    assert found.period.overruns == 1
    assert "the period is 2 ms, at times 1 ms" in late_words(found.period)


def test_a_period_without_a_cycle_is_missed_at_each_pace() -> None:
    runs = loop((MS, 60), (2 * MS, 60))
    del runs[90], runs[20]

    found = judged(runs)

    assert found.period is not None
    assert found.period.missed == 2


def test_fewer_in_a_row_are_missed_periods() -> None:
    found = judged(loop((MS, 100), (2 * MS, IN_A_ROW - 1), (MS, 100)))

    assert found.period is not None
    assert found.period.missed == IN_A_ROW - 1
    assert found.period.others_ns == ()


def test_a_loop_that_is_late_for_long_misses_periods() -> None:
    """It skips each second one, since its cycle takes longer than a period."""
    late = loop((2 * MS, 50), work_ns=MS * 6 // 5)
    before = loop((MS, 200))
    moved = before[-1].due_ns - 10 * MS
    runs = [
        *before,
        *(
            Run(7, 0, x.armed_ns + moved, x.due_ns + moved, x.woken_ns + moved,
                x.in_ns + moved, x.out_ns + moved, x.ran_ns, 0, 0)
            for x in late
        ),
    ]  # fmt: skip

    found = judged(runs)

    assert found.period is not None
    assert found.period.missed == 50


def test_where_events_were_lost_a_changing_period_misses_nothing() -> None:
    runs = loop((MS, 60), (2 * MS, 60))
    one = runs.pop(20)
    after = runs[20]
    runs[20] = Run(7, 0, one.armed_ns, after.due_ns, after.due_ns, after.in_ns,
                   after.out_ns, after.ran_ns, 0, GAP)  # fmt: skip

    found = judged(runs)

    assert found.period is not None
    assert found.period.missed == 0


def test_a_time_that_is_read_some_ns_early_has_the_period_of_then() -> None:
    paces = (Pace(10 * MS, MS, 9), Pace(19 * MS, 2 * MS, 9))

    assert period_at(paces, 19 * MS - 400, MS) == 2 * MS
    assert period_at(paces, 18 * MS - 400, MS) == MS
    assert period_at((), 5 * MS, 3 * MS) == 3 * MS
