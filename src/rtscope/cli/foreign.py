"""
Answer options and files of cyclictest and rtla with what to type here.

Every command loads this module, before it knows whether it reads records: what reads
them is imported where it is used.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rtscope.host.errors import RecordError, UsageError
from rtscope.host.units import NS_PER_US, format_duration

if TYPE_CHECKING:
    from rtscope.record.model import RunRecord

OURS = ("-i", "-a", "-b", "-A", "-l", "-t", "-c")
"""Those that are answered only with a number, or a list of CPUs, behind them."""


def open_ours(path: Path) -> "list[RunRecord]":
    """
    Return the records there, as `open_records` does.

    Raises UsageError with the command to import a file of another tool.
    """
    from rtscope.record.directory.records import open_records

    try:
        return open_records(path)
    except RecordError:
        if path.is_file() and (name := _foreign_format(path)):
            raise UsageError(
                f"{path}: a result of another tool ({name}); import it first: "
                f"rtscope import {shlex.quote(str(path))}"
            ) from None
        raise


def _foreign_format(path: Path) -> str:
    from rtscope.record.foreign import format_of
    from rtscope.record.foreign.source import Source

    return format_of(Source(path))


def answers(words: Sequence[str], table: Mapping[str, str]) -> Iterator[str]:
    """Yield one line for each option of another program: `-i 1000: write …`."""
    for place, word in enumerate(words):
        name, value = _split(word, words[place + 1 : place + 2], table)
        answer = table.get(name)
        if answer is None:
            continue
        if "{us}" in answer and not value.isdigit():
            continue  # with a unit it is ours, or wrong for another reason
        if name in OURS and not value[:1].isdigit():
            continue
        typed = name if "{" not in answer else f"{name} {value}"
        text = answer.format(value=value, us=_us(value))
        yield f"cyclictest or rtla {typed}: write {text}"


def _split(
    word: str, following: Sequence[str], table: Mapping[str, str]
) -> tuple[str, str]:
    """Return option and value, of `-i1000`, `--interval=1000` or two words."""
    name, equals, value = word.partition("=")
    if equals:
        return name, value
    if word not in table and not word.startswith("--") and word[:2] in table:
        return word[:2], word[2:]
    return word, next(iter(following), "")


def _us(value: str) -> str:
    if not value.isdigit() or len(value) > 12:
        return value
    return format_duration(int(value) * NS_PER_US).replace(" ", "")
