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
