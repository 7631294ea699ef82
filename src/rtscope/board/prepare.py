"""
Everything that a board needs to boot, built into the cache if it is not there.

Five parts: QEMU, our plugin for it, user space, the agent and the kernel. Which
packages a part is made of is resolved once and kept in the cache's lock file; a part is
then found again without the network. Pins name parts exactly: those of a bundle, of
whatever age.
"""

import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from rtscope.board import (
    aptroot,
    initrd,
    kernels,
    ownqemu,
    qemu,
    sourcekernel,
    userland,
)
from rtscope.board.cache import Part, build_part, find_part, locked
from rtscope.board.catalogue import Arch, Board, get_arch
from rtscope.board.image import read_image
from rtscope.board.kernels import Kernel, KernelRow
from rtscope.board.packages import NO_LOCK, Lock, Package, as_rows, lock_text, read_lock
from rtscope.board.qemu import Qemu
from rtscope.errors import BoardError, UsageError

LOCK_FILE = "packages.json"
AGENT_ARCHIVE = "agent.cpio"
PLUGIN = "rtscope-plugin.so"

Notes = Mapping[str, Any]


def _nothing(_text: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Workshop:
    """Where parts are built, and what they must be made of."""

    cache: Path
    agent: Callable[[str], Path]
    """Where the agent for an architecture (`uname -m`) is."""
    lock: Lock | None = None
    """The user's lock file: exactly these packages, and no others."""
    pins: Mapping[str, str] = field(default_factory=dict)
    """Keys of parts, by name: exactly these, whatever would be built now."""
    upgrade: bool = False
    """Resolve packages anew."""
    say: Callable[[str], None] = _nothing


@dataclass(frozen=True, slots=True)
class Prepared:
    """A board that can boot."""

    board: Board
    qemu: Qemu
    plugin: Path
    """What bounds the CPUs' turns and records the worst paths."""
    kernel: Kernel
    archives: tuple[Path, ...]
    """What the initrd begins with; the job follows."""
    parts: tuple[Part, ...]
    """What it was made from; without those that are the user's own files."""


def prepare(
    board: Board,
    kernel: str,
    *,
    workshop: Workshop,
    own_qemu: Path | None = None,
) -> Prepared:
    """
    Return what boots a kernel (a name, or the path of an image) on a board.

    Raises UsageError for names that are wrong and BoardError for what cannot be had.
    """
    return prepare_all(board, [kernel], workshop=workshop, own_qemu=own_qemu)[0]


def prepare_all(
    board: Board,
    kernel_list: Sequence[str],
    *,
    workshop: Workshop,
    own_qemu: Path | None = None,
) -> list[Prepared]:
    """Return the same for several kernels of one board."""
    arch = get_arch(board.arch)
    wanted = [(name, _row_of(name, board.arch)) for name in kernel_list]
    own = ownqemu.own_qemu(own_qemu, board) if own_qemu else None
    for name, row in wanted:
        if row is None:
            read_image(Path(name), board.arch)
    with locked(workshop.cache, say=workshop.say):
        machine: tuple[Part, ...] = () if own else (_qemu_part(workshop, arch),)
        plugin = _plugin_part(workshop)
        user = (_userland_part(workshop, arch), _agent_part(workshop, arch))
        made = [
            _kernel_part(workshop, row)
            if row
            else _file_part(workshop, Path(name), arch)
            for name, row in wanted
        ]
        shutil.rmtree(workshop.cache / "downloads", ignore_errors=True)
    prepared = []
    for name, part in zip(kernel_list, made, strict=True):
        parts = (*machine, plugin, *user, part)
        prepared.append(assemble(board, Path(name).name, parts=parts, own=own))
    return prepared


def assemble(
    board: Board, kernel: str, *, parts: Sequence[Part], own: Qemu | None = None
) -> Prepared:
    """
    Return what boots a kernel from just these parts: one of each kind.

    Raises BoardError if a kind is missing.
    """
    kinds = {part.name.split("-")[0]: part for part in parts}
    needed = {"qemu", "plugin", "userland", "agent", "kernel"}
    if missing := needed - ({"qemu"} if own else set()) - kinds.keys():
        raise BoardError(f"{board.name} lacks parts: {', '.join(sorted(missing))}")
    found = kernels.kernel_of_part(kinds["kernel"], kernel)
    return Prepared(
        board=board,
        qemu=own or qemu.packed_qemu(kinds["qemu"]),
        plugin=kinds["plugin"].file(PLUGIN),
        kernel=found,
        archives=(
            kinds["userland"].file(userland.ARCHIVE),
            kinds["agent"].file(AGENT_ARCHIVE),
            *((found.modules,) if found.modules else ()),
        ),
        parts=tuple(parts),
    )


def write_initrd(path: Path, prepared: Prepared, job: initrd.Job) -> str:
    """Write the initrd of one run; return its SHA-256."""
    last = initrd.job_archive(job, results=prepared.board.results)
    blobs = [archive.read_bytes() for archive in prepared.archives]
    return initrd.write_initrd(path, [*blobs, last])


def cached_lock(cache: Path) -> Lock:
    """Return the packages that the parts in the cache were made of."""
    path = cache / LOCK_FILE
    return read_lock(path) if path.exists() else NO_LOCK


def remember(cache: Path, lock: Lock) -> None:
    """Keep the cache's lock file; the caller holds the lock of the cache."""
    new = cache / f"{LOCK_FILE}.new"
    new.write_text(lock_text(lock))
    new.replace(cache / LOCK_FILE)


def _file_part(shop: Workshop, path: Path, arch: Arch) -> Part:
    """Keep the user's own kernel image, so that a bundle has it too."""
    image = read_image(path, arch.name)

    def build(work: Path) -> Notes:
        (work / kernels.IMAGE).write_bytes(image)
        return {"release": None}

    digest = _digest(image)
    # A part's name is what a bundle knows it by: one for each image.
    name = f"kernel-file-{digest[:16]}-{arch.name}"
    return build_part(shop.cache, name, inputs={"image": digest}, build=build)


def _row_of(kernel: str, arch: str) -> KernelRow | None:
    """Return the row of a kernel by name; None for a path."""
    known = kernel in kernels.kernel_names()
    if "/" in kernel or (not known and Path(kernel).is_file()):
        return None
    return kernels.get_kernel_row(kernel, arch)


def _qemu_part(shop: Workshop, arch: Arch) -> Part:
    return _part_of_packages(
        shop,
        f"qemu-{arch.name}",
        # QEMU runs here, not on the board; its host is an x86-64 machine.
        lambda root: aptroot.resolve(
            arch.qemu_packages, arch="amd64", root=root, dependencies=True
        ),
        recipe=qemu.RECIPE,
        build=lambda work, root: qemu.build_qemu(work, root, arch),
    )


def _userland_part(shop: Workshop, arch: Arch) -> Part:
    def resolve(root: Path) -> tuple[Package, ...]:
        found = aptroot.resolve(
            userland.PACKAGES, arch=arch.debian, root=root, dependencies=True
        )
        return tuple(filter(userland.is_needed, found))

    return _part_of_packages(
        shop,
        f"userland-{arch.name}",
        resolve,
        recipe=userland.RECIPE,
        build=lambda work, root: userland.build_userland(work, root, arch),
    )


def _agent_part(shop: Workshop, arch: Arch) -> Part:
    name = f"agent-{arch.name}"
    if name in shop.pins:
        return _pinned(shop, name)
    agent = shop.agent(arch.name).read_bytes()
    init = resources.files("rtscope.board").joinpath("init").read_bytes()

    def build(work: Path) -> Notes:
        (work / AGENT_ARCHIVE).write_bytes(initrd.agent_archive(agent))
        return {}

    digests = {"agent": _digest(agent), "init": _digest(init)}
    return build_part(shop.cache, name, inputs=digests, build=build)


def _plugin_part(shop: Workshop) -> Part:
    name = "plugin-x86_64"  # like QEMU, for the host
    if name in shop.pins:
        return _pinned(shop, name)
    file = resources.files("rtscope").joinpath("plugins", PLUGIN)
    if not file.is_file():
        raise BoardError("the plugin for QEMU is not built: run make plugin")
    content = file.read_bytes()

    def build(work: Path) -> Notes:
        (work / PLUGIN).write_bytes(content)
        return {}

    return build_part(
        shop.cache, name, inputs={"plugin": _digest(content)}, build=build
    )


def _kernel_part(shop: Workshop, row: KernelRow) -> Part:
    fragments = sourcekernel.read_fragments(row.fragments) if row.source else ""
    recipe = sourcekernel.RECIPE if row.source else kernels.RECIPE

    def build(work: Path, root: Path) -> Notes:
        if not row.source:
            return kernels.keep_packaged(work, root, row)
        shop.say(f"building {row.name}: some minutes, once")
        return sourcekernel.build_kernel(work, root, row)

    return _part_of_packages(
        shop,
        f"kernel-{row.name}-{row.arch}",
        lambda root: aptroot.resolve(
            [row.source or row.package],
            arch=_debian(row),
            root=root,
            dependencies=False,
        ),
        recipe=[recipe, list(row.modules), row.base, _digest(fragments.encode())],
        build=build,
    )


def _debian(row: KernelRow) -> str:
    # The source package is the same for all, and every mirror has the lists of amd64.
    return "amd64" if row.source else get_arch(row.arch).debian


def _part_of_packages(
    shop: Workshop,
    name: str,
    resolve: Callable[[Path], tuple[Package, ...]],
    *,
    recipe: object,
    build: Callable[[Path, Path], Notes],
) -> Part:
    if name in shop.pins:
        return _pinned(shop, name)
    packages = _packages(shop, name, resolve)

    def build_it(work: Path) -> Notes:
        shop.say(f"building {name}")
        root = work / "unpacked"
        for file in aptroot.fetch(packages, shop.cache / "downloads", say=shop.say):
            aptroot.unpack(file, root)
        notes = build(work, root)
        shutil.rmtree(root)
        return notes

    inputs = {"packages": as_rows(packages), "recipe": recipe}
    return build_part(shop.cache, name, inputs=inputs, build=build_it)


def _packages(
    shop: Workshop, name: str, resolve: Callable[[Path], tuple[Package, ...]]
) -> tuple[Package, ...]:
    """Return what a part is made of: as locked, as last time, or as of now."""
    if shop.lock is not None:
        if name not in shop.lock.parts:
            raise UsageError(
                f"the lock file has no packages for {name}: write another with "
                "rtscope board build --save-lock FILE, or leave --locked out"
            )
        return shop.lock.parts[name]
    known = cached_lock(shop.cache)
    if name in known.parts and not shop.upgrade:
        return known.parts[name]
    shop.say(f"asking the archive for {name}")
    root = shop.cache / "apt"
    packages = resolve(root)
    shutil.rmtree(root, ignore_errors=True)
    remember(shop.cache, known.with_part(name, packages))
    return packages


def _pinned(shop: Workshop, name: str) -> Part:
    part = find_part(shop.cache, name, shop.pins[name])
    if part is None:
        raise BoardError(
            f"{name}-{shop.pins[name][:16]} is not in {shop.cache}: import the bundle "
            "that has it (rtscope board import FILE)"
        )
    return part


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
