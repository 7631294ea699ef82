"""A stack in words: the program's own line first, then both ends, or all of it."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import PurePosixPath
from textwrap import wrap
from typing import Any

from rtscope.host.escape import printable
from rtscope.programs.naming import NamedFrame, NamedStack

MAX_LINES = 2
MAX_NAME = 40
MAX_ENDS = 4
"""Frames of each end that are shown beside the leading one, where they have room."""

DIGITS = 12
"""Shown of the number of a build."""


def stack_words(stack: NamedStack) -> str:
    """Return the whole stack in a line, innermost first, behind its leading frame."""
    frames = [frame_words(one) for one in stack.frames]
    return _line(_leading(stack, name=None), frames, _end(stack))


def stack_lines(stack: NamedStack, times: int, *, width: int) -> list[str]:
    """Return as much of a stack as two lines have room for: its leading frame first."""
    leading = _leading(stack, name=MAX_NAME)
    frames = [frame_words(one, name=MAX_NAME) for one in stack.frames]
    lines: list[str] = []
    for ends in range(MAX_ENDS, -1, -1):
        text = f"{times}x {_line(leading, _ends(frames, ends), _end(stack))}"
        lines = wrap(text, width, subsequent_indent="   ", break_on_hyphens=False)
        if len(lines) <= MAX_LINES:
            return lines
    return lines[:MAX_LINES]


def frame_words(frame: NamedFrame, *, name: int | None = None) -> str:
    """Return a frame: function and line, or its place in a file without names."""
    if not frame.function:
        where = printable(frame.place)
        if frame.line:
            return f"{where} {_source(frame)}"
        return (
            f"{where} (build id {frame.build_id[:DIGITS]})" if frame.build_id else where
        )
    function = printable(_short(frame.function, name))
    return f"{function} {_source(frame)}" if frame.line else function


def _source(frame: NamedFrame) -> str:
    return f"{printable(PurePosixPath(frame.file).name)}:{frame.line}"


def _short(function: str, most: int | None) -> str:
    """Leave out arguments and, of a long name, its begin."""
    if most is None or len(function) <= most:
        return function
    bare = _without_brackets(function)
    return bare if len(bare) <= most else f"…{bare[1 - most :]}"


def _without_brackets(function: str) -> str:
    """Return a name of C++ or Rust without what is in brackets; not of `(*T).f`."""
    depth = 0
    kept: list[str] = []
    for letter in function:
        opening = letter in "<(["
        if opening and not depth and kept and kept[-1] not in ".:< ":
            depth = 1
        elif depth:
            depth += opening - (letter in ">)]")
        else:
            kept.append(letter)
    return "".join(kept).removeprefix("void ").strip() or function


def _leading(stack: NamedStack, *, name: int | None) -> str:
    """Return the first frame of the program's own; empty if it is the innermost."""
    number = stack.leading
    return frame_words(stack.frames[number], name=name) if number else ""


def _ends(frames: Sequence[str], ends: int) -> Iterable[str]:
    left = len(frames) - 2 * ends
    if left <= 0:
        return frames
    middle = [f"{left} more"]
    return [*frames[:ends], *middle, *frames[len(frames) - ends :]] if ends else middle


def _line(leading: str, frames: Iterable[str], end: str) -> str:
    text = " < ".join(frames)
    return f"{leading}: {text}{end}" if leading else f"{text}{end}"


def _end(stack: NamedStack) -> str:
    return (
        "" if stack.complete else f" (ends early: {printable(stack.ends_early or '')})"
    )


def frame_row(frame: NamedFrame) -> dict[str, Any]:
    """Return a frame for a JSON document."""
    place = frame.offset if frame.offset >= 0 else None
    return asdict(frame) | {
        "address": f"{frame.address:#x}",
        "offset": None if place is None else f"{place:#x}",
        "origin": frame.origin.value,
    }
