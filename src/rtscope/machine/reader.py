"""
How facts about a machine are read: one small interface for every kind of machine.

Local machine, board over SSH and captured tree answer the same two questions, and
each answer says whether the file was there, was not, or could not be read: a missing
file must never pass for an empty one.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol

_LITERAL = re.compile(r"[^*?\[]*")

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


def paths_matching(pattern: str, paths: Mapping[str, object]) -> list[str]:
    """Return the paths that a pattern of the shell stands for, itself included."""
    # Most patterns have few matches, and a machine may have 20,000 threads.
    literal = _LITERAL.match(pattern)
    start = literal[0] if literal else ""
    if start == pattern:
        return [pattern] if pattern in paths else []
    near = [path for path in paths if path.startswith(start)]
    return sorted(path for path in near if path == pattern or _fits(path, pattern))


def _fits(path: str, pattern: str) -> bool:
    """Whether a pattern stands for a path: no `*` stands for a slash."""
    parts, wanted = path.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def answer_from(files: Mapping[str, Content], path: str) -> Mapping[str, Content]:
    """Return what stands for a path: itself, or all that its pattern matches."""
    matches = {
        name: files[name]
        for name in paths_matching(path, files)
        # What was gone before it was read is no match, as if we had come later.
        if name != path and not isinstance(files[name], Missing)
    }
    return matches or {path: files.get(path, Missing())}


def text_of(content: Content) -> str | None:
    """Return the text without surrounding white space, None if there is none."""
    if not isinstance(content, bytes):
        return None
    return content.decode("utf-8", "replace").strip()
