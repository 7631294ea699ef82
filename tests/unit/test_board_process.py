"""What is read of the process of a board: lines of any length, and other texts."""

import os
from pathlib import Path

from rtscope.host import process
from rtscope.verbs.run.boardprocess import (
    MAX_LINE_BYTES,
    BoardProcess,
    BoardTask,
    Ended,
)


def made() -> BoardProcess:
    task = BoardTask("a", Path("a"), {}, (), None, reuse=False)
    started = process.start(("true",))
    started.communicate()
    return BoardProcess(task, started)


def test_a_line_that_is_too_long_is_left_out_with_its_end() -> None:
    one, (pipe, end) = made(), os.pipe()
    lines: list[str] = []
    try:
        for _ in range(MAX_LINE_BYTES // 8192 + 1):
            os.write(end, b"x" * 8192)
            lines += one.read(pipe) or ()
        os.write(end, b"its end\nthe next\nand a p")
        lines += one.read(pipe) or ()
        os.write(end, b"art\n")
        lines += one.read(pipe) or ()
    finally:
        os.close(pipe)
        os.close(end)

    assert lines == ["the next", "and a part"]


def test_a_line_of_another_shape_tells_nothing() -> None:
    one = made()

    for line in ("x" * 9, "[]", "{}", '{"is": []}', '{"is": "ended", "status": "3"}'):
        assert one.told(line) is None
    assert one.ended is None
    assert one.told('{"is": "ended", "status": 3, "why": "x"}')
    assert one.ended == Ended(3, "x")
