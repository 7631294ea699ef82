"""rtscope doctor: one screen, the reason of what is refused, and what to type."""

import contextlib
import json
from collections.abc import Callable

import pytest

from fakes import targets
from fakes.commandline import Rtscope
from fakes.faketarget import FakeTarget
from rtscope.host.errors import TargetError
from rtscope.measure.preflight import THREADS, Ability, State
from rtscope.verbs.doctor import doctor

WELL = Ability("tracing", State.WORKS, "48 kinds of events")
DENIED = Ability(
    THREADS,
    State.MISSING,
    "the process lacks CAP_SYS_NICE, and RLIMIT_RTPRIO is 0",
    "run through sudo",
    "capability",
)
LONG = Ability("loads", State.LIMITED, "a reason of many words " * 20, "type this " * 9)


@pytest.fixture
def has(monkeypatch: pytest.MonkeyPatch) -> list[Ability]:
    """The abilities of a machine, to be filled by a test."""
    abilities: list[Ability] = []
    here: FakeTarget = targets.target()
    monkeypatch.setattr(
        doctor, "open_target", lambda _address, **_: contextlib.nullcontext(here)
    )
    monkeypatch.setattr(doctor, "machine_abilities", lambda *_: iter(abilities))
    monkeypatch.setattr(doctor, "computer_abilities", lambda _place: iter(()))
    return abilities


def test_a_machine_that_works_is_told_what_to_type_next(
    rtscope: Rtscope, has: list[Ability]
) -> None:
    has.append(WELL)
    said = rtscope("doctor")

    assert (said.status, said.err) == (0, "")
    assert "can be measured (1 works)" in said.out.splitlines()[0]
    assert said.out.splitlines()[-1] == "Next: rtscope run -l idle -d 10s"


def test_what_is_refused_has_its_cause_and_its_remedy_and_status_1(
    rtscope: Rtscope, has: list[Ability]
) -> None:
    has += [DENIED, WELL]
    said = rtscope("doctor")

    assert said.status == 1
    text = " ".join(said.out.split())
    assert "cannot be measured (1 works, 1 missing)" in text
    assert "capability: the process lacks CAP_SYS_NICE, and RLIMIT_RTPRIO is 0" in text
    assert "→ run through sudo" in text


def test_without_options_it_is_one_screen_and_nothing_is_left_out_of_all(
    rtscope: Rtscope, has: list[Ability]
) -> None:
    has += [WELL, DENIED, *[LONG] * 9]
    brief, whole = rtscope("doctor"), rtscope("doctor", "-v")

    assert len(brief.out.splitlines()) <= 22
    assert max(map(len, brief.out.splitlines())) <= 80
    assert "These work: tracing." in brief.out
    assert "rtscope doctor -v" in brief.out
    assert " ".join(whole.out.split()).count("a reason of many words") == 20 * 9


def test_one_line_and_json_say_the_same(rtscope: Rtscope, has: list[Ability]) -> None:
    has += [DENIED, WELL]
    quiet, data = rtscope("doctor", "-q"), rtscope("doctor", "--json")

    assert len(quiet.out.splitlines()) == 1
    document = json.loads(data.out)
    assert document["can_measure"] is False
    assert document["abilities"][0] == {
        "name": "real-time threads",
        "state": "missing",
        "what": "the process lacks CAP_SYS_NICE, and RLIMIT_RTPRIO is 0",
        "remedy": "run through sudo",
        "cause": "capability",
    }
    assert (quiet.status, data.status) == (1, 1)


def test_a_machine_that_does_not_answer_is_said_and_the_rest_is_asked(
    rtscope: Rtscope, has: list[Ability], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_address: object, **_: object) -> contextlib.nullcontext[FakeTarget]:
        raise TargetError("ssh:b: no route to host; try: ssh b uname -m")

    monkeypatch.setattr(doctor, "open_target", gone)
    monkeypatch.setattr(doctor, "computer_abilities", lambda _place: iter((WELL,)))
    said = rtscope("doctor", "-t", "ssh:b")

    assert said.status == 1
    assert "no route to host" in said.out
    assert "→ try: ssh b uname -m" in said.out
    assert "tracing" in said.out


def test_a_machine_that_is_being_measured_is_not_disturbed(
    rtscope: Rtscope, has: list[Ability], monkeypatch: pytest.MonkeyPatch
) -> None:
    def held(
        _address: object, alone: Callable[[str], None]
    ) -> contextlib.nullcontext[FakeTarget]:
        alone("waiting: local is being measured by process 7 of user 0 (x); two would")
        raise AssertionError("it waited")

    monkeypatch.setattr(doctor, "open_target", held)
    said = rtscope("doctor")

    assert said.status == 1
    assert "being measured by process 7" in " ".join(said.out.split())
    assert "ask again when that has ended" in said.out
