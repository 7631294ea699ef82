"""
Tags of a result directory: words such as `good`, in a file beside its runs.

    OUT/tags.json   {"schema": 1, "tags": ["good"]}

They lie there and not in the index, which is rebuilt from the directories at any time.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from rtscope.cli.console import put
from rtscope.host.errors import RecordError, UsageError, quote
from rtscope.host.files import read_bounded, write_atomically
from rtscope.host.files.documents import json_object
from rtscope.host.files.jsontext import json_text
from rtscope.host.files.opening import is_there
from rtscope.host.units import plural
from rtscope.record.directory.records import ResultDir, find, no_records

FILE = "tags.json"
SCHEMA = 1
MOST_BYTES = 1 << 16

_TAG = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TagRequest:
    """The arguments and options of `rtscope history tag`."""

    tag: Annotated[str, typer.Argument()]
    """Word of small letters, digits, dots and hyphens, e.g. good."""
    directory: Annotated[list[Path], typer.Argument(metavar="DIR")]
    """Result directories, or folders with some, e.g. nights/2026-11-27."""
    remove: bool = False
    """Take the tag away instead."""


def tag(request: TagRequest) -> int:
    """
    Tag result directories, for a baseline: rtscope history check --baseline tag:good.

    The tag lies in tags.json in each directory; index again afterwards.
    """
    word = checked_tag(request.tag)
    places = [place for path in request.directory for place in result_dirs(path)]
    changed = 0
    for place in places:
        before = tags_of(place)
        after = before - {word} if request.remove else before | {word}
        if after != before:
            write_tags(place, after)
            changed += 1
    done = "taken from" if request.remove else "added to"
    had = "did not have it" if request.remove else "had it"
    same = f"; {plural(len(places) - changed, 'result')} {had}"
    put(f"{word}: {done} {plural(changed, 'result')}{same}\n")
    return 0


def checked_tag(word: str) -> str:
    """Return a tag; raise UsageError for a word that is none."""
    if not _TAG.fullmatch(word):
        raise UsageError(
            f"{quote(word)}: no tag; write up to 63 small letters, digits, dots, "
            "hyphens or underscores, such as good"
        )
    return word


def tags_of(place: Path) -> frozenset[str]:
    """Return the tags of a directory; RecordError for a file that has none in it."""
    file = place / FILE
    if not is_there(file):
        return frozenset()
    text = read_bounded(file, limit=MOST_BYTES, kind="file of tags")
    document = json_object(text, name=str(file))
    words = document.get("tags")
    if document.get("schema") != SCHEMA or not isinstance(words, list):
        raise _damaged(file)
    if not all(isinstance(one, str) and _TAG.fullmatch(one) for one in words):
        raise _damaged(file)
    return frozenset(words)


def write_tags(place: Path, words: Iterable[str]) -> None:
    """Write the tags of a directory; none leave no file. RecordError if not written."""
    tags, file = sorted(words), place / FILE
    if not tags:
        file.unlink(missing_ok=True)
        return
    text = json_text({"schema": SCHEMA, "tags": tags}, indent=None)
    write_atomically(file, text.encode())


def _damaged(file: Path) -> RecordError:
    return RecordError(
        f"{file}: no tags that rtscope wrote; remove it, and tag again: rtscope "
        "history tag good DIR"
    )


def result_dirs(path: Path) -> list[Path]:
    """Return the result directories at and below a place; UsageError without any."""
    found = [one for one, _ in find(path.resolve()) if ResultDir(one).record_files()]
    if not found:
        raise no_records(path)
    return found
