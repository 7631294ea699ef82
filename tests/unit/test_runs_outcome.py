"""The results of a boot as bytes come back as they were, or are refused."""

import json

import pytest
import zstandard

from rtscope.boards.runs.boot import Booted
from rtscope.boards.runs.outcome import MAX_BYTES, pack_booted, read_booted
from rtscope.host.errors import BoardError

BOOTED = Booted(
    files={"kernel.log": b"<6>booted\n", "empty": b"", "measure.jsonl": b"\0\xff" * 9},
    counts={"schema": 1, "quantum": {"count": 7}},
    initrd_digest="a" * 64,
    plugin_digest="b" * 64,
    host_seconds=1.5,
    stream=b"paths",
)


def packed(head: dict[str, object], content: bytes = b"") -> bytes:
    line = json.dumps(head).encode() + b"\n"
    return zstandard.compress(line + content)


HEAD = {
    "schema": 1,
    "files": {"a": 2},
    "counts": {},
    "initrd_digest": "a" * 64,
    "plugin_digest": "b" * 64,
    "host_seconds": 1,
    "stream": None,
}


@pytest.mark.parametrize("stream", [b"paths", b"", None])
def test_what_was_packed_comes_back(stream: bytes | None) -> None:
    booted = Booted(BOOTED.files, BOOTED.counts, "a" * 64, "b" * 64, 1.5, stream)

    assert read_booted(pack_booted(booted), source="it") == booted


def test_the_same_results_give_the_same_bytes() -> None:
    assert pack_booted(BOOTED) == pack_booted(BOOTED)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "damaged"),
        (b"no frame", "damaged"),
        (pack_booted(BOOTED)[:-20], "damaged"),
        (packed({}), "Field required"),
        (packed({**HEAD, "more": 1}), "more"),
        (packed({**HEAD, "initrd_digest": "x"}, b"ab"), "initrd_digest"),
        (packed(HEAD, b"a"), "cut short"),
        (packed(HEAD, b"abc"), "more than it names"),
        (packed({**HEAD, "files": {"": 2}}, b"ab"), "without a name"),
        (packed({**HEAD, "files": {"a": -1}}), "greater than or equal"),
        (packed({**HEAD, "files": {"a": MAX_BYTES, "b": 1}}), "more than"),
    ],
)
def test_what_is_damaged_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(BoardError, match=f"it: .*{message}"):
        read_booted(content, source="it")
