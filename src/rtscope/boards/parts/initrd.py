"""
The initrd of a board: user space, kernel modules, the agent, the job, files brought.

Archives (newc cpio) one after the other in one file; the kernel unpacks all of them.
They are not compressed: the guest would spend more instructions on that than on
copying. The same content gives the same bytes: sorted, numbered from 1, owned by root,
no times (Documentation/driver-api/early-userspace/buffer-format.rst of Linux).
"""

import hashlib
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import InterpSegment

from rtscope.boards.parts.buildcontext import (
    FILES_ARCHIVE,
    FILES_KIND,
    BuildContext,
    content_part,
)
from rtscope.boards.parts.cache import Part
from rtscope.host.errors import BoardError, UsageError
from rtscope.host.files.opening import read_named

HEADER_BYTES = 110
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


def unpack(archive: bytes) -> dict[str, Entry]:
    """Return what `pack` has put into an archive; BoardError for any other one."""
    entries: dict[str, Entry] = {}
    at = 0
    while at < len(archive):
        head = archive[at : at + HEADER_BYTES]
        try:
            fields = [int(head[i : i + 8], 16) for i in range(6, HEADER_BYTES, 8)]
        except ValueError as error:
            raise BoardError("a damaged archive of files") from error
        mode, size, name_bytes = fields[1], fields[6], fields[11]
        at += HEADER_BYTES
        name = archive[at : at + name_bytes - 1].decode()
        at += name_bytes
        at += -at % 4
        content = archive[at : at + size]
        at += size + -size % 4
        if name == "TRAILER!!!":
            return entries
        entries[name] = _entry_of(mode, content)
    raise BoardError("an archive of files that is cut short")


def _entry_of(mode: int, content: bytes) -> Entry:
    if stat.S_ISLNK(mode):
        return Link(content.decode())
    return Folder() if stat.S_ISDIR(mode) else File(content, bool(mode & 0o100))


@dataclass(frozen=True, slots=True)
class Job:
    """What a board does once it has booted."""

    script: str
    """For busybox's sh, in /tmp; what it leaves in /out comes back."""
    disk: bool = False
    """Make a disk in memory and mount it at /disk before the script starts."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """More files, by their names below /job."""
    tree: Mapping[str, Entry] = field(default_factory=dict)
    """Of a program, by their paths on the board, without the first slash."""


def agent_archive(agent: bytes) -> bytes:
    """Return the archive with the agent and the first process."""
    init = resources.files("rtscope.boards.parts").joinpath("init").read_bytes()
    return pack({AGENT: File(agent, runs=True), "init": File(init, runs=True)})


def job_archive(job: Job, *, results: str) -> bytes:
    """Return the archive with the job; `results` is the board's device for them."""
    entries: dict[str, Entry] = {
        f"job/{name}": File(content) for name, content in job.files.items()
    }
    entries |= job.tree
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


# --- what a program needs of others, read from its ELF headers: nothing of it is run --


def needed(program: Path) -> tuple[str, ...]:
    """Return the shared libraries that a program or library names, in its order."""
    with program.open("rb") as file:
        section = _elf(file, program).get_section_by_name(".dynamic")
        if not isinstance(section, DynamicSection):
            return ()
        return tuple(
            str(tag.needed)
            for tag in section.iter_tags()
            if tag.entry.d_tag == "DT_NEEDED"
        )


def interpreter(program: Path) -> str | None:
    """Return the path of the loader that a program names; None for a static one."""
    with program.open("rb") as file:
        for segment in _elf(file, program).iter_segments():
            if isinstance(segment, InterpSegment):
                return str(segment.get_interp_name())
    return None


def libraries_of(programs: Iterable[Path], *, libs: Path) -> dict[str, Path]:
    """
    Return every library that programs need, directly or through others.

    By the name they are needed by, sorted; `libs` is where they are. Raises BoardError
    for one that is not there.
    """
    libraries: dict[str, Path] = {}
    todo = list(programs)
    while todo:
        user = todo.pop()
        for name in needed(user):
            if name in libraries:
                continue
            path = libs / name
            if "/" in name or not path.is_file():
                raise BoardError(f"{user.name} needs {name}, and no package has it")
            libraries[name] = path
            todo.append(path)
    return dict(sorted(libraries.items()))


def _elf(file: object, program: Path) -> ELFFile:
    try:
        return ELFFile(file)
    except ELFError as error:
        raise BoardError(f"{program.name}: not an ELF file ({error})") from error


def module_needs(module: Path) -> Iterator[str]:
    """Yield the names of the modules that a kernel module depends on."""
    with module.open("rb") as file:
        section = _elf(file, module).get_section_by_name(".modinfo")
        facts = section.data().split(b"\0") if section is not None else []
    for fact in facts:
        if fact.startswith(b"depends="):
            names = fact.removeprefix(b"depends=").decode("ascii", "replace")
            yield from (name for name in names.split(",") if name)


# --- the files that a campaign brings to a board, as a part of it ---------------------

MAX_FILES_BYTES = 64 << 20
"""Of all together: they lie in the board's memory."""

_KIND = (
    f"guest file beside the others: together they exceed {MAX_FILES_BYTES >> 20} MiB; "
    "they take the board's memory, so leave some out"
)


def read_files(paths: Sequence[Path]) -> dict[str, bytes]:
    """
    Return the files' contents by their names.

    Raises UsageError for what cannot be read, is too large or has another's name.
    """
    contents: dict[str, bytes] = {}
    left = MAX_FILES_BYTES
    for path in paths:
        if path.name in contents:
            raise UsageError(
                f"{path}: two guest files are called {path.name}: rename one of them"
            )
        contents[path.name] = read_named(path, limit=left, kind=_KIND, error=UsageError)
        left -= len(contents[path.name])
    return contents


def files_part(context: BuildContext, files: Mapping[str, bytes]) -> Part:
    """Return the part with the archive of these files, of which each can be run."""
    entries: dict[str, Entry] = {
        f"files/{name}": File(content, runs=True) for name, content in files.items()
    }
    return content_part(
        context,
        f"{FILES_KIND}-board",
        FILES_ARCHIVE,
        pack(entries),
        inputs={
            name: hashlib.sha256(content).hexdigest() for name, content in files.items()
        },
        notes={"files": sorted(files)},
    )
