"""The verdict of `--response`: NO, INVALID, NOT SHOWN, HELD, and which decides."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from fakes import cycling, traces
from fakes import printed as terminal
from rtscope.contract import CycleRuns, CyclesEnd
from rtscope.stats.evidence import Verdict
from rtscope.verbs.app.check import FailOn, examined_junit, status_of
from rtscope.verbs.app.checktext import examined_blocks
from rtscope.verbs.app.cycles import ThreadCycles
from rtscope.verbs.app.response import Response, judge_response, verdict_phrases
from rtscope.verbs.app.rules import examine
from rtscope.verbs.app.watchedcycles import recording_of
from unit.test_app_rules import seen, thread

TID = cycling.TID
NAMES = {TID: "cycle"}
ENOUGH = cycling.periodic(1000)
DENIED = cycling.end(tracing=traces.tracing(cause="permission"))


def threads_of(*lines: CycleRuns) -> Mapping[int, ThreadCycles]:
    end = cycling.end(lines)
    return recording_of((cycling.begin(), *lines, end)).threads


def judged(
    *lines: CycleRuns, limit_ns: int = 500, end: CyclesEnd | None = None
) -> Response:
    return judge_response(
        limit_ns, end or cycling.end(lines), threads_of(*lines), NAMES
    )


def test_all_cycles_within_the_limit_hold_it() -> None:
    response = judged(ENOUGH)

    assert response.verdict is Verdict.HELD_IN_TEST
    assert response.exit_status == 0
    assert response.threads[0].worst_ns == 120


def test_one_cycle_that_took_longer_is_no() -> None:
    response = judged(ENOUGH, limit_ns=119)

    assert response.verdict is Verdict.NO
    assert response.exit_status == 1
    assert response.threads[0].longer == 1000


def test_a_limit_that_is_reached_is_held() -> None:
    assert judged(ENOUGH, limit_ns=120).verdict is Verdict.HELD_IN_TEST


def test_few_cycles_show_nothing() -> None:
    response = judged(cycling.periodic(999))

    assert response.verdict is Verdict.NOT_SHOWN
    assert response.exit_status == 4
    assert "--duration" in response.threads[0].words


def test_a_long_cycle_among_few_is_no() -> None:
    assert judged(cycling.periodic(9), limit_ns=1).verdict is Verdict.NO


def test_without_a_recording_there_is_no_valid_verdict() -> None:
    response = judged(end=DENIED)

    assert response.verdict is Verdict.INVALID
    assert response.exit_status == 3
    assert "tracing is for root alone" in response.threads[0].words


@pytest.mark.parametrize(
    "end",
    [cycling.end((ENOUGH,), losses=1), replace(cycling.end((ENOUGH,)), left_out=1)],
)
def test_cycles_that_nobody_saw_leave_it_open(end: CyclesEnd) -> None:
    assert judged(ENOUGH, end=end).verdict is Verdict.NOT_SHOWN
    assert judged(ENOUGH, end=end, limit_ns=1).verdict is Verdict.NO


@pytest.mark.parametrize(
    "given",
    [{"cut": 1, "cut_unknown": 1}, {"before": 1}, {"withdrawn": 1}, {"period": None}],
)
def test_cycles_whose_times_are_not_known_leave_it_open(
    given: Any,
) -> None:
    threads = {TID: replace(threads_of(ENOUGH)[TID], **given)}

    response = judge_response(500, cycling.end(), threads, NAMES)

    assert response.verdict is Verdict.NOT_SHOWN


def test_a_cycle_without_all_events_that_took_longer_is_no() -> None:
    threads = {TID: replace(threads_of(ENOUGH)[TID], cut=1, cut_longest_ns=501)}

    assert judge_response(500, cycling.end(), threads, NAMES).verdict is Verdict.NO
    assert (
        judge_response(501, cycling.end(), threads, NAMES).verdict
        is Verdict.HELD_IN_TEST
    )


def test_a_thread_without_a_cycle_leaves_it_open() -> None:
    response = judge_response(500, cycling.end(), {}, NAMES)

    assert response.verdict is Verdict.NOT_SHOWN


def test_a_thread_whose_cycles_cannot_be_seen_leaves_it_open_and_says_why() -> None:
    response = judge_response(500, cycling.end(), {}, NAMES, {TID: "it yields"})

    assert response.verdict is Verdict.NOT_SHOWN
    assert response.threads[0].words == "it yields"


def test_the_worst_thread_decides_and_comes_first() -> None:
    slow = {**threads_of(ENOUGH)}
    names = {**NAMES, 8: "io", 9: "log"}
    slow[9] = replace(slow[TID], tid=9, cut=1, cut_longest_ns=900)

    response = judge_response(500, cycling.end(), slow, names)

    assert [one.tid for one in response.in_order] == [9, 8, TID]
    assert response.verdict is Verdict.NO
    text = terminal.printed(verdict_phrases(response), width=200)
    assert text.startswith("NO: response within 0.500 µs: thread 9 log: 1 cycle took")


def test_everything_has_the_verdict_of_each_thread() -> None:
    names = {TID + number: f"worker{number}" for number in range(20)}
    response = judge_response(500, cycling.end(), {}, names)

    brief = terminal.printed(verdict_phrases(response), width=200)
    whole = terminal.printed(verdict_phrases(response, everything=True), width=200)

    assert "and 17 more threads: see -v" in brief
    assert [name for name in names.values() if f" {name}:" not in whole] == []
    assert "more" not in whole


def test_the_verdict_decides_the_status_before_the_findings_do() -> None:
    clean = examine(seen(thread(TID)))
    found = examine(seen(thread(TID, priority=99)))

    assert status_of(found, FailOn.LOW) == 1
    assert status_of(clean, FailOn.NEVER, judged(ENOUGH, limit_ns=1)) == 1
    assert status_of(found, FailOn.LOW, judged(end=DENIED)) == 3
    assert status_of(found, FailOn.LOW, judged(cycling.periodic(9))) == 4
    assert status_of(found, FailOn.LOW, judged(ENOUGH)) == 1
    assert status_of(clean, FailOn.LOW, judged(ENOUGH)) == 0


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        (judged(ENOUGH, limit_ns=1), "failure"),
        (judged(end=DENIED), "error"),
        (judged(cycling.periodic(9)), "error"),
        (judged(ENOUGH), None),
    ],
)
def test_junit_has_a_case_for_the_verdict(
    response: Response, outcome: str | None
) -> None:
    text = examined_junit(examine(seen(thread(TID))), None, response)

    case = next(ElementTree.fromstring(text).iter("testcase"))
    assert case.get("name", "").startswith(f"response of {TID} cycle within")
    assert [one.tag for one in case if one.tag != "properties"] == (
        [] if outcome is None else [outcome]
    )


@pytest.mark.parametrize(("width", "lines"), [(None, 1), (80, 2)])
def test_a_pipe_gets_the_verdict_in_one_line(width: int | None, lines: int) -> None:
    verdict = list(verdict_phrases(judged(cycling.periodic(9))))
    blocks = examined_blocks(
        examine(seen(thread(TID))), width=width, everything=False, verdict=verdict
    )

    text = terminal.printed(blocks, width=80)

    begin = text.index("NOT SHOWN")
    assert "--duration" in text[begin:].split("\n", lines)[lines - 1]


def test_data_has_the_verdict_and_its_numbers() -> None:
    row = judged(ENOUGH, limit_ns=119).row()

    assert (row["verdict"], row["limit_ns"]) == ("NO", 119)
    assert row["threads"][0]["longer"] == 1000
