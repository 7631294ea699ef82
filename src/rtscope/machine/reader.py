"""
How facts about a machine are read: one small interface for every kind of machine.

Local machine, board over SSH and captured tree answer the same two questions, and
each answer says whether the file was there, was not, or could not be read: a missing
file must never pass for an empty one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol

MAX_FILE_BYTES = 4 * 1024 * 1024
"""More of one file is not read; the largest fact, a kernel config, has 300 KB."""


@dataclass(frozen=True, slots=True)
class Missing:
    """There is no such file."""


@dataclass(frozen=True, slots=True)
class Denied:
    """The file is there and cannot be read; `reason` is the system's own word."""

    reason: str


Content = bytes | Missing | Denied


class Reader(Protocol):
    """A machine whose files can be read, whole and read-only."""

    def read_many(self, paths: Sequence[str]) -> Mapping[str, Content]:
        """
        Read files, at most MAX_FILE_BYTES of each, in one round trip.

        A path may end in a pattern of the shell (`*`): it stands for every match,
        and for Missing if there is none. Raises TargetError if the machine does not
        answer.
        """
        ...


def read(reader: Reader, path: str) -> Content:
    """Read one file."""
    return reader.read_many([path])[path]


def fits(path: str, pattern: str) -> bool:
    """Whether a pattern of the shell stands for a path: no `*` stands for a slash."""
    parts, wanted = path.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def text_of(content: Content) -> str | None:
    """Return the text without surrounding white space, None if there is none."""
    if not isinstance(content, bytes):
        return None
    return content.decode("utf-8", "replace").strip()
