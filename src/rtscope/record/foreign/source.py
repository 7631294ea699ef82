"""
Read a foreign file: by lines, however long it is, or as a whole if it is not too long.

Its bytes may be anything. Nothing in it is followed or run.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtscope.host.errors import RecordError
from rtscope.host.files import read_bounded
from rtscope.host.files.documents import json_object

HEAD_BYTES = 64 * 1024
"""A format is recognised by the first so many bytes."""

MAX_LINE_BYTES = 1024 * 1024

MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
"""Of JSON and XML, which are read as a whole: a million buckets take 20 MB."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;]*[A-Za-z]|c)|\r|\x00")
"""Of a terminal; rtla clears the screen with ESC c."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file of another tool."""

    path: Path

    @property
    def name(self) -> str:
        """Its name without the directory."""
        return self.path.name

    @property
    def head(self) -> str:
        """Its first bytes; RecordError if it cannot be read."""
        if not self.path.is_file():
            raise RecordError(f"{self.path}: not a regular file")
        try:
            with self.path.open("rb") as file:
                return _text(file.read(HEAD_BYTES))
        except OSError as error:
            raise RecordError(f"cannot read {self.path}: {error.strerror}") from error

    @property
    def sha256(self) -> str:
        """The digest of its bytes; RecordError if it cannot be read."""
        if not self.path.is_file():
            raise RecordError(f"{self.path}: not a regular file")
        try:
            with self.path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise RecordError(f"cannot read {self.path}: {error.strerror}") from error

    def lines(self) -> Iterator[str]:
        """Yield its lines, without a terminal's escapes; RecordError if one is long."""
        with self.path.open("rb") as file:
            while line := file.readline(MAX_LINE_BYTES + 1):
                if len(line) > MAX_LINE_BYTES:
                    raise RecordError(f"{self.path}: a line of over {MAX_LINE_BYTES} B")
                yield _text(line).rstrip("\n")

    def text(self) -> str:
        """Return it as a whole; RecordError if it is too long."""
        return _text(read_bounded(self.path, limit=MAX_DOCUMENT_BYTES, kind="result"))

    def json(self) -> dict[str, Any]:
        """Return its one object; RecordError if it has none."""
        return json_object(self.text(), name=str(self.path))

    def damaged(self, why: str) -> RecordError:
        """Return the error to raise for a file that cannot be read."""
        return RecordError(f"{self.path}: {why}")


def _text(content: bytes) -> str:
    return _ESCAPES.sub("", content.decode("utf-8", "replace"))
