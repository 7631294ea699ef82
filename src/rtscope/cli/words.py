"""What the options of `rtscope run` say, before the campaign's keys read it."""

import re
import shlex
import sys
from pathlib import Path

from rtscope.board.kernels import kernel_names
from rtscope.errors import UsageError

EXPLAINED_IN_ANY_CASE = (
    "rtscope: a virtual board records its worst wake-ups in any case: --explain "
    "changes nothing there; see them with rtscope explain"
)

_PRIORITY = re.compile(r"[0-9]{1,9}")


def listed(text: str | None) -> list[str] | None:
    """Return the values of an option that takes a list."""
    return None if text is None else [word.strip() for word in text.split(",")]


def numbers(text: str | None) -> list[int | str] | None:
    """Return numbers as such, and what is none as it was written."""
    words = listed(text)
    return (
        words
        if words is None
        else [int(word) if _PRIORITY.fullmatch(word) else word for word in words]
    )


def command_words(text: str | None) -> list[str] | None:
    """Return the words of a command that was typed as one."""
    try:
        return None if text is None else shlex.split(text)
    except ValueError as error:
        raise UsageError(
            f"--command: {error}; write --command 'PROGRAM ARGS'"
        ) from error


def kernels(text: str | None) -> list[str] | None:
    """Return what --kernel names; a file in this directory needs no slash."""
    words = listed(text)
    known = kernel_names()
    return words and [
        f"./{word}"
        if "/" not in word and word not in known and Path(word).is_file()
        else word
        for word in words
    ]


def times(
    repetitions: int | None, repeat: int | None, *, required: bool | None
) -> int | None:
    """Return how often each run is done; --repeat is the gate's word for it."""
    if repeat is None:
        return repetitions
    if repetitions is not None:
        raise UsageError("--repeat and --repetitions mean the same: write one of them")
    if not required:
        raise UsageError(
            "--repeat asks whether a virtual board does the same each time: add "
            "--require-identical. For more runs of a real machine write --repetitions, "
            "for more of what a virtual board may do --seeds"
        )
    return repeat


def typed_words() -> tuple[str, ...]:
    """Return what the user typed, without the directory: a repetition needs another."""
    words = iter(sys.argv[1:])
    kept = []
    for word in words:
        if word == "--out":
            next(words, None)
        elif not word.startswith("--out="):
            kept.append(word)
    return ("rtscope", *kept)
