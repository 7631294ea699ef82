"""
Everything that a board needs to boot, built into the cache if it is not there.

Five parts: QEMU, our plugin for it, user space, the agent and the kernel; a sixth has
the files that a campaign brings.
"""

import contextlib
import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

from rtscope.board import (
    aptroot,
    initrd,
    kernels,
    ownqemu,
    qemu,
    sourcekernel,
    userfiles,
    userland,
)
from rtscope.board.buildcontext import (
    DOWNLOADS,
    BuildContext,
    Notes,
    part_of_packages,
    pinned,
)
from rtscope.board.cache import NotBuiltError, Part, build_part, locked
from rtscope.board.catalogue import Arch, Board, get_arch
from rtscope.board.image import bootable_image
from rtscope.board.kernels import Kernel, KernelRow
from rtscope.board.packages import Package
from rtscope.board.qemu import Qemu
from rtscope.errors import BoardError
from rtscope.kernel.recipe import find_recipe

AGENT_ARCHIVE = "agent.cpio"
PLUGIN = "rtscope-plugin.so"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A board that can boot."""

    board: Board
    qemu: Qemu
    plugin: Path
    """What bounds the CPUs' quantum and records the worst paths."""
    kernel: Kernel
    archives: tuple[Path, ...]
    """What the initrd begins with; the job follows."""
    parts: tuple[Part, ...]
    """What it was made from; without those that are the user's own files."""

    @property
    def plugin_digest(self) -> str:
        """The SHA-256 of the plugin."""
        return hashlib.sha256(self.plugin.read_bytes()).hexdigest()


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
) -> list[Prepared]:
    """
    Return the same for several kernels of one board.

    It has `files` below /files, by their names; UsageError for one that cannot be read.
    """
    arch = get_arch(board.arch)
    wanted = [(name, _row_of(name, board.arch)) for name in kernel_list]
    own = (
        ownqemu.own_qemu(own_qemu, board, plugin=plugin_of_ours()) if own_qemu else None
    )
    for name, row in wanted:
        if row is None:
            bootable_image(Path(name), board.arch)
    contents = userfiles.read_files(files)
    common, made = _parts(context, arch, wanted, contents, needs_qemu=own is None)
    return [
        assemble(board, Path(name).name, parts=(*common, part), own=own)
        for name, part in zip(kernel_list, made, strict=True)
    ]


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
        machine = (_qemu_part(context, arch),) if needs_qemu else ()
        user = (
            _plugin_part(context),
            _userland_part(context, arch),
            _agent_part(context, arch),
        )
        made = [
            _kernel_part(context, row) if row else _file_part(context, Path(name), arch)
            for name, row in wanted
        ]
        brought = (userfiles.files_part(context, files),) if files else ()
        return (*machine, *user, *brought), made

    if not context.upgrade:
        # What is there never changes: nobody waits for who builds something else.
        with contextlib.suppress(NotBuiltError):
            return take(replace(context, may_build=False))
    with locked(context.cache, log=context.log):
        parts = take(context)
        shutil.rmtree(context.cache / DOWNLOADS, ignore_errors=True)
    return parts


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
    found = kernels.kernel_of_part(kinds["kernel"], kernel)
    return Prepared(
        board=board,
        qemu=own or qemu.packed_qemu(kinds["qemu"]),
        plugin=plugin or kinds["plugin"].file(PLUGIN),
        kernel=found,
        archives=(
            kinds["userland"].file(userland.ARCHIVE),
            kinds["agent"].file(AGENT_ARCHIVE),
            *((found.modules,) if found.modules else ()),
            *(
                (kinds[userfiles.KIND].file(userfiles.ARCHIVE),)
                if userfiles.KIND in kinds
                else ()
            ),
        ),
        parts=tuple(parts),
    )


def has_files(prepared: Prepared) -> bool:
    """Tell whether a board gets files of its campaign's."""
    return any(part.name.split("-")[0] == userfiles.KIND for part in prepared.parts)


def write_initrd(path: Path, prepared: Prepared, job: initrd.Job) -> str:
    """Write the initrd of one run; return its SHA-256."""
    last = initrd.job_archive(job, results=prepared.board.results)
    blobs = [archive.read_bytes() for archive in prepared.archives]
    return initrd.write_initrd(path, [*blobs, last])


def _file_part(context: BuildContext, path: Path, arch: Arch) -> Part:
    """Keep the user's own kernel image, so that a bundle has it too."""
    image = bootable_image(path, arch.name)

    def build(work: Path) -> Notes:
        (work / kernels.IMAGE).write_bytes(image)
        return {"release": None}

    digest = _digest(image)
    # A part's name is what a bundle knows it by: one for each image.
    name = f"kernel-file-{digest[:16]}-{arch.name}"
    return build_part(
        context.cache,
        name,
        inputs={"image": digest},
        build=build,
        may_build=context.may_build,
    )


def _row_of(kernel: str, arch: str) -> KernelRow | None:
    """Return the row of a kernel by name or recipe; None for the path of an image."""
    if kernel.endswith(".toml"):
        return kernels.recipe_row(find_recipe(kernel), arch)
    known = kernel in kernels.kernel_names()
    if "/" in kernel or (not known and Path(kernel).is_file()):
        return None
    return kernels.get_kernel_row(kernel, arch)


def _qemu_part(context: BuildContext, arch: Arch) -> Part:
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


def _userland_part(context: BuildContext, arch: Arch) -> Part:
    def resolve(root: Path) -> tuple[Package, ...]:
        found = aptroot.resolve(
            userland.PACKAGES, arch=arch.debian, root=root, dependencies=True
        )
        return tuple(filter(userland.is_needed, found))

    return part_of_packages(
        context,
        f"userland-{arch.name}",
        resolve,
        recipe=userland.RECIPE,
        build=lambda work, root: userland.build_userland(work, root, arch),
    )


def _agent_part(context: BuildContext, arch: Arch) -> Part:
    name = f"agent-{arch.name}"
    if name in context.pins:
        return pinned(context, name)
    agent = context.agent(arch.name).read_bytes()
    init = resources.files("rtscope.board").joinpath("init").read_bytes()

    def build(work: Path) -> Notes:
        (work / AGENT_ARCHIVE).write_bytes(initrd.agent_archive(agent))
        return {}

    digests = {"agent": _digest(agent), "init": _digest(init)}
    return build_part(
        context.cache, name, inputs=digests, build=build, may_build=context.may_build
    )


def plugin_of_ours() -> Path:
    """Return the plugin of this rtscope; BoardError if it is not built."""
    file = Path(str(resources.files("rtscope").joinpath("plugins", PLUGIN)))
    if not file.is_file():
        raise BoardError("the plugin for QEMU is not built: run make plugin")
    return file


def _plugin_part(context: BuildContext) -> Part:
    name = "plugin-x86_64"  # like QEMU, for the host
    if name in context.pins:
        return pinned(context, name)
    content = plugin_of_ours().read_bytes()

    def build(work: Path) -> Notes:
        (work / PLUGIN).write_bytes(content)
        return {}

    return build_part(
        context.cache,
        name,
        inputs={"plugin": _digest(content)},
        build=build,
        may_build=context.may_build,
    )


def _kernel_part(context: BuildContext, row: KernelRow) -> Part:
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
        recipe=[kernels.RECIPE, list(row.modules), "", _digest(b"")],
        build=lambda work, root: kernels.keep_packaged(work, root, row),
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
