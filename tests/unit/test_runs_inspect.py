"""What an audit has a virtual board do, and what it makes of the answer."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from rtscope.boards.catalogue import get_board
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.runs import inspect
from rtscope.boards.runs.inspect import inspect_guest, script_of
from rtscope.host.errors import BoardError
from rtscope.host.process import Step
from rtscope.measure.execute import BoardProgress

BOARD = get_board("pc")


def test_a_board_reads_watches_and_tries_in_this_order() -> None:
    lines = script_of(["/proc/version", "/proc/*/comm"], 500_000_000, ["echo hello"])

    assert lines[2] == "echo hello"
    assert (
        lines[3]
        == "rtscope-agent read -- /proc/version '/proc/*/comm' >>/out/files.jsonl"
    )
    assert [line.rpartition("/")[2] for line in lines[4:7]] == [
        "before.jsonl",
        "sleep 0.5",
        "after.jsonl",
    ]
    assert lines[8].startswith("rtscope-agent measure --priority 80 ")


def test_without_a_window_nothing_is_watched() -> None:
    assert not [line for line in script_of(["/a"], 0, []) if "before" in line]


def test_one_who_waits_for_the_boot_sees_the_virtual_seconds_of_the_board(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def boot(*_: object, on_progress: Any, **__: object) -> None:
        on_progress(BoardProgress(host_s=1))
        on_progress(BoardProgress(host_s=9, virtual_ns=2_900_000_000))
        raise BoardError("enough")

    monkeypatch.setattr(inspect, "boot", boot)
    board = SimpleNamespace(kernel=SimpleNamespace(name="debian-6.12"), board=BOARD)
    steps: list[Step] = []
    with pytest.raises(BoardError, match="enough"):
        inspect_guest(cast(Prepared, board), ["/a"], window_ns=0, progress=steps.append)

    assert steps == [
        Step("debian-6.12 boots", 0, unit="virtual s"),
        Step("debian-6.12 boots", 2, unit="virtual s"),
    ]
