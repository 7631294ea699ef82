"""
A place for results: what it holds by its document, made, held, gone on with.

The document has the version of its format, that of rtscope, the command that was typed
and what that asked for. It is written before anything is measured, and read before
anything goes on. A directory may come by mail: a link in it is refused, not followed.
"""

import fcntl
import os
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rtscope.host.errors import RecordError, UsageError
from rtscope.host.files import read_bounded, write_atomically
from rtscope.host.files.documents import json_object
from rtscope.host.files.jsontext import json_text
from rtscope.host.files.opening import is_there, refuse_larger
from rtscope.host.version import __version__
from rtscope.record.model import wrong_schema

MAX_DOCUMENT_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Kind:
    """What a directory holds, by its document."""

    name: str
    verb: str
    """What makes it, and goes on with it."""
    file: str
    """Its document."""
    key: str
    """What was asked, in the document."""
    schema: int
    parts: str = ""
    """Where the directories lie that it is made of; empty: it is made of runs."""

    def to_go_on(self, path: Path) -> str:
        """Return the command that goes on with a directory."""
        return f"rtscope {self.verb} --resume {shlex.quote(str(path))}"

    def is_in(self, path: Path) -> bool:
        """
        Tell whether a directory has the document; it may be damaged.

        Raises RecordError if that cannot be seen.
        """
        return is_there(path / self.file)

    def damaged(self, path: Path) -> RecordError:
        """Return the error for a document that says what none can say."""
        return RecordError(
            f"{path / self.file}: damaged, or not written by rtscope {self.verb}; "
            "start again with another --out"
        )


CAMPAIGN = Kind("campaign", "run", "campaign.json", "campaign", 2)
SWEEP = Kind("sweep", "sweep", "sweep.json", "sweep", 1, "cells")
SEARCH = Kind("search", "bisect", "bisect.json", "asked", 1, "steps")
LAB = Kind("campaign of several boards", "run", "lab.json", "lab", 1, "boards")


def kind_of(path: Path) -> Kind | None:
    """Return what a directory holds; None if no document says so."""
    return next(
        (one for one in (SWEEP, SEARCH, LAB, CAMPAIGN) if one.is_in(path)), None
    )


@dataclass(frozen=True, slots=True)
class Document:
    """What was asked of a directory."""

    source: str
    """The file, for messages about what is in it."""
    asked: Any
    """As it was written: nothing in it is checked yet."""
    command: tuple[str, ...]
    """As typed; empty: it does not say."""
    identity: str = ""
    """Of what is searched; empty: it has none."""


def read_document(path: Path, kind: Kind) -> Document:
    """
    Return the document of a directory.

    Raises UsageError where there is none, RecordError for what is damaged.
    """
    file = path / kind.file
    if not kind.is_in(path):
        raise UsageError(
            f"{path}: no {kind.name} there: it has no {kind.file}; name the --out of "
            f"rtscope {kind.verb}"
        )
    text = read_bounded(file, limit=MAX_DOCUMENT_BYTES, kind=kind.name)
    document = json_object(text, name=str(file))
    if (schema := document.get("schema")) != kind.schema:
        again = f"measure again: rtscope {kind.verb}"
        raise wrong_schema(str(file), schema, kind.schema, again=again)
    if kind.key not in document:
        raise kind.damaged(path)
    command = document.get("command")
    return Document(
        str(file),
        document[kind.key],
        tuple(map(str, command)) if isinstance(command, list) else (),
        str(document.get("identity", "")),
    )


def write_document(
    path: Path,
    kind: Kind,
    asked: object,
    *,
    command: tuple[str, ...],
    **more: str,
) -> None:
    """
    Write the document of a directory.

    Raises RecordError if it cannot be written, or is larger than `read_document` reads.
    """
    document = {
        **more,
        "schema": kind.schema,
        "rtscope": __version__,
        "command": list(command),
        kind.key: asked,
    }
    text, file = json_text(document, indent=1).encode(), path / kind.file
    refuse_larger(file, len(text), MAX_DOCUMENT_BYTES, kind=kind.name)
    write_atomically(file, text)


@contextmanager
def resumable(path: Path, kind: Kind) -> Iterator[None]:
    """Add to an error about a file of a directory, if that is there, how to go on."""
    try:
        yield
    except RecordError as error:
        if not kind.is_in(path):
            raise
        raise RecordError(f"{error}; then type {kind.to_go_on(path)}") from error


def new_place(out: Path | None, what: str = "") -> Path:
    """Return `--out`, or a name with what it holds, date and time."""
    head = f"rtscope-{what}-" if what else "rtscope-"
    return out or Path(datetime.now().strftime(f"{head}%Y%m%d-%H%M%S"))


def refuse_used(path: Path, *, empty: bool = True) -> None:
    """
    Raise UsageError if a directory holds results.

    Also if anything else is there, unless it need not be empty.
    """
    if (kind := kind_of(path)) is not None:
        raise UsageError(
            f"{path} already holds a {kind.name}; go on with the {kind.name} in it: "
            f"{kind.to_go_on(path)}, or name another directory with --out"
        )
    if empty and path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"--out {path}: not empty; name another directory")


def make_directory(directory: Path) -> None:
    """Make a directory and those above it; RecordError if that cannot be."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecordError(f"cannot make {directory}: {error.strerror}") from error


@contextmanager
def hold(path: Path) -> Iterator[None]:
    """
    Keep every other rtscope from measuring into a directory.

    Raises UsageError if one does already. Does nothing where no directory is, or where
    the file system has no locks.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield
        return
    try:
        with suppress(OSError):
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError(
                    f"{path}: another rtscope measures into it; wait for its end, or "
                    "end it first"
                ) from error
        yield
    finally:
        os.close(number)


@contextmanager
def opened_folder(path: Path, *below: str) -> Iterator[int]:
    """
    Give the descriptor of a folder some folders below a directory of results.

    Raises OSError if one is a link, or no folder. What is removed by the descriptor
    lies there, whatever becomes of the names meanwhile.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with ExitStack() as held:
        number = os.open(path, flags)
        held.callback(os.close, number)
        for name in below:
            number = os.open(name, flags, dir_fd=number)
            held.callback(os.close, number)
        yield number


def refuse_gone(directory: Path) -> None:
    """Raise RecordError for one that was there: anew, it would lack what was in it."""
    if not directory.is_dir():
        raise RecordError(
            f"{directory}: gone, with what was in it: the directory was removed or "
            "renamed while rtscope used it; begin again with another --out"
        )
