"""Each demonstration fails when what it shows does not happen."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from fakes.democases import MS, Runs, case_lines, ran
from rtscope.contract import DemoEvent
from rtscope.verbs.demo.judge import CYCLES, PERIOD_NS, WORK_NS, judged
from rtscope.verbs.demo.model import (
    Case,
    DemoResult,
    Scenario,
    State,
    case_result_of,
    demos,
    spans_of,
)

Events = Mapping[str, Sequence[DemoEvent]]


def failed(
    scenario: Scenario,
    *cases: Events,
    slice_ns: int = 0,
    memory_locked: bool | None = None,
    parameters: tuple[int, int] | None = None,
    stolen_ns: int = 0,
) -> list[str]:
    demo = demos()[scenario]
    results = tuple(
        case_result_of(
            case,
            case_lines(
                case,
                events,
                slice_ns=slice_ns,
                memory_locked=memory_locked,
                parameters=parameters,
                stolen_ns=stolen_ns,
            ),
        )
        for case, events in zip(demo.cases, cases, strict=True)
    )
    found = judged(demo, DemoResult(results), "local")
    return [check.says for check in found.checks if not check.held]


def runs(**lanes: Runs) -> Events:
    return {name: ran(some) for name, some in lanes.items()}


# --- classes ------------------------------------------------------------------------

RANKS: Mapping[str, Runs] = {
    "i": [(0, 20), (290, 291), (590, 669)],
    "o": [(20, 40), (290, 570)],
    "5": [(40, 60), (210, 290)],
    "9": [(60, 80), (130, 210)],
    "d": [(80, 130)],
}


def test_each_class_goes_before_the_next_one() -> None:
    assert failed(Scenario.CLASSES, runs(**RANKS)) == []


@pytest.mark.parametrize(
    ("name", "ran_ms", "says"),
    [
        ("9", [(60, 81), (130, 210)], "while d wanted the CPU, none of 9, 5, o, i ran"),
        ("5", [(40, 61), (210, 290)], "while 9 wanted the CPU, none of 5, o, i ran"),
        ("i", [(0, 41), (590, 669)], "while 5 wanted the CPU, none of o, i ran"),
        ("i", [(0, 20), (400, 431)], "while o wanted it, i had at most 10.0 % of wha"),
        ("i", [(0, 10)], "each wanted the CPU while those below it had"),
    ],
)
def test_a_thread_that_goes_before_its_class_fails(
    name: str, ran_ms: Runs, says: str
) -> None:
    found = failed(Scenario.CLASSES, runs(**{**RANKS, name: ran_ms}))

    assert [one for one in found if one.startswith(says)]


# --- rr -----------------------------------------------------------------------------

TURNS = runs(a=[(0, 100), (200, 300)], b=[(100, 200), (300, 400)])
ONE_BY_ONE = runs(a=[(0, 200)], b=[(200, 400)])


def test_rr_takes_turns_and_fifo_does_not() -> None:
    assert failed(Scenario.RR, TURNS, ONE_BY_ONE, slice_ns=100 * MS) == []


def test_turns_that_are_missing_or_of_another_length_fail() -> None:
    slices = 100 * MS
    assert failed(Scenario.RR, ONE_BY_ONE, ONE_BY_ONE, slice_ns=slices) == [
        "rr threads take turns",
        "a turn of rr is a slice of 100.0 ms, within a tick",
    ]
    assert failed(Scenario.RR, TURNS, ONE_BY_ONE, slice_ns=50 * MS) == [
        "a turn of rr is a slice of 50.0 ms, within a tick"
    ]
    assert failed(Scenario.RR, TURNS, TURNS, slice_ns=slices) == [
        "a fifo thread runs to its end before one of the same priority begins"
    ]


def test_what_others_take_between_two_ticks_counts_as_the_turn() -> None:
    """The tick charges the thread that it finds, whoever ran since the last one."""
    a = [*((at, at + 8) for at in range(0, 100, 10)), (200, 300)]
    shared = runs(a=a, b=[(100, 200), (300, 400)])

    assert failed(Scenario.RR, shared, ONE_BY_ONE, slice_ns=100 * MS) == []


def test_a_turn_that_is_too_long_fails() -> None:
    late = runs(a=[(0, 120), (220, 300)], b=[(120, 220), (300, 400)])

    assert failed(Scenario.RR, late, ONE_BY_ONE, slice_ns=100 * MS) == [
        "a turn of rr is a slice of 100.0 ms, within a tick"
    ]


# --- inversion ----------------------------------------------------------------------


def inversion(*, got_ms: int, mid: Runs, low: Runs, left_ms: int) -> Events:
    first, last = low[0][0], low[-1][1]
    return {
        "low": (
            ("woke", 0, int(first * MS), int(first * MS)),
            ("want", 1, 0, 0),
            ("got", 1, 0, 0),
            *(("ran", 2, int(a * MS), int(b * MS)) for a, b in low),
            ("left", 3, left_ms * MS, 0),
            ("done", 4, int(last * MS) + 1, 0),
        ),
        "mid": ran(mid),
        "high": (
            ("woke", 0, 10 * MS, 10 * MS),
            ("want", 1, 10 * MS, 0),
            ("got", 1, got_ms * MS, 0),
            ("ran", 2, got_ms * MS, (got_ms + 10) * MS),
            ("left", 3, (got_ms + 10) * MS, 0),
            ("done", 4, (got_ms + 10) * MS, 0),
        ),
    }


PLAIN = inversion(
    got_ms=160, mid=[(20, 120)], low=[(0, 10), (10, 20), (120, 160)], left_ms=160
)
INHERITED = inversion(got_ms=60, mid=[(70, 170)], low=[(0, 60)], left_ms=60)


def test_inversion_happens_without_inheritance_and_not_with_it() -> None:
    assert failed(Scenario.INVERSION, PLAIN, INHERITED) == []


def test_what_a_host_takes_from_mid_does_not_change_who_waits_for_whom() -> None:
    assert failed(Scenario.INVERSION, PLAIN, INHERITED, stolen_ns=5 * MS) == []


def test_mid_that_ends_its_work_after_the_wait_fails() -> None:
    early = inversion(
        got_ms=110, mid=[(20, 70), (120, 170)], low=[(0, 20), (70, 110)], left_ms=110
    )

    assert failed(Scenario.INVERSION, early, INHERITED) == [
        "without inheritance mid does all its work while high waits for low"
    ]


def test_the_same_in_both_cases_fails_the_one_where_it_must_not_be() -> None:
    assert failed(Scenario.INVERSION, PLAIN, PLAIN) == [
        "with inheritance mid does not run while high waits"
    ]
    assert failed(Scenario.INVERSION, INHERITED, INHERITED) == [
        "without inheritance mid does all its work while high waits for low"
    ]


def test_a_mutex_with_two_owners_fails() -> None:
    late = inversion(got_ms=60, mid=[(70, 170)], low=[(0, 60)], left_ms=61)

    assert failed(Scenario.INVERSION, PLAIN, late) == [
        "in both cases high has the mutex only after low gave it back"
    ]


def test_a_long_way_from_event_to_event_is_time_without_the_cpu() -> None:
    # low gave the mutex back, and could go on only when all others were done
    spans = list(spans_of([("left", 3, 40_000, 0), ("done", 4, 100 * MS, 0)]))

    assert [span.state for span in spans] == [State.RUNNING, State.READY]


# --- memory -------------------------------------------------------------------------


def writes(*faults: int) -> Events:
    events: list[DemoEvent] = [("woke", 0, 0, 0)]
    for number, count in enumerate(faults):
        at = number * 10 * MS
        events += [("took", 2, at, 1000 + count), ("faults", 2, at, count)]
    return {"w": (*events, ("done", 4, 99 * MS, 0))}


@pytest.mark.parametrize("scenario", [Scenario.PAGEFAULT, Scenario.MALLOC])
def test_faults_in_new_memory_and_none_in_memory_that_was_there(
    scenario: Scenario,
) -> None:
    assert failed(scenario, writes(256, 256), writes(0, 0)) == []


@pytest.mark.parametrize("scenario", [Scenario.PAGEFAULT, Scenario.MALLOC])
def test_one_fault_too_many_or_too_few_fails(scenario: Scenario) -> None:
    new, had = (case.title for case in demos()[scenario].cases)

    assert failed(scenario, writes(256, 0), writes(0, 0)) == [
        f"{new}: page faults in every period"
    ]
    assert failed(scenario, writes(256, 256), writes(0, 1)) == [
        f"{had}: no page fault in any period"
    ]


@pytest.mark.parametrize("locked", [True, False])
def test_memory_that_was_locked_in_both_cases_or_in_none_fails(locked: bool) -> None:
    cases = writes(256, 256), writes(0, 0)

    assert failed(Scenario.PAGEFAULT, *cases, memory_locked=locked) == [
        "locked memory was locked, and other was not"
    ]


# --- periodic -----------------------------------------------------------------------


def cycles(dues: Sequence[int]) -> Events:
    events: list[DemoEvent] = []
    for due in dues:
        events += [
            ("woke", 0, due + 1000, due),
            ("ran", 2, due + 2000, due + 2000 + WORK_NS),
        ]
    return {"p": (*events, ("done", 5, events[-1][3], 0)), "other": ran([(101, 111)])}


GRID = [PERIOD_NS * k for k in range(CYCLES + 1)]
DRIFTING = [(PERIOD_NS + WORK_NS + 5) * k for k in range(CYCLES + 1)]


def test_the_grid_holds_and_the_sleep_drifts_by_its_work() -> None:
    assert failed(Scenario.PERIODIC, cycles(GRID), cycles(DRIFTING)) == []


def test_a_missing_release_and_a_sleep_that_does_not_drift_fail() -> None:
    grid, sleep = (
        "the grid: each release is at its multiple of the period, none is missing",
        "a sleep of a period: each cycle adds its own work, 40.0 ms in all",
    )

    assert failed(Scenario.PERIODIC, cycles(GRID[:-1]), cycles(DRIFTING)) == [grid]
    assert failed(Scenario.PERIODIC, cycles(DRIFTING), cycles(DRIFTING)) == [grid]
    assert failed(Scenario.PERIODIC, cycles(GRID), cycles(GRID)) == [sleep]


# --- deadline -----------------------------------------------------------------------


def honest(*lengths: int, step: int = 50) -> Events:
    events: list[DemoEvent] = []
    for number, length in enumerate(lengths):
        at = number * step * MS
        events += [("woke", 3, at, 0), ("ran", 2, at, at + length * MS)]
    end = len(lengths) * step * MS
    d = (*events, ("woke", 3, end, 0), ("done", 5, end, 0))
    some = [(number * step, number * step + one) for number, one in enumerate(lengths)]
    return {"d": d, "hog": ran(between(some, end))}


def greedy(*lengths: float) -> Events:
    some = [(50.0 * k, 50.0 * k + length) for k, length in enumerate(lengths)]
    return {
        "d": (*ran(some)[:-1], ("done", 2, 500 * MS, 0)),
        "hog": ran(between(some, 500 * MS)),
    }


def between(runs: Runs, end_ns: int) -> Runs:
    """Return the times in which one that shares the CPU with these runs has it."""
    ends = [until for _, until in runs]
    begins = [begin for begin, _ in runs[1:]] + [max(end_ns / MS, ends[-1] + 1)]
    return [(a, b) for a, b in zip(ends, begins, strict=True) if b > a]


def test_a_deadline_thread_has_its_time_and_no_more() -> None:
    assert failed(Scenario.DEADLINE, honest(*[5] * 10), greedy(*[10] * 10)) == []


def test_a_deadline_thread_on_another_cpu_than_the_hog_shows_nothing() -> None:
    good, even = honest(*[5] * 10), greedy(*[10] * 10)
    alone = {"hog": ran([(0, 500)])}
    says = "the hog waited for the first run of the deadline thread"

    assert failed(Scenario.DEADLINE, {**good, **alone}, even) == [says]
    assert failed(Scenario.DEADLINE, good, {**even, **alone}) == [says]


def test_other_parameters_than_were_asked_for_fail() -> None:
    says = failed(
        Scenario.DEADLINE,
        honest(*[5] * 10),
        greedy(*[10] * 10),
        parameters=(11 * MS, 50 * MS),
    )

    assert says[0] == "each thread had its policy before its first step"


def test_a_run_too_short_to_leave_a_hole_in_the_hogs_says_nothing() -> None:
    even = greedy(*[10] * 10)
    at_ns = 30 * MS
    d = (*even["d"][:-1], ("ran", 1, at_ns, at_ns + 50_000), even["d"][-1])

    assert failed(Scenario.DEADLINE, honest(*[5] * 10), {**even, "d": d}) == []


def test_a_missed_period_a_short_yield_and_a_wrong_share_fail() -> None:
    good, even = honest(*[5] * 10), greedy(*[10] * 10)
    share = "asking for all, it had 10.0 ms in each period, and no more"

    assert failed(Scenario.DEADLINE, honest(5, 5, 51, 5), even)[0] == (
        "it had its requested time within each period, beside fifo 90"
    )
    assert failed(Scenario.DEADLINE, honest(*[5] * 10, step=6), even) == [
        "a yield lasts until the next period"
    ]
    assert failed(Scenario.DEADLINE, good, greedy(*[16] * 10)) == [share]
    assert failed(Scenario.DEADLINE, good, greedy(*[7] * 10)) == [share]


# --- all ----------------------------------------------------------------------------


def test_a_check_of_several_cases_names_the_one_that_failed() -> None:
    demo = demos()[Scenario.RR]

    def checks_of(case: Case, events: Events, affinity: str) -> list[str]:
        lines = case_lines(case, events, slice_ns=100 * MS, affinity=affinity)
        one = case_result_of(case, lines)
        other = replace(one, case=demo.cases[1])
        found = judged(demo, DemoResult((one, other)), "local")
        return [check.seen for check in found.checks if check.says == "all had one CPU"]

    assert checks_of(demo.cases[0], TURNS, "1") == ["in 2 cases"]
    (seen,) = checks_of(demo.cases[0], TURNS, "0-1")
    assert "two rr threads: CPU 0-1; two fifo threads: CPU 0-1" in seen
