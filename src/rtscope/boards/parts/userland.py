"""User space of a board: busybox, stress-ng and mke2fs with their libraries."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rtscope.boards.catalogue import Arch
from rtscope.boards.parts import aptroot, elf, initrd
from rtscope.boards.parts.buildcontext import BuildContext, part_of_packages
from rtscope.boards.parts.cache import Part
from rtscope.boards.parts.names import USERLAND_ARCHIVE
from rtscope.boards.parts.packages import Package

USERLAND_RECIPE = 1
"""Counts up when what is kept of the packages, or where, changes."""

USERLAND_PACKAGES = ("busybox-static", "e2fsprogs", "stress-ng")

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


def userland_part(context: BuildContext, arch: Arch) -> Part:
    """Return the archive of user space for an architecture, from packages."""

    def resolve(root: Path) -> tuple[Package, ...]:
        packages = aptroot.resolve(
            USERLAND_PACKAGES, arch=arch.debian, root=root, dependencies=True
        )
        return tuple(filter(_is_needed, packages))

    return part_of_packages(
        context,
        f"userland-{arch.name}",
        resolve,
        recipe=USERLAND_RECIPE,
        build=lambda work, root: _build_userland(work, root, arch),
    )


def _is_needed(package: Package) -> bool:
    """Whether a package may hold something that the programs need."""
    return not package.name.startswith(NOT_NEEDED)


def _build_userland(work: Path, root: Path, arch: Arch) -> Mapping[str, Any]:
    """Write the archive, and return what is in it."""
    libs = root / arch.libs
    programs = [root / path for path in _PROGRAMS]
    entries: dict[str, initrd.Entry] = {path: initrd.Folder() for path in _FOLDERS}
    # Before devtmpfs is mounted the first process talks through this.
    entries["dev/console"] = initrd.Device(5, 1)
    for source, target in _PROGRAMS.items():
        entries[target] = initrd.File((root / source).read_bytes(), runs=True)
    for applet in _APPLETS:
        entries[f"bin/{applet}"] = initrd.Link("busybox")
    libraries = elf.libraries_of(programs, libs=libs)
    for name, path in libraries.items():
        entries[f"{arch.libs}/{name}"] = initrd.File(path.read_bytes(), runs=True)
    for loader in filter(None, map(elf.interpreter, programs)):
        place = loader.lstrip("/")
        entries[place] = initrd.Link(f"/{arch.libs}/{Path(loader).name}")
    archive = initrd.pack(entries)
    (work / USERLAND_ARCHIVE).write_bytes(archive)
    return {"libraries": sorted(libraries), "unpacked_bytes": len(archive)}
