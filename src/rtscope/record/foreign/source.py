"""
Read a foreign file: by lines, however long it is, or as a whole if it is not too long.

Its bytes may be anything. Nothing in it is followed or run.

Only lines of which the tool prints more are joined with the next ones: a thread's
summary without its maximum, a pair's without its end.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtscope.host.errors import RecordError
from rtscope.host.files.documents import json_object
from rtscope.host.files.opening import open_named
from rtscope.host.files.plaintext import plain_file
from rtscope.host.files.prefixes import Prefix

# --- join lines that a mail or a terminal of 80 columns broke -------------------------

_BEGUN = re.compile(r"\s*(?:T:\s*\d{1,4} ?\(|#\d{1,4} -> #\d|#\d{1,4}: ID\d|ts:\s*\d)")
_WHOLE = re.compile(
    r".*(?:\bMax:\s*\d{1,20}\b|\bMax +\d{1,20}\b|outer:\s*\d+|Cycles +\d{1,18}\b"
    r"|\bSpike:|\bTO \d)"
)
_DIGITS = re.compile(r"\s*\d{1,12}\s*$")
_WORD = re.compile(r"\d\d|[A-Za-z]{2}|[A-Za-z]:")
"""No number follows another in these lines, and no word: so one was broken."""

MAX_JOINED = 4

_WIDTH = 60
"""No terminal and no mail breaks a number in a line that is shorter."""


def unwrapped(lines: Iterator[str]) -> Iterator[str]:
    """Yield lines, those that were broken as a whole."""
    held: list[str] = []
    for line in lines:
        if not held:
            if _BEGUN.match(line) and len(line) < 1000:
                held = [line]
            else:
                yield line
        elif _goes_on(held, line):
            held.append(line)
        else:
            yield from _joined(held)
            held = []
            if _BEGUN.match(line) and len(line) < 1000:
                held = [line]
            else:
                yield line
    yield from _joined(held)


def _goes_on(held: list[str], line: str) -> bool:
    if len(held) >= MAX_JOINED or _BEGUN.match(line) or not line.strip():
        return False
    if not _WHOLE.match(" ".join(held)):
        return not line.startswith(("#", "policy:"))
    return len(held[-1]) >= _WIDTH and bool(_DIGITS.match(line))


def _joined(held: list[str]) -> Iterator[str]:
    """Yield the line in one piece if that makes it whole, else its parts."""
    text = "".join(held[:1])
    for part in held[1:]:
        inside = _WORD.match(text[-1:] + part[:1])
        text = f"{text}{part}" if inside else f"{text.rstrip()} {part.lstrip()}"
    if len(held) > 1 and _WHOLE.match(text):
        yield text
    else:
        yield from held


# Read a foreign file: by lines, however long it is, or as a whole if it is not too
# long.

ENDLESS = re.compile(r"(?<![\w.])\d{19,}(?!\w)")
"""A number that no result has: 10^18 ns are thirty years."""

HEAD_CHARACTERS = 64 * 1024
"""A format is recognised in so many characters of lines."""

MAX_HEADS = 32
"""What comes before the output of the tool, in a log, is at most so many heads."""

MAX_DOCUMENT_CHARACTERS = 64 * 1024 * 1024
"""Of JSON and XML, which are read as a whole: a million buckets take 20 MB."""


_LINES_IN_CHUNK = 4096


@dataclass(frozen=True, slots=True)
class Source:
    """A file of another tool."""

    path: Path
    prefix: Prefix | None = None
    """What stands before each line, and is no part of the tool's output."""
    form: re.Pattern[str] | None = None
    """The begin of the tool's own lines, whose numbers have at most 18 digits."""

    @property
    def name(self) -> str:
        """Its name without the directory."""
        return self.path.name

    @property
    def told(self) -> tuple[str, ...]:
        """What is undone to read it, in words: compression, encoding, prefix."""
        prefix = () if self.prefix is None else (self.prefix.told,)
        return (*plain_file(self.path).told, *prefix)

    def heads(self) -> Iterator[list[str]]:
        """Yield its first lines, then the next; RecordError if it is unreadable."""
        lines: list[str] = []
        size = heads = 0
        for line in plain_file(self.path).lines():
            lines.append(line)
            size += len(line) + 1
            if size >= HEAD_CHARACTERS:
                yield lines
                lines, size, heads = [], 0, heads + 1
                if heads == MAX_HEADS:
                    return
        yield lines

    @property
    def sha256(self) -> str:
        """The digest of its bytes; RecordError if it cannot be read."""
        try:
            with open_named(self.path, kind="result") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise RecordError(f"cannot read {self.path}: {error.strerror}") from error

    def lines(self) -> Iterator[str]:
        """
        Yield its lines, a wrapped one as a whole.

        Raises RecordError if one is long, or has a number that no result can have.
        """
        return unwrapped(self._bounded(self._lines()))

    def _bounded(self, lines: Iterator[str]) -> Iterator[str]:
        """Yield lines; a reader would take one with an endless number for a remark."""
        for number, line in enumerate(lines, 1):
            if self.form is not None and (endless := ENDLESS.search(line)):
                whole = ENDLESS.sub("1", line)
                if self.form.match(whole) or self.form.match(whole.lstrip()):
                    raise self.damaged(
                        f"line {number}: {endless[0][:20]}: a number of "
                        f"{len(endless[0]):,} digits; those of a result have at most 18"
                    )
            yield line

    def _lines(self) -> Iterator[str]:
        lines = plain_file(self.path).lines()
        if self.prefix is None:
            return lines
        return self.prefix.freed(lines)

    def document(self, begins: str, ends: str) -> str:
        """
        Return its one document, which may stand in a log.

        Its lines are those from the first that begins with `begins` to the last that
        begins with `ends`. Raises RecordError if it is too long.
        """
        chunks: list[str] = []
        kept: list[str] = []
        size = whole = 0
        for line in self._lines():
            start = line.lstrip()
            if not size and not start.startswith(begins):
                continue
            kept.append(line if size else start)
            size += len(kept[-1]) + 1
            if start.startswith(ends) or line.rstrip().endswith(ends):
                whole = size
            if size > MAX_DOCUMENT_CHARACTERS:
                raise self.damaged(
                    f"more than the {MAX_DOCUMENT_CHARACTERS:,} characters of any "
                    "result"
                )
            if len(kept) == _LINES_IN_CHUNK:  # a line alone takes 50 bytes more
                chunks.append("\n".join([*kept, ""]))
                kept = []
        text = "".join([*chunks, *(f"{line}\n" for line in kept)])
        return text[: whole or None]

    def json(self) -> dict[str, Any]:
        """Return its one object; RecordError if it has none."""
        return json_object(self.document("{", "}"), name=str(self.path))

    def damaged(self, why: str) -> RecordError:
        """Return the error to raise for a file that cannot be read."""
        return RecordError(f"{self.path}: {why}")
