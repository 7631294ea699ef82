"""
Read facts from a directory: this machine's own root, or a tree captured from another.

A captured tree may come by mail. It is read as if its root were the whole machine:
an absolute link means a path below the root, `..` stops there, nothing outside is
opened. Only regular files are opened at all, so that a FIFO cannot hang the reader
and a device (a watchdog, a tape) is not touched.
"""

import errno
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from rtscope.machine.reader import MAX_FILE_BYTES, Content, Denied, Missing

THIS_MACHINE = Path("/")

MAX_LINKS = 40
"""As many links in one path as Linux itself follows (path_resolution(7))."""

_GONE = (FileNotFoundError, NotADirectoryError, ProcessLookupError)
"""ESRCH: a process that ended between the listing of /proc and the reading."""


@dataclass(frozen=True, slots=True)
class FileReader:
    """A `reading.Reader` over the directory tree below root."""

    root: Path = THIS_MACHINE

    def read_many(self, paths: Sequence[str]) -> Mapping[str, Content]:
        """
        Read files, at most MAX_FILE_BYTES of each; see `reading.Reader`.

        Any component of a path may be a pattern of the shell (`*`, `?`, `[…]`).
        Raises nothing for a file that cannot be read: the answer says why.
        """
        contents: dict[str, Content] = {}
        for path in paths:
            if _is_pattern(path):
                contents.update(self._read_matching(path))
            else:
                contents[path] = self._read(path)
        return contents

    def _read_matching(self, pattern: str) -> Mapping[str, Content]:
        matches, refused = self._expand(pattern)
        contents = {path: self._read(path) for path in matches}
        there = {
            path: content
            for path, content in contents.items()
            if not isinstance(content, Missing)
        }
        return there or {pattern: refused or Missing()}

    def _expand(self, pattern: str) -> tuple[list[str], Denied | None]:
        """List the paths a pattern may stand for, and why a directory was not read."""
        paths = [""]
        refused: Denied | None = None
        for part in PurePosixPath("/", pattern).parts[1:]:
            if not _is_pattern(part):
                paths = [f"{directory}/{part}" for directory in paths]
                continue
            matches: list[str] = []
            for directory in paths:
                try:
                    names = _names_in(self._locate(directory or "/"))
                except _GONE:
                    continue
                except OSError as error:
                    refused = Denied(_reason(error))
                    continue
                matches += [f"{directory}/{n}" for n in names if _fits(n, part)]
            paths = matches
        return paths, refused

    def _read(self, path: str) -> Content:
        try:
            return _read_regular(self._locate(path), flags=self._open_flags())
        except _GONE:
            return Missing()
        except OSError as error:
            return Denied(_reason(error))

    def _open_flags(self) -> int:
        # NONBLOCK: /proc/kmsg and trace_pipe are regular files and would wait.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
        return flags if self._is_this_machine() else flags | os.O_NOFOLLOW

    def _locate(self, path: str) -> Path:
        """Return where a path of the machine lies on this one; OSError if nowhere."""
        if self._is_this_machine():
            return self.root / path
        return _resolve_below(self.root, path)

    def _is_this_machine(self) -> bool:
        return self.root == THIS_MACHINE


def _resolve_below(root: Path, path: str) -> Path:
    resolved: list[str] = []
    rest = list(reversed(PurePosixPath("/", path).parts))
    links = 0
    while rest:
        part = rest.pop()
        if part == "/":
            resolved.clear()
        elif part == "..":
            del resolved[-1:]
        elif (here := root.joinpath(*resolved, part)).is_symlink():
            links += 1
            if links > MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            rest += reversed(PurePosixPath(here.readlink()).parts)
        else:
            resolved.append(part)
    return root.joinpath(*resolved)


def _read_regular(path: Path, *, flags: int) -> Content:
    # Before opening: to open a watchdog starts it, to open a FIFO may wait for ever.
    if not stat.S_ISREG(path.stat().st_mode):
        return Denied("not a regular file")
    descriptor = os.open(path, flags)
    try:
        return _read_to_the_end(descriptor)
    finally:
        os.close(descriptor)


def _read_to_the_end(descriptor: int) -> bytes:
    """Read until end of file: files of /proc and /sys say that their size is 0."""
    pieces: list[bytes] = []
    left = MAX_FILE_BYTES
    while left > 0 and (piece := os.read(descriptor, min(left, 1 << 16))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _names_in(directory: Path) -> list[str]:
    with os.scandir(directory) as entries:
        return sorted(entry.name for entry in entries)


def _is_pattern(text: str) -> bool:
    return any(character in text for character in "*?[")


def _fits(name: str, part: str) -> bool:
    # As in the shell, a leading dot must be written out.
    return fnmatchcase(name, part) and (not name.startswith(".") or part[0] == ".")


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
