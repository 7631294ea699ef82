"""A demonstration is judged by what its threads did, and drawn from it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from rich.console import Console

from fakes.democases import Runs, case_lines, ran
from rtscope.contract import AgentError, DemoEnd, DemoEvents, Line
from rtscope.host.errors import ContractError, TargetError
from rtscope.verbs.demo.judge import judged
from rtscope.verbs.demo.model import (
    DemoResult,
    Judged,
    Scenario,
    State,
    case_result_of,
    demo_args,
    demos,
    digest_of,
    spans_of,
)
from rtscope.verbs.demo.page import render_demo
from rtscope.verbs.demo.text import chars_of, demo_document, lane_cells, print_demo

STORY = demos()[Scenario.PREEMPT]
(CASE,) = STORY.cases

GOOD: Mapping[str, Runs] = {
    "m": [(0, 200), (760, 960)],
    "2": [(200, 400), (610, 760)],
    "3": [(400, 610)],
}


def lines_of(runs: Mapping[str, Runs] = GOOD, **other: object) -> list[Line]:
    events = {name: ran(some) for name, some in runs.items()}
    return case_lines(CASE, events, **other)  # type: ignore[arg-type]


def judge(lines: Sequence[Line]) -> Judged:
    return judged(STORY, DemoResult((case_result_of(CASE, lines),)), "local")


def failed(found: Judged) -> list[str]:
    return [check.says for check in found.checks if not check.held]


def test_every_scenario_has_a_table_and_every_table_is_a_scenario() -> None:
    assert [*demos(), Scenario.STATES] == list(Scenario)
    for demo in demos().values():
        names = [case.name for case in demo.cases]
        assert len(set(names)) == len(names)


def test_the_talks_story_as_it_must_be_holds() -> None:
    found = judge(lines_of())

    assert failed(found) == []
    assert found.held


@pytest.mark.parametrize(
    ("runs", "says"),
    [
        (
            {**GOOD, "m": [(0, 200), (300, 301), (760, 960)]},
            "m did not run until 2 was done",
        ),
        (
            {**GOOD, "2": [(200, 400), (500, 501), (610, 760)]},
            "2 did not run until 3 was done",
        ),
        ({**GOOD, "3": [(780, 990)]}, "3 began while 2 had work left"),
        ({**GOOD, "2": [(970, 980)]}, "2 began while m had work left"),
        (
            {**GOOD, "3": [(400, 610), (762, 763)]},
            "they ended by urgency: 3, then 2, then m",
        ),
    ],
)
def test_a_thread_that_ran_out_of_turn_fails_the_check_that_says_so(
    runs: Mapping[str, Runs], says: str
) -> None:
    found = judge(lines_of(runs))

    assert says in failed(found)
    assert not found.held


def test_a_policy_that_was_not_had_fails_and_is_no_ordinary_thread_in_silence() -> None:
    found = judge(lines_of(policies={"3": ("other", 0)}))

    assert failed(found) == ["each thread had its policy before its first step"]
    assert "3 other" in found.checks[0].seen


def test_a_thread_on_another_cpu_fails() -> None:
    assert failed(judge(lines_of(affinity="0-1"))) == ["all had one CPU"]


def test_a_page_fault_after_the_start_fails() -> None:
    assert failed(judge(lines_of(faults={"2": 3}))) == [
        "with locked memory nobody met a page fault"
    ]


def test_a_thread_that_was_stopped_fails() -> None:
    *lines, last = lines_of()
    first = next(x for x in lines if isinstance(x, DemoEvents))
    (*steps, (word, step, at_ns, _)) = first.events
    stopped = replace(first, events=(*steps, (word, step, at_ns, 1)))
    found = judge([stopped if x is first else x for x in [*lines, last]])

    assert failed(found) == ["all took their last step"]


def test_events_that_found_no_room_are_no_result() -> None:
    lost = "thread m: 104 of its 404 events found no room.*--cpu"
    with pytest.raises(TargetError, match=lost):
        judge(lines_of(room=300))


def test_missing_events_are_no_result() -> None:
    lines = lines_of()
    with pytest.raises(ContractError, match="thread 3 are missing"):
        judge([x for x in lines if not isinstance(x, DemoEvents) or x.thread != "3"])
    with pytest.raises(ContractError, match="incomplete"):
        judge(lines[:-1])
    for word in ("woke", "done"):
        events = {
            name: [event for event in ran(some) if event[0] != word]
            for name, some in GOOD.items()
        }
        with pytest.raises(ContractError, match="thread m are missing"):
            judge(case_lines(CASE, events))


def test_a_refusal_and_an_early_end_are_no_result() -> None:
    with pytest.raises(TargetError, match=r"lacks CAP_SYS_NICE \(run through sudo\)"):
        judge(
            [
                AgentError(
                    message="lacks CAP_SYS_NICE",
                    cause="capability",
                    remedy="run through sudo",
                )
            ]
        )
    *lines, end = lines_of()
    assert isinstance(end, DemoEnd)
    with pytest.raises(TargetError, match="before its time: watchdog"):
        judge([*lines, replace(end, stopped="watchdog")])


def test_the_states_of_a_thread_have_no_gap() -> None:
    spans = list(
        spans_of(
            [
                ("woke", 0, 12, 10),
                ("want", 1, 20, 0),
                ("got", 1, 50, 0),
                ("ran", 2, 60, 70),
                ("left", 3, 75, 0),
                ("took", 4, 80, 9),
                ("done", 5, 90, 0),
            ]
        )
    )

    assert [(s.from_ns, s.to_ns, s.state) for s in spans] == [
        (0, 10, State.ASLEEP),
        (10, 12, State.READY),
        (12, 20, State.RUNNING),
        (20, 50, State.BLOCKED),
        (50, 60, State.READY),
        (60, 70, State.RUNNING),
        (70, 75, State.RUNNING),
        (75, 89, State.RUNNING),
        (89, 90, State.RUNNING),
    ]


def test_a_digest_is_of_what_threads_did_and_not_of_their_ids() -> None:
    one = case_result_of(CASE, lines_of())
    again = replace(
        one,
        lanes=tuple(
            replace(lane, got=replace(lane.got, tid=lane.got.tid + 1))
            for lane in one.lanes
        ),
    )
    later = case_result_of(CASE, lines_of({**GOOD, "3": [(400, 610.001)]}))

    assert digest_of([one]) == digest_of([again])
    assert digest_of([one]) != digest_of([later])


def test_the_talks_picture_has_a_character_for_each_ms_in_order() -> None:
    one = case_result_of(CASE, lines_of())

    assert chars_of(one) == "m" * 200 + "2" * 200 + "3" * 210 + "2" * 150 + "m" * 200


def test_a_lane_shows_who_ran_and_who_could_have() -> None:
    one = case_result_of(CASE, lines_of())

    assert lane_cells(one.lane("m"), 960_000_000, 48) == "█" * 10 + "·" * 28 + "█" * 10
    assert lane_cells(one.lane("3"), 960_000_000, 48) == (
        " " * 20 + "█" * 11 + " " * 17
    )


def test_terminal_page_and_data_say_the_same() -> None:
    found = judge(lines_of({**GOOD, "m": [(0, 200), (300, 301), (760, 960)]}))
    console = Console(width=80, record=True, file=None, force_terminal=False)
    with console.capture() as captured:
        print_demo(found, console)
    page = render_demo(found)

    assert "NO   m did not run until 2 was done" in captured.get()
    assert "1 of 10 checks do not hold" in captured.get()
    assert "1 of 10 checks do not hold" in page
    assert "https://" not in page
    document = demo_document(found)
    assert document["held"] is False
    assert document["digest"] == found.digest
    assert document["digest"] in page
    assert [t["name"] for t in document["cases"][0]["threads"]] == ["m", "2", "3"]


def test_the_agent_is_told_the_scripts_the_cpu_and_the_end() -> None:
    assert demo_args(CASE, 3) == [
        *("demo", "--duration-ns", "15000000000", "--cpus", "3", "--lock-memory"),
        *("--", *CASE.threads),
    ]
    assert "--cpus" not in demo_args(CASE, None)
