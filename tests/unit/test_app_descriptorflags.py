"""Whether a descriptor had O_NONBLOCK when a thread used it."""

from collections.abc import Mapping

import pytest

from rtscope.programs.outside.wakeups import Call
from rtscope.verbs.app.descriptorflags import nonblocking_at

F_SETFL, F_DUPFD, FIONBIO = 4, 0, 0x5421
NONBLOCK = 0o4000


def call(name: str, *arguments: int, result: int = 0) -> Call:
    first, second, third = (*arguments, 0, 0, 0)[:3]
    return Call(0, name, (first, second, third), 0, result=result)


def said(*calls: Call, end: Mapping[int, bool]) -> list[bool | None]:
    """Return what is known of the descriptor of each read."""
    says = nonblocking_at(calls, end.get)
    known = [
        nonblocking(one.arguments[0])
        for one, nonblocking in zip(calls, says, strict=True)
    ]
    return [one for one, of in zip(known, calls, strict=True) if of.name == "read"]


def test_a_descriptor_that_nobody_changes_is_as_at_the_end() -> None:
    assert said(call("read", 5), call("read", 6), end={5: True}) == [True, None]


def test_flags_are_those_that_were_set_last() -> None:
    toggles = (
        call("read", 5),
        call("fcntl", 5, F_SETFL, NONBLOCK),
        call("read", 5),
        call("fcntl", 5, F_SETFL, 0),
        call("read", 5),
    )

    assert said(*toggles, end={5: False}) == [None, True, False]


def test_what_an_ioctl_sets_is_in_memory() -> None:
    calls = (call("ioctl", 5, FIONBIO, 0x1000), call("read", 5))

    assert said(*calls, end={5: False}) == [None]


@pytest.mark.parametrize(
    "copy",
    [
        call("dup", 5, result=9),
        call("dup2", 5, 9, result=9),
        call("fcntl", 5, F_DUPFD, result=9),
    ],
)
def test_a_copy_shares_its_flags(copy: Call) -> None:
    calls = (
        copy,
        call("read", 9),
        call("fcntl", 9, F_SETFL, 0),
        call("read", 5),
        call("close", 9),
        call("read", 9),
    )

    assert said(*calls, end={5: True}) == [True, False, None]


def test_flags_that_a_copy_changes_later_are_not_those_of_the_end() -> None:
    calls = (
        call("dup", 5, result=9),
        call("fcntl", 9, F_SETFL, NONBLOCK),
        call("read", 5),
        call("fcntl", 9, F_SETFL, 0),
    )

    assert said(*calls, end={5: False}) == [True]


@pytest.mark.parametrize(
    ("made", "known"),
    [
        (call("socket", 1, 1 | NONBLOCK, result=7), True),
        (call("socket", 1, 1, result=7), False),
        (call("accept", 3, result=7), False),
        (call("accept4", 3, result=7), None),
        (call("openat", 3, 0x1000, 0, result=7), False),
        (call("openat", 3, 0x1000, NONBLOCK, result=7), None),
        (call("eventfd2", result=7), True),
        (call("socket", 1, 1, result=-24), True),
    ],
)
def test_a_descriptor_is_as_a_call_made_it(made: Call, known: bool | None) -> None:
    assert said(made, call("read", 7), end={7: True}) == [known]
