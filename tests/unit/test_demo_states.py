"""The states of a thread, read from a /proc of the test's own."""

import itertools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources

import pytest

from rtscope.machine.reader import Content, Denied, Missing
from rtscope.verbs.demo import statemaker
from rtscope.verbs.demo.states import (
    GONE,
    PATIENCE_S,
    Look,
    Outcome,
    Shown,
    StatesResult,
    ThreadState,
    letter_of,
    look_at,
    syscall_of,
    thread_states,
    waits_as,
    watch_for,
)
from rtscope.verbs.demo.statestext import states_json

STATES = {state.name: state for state in thread_states()}
PLACE = "/proc/7/task/8"


def stat(letter: str, name: str = "python") -> bytes:
    return f"8 ({name}) {letter} 1 7 7 0 -1 4194304\n".encode()


@dataclass
class Proc:
    """A /proc whose files have one content after the other, and then stay."""

    files: Mapping[str, Sequence[Content]]
    read: dict[str, int] = field(default_factory=dict)

    def read_many(self, paths: Sequence[str]) -> Mapping[str, Content]:
        return {path: self._next(path) for path in paths}

    def _next(self, path: str) -> Content:
        contents = self.files.get(path.removeprefix(f"{PLACE}/"), [Missing()])
        at = self.read.get(path, 0)
        self.read[path] = at + 1
        return contents[min(at, len(contents) - 1)]


def look(**files: Content | Sequence[Content]) -> Look:
    listed = {
        name: [one] if isinstance(one, bytes | Missing | Denied) else one
        for name, one in files.items()
    }
    return look_at(Proc(listed), 7, 8)


def watched(name: str, looks: Sequence[Look], *, turns: int = 5) -> Shown:
    """Watch for a state until its looks are over; the last one stays."""
    coming = itertools.chain(looks, itertools.repeat(looks[-1]))
    left = itertools.count(turns, -1)
    return watch_for(
        STATES[name],
        (7, 8),
        lambda: next(coming),
        is_over=lambda: next(left) <= 0,
        sleep=lambda _: None,
    )


# --- what is made, and what is said of it ---------------------------------------------


def test_each_state_of_the_table_has_a_maker() -> None:
    assert list(STATES) == list(statemaker.MAKERS)
    assert {one.letter for one in STATES.values()} == set("RSDTtZX")


def test_each_state_is_told_whole() -> None:
    file = resources.files("rtscope.verbs.demo").joinpath("states.toml")
    for table in tomllib.loads(file.read_text()).values():
        assert all(table.values())
        assert table["command"].startswith("rtscope tasks ")


def test_patience_is_of_minutes() -> None:
    assert PATIENCE_S >= 120


# --- what /proc says ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "a) R (b", "a b", ") Z 1", "\n"])
def test_a_name_with_brackets_and_blanks_hides_no_state(name: str) -> None:
    assert letter_of(stat("S", name)) == "S"


@pytest.mark.parametrize("text", [b"", b"8", b"8 (python)", b"8 (python) 4 1", b"\xff"])
def test_a_stat_that_no_kernel_writes_has_no_state(text: bytes) -> None:
    assert letter_of(text) is None


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("202 0x7f 0x86 0x0 0x0 0x0 0x0 0x1 0x2", (202, 127, 134, 0, 0, 0, 0, 1, 2)),
        ("-1 0x1 0x2", (-1, 1, 2)),
        ("running", None),
        ("a b c", None),
        ("", None),
        (None, None),
    ],
)
def test_a_system_call_is_its_number_and_its_arguments(
    text: str | None, numbers: tuple[int, ...] | None
) -> None:
    assert syscall_of(text) == numbers


def test_a_look_has_state_place_and_call() -> None:
    seen = look(stat=stat("D"), wchan=b"kernel_clone", syscall=b"56 0x4011 0x0")

    assert seen == Look("D", "", "kernel_clone", (56, 0x4011, 0), settled=True)


def test_what_the_kernel_keeps_back_is_unknown() -> None:
    assert look(stat=stat("S"), wchan=b"0", syscall=Denied("no right")) == Look("S")


def test_a_thread_that_changed_meanwhile_is_not_settled() -> None:
    assert not look(stat=[stat("R"), stat("S")], wchan=b"f").settled
    assert not look(stat=[Missing(), stat("S")]).settled
    assert not look(stat=stat("S"), syscall=b"running").settled
    assert look(stat=stat("R"), syscall=b"running").settled


def test_a_thread_that_is_not_there_is_gone_and_one_that_is_hidden_is_unknown() -> None:
    assert look().letter == GONE
    assert look(stat=Denied("no right")) == Look(None, why=f"{PLACE}/stat: no right")
    assert look(stat=b"nonsense").letter is None


# --- what it waits for ----------------------------------------------------------------

CALL = "{} 0x7f {:#x} 0x0"


@pytest.mark.parametrize(
    ("name", "wchan", "call", "waits"),
    [
        ("pi-lock", "rt_mutex_schedule", None, True),
        ("pi-lock", None, CALL.format(202, 0x86), True),
        ("pi-lock", None, CALL.format(98, 13 | 0x80), True),
        ("pi-lock", None, CALL.format(202, 0x80), False),
        ("pi-lock", None, CALL.format(0, 6), False),
        ("pi-lock", None, None, None),
        ("pi-lock", "futex_wait_queue", None, False),
        ("timer", "hrtimer_nanosleep", None, True),
        ("timer", None, CALL.format(230, 0), True),
        ("timer", None, CALL.format(0, 0), False),
        ("timer", None, None, None),
        ("vfork", None, None, True),
    ],
)
def test_what_a_thread_waits_for_is_known_from_place_or_call(
    name: str, wchan: str | None, call: str | None, waits: bool | None
) -> None:
    assert waits_as(name, Look("S", "", wchan, syscall_of(call))) is waits


# --- until it is seen -----------------------------------------------------------------


@pytest.mark.parametrize("state", STATES.values(), ids=lambda one: one.name)
def test_a_state_is_waited_for(state: ThreadState) -> None:
    last = Look(GONE if state.name == "gone" else state.letter)
    before = [Look("R" if state.letter != "R" else "D")]
    shown = watched(state.name, [*before * 3, last])

    assert (shown.outcome, shown.look) == (Outcome.SEEN, last)
    assert shown.wait_known == (state.name not in ("timer", "pi-lock"))


def test_a_state_between_two_others_is_not_taken_for_one() -> None:
    waits = Look("S", "", "hrtimer_nanosleep")
    shown = watched("timer", [Look("S", settled=False), Look("S", "", "pipe"), waits])

    assert (shown.outcome, shown.look, shown.wait_known) == (Outcome.SEEN, waits, True)


@pytest.mark.parametrize(
    ("name", "last", "outcome", "reason"),
    [
        ("vfork", Look("S"), Outcome.OTHER, "the thread was in state S"),
        ("vfork", Look(GONE), Outcome.OTHER, "the thread is gone"),
        ("vfork", Look(None, why="no right"), Outcome.UNKNOWN, "no right"),
        ("gone", Look("Z"), Outcome.OTHER, "the thread was in state Z"),
        (
            "timer",
            Look("S", "", "pipe_read"),
            Outcome.OTHER,
            "the thread waits for something else (pipe_read)",
        ),
        (
            "timer",
            Look("S", settled=False),
            Outcome.UNKNOWN,
            "the thread changed its state all the time",
        ),
    ],
)
def test_a_state_that_is_not_seen_is_never_assumed(
    name: str, last: Look, outcome: Outcome, reason: str
) -> None:
    shown = watched(name, [last])

    assert (shown.outcome, shown.reason) == (outcome, reason)


@pytest.mark.parametrize("outcome", Outcome)
def test_what_could_not_be_made_fails_nothing_and_all_else_does(
    outcome: Outcome,
) -> None:
    fine = Shown(STATES["running"], Outcome.SEEN, 7, 7, Look("R"))
    result = StatesResult("6.12", (fine, Shown(STATES["traced"], outcome)))

    assert result.held == (outcome in (Outcome.SEEN, Outcome.NOT_SHOWN))


# --- data -----------------------------------------------------------------------------


def test_the_data_has_these_keys() -> None:
    fine = Shown(STATES["pi-lock"], Outcome.SEEN, 7, 8, Look("S", "", "f", (202, 1)))
    document = states_json(StatesResult("6.12", (fine,)))

    assert list(document) == ["scenario", "target", "kernel", "held", "states"]
    assert {
        "outcome": "seen",
        "pid": 7,
        "tid": 8,
        "wchan": "f",
        "syscall": 202,
        "wait_known": True,
        "seen": "S",
        "reason": "",
    }.items() <= document["states"][0].items()
    assert set(document["states"][0]) == {
        *("name", "letter", "title", "outcome", "reason", "seen", "pid", "tid"),
        *("wchan", "syscall", "wait_known", "made", "means", "does", "command"),
    }
