"""Findings about waits: how long, who ended them, who kept a lock's owner waiting."""

from dataclasses import replace
from typing import Any

import pytest

from fakes import watching
from rtscope.contract import EventTimes, Inversion, Party, Waker, WatchedThread
from rtscope.verbs.app.model import Watch
from rtscope.verbs.app.rules import inversions, wakers, worst_of

POSTER = Party(tid=7, name="poster", priority=120)
OWNER = Party(tid=8, name="owner", priority=89)
BETWEEN = Party(tid=9, name="between", priority=79)


def watch() -> Watch:
    return Watch(watching.begin(), (), watching.end(), {}, {})


def watched(**given: Any) -> WatchedThread:
    return replace(watching.thread(101), **given)


def test_the_longest_is_told_from_the_begin_of_the_watching() -> None:
    begin_ns = watch().begin.from_ns
    times = EventTimes(3, 500, 300, begin_ns + 40, "write")

    worst = worst_of(watch(), times)

    assert worst is not None
    assert (worst.lasted_ns, worst.after_ns, worst.where) == (300, 40, "write")
    assert (worst.timed, worst.total_ns) == (3, 500)
    assert worst_of(watch(), None) is None


def test_an_inversion_names_owner_and_the_one_between() -> None:
    one = Inversion(OWNER, BETWEEN, EventTimes(5, 900, 400, 10**15 + 7, "between"))

    (found,) = inversions(watch(), watched(inversions=(one,)))

    assert (found.id, found.count, found.rate_per_s) == ("RA11", 5, 0.5)
    assert found.detail == (
        "owner (8, priority 10) had the lock, between (9, priority 20) had its CPU"
    )
    assert found.worst is not None
    assert found.worst.lasted_ns == 400


@pytest.mark.parametrize(
    ("priority", "words"),
    [(120, "not real-time"), (38, "priority 61"), (-1, "deadline")],
)
def test_wakers_have_the_priority_that_people_know(priority: int, words: str) -> None:
    one = Waker(replace(POSTER, priority=priority), softirq=False, count=3)

    (found,) = wakers(watch(), watched(wakers=(one,)))

    assert found.detail == f"by poster (7, {words}) 3"


def test_the_most_frequent_wakers_come_first_and_all_are_counted() -> None:
    some = tuple(
        Waker(replace(POSTER, tid=tid), softirq=tid == 5, count=tid)
        for tid in range(2, 6)
    )

    (found,) = wakers(watch(), watched(wakers=some, other_wakers=2))

    assert found.id == "RA12"
    assert found.count == 2 + 3 + 4 + 5 + 2
    assert found.detail.startswith("by a softirq in poster 5, by poster (4,")
    assert found.detail.endswith("and others")
    assert list(wakers(watch(), watched())) == []
