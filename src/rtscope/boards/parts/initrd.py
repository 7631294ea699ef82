"""
The initrd of a board: user space, kernel modules, the agent, and the job.

Archives (newc cpio) one after the other in one file; the kernel unpacks all of them.
They are not compressed: the guest would spend more instructions on that than on
copying. The same content gives the same bytes: sorted, numbered from 1, owned by root,
no times (Documentation/driver-api/early-userspace/buffer-format.rst of Linux).
"""

import hashlib
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from rtscope.host.errors import BoardError

BLOCK = 512
"""Archives are padded to this, so that one can follow another in the same file."""

MAX_FILE_BYTES = 1 << 30

AGENT = "bin/rtscope-agent"


@dataclass(frozen=True, slots=True)
class File:
    """A regular file."""

    content: bytes
    runs: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link."""

    target: str


@dataclass(frozen=True, slots=True)
class Folder:
    """A directory; parents of files need not be named."""


@dataclass(frozen=True, slots=True)
class Device:
    """A character device, for what must be there before /dev is."""

    major: int
    minor: int


Entry = File | Link | Folder | Device


def pack(entries: Mapping[str, Entry]) -> bytes:
    """
    Return an archive; paths are relative and stay below the root.

    Raises BoardError for a path that does not.
    """
    tree = {**_parents(entries), **entries}
    blob = bytearray()
    for number, path in enumerate(sorted(tree), 1):
        _append(blob, path, tree[path], number=number)
    _append(blob, "TRAILER!!!", None, number=0)
    blob += bytes(-len(blob) % BLOCK)
    return bytes(blob)


def _parents(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    folders: dict[str, Entry] = {}
    for path in entries:
        parts = path.split("/")
        if not all(
            part not in ("", ".", "..") and part.isprintable() for part in parts
        ):
            raise BoardError(f"{path!r}: not a path for an archive")
        for depth in range(1, len(parts)):
            folders["/".join(parts[:depth])] = Folder()
    return folders


def _append(blob: bytearray, path: str, entry: Entry | None, *, number: int) -> None:
    mode, content, device = _describe(entry)
    if len(content) > MAX_FILE_BYTES:
        raise BoardError(f"{path}: too large for an archive")
    name = path.encode() + b"\0"
    links = 2 if isinstance(entry, Folder) else 1
    fields = (number, mode, 0, 0, links, 0, len(content), 0, 0, *device, len(name), 0)
    blob += b"070701" + b"".join(b"%08X" % field for field in fields) + name
    blob += bytes(-len(blob) % 4)
    blob += content
    blob += bytes(-len(blob) % 4)


def _describe(entry: Entry | None) -> tuple[int, bytes, tuple[int, int]]:
    """Return mode, content and device number."""
    match entry:
        case File(content, runs):
            return stat.S_IFREG | (0o755 if runs else 0o644), content, (0, 0)
        case Link(target):
            return stat.S_IFLNK | 0o777, target.encode(), (0, 0)
        case Folder():
            return stat.S_IFDIR | 0o755, b"", (0, 0)
        case Device(major, minor):
            return stat.S_IFCHR | 0o600, b"", (major, minor)
        case None:
            return 0, b"", (0, 0)


@dataclass(frozen=True, slots=True)
class Job:
    """What a board does once it has booted."""

    script: str
    """For busybox's sh, in /tmp; what it leaves in /out comes back."""
    disk: bool = False
    """Make a disk in memory and mount it at /disk before the script starts."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """More files, by their names below /job."""
    programs: Mapping[str, bytes] = field(default_factory=dict)
    """Files that can be run, by their paths on the board, without the first slash."""


def agent_archive(agent: bytes) -> bytes:
    """Return the archive with the agent and the first process."""
    init = resources.files("rtscope.boards.parts").joinpath("init").read_bytes()
    return pack({AGENT: File(agent, runs=True), "init": File(init, runs=True)})


def job_archive(job: Job, *, results: str) -> bytes:
    """Return the archive with the job; `results` is the board's device for them."""
    entries: dict[str, Entry] = {
        f"job/{name}": File(content) for name, content in job.files.items()
    }
    entries |= {
        path: File(content, runs=True) for path, content in job.programs.items()
    }
    entries["job/script"] = File(job.script.encode())
    entries["job/results"] = File(f"{results}\n".encode())
    if job.disk:
        entries["job/disk"] = File(b"")
    return pack(entries)


def write_initrd(path: Path, archives: list[bytes]) -> str:
    """Write archives one after the other; return the SHA-256 of the file."""
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for archive in archives:
            file.write(archive)
            digest.update(archive)
    return digest.hexdigest()
