"""
What a device is, before an image replaces all that it holds.

Pure of writing: sysfs, mountinfo and swaps of this machine are read below a root, which
a test makes. A device is written only if it is a whole disk that can be taken out, that
nothing here uses, and that has room; whatever is not known is refused.
"""

import os
import re
import shlex
import stat
from dataclasses import dataclass
from pathlib import Path

from rtscope.host.errors import UsageError
from rtscope.host.units import format_size

SECTOR = 512
"""The unit of `size` in sysfs, whatever the disk's own sectors are."""

SYSTEM = ("/boot", "/etc", "/home", "/nix", "/opt", "/usr", "/var")
"""Where else than on / a system is."""

LIST = "lsblk -d -o NAME,SIZE,RM,MODEL,SERIAL"
MAX_TEXT_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Disk:
    """A whole disk that may be written."""

    path: Path
    number: tuple[int, int]
    """Major and minor: what a path names may change."""
    model: str
    serial: str
    size_bytes: int


def number_of(device: Path) -> tuple[int, int]:
    """Return major and minor number of a device file; UsageError if it is none."""
    try:
        found = device.stat()
    except OSError as error:
        raise UsageError(
            f"{device}: {error.strerror}; list the disks: {LIST}"
        ) from error
    if not stat.S_ISBLK(found.st_mode):
        raise UsageError(f"{device}: not a disk; list the disks: {LIST}")
    return os.major(found.st_rdev), os.minor(found.st_rdev)


def find_disk(
    device: Path, number: tuple[int, int], *, need_bytes: int, root: Path = Path("/")
) -> Disk:
    """
    Return the disk of a number, below the root of a machine; UsageError names why not.

    Which programs have it open the kernel alone knows: open it with O_EXCL.
    """
    folder = root / "sys/dev/block" / f"{number[0]}:{number[1]}"
    if (folder / "partition").exists():
        whole = folder.resolve().parent.name
        raise UsageError(
            f"{device}: a partition; an image has its own: name the whole disk "
            f"/dev/{whole}"
        )
    if not (folder / "size").exists():
        raise UsageError(f"{device}: not a disk of this machine; list them: {LIST}")
    if not _can_be_taken_out(folder):
        raise UsageError(
            f"{device}: not removable, so it may be a disk of this machine; name a "
            f"card or stick: {LIST}"
        )
    for use, command in _uses(folder, root):
        raise UsageError(f"{device}: {use}; {command}")
    if _read(folder / "ro") != "0":
        raise UsageError(f"{device}: protected from writing; move the card's switch")
    size = int(_read(folder / "size") or 0) * SECTOR
    if size < need_bytes:
        had = f"{format_size(size)}, and the image {format_size(need_bytes)}"
        raise UsageError(
            f"{device}: it has {had}; use a larger card"
            if size
            else f"{device}: no card in it; put one in, and look: {LIST}"
        )
    model = " ".join(
        filter(None, (_read(folder / "device" / n) for n in ("vendor", "model")))
    )
    return Disk(
        device,
        number,
        model or _read(folder / "device/name") or "unknown model",
        _read(folder / "device/serial") or _udev_serial(root, number) or "unknown",
        size,
    )


def _can_be_taken_out(folder: Path) -> bool:
    """Tell it from a built-in disk: readers of SD cards do not say `removable`."""
    return _read(folder / "removable") == "1" or _read(folder / "device/type") == "SD"


def _uses(folder: Path, root: Path) -> list[tuple[str, str]]:
    """Return what of this machine is on a disk, and the command that ends it."""
    parts = [folder, *(one.parent for one in folder.resolve().glob("*/partition"))]
    numbers = {_read(one / "dev"): one.resolve().name for one in parts}
    uses = []
    for number, source, place in _mounts(root):
        name = numbers.get(number) or _named(source, numbers)
        if name:
            uses.append((f"{name} is mounted on {place}", _unmounting(place)))
    for line in _read(root / "proc/swaps").splitlines()[1:]:
        name = _named(line.split()[0], numbers)
        if name:
            uses.append((f"{name} is swap space", f"type: swapoff /dev/{name}"))
    for one in parts:
        holders = sorted(held.name for held in (one / "holders").glob("*"))
        if holders:
            name = one.resolve().name
            uses.append(
                (f"{name} is a part of {holders[0]}", f"look: lsblk /dev/{name}")
            )
    return uses


def _unmounting(place: str) -> str:
    if place in ("/", *SYSTEM) or place.startswith(tuple(f"{s}/" for s in SYSTEM)):
        return f"this system runs from it; name another disk: {LIST}"
    return f"type: umount {shlex.quote(place)}"


def _named(source: str, numbers: dict[str, str]) -> str:
    """Return which part has the name of a mount's source: btrfs has no number."""
    name = source.rsplit("/", 1)[-1]
    return name if source.startswith("/dev/") and name in numbers.values() else ""


def _mounts(root: Path) -> list[tuple[str, str, str]]:
    """Return number, source and place of each mount."""
    found = []
    for line in _read(root / "proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        words, source = before.split(), after.split()
        if len(words) > 4 and len(source) > 1:
            place = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), words[4])
            found.append((words[2], source[1], place))
    return found


def _udev_serial(root: Path, number: tuple[int, int]) -> str:
    known = _read(root / "run/udev/data" / f"b{number[0]}:{number[1]}")
    match = re.search(r"^E:ID_SERIAL_SHORT=(.*)$", known, re.M)
    return match[1] if match else ""


def _read(path: Path) -> str:
    """Return a short file without its end, and nothing of one that is not there."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_TEXT_BYTES).decode("utf-8", "replace").strip()
    except OSError:
        return ""
