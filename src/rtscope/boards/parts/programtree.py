"""
The files that a program of the user's has on a board, below its root directory.

They come from directories, from single files and from packages of Debian. A link leads
where it would with this tree as root directory, so none leaves it. What is too large
for the memory of the board is refused with the bound.
"""

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from rtscope.boards.catalogue import Board
from rtscope.boards.parts.initrd import Entry, File, Folder, Link
from rtscope.host.errors import UsageError, quote

PART_OF_MEMORY = 4
"""A board has the files twice while it unpacks them, and then needs room to run."""

MAX_ENTRIES = 100_000
MAX_LINKS = 40
"""As Linux follows before it gives up."""

MERGED = ("bin", "sbin", "lib", "lib64")
"""Directories that Debian keeps below /usr; an install script makes the links."""

VARIABLE: Mapping[str, Entry] = {
    **{f"var/{name}": Folder() for name in ("cache", "lib", "log", "spool", "tmp")},
    "var/run": Link("/run"),
}
"""What base-files brings to each machine, and no package names."""

PASSWD = "etc/passwd"
USERS: Mapping[str, bytes] = {
    PASSWD: b"root:x:0:0:root:/root:/bin/sh\n"
    b"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "etc/group": b"root:x:0:\nnogroup:x:65534:\n",
}
"""What a program finds where its packages bring no users."""

MASTER = "usr/share/base-passwd/{}.master"
"""Where base-passwd has the users that its install script copies."""


@dataclass(slots=True)
class ProgramTree:
    """Files, links and directories by their paths, without the first slash."""

    most_bytes: int
    entries: dict[str, Entry] = field(default_factory=dict)
    size_bytes: int = 0

    def put(self, path: str, entry: Entry) -> None:
        """
        Add an entry, or replace one; directories on the way may be links.

        Raises UsageError for a path that leaves the tree, and for too much.
        """
        *folders, name = _parts(path)
        place = "/".join([*filter(None, [self.real("/".join(folders))]), name])
        before = self.entries.get(place)
        if isinstance(entry, Folder) and before is not None:
            return
        if isinstance(before, Folder) and self._has_inside(place):
            raise UsageError(f"/{place}: a directory on the board: name another path")
        self.entries[place] = entry
        self.size_bytes += _size(entry) - _size(before)
        if self.size_bytes > self.most_bytes:
            raise UsageError(
                f"/{place}: with it the program has more than "
                f"{self.most_bytes >> 20} MiB, and a board has no room for it: strip "
                "--strip-debug it, or leave something out"
            )
        if len(self.entries) > MAX_ENTRIES:
            raise UsageError(f"/{place}: a board takes {MAX_ENTRIES:,} files at most")

    def real(self, path: str) -> str:
        """Return a path with all its links followed; what is not there stays."""
        place: list[str] = []
        todo = list(reversed(PurePosixPath(path).parts))
        followed = 0
        while todo:
            match part := todo.pop():
                case "/":
                    continue
                case "..":
                    del place[-1:]
                    continue
            entry = self.entries.get("/".join([*place, part]))
            if not isinstance(entry, Link):
                place.append(part)
                continue
            if (followed := followed + 1) > MAX_LINKS:
                raise UsageError(f"/{path}: its links lead to themselves")
            if entry.target.startswith("/"):
                place.clear()
            todo.extend(reversed(PurePosixPath(entry.target).parts))
        return "/".join(place)

    def file(self, path: str) -> File | None:
        """Return the regular file at a path; None if there is none."""
        entry = self.entries.get(self.real(path))
        return entry if isinstance(entry, File) else None

    def has_folder(self, path: str) -> bool:
        """Tell whether a path is a directory."""
        place = self.real(path)
        return isinstance(self.entries.get(place), Folder) or self._has_inside(place)

    def _has_inside(self, place: str) -> bool:
        inside = f"{place}/" if place else ""
        return any(path.startswith(inside) for path in self.entries)


def tree_for(board: Board) -> ProgramTree:
    """Return an empty tree with the room that a board has."""
    return ProgramTree(board.memory_bytes // PART_OF_MEMORY)


def put_all(tree: ProgramTree, entries: Mapping[str, Entry]) -> None:
    """Add entries, directories before what is in them."""
    for path in sorted(entries):
        tree.put(path, entries[path])


def put_merged_links(tree: ProgramTree) -> None:
    """Add what packages take for granted: links to /usr and /run, and /var."""
    for name in MERGED:
        if tree.has_folder(f"usr/{name}") and not tree.has_folder(name):
            tree.put(name, Link(f"usr/{name}"))
    for path, entry in VARIABLE.items():
        if not tree.has_folder(path):
            tree.put(path, entry)


def put_users(tree: ProgramTree) -> None:
    """Add the users and groups of a tree that has none."""
    for place, content in USERS.items():
        if tree.file(place) is None:
            master = tree.file(MASTER.format(place.removeprefix("etc/")))
            tree.put(place, master or File(content))


def entries_of(path: Path, place: str) -> dict[str, Entry]:
    """
    Return a file or a directory of this computer as entries at a place of a tree.

    Links inside a directory are kept. Raises UsageError for what cannot be read or
    brought, and for a link that leads out of the directory.
    """
    inside = "/".join(_parts(place)) if place.strip("/") else ""
    try:
        if not path.is_dir():
            return {inside: _file(path)}
        entries: dict[str, Entry] = {inside: Folder()} if inside else {}
        for one in _walked(path):
            below = one.relative_to(path).as_posix()
            entries[f"{inside}/{below}".lstrip("/")] = _entry(one, path)
            if len(entries) > MAX_ENTRIES:
                raise UsageError(f"{path}: more than {MAX_ENTRIES:,} files")
    except OSError as error:
        where = error.filename or path
        raise UsageError(f"cannot read {where}: {error.strerror}") from error
    return entries


def _walked(folder: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise error

    for parent, folders, files in os.walk(folder, onerror=refuse):
        folders.sort()
        yield from (Path(parent, name) for name in (*folders, *sorted(files)))


def _entry(path: Path, root: Path) -> Entry:
    if path.is_symlink():
        target = str(path.readlink())
        depth = len(path.relative_to(root).parts) - 1
        for part in () if target.startswith("/") else PurePosixPath(target).parts:
            depth += -1 if part == ".." else 1
            if depth < 0:
                raise UsageError(
                    f"{path}: this link leads out of {root}, to {quote(target)}: copy "
                    "the file instead"
                )
        return Link(target)
    return Folder() if path.is_dir() else _file(path)


def _file(path: Path) -> File:
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise UsageError(f"{path}: no regular file: a board gets files and directories")
    if about.st_size > _MAX_FILE_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return File(path.read_bytes(), runs=bool(about.st_mode & 0o100))


_MAX_FILE_BYTES = 1 << 30


def _parts(path: str) -> tuple[str, ...]:
    parts = tuple(part for part in PurePosixPath(path).parts if part != "/")
    if not parts or ".." in parts:
        raise UsageError(f"{quote(path)}: write the path that the board has, e.g. /etc")
    return parts


def _size(entry: Entry | None) -> int:
    return len(entry.content) if isinstance(entry, File) else 0
