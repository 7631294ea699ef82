"""What a thread did before its events were open is not seen, and said to be so."""

from dataclasses import replace

import pytest

from fakes import watching
from rtscope.verbs.app.model import Unseen
from rtscope.verbs.app.rules import examine
from unit.test_app_rules import seen

MS = 1_000_000


def late(opening_ns: int, threads: int = 1) -> list[Unseen]:
    end = replace(watching.end(), opening_ns=opening_ns, threads=threads)
    unseen = examine(seen(end=end)).unseen
    return [one for one in unseen if "before its events" in one.what]


def test_events_that_were_opened_slowly() -> None:
    (one,) = late(1_234 * MS)

    assert one.what == "what a thread did before its events were open"
    assert one.cause.startswith("nothing of a new thread for up to 1.23 s, until")
    assert {"RA05", "RA07", "RA09", "RA13"} <= set(one.ids)
    assert "another watch" in one.cause
    assert not one.by_nature


@pytest.mark.parametrize(("opening_ns", "threads"), [(0, 1), (90 * MS, 1), (MS, 100)])
def test_events_that_were_not(opening_ns: int, threads: int) -> None:
    assert late(opening_ns, threads) == []


def test_many_threads_take_longer() -> None:
    assert late(900 * MS, 100) == []
    assert late(1_100 * MS, 100) != []


def brief(*functions: str, made: int = 400, watched: int = 0) -> list[Unseen]:
    """Return what is said of threads that one made, of which some were watched."""
    maker = replace(watching.thread(101), calls=(watching.call("clone3", made),))
    others = [
        replace(watching.thread(200 + n), from_ns=10**15 + 10**9)
        for n in range(watched)
    ]
    stacks = {
        (101, "blocking_call"): (watching.stack("clone3", *functions, call="clone3"),)
    }
    unseen = examine(seen(watched=[maker, *others], stacks=stacks)).unseen
    return [one for one in unseen if "ended before the watch saw them" in one.cause]


def test_threads_that_end_before_the_next_look() -> None:
    (one,) = brief("create_thread", "pthread_create@@GLIBC_2.34", "main", watched=10)

    assert one.what == "390 threads that ended soon"
    assert {"RA05", "RA07", "RA13"} <= set(one.ids)


def test_processes_a_few_threads_and_those_that_were_watched_are_none() -> None:
    assert brief("posix_spawn", "main") == []
    assert brief("pthread_create", "main", made=8) == []
    assert brief("pthread_create", "main", made=20, watched=20) == []
