"""`rtscope app demo` ends with what its checks say, and refuses what does not fit."""

import contextlib
import json
from pathlib import Path

import pytest

from fakes import targets
from fakes.commandline import Rtscope
from fakes.democases import case_lines, ran
from rtscope.contract import AgentError, Line
from rtscope.verbs.demo import demo as appdemo
from rtscope.verbs.demo.model import Scenario, demos

(CASE,) = demos()[Scenario.PREEMPT].cases


def preempted(*, three_begins_ms: int) -> list[Line]:
    until = three_begins_ms + 210
    events = {
        "m": ran([(0, 200), (1200, 1400)]),
        "2": ran([(200, 400), (610, 760)]),
        "3": ran([(three_begins_ms, until)]),
    }
    return case_lines(CASE, events)


def given(monkeypatch: pytest.MonkeyPatch, lines: list[Line]) -> None:
    target = targets.target({"demo": [lines]})
    monkeypatch.setattr(
        appdemo, "open_target", lambda address, **_: contextlib.nullcontext(target)
    )


def test_the_status_is_0_if_all_happened_and_the_page_is_there(
    rtscope: Rtscope, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given(monkeypatch, preempted(three_begins_ms=400))
    page = tmp_path / "page.html"
    said = rtscope("app", "demo", "preempt", "--chars", "--html", page)

    assert said.status == 0
    assert "m" * 80 + "\n" in said.out
    assert "All 10 checks hold." in said.out
    assert "All 10 checks hold" in page.read_text()


def test_the_status_is_1_if_something_did_not_happen(
    rtscope: Rtscope, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(monkeypatch, preempted(three_begins_ms=800))
    said = rtscope("app", "demo", "preempt", "--json")

    document = json.loads(said.out)
    assert said.status == 1
    assert document["held"] is False
    assert [c["says"] for c in document["checks"] if not c["held"]] == [
        "3 began while 2 had work left",
        "they ended by urgency: 3, then 2, then m",
    ]


def test_the_status_is_3_with_the_cause_if_it_cannot_run(
    rtscope: Rtscope, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(monkeypatch, [AgentError("no right", cause="capability", remedy="be root")])
    said = rtscope("app", "demo", "preempt")

    assert (said.status, said.out) == (3, "")
    assert "no right (be root)" in said.err


def test_what_would_cut_the_connection_to_a_board_of_one_cpu_is_refused(
    rtscope: Rtscope, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = targets.target({})  # of one CPU
    target.name = "ssh:board"
    monkeypatch.setattr(
        appdemo, "open_target", lambda address, **_: contextlib.nullcontext(target)
    )
    said = rtscope("app", "demo", "throttle", "--target", "ssh:board")

    assert (said.status, said.out) == (3, "")
    assert "ssh:board has one CPU" in said.err
    assert "on the board itself" in said.err
    assert target.log == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--kernel", "debian-6.12"), "--target virtual:BOARD"),
        (("--json", "--chars"), "leave one out"),
    ],
)
def test_options_that_do_not_fit_are_refused_before_anything_runs(
    rtscope: Rtscope, words: tuple[str, ...], why: str
) -> None:
    said = rtscope("app", "demo", "preempt", *words)

    assert (said.status, said.out) == (2, "")
    assert why in said.err
