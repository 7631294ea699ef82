"""The catalogue of doubts is complete, and its order is a promise."""

import re
from pathlib import Path

import pytest

from rtscope.record.caveats.catalogue import (
    Caveat,
    Effect,
    catalogue,
    gravest_first,
    kind_of,
    make,
)
from rtscope.record.directory import records as stored

SRC = Path(__file__).parents[2] / "src" / "rtscope"


def test_every_caveat_says_what_and_what_to_do() -> None:
    for kind in catalogue().values():
        assert re.fullmatch(r"[a-z][a-z0-9_]{2,63}", kind.id)
        assert kind.message
        assert kind.remedy
        assert not kind.message.endswith(".")


def test_every_caveat_of_the_catalogue_is_raised_somewhere() -> None:
    texts = [path.read_text() for path in SRC.rglob("*.py")]
    texts += [
        path.read_text() for path in SRC.rglob("*.toml") if "caveats" not in path.name
    ]
    code = "\n".join(texts)

    assert [name for name in catalogue() if f'"{name}"' not in code] == []


def test_one_that_is_not_in_the_catalogue_cannot_be_raised() -> None:
    with pytest.raises(KeyError):
        make("no_such_doubt")


def test_a_detail_is_cut_to_what_a_record_may_hold() -> None:
    assert len(make("guest", "x" * 10_000).detail) == 4096


def test_one_from_a_newer_version_is_kept_and_limits_the_verdict() -> None:
    newer = kind_of(Caveat("from_the_future"))

    assert newer.effect is Effect.LIMIT
    assert "from_the_future" in newer.message


def test_the_gravest_comes_first_then_the_order_of_the_catalogue() -> None:
    ids = [
        "short_run",
        "guest",
        "early",
        "from_the_future",
        "missed_periods",
        "identity_broken",
    ]

    assert [caveat.id for caveat in gravest_first(map(Caveat, ids))] == [
        "identity_broken",
        "early",
        "guest",
        "from_the_future",
        "missed_periods",
        "short_run",
    ]


def test_exact_repetitions_are_dropped_and_different_details_kept() -> None:
    one, other = Caveat("guest", "a"), Caveat("guest", "b")

    assert gravest_first([other, one, other]) == (one, other)


def test_no_caveat_sends_the_reader_to_a_file_that_is_not_written() -> None:
    files = re.findall(r"\bOUT/runs/ID/(\S+)", stored.__doc__ or "")
    named = {
        name
        for kind in catalogue().values()
        for name in re.findall(
            r"\b[\w.-]+\.(?:json|log|gz|dat)\b", kind.message + kind.remedy
        )
    }

    assert named <= {*files, "campaign.json"}
