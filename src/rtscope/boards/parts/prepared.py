"""A board that can boot, put together from its parts, and the files of a boot."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rtscope.boards.catalogue import Board
from rtscope.boards.kernels import catalogue as kernels
from rtscope.boards.kernels.catalogue import Kernel
from rtscope.boards.parts import initrd, qemu
from rtscope.boards.parts.buildcontext import (
    AGENT_ARCHIVE,
    FILES_ARCHIVE,
    FILES_KIND,
    PLUGIN,
    USERLAND_ARCHIVE,
)
from rtscope.boards.parts.cache import Part
from rtscope.boards.parts.guestkernel import entered_unpacked, without_signatures
from rtscope.boards.parts.qemu import Qemu
from rtscope.host.errors import BoardError


@dataclass(frozen=True, slots=True)
class Prepared:
    """A board that can boot."""

    board: Board
    qemu: Qemu
    plugin: Path
    """It bounds the CPUs' quantum and records the worst paths."""
    kernel: Kernel
    archives: tuple[Path, ...]
    """What the initrd begins with; the job follows."""
    parts: tuple[Part, ...]
    """What it was made from; without those that are the user's own files."""

    @property
    def plugin_digest(self) -> str:
        """The SHA-256 of the plugin."""
        return hashlib.sha256(self.plugin.read_bytes()).hexdigest()


def assemble(
    board: Board,
    kernel: str,
    *,
    parts: Sequence[Part],
    own: Qemu | None = None,
    plugin: Path | None = None,
) -> Prepared:
    """
    Return what boots a kernel from just these parts: one of each kind.

    An own QEMU and another plugin take the places of those parts. Raises BoardError if
    a kind is missing.
    """
    kinds = {part.name.split("-")[0]: part for part in parts}
    needed = {"qemu", "plugin", "userland", "agent", "kernel"}
    instead = {kind for kind, it in (("qemu", own), ("plugin", plugin)) if it}
    if missing := needed - instead - kinds.keys():
        raise BoardError(f"{board.name} lacks parts: {', '.join(sorted(missing))}")
    boot_kernel = kernels.kernel_of_part(kinds["kernel"], kernel)
    return Prepared(
        board=board,
        qemu=own or qemu.packed_qemu(kinds["qemu"]),
        plugin=plugin or kinds["plugin"].file(PLUGIN),
        kernel=boot_kernel,
        archives=(
            kinds["userland"].file(USERLAND_ARCHIVE),
            kinds["agent"].file(AGENT_ARCHIVE),
            *((boot_kernel.modules,) if boot_kernel.modules else ()),
            *((kinds[FILES_KIND].file(FILES_ARCHIVE),) if FILES_KIND in kinds else ()),
        ),
        parts=tuple(parts),
    )


def has_files(prepared: Prepared) -> bool:
    """Return whether a board gets guest files of its campaign."""
    return any(part.name.split("-")[0] == FILES_KIND for part in prepared.parts)


def initrd_digest(prepared: Prepared, job: initrd.Job) -> str:
    """Return the SHA-256 of the initrd of one run, without writing it."""
    known = tuple((path, path.stat().st_mtime_ns) for path in prepared.archives)
    digest = _digest_of_archives(known).copy()
    digest.update(initrd.job_archive(job, results=prepared.board.results))
    return digest.hexdigest()


@lru_cache(maxsize=32)
def _digest_of_archives(archives: tuple[tuple[Path, int], ...]) -> "hashlib._Hash":
    """Return the hash so far, to go on from: 50 MB are the same in each run."""
    digest = hashlib.sha256()
    for path, _ in archives:
        digest.update(_archive(path))
    return digest


def write_initrd(path: Path, prepared: Prepared, job: initrd.Job) -> str:
    """Write the initrd of one run; return its SHA-256."""
    last = initrd.job_archive(job, results=prepared.board.results)
    return initrd.write_initrd(path, [*map(_archive, prepared.archives), last])


def _archive(path: Path) -> bytes:
    content = path.read_bytes()
    return without_signatures(content) if path.name == kernels.MODULES else content


def write_kernel(path: Path, prepared: Prepared) -> Path:
    """Return the file that QEMU boots: the image, or what is in it, written there."""
    if prepared.board.arch != "x86_64":
        return prepared.kernel.image
    plain = entered_unpacked(prepared.kernel.image.read_bytes())
    if plain is None:
        return prepared.kernel.image
    path.write_bytes(plain)
    return path
