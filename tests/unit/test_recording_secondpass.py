"""What the ring cut is taken from a second pass, if that is the same run."""

from dataclasses import replace
from pathlib import Path

import pytest

from rtscope.boards.parts.qemu import Recording
from rtscope.boards.recording.secondpass import RING, ROOM, with_whole_paths
from rtscope.boards.runs.boot import Booted
from rtscope.host.errors import BoardError
from rtscope.record.instructions.file import parse_trace

FORMAT = Path(__file__).parents[2] / "format"
CUT = (FORMAT / "plugin-v2/riscv64.trace").read_bytes()
ANSWER = (FORMAT / "v2/x86_64.jsonl").read_bytes()
OTHER = ANSWER.replace(b'"max_ns":2473370,"sum', b'"max_ns":2473371,"sum')
RECORDING = Recording(16)
BOOTED = Booted(
    files={"measure.jsonl": ANSWER},
    counts={},
    initrd_digest="",
    plugin_digest="",
    host_seconds=1.0,
    stream=CUT,
)
WHOLE = replace(BOOTED, stream=b"whole", host_seconds=2.0)


def never() -> bool:
    return False


class Board:
    """Boots again, and remembers how."""

    def __init__(self, again: Booted | None = WHOLE) -> None:
        self.again = again
        self.asked: list[Recording] = []

    def __call__(self, recording: Recording) -> Booted:
        self.asked.append(recording)
        if self.again is None:
            raise BoardError("no memory")
        return self.again


def test_paths_that_were_cut_are_recorded_again_with_a_longer_ring() -> None:
    board = Board()

    found = with_whole_paths(BOOTED, RECORDING, board, stopped=never)

    assert found == replace(BOOTED, stream=b"whole", host_seconds=3.0)
    assert board.asked == [replace(RECORDING, ring=RING, room=ROOM)]


def test_whole_paths_and_boots_that_record_nothing_need_no_second_pass() -> None:
    board = Board()
    whole = (FORMAT / "plugin-v2/riscv64.trace").read_bytes()
    uncut = [s for s in parse_trace(whole).sections if not s.cut]
    assert uncut

    assert with_whole_paths(BOOTED, None, board, stopped=never) is BOOTED
    for stream in (None, b"damaged"):
        booted = replace(BOOTED, stream=stream)
        assert with_whole_paths(booted, RECORDING, board, stopped=never) is booted
    assert board.asked == []


@pytest.mark.parametrize(
    "again",
    [
        None,
        replace(WHOLE, stream=None),
        replace(WHOLE, files={}),
        replace(WHOLE, files={"measure.jsonl": ANSWER[:-90]}),
        replace(WHOLE, files={"measure.jsonl": OTHER}),
    ],
    ids=["fails", "records nothing", "measures nothing", "breaks off", "differs"],
)
def test_the_first_paths_stay_if_the_second_pass_is_another_run(
    again: Booted | None,
) -> None:
    board = Board(again)

    found = with_whole_paths(BOOTED, RECORDING, board, stopped=never)

    took = 0.0 if again is None else again.host_seconds
    assert found == replace(BOOTED, host_seconds=1.0 + took)


def test_a_second_pass_that_was_stopped_leaves_no_result() -> None:
    board = Board(None)

    with pytest.raises(BoardError, match="no memory"):
        with_whole_paths(BOOTED, RECORDING, board, stopped=lambda: bool(board.asked))
