"""Write a disk image to a card, after saying which, and read it back as proof."""

import errno
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from rtscope.cli.console import Json, put, put_json, say, stderr_console
from rtscope.cli.progress import Waiting
from rtscope.host.errors import HostError, UsageError
from rtscope.host.escape import printable
from rtscope.host.process import Step
from rtscope.host.units import format_size
from rtscope.verbs.board.disks import SECTOR, Disk, find_disk, number_of

BLOCK_BYTES = 4 << 20
_SIGNATURE = b"\x55\xaa"
"""The end of the first sector of every disk with a partition table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """The arguments and options of `rtscope board write`."""

    image: Annotated[Path, typer.Argument()]
    """Image of rtscope board image, e.g. board.img."""
    device: Annotated[Path, typer.Argument()]
    """Whole disk to replace, e.g. /dev/sdX."""
    yes: bool = False
    """Consent to lose all that the disk holds."""
    json: Json = False


def write(request: WriteRequest) -> int:
    """Write a disk image to a card or stick, and compare what it then holds.

    A disk that is not removable, is in use or is too small is refused. The exit status
    is 1 if the disk holds something else than was written.
    """
    size = _image_bytes(request.image)
    number = number_of(request.device)
    disk = find_disk(request.device, number, need_bytes=size)
    _ask(disk, yes=request.yes)
    with Waiting(stderr_console()) as waiting:
        wrote = _copy(request.image, disk, size, waiting)
        holds = _digest_of(disk, size, waiting)
    same = wrote == holds
    if request.json:
        put_json(
            {
                "image": str(request.image),
                "device": str(disk.path),
                "model": disk.model,
                "serial": disk.serial,
                "disk_bytes": disk.size_bytes,
                "written_bytes": size,
                "sha256": wrote,
                "read_back": holds,
                "same": same,
            }
        )
    elif same:
        put(f"{wrote}  {disk.path}\n{format_size(size)} written, and read back equal\n")
    else:
        put(
            f"{disk.path} does not hold what was written: the card or its reader is "
            "broken; try another one\n"
        )
    return 0 if same else 1


def _image_bytes(image: Path) -> int:
    """Return the size of an image; UsageError if it cannot be one."""
    make = "write one: rtscope board image pc --out board.img"
    if not image.is_file():
        why = "not a regular file" if image.exists() else "no such file"
        raise UsageError(f"{image}: {why}; {make}")
    try:
        with image.open("rb") as file:
            first = file.read(SECTOR)
    except OSError as error:
        raise UsageError(f"{image}: {error.strerror}; {make}") from error
    size = image.stat().st_size
    if first[-2:] != _SIGNATURE or len(first) < SECTOR or size % SECTOR:
        raise UsageError(f"{image}: not a disk image; {make}")
    return size


def _ask(disk: Disk, *, yes: bool) -> None:
    """Say what is lost, and ask for consent; UsageError if there is none."""
    what = printable(
        f"{disk.path}: {disk.model}, serial {disk.serial}, "
        f"{format_size(disk.size_bytes)}"
    )
    say(f"all that it holds will be lost: {what}")
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{what}: if this is the right disk, add --yes")
    if not typer.confirm("Write it?", err=True):
        raise UsageError("not written")


def _copy(image: Path, disk: Disk, size: int, progress: Callable[[Step], None]) -> str:
    """Write the image, as far as the disk itself has it; return its SHA-256."""
    digest = hashlib.sha256()
    # O_EXCL: the kernel refuses a disk that is mounted or used in any namespace.
    with image.open("rb") as source, _opened(disk, os.O_WRONLY) as target:
        try:
            for block in _blocks(source, size, "writing", progress):
                digest.update(block)
                _write_all(target, block)
            os.fsync(target.fileno())
        except KeyboardInterrupt:
            say(f"{disk.path} holds a part of the image, and does not boot")
            raise
        except OSError as error:
            raise HostError(
                f"{disk.path}: {error.strerror}; it holds a part of the image: try "
                "another card, and then another reader"
            ) from error
    return digest.hexdigest()


def _write_all(target: BinaryIO, block: bytes) -> None:
    rest = memoryview(block)
    while rest:
        rest = rest[target.write(rest) :]


def _digest_of(disk: Disk, size: int, progress: Callable[[Step], None]) -> str:
    """Return the SHA-256 of what a disk holds, not of what the kernel remembers."""
    digest = hashlib.sha256()
    with _opened(disk, os.O_RDONLY) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        try:
            for block in _blocks(file, size, "reading back", progress):
                digest.update(block)
        except OSError as error:
            raise HostError(
                f"{disk.path}: written, but cannot be read back: {error.strerror}; try "
                "another card"
            ) from error
    return digest.hexdigest()


def _blocks(
    file: BinaryIO, size: int, what: str, progress: Callable[[Step], None]
) -> Iterator[bytes]:
    done = 0
    while done < size:
        progress(Step(what, done, size, unit="bytes"))
        block = file.read(min(BLOCK_BYTES, size - done))
        if not block:
            raise OSError(errno.EIO, f"ended after {done} bytes")
        done += len(block)
        yield block
    progress(Step(what, size, size, unit="bytes"))


def _opened(disk: Disk, flags: int) -> BinaryIO:
    device = disk.path
    try:
        handle = os.open(device, flags | os.O_EXCL | os.O_CLOEXEC)
    except OSError as error:
        advice = {
            errno.EACCES: f"try: sudo rtscope board write IMAGE {device}",
            errno.EPERM: f"try: sudo rtscope board write IMAGE {device}",
            errno.EBUSY: f"a program or mount uses it: lsblk {device}",
        }.get(error.errno or 0, "look: lsblk")
        raise UsageError(f"{device}: {error.strerror}; {advice}") from error
    found = os.fstat(handle).st_rdev
    if (os.major(found), os.minor(found)) != disk.number:
        os.close(handle)
        raise UsageError(f"{device}: another device by now; look: lsblk {device}")
    return os.fdopen(handle, "wb" if flags & os.O_WRONLY else "rb", buffering=0)
