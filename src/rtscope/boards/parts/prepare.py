"""
Everything that a board needs to boot, built into the cache if it is not there.

Five parts: QEMU, our plugin for it, user space, the agent and the kernel; a sixth has
the files that a campaign brings.
"""

import contextlib
import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from rtscope.boards.catalogue import Arch, Board, get_arch
from rtscope.boards.kernels import catalogue as kernels
from rtscope.boards.kernels import sourcekernel
from rtscope.boards.kernels.catalogue import KernelRow
from rtscope.boards.kernels.recipe import find_recipe, fragments_of, recipe_names
from rtscope.boards.parts import aptroot, initrd, qemu
from rtscope.boards.parts.aptroot import Package
from rtscope.boards.parts.buildcontext import (
    AGENT_ARCHIVE,
    DOWNLOADS,
    PLUGIN,
    USERLAND_ARCHIVE,
    BuildContext,
    content_part,
    part_of_packages,
)
from rtscope.boards.parts.cache import NotBuiltError, Part, locked
from rtscope.boards.parts.initrd import files_part, read_files
from rtscope.boards.parts.prepared import Prepared, assemble
from rtscope.host.errors import BoardError, UsageError


def prepare(
    board: Board,
    kernel: str,
    *,
    context: BuildContext,
    own_qemu: Path | None = None,
    files: Sequence[Path] = (),
) -> Prepared:
    """
    Return what boots a kernel (a name, or the path of an image) on a board.

    Raises UsageError for names that are wrong and BoardError for what cannot be had.
    """
    return prepare_all(
        board, [kernel], context=context, own_qemu=own_qemu, files=files
    )[0]


def prepare_all(
    board: Board,
    kernel_list: Sequence[str],
    *,
    context: BuildContext,
    own_qemu: Path | None = None,
    files: Sequence[Path] = (),
    config: Sequence[str] = (),
) -> list[Prepared]:
    """
    Return the same for several kernels of one board.

    It has `files` below /files, by their names; UsageError for one that cannot be read.
    With the lines `config` each kernel is built from its recipe with these settings;
    UsageError for a kernel that has none.
    """
    arch = get_arch(board.arch)
    wanted = [
        (name, _with_lines(name, _row_of(name, board.arch), config))
        for name in kernel_list
    ]
    own = qemu.own_qemu(own_qemu, board, plugin=plugin_of_ours()) if own_qemu else None
    for name, row in wanted:
        if row is None:
            kernels.bootable_image(Path(name), board.arch)
    contents = read_files(files)
    common, made = _parts(context, arch, wanted, contents, needs_qemu=own is None)
    return [
        assemble(board, Path(name).name, parts=(*common, part), own=own)
        for name, part in zip(kernel_list, made, strict=True)
    ]


def check_kernel(board: Board, name: str, config: Sequence[str]) -> None:
    """
    Raise UsageError for a kernel that a board cannot boot; nothing is fetched or built.

    Likewise for the path of an image, for a recipe that names what there is not, and
    for `config` of a kernel that is not built here.
    """
    row = _with_lines(name, _row_of(name, board.arch), config)
    if row is None:
        kernels.bootable_image(Path(name), board.arch)
    elif row.recipe is not None:
        sourcekernel.check_board(row.recipe)
        fragments_of(row.recipe)


def is_built(
    board: Board, name: str, config: Sequence[str], *, context: BuildContext
) -> bool | None:
    """
    Tell whether a kernel is in the cache; None if only its source could tell.

    Nothing is fetched or built. UsageError as `check_kernel`.
    """
    row = _with_lines(name, _row_of(name, board.arch), config)
    if row is None or row.recipe is None:
        return None
    if row.recipe.source.kind in ("git", "directory"):
        return None  # another machine to ask, or a whole tree to read
    try:
        kernel = sourcekernel.built_kernel(
            replace(context, may_build=False), row.recipe
        )
    except NotBuiltError:
        return False
    return kernel is not None


def check_configurations(
    board: Board,
    kernels_and_config: Mapping[str, tuple[Sequence[str], Sequence[str]]],
    *,
    context: BuildContext,
) -> None:
    """
    Check the settings of all kernels that are to be built, before one is built.

    By the names of what they are for: names of kernels, and lines of configuration.
    Raises KernelError with all that kbuild does not accept, UsageError for a kernel
    with lines that has no recipe.
    """
    rows = [
        (wanted, name, _with_lines(name, _row_of(name, board.arch), config))
        for wanted, (names, config) in kernels_and_config.items()
        for name in names
    ]
    recipes = {
        f"{wanted}, {name}" if len(rows) > 1 else name: row.recipe
        for wanted, name, row in rows
        if row is not None and row.recipe is not None
    }
    with contextlib.suppress(NotBuiltError):
        looking = replace(context, may_build=False)
        if all(sourcekernel.built_kernel(looking, one) for one in recipes.values()):
            return
    with locked(context.cache, log=context.log):
        sourcekernel.check_configurations(context, recipes)


def prepare_with(
    board: Board, kernel: Part, *, label: str, context: BuildContext
) -> Prepared:
    """
    Return what boots the kernel of a part, which records call `label`, on a board.

    Raises BoardError for what cannot be had.
    """
    common, _ = _parts(context, get_arch(board.arch), (), {}, needs_qemu=True)
    return assemble(board, label, parts=(*common, kernel))


def _parts(
    context: BuildContext,
    arch: Arch,
    wanted: Sequence[tuple[str, KernelRow | None]],
    files: Mapping[str, bytes],
    *,
    needs_qemu: bool,
) -> tuple[tuple[Part, ...], list[Part]]:
    """Return the parts that all kernels share, and the kernels."""

    def take(context: BuildContext) -> tuple[tuple[Part, ...], list[Part]]:
        machine = (qemu_part(context, arch),) if needs_qemu else ()
        user = (
            plugin_part(context),
            userland_part(context, arch),
            agent_part(context, arch),
        )
        made = [
            kernel_part(context, row)
            if row
            else own_image_part(context, Path(name), arch)
            for name, row in wanted
        ]
        brought = (files_part(context, files),) if files else ()
        return (*machine, *user, *brought), made

    if not context.upgrade:
        # What is there never changes: nobody waits for who builds something else.
        with contextlib.suppress(NotBuiltError):
            return take(replace(context, may_build=False))
    with locked(context.cache, log=context.log):
        parts = take(context)
        shutil.rmtree(context.cache / DOWNLOADS, ignore_errors=True)
    return parts


def lacking(board: Board, context: BuildContext) -> tuple[str, ...]:
    """Return what a board and its kernels must still fetch or build; nothing is."""
    looking, arch = replace(context, may_build=False), get_arch(board.arch)
    rows = [kernels.get_kernel_row(name, board.arch) for name in board.kernels]
    parts: dict[str, Callable[[], Part]] = {
        f"QEMU for {arch.name}": lambda: qemu_part(looking, arch),
        "user space": lambda: userland_part(looking, arch),
        **{row.name: partial(kernel_part, looking, row) for row in rows},
    }
    return tuple(name for name, part in parts.items() if not _is_built(part))


def _is_built(part: Callable[[], Part]) -> bool:
    try:
        part()
    except NotBuiltError:
        return False
    return True


def _row_of(kernel: str, arch: str) -> KernelRow | None:
    """Return the row of a kernel by name or recipe; None for the path of an image."""
    if kernel.endswith(".toml"):
        return kernels.recipe_row(find_recipe(kernel), arch)
    known = kernel in kernels.kernel_names()
    if "/" in kernel or (not known and Path(kernel).is_file()):
        return None
    return kernels.get_kernel_row(kernel, arch)


def _with_lines(
    name: str, row: KernelRow | None, config: Sequence[str]
) -> KernelRow | None:
    """Return the row of a kernel that is built with more settings."""
    if not config:
        return row
    if row is None or row.recipe is None:
        ours = recipe_names(size="virtual")
        raise UsageError(
            f"kernel.config: {name} is not built here, so its symbols are what they "
            f"are; name a kernel with a recipe: {', '.join(ours)}, or ./FILE.toml"
        )
    return replace(row, recipe=replace(row.recipe, lines=tuple(config)))


# --- user space: busybox, stress-ng and mke2fs with their libraries -----------------

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
    libraries = initrd.libraries_of(programs, libs=libs)
    for name, path in libraries.items():
        entries[f"{arch.libs}/{name}"] = initrd.File(path.read_bytes(), runs=True)
    for loader in filter(None, map(initrd.interpreter, programs)):
        place = loader.lstrip("/")
        entries[place] = initrd.Link(f"/{arch.libs}/{Path(loader).name}")
    archive = initrd.pack(entries)
    (work / USERLAND_ARCHIVE).write_bytes(archive)
    return {"libraries": sorted(libraries), "unpacked_bytes": len(archive)}


# --- each part, built into the cache if it is not there -----------------------------


def qemu_part(context: BuildContext, arch: Arch) -> Part:
    """Return QEMU for an architecture, from packages."""
    return part_of_packages(
        context,
        f"qemu-{arch.name}",
        # QEMU runs here, not on the board; its host is an x86-64 machine.
        lambda root: aptroot.resolve(
            arch.qemu_packages, arch="amd64", root=root, dependencies=True
        ),
        recipe=qemu.RECIPE,
        build=lambda work, root: qemu.build_qemu(work, root, arch),
    )


def plugin_part(context: BuildContext) -> Part:
    """Return our plugin; BoardError if it is not built."""
    name = "plugin-x86_64"  # like QEMU, for the host
    content = plugin_of_ours().read_bytes()
    inputs = {"plugin": _digest(content)}
    return content_part(context, name, PLUGIN, content, inputs=inputs)


def plugin_of_ours() -> Path:
    """Return the plugin of this rtscope; BoardError if it is not built."""
    file = Path(str(resources.files("rtscope").joinpath("plugins", PLUGIN)))
    if not file.is_file():
        raise BoardError(
            "the plugin for QEMU is not built: run make plugin in the source tree (an "
            "rtscope that was installed on another machine than x86-64 has none)"
        )
    return file


def agent_part(context: BuildContext, arch: Arch) -> Part:
    """Return the archive of the agent and of what starts it as first process."""
    name = f"agent-{arch.name}"
    agent = context.agent(arch.name).read_bytes()
    init = resources.files("rtscope.boards.parts").joinpath("init").read_bytes()
    archive = initrd.agent_archive(agent)
    digests = {"agent": _digest(agent), "init": _digest(init)}
    return content_part(context, name, AGENT_ARCHIVE, archive, inputs=digests)


def kernel_part(context: BuildContext, row: KernelRow) -> Part:
    """Return a kernel of a package, or one that is built from its recipe."""
    if row.recipe is not None:
        return sourcekernel.kernel_part(context, row.recipe)
    return part_of_packages(
        context,
        f"kernel-{row.name}-{row.arch}",
        lambda root: aptroot.resolve(
            [row.package],
            arch=get_arch(row.arch).debian,
            root=root,
            dependencies=False,
            suite=row.suite,
        ),
        # What stands for base and fragments keeps the keys of parts that are built.
        recipe=[
            *(kernels.RECIPE, list(row.modules), "", _digest(b"")),
            *((list(row.event_modules),) if row.event_modules else ()),
            *((list(row.device_trees),) if row.device_trees else ()),
        ],
        build=lambda work, root: kernels.keep_packaged(work, root, row),
    )


def own_image_part(context: BuildContext, path: Path, arch: Arch) -> Part:
    """Keep the user's own kernel image, so that a bundle has it too."""
    image = kernels.bootable_image(path, arch.name)

    digest = _digest(image)
    # A bundle knows a part by its name: one for each image.
    name = f"kernel-file-{digest[:16]}-{arch.name}"
    inputs, notes = {"image": digest}, {"release": None}
    return content_part(context, name, kernels.IMAGE, image, inputs=inputs, notes=notes)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
