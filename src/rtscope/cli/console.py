"""Consoles: standard output for results, standard error for talk."""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Collection, Iterator

from rich.console import Console
from rich.table import Table

from rtscope.errors import RecordError


@contextlib.contextmanager
def stdout_console() -> Iterator[Console]:
    """Give the console for results: colours on a terminal only, NO_COLOR kept."""
    console = Console(highlight=False)
    with console.capture() as captured:
        yield console
    put(captured.get())


def put(text: str) -> None:
    """
    Print a result; who stops reading it (`head`) has seen enough, and no error.

    Raises RecordError if it cannot be written: the disk that it goes to is full.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # Python flushes once more at its end, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise RecordError(
                f"cannot write to standard output: {error.strerror}"
            ) from error


def put_json(value: object) -> None:
    """Print a result as JSON; see `put`."""
    put(json.dumps(value, indent=2) + "\n")


def stderr_log() -> Callable[[str], None]:
    """Return what prints a line of talk, which is no result."""
    console = stderr_console()

    def log(text: str) -> None:
        console.print(f"rtscope: {text}", markup=False)

    return log


def stderr_console() -> Console:
    """Return the console for talk."""
    return Console(stderr=True, highlight=False)


def plain_table(
    *headings: str, figures: Collection[str] = (), wraps: Collection[str] = ()
) -> Table:
    """Return an empty table without lines: figures on the right, a few may wrap."""
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(
            heading,
            justify="right" if heading in figures else "left",
            no_wrap=heading not in wraps,
        )
    return table


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
