"""
The user space of a board: busybox, stress-ng, mke2fs and the libraries they need.

Copied out of unpacked packages of the board's architecture; nothing foreign is run.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rtscope.board import cpio, elf
from rtscope.board.catalogue import Arch
from rtscope.board.packages import Package

RECIPE = 1
"""Counts up when what is kept of the packages, or where, changes."""

ARCHIVE = "userland.cpio"

PACKAGES = ("busybox-static", "e2fsprogs", "stress-ng")

NOT_NEEDED = ("libllvm", "libz3-", "mesa-libgallium", "openssl-provider-")
"""What libraries of stress-ng would load for graphics: 45 MB that no load uses."""

# Where the packages have them: where the board has them.
_PROGRAMS = {
    "usr/bin/busybox": "bin/busybox",
    "usr/bin/stress-ng": "bin/stress-ng",
    "usr/sbin/mke2fs": "sbin/mke2fs",
}

# For what is started by others than the shell, which knows its applets by itself.
_APPLETS = ("sh", "cat", "mount", "sleep", "true", "kill")

_FOLDERS = ("dev", "disk", "job", "out", "proc", "sys", "tmp", "run", "var/tmp")


def is_needed(package: Package) -> bool:
    """Whether a package may hold something that the programs need."""
    return not package.name.startswith(NOT_NEEDED)


def build_userland(work: Path, root: Path, arch: Arch) -> Mapping[str, Any]:
    """Write the archive, and return what is in it."""
    libs = root / arch.libs
    programs = [root / path for path in _PROGRAMS]
    entries: dict[str, cpio.Entry] = {path: cpio.Folder() for path in _FOLDERS}
    # Before devtmpfs is mounted the first process talks through this.
    entries["dev/console"] = cpio.Device(5, 1)
    for source, target in _PROGRAMS.items():
        entries[target] = cpio.File((root / source).read_bytes(), runs=True)
    for applet in _APPLETS:
        entries[f"bin/{applet}"] = cpio.Link("busybox")
    libraries = elf.libraries_of(programs, libs=libs)
    for name, path in libraries.items():
        entries[f"{arch.libs}/{name}"] = cpio.File(path.read_bytes(), runs=True)
    for loader in filter(None, map(elf.interpreter, programs)):
        place = loader.lstrip("/")
        entries[place] = cpio.Link(f"/{arch.libs}/{Path(loader).name}")
    archive = cpio.pack(entries)
    (work / ARCHIVE).write_bytes(archive)
    return {"libraries": sorted(libraries), "unpacked_bytes": len(archive)}
